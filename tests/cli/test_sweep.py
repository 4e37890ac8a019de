"""The jobs of a sweep, the table at its end, and a sweep that is stopped and run again."""

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from forked import Forked, joblib_forks, module, with_launcher
from grids import SOAK
from safetensors.torch import load_file

from nmt.cli.sweep import _records_in, job_name

LAUNCHERS = Path(__file__).resolve().parents[1] / "launchers"
MACHINES = "hydra_plugins.machines:MachinesLauncher"
Command = Callable[..., Any]
Start = Callable[..., Any]


def test_every_command_reports_a_refused_job_of_its_sweep(command, corpus) -> None:
    before = sorted(corpus.iterdir())
    ended = command("explain", "-m", "model=luong", "source_length=0,3")
    assert sorted(corpus.iterdir()) == before
    assert ended.code == 2
    assert "source_length is 0" in ended.errors
    assert "cross: 1 layer" in ended.output


def table_of(output: str) -> list[dict[str, str]]:
    """The rows of the first table in the output, by column."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines() if line.startswith("|")]
    header = lines[0]
    rows = lines[2 : next((n for n, line in enumerate(lines) if n and line[0] in ("scorer", "seeds")), len(lines))]
    return [dict(zip(header, line, strict=True)) for line in rows]


def test_a_sweep_ends_in_its_table(command, tiny, corpus) -> None:
    overrides = [item for item in tiny(trainer__max_steps=3) if not item.startswith("run_dir=")]
    ended = command("train", "-m", *overrides, "scorer=dot,additive", "model.num_heads=2,5")
    rows = table_of(ended.output)
    assert ended.code == 2
    assert {"job", "scorer", "model.num_heads", "BLEU", "p", "chrF2", "TER", "parameters", "tokens/s"} <= set(rows[0])
    assert {(row["scorer"], row["model.num_heads"]) for row in rows} == {("dot", "2"), ("additive", "2")}
    assert all(float(row["BLEU"].split()[0]) >= 0 for row in rows)
    refused = [
        line for line in ended.output.splitlines() if "model.num_heads=5 does not divide the query width 12" in line
    ]
    assert [line.split(":")[0] for line in refused] == [
        "- job 2, model.num_heads 5, scorer dot",
        "- job 3, model.num_heads 5, scorer additive",
    ]
    assert ended.errors.count("model.num_heads=5 does not divide") == 2
    assert list(corpus.glob("runs/sweeps/*/comparison.csv"))


def test_the_records_of_a_sweep_are_in_its_folder(start: Start, tiny: Callable[..., list[str]], corpus: Path) -> None:
    """A job on another machine does not see the folder for temporary files of the command that started it."""
    overrides = [item for item in tiny(trainer__max_steps=1) if not item.startswith("run_dir=")]
    process = start("train", "-m", *overrides, "seed=1,x", dies=("nmt.cli.sweep:report", 1))
    process.communicate()
    records = [json.loads(file.read_text()) for file in corpus.glob("runs/sweeps/*/.records.*/*.json")]
    assert sorted((record["number"], record["exit_code"], record["error"]) for record in records) == [
        (0, 0, ""),
        (1, 1, "not finished"),
    ]


def test_the_records_of_killed_sweeps_are_deleted_and_those_of_running_ones_are_not(tmp_path: Path) -> None:
    abandoned = tmp_path / ".records.killed.part"
    abandoned.mkdir()
    (abandoned / "0.json").touch()
    (tmp_path / ".of_others.part").touch()
    with _records_in(tmp_path) as running, _records_in(tmp_path) as another:
        assert sorted(tmp_path.iterdir()) == sorted([running, another, tmp_path / ".of_others.part"])
    assert [path.name for path in tmp_path.iterdir()] == [".of_others.part"]


def test_a_refused_sweep_leaves_no_folder(command: Command, corpus: Path) -> None:
    before = sorted(corpus.rglob("*"))
    ended = command("train", "-m", "seed=1,2", "hydra/launcher=nothing")
    assert ended.code == 2, ended.errors
    assert sorted(corpus.rglob("*")) == before


def without_times(output: str) -> list[dict[str, str]]:
    """The rows of the table, except what depends on the machine."""
    return [{key: row[key] for key in row if not key.endswith("/s")} for row in table_of(output)]


@pytest.fixture
def sweep(tiny: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """The arguments of a sweep in a folder."""

    def arguments(sweep_dir: str, *more: str, **changes: object) -> list[str]:
        steps = {"trainer__max_steps": 1, "trainer__log_every_n_steps": 1, **changes}
        overrides = [item for item in tiny(**steps) if not item.startswith("run_dir=")]
        return ["-m", *overrides, f"sweep_dir={sweep_dir}", *more]

    return arguments


def weights_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The weights of every run in a sweep's folder, as plain numbers, by the last override of its job."""
    records = [json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("jobs/*/record.json")]
    runs = {one["overrides"][-1]: load_file(Path(one["folder"]) / "model.safetensors") for one in records}
    return {job: {name: weight.tolist() for name, weight in weights.items()} for job, weights in runs.items()}


