"""nmt.export: a finished run in the format of another program."""

from pathlib import Path

from nmt.config.job import Job
from nmt.config.schema import ExportSettings
from nmt.exports.export_run import export_run, first_pairs
from nmt.runs.load import load_run


def export(job: Job[ExportSettings]) -> None:
    """Writes the run to `out`, and prints how equal both are, and the folder."""
    settings = job.settings
    trained = load_run(Path(settings.run_dir), "cpu")
    pairs = first_pairs(trained, settings.source, settings.reference)
    out = Path(settings.out)
    print(export_run(trained, settings.format, out, settings.quantization, pairs, overwrite=settings.overwrite))
    print(out)
