"""nmt.attribute: how much each source piece matters for each target piece, as maps like those of attention."""

from functools import partial
from pathlib import Path

from nmt.commands.attribute_settings import AttributeSettings
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.insight.attribution_maps import P_CXMI, attribution_maps, chosen_method, p_cxmi_maps
from nmt.insight.map_export import checked_paths, export_maps
from nmt.insight.provenance import described_attribution
from nmt.maps.drawing import PICTURES, Drawing
from nmt.maps.map_files import MANIFEST
from nmt.pages.viewer import draw_formats
from nmt.runs.load import load_run


def attribute(job: Job[AttributeSettings]) -> None:
    """Writes the attributions of each line, then the files in the chosen formats, and prints their paths.

    The attributions explain the lines of `target`, or the hypotheses of the search. Raises Mistake if no line has
    maps and, before the search starts, for settings that do not fit the run, the method or the files.
    """
    settings = job.settings
    paths = checked_paths(settings.input, settings.target, settings.out, overwrite=settings.overwrite, given=job.given)
    run = load_run(Path(settings.run_dir), settings.device)
    formats: list[str] = list(settings.formats)
    if settings.method == P_CXMI:
        make_maps = partial(p_cxmi_maps, run)
        if "formats" in job.given and "alignments" in formats:
            raise Mistake(
                "method=p_cxmi has no alignments, because it does not score source pieces; leave alignments out of "
                "formats."
            )
        formats = [kind for kind in formats if kind != "alignments"]
    else:
        method = chosen_method(run, settings.method, settings.contrast, settings.steps)
        make_maps = partial(attribution_maps, run, method=method)
    # An attribution has a single site and map, and each row is the piece that its step predicts.
    drawing = Drawing(
        sites=described_attribution(settings.method, settings.contrast),
        formats=formats,
        threshold=settings.threshold,
        sort_by=settings.sort_by,
        words=settings.words,
        width=settings.width,
        max_weight=settings.max_weight,
        dpi=settings.dpi,
        font=settings.font,
        palette=settings.palette,
        special=settings.special,
    )
    folder = export_maps(
        run,
        paths,
        make_maps,
        drawing.sites,
        search=settings.search,
        documents=settings.documents,
        max_tokens=settings.max_tokens,
        batch_tokens=settings.batch_tokens,
        drawn=not {*PICTURES}.isdisjoint(formats),
        in_context=settings.method == P_CXMI,  # other attributions are of a sentence by itself
        made_by={"method": settings.method, "contrast": settings.contrast, "steps": settings.steps},
    )
    print(paths.out / MANIFEST)
    for line in draw_formats(folder, drawing, paths.out):
        print(line)