def test_a_killed_job_is_resumed_and_more_values_add_jobs(
    command: Command, start: Start, sweep: Callable[..., list[str]], corpus: Path
) -> None:
    steps = {"trainer__max_steps": 2, "validation__every": 1}
    finished = command("train", *sweep("runs/thử #1", "scorer=general", **steps))
    assert finished.code == 0, finished.errors
    killed = start("train", *sweep("runs/thử #1", "scorer=dot", **steps), sent=(signal.SIGKILL, 2))
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    more = command("train", *sweep("runs/thử #1", "scorer=general,dot", **steps))
    assert (more.code, more.errors.count("resumed from last.ckpt")) == (0, 1), more.errors
    assert more.errors.count("Kept the finished run") == 1
    assert [row["scorer"] for row in table_of(more.output)] == ["general", "dot"]
    folders = {path.name for path in (corpus / "runs" / "thử #1").iterdir() if path.is_dir()}
    assert {path.name for path in (corpus / "runs" / "thử #1" / "jobs").iterdir()} == folders - {"jobs"}


@pytest.mark.soak
def test_a_killed_sweep_ends_like_one_that_was_not_stopped(
    command: Command, start: Start, sweep: Callable[..., list[str]], corpus: Path
) -> None:
    """Killed in the middle of its second job; then more values add jobs to it."""
    steps = {"trainer__max_steps": 5, "validation__every": 2}
    whole = command("train", *sweep("whole", "scorer=dot,general", **steps))
    assert whole.code == 0, whole.errors
    process = start("train", *sweep("runs/thử #1", "scorer=dot,general", **steps))
    assert process.stderr is not None
    lines = (line for line in process.stderr if line.startswith("step 3/"))
    next(lines), next(lines)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL

    again = command("train", *sweep("runs/thử #1", "scorer=dot,general", **steps))
    assert again.code == 0, again.errors
    assert again.errors.count("Kept the finished run in runs/thử #1/") == 1
    assert again.errors.count("resumed from last.ckpt") == 1
    assert without_times(again.output) == without_times(whole.output)
    assert weights_of(corpus / "runs" / "thử #1") == weights_of(corpus / "whole")
    assert len(weights_of(corpus / "whole")) == 2

    more = command("train", *sweep("runs/thử #1", "scorer=location,dot,general", **steps))
    assert (more.code, more.errors.count("Kept the finished run in runs/thử #1/")) == (0, 2)
    assert [row["scorer"] for row in table_of(more.output)] == ["location", "dot", "general"]


def test_every_process_of_a_distributed_job_keeps_a_finished_run(
    start: Start, command: Command, sweep: Callable[..., list[str]], corpus: Path
) -> None:
    """Only the leader prints the table and writes the record."""
    first = command("train", *sweep("s"))
    assert first.code == 0, first.errors
    (record,) = corpus.glob("s/jobs/*/record.json")
    written = record.stat().st_mtime_ns
    for variables in [{"RANK": "1", "LOCAL_RANK": "1"}, {"SLURM_PROCID": "1"}][: 2 if SOAK else 1]:
        process = start("train", *sweep("s"), variables=variables)
        output, errors = process.communicate()
        assert (process.returncode, output) == (0, ""), errors
        assert "Kept the finished run in s/" in errors
        assert record.stat().st_mtime_ns == written


