"""nmt.export: a finished run in the format of another program."""

from pathlib import Path

from nmt.commands.export_settings import ExportSettings
from nmt.config.job import Job
from nmt.exports.export_run import check_replaceable, comparison_pairs, export_run
from nmt.exports.page_export import check_page, export_page
from nmt.runs.load import load_run


def export(job: Job[ExportSettings]) -> None:
    """Writes the export to `out`, and prints how closely it matches the run, followed by the path of the folder.

    A page is one file instead of a folder, and can hold several runs.
    """
    settings, out = job.settings, Path(job.settings.out)
    if settings.format == "page":
        check_page(out, settings.overwrite, settings.quantization, settings.runs)
    else:
        check_replaceable(out, settings.overwrite)
    runs = [load_run(Path(folder), "cpu") for folder in settings.runs]
    reference = settings.reference[0] if settings.reference else None
    pairs = [comparison_pairs(run.stored, settings.source, reference) for run in runs]
    if settings.format == "page":
        for line in export_page(runs, out, settings.quantization, pairs):
            print(line)
    else:
        print(export_run(runs[0], settings.format, out, settings.quantization, pairs[0]))
    print(out)
