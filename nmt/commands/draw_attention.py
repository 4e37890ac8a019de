"""nmt.draw_attention: pictures, tables, alignments and pages from exported attention maps."""

from pathlib import Path
from typing import Any

from nmt.config.job import Job
from nmt.files import check_writable, folder_to_write
from nmt.maps.drawing import FORMATS, Drawing, draw
from nmt.maps.map_files import MANIFEST, MapFolder, map_folders
from nmt.maps.viewer import viewed_runs, write_viewer


def draw_attention(job: Job) -> None:
    """Makes the chosen formats from one folder of maps, or one page from several folders, and prints their paths.

    A folder of folders, such as a run's probes, counts as all folders in it. Raises ValueError if several folders are
    given for something other than a page.
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
        if config["out"] is None:
            check_writable("maps", folders[0].path)
            out = folders[0].path
        else:
            out = _folder_without_other_maps(config["out"], folders[0].path)
        for line in draw(folders[0], drawing, out, lines):
            print(line)
        return
    if drawing.formats != ["viewer"]:
        raise ValueError(
            f"{len(folders)} folders of maps can only be drawn as one page: add formats=[viewer], or give one folder."
        )
    if config["out"] is None:
        raise ValueError(f"out is not given; name a folder for the page of {len(folders)} folders of maps.")
    page = _folder_without_other_maps(config["out"], None) / "viewer.html"
    write_viewer(page, viewed_runs(folders, lines))
    print(page)


def _folder_without_other_maps(out: Any, maps: Path | None) -> Path:
    """The folder to draw into. Raises ValueError if it has other maps, whose pictures have the same names."""
    folder = folder_to_write("out", out)
    if (folder / MANIFEST).exists() and (maps is None or folder.resolve() != maps.resolve()):
        raise ValueError(f"out is {folder}, which has other maps; choose another folder.")
    return folder


def _lines(lines: Any) -> list[int] | None:
    if lines is None:
        return None
    if lines == []:
        raise ValueError("lines is an empty list; give at least one, as in lines=[1,5], or null for all.")
    for line in lines if isinstance(lines, list) else [lines]:
        if not isinstance(line, int) or isinstance(line, bool) or line < 1:
            raise ValueError(f"lines holds '{line}'; give whole numbers from 1, as in lines=[1,5], or null.")
    return lines if isinstance(lines, list) else [lines]
