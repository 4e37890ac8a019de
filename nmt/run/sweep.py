"""The end of a sweep: what became of each job, as one table."""

import json
from pathlib import Path
from typing import Any

from nmt.run.rundir import RunDirectory, write_json

_RECORD = "job.json"
_FIGURES = ("BLEU", "chrF2", "parameters", "target tokens/s", "minutes")


def record_job(folder: Path, overrides: list[str], code: int, error: str) -> None:
    """Leaves beside a job's folder what it was asked for and how it ended; the job may run in a process of its own."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    write_json(_beside(folder), {"overrides": overrides, "exit_code": code, "error": error})


def exit_codes(sweep: Path) -> list[int]:
    """How the jobs of a sweep ended."""
    return [record["exit_code"] for _, record in _records(sweep)]


def sweep_table(sweep: Path) -> str:
    """A Markdown table with a row for each job: what differs between the jobs, and its scores or why it has none."""
    records = _records(sweep)
    chosen = [dict(override.split("=", maxsplit=1) for override in record["overrides"]) for _, record in records]
    keys = [key for key in (chosen[0] if chosen else ()) if len({choice.get(key) for choice in chosen}) > 1]
    rows = [["job", *keys, *_FIGURES]]
    for (folder, record), choice in zip(records, chosen, strict=True):
        rows.append([folder.name, *(choice.get(key, "") for key in keys), *_figures(folder, record)])
    widths = [max(len(row[column]) for row in rows if len(row) == len(rows[0])) for column in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join(_line(row, widths) for row in rows)


def _figures(folder: Path, record: dict[str, Any]) -> list[str]:
    """The cells of a finished job; of another one, a single cell that says why it has no scores."""
    run = RunDirectory(folder)
    if record["exit_code"] or not run.finished:
        return [record["error"] or (f"exit code {record['exit_code']}" if record["exit_code"] else "not finished")]
    metrics = run.metrics()
    scores = {score["name"]: f"{score['value']:.2f}" for score in metrics["scores"].get("test", ())}
    speed = metrics["target_tokens_per_second"]
    return [
        scores.get("BLEU", ""),
        scores.get("chrF2", ""),
        f"{metrics['parameters']:,}",
        f"{speed:,}" if speed else "",
        f"{metrics['target_tokens'] / speed / 60:.1f}" if speed else "",
    ]


def _line(row: list[str], widths: list[int]) -> str:
    """A line of the table; a row that ends early leaves the other cells empty."""
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    return "| " + " | ".join(cells + [""] * (len(widths) - len(row))) + " |"


def _beside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.{_RECORD}")


def _records(sweep: Path) -> list[tuple[Path, dict[str, Any]]]:
    """The folders of the jobs with their records, in the order of the jobs."""
    files = sorted(sweep.glob(f"*.{_RECORD}"), key=lambda file: int(file.name.split(".")[0]))
    return [(file.with_name(file.name.split(".")[0]), json.loads(file.read_text(encoding="utf-8"))) for file in files]
