"""The report at the end of a sweep."""

import logging
import shutil
from pathlib import Path

import pytest

from nmt.commands.sweep_report import sweep_report, varying_overrides
from nmt.config.job import JobRecord
from nmt.errors import Mistake
from nmt.files import read_json
from nmt.runs.directory import RunDirectory


@pytest.fixture
def records(tmp_path: Path) -> list[JobRecord]:
    """Eleven jobs: one was refused, the others did not finish."""
    jobs = [
        JobRecord(number, str(tmp_path / str(number)), ["model=luong", f"seed={number}"], 1, "not finished")
        for number in range(11)
    ]
    jobs[3] = jobs[3]._replace(exit_code=2, error="Unknown key 'a|b'.\nThere are more lines.")
    return jobs


def test_the_columns_are_what_differs_between_the_jobs(records: list[JobRecord]) -> None:
    numbers = [str(number) for number in range(11)]
    assert varying_overrides(records) == {"job": numbers, "seed": numbers}
    assert varying_overrides([]) == {"job": []}
    deleted = [record._replace(overrides=["~logger", *record.overrides]) for record in records]
    assert varying_overrides(deleted) == {"job": numbers, "seed": numbers}


def test_jobs_without_a_result_are_listed_with_the_reason(records: list[JobRecord]) -> None:
    lines = sweep_report(records, None, "nmt train -m seed=1,2").splitlines()
    assert lines[0] == "No job has a result:"
    assert len(lines) == 2 + 11
    assert lines[5] == "- job 3, seed 3: Unknown key 'a|b'."
    assert lines[12] == "- job 10, seed 10: not finished"


@pytest.mark.parametrize(("accelerator", "device"), [("cpu", "cpu"), ("auto", "auto")])
def test_runs_are_compared_on_the_device_on_which_they_were_scored(
    trained: Path, monkeypatch: pytest.MonkeyPatch, accelerator: str, device: str
) -> None:
    """Scores of another device would not be up to date."""
    asked = []

    def compared(path: Path, device: str, *_: object, **__: object) -> None:
        asked.append(device)
        raise Mistake("It cannot be compared.")

    monkeypatch.setattr("nmt.commands.sweep_report.run_system", compared)
    run = RunDirectory(trained)
    config = run.config()
    run.write_config({**config, "trainer": {**config["trainer"], "accelerator": accelerator}})
    sweep_report([JobRecord(0, str(trained), [], 0, "")], None, "nmt train -m seed=1,2")
    assert asked == [device]


def test_the_comparison_records_the_command_of_the_sweep(trained: Path) -> None:
    sweep_report([JobRecord(0, str(trained), [], 0, "")], None, "nmt train -m seed=1,2")
    assert read_json(trained.parent / "comparison.json")["command"] == "nmt train -m seed=1,2"


def test_the_comparison_of_nested_runs_is_in_the_folder_of_the_sweep(
    trained: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = shutil.copytree(trained, tmp_path / "sweep" / "luong" / "dot")
    with caplog.at_level(logging.INFO):
        sweep_report([JobRecord(0, str(run), [], 0, "")], tmp_path / "sweep", "nmt train -m seed=1,2")
    assert caplog.messages[-1] == f"Written to {tmp_path / 'sweep'}"
    assert [path.parent.name for path in tmp_path.rglob("comparison.json")] == ["sweep"]


def test_a_run_with_damaged_metrics_leaves_the_others_in_the_comparison(trained: Path) -> None:
    damaged = shutil.copytree(trained, trained.with_name("damaged"))
    (damaged / "metrics.json").write_text("{")
    runs = [(str(trained), "seed=1"), (str(damaged), "seed=2")]
    records = [JobRecord(number, folder, [seed], 0, "") for number, (folder, seed) in enumerate(runs)]
    lines = sweep_report(records, None, "nmt train -m seed=1,2").splitlines()
    [line] = [line for line in lines if line.startswith("- job")]
    assert line.startswith("- job 1, seed 2: not compared: ")
    assert "metrics.json is damaged" in line
