"""What nmt.train prints at the end of a sweep: the comparison of its runs, with a row for each job."""

from collections.abc import Sequence
from pathlib import Path

from nmt.cli.sweep import settings
from nmt.config.job import JobRecord
from nmt.runs.comparison import report, run_system
from nmt.runs.directory import RunDirectory
from nmt.tables import Table


def sweep_report(records: Sequence[JobRecord]) -> str:
    """The table of all jobs, written to the folder that holds theirs; a job without scores is a row that says why.

    So is a run that cannot be compared with the first one, because its test corpus is another.
    """
    columns = settings(records)
    rows = [list(values) for values in zip(*columns.values(), strict=True)]
    refused: dict[int, list[str]] = {}
    systems, references = [], None
    for place, record in enumerate(records):
        folder, own = Path(record.folder), dict(zip(columns, rows[place], strict=True))
        if record.exit_code or not RunDirectory(folder).finished:
            refused[place] = [*rows[place], _reason(record)]
            continue
        try:
            split = "test" if RunDirectory(folder).config()["data"].get("test") else "valid"
            system, references = run_system(folder, "auto", split, own, references)
            systems.append(system)
        except (ValueError, FileNotFoundError) as error:
            refused[place] = [*rows[place], f"not compared: {error}"]
    if references is None:
        return Table([*columns, "problem"], list(refused.values())).markdown()
    return report(systems, references, Path(records[0].folder).parent, refused)


def _reason(record: JobRecord) -> str:
    return (record.error.splitlines() or ["not finished"])[0]