def test_a_failed_job_runs_again(command: Command, sweep: Callable[..., list[str]], corpus: Path) -> None:
    """The exit code of the sweep is that of its jobs."""
    (corpus / "valid.vi").rename(corpus / "elsewhere")
    ended = command("train", *sweep("s"))
    assert (ended.code, "valid.vi" in ended.output) == (2, True)
    (corpus / "elsewhere").rename(corpus / "valid.vi")
    ended = command("train", *sweep("s"))
    assert (ended.code, len(table_of(ended.output))) == (0, 1)


def test_a_setting_that_contradicts_a_stored_job_is_refused(command: Command, sweep: Callable[..., list[str]]) -> None:
    """Only if the command names the folders itself: a folder named after its overrides belongs to them alone."""
    named = "hydra.sweep.subdir=mine"
    first = command("train", *sweep("s", named))
    assert first.code == 0, first.errors
    refused = command("train", *sweep("s", named, seed=2))
    assert (refused.code, "seed is 2, but 1 in the run to resume" in refused.errors) == (2, True)
    if SOAK:
        kept = command("train", *sweep("s", named))
        assert (kept.code, "Kept the finished run in s/mine" in kept.errors) == (0, True)
    longer = command("train", *sweep("s", named, trainer__max_steps=2))
    assert (longer.code, "resumed from last.ckpt" in longer.errors) == (0, True)


def test_two_processes_share_a_sweep(start: Start, sweep: Callable[..., list[str]]) -> None:
    processes = [start("train", *sweep("s", trainer__max_steps=5)) for _ in range(2)]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sum(errors.count("Kept the finished run in s/") for _, errors in outputs) == 1
    tables = [table_of(output) for output, _ in outputs]
    assert tables[0] == tables[1]


@pytest.mark.soak
def test_two_jobs_at_a_time_continue_a_sweep_and_end_in_the_same_table(
    command: Command, sweep: Callable[..., list[str]], corpus: Path
) -> None:
    """The launcher runs the jobs in processes of their own; tests/soak/sweeps.py has it start these by itself."""
    command("train", *sweep("s", "seed=1"))
    [kept] = corpus.glob("s/*/model.safetensors")
    before = kept.read_bytes(), kept.stat().st_mtime_ns
    parallel = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    program = partial(joblib_forks, partial(module, "nmt.train"))
    process = Forked(program, ["nmt.train", *sweep("s", *parallel, "seed=1,2,x")], corpus, None)
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 2, errors
    process.close()
    rows = table_of(output)
    assert [row["seed"] for row in rows] == ["1", "2"]
    assert all(float(row["BLEU"].split()[0]) >= 0 for row in rows)
    assert "- job 2, seed x: seed " in output
    assert errors.count("Kept the finished run in s/") == 1
    assert errors.count("Training ended at step 1") == 1  # the log lines of a job are not lost
    assert "Mean ± standard deviation over seeds" in output
    assert (kept.read_bytes(), kept.stat().st_mtime_ns) == before


@pytest.mark.soak
def test_a_sweep_goes_on_after_a_machine_of_it_was_lost(sweep: Callable[..., list[str]], corpus: Path) -> None:
    """Four jobs, of which two fail: lost ones are named and end with 1, and the same command runs them."""

    def ended(*more: str) -> tuple[int | None, list[dict[str, str]], str]:
        values = ["scorer=dot,general", "model.num_heads=2,5", "hydra/launcher=machines", *more]
        program = partial(with_launcher, str(LAUNCHERS), MACHINES, partial(module, "nmt.train"))
        process = Forked(program, ["nmt.train", *sweep("s", *values)], corpus, None)
        try:
            output, errors = process.communicate()
            assert output, errors
            return process.returncode, without_times(output), output + errors
        finally:
            process.close()

    code, rows, text = ended("hydra.launcher.lost=1")
    assert (code, len(rows)) == (1, 1), text
    assert text.count("Job 1 (") == 1
    assert "left no record in " in text
    code, again, text = ended()
    assert (code, len(again), text.count("Kept the finished run in s/")) == (2, 2, 1), text
    assert [{key: row[key] for key in rows[0]} for row in again if row["job"] != "1"] == rows  # one has no p
    assert text.count("- job ") == 2


