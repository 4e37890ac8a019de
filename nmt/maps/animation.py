"""Films of attention during training: each frame is the map of one sentence at one validation."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from nmt.errors import Mistake
from nmt.files import atomic_write, subfolder
from nmt.maps.attention_map import SentenceMaps, selected
from nmt.maps.drawing import Drawing, layer_and_head, warn_of_missing_glyphs
from nmt.maps.map_files import MapFolder, file_stem
from nmt.maps.plots import heat_map_frames, missing_glyphs
from nmt.pace import Pace

FILMS = ("gif", "mp4")
_PER_SECOND = 2  # frames
_LAST = 4  # times as long as another frame: the film ends with the trained attention
_DPI = 150


def check_films(folders: Sequence[MapFolder], formats: Sequence[str]) -> None:
    """Raises Mistake if the folders are not the probes of one run, and for an mp4 without ffmpeg."""
    if "mp4" in formats and shutil.which("ffmpeg") is None:
        raise Mistake("formats includes mp4, which needs the program ffmpeg: install it, or use formats=[gif].")
    for folder in folders:
        if "step" not in folder.manifest["made_from"]:
            raise Mistake(
                f"{folder.path} was not recorded during training, so it cannot be part of a film: name the probes of a "
                "run, as in maps=runs/demo/probes."
            )
    if len({folder.path.resolve().parent for folder in folders}) > 1:
        raise Mistake("A film shows one run, but maps names folders of several: name the probes of one run.")
    if len({_step(folder) for folder in folders}) < len(folders):
        raise Mistake("A film shows one run, but maps names the same step twice: name the probes of one run.")


def draw_films(
    folders: Sequence[MapFolder], drawing: Drawing, out: Path, lines: Sequence[int] | None = None
) -> Iterator[str]:
    """Draws a film of each sentence, site, layer and head that is selected, and yields the paths.

    `check_films` accepts the folders. Raises Mistake if a line has no maps or is another sentence at another step.
    """
    kinds = [kind for kind in FILMS if kind in drawing.formats]
    folders = sorted(folders, key=_step)
    target = subfolder(out, "pictures")
    wanted = folders[0].lines if lines is None else lines
    pace, total, missing = Pace("sentences filmed"), folders[0].number(wanted), set[str]()
    # Only one sentence of all folders is in memory at a time.
    for versions in zip(*(folder.sentences(wanted) for folder in folders), strict=True):
        first = versions[0]
        for folder, sentence in zip(folders, versions, strict=True):
            if _pieces(sentence) != _pieces(first):
                raise Mistake(
                    f"Line {sentence.line} of {folder.path} differs from line {first.line} of {folders[0].path}, but a "
                    "film shows the same sentence at every step: name the probes of one run."
                )
        for site, *_ in drawing.pictured_maps(first):
            # One site after another, because all layers and heads of a long sentence are many numbers.
            maps = [dict(drawing.pictured_maps(sentence))[site] for sentence in versions]
            missing |= missing_glyphs([*maps[0].rows, *maps[0].columns], drawing.look(site, 1, 1, "").fonts)
            layers, heads = maps[0].weights.shape[:2]
            for layer, head in drawing.layers_and_heads(maps[0].weights):
                detail = layer_and_head(("layer", layer, layers), ("head", head, heads))
                look = drawing.look(site, first.line, first.rank, detail=detail)
                frames = heat_map_frames(
                    np.stack([selected(item.weights, layer, head) for item in maps]),
                    column_labels=maps[0].columns,
                    row_labels=maps[0].rows,
                    titles=[f"Step {step}: {look.title[0].lower()}{look.title[1:]}" for step in map(_step, folders)],
                    look=look._replace(dpi=min(look.dpi, _DPI)),
                )
                parts = [f"{key}{value}" for key, value in (("layer", layer), ("head", head)) if value is not None]
                stem = ".".join([file_stem(first.line, first.rank), site, *parts])
                for kind in kinds:
                    path = target / f"{stem}.{kind}"
                    {"gif": _write_gif, "mp4": _write_mp4}[kind](path, frames)
                    yield str(path)
        pace(1, total)
    warn_of_missing_glyphs(missing)


def _step(folder: MapFolder) -> int:
    step: int = folder.manifest["made_from"]["step"]
    return step


def _pieces(sentence: SentenceMaps) -> tuple[list[str], list[str]]:
    return sentence.source_pieces, sentence.target_pieces


def _write_gif(path: Path, frames: Sequence[Image.Image]) -> None:
    # With this method, a color of the film is off by at most 2 of 255 and white stays white; with the others or with
    # one palette for all frames, by 10 or more, which flickers.
    images = [frame.quantize(method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE) for frame in frames]
    durations = [1000 // _PER_SECOND] * (len(images) - 1) + [1000 * _LAST // _PER_SECOND]
    with atomic_write(path) as part:
        images[0].save(part, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0)


def _write_mp4(path: Path, frames: Sequence[Image.Image]) -> None:
    pictures = BytesIO()
    for frame in [*frames, *[frames[-1]] * (_LAST - 1)]:
        frame.save(pictures, format="png")
    # Players want an even number of pixels on each side, and colors in this format.
    input_options = ["-f", "image2pipe", "-c:v", "png", "-framerate", str(_PER_SECOND), "-i", "-"]
    output_options = [
        "-vf",
        "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white",
        "-pix_fmt",
        "yuv420p",
        "-movflags",
        "+faststart",
        "-f",
        "mp4",
    ]
    with atomic_write(path) as part:
        completed = subprocess.run(
            ["ffmpeg", "-y", "-loglevel", "error", *input_options, *output_options, str(part.resolve())],
            input=pictures.getvalue(),
            capture_output=True,
            check=False,
        )
        if completed.returncode:
            reason = completed.stderr.decode(errors="replace").strip().rpartition("\n")[2] or "it gave no reason"
            raise Mistake(f"ffmpeg could not write {path} ({reason}): install another ffmpeg, or use formats=[gif].")
