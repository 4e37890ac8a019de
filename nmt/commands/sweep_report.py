"""What nmt.train prints at the end of a sweep: the comparison of its runs."""

import logging
from collections.abc import Sequence
from pathlib import Path

from nmt.config.job import JobRecord
from nmt.config.schema import RunSettings, validated
from nmt.errors import Mistake
from nmt.runs.directory import RunDirectory
from nmt.scoring.score_table import run_system, write_comparison

logger = logging.getLogger(__name__)


def sweep_report(records: Sequence[JobRecord], folder: Path | None, command: str) -> str:
    """Writes the comparison to the sweep's folder, and returns it with the reason for each job that has no result.

    `folder` is that of the sweep; None if it is unknown, and the comparison is written beside the first run. `command`
    is that of the sweep, which the comparison records. A run whose references differ from those of the first run has no
    result either.
    """
    columns = varying_overrides(records)
    systems, without_result, references, compared = [], {}, None, list[tuple[Path, str]]()
    for index, record in enumerate(records):
        differing = {key: values[index] for key, values in columns.items()}
        run = RunDirectory(Path(record.folder))
        name = ", ".join(f"{key} {value}" for key, value in differing.items())
        try:
            if record.exit_code or not run.finished:
                without_result[name] = record.error.partition("\n")[0] or "not finished"
                continue
            settings = validated(RunSettings, run.config())
            split = "test" if settings.data.test else "valid"
            # The device on which the run was scored.
            device = "cpu" if settings.trainer.accelerator == "cpu" else "auto"
            system, references = run_system(run.path, device, split, differing, references, command=command)
            systems.append(system)
            compared.append((run.path, split))
        except Mistake as error:
            without_result[name] = f"not compared: {error}"
    if references is None:
        return "\n".join(["No job has a result:", "", *(f"- {job}: {why}" for job, why in without_result.items())])
    path, split = compared[0]
    out = folder or path.parent
    report = write_comparison(systems, references, out, without_result, command=command, test_set={"split": split})
    logger.info("Written to %s", out)
    return report.printed()


def varying_overrides(records: Sequence[JobRecord]) -> dict[str, list[str]]:
    """The columns of a sweep: the number of each job, and the overrides that differ between jobs."""
    given = [dict(override.partition("=")[::2] for override in record.overrides) for record in records]
    keys = [key for key in (given[0] if given else ()) if len({overrides.get(key) for overrides in given}) > 1]
    columns = {key: [overrides.get(key, "") for overrides in given] for key in keys}
    return {"job": [str(record.number) for record in records], **columns}
