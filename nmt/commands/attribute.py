"""nmt.attribute: how much each source piece matters for each target piece, as maps like those of attention."""

from functools import partial
from pathlib import Path

from nmt.commands.attribute_settings import AttributeSettings
from nmt.config.job import Job
from nmt.config.shared_settings import DrawingSettings, LookSettings
from nmt.errors import Mistake
from nmt.insight.attribution_maps import P_CXMI, attribution_maps, chosen_method, p_cxmi_maps
from nmt.insight.forced_maps import MakeMaps
from nmt.insight.map_export import export_maps, map_files
from nmt.insight.provenance import described_attribution
from nmt.maps.drawing import Drawing
from nmt.pages.viewer import draw_formats
from nmt.runs.load import load_run


def attribute(job: Job[AttributeSettings]) -> None:
    """Writes the attributions of each line, then the files in the chosen formats, and prints their paths.

    The attributions explain the lines of `target`, or the hypotheses of the search. Raises Mistake if no line has
    maps and, before the search starts, for settings that do not fit the run, the method or the files.
    """
    settings = job.settings
    files = map_files(settings, job.given)
    run = load_run(Path(settings.run_dir), settings.device)
    if settings.method == P_CXMI:
        make_maps: MakeMaps = p_cxmi_maps
    else:
        method = chosen_method(run, settings.method, settings.contrast, settings.steps)
        make_maps = partial(attribution_maps, method=method)
    sites = described_attribution(settings.method, settings.contrast)
    look = {name: getattr(settings, name) for name in LookSettings.model_fields}
    if settings.method == P_CXMI:
        if "formats" in job.given and "alignments" in settings.formats:
            raise Mistake(
                "method=p_cxmi has no alignments, because it does not score source pieces; leave alignments out of "
                "formats."
            )
        look["formats"] = [kind for kind in settings.formats if kind != "alignments"]
    # An attribution has a single map, and each row stands for the piece that its step predicts.
    whole = DrawingSettings(**look, site=next(iter(sites)), layer=None, head=None, grid=False, row="predicts")
    drawing = Drawing(whole, sites)
    made_by = {"method": settings.method, "contrast": settings.contrast, "steps": settings.steps}
    folder = export_maps(run, files, settings, drawing, make_maps, made_by)
    for line in draw_formats(folder, drawing, files.out):
        print(line)