def test_a_sweep_of_pretraining_can_be_run_again(command: Command) -> None:
    arguments = [
        "-m",
        "data.train=[train.en]",
        "data.valid_lines=9",
        "tokenizer.size=290",
        "model.dim=8",
        "sweep_dir=s",
    ]
    arguments += ["model.ffn_dim=8", "model.num_layers=1", "model.num_heads=2", "trainer.max_steps=2"]
    first = command("pretrain", *arguments, "trainer.accelerator=cpu")
    assert (first.code, first.output.count("valid loss")) == (0, 1), first.errors
    again = command("pretrain", *arguments, "trainer.accelerator=cpu")
    assert (again.code, again.output, again.errors.count("Kept the finished run in s/")) == (0, "", 1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["sweep_dir=s"], "sweep_dir is only for a sweep: add -m, or write run_dir= for a single run."),
        (
            ["-m", "sweep_dir=a,b"],
            "sweep_dir must be one folder for the whole sweep; quote its name if it has a comma.",
        ),
        (["-m", "sweep_dir=[]", "seed=1,2"], "sweep_dir must be one folder for the whole sweep; quote its name if it"),
        (
            ["-m", "seed=1,2", "run_dir=runs/mine"],
            "'run_dir=runs/mine' has no effect in a sweep, where each job has its own folder in sweep_dir: write",
        ),
        (
            ["-m", "seed=1,2", "run_dir=runs/mine", "sweep_dir=s"],
            "'run_dir=runs/mine' has no effect in a sweep, where each job has its own folder in sweep_dir: leave it",
        ),
        (["-m", "sweep_dir=train.en", "seed=1,2"], "sweep_dir is train.en, but train.en is a file; choose another"),
        (
            ["-m", "hydra.sweep.dir=train.en/a", "seed=1,2"],
            "hydra.sweep.dir is train.en/a, but train.en is a file; choose another folder.",
        ),
    ],
)
def test_a_folder_that_cannot_be_a_sweep_is_a_mistake(command: Command, arguments: list[str], sentence: str) -> None:
    ended = command("train", *arguments)
    assert (ended.code, ended.output) == (2, "")
    assert ended.errors.startswith(f"error: {sentence}")


def test_a_command_without_runs_takes_no_folder_for_a_sweep(command: Command) -> None:
    ended = command("prepare", "-m", "seed=1,2", "sweep_dir=s")
    expected = "error: nmt.prepare writes no runs that sweep_dir could resume; leave out sweep_dir=s.\n"
    assert (ended.code, ended.output, ended.errors) == (2, "", expected)
    ended = command("prepare", "-m", "seed=1,2", "hydra.sweep.dir=train.en")
    expected = "error: hydra.sweep.dir is train.en, but train.en is a file; choose another folder.\n"
    assert (ended.code, ended.output, ended.errors) == (2, "", expected)


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (["scorer=dot", "model=luong", "sweep_dir=s"], "model=luong,scorer=dot"),
        (["sweep_dir=s"], "defaults"),
        (["scorer@cross=dot", "+data.news=a"], "+data.news=a,scorer@cross=dot"),
    ],
)
def test_a_job_s_folder_is_named_after_its_overrides(overrides: list[str], name: str) -> None:
    assert job_name(overrides) == name


def test_a_name_that_no_folder_may_have_is_shortened_and_stays_different() -> None:
    overrides = [[f"data.train=[{folder}/train]"] for folder in ("a", "a_", "b" * 300)]
    names = [job_name(one) for one in overrides]
    assert len(set(names)) == 3
    assert all("/" not in name and len(name) <= 109 for name in names)
    assert len(job_name([f"data.train=[{'ữ' * 300}]"]).encode()) <= 109


def test_sweeps_that_start_in_the_same_second_have_folders_of_their_own(tmp_path: Path) -> None:
    chosen = tmp_path / "sweeps" / "12-00-00"
    with _records_in(chosen, new=True) as one, _records_in(chosen, new=True) as other:
        assert (one.parent, other.parent) == (chosen, chosen.with_name("12-00-00_2"))
        (one.parent / "multirun.yaml").touch()
    assert [*chosen.parent.iterdir()] == [chosen]
