"""What nmt.train prints at the end of a sweep: the comparison of its runs, with a row for each job."""

from collections.abc import Sequence
from pathlib import Path

from nmt.evaluation.tables import Table
from nmt.run.build import load_run
from nmt.run.compare import report, run_systems
from nmt.run.sweep import JobRecord, settings


def sweep_report(records: Sequence[JobRecord]) -> str:
    """The table of all jobs, written to the folder that holds theirs; a job without scores is a row that says why.

    Where the runs cannot be compared, because their test corpora differ, that is said instead of their figures.
    """
    columns = settings(records)
    rows = [list(values) for values in zip(*columns.values(), strict=True)]
    finished = [place for place, record in enumerate(records) if record.finished]
    refused = {place: [*rows[place], _reason(record)] for place, record in enumerate(records) if place not in finished}
    if not finished:
        return Table([*columns, "problem"], list(refused.values())).markdown()
    runs = [load_run(Path(records[place].folder), "auto") for place in finished]
    split = "test" if runs[0].config["data"].get("test") else "valid"
    own = {key: [values[place] for place in finished] for key, values in columns.items()}
    try:
        systems, references = run_systems(runs, split, own)
    except ValueError as error:
        told = {place: [*rows[place], f"not compared: {error}"] for place in finished}
        return Table([*columns, "problem"], [row for _, row in sorted({**refused, **told}.items())]).markdown()
    return report(systems, references, Path(records[0].folder).parent, refused)


def _reason(record: JobRecord) -> str:
    return (record.error.splitlines() or ["not finished"])[0]
