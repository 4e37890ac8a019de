"""Forced scores: what the search itself added up, and perplexities by their definition."""

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from jobs import run_settings

from nmt.config.nodes import make
from nmt.decoding.beam import BeamSearch
from nmt.decoding.binding import Algorithm, bind
from nmt.decoding.sampling import Sampling
from nmt.decoding.translator import Translator
from nmt.errors import CheckFailed, Mistake
from nmt.insight.attribution_maps import attribution_maps
from nmt.insight.forced_maps import IdPair, forced_maps
from nmt.models import VocabularySizes
from nmt.runs.directory import RunDirectory
from nmt.runs.forced_batches import log_probs_of_ids
from nmt.runs.load import LoadedRun
from nmt.runs.search import build_translator
from nmt.scoring.forced_scores import log_probs, perplexity
from nmt.text.tokenizer import Tokenizer, TokenizerPair, train_tokenizer

LINES = ["a b c d e f g h i j k l m n o p", "b a d c", "", "p o n", "a"]
SIZE = 293


@pytest.fixture(scope="module")
def tokenizers() -> TokenizerPair:
    tokenizer = Tokenizer(train_tokenizer(LINES * 3, kind="bpe", size=SIZE, character_coverage=1.0))
    return TokenizerPair(tokenizer, tokenizer)


@pytest.fixture(scope="module")
def untrained(tokenizers: TokenizerPair) -> Callable[..., LoadedRun]:
    """An untrained run in float64 with weights that are large enough to make probabilities differ."""

    def build(*overrides: str, seed: int = 1) -> LoadedRun:
        torch.manual_seed(seed)
        settings, size = run_settings(*overrides), tokenizers.source.size
        model = make(settings.model)(vocabulary=VocabularySizes(size, size, joint=True)).eval()
        for parameter in model.parameters():
            parameter.data.mul_(2)
        return LoadedRun(RunDirectory(Path("unused")), settings, tokenizers, model.double(), torch.device("cpu"))

    return build


def close(found: list[float], pieces: list[int]) -> Any:
    """Equal except for what float32 rounds, if the float64 logits of all pieces (EOS included) are equal.

    Half a unit in the last place of numbers below 64, which are 32 units of 1: for each piece, a logit, the logarithm
    of SIZE summed terms (half a unit of 1 each) and their difference, on both sides, and the running sum of a search,
    whose size is that of the whole.
    """
    one = torch.finfo(torch.float32).eps
    bounds = [n * one * (2 * (3 * 32 + SIZE / 2) + abs(value) / 2) for value, n in zip(found, pieces, strict=True)]
    return [pytest.approx(value, rel=0, abs=bound) for value, bound in zip(found, bounds, strict=True)]


def with_ends(run: LoadedRun, lines: list[str]) -> list[int]:
    """The number of pieces of each line, EOS included."""
    return [len(ids) + 1 for ids in run.tokenizers.target.encode_all(lines)]


@pytest.mark.parametrize("search", [BeamSearch(beam_size=3, n_best=3), Sampling(samples=3)])
@pytest.mark.parametrize("model", ["bahdanau", "luong", "transformer"])
def test_a_forced_score_is_the_sum_of_the_search_s_steps(
    untrained: Callable[..., LoadedRun], model: str, search: Algorithm
) -> None:
    run = untrained(f"model={model}")
    sources = run.tokenizers.source.encode_all([line for line in LINES if line])
    found = Translator(bind(search, run.model), run.tokenizers).search_ids(sources)
    pairs = [(source, hypothesis) for source, each in zip(sources, found, strict=True) for hypothesis in each]
    assert len(pairs) == 12
    forced = log_probs_of_ids([run], [s for s, _ in pairs], [h.ids for _, h in pairs], batch_tokens=50)
    assert forced == close([h.log_prob for _, h in pairs], [len(h.ids) + 1 for _, h in pairs])


def test_neither_batches_nor_order_change_a_score(untrained: Callable[..., LoadedRun]) -> None:
    run = untrained("model=luong")
    whole = log_probs([run], LINES, LINES[::-1])
    pieces = with_ends(run, LINES[::-1])
    assert whole == close([log_probs([run], [s], [t])[0] for s, t in zip(LINES, LINES[::-1], strict=True)], pieces)
    assert whole == close(log_probs([run], LINES, LINES[::-1], batch_tokens=1), pieces)


