"""The jobs of a sweep, and the table at its end."""

from pathlib import Path

import pytest

from nmt.cli.sweep import Records, settings
from nmt.commands.sweep_report import sweep_report
from nmt.config.job import JobRecord


@pytest.fixture
def records(tmp_path: Path) -> list[JobRecord]:
    """Eleven jobs, of which one was refused and the others were killed, written in another order."""
    kept = Records(tmp_path / "records")
    for number in reversed(range(11)):
        begun = JobRecord(number, str(tmp_path / str(number)), ["model=luong", f"seed={number}"], 1, "not finished")
        kept.write(begun)
        if number == 3:
            kept.write(begun._replace(exit_code=2, error="Unknown key 'a|b'.\nThere are more lines."))
    return kept.read()


def test_settings_are_what_differs_between_the_jobs(records: list[JobRecord]) -> None:
    numbers = [str(number) for number in range(11)]
    assert settings(records) == {"job": numbers, "seed": numbers}
    assert settings([]) == {"job": []}
    deleted = [record._replace(overrides=["~logger", *record.overrides]) for record in records]
    assert settings(deleted) == {"job": numbers, "seed": numbers}


def test_jobs_without_a_run_are_rows_that_say_why(records: list[JobRecord]) -> None:
    rows = [[cell.strip() for cell in line.split(" | ")] for line in sweep_report(records).splitlines()]
    assert rows[0] == ["| job", "seed", "problem             |"]
    assert [row[1] for row in rows[2:]] == [str(number) for number in range(11)]
    assert rows[5][2].startswith("Unknown key 'a\\|b'.")
    assert rows[9][2].startswith("not finished")


def test_every_command_tells_when_a_job_of_its_sweep_was_refused(command) -> None:
    ended = command("explain", "-m", "model=luong", "source_length=0,3")
    assert ended.code == 2
    assert "source_length is 0" in ended.errors
    assert "cross: 1 layer" in ended.output


def table_of(output: str) -> list[dict[str, str]]:
    """The rows of the first table in the output, by column."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines() if line.startswith("|")]
    header = lines[0]
    rows = lines[2 : next((n for n, line in enumerate(lines) if n and line[0] in ("scorer", "seeds")), len(lines))]
    return [dict(zip(header, line, strict=False)) for line in rows]


def test_a_sweep_ends_in_its_table(command, tiny, corpus) -> None:
    overrides = [item for item in tiny(trainer__max_steps=3) if not item.startswith("run_dir=")]
    ended = command("train", "-m", *overrides, "scorer=dot,additive", "model.num_heads=2,5")
    rows = table_of(ended.output)
    assert ended.code == 2
    assert {"job", "scorer", "model.num_heads", "BLEU", "p", "chrF2", "parameters", "tokens/s"} <= set(rows[0])
    assert {(row["scorer"], row["model.num_heads"]) for row in rows} == {
        *(("dot", "2"), ("dot", "5"), ("additive", "2"), ("additive", "5"))
    }
    for row in rows:
        refused = "num_heads=5 does not divide the query width 12" in row["BLEU"]
        assert refused == (row["model.num_heads"] == "5")
        assert refused or float(row["BLEU"]) >= 0
    assert ended.errors.count("num_heads=5 does not divide") == 2
    assert list(corpus.glob("runs/sweeps/*/comparison.csv"))


def test_two_jobs_at_a_time_end_in_the_same_table(command, tiny) -> None:
    """The launcher runs the jobs in processes of their own."""
    overrides = [item for item in tiny(trainer__max_steps=2) if not item.startswith("run_dir=")]
    ended = command("train", "-m", *overrides, "seed=1,2,x", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    rows = table_of(ended.output)
    assert ended.code == 2
    assert [row["seed"] for row in rows] == ["1", "2", "x"]
    assert all(float(row["BLEU"]) >= 0 for row in rows[:2])
    assert rows[2]["BLEU"] == "seed must be a whole number, not 'x'."
    assert "Mean ± standard deviation over seeds" in ended.output
