"""The table at the end of a sweep, and what becomes of jobs that are refused."""

from pathlib import Path

import pytest

from nmt.run.rundir import RunDirectory
from nmt.run.sweep import exit_codes, record_job, sweep_table

METRICS = {
    "finished": True,
    "parameters": 12345,
    "target_tokens": 66000,
    "target_tokens_per_second": 1100,
    "scores": {"test": [{"name": "BLEU", "value": 17.5}, {"name": "chrF2", "value": 31.25}]},
}
CONFIG = {"model": {"dim": 5}, "search": {"beam_size": 3}, "direction": "en-vi", "data": {"name": "sample"}}


def finish(folder: Path) -> None:
    run = RunDirectory(folder)
    run.write_config(CONFIG)
    run.write_metrics(METRICS)
    run.weights.touch()


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Eleven jobs, of which one was refused and one was killed."""
    for number in range(11):
        folder = tmp_path / str(number)
        error = "Unknown key 'x'." if number == 3 else ""
        record_job(folder, ["model=luong", "scorer=dot", f"seed={number}"], 2 if error else 0, error)
        if number not in (3, 7):
            finish(folder)
    return tmp_path


def test_a_job_is_a_row_with_what_differs_and_its_scores(sweep: Path) -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in sweep_table(sweep).splitlines()]
    assert rows[0] == ["job", "seed", "BLEU", "chrF2", "parameters", "target tokens/s", "minutes"]
    assert [row[1] for row in rows[2:]] == [str(number) for number in range(11)]
    assert rows[2] == ["0", "0", "17.50", "31.25", "12,345", "1,100", "1.0"]
    assert rows[5][2] == "Unknown key 'x'."
    assert rows[9][2] == "not finished"
    assert exit_codes(sweep) == [0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]


def test_the_columns_line_up(sweep: Path) -> None:
    finished = [line for line in sweep_table(sweep).splitlines() if "Unknown" not in line and "not fin" not in line]
    assert len({tuple(i for i, letter in enumerate(line) if letter == "|") for line in finished}) == 1


def table_of(output: str, jobs: int) -> list[dict[str, str]]:
    """The rows of the table that ends the output, by column."""
    header, _, *lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines()[-jobs - 2 :]]
    return [dict(zip(header, line, strict=True)) for line in lines]


def test_a_sweep_ends_in_its_table(command, tiny) -> None:
    overrides = [item for item in tiny(trainer__max_steps=3) if not item.startswith("run_dir=")]
    ended = command("train", "-m", *overrides, "scorer=dot,additive", "model.num_heads=2,5")
    rows = table_of(ended.output, 4)
    assert ended.code == 2
    assert set(rows[0]) == {
        *("job", "scorer", "model.num_heads", "BLEU", "chrF2", "parameters", "target tokens/s", "minutes")
    }
    assert {(row["scorer"], row["model.num_heads"]) for row in rows} == {
        *(("dot", "2"), ("dot", "5"), ("additive", "2"), ("additive", "5"))
    }
    for row in rows:
        refused = "num_heads=5 does not divide the query width 12" in row["BLEU"]
        assert refused == (row["model.num_heads"] == "5")
        assert refused or float(row["BLEU"]) >= 0
    assert ended.errors.count("num_heads=5 does not divide") == 2


def test_two_jobs_at_a_time_end_in_the_same_table(command, tiny) -> None:
    """The launcher runs the jobs in processes of their own."""
    overrides = [item for item in tiny(trainer__max_steps=2) if not item.startswith("run_dir=")]
    ended = command("train", "-m", *overrides, "seed=1,2,x", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    rows = table_of(ended.output, 3)
    assert ended.code == 2
    assert [row["seed"] for row in rows] == ["1", "2", "x"]
    assert all(float(row["BLEU"]) >= 0 for row in rows[:2])
    assert rows[2]["BLEU"] == "seed must be a whole number, not 'x'."
