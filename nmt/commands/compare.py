"""nmt.compare: several runs, or files of translations, in one table with paired significance tests."""

from pathlib import Path

from nmt.commands.compare_settings import CompareSettings
from nmt.config.job import Job
from nmt.files import folder_to_write
from nmt.runs.directory import RunDirectory
from nmt.scoring.differences import differences
from nmt.scoring.score_table import file_systems, report, run_system


def compare(job: Job[CompareSettings]) -> None:
    """Prints the comparison and writes it to `out` as Markdown, CSV, LaTeX and JSON, with a chart."""
    settings = job.settings
    out = folder_to_write("out", settings.out)
    if settings.outputs:
        systems, references = file_systems(settings.outputs, settings.reference or [])
    else:
        runs = [RunDirectory(Path(path)) for path in settings.run_dirs]
        for run in runs:
            run.require_finished()
        columns = {"run": [str(run.path) for run in runs]}
        averaged = [str(len(run.metrics().get("averaged", ())) or "") for run in runs]  # the number of checkpoints
        if any(averaged):
            columns["averaged"] = averaged
        columns |= differences([run.config() for run in runs])
        systems, references = [], []
        for number, run in enumerate(runs):
            described = {key: values[number] for key, values in columns.items()}
            # The first run reads the references; the others must have the same ones.
            system, references = run_system(run.path, settings.device, settings.split, described, references or None)
            systems.append(system)
    print(report(systems, references, out).printed())
