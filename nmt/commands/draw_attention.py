"""nmt.draw_attention: pictures, tables, alignments, pages and films from exported attention maps."""

from collections.abc import Sequence
from pathlib import Path

from nmt.commands.draw_attention_settings import DrawAttentionSettings
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.maps.animation import FILMS, check_films, draw_films
from nmt.maps.comparison import draw_side_by_side
from nmt.maps.drawing import PICTURES, Drawing
from nmt.maps.map_files import MANIFEST, MapFolder, map_folders
from nmt.pages.viewer import draw_formats, viewed_runs, write_viewer
from nmt.paths import check_writable, folder_to_write


def draw_attention(job: Job[DrawAttentionSettings]) -> None:
    """Makes the chosen formats from one or more folders of maps, and prints their paths.

    A folder that contains folders of maps, such as a run's probes, means all of them. Several folders make
    pictures side by side, one page or, if they are the probes of a run, films. Raises Mistake for formats and settings
    that need a single folder.
    """
    settings = job.settings
    paths = [path for name in settings.maps for path in map_folders(Path(name))]
    films = [kind for kind in settings.formats if kind in FILMS]
    if films and (empty := [path for path in paths if not (path / MANIFEST).is_file()]):
        raise Mistake(
            f"{empty[0]} has no maps of a run's validations, so there is nothing to film: name the probes of a run "
            "that was trained with validation.probes above 0, as in maps=runs/demo/probes."
        )
    folders = [MapFolder(path) for path in paths]
    if len(folders) == 1 and not films:
        sites = folders[0].manifest["sites"]
        drawing = Drawing(sites=sites, formats=settings.formats, **settings.drawing_of(sites, job.given))
        if "alignments" in settings.formats and "cross" not in drawing.sites:
            raise Mistake(
                f"formats includes alignments, but {folders[0].path} has no maps of cross attention: leave alignments "
                "out."
            )
        if settings.out is None:
            check_writable("maps", folders[0].path)
            out = folders[0].path
        else:
            out = _folder_without_other_maps(settings.out, folders[0].path)
        for line in draw_formats(folders[0], drawing, out, settings.lines):
            print(line)
    else:
        _draw_together(folders, films, job)


def _draw_together(folders: list[MapFolder], films: Sequence[str], job: Job[DrawAttentionSettings]) -> None:
    """Makes pictures side by side, a page or films of several folders of maps; a film may have only one.

    Raises Mistake for formats and settings that need a single folder.
    """
    settings = job.settings
    if films:
        check_films(folders, settings.formats)
    for kind in settings.formats:
        if kind not in (*PICTURES, *FILMS, "viewer"):
            if len(folders) == 1:
                raise Mistake(
                    f"formats includes {kind} and {films[0]}, which cannot be made by one command: use two commands."
                )
            raise Mistake(
                f"formats includes {kind}, which shows a single folder of maps, but there are {len(folders)}: name one "
                f"folder, or leave {kind} out."
            )
    pictures = [kind for kind in settings.formats if kind in PICTURES]
    for key, value in (("grid", settings.grid), ("layer", settings.layer), ("head", settings.head)):
        if pictures and (value is True or value == "all"):
            if len(folders) == 1:
                raise Mistake(
                    f"formats includes {pictures[0]} and {films[0]}; pictures made together with a film show one map, "
                    f"so {key}={str(value).lower()} cannot be drawn: use two commands."
                )
            raise Mistake(
                f"Pictures of {len(folders)} folders show one map of each, so {key}={str(value).lower()} cannot be "
                "drawn: name one folder, or leave it out."
            )
    if settings.out is None:
        shown = f"files that show the {len(folders)} folders of maps" if len(folders) > 1 else "film"
        raise Mistake(f"out is not given; name a folder for the {shown}.")
    drawings = []
    sites_of_all = set.intersection(*(set(folder.manifest["sites"]) for folder in folders))
    if pictures or films:
        for folder in folders:
            # The layer and head choose among the maps of attention: an attribution has only one.
            one_map = {"layer": None, "head": None} if "method" in folder.manifest["made_from"] else {}
            options = settings.drawing_of(sites_of_all, job.given) | one_map
            drawings.append(Drawing(sites=folder.manifest["sites"], formats=settings.formats, **options))
    out = _folder_without_other_maps(settings.out, None)
    if "viewer" in settings.formats:
        write_viewer(out / "viewer.html", viewed_runs(folders, settings.lines))
        print(out / "viewer.html")
    for path in draw_side_by_side(folders, drawings, out, settings.lines) if pictures else ():
        print(path)
    for path in draw_films(folders, drawings[0], out, settings.lines) if films else ():
        print(path)


def _folder_without_other_maps(out: str, maps: Path | None) -> Path:
    """The folder to draw into. Raises Mistake if it holds other maps, whose pictures have the same names."""
    folder = folder_to_write("out", out)
    if (folder / MANIFEST).exists() and (maps is None or folder.resolve() != maps.resolve()):
        raise Mistake(f"out is {folder}, which contains other maps; choose another folder.")
    return folder
