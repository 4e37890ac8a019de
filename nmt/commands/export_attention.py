"""nmt.export_attention: the attention maps of every sentence of a file, as data, pictures, tables and a page."""

from pathlib import Path

from nmt.config.job import Job
from nmt.config.schema import ExportAttentionSettings
from nmt.maps.drawing import Drawing
from nmt.runs.forced_maps import forced_maps
from nmt.runs.load import load_run
from nmt.runs.map_export import export_maps, map_files
from nmt.runs.provenance import described_sites


def export_attention(job: Job[ExportAttentionSettings]) -> None:
    """Writes the maps of each line, then the chosen formats, and prints their paths.

    The maps come from forced decoding of the lines of `target`, or of the hypotheses of the search. Raises
    ValueError before the search for settings that do not fit the run or the files, and if no line has maps.
    """
    settings = job.settings
    files = map_files(settings, job.given)
    trained = load_run(Path(settings.run_dir), settings.device)
    drawing = Drawing(settings, described_sites(trained.model))
    export_maps(trained, files, settings, drawing, forced_maps)
