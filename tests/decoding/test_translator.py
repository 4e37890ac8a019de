import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from threading import Barrier, Event
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.decoding.beam import BeamSearch
from nmt.decoding.binding import Algorithm, bind
from nmt.decoding.constraints import Constraints
from nmt.decoding.id_search import Hypothesis, IdBatch
from nmt.decoding.sampling import Sampling
from nmt.decoding.segments import split_line
from nmt.decoding.translator import TranslatedLine, Translation, Translator, batches_by_length
from nmt.errors import CheckFailed, Mistake
from nmt.models.embeddings import with_rows_of_length
from nmt.text.dictionary import Dictionary
from nmt.text.tokenizer import EOS, Tokenizer, TokenizerPair, train_tokenizer

WORDS = [
    "red",
    "blue",
    "cat",
    "dog",
    "sits",
    "runs",
    "here",
    "there.",
    "often!",
    "now?",
    "big",
    "small",
    "and",
    "or",
    "but",
]
LINES = [
    "red cat",
    "",
    "big dog sits here and there. now?",
    "  ",
    "blue",
    "a small  cat runs\u00a0often! blue dog or big cat",
]


@pytest.fixture(scope="module")
def tokenizers() -> TokenizerPair:
    lines = [" ".join([*WORDS[n:], *WORDS[:n]]) for n in range(len(WORDS))]
    tokenizer = Tokenizer(train_tokenizer(lines, kind="bpe", size=331, character_coverage=1.0))
    return TokenizerPair(tokenizer, tokenizer)


