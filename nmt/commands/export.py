"""nmt.export: a finished run in the format of another program."""

import logging
from pathlib import Path

from nmt.commands.export_settings import ExportSettings
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.exports.export_run import check_replaceable, comparison_pairs, export_run
from nmt.exports.page_export import check_page, export_page, usable_node
from nmt.runs.load import load_run

logger = logging.getLogger(__name__)


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
    if settings.format == "page":
        if settings.source is not None and len({str(run.direction) for run in runs}) > 1:
            raise Mistake(
                "source and reference have one direction, but the runs translate in several directions: leave both "
                "out, and each run is compared on its own validation corpus."
            )
        node = usable_node()
        if node is None and settings.source is not None:
            logger.warning("%s and %s are not used without Node.js.", settings.source, reference)
        # Without Node.js, the page is not compared, so it needs no pairs.
        pairs = [comparison_pairs(run.stored, settings.source, reference) for run in runs] if node else []
        for line in export_page(runs, out, settings.quantization, node=node, pairs=pairs):
            print(line)
    else:
        pairs_of_run = comparison_pairs(runs[0].stored, settings.source, reference)
        print(export_run(runs[0], settings.format, out, settings.quantization, pairs_of_run))
    print(out)
