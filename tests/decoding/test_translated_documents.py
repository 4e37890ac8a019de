"""Lines translated in their documents."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.data.batch import ContextSentences
from nmt.data.documents import ContextWindow
from nmt.decoding.beam import BeamSearch
from nmt.decoding.binding import bind
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.translator import Translation, Translator
from nmt.errors import Mistake
from nmt.text import EOS, PAD, Tokenizer, TokenizerPair, train_tokenizer

LINES = ["red cat", "blue dog runs", "big", "", "small dog", "cat sits here", "red"]
NAMES = ["a", "a", "a", "a", "a", "b", "c"]


@pytest.fixture(scope="module")
def tokenizers() -> TokenizerPair:
    words = ["red", "blue", "cat", "dog", "sits", "runs", "here", "big", "small"]
    lines = [" ".join([*words[n:], *words[:n]]) for n in range(len(words))]
    tokenizer = Tokenizer(train_tokenizer(lines, kind="bpe", size=310, character_coverage=1.0))
    return TokenizerPair(tokenizer, tokenizer)


class Recall:
    """Repeats the sentence before the source, or its translation; a source without one is repeated itself."""

    def __init__(self, vocab: int, translations: bool = False) -> None:
        self.vocab, self.translations = vocab, translations
        self.device, self.max_target = torch.device("cpu"), None
        self.max_source: int | None = None
        self.training = False
        self.sources: list[int] = []

    def train(self, mode: bool = True) -> "Recall":
        return self

    def encode(self, source: Tensor, source_mask: Tensor, *, context: ContextSentences | None = None) -> tuple[Tensor]:
        self.sources.append(len(source))
        if context is None:
            return (source,)
        before = context.source
        if self.translations:
            ends = torch.full_like(context.target_input[:, :1], PAD)
            before = torch.cat([context.target_input[:, 1:], ends], dim=1)
            before = before.scatter(1, (before != PAD).sum(1, keepdim=True), EOS)
        width = max(source.shape[1], before.shape[1])
        source, before = (torch.nn.functional.pad(each, (0, width - each.shape[1])) for each in (source, before))
        last = context.rows[:, -1]
        return (torch.where((last >= 0)[:, None], before[last.clamp(min=0)], source),)

    def start(self, memory: tuple[Tensor], beams: int) -> tuple[Tensor]:
        return (torch.zeros(len(memory[0]) * beams, dtype=torch.long),)

    def step(self, tokens: Tensor, state: tuple[Tensor], memory: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        position = state[0].view(tokens.shape).clamp(max=memory[0].shape[1] - 1)
        log_probs = torch.full((*tokens.shape, self.vocab), -9.0)
        return log_probs.scatter(2, memory[0].gather(1, position)[:, :, None], -0.1), (state[0] + 1,)

    def attending_step(self, tokens: Tensor, state: Any, memory: Any) -> tuple[Tensor, Tensor, Any]:
        log_probs, state = self.step(tokens, state, memory)
        return log_probs, torch.zeros(*tokens.shape, memory[0].shape[1]), state


def translator(tokenizers: TokenizerPair, window: ContextWindow, **settings: Any) -> Translator:
    model = Recall(tokenizers.target.size, window.translations)
    return Translator(bind(BeamSearch(beam_size=1), model), tokenizers, window=window, **settings)


def test_a_line_is_read_after_those_of_its_document(tokenizers: TokenizerPair) -> None:
    found = translator(tokenizers, ContextWindow(2)).translate(LINES, documents=NAMES)
    assert found == ["red cat", "red cat", "blue dog runs", "", "big", "cat sits here", "red"]


def test_without_documents_or_context_each_line_is_read_by_itself(tokenizers: TokenizerPair) -> None:
    assert translator(tokenizers, ContextWindow(2)).translate(LINES) == LINES
    assert translator(tokenizers, ContextWindow()).translate(LINES, documents=NAMES) == LINES


def test_earlier_translations_are_the_ones_that_the_search_found(tokenizers: TokenizerPair) -> None:
    """The prefix makes the first translation another one, which every later line of the document repeats."""
    window = ContextWindow(1, translations=True)
    prefixes = ["blue", "", "", "", "", "", ""]
    found = translator(tokenizers, window).translate(LINES, prefixes, documents=NAMES)
    assert found == ["blue cat", "blue cat", "blue cat", "", "blue cat", "cat sits here", "red"]


def test_documents_are_translated_side_by_side(tokenizers: TokenizerPair) -> None:
    for translations, batches in ((True, [3, 1, 1, 1]), (False, [6])):
        model = Recall(tokenizers.target.size, translations)
        window = ContextWindow(1, translations=translations)
        Translator(bind(BeamSearch(beam_size=1), model), tokenizers, window=window).translate(LINES, documents=NAMES)
        assert model.sources == batches


@pytest.mark.parametrize("translations", [False, True])
def test_a_stream_gives_what_whole_documents_give(tokenizers: TokenizerPair, translations: bool) -> None:
    """An empty line ends a document; windows of 1, 4 and 2 lines cut the documents."""
    lines = [
        "red cat",
        "blue dog runs",
        "big",
        "",
        "small dog",
        "cat",
        "red",
        "here",
        "sits",
        "",
        "",
        "blue",
        "big dog",
    ]
    names = [0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 3, 3, 3]
    made = translator(tokenizers, ContextWindow(2, translations=translations))
    expected = made.translate(lines, documents=names)
    for read_ahead in (1, 2, 4, 100):
        stream = made.stream([(line, "") for line in lines], read_ahead=read_ahead, document=True)
        assert [line.best for line in stream] == expected


def test_a_joined_source_has_the_earlier_ones_that_fit(tokenizers: TokenizerPair) -> None:
    """The source is repeated whole, so the translation shows what was read; EOS inside it ends the repetition."""
    window = ContextWindow(2, joined=True)
    ids = [tokenizers.source.encode(line) for line in ("red cat", "blue dog runs", "big")]
    lengths = [len(each) for each in ids]
    seen: list[list[int]] = []

    class Reads(BeamSearch):
        def __call__(self, model: Any, source: Tensor, source_mask: Tensor, *others: Any) -> Any:
            seen.extend(row[mask].tolist() for row, mask in zip(source, source_mask, strict=True))
            return super().__call__(model, source, source_mask, *others)

    for limit, expected in (
        (99, [*ids[0], EOS, *ids[1], EOS, *ids[2], EOS]),
        (sum(lengths) + 2, [*ids[1], EOS, *ids[2], EOS]),
        (lengths[2] + 1, [*ids[2], EOS]),
    ):
        seen.clear()
        search = bind(Reads(beam_size=1), Recall(tokenizers.target.size))
        made = Translator(search, tokenizers, max_source_tokens=limit, window=window)
        made.search_documents(ids, [0, 0, 0])
        assert seen == sorted(seen, key=len, reverse=True)
        assert expected in seen


def test_an_ensemble_passes_the_context_on(tokenizers: TokenizerPair) -> None:
    models = [Recall(tokenizers.target.size), Recall(tokenizers.target.size)]
    made = Translator(bind(BeamSearch(beam_size=1), Ensemble(models)), tokenizers, window=ContextWindow(1))
    assert made.translate(["red cat", "big"], documents=["a", "a"]) == ["red cat", "red cat"]


@pytest.mark.unchecked  # as a user passes the column of a table
def test_the_names_of_documents_may_be_an_array(tokenizers: TokenizerPair) -> None:
    names: Any = np.array(["a", "a"])
    made = Translator(
        bind(BeamSearch(beam_size=1), Recall(tokenizers.target.size)), tokenizers, window=ContextWindow(1)
    )
    assert made.translate(["red cat", "big"], documents=names) == ["red cat", "red cat"]


def test_as_many_documents_as_lines(tokenizers: TokenizerPair) -> None:
    with pytest.raises(Mistake, match=r"document names \(1\) differs from the number of lines \(2\): give one"):
        translator(tokenizers, ContextWindow(1)).translate(["red", "big"], documents=["a"])


def test_n_best_of_a_document_continue_from_the_best(tokenizers: TokenizerPair) -> None:
    window = ContextWindow(1, translations=True)
    search = bind(BeamSearch(beam_size=2, n_best=2), Recall(tokenizers.target.size, True))
    made = Translator(search, tokenizers, window=window)
    found = made.n_best(["red cat", "big"], documents=["a", "a"])
    assert [len(each) for each in found] == [2, 2]
    assert isinstance(found[1][0], Translation)
    assert found[1][0].text == "red cat"


@pytest.mark.parametrize("translations", [False, True])
def test_a_source_that_is_too_long_for_the_model_is_no_context(tokenizers: TokenizerPair, translations: bool) -> None:
    window = ContextWindow(1, translations=translations)
    model = Recall(tokenizers.target.size, translations)
    ids = [tokenizers.source.encode(line) for line in ("red cat", "blue dog sits here", "big")]
    model.max_source = len(ids[1])
    made = Translator(bind(BeamSearch(beam_size=1), model), tokenizers, window=window)
    found, earlier = made.search_documents(ids, [0, 0, 0])
    assert [[hypothesis.ids for hypothesis in hypotheses] for hypotheses in found] == [[ids[0]], [], [ids[0]]]
    assert [source for source, _ in earlier[2]] == [ids[0]]
