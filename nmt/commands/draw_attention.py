"""nmt.draw_attention: pictures, tables, alignments and pages of attention maps that have been exported."""

from pathlib import Path
from typing import Any

from nmt.config.job import Job
from nmt.files import folder_to_write
from nmt.maps.drawing import FORMATS, Drawing
from nmt.maps.folders import map_folders, viewed_runs
from nmt.maps.formats import draw
from nmt.maps.map_files import MANIFEST, MapFolder
from nmt.maps.viewer import write_viewer


def draw_attention(job: Job) -> None:
    """Makes the formats of one folder of maps, or one page of several folders; prints the paths.

    A folder of folders, such as the probes of a run, stands for all of them. Raises ValueError where several folders
    are given and something else than the page is asked for.
    """
    config = job.config
    drawing = Drawing.of(config)
    if not drawing.formats:
        raise ValueError(f"formats is an empty list; give at least one of {', '.join(FORMATS)}.")
    lines = _lines(config["lines"])
    given = config["maps"] if isinstance(config["maps"], list) else [config["maps"]]
    folders = [MapFolder(path) for name in given for path in map_folders(Path(str(name)))]
    if not folders:
        raise ValueError("maps is an empty list; give at least one folder that nmt.export_attention wrote.")
    if len(folders) == 1:
        drawing.check_range(folders[0].manifest["sites"])
        out = _room(config["out"], folders[0].path) if config["out"] else folders[0].path
        for line in draw(folders[0], drawing, out, lines):
            print(line)
        return
    if drawing.formats != ["viewer"]:
        raise ValueError(
            f"{len(folders)} folders of maps go into one page only: add formats=[viewer], or give one folder."
        )
    if config["out"] is None:
        raise ValueError(f"out is not given; name a folder for the page of {len(folders)} folders of maps.")
    page = _room(config["out"], None) / "viewer.html"
    write_viewer(page, viewed_runs(folders, lines))
    print(page)


def _room(out: Any, maps: Path | None) -> Path:
    """The folder to draw into. Raises ValueError for one of other maps, whose pictures have the same names."""
    folder = folder_to_write("out", out)
    if (folder / MANIFEST).exists() and (maps is None or folder.resolve() != maps.resolve()):
        raise ValueError(f"out is {folder}, which holds other maps; give another folder.")
    return folder


def _lines(lines: Any) -> list[int] | None:
    """Raises ValueError for what is no line number."""
    if lines is None:
        return None
    if lines == []:
        raise ValueError("lines is an empty list; give at least one, as in lines=[1,5], or null for all.")
    for line in lines if isinstance(lines, list) else [lines]:
        if not isinstance(line, int) or isinstance(line, bool) or line < 1:
            raise ValueError(f"lines holds '{line}'; give whole numbers from 1, as in lines=[1,5], or null.")
    return lines if isinstance(lines, list) else [lines]