class Echo:
    """Repeats the source, whatever its length; remembers the batches and the modes it saw."""

    def __init__(self, vocab: int, max_source: int | None = None) -> None:
        self.vocab = vocab
        self.device, self.max_source, self.max_target = torch.device("cpu"), max_source, None
        self.training = True
        self.modes: list[tuple[bool, bool]] = []
        self.shapes: list[tuple[int, ...]] = []

    def train(self, mode: bool = True) -> "Echo":
        self.training = mode
        return self

    def encode(self, source: Tensor, source_mask: Tensor, *, context: None = None) -> tuple[Tensor]:
        self.modes.append((self.training, torch.is_inference_mode_enabled()))
        self.shapes.append(tuple(source.shape))
        return (source,)

    def start(self, memory: tuple[Tensor], beams: int) -> tuple[Tensor]:
        return (torch.zeros(len(memory[0]) * beams, dtype=torch.long),)

    def step(self, tokens: Tensor, state: tuple[Tensor], memory: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        position = state[0].view(tokens.shape).clamp(max=memory[0].shape[1] - 1)
        log_probs = torch.full((*tokens.shape, self.vocab), -9.0)
        return log_probs.scatter(2, memory[0].gather(1, position)[:, :, None], -0.1), (state[0] + 1,)

    def attending_step(
        self, tokens: Tensor, state: tuple[Tensor], memory: tuple[Tensor]
    ) -> tuple[Tensor, Tensor, tuple[Tensor]]:
        log_probs, state = self.step(tokens, state, memory)
        return log_probs, torch.zeros(*tokens.shape, memory[0].shape[1]), state


def translator(tokenizers: TokenizerPair, **settings: Any) -> tuple[Translator, Echo]:
    model = Echo(tokenizers.target.size)
    return Translator(bind(BeamSearch(beam_size=2), model), tokenizers, **settings), model


def plain(lines: list[str]) -> list[tuple[str, str]]:
    """Lines without prefixes, as a stream takes them."""
    return [(line, "") for line in lines]


def texts(lines: Iterable[TranslatedLine]) -> list[str]:
    return [line.best for line in lines]


def test_lines_keep_their_order_and_empty_ones_stay_empty(tokenizers: TokenizerPair) -> None:
    expected = ["red cat", "", LINES[2], "", "blue", "a small cat runs often! blue dog or big cat"]
    assert translator(tokenizers)[0].translate(LINES) == expected
    assert translator(tokenizers)[0].translate([]) == []


def test_parametrized_weights_are_computed_only_once(
    tokenizers: TokenizerPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = nn.Embedding(5, 3)
    with_rows_of_length(table)
    made: list[Tensor] = []
    monkeypatch.setattr(F, "normalize", lambda weight, dim: made.append(weight) or weight)
    translating, model = translator(tokenizers)
    step = model.step
    monkeypatch.setattr(model, "step", lambda *args: (table.weight, step(*args))[1])
    assert translating.translate(LINES) == translator(tokenizers)[0].translate(LINES)
    assert len(made) == 1


def test_neither_batches_nor_windows_change_a_translation(
    tokenizers: TokenizerPair, markov: Callable[..., Any]
) -> None:
    model = markov(vocab=tokenizers.target.size, seed=3)
    whole = Translator(bind(BeamSearch(beam_size=3), model), tokenizers)
    single = Translator(bind(BeamSearch(beam_size=3), model), tokenizers, batch_tokens=1)
    expected = whole.translate(LINES)
    assert single.translate(LINES) == expected
    assert texts(whole.stream(plain(LINES), read_ahead=2)) == expected
    assert [whole.translate([line])[0] for line in LINES] == expected


@pytest.mark.parametrize(
    ("search", "batches"),
    [
        (BeamSearch(beam_size=15), [4]),
        (BeamSearch(beam_size=16), [2, 2]),
        (BeamSearch(beam_size=16, n_best=16), [2, 2]),
        (Sampling(samples=16), [2, 2]),
    ],
    ids=["beam 15", "beam 16", "of which all are asked for", "16 samples"],
)
def test_the_number_of_hypotheses_limits_the_batches(
    tokenizers: TokenizerPair, markov: Callable[..., Any], search: Algorithm, batches: list[int]
) -> None:
    model, sizes = markov(vocab=tokenizers.target.size, seed=3), []
    length = len(tokenizers.source.encode("red cat")) + 1
    subject = Translator(bind(search, model), tokenizers, batch_tokens=5 * length - 1)
    subject.translate(["red cat"] * 4, report=lambda new, _: sizes.append(new))
    assert sizes == batches


def test_batches_keep_to_the_budget_and_contain_every_sentence_once() -> None:
    lengths = [3, 7, 0, 2, 5, 11, 3, 0, 13]
    batches = batches_by_length(lengths, batch_tokens=11)
    assert sorted(index for batch in batches for index in batch) == [0, 1, 3, 4, 5, 6, 8]
    assert all(len(batch) * max(lengths[i] for i in batch) <= 11 for batch in batches if len(batch) > 1)
    assert batches[0] == [8]


def test_a_single_string_is_refused(tokenizers: TokenizerPair) -> None:
    with pytest.raises(Mistake, match=r"lines must be a list of strings, not a string; write \[line\]"):
        translator(tokenizers)[0].translate("red cat")


def test_search_runs_in_evaluation_mode_without_gradients_and_restores_the_mode(tokenizers: TokenizerPair) -> None:
    for training in (True, False):
        subject, model = translator(tokenizers)
        model.training = training
        subject.translate(LINES)
        assert set(model.modes) == {(False, True)}
        assert model.training is training


def test_the_mode_is_restored_after_an_error(tokenizers: TokenizerPair, markov: Callable[..., Any]) -> None:
    model = markov(vocab=tokenizers.target.size, seed=3)
    model.table[:] = torch.nan
    with pytest.raises(CheckFailed, match="no translation"):
        Translator(bind(BeamSearch(), model), tokenizers).translate(["red"])
    assert model.training


@pytest.mark.parametrize(("max_source_tokens", "max_source"), [(13, None), (13, 99), (99, 13)])
def test_a_line_that_is_too_long_is_translated_in_parts_with_one_warning(
    tokenizers: TokenizerPair, caplog: pytest.LogCaptureFixture, max_source_tokens: int, max_source: int | None
) -> None:
    model = Echo(tokenizers.target.size, max_source)
    subject = Translator(bind(BeamSearch(beam_size=2), model), tokenizers, max_source_tokens=max_source_tokens)
    line = " ".join(WORDS * 3)
    with caplog.at_level(logging.WARNING):
        assert texts(subject.stream(plain(["red", "blue", line]), read_ahead=2)) == ["red", "blue", line]
    assert len(caplog.records) == 1
    assert caplog.records[0].getMessage().startswith("Line 3 has ")
    caplog.clear()
    list(subject.stream(plain([line]), first_line=7, line_label="a.en, line"))
    assert caplog.records[0].getMessage().startswith("a.en, line 7 has ")
    assert max(width for _, width in model.shapes) <= 13


def test_a_source_that_the_model_cannot_read_is_not_searched(tokenizers: TokenizerPair) -> None:
    model = Echo(tokenizers.target.size, max_source=4)
    search = bind(BeamSearch(beam_size=2), model)
    ranked = Translator(search, tokenizers).search_ids([[5, 6, 7], [5, 6, 7, 8], [], [5]])
    assert [hypotheses[0].ids if hypotheses else None for hypotheses in ranked] == [[5, 6, 7], None, None, [5]]


class Script(Echo):
    """Gives the same ids for every source."""

    def __init__(self, vocab: int, ids: list[int]) -> None:
        super().__init__(vocab)
        self.ids = torch.tensor([ids])

    def encode(self, source: Tensor, source_mask: Tensor, *, context: None = None) -> tuple[Tensor]:
        return (self.ids.expand(len(source), -1),)


@pytest.mark.parametrize("separator", ["\n", "\r", "\t", "\r\n", "\u2028", "\x85", "\xa0"])
def test_a_translation_is_a_single_line_whatever_bytes_the_model_generates(
    tokenizers: TokenizerPair, separator: str
) -> None:
    ids = tokenizers.target.encode(f"red{separator}cat") + tokenizers.target.encode("\n")
    assert "<0x0A>" in tokenizers.target.pieces(ids)
    assert tokenizers.target.decode(ids) != "red cat"
    model = Script(tokenizers.target.size, [*ids, EOS])
    search = BeamSearch(beam_size=2, constraints=Constraints(max_length_offset=31))
    subject = Translator(bind(search, model), tokenizers)
    assert subject.translate(["blue", "", "dog"]) == ["red cat", "", "red cat"]


def test_stream_reads_no_further_than_its_window_and_windows_grow(tokenizers: TokenizerPair) -> None:
    read = []

    def endless() -> Iterator[tuple[str, str]]:
        while True:
            read.append("red")
            yield "red cat", ""

    stream = translator(tokenizers)[0].stream(endless(), read_ahead=6)
    seen = []
    for _ in range(14):
        assert texts([next(stream)]) == ["red cat"]
        seen.append(len(read))
    assert seen == [1] + [5] * 4 + [11] * 6 + [17] * 3


def test_a_window_ends_where_the_input_pauses_and_lines_keep_their_numbers(
    tokenizers: TokenizerPair, caplog: pytest.LogCaptureFixture
) -> None:
    read = []

    def lines() -> Iterator[tuple[str, str]]:
        for line in ("red", "blue", " ".join(WORDS * 3)):
            read.append(line)
            yield line, ""

    model = Echo(tokenizers.target.size)
    subject = Translator(bind(BeamSearch(beam_size=2), model), tokenizers, max_source_tokens=13)
    seen = [len(read) for _ in subject.stream(lines(), read_ahead=100, paused=lambda: True)]
    assert seen == [1, 2, 3]
    assert caplog.messages[0].startswith("Line 3 has ")


@pytest.mark.parametrize("kind", [Mistake, CheckFailed])
@pytest.mark.parametrize("good", [0, 1, 2, 5, 7])
def test_an_error_in_the_input_is_raised_after_the_translations_before_it(
    tokenizers: TokenizerPair, good: int, kind: type[Exception]
) -> None:
    def lines() -> Iterator[tuple[str, str]]:
        yield from plain(["red cat"] * good)
        raise kind("line is broken")

    translated = []
    with pytest.raises(kind, match="line is broken"):
        translated.extend(translator(tokenizers)[0].stream(lines(), read_ahead=3))
    assert texts(translated) == ["red cat"] * good


def test_n_best_are_the_hypotheses_of_the_search_with_their_scores(
    tokenizers: TokenizerPair, markov: Callable[..., Any]
) -> None:
    model = markov(vocab=tokenizers.target.size, seed=3)
    subject = Translator(bind(BeamSearch(beam_size=3, n_best=3), model), tokenizers)
    ranked = subject.n_best(LINES)
    assert [translations[0].text if translations else "" for translations in ranked] == subject.translate(LINES)
    assert ranked[1] == []
    searched = subject.search_ids(tokenizers.source.encode_all(["red cat"]))[0]
    assert [translation[1:] for translation in ranked[0]] == [
        (hypothesis.log_prob, hypothesis.score) for hypothesis in searched
    ]
    assert len(ranked[0]) == 3


def test_the_parts_of_a_long_line_are_joined_rank_by_rank(
    tokenizers: TokenizerPair, markov: Callable[..., Any]
) -> None:
    model, search = markov(vocab=tokenizers.target.size, seed=3), BeamSearch(beam_size=3, n_best=3)
    subject = Translator(bind(search, model), tokenizers, max_source_tokens=6)
    line = "red cat sits. blue dog runs."
    encode, decode = tokenizers.source.encode, tokenizers.source.decode
    parts = [subject.n_best([decode(ids)])[0] for ids in split_line(line, encode(line), encode, 5)]
    assert len(parts) > 1
    for rank, whole in enumerate(subject.n_best([line])[0]):
        assert whole.score == pytest.approx(sum(part[rank].score for part in parts))
        assert whole.log_prob == pytest.approx(sum(part[rank].log_prob for part in parts))


def test_a_translation_begins_with_its_prefix(tokenizers: TokenizerPair, markov: Callable[..., Any]) -> None:
    subject = Translator(bind(BeamSearch(beam_size=3), markov(vocab=tokenizers.target.size, seed=3)), tokenizers)
    lines, prefixes = ["red cat", "", "blue", "dog"], ["big dog", "but", "", "often!"]
    free, begun = subject.translate(lines), subject.translate(lines, prefixes)
    assert begun[0].startswith("big dog")
    assert begun[3].startswith("often!")
    assert begun[1:3] == free[1:3]
    with pytest.raises(Mistake, match="4 lines but 3 prefixes: pass one for each line"):
        subject.translate(lines, prefixes[:3])


def test_met_nothing_to_translate_is_copied(tokenizers: TokenizerPair, markov: Callable[..., Any]) -> None:
    model = markov(vocab=tokenizers.target.size, seed=3)
    subject = Translator(
        bind(BeamSearch(beam_size=3, n_best=3), model), tokenizers, choose=lambda texts: len(texts) - 1
    )
    lines = ["red cat", "123", " 😀 ", "2. red cat", "red cat 😀", "https://example.org/"]
    ranked = subject.n_best(lines)
    assert [ranked[index] for index in (1, 2, 5)] == [
        [Translation("123", 0.0, 0.0)],
        [Translation("😀", 0.0, 0.0)],
        [Translation("https://example.org/", 0.0, 0.0)],
    ]
    assert ranked[3] == [translation._replace(text=f"2. {translation.text}") for translation in ranked[0]]
    assert ranked[4] == [translation._replace(text=f"{translation.text} 😀") for translation in ranked[0]]
    assert [line.translations for line in subject.stream(plain(lines), read_ahead=2)] == ranked


def test_with_verbatim_or_a_prefix_the_model_reads_the_whole_line(
    tokenizers: TokenizerPair, markov: Callable[..., Any]
) -> None:
    search = bind(BeamSearch(beam_size=3), markov(vocab=tokenizers.target.size, seed=3))
    whole, subject = Translator(search, tokenizers, verbatim=True), Translator(search, tokenizers)
    lines = ["123", "2. red cat", "RED CAT RUNS"]
    hypotheses = whole.search_ids(tokenizers.source.encode_all(lines))
    assert [translations[0].log_prob for translations in whole.n_best(lines)] == [
        best.log_prob for [best] in hypotheses
    ]
    begins = ["big dog", "big", "often!"]
    assert subject.n_best(lines, begins) == whole.n_best(lines, begins)
    assert subject.translate(lines) != whole.translate(lines)


def test_met_all_capitals() -> None:
    tokenizer = Tokenizer(
        train_tokenizer([" ".join(WORDS)] * 2 + [" ".join(WORDS).title()], kind="bpe", size=331, character_coverage=1.0)
    )
    search = Recording()
    subject = Translator(bind(search, Echo(tokenizer.size)), TokenizerPair(tokenizer, tokenizer))
    assert subject.translate(["BIG DOG SITS THERE. RED CAT RUNS OFTEN!"]) == ["BIG DOG SITS THERE. RED CAT RUNS OFTEN!"]
    assert [tokenizer.decode(ids) for ids in search.sources] == ["Big dog sits there. Red cat runs often!"]


def test_words_are_replaced_after_capitals_and_without_markers() -> None:
    kept = [" ".join(WORDS)] * 2 + [" ".join(WORDS).title()]
    tokenizer = Tokenizer(train_tokenizer(kept, kind="bpe", size=331, character_coverage=1.0))
    pair, search = TokenizerPair(tokenizer, tokenizer), Recording()
    subject = Translator(
        bind(search, Echo(tokenizer.size)), pair, dictionary=Dictionary({"cat": "dog", "big dog": "the cat"})
    )
    lines = ["BIG DOG SITS THERE. RED CAT RUNS OFTEN!", "2. Cat runs 😀", "123"]
    assert subject.translate(lines) == ["THE CAT SITS THERE. RED DOG RUNS OFTEN!", "2. Dog runs 😀", "123"]
    assert [tokenizer.decode(ids) for ids in search.sources] == [
        "The cat sits there. Red dog runs often!",
        "Dog runs",
    ]


def test_unknown_characters_are_those_that_the_model_has_to_translate(tokenizers: TokenizerPair) -> None:
    subject, lines = translator(tokenizers)[0], ["red cat", "北京", "9. red cat 😀", "9 red 北", "9"]
    prefixes = ["", "big", "big", "", "big"]
    for begins, unknown in ((None, ["", "北京", "", "9北", ""]), (prefixes, ["", "北京", "9😀", "9北", "9"])):
        translated = subject.translated_lines(lines, begins)
        assert [line.unknown_characters for line in translated] == unknown
        pairs = [*zip(lines, begins or [""] * len(lines), strict=True)]
        assert [line.unknown_characters for line in subject.stream(pairs)] == unknown
        assert [subject.unknown_characters(*pair) for pair in pairs] == unknown


def test_the_chosen_translation_comes_first(tokenizers: TokenizerPair, markov: Callable[..., Any]) -> None:
    model, search = markov(vocab=tokenizers.target.size, seed=3), BeamSearch(beam_size=3, n_best=3)
    plain_order = Translator(bind(search, model), tokenizers).n_best(["red cat"])[0]
    last = Translator(bind(search, model), tokenizers, choose=lambda texts: len(texts) - 1)
    chosen = last.n_best(["red cat"])[0]
    assert chosen == [plain_order[2], plain_order[0], plain_order[1]]


def split_characters(text: str, longest: int) -> list[str]:
    """split_line with one id per character."""

    def encode(part: str) -> list[int]:
        return [ord(character) for character in part]

    return ["".join(map(chr, ids)) for ids in split_line(text, encode(text), encode, longest)]


@pytest.mark.parametrize("longest", [1, 2, 7, 19, 1000])
@pytest.mark.parametrize("text", [" ".join(WORDS * 3), "x" * 37, "One. Two? Three! " * 5 + "end", "a"])
def test_parts_contain_the_text_and_fit_the_length(text: str, longest: int) -> None:
    parts = split_characters(text, longest)
    assert all(0 < len(part) <= longest for part in parts)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")


def test_a_line_is_cut_at_sentence_ends_in_preference_to_spaces() -> None:
    assert split_characters("one two three. four five six seven", 20) == ["one two three.", "four five six seven"]
    assert split_characters('He said "no." and left the house', 20) == ['He said "no."', "and left the house"]
    assert split_characters("one two three four", 10) == ["one two", "three four"]
    assert split_characters("我们昨天去了学校。他说今天不来了", 10) == ["我们昨天去了学校。", "他说今天不来了"]


class Counting(Tokenizer):
    """Counts how often each text is encoded."""

    def __init__(self, model: bytes) -> None:
        super().__init__(model)
        self.texts = Counter[str]()

    def encode(self, text: str) -> list[int]:
        self.texts[text] += 1
        return super().encode(text)

    def encode_all(self, texts: list[str]) -> list[list[int]]:
        self.texts.update(texts)
        return super().encode_all(texts)


class Recording(BeamSearch):
    """Remembers the ids of every source."""

    def __init__(self) -> None:
        super().__init__(beam_size=2)
        self.sources: list[list[int]] = []

    def __call__(self, model: Any, source: Tensor, *others: Any) -> list[list[Hypothesis]]:
        self.sources += [ids[: ids.index(EOS)] for ids in source.tolist()]
        return super().__call__(model, source, *others)


def test_every_line_and_every_part_of_a_long_line_is_encoded_once(tokenizers: TokenizerPair) -> None:
    """The ids that are searched are those of each part encoded by itself."""
    source, search, long = Counting(tokenizers.source.model), Recording(), " ".join(WORDS)
    pair = TokenizerPair(source, tokenizers.target)
    subject = Translator(bind(search, Echo(tokenizers.target.size)), pair, max_source_tokens=6)
    assert texts(subject.stream(plain(["red cat", "", long, "blue"]))) == ["red cat", "", long, "blue"]
    assert set(source.texts.values()) == {1}
    assert {"red cat", "blue", long} < set(source.texts)
    parts = [tokenizers.source.decode(ids) for ids in search.sources]
    assert sorted(" ".join(parts).split()) == sorted(["red", "cat", *WORDS, "blue"])
    assert len(parts) > 4
    assert search.sources == tokenizers.source.encode_all(parts)


@pytest.mark.parametrize("setting", [{"batch_tokens": 0}, {"max_source_tokens": 1}])
def test_sizes_out_of_range_are_refused(tokenizers: TokenizerPair, setting: dict[str, int]) -> None:
    with pytest.raises(Mistake, match=f"{next(iter(setting))} is "):
        translator(tokenizers, **setting)


def test_a_window_of_zero_lines_is_refused(tokenizers: TokenizerPair) -> None:
    with pytest.raises(Mistake, match="read_ahead is 0"):
        next(translator(tokenizers)[0].stream(plain(["red"]), read_ahead=0))


def test_an_engine_searches_batches_at_the_same_time(tokenizers: TokenizerPair) -> None:
    """The first search waits for a second one, and the results keep their order."""
    search = bind(BeamSearch(beam_size=2), Echo(tokenizers.target.size))
    both, calls = Barrier(2, timeout=60), count()
    lines = ["red cat", "big dog sits here", "blue dog or big cat runs", "now?"]

    def find(batch: IdBatch, observe: Any) -> list[list[Hypothesis]]:
        if next(calls) < 2:
            both.wait()
        return [[Hypothesis([*source], 0.0, 0.0)] for source in batch.sources]

    translator = Translator(replace(search, find=find, at_once=2), tokenizers)
    assert translator.translate(lines) == lines


def test_batches_that_are_searched_at_the_same_time_share_batch_tokens(tokenizers: TokenizerPair) -> None:
    search = bind(BeamSearch(beam_size=2), Echo(tokenizers.target.size))
    tokens: list[int] = []

    def find(batch: IdBatch, observe: Any) -> list[list[Hypothesis]]:
        tokens.append(sum(len(source) + 1 for source in batch.sources))  # equally long, with EOS
        return [[Hypothesis([], 0.0, 0.0)] for _ in batch.sources]

    Translator(replace(search, find=find, at_once=4), tokenizers, batch_tokens=48).search_ids([[5, 6, 7]] * 30)
    assert tokens == [12] * 10


def test_an_error_in_one_of_several_searches_ends_the_others(tokenizers: TokenizerPair) -> None:
    """The second search ends only when the error has been raised, and no other begins then."""
    search = bind(BeamSearch(beam_size=2), Echo(tokenizers.target.size))
    calls, failed = count(), Event()

    def find(source: Tensor, *rest: Any) -> list[list[Hypothesis]]:
        if next(calls) == 0:
            failed.set()
            raise CheckFailed("out of memory")
        failed.wait(timeout=60)
        time.sleep(0.1)  # the error passes from its thread to the one that waits for it
        return [[Hypothesis([], 0.0, 0.0)] for _ in source]

    translator = Translator(replace(search, find=find, at_once=2), tokenizers, batch_tokens=1)
    with pytest.raises(CheckFailed, match="out of memory"):
        translator.translate(["red cat"] * 1000)
    assert next(calls) < 10
