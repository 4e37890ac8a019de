"""The jobs of a sweep: how each of them ended, and the table that tells it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.run.rundir import RunDirectory, write_json

_FIGURES = ("BLEU", "chrF2", "parameters", "target tokens/s", "minutes")


class JobRecord(NamedTuple):
    """A job: its number, its folder, what it was asked for, and how it ended."""

    number: int
    folder: str
    overrides: list[str]
    exit_code: int
    error: str
    """A sentence; empty when the job ended well."""


class Records:
    """A folder that the jobs of a command write their records to, each from its own process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, record: JobRecord) -> None:
        """Replaces the job's record."""
        write_json(self.folder / f"{record.number}.json", record._asdict())

    def read(self) -> list[JobRecord]:
        """All records, in the order of the jobs."""
        found = [JobRecord(**json.loads(file.read_text(encoding="utf-8"))) for file in self.folder.glob("*.json")]
        return sorted(found, key=lambda record: record.number)


def sweep_table(records: Sequence[JobRecord]) -> str:
    """A Markdown table with a row for each job: what differs between the jobs, and its scores or why it has none."""
    chosen = [dict(override.split("=", maxsplit=1) for override in record.overrides) for record in records]
    keys = [key for key in (chosen[0] if chosen else ()) if len({choice.get(key) for choice in chosen}) > 1]
    rows = [["job", *keys, *_FIGURES]]
    for record, choice in zip(records, chosen, strict=True):
        rows.append([str(record.number), *(choice.get(key, "") for key in keys), *_figures(record)])
    widths = [max(len(row[column]) for row in rows if len(row) == len(rows[0])) for column in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join(_line(row, widths) for row in rows)


def _figures(record: JobRecord) -> list[str]:
    """The cells of a finished job; of another one, a single cell that says why it has no scores."""
    run = RunDirectory(Path(record.folder))
    if record.exit_code or not run.finished:
        lines = record.error.splitlines() or ["not finished"]
        return [lines[0].replace("|", "\\|")]
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
