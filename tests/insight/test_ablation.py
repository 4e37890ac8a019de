"""Ablations of attention heads on tiny runs."""

from pathlib import Path

import pytest
import torch

import nmt
from nmt.data.documents import earlier_pairs
from nmt.errors import Mistake
from nmt.evaluation.scores import headline_metrics
from nmt.insight.ablation import ABLATIONS, ablate, mean_queries, readable_pairs
from nmt.models import Luong
from nmt.runs.load import LoadedRun, load_run
from nmt.scoring.forced_scores import log_probs
from nmt.text import BOS, EOS

LINES = Path("in.en"), Path("in.vi")


def pairs() -> tuple[list[str], list[str]]:
    """The pairs of in.en and in.vi in which neither side is empty."""
    sides = zip(*(file.read_text(encoding="utf-8").splitlines() for file in LINES), strict=True)
    sources, targets = zip(*(pair for pair in sides if all(pair)), strict=True)
    return list(sources), list(targets)


def mean_log_prob(run: LoadedRun, sources: list[str], targets: list[str]) -> float:
    pieces = sum(len(ids) + 1 for ids in run.tokenizers.target.encode_all(targets))
    return sum(log_probs([run], sources, targets)) / pieces


@pytest.mark.parametrize("way", ABLATIONS)
def test_an_ablation_changes_the_model_and_leaves_it_as_it_was(run: str, way: str) -> None:
    loaded = load_run(Path(run), "cpu")
    sources, targets = pairs()
    before = mean_log_prob(loaded, sources, targets)
    intact, heads = ablate(loaded, sources, [targets], site="cross", ways=[way], bleu=False)
    assert intact.log_prob == pytest.approx(before)
    assert any(head.quality.log_prob != intact.log_prob for head in heads)
    assert mean_log_prob(loaded, sources, targets) == before


def test_a_loaded_run_can_be_ablated(here: Path) -> None:
    sources, targets = pairs()
    heads = nmt.load("maps_luong", device="cpu").ablate(["", *sources], ["x", *targets], ways=["off", "frozen"]).heads
    assert {(head.site, head.layer, head.head, head.way) for head in heads} == {
        ("cross", 0, head, way) for head in range(2) for way in ("off", "frozen")
    }
    assert [head.quality.log_prob for head in heads] == sorted(head.quality.log_prob for head in heads)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ways": ["of"]}, r"Unknown way 'of'\. Did you mean 'off'\?"),
        ({"site": "self"}, "There is no attention at site 'self', only at cross; choose one, or all"),
    ],
)
def test_what_cannot_be_ablated_is_refused(here: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        nmt.load("maps_luong", device="cpu").ablate(*pairs(), **arguments)  # type: ignore[arg-type]


def test_mean_queries_do_not_count_padding(here: Path) -> None:
    run = load_run(Path("maps_transformer"), "cpu")
    sources, targets = (tokenizer.encode_all(lines) for tokenizer, lines in zip(run.tokenizers, pairs(), strict=True))
    attention = run.model.sites["encoder_self"][0]
    queries: list[torch.Tensor] = []
    hook = attention.register_forward_pre_hook(lambda _, arguments: queries.append(arguments[0][0]))
    for source in sources:
        ids = torch.tensor([[*source, EOS]])
        run.model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
    hook.remove()
    torch.testing.assert_close(mean_queries(run, sources, targets)[attention], torch.cat(queries, dim=1).mean(dim=1))


def test_mean_queries_in_documents_are_those_of_the_sentences_one_by_one(document_runs: Path) -> None:
    run = load_run(document_runs / "hierarchical", "cpu")
    # Every sentence but the first is read after earlier ones of other lengths, which are padded.
    sources, targets = (
        tokenizer.encode_all(lines)
        for tokenizer, lines in zip(
            run.tokenizers,
            (["one two three four.", "one.", "two three."], ["một.", "hai ba bốn năm.", "một hai."]),
            strict=True,
        )
    )
    earlier = earlier_pairs([0, 0, 0], list(zip(sources, targets, strict=True)), run.context_window)
    assert [len(pairs) for pairs in earlier] == [0, 1, 2]
    means = mean_queries(run, sources, targets, earlier)
    # The source and the context change neither the encoder's queries nor those of the decoder's first self-attention.
    for attention in (*run.model.sites["encoder_self"], run.model.sites["decoder_self"][0]):
        queries: list[torch.Tensor] = []
        with attention.register_forward_pre_hook(lambda _, given, queries=queries: queries.append(given[0][0])):  # type: ignore[misc]
            for source, target in zip(sources, targets, strict=True):
                ids = torch.tensor([[*source, EOS]])
                run.model(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([[BOS, *target]]))
        torch.testing.assert_close(means[attention], torch.cat(queries, dim=1).mean(dim=1))


def test_a_pass_that_fails_leaves_no_hooks_on_the_model(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = load_run(Path("maps_luong"), "cpu")

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr(Luong, "decode", fails)
    with pytest.raises(RuntimeError, match="no memory"):
        mean_queries(run, [[4, 5]], [[4]])
    assert not any(attention._forward_pre_hooks for layers in run.model.sites.values() for attention in layers)


def test_lines_that_are_not_measured_remain_the_context_of_those_that_are(document_runs: Path) -> None:
    loaded = nmt.load(document_runs / "hierarchical", device="cpu")
    sources, documents = ["one two.", "three.", "four five."], ["a", "a", "a"]
    targets = ["một hai.", "", "bốn năm."]
    scores = loaded.score(sources, targets, documents=documents)
    lengths = [len(ids) + 1 for ids in loaded.runs[0].tokenizers.target.encode_all(targets)]
    ablations = loaded.ablate(sources, targets, site="encoder_words", ways=["frozen"], bleu=True, documents=documents)
    assert ablations.intact.log_prob == pytest.approx((scores[0] + scores[2]) / (lengths[0] + lengths[2]))
    translations = loaded.translate(sources, documents=documents)
    bleu = headline_metrics(False)["BLEU"].corpus_score([translations[0], translations[2]], [[targets[0], targets[2]]])
    assert ablations.intact.bleu == bleu.score


def test_attention_to_earlier_sentences_is_not_frozen_where_there_are_none(document_runs: Path) -> None:
    loaded = nmt.load(document_runs / "hierarchical", device="cpu")
    intact, heads = loaded.ablate(["one two."], ["một hai."], site="encoder_words", ways=["frozen"])
    assert {head.quality.log_prob for head in heads} == {intact.log_prob}


def test_empty_pairs_are_skipped_and_none_left_is_refused(here: Path) -> None:
    run = load_run(Path("maps_luong"), "cpu")
    sources, targets = pairs()
    assert readable_pairs(run, ["", *sources], ["x", *targets], 1) == [1]
    assert readable_pairs(run, ["", *sources], ["x", *targets]) == list(range(1, len(sources) + 1))
    with pytest.raises(
        Mistake, match="The model cannot read any of the sentence pairs, because each has a side that is empty"
    ):
        readable_pairs(run, [""], ["x"])


def test_pairs_too_long_for_the_model_are_skipped(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = load_run(Path("maps_luong"), "cpu")
    sources, targets = pairs()
    lengths = [len(run.tokenizers.source.encode(line)) for line in sources]
    monkeypatch.setattr(Luong, "max_source", property(lambda _: max(lengths)))
    kept = readable_pairs(run, sources, targets)
    assert kept == [index for index, length in enumerate(lengths) if length < max(lengths)]
    assert 0 < len(kept) < len(sources)
