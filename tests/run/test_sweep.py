"""The table at the end of a sweep, and what becomes of jobs that are refused."""

from pathlib import Path

import pytest

from nmt.run.rundir import RunDirectory
from nmt.run.sweep import JobRecord, Records, sweep_table

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
def records(tmp_path: Path) -> list[JobRecord]:
    """Eleven jobs, of which one was refused and one was killed."""
    kept = Records(tmp_path / "records")
    for number in reversed(range(11)):
        begun = JobRecord(number, str(tmp_path / str(number)), ["model=luong", f"seed={number}"], 1, "not finished")
        kept.write(begun)
        if number == 3:
            kept.write(begun._replace(exit_code=2, error="Unknown key 'a|b'.\nThere are more lines."))
        elif number != 7:
            finish(tmp_path / str(number))
            kept.write(begun._replace(exit_code=0, error=""))
    return kept.read()


def test_a_job_is_a_row_with_what_differs_and_its_scores(records: list[JobRecord]) -> None:
    rows = [[cell.strip() for cell in line.split(" | ")] for line in sweep_table(records).splitlines()]
    assert rows[0] == ["| job", "seed", "BLEU", "chrF2", "parameters", "target tokens/s", "minutes |"]
    assert [row[1] for row in rows[2:]] == [str(number) for number in range(11)]
    assert rows[2] == ["| 0", "0", "17.50", "31.25", "12,345", "1,100", "1.0     |"]
    assert rows[5][2] == "Unknown key 'a\\|b'."
    assert rows[9][2] == "not finished"
    assert [record.exit_code for record in records] == [0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0]


def test_the_columns_line_up(records: list[JobRecord]) -> None:
    finished = [line for line in sweep_table(records).splitlines() if "Unknown" not in line and "not fin" not in line]
    assert len({tuple(i for i, letter in enumerate(line) if letter == "|") for line in finished}) == 1


def test_every_command_tells_when_a_job_of_its_sweep_was_refused(command) -> None:
    ended = command("explain", "-m", "model=luong", "source_length=0,3")
    assert ended.code == 2
    assert "source_length is 0" in ended.errors
    assert "cross: 1 layer" in ended.output


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
