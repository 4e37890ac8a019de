"""nmt.export_attention: the attention maps of every sentence of a file, as data, pictures, tables and a page."""

import logging
from collections.abc import Callable, Iterator

from nmt.commands.export_attention_settings import ExportAttentionSettings
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.insight.chosen_maps import chosen_maps
from nmt.insight.encoder_maps import encoder_maps
from nmt.insight.forced_maps import forced_maps
from nmt.insight.map_export import checked_paths, export_maps
from nmt.insight.provenance import described_sites
from nmt.maps.attention_map import SentenceMaps
from nmt.maps.drawing import PICTURES, Drawing
from nmt.maps.map_files import MANIFEST
from nmt.pages.viewer import draw_formats
from nmt.runs.directory import RunDirectory
from nmt.runs.encoder import LoadedEncoder, load_encoder
from nmt.runs.included import named_run
from nmt.runs.load import LoadedRun, load_run

logger = logging.getLogger(__name__)


def export_attention(job: Job[ExportAttentionSettings]) -> None:
    """Writes the maps of each line, then the files in the chosen formats, and prints their paths.

    The maps are those of the chosen sites and layers, from forced decoding of the lines of `target`, or of the
    hypotheses of the search. A pretrained encoder takes no targets and has maps only at encoder_self. Raises Mistake if
    no line has maps and, before the search starts, for settings that do not fit the run or the files.
    """
    settings = job.settings
    paths = checked_paths(settings.input, settings.target, settings.out, overwrite=settings.overwrite, given=job.given)
    run_dir = named_run(settings.run_dir)
    formats: list[str] = list(settings.formats)
    if RunDirectory(run_dir).pretrained:
        run: LoadedRun | LoadedEncoder = load_encoder(run_dir, settings.device)
        make_maps: Callable[..., Iterator[SentenceMaps]] = encoder_maps
    else:
        run, make_maps = load_run(run_dir, settings.device), forced_maps
    chosen = chosen_maps(described_sites(run.model), settings.sites, settings.layers)
    if "cross" not in chosen.sites:
        # Alignments are links between a source and a target.
        if "formats" not in job.given:
            formats = [name for name in formats if name != "alignments"]
        elif "alignments" in formats:
            reason = f"{run_dir} has no targets" if settings.sites is None else "sites does not contain cross"
            raise Mistake(f"formats includes alignments, but {reason}: leave alignments out.")
    drawing = Drawing(sites=chosen.sites, formats=formats, **settings.drawing_of(chosen.sites, job.given))
    folder = export_maps(
        run,
        paths,
        lambda pairs, batch_tokens: chosen.of(make_maps(run, pairs, batch_tokens)),
        drawing.sites,
        search=settings.search,
        documents=settings.documents,
        max_tokens=settings.max_tokens,
        batch_tokens=settings.batch_tokens,
        drawn=not {*PICTURES}.isdisjoint(formats),
    )
    if chosen.layers is not None:
        logger.info(
            "The maps number the layers %s of the model from 0.", ", ".join(str(number) for number in chosen.layers)
        )
    print(paths.out / MANIFEST)
    for line in draw_formats(folder, drawing, paths.out):
        print(line)
