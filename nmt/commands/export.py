"""nmt.export: a finished run in the format of another program."""

from pathlib import Path

from nmt.commands.export_settings import ExportSettings
from nmt.config.job import Job
from nmt.exports.export_run import check_replaceable, comparison_pairs, export_run
from nmt.exports.page_export import check_page, export_page
from nmt.runs.load import load_run


def export(job: Job[ExportSettings]) -> None:
    """Writes the export to `out`, and prints how closely it matches the run, followed by the path of the folder.

    A page is one file instead of a folder.
    """
    settings, out = job.settings, Path(job.settings.out)
    if settings.format == "page":
        check_page(out, settings.overwrite, settings.quantization)
    else:
        check_replaceable(out, settings.overwrite)
    run = load_run(Path(settings.run_dir), "cpu")
    pairs = comparison_pairs(run, settings.source, settings.reference[0] if settings.reference else None)
    if settings.format == "page":
        print(export_page(run, out, settings.quantization, *pairs))
    else:
        print(export_run(run, settings.format, out, settings.quantization, pairs))
    print(out)
