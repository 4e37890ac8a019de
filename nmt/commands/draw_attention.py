"""nmt.draw_attention: pictures, tables, alignments and pages from exported attention maps."""

from pathlib import Path

from nmt.commands.draw_attention_settings import DrawAttentionSettings
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.files import check_writable, folder_to_write
from nmt.maps.drawing import Drawing
from nmt.maps.map_files import MANIFEST, MapFolder, map_folders
from nmt.pages.viewer import draw_formats, viewed_runs, write_viewer


def draw_attention(job: Job[DrawAttentionSettings]) -> None:
    """Makes the chosen formats from one folder of maps, or one page from several folders, and prints their paths.

    A folder that contains folders of maps, such as a run's probes, stands for all of them. Raises Mistake if several
    folders are given for something other than a page.
    """
    settings = job.settings
    folders = [MapFolder(path) for name in settings.maps for path in map_folders(Path(name))]
    if len(folders) == 1:
        drawing = Drawing(sites=folders[0].manifest["sites"], **settings.drawing)
        if settings.out is None:
            check_writable("maps", folders[0].path)
            out = folders[0].path
        else:
            out = _folder_without_other_maps(settings.out, folders[0].path)
        for line in draw_formats(folders[0], drawing, out, settings.lines):
            print(line)
        return
    if settings.formats != ["viewer"]:
        raise Mistake(
            f"{len(folders)} folders of maps can only be drawn as one page: add formats=[viewer], or name one folder."
        )
    if settings.out is None:
        raise Mistake(f"out is not given; name a folder for the page that shows the {len(folders)} folders of maps.")
    page = _folder_without_other_maps(settings.out, None) / "viewer.html"
    write_viewer(page, viewed_runs(folders, settings.lines))
    print(page)


def _folder_without_other_maps(out: str, maps: Path | None) -> Path:
    """The folder to draw into. Raises Mistake if it holds other maps, whose pictures have the same names."""
    folder = folder_to_write("out", out)
    if (folder / MANIFEST).exists() and (maps is None or folder.resolve() != maps.resolve()):
        raise Mistake(f"out is {folder}, which contains other maps; choose another folder.")
    return folder
