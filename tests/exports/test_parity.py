"""The comparison of an exported model with its run, and what happens if they differ."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.config.nodes import Node, make
from nmt.decoding.beam import BeamSearch
from nmt.errors import CheckFailed, Mistake
from nmt.exports.parity import BOUNDS, Parity, compare, comparison_search, stepwise_log_probs
from nmt.runs.engine import named_search, search_config
from nmt.runs.forced_batches import log_probs_of_ids
from nmt.runs.load import LoadedRun, load_run
from nmt.runs.search import build_translator

SOURCES, REFERENCES = ["one two.", "three", "four five six."], ["một hai.", "ba", "bốn năm sáu."]


@pytest.fixture
def trained(folder: Path) -> LoadedRun:
    return load_run(folder / "maps_luong", "cpu")


class Changed:
    """The run itself, with one log-probability lowered and one translation changed."""

    max_source: int | None = None
    max_target: int | None = None

    def __init__(self, trained: LoadedRun, by: float, line: int | None = None) -> None:
        self.trained, self.by, self.line = trained, by, line

    def forced_log_probs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        found = stepwise_log_probs(self.trained.model, sources, targets)
        found[1][0] -= self.by
        return found

    def translate(self, lines: Sequence[str]) -> list[str]:
        found = build_translator([self.trained]).translate(lines)
        return [f"{line}!" if number == self.line else line for number, line in enumerate(found)]


def test_steps_of_a_search_give_the_log_probabilities_of_forced_decoding(trained: LoadedRun) -> None:
    source, target = (tokenizer.encode_all(SOURCES) for tokenizer in trained.tokenizers)
    found = stepwise_log_probs(trained.model, source, target)
    assert [len(row) for row in found] == [len(ids) + 1 for ids in target]
    # At most 40 pieces of log-probabilities near -6, each rounded some ten times.
    expected = pytest.approx(log_probs_of_ids([trained], source, target, 1000), abs=40 * 6 * 10 * 2**-24)
    assert [sum(row) for row in found] == expected


def test_a_model_is_equal_to_itself(trained: LoadedRun) -> None:
    found = compare(trained, Changed(trained, 0.0), SOURCES, REFERENCES)
    assert found.sentences == 3
    assert found.pieces == sum(len(ids) + 1 for ids in trained.tokenizers.target.encode_all(REFERENCES))
    assert found.largest_difference < 1e-4
    assert found.equal_translations == 1.0
    found.check("float32")


def test_differences_are_counted(trained: LoadedRun) -> None:
    found = compare(trained, Changed(trained, 0.5, line=2), SOURCES, REFERENCES)
    assert found.largest_difference == pytest.approx(0.5, abs=1e-4)
    assert found.mean_difference == pytest.approx(0.5 / found.pieces, abs=1e-5)
    assert found.equal_translations == pytest.approx(2 / 3)
    assert "66.7% of the translations are equal" in str(found)


@pytest.mark.parametrize("quantization", BOUNDS)
def test_a_model_that_differs_is_refused(quantization: str) -> None:
    bound = BOUNDS[quantization]
    largest, mean = (bound, 0.0) if quantization == "float32" else (9.0, bound)
    equal = Parity(200, 4000, largest, mean, 0.9)
    equal.check(quantization)
    different = equal._replace(largest_difference=largest * 1.01, mean_difference=mean * 1.01)
    with pytest.raises(CheckFailed, match=f"The exported model does not match the run.*{quantization} allows"):
        different.check(quantization)


@pytest.mark.parametrize("by", [float("nan"), float("inf")])
@pytest.mark.parametrize("quantization", BOUNDS)
def test_a_model_that_computes_nan_is_refused(trained: LoadedRun, by: float, quantization: str) -> None:
    with pytest.raises(CheckFailed, match=r"exported model or the run computes NaN or infinity\. Nothing was written"):
        compare(trained, Changed(trained, by), SOURCES, REFERENCES).check(quantization)


@pytest.mark.parametrize("side", ["max_source", "max_target"])
def test_pairs_too_long_for_the_export_are_left_out(trained: LoadedRun, side: str) -> None:
    tokenizer, lines = {
        "max_source": (trained.tokenizers.source, SOURCES),
        "max_target": (trained.tokenizers.target, REFERENCES),
    }[side]
    limit = 1 + max(len(ids) for ids in tokenizer.encode_all(lines[:2]))
    assert len(tokenizer.encode(lines[2])) + 1 > limit
    changed = Changed(trained, 0.0)
    setattr(changed, side, limit)
    assert compare(trained, changed, SOURCES, REFERENCES).sentences == 2


@pytest.mark.parametrize("stored", [{"coverage_penalty": 0.2}, named_search("sampling")])
def test_every_format_has_the_search_of_the_comparison(trained: LoadedRun, stored: Node) -> None:
    search = search_config(trained.settings.search, stored)
    search["constraints"] = {**search["constraints"], "max_length_offset": 3}
    other = trained._replace(settings=trained.settings.model_copy(update={"search": search}))
    found = make(search_config(search, comparison_search(other)))
    assert isinstance(found, BeamSearch)
    assert found.coverage_penalty == 0
    assert found.constraints.max_length_offset == 3


def test_there_must_be_pairs(trained: LoadedRun) -> None:
    with pytest.raises(Mistake, match=r"no sentence pair to compare.*give source=FILE reference=FILE"):
        compare(trained, Changed(trained, 0.0), [], [])
