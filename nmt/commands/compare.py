"""nmt.compare: several runs, files of translations, or both in one table with paired significance tests."""

import logging
from typing import Any

from nmt.commands.compare_settings import CompareSettings
from nmt.config.job import Job
from nmt.evaluation.sanity import looks_tokenized
from nmt.paths import check_writable, folder_to_write
from nmt.runs.directory import RunDirectory
from nmt.runs.finished import finished_runs
from nmt.scoring.differences import differences
from nmt.scoring.score_table import file_systems, reference_files, run_system, scored_on_tokens, write_comparison

logger = logging.getLogger(__name__)


def compare(job: Job[CompareSettings]) -> None:
    """Prints the comparison and writes it to `out` as Markdown, CSV, LaTeX and JSON, with a chart."""
    settings = job.settings
    check_writable("out", settings.out)
    if not settings.run_dirs:
        named = reference_files(settings.reference or [])
        references = [*named.values()]
        systems = file_systems(settings.outputs, named, column="output", tokenized=looks_tokenized(references[0]))
        test_set: dict[str, Any] = {"split": None, "references": [*named]}
    else:
        column = "system" if settings.outputs else "run"
        directions = finished_runs(settings.run_dirs)
        runs = [RunDirectory(path) for path, direction in directions.items() if direction is not None]
        columns = {column: [str(run.path) for run in runs]}
        averaged = [str(len(run.metrics().get("averaged", ())) or "") for run in runs]  # the number of checkpoints
        if any(averaged):
            columns["averaged"] = averaged
        columns |= differences([run.config() for run in runs])
        systems, references = [], []
        for number, run in enumerate(runs):
            described = {key: values[number] for key, values in columns.items()}
            # The first run reads the references; the others must have the same ones.
            system, references = run_system(
                run.path, settings.device, settings.split, described, references or None, command=job.command
            )
            systems.append(system)
        [reference] = references  # a split has one
        systems += file_systems(
            settings.outputs,
            {f"the split {settings.split}": reference},
            column=column,
            tokenized=scored_on_tokens(systems[0]),
        )
        test_set = {"split": settings.split}
    out = folder_to_write("out", settings.out)
    print(write_comparison(systems, references, out, command=job.command, test_set=test_set).printed())
    logger.info("Written to %s", out)
