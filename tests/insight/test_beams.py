"""A watched beam search finds what the unwatched one finds, and shows how."""

from pathlib import Path

import pytest
import torch

from nmt.decoding.id_search import Hypothesis
from nmt.errors import Mistake
from nmt.insight.beams import Beam, watched_search
from nmt.runs.forced_batches import log_probs_of_ids
from nmt.runs.load import LoadedRun, load_run
from nmt.runs.search import build_translator


@pytest.fixture
def trained(run: str) -> LoadedRun:
    return load_run(Path(run), "cpu")


@pytest.fixture
def source(trained: LoadedRun) -> list[int]:
    return trained.tokenizers.source.encode("one two three .")


SETTINGS = {"beam_size": 3, "n_best": 3}


def watched(trained: LoadedRun, source: list[int], **given: object) -> tuple[list[Hypothesis], list[list[Beam]]]:
    steps: list[list[Beam]] = []
    return watched_search(trained, source, steps.append, **given), steps


def test_it_finds_what_the_unwatched_search_finds(trained: LoadedRun, source: list[int]) -> None:
    found, _ = watched(trained, source, settings=SETTINGS)
    assert found == build_translator([trained], SETTINGS).search_ids([source])[0]


def test_each_step_extends_hypotheses_of_the_step_before(trained: LoadedRun, source: list[int]) -> None:
    found, steps = watched(trained, source, settings=SETTINGS)
    before: list[list[int]] = [[]]
    for number, beams in enumerate(steps, start=1):
        assert 0 < len(beams) <= 3
        assert all(len(beam.ids) == number and beam.ids[:-1] in before for beam in beams)
        assert [beam.log_prob for beam in beams] == sorted((beam.log_prob for beam in beams), reverse=True)
        before = [beam.ids for beam in beams]
    paths = [beam.ids for beams in steps for beam in beams]
    assert all(hypothesis.ids in [[], *paths] for hypothesis in found)


def test_the_log_probabilities_never_increase_and_bound_the_finished_ones(
    trained: LoadedRun, source: list[int]
) -> None:
    found, steps = watched(trained, source, settings=SETTINGS)
    values = {tuple(beam.ids): beam.log_prob for beams in steps for beam in beams}
    for ids, value in values.items():
        assert value <= values.get(ids[:-1], 0.0)
    for hypothesis in found:
        assert hypothesis.log_prob <= values.get(tuple(hypothesis.ids), 0.0)


def test_the_log_probability_of_a_finished_hypothesis_is_that_of_forced_decoding(
    trained: LoadedRun, source: list[int]
) -> None:
    trained = trained._replace(model=trained.model.double())
    vocabulary = trained.tokenizers.target.size
    found, _ = watched(trained, source, settings=SETTINGS)
    for hypothesis in found:
        [forced] = log_probs_of_ids([trained], [source], [hypothesis.ids], 100)
        # The float64 logits, below 32, are equal. On both sides float32 rounds each logit, the logarithm of a sum over
        # the vocabulary and their difference; a search also rounds each sum of log-probabilities.
        piece = (2 * (3 * 32 + vocabulary / 2) + abs(forced) / 2) * torch.finfo(torch.float32).eps
        assert hypothesis.log_prob == pytest.approx(forced, rel=0, abs=piece * (len(hypothesis.ids) + 1))


def test_an_exception_of_the_watcher_ends_the_search(trained: LoadedRun, source: list[int]) -> None:
    def leave(beams: list[Beam]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watched_search(trained, source, leave)


def test_a_prefix_is_in_every_step(trained: LoadedRun, source: list[int]) -> None:
    prefix = trained.tokenizers.target.encode("hai ba")
    _, steps = watched(trained, source, prefix=prefix)
    assert all(beam.ids == prefix[: len(beam.ids)] for beams in steps[: len(prefix)] for beam in beams)


def test_what_cannot_be_searched_is_refused(trained: LoadedRun) -> None:
    with pytest.raises(Mistake, match="The source is empty; write a sentence"):
        watched(trained, [])