def test_an_ensemble_scores_with_the_mean_of_the_probabilities_of_each_piece(
    untrained: Callable[..., LoadedRun],
) -> None:
    runs = [untrained("model=luong", seed=1), untrained("model=transformer", seed=2)]
    assert log_probs([runs[0], runs[0]], LINES, LINES) == close(
        log_probs(runs[:1], LINES, LINES), with_ends(runs[0], LINES)
    )
    found = build_translator(runs, {"n_best": 2}).search_ids(runs[0].tokenizers.source.encode_all(["b a d c"]))[0]
    source = runs[0].tokenizers.source.encode("b a d c")
    forced = log_probs_of_ids(runs, [source] * 2, [hypothesis.ids for hypothesis in found], batch_tokens=50)
    assert forced == close([hypothesis.log_prob for hypothesis in found], [len(h.ids) + 1 for h in found])


def test_perplexities_count_the_ends_of_sentences(untrained: Callable[..., LoadedRun]) -> None:
    run = untrained("model=luong")
    found = perplexity([-2.0, -7.0], run, ["a b", " c  defg "])
    pieces = len(run.tokenizers.target.encode("a b")) + len(run.tokenizers.target.encode("c defg"))
    for value, units in zip(found[:3], (pieces + 2, 4 + 2, 3 + 6 + 2), strict=True):
        assert value == round(math.exp(9 / units), 4)
    assert found.lines == 2


def test_infinite_perplexities_and_nan_weights(untrained: Callable[..., LoadedRun]) -> None:
    run = untrained("model=luong")
    found = perplexity([-1500.0], run, ["a"])
    assert found.word == math.inf
    assert found.record() == {"piece": None, "word": None, "character": None, "lines": 1}
    assert perplexity([], run, []).record() == {"piece": None, "word": None, "character": None, "lines": 0}
    next(run.model.parameters()).data.fill_(math.nan)
    with pytest.raises(CheckFailed, match="log-probability of line 1 is NaN: check the model's weights"):
        log_probs([run], ["a"], ["a"])


def test_lines_that_are_too_long_have_no_score(
    untrained: Callable[..., LoadedRun], caplog: pytest.LogCaptureFixture
) -> None:
    run = untrained("model=luong", "scorer=location", "scorer.max_length=5")
    with caplog.at_level(logging.WARNING):
        found = log_probs([run], ["a", LINES[0]], ["a", "a"])
    assert [math.isnan(value) for value in found] == [False, True]
    assert "1 lines have no log-probability because they are too long for the model; the first is line 2" in caplog.text
    assert perplexity(found, run, ["a", "a"]) == perplexity(found[:1], run, ["a"])
    assert perplexity(found, run, ["a", "a"]).lines == 1
    with pytest.raises(Mistake, match="2 sources but 1 targets: each source needs one target"):
        log_probs([run], ["a", "b"], ["a"])


def test_a_line_that_fills_the_memory_is_named(
    untrained: Callable[..., LoadedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 22500600004 bytes.")

    monkeypatch.setattr("nmt.runs.forced_batches.piece_log_probs", full)
    expected = "longest line, line 2, has 3 pieces: shorten that line, or lower batch_tokens"
    with pytest.raises(CheckFailed, match=expected):
        log_probs_of_ids([untrained()], [[4], [5, 6]], [[4], [5, 6, 7]], batch_tokens=100)


@pytest.mark.parametrize("maps", ["attention", "attribution"])
def test_maps_that_fill_the_memory_are_a_sentence(
    untrained: Callable[..., LoadedRun], monkeypatch: pytest.MonkeyPatch, maps: str
) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    run, pairs = untrained(), [IdPair(1, 1, [4, 5], [5]), IdPair(2, 1, [6], [7])]
    monkeypatch.setattr(type(run.model), "forward", full)
    found = forced_maps(run, pairs, 100) if maps == "attention" else attribution_maps(run, pairs, 100, full)
    with pytest.raises(
        CheckFailed, match=r"^Out of memory while .* a batch of 2 pairs of up to \d pieces: lower batch_"
    ):
        next(found)
