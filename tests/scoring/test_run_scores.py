"""Stored scores are believed as far as they can be checked."""

import contextlib
import json
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.runs.engine import Engine
from nmt.runs.load import LoadedRun, load_run
from nmt.scoring.run_scores import TranslationOptions, conditions, score_runs, stored_scores
from nmt.scoring.test_sets import TestSet, own_test_set, split_test_set

Change = Callable[[Path, dict[str, Any]], dict[str, Any] | str]


@pytest.fixture(scope="module")
def evaluated_once(finished: str, session_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus with the run, which was evaluated on its validation split."""
    folder = shutil.copytree(session_corpus, tmp_path_factory.mktemp("evaluated") / "copy")
    with contextlib.chdir(folder):
        run = load_run(folder / "run", "cpu")
        score_runs([run], split_test_set(run, "valid"), command="python -m nmt.evaluate run_dir=run")
    return folder


@pytest.fixture
def evaluated(evaluated_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[LoadedRun, TestSet]:
    """A copy of that, entered."""
    folder = shutil.copytree(evaluated_once, tmp_path / "copy")
    monkeypatch.chdir(folder)
    run = load_run(folder / "run", "cpu")
    return run, split_test_set(run, "valid")


def better(record: dict[str, Any]) -> dict[str, Any]:
    bleu, *others = record["scores"]
    return {**record, "scores": [{**bleu, "value": 99.99}, *others]}


def translated(content: bytes) -> Change:
    """Replaces the translations."""

    def change(folder: Path, record: dict[str, Any]) -> dict[str, Any]:
        (folder / "hypotheses.txt").write_bytes(content)
        return record

    return change


def test_the_record_says_what_was_scored_by_which_command(evaluated: tuple[LoadedRun, TestSet]) -> None:
    run, test_set = evaluated
    prefix, sides = run.settings.data.valid, (run.direction.source, run.direction.target)
    source, reference = (f"{prefix}.{side}" for side in sides)
    record = json.loads((test_set.out / "scores.json").read_text(encoding="utf-8"))
    assert record["command"] == "python -m nmt.evaluate run_dir=run"
    assert record["test_set"] == {"split": "valid", "source": source, "references": [reference]}
    own = own_test_set(run, source, [reference])
    assert own.origin == {"split": None, "source": source, "references": [reference]}


def test_scores_are_used_if_nothing_has_changed(
    evaluated: tuple[LoadedRun, TestSet], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        stored = stored_scores(*evaluated)
    assert stored is not None
    assert len(stored[0]) == 7
    assert "run was not translated again: BLEU and chrF2 are those of the translations in " in caplog.text


def test_without_a_seed_intervals_are_not_compared(
    evaluated: tuple[LoadedRun, TestSet], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "none")
    run, test_set = evaluated
    file = test_set.out / "scores.json"
    record = json.loads(file.read_text()) | {"made_with": conditions([run], test_set)["made_with"]}
    file.write_text(json.dumps(record))
    assert stored_scores(run, test_set) is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _, record: better(record), r"scores\.json does not have the BLEU of .*hypotheses\.txt, which is"),
        (translated(b"one\n"), r"hypotheses\.txt has 1 lines, but the test set has 7\."),
        (translated(b"\xff\n" * 7), r"hypotheses\.txt, line 1 is not UTF-8"),
        (translated("một hai ba.\n".encode() * 7), r"scores\.json does not have the BLEU of"),
        (lambda _, record: "[]", r"scores\.json is damaged or no file of nmt: it is not a JSON object"),
        (lambda _, record: "{", r"scores\.json is damaged: it is not JSON"),
        (lambda _, record: {**record, "scores": []}, r"scores\.json is damaged or no file of nmt: scores"),
        (
            lambda _, record: {**record, "scores": [{**record["scores"][0], "value": "99.99"}]},
            r"no file of nmt: scores\.0\.value must be a number",
        ),
        (lambda _, record: {**record, "aer": {"value": "0"}}, r"no file of nmt: aer\.value must be a number"),
        (lambda _, record: {**record, "perplexity": 3}, r"no file of nmt: perplexity must be an object"),
    ],
)
def test_scores_that_were_changed_are_not_used(
    evaluated: tuple[LoadedRun, TestSet], caplog: pytest.LogCaptureFixture, change: Change, message: str
) -> None:
    run, test_set = evaluated
    file = test_set.out / "scores.json"
    record = change(test_set.out, json.loads(file.read_text(encoding="utf-8")))
    file.write_text(record if isinstance(record, str) else json.dumps(record), encoding="utf-8")
    assert stored_scores(run, test_set) is None
    [warning] = [entry.getMessage() for entry in caplog.records if "stored scores are not used" in entry.getMessage()]
    assert str(test_set.out) in warning
    assert re.search(message, warning), warning


CHANGED: dict[str, Any] = {
    "search": {"beam_size": 7},
    "batch_tokens": 17,
    "max_source_tokens": 9,
    "minimum_bayes_risk": True,
    "engine": Engine("other", "float32", "cpu", None, None, print, print),  # type: ignore[arg-type]
    "verbatim": True,
}


@pytest.mark.unchecked  # an engine without functions
@pytest.mark.parametrize("name", TranslationOptions._fields)
def test_every_option_of_the_translation_is_among_the_conditions(
    evaluated: tuple[LoadedRun, TestSet], name: str
) -> None:
    run, test_set = evaluated
    changed = conditions([run], test_set, TranslationOptions(**{name: CHANGED[name]}))
    assert changed["made_with"] != conditions([run], test_set)["made_with"]
