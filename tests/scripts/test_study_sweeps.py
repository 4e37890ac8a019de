"""What the studies that train share: their sweeps, threads, and how a mistake is reported."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import Mistake
from nmt.files import write_json
from nmt.runs.directory import RunDirectory
from scripts.mistakes import report_mistakes
from scripts.studies.sweep import add_circumstances, circumstances, sweep, threads_each, unfinished


def test_runs_share_the_cores_unless_their_threads_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.studies.sweep.usable_cores", lambda: 7)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [threads_each(jobs) for jobs in (1, 2, 9)] == [7, 3, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert threads_each(2) == 5


@pytest.mark.parametrize("given", ["0", "two", "²"])
def test_invalid_numbers_of_threads_are_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    with pytest.raises(Mistake, match=f"OMP_NUM_THREADS is '{given}'; it must be an integer of at least 1"):
        threads_each(2)


def test_a_mistake_is_one_sentence_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    def main(name: str) -> None:
        raise Mistake(f"{name} is wrong.")

    with pytest.raises(SystemExit) as ended:
        report_mistakes(main, "it")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: it is wrong.\n"


def test_a_bug_has_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> None:
        {}["key"]

    with pytest.raises(SystemExit) as ended:
        report_mistakes(main)
    assert ended.value.code == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.soak
def test_a_run_of_a_sweep_is_kept_and_a_failure_has_its_reason(
    corpus: Path,
    tiny: Callable[..., list[str]],
    start: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def forked(arguments: list[str], **given: Any) -> subprocess.CompletedProcess[bytes]:
        """Stands for subprocess.run: `python -m` without importing everything, and this process's standard error."""
        python, option, name, *overrides = arguments
        assert (python, option, given["stdout"]) == (sys.executable, "-m", subprocess.DEVNULL)
        process = start(name.removeprefix("nmt."), *overrides, variables=given["env"])
        print(process.communicate()[1], file=sys.stderr)
        return subprocess.CompletedProcess(arguments, process.wait())

    monkeypatch.setattr("scripts.studies.sweep.subprocess.run", forked)
    monkeypatch.chdir(corpus)
    overrides = [item for item in tiny(trainer__max_steps=1) if not item.startswith("run_dir=")]
    sweep("nmt.train", Path("out"), "run_${seed}", overrides, threads=1)
    assert (RunDirectory(Path("out/run_1")).finished, unfinished(Path("out/run_1"))) == (True, "")
    assert unfinished(Path("out/run_2")) == "not started"
    capfd.readouterr()
    with pytest.raises(
        Mistake, match=r"refused the overrides, see above\. If out has other runs, choose another --out"
    ):
        sweep("nmt.train", Path("out"), "run_${seed}", [*overrides, "model.dim=14"], threads=1)
    assert "model.dim is 14, but 12 in the run to resume" in capfd.readouterr().err


def test_a_refused_combination_does_not_end_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sweep_with(exit_codes: dict[str, int]) -> None:
        def run(*_: Any, **__: Any) -> subprocess.CompletedProcess[bytes]:
            for scorer, code in exit_codes.items():
                record = {"exit_code": code, "error": "refused" if code else ""}
                write_json(tmp_path / "jobs" / scorer / "record.json", record)
            return subprocess.CompletedProcess([], 2)

        monkeypatch.setattr("scripts.studies.sweep.subprocess.run", run)
        sweep("nmt.train", tmp_path, "${hydra:runtime.choices.scorer}", ["scorer=dot,additive"], threads=1)

    sweep_with({"dot": 2, "additive": 0})
    assert unfinished(tmp_path / "dot") == "refused"
    for all_refused_or_one_unwritten in ({"dot": 2, "additive": 2}, {"dot": 0}):
        with pytest.raises(Mistake, match="refused the overrides, see above"):
            sweep_with(all_refused_or_one_unwritten)


def test_circumstances_are_added_once(tmp_path: Path) -> None:
    for jobs in (1, 1, 2):
        add_circumstances(tmp_path, "results", ["--out", "a b"], jobs)
    assert [made["jobs"] for made in circumstances(tmp_path)] == [1, 2]
    assert circumstances(tmp_path)[0]["command"] == "python -m scripts.studies.results --out 'a b'"
