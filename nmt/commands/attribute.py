"""nmt.attribute: how much each source piece matters for each target piece, as maps like those of attention."""

from functools import partial
from pathlib import Path

from nmt.config.job import Job
from nmt.config.schema import AttributeSettings, DrawingSettings, LookSettings
from nmt.maps.drawing import Drawing
from nmt.runs.attribution_maps import attribution_maps, chosen_method
from nmt.runs.load import load_run
from nmt.runs.map_export import export_maps, map_files
from nmt.runs.provenance import described_attribution


def attribute(job: Job[AttributeSettings]) -> None:
    """Writes the attributions of each line, then the chosen formats, and prints their paths.

    They explain the lines of `target`, or the hypotheses of the search. Raises ValueError before the search for
    settings that do not fit the run, the method or the files, and if no line has maps.
    """
    settings = job.settings
    files = map_files(settings, job.given)
    trained = load_run(Path(settings.run_dir), settings.device)
    method = chosen_method(trained, settings.method, settings.contrast, settings.steps)
    look = {name: getattr(settings, name) for name in LookSettings.model_fields}
    # An attribution has one map, and a row is of the piece that its step predicts.
    whole = DrawingSettings(**look, site="cross", layer=None, head=None, grid=False, row="predicts")
    drawing = Drawing(whole, described_attribution(settings.method, settings.contrast))
    made_by = {"method": settings.method, "contrast": settings.contrast, "steps": settings.steps}
    export_maps(trained, files, settings, drawing, partial(attribution_maps, method=method), made_by)
