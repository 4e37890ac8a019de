"""nmt.export_attention: the attention maps of every sentence of a file, as data, pictures, tables and a page."""

from pathlib import Path

from nmt.commands.export_attention_settings import ExportAttentionSettings
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.insight.forced_maps import forced_maps
from nmt.insight.map_export import export_encoder_maps, export_maps, map_files
from nmt.insight.provenance import described_sites
from nmt.maps.drawing import Drawing
from nmt.pages.viewer import draw_formats
from nmt.runs.directory import RunDirectory
from nmt.runs.encoder import load_encoder
from nmt.runs.load import load_run


def export_attention(job: Job[ExportAttentionSettings]) -> None:
    """Writes the maps of each line, then the files in the chosen formats, and prints their paths.

    The maps come from forced decoding of the lines of `target`, or of the hypotheses of the search. A pretrained
    encoder takes no targets and has maps only at encoder_self. Raises Mistake if no line has maps and, before the
    search starts, for settings that do not fit the run or the files.
    """
    settings = job.settings
    files = map_files(settings, job.given)
    if RunDirectory(Path(settings.run_dir)).pretrained:
        encoder = load_encoder(Path(settings.run_dir), settings.device)
        site = settings.site if "site" in job.given else "encoder_self"
        formats = settings.formats
        if "formats" not in job.given:
            # Alignments are links between a source and a target.
            formats = [name for name in formats if name != "alignments"]
        elif "alignments" in formats:
            raise Mistake(f"formats includes alignments, but {settings.run_dir} has no targets: leave alignments out.")
        settings = settings.model_copy(update={"site": site, "formats": formats})
        drawing = Drawing(settings, described_sites(encoder.model))
        folder = export_encoder_maps(encoder, files, settings, drawing)
    else:
        run = load_run(Path(settings.run_dir), settings.device)
        drawing = Drawing(settings, described_sites(run.model))
        folder = export_maps(run, files, settings, drawing, forced_maps)
    for line in draw_formats(folder, drawing, files.out):
        print(line)
