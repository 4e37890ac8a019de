"""Films of the probes of a run."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attention_runs import job
from PIL import Image

from nmt.commands.draw_attention import draw_attention
from nmt.errors import Mistake
from nmt.maps.plots import Look, heat_map_frames


def test_frames_have_one_size_and_one_color_scale() -> None:
    weights = np.stack([np.eye(3), np.full((3, 3), 0.5)])
    titles = ["Step 5: cross attention", "Step 10,000: cross attention"]
    frames = heat_map_frames(weights, ["a"] * 3, ["x"] * 3, titles, Look(dpi=80))
    assert frames[0].size == frames[1].size
    # Only the color bar is as dark in the second frame as the cells are in the first.
    dark = [sum(pixel < 40 for pixel in frame.convert("L").tobytes()) for frame in frames]
    assert 0 < dark[1] < dark[0] / 2


def test_the_probes_of_a_run_are_filmed(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common: dict[str, Any] = {"maps": "maps_luong/probes", "out": str(tmp_path), "dpi": 40}
    draw_attention(job("draw_attention", **common, formats=["gif"], head=1))
    paths = [Path(line) for line in capsys.readouterr().out.split()]
    assert len(paths) == 3
    assert all(path.name.endswith(".cross.head1.gif") for path in paths)
    with Image.open(paths[0]) as film:
        assert film.n_frames == 2
        durations = []
        for frame in range(2):
            film.seek(frame)
            durations.append(film.info["duration"])
            assert film.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
    assert durations == [500, 2000]


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs ffmpeg")
def test_a_film_for_players_has_an_even_size(here: Path, tmp_path: Path) -> None:
    draw_attention(job("draw_attention", maps="maps_luong/probes", out=str(tmp_path), dpi=40, formats=["mp4"]))
    path = next((tmp_path / "pictures").glob("*.mp4"))
    frames = ["ffmpeg", "-loglevel", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "gray", "-"]
    pixels = subprocess.run(frames, capture_output=True, check=True).stdout
    assert path.read_bytes()[4:8] == b"ftyp"
    assert len(pixels) % (5 * 4) == 0


def test_ffmpeg_gets_every_frame_and_the_last_one_four_times(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ffmpeg").write_text('#!/bin/sh\nfor last; do :; done\ncat > "$last"\n')
    (tmp_path / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    draw_attention(job("draw_attention", maps="maps_luong/probes", out=str(tmp_path), dpi=40, formats=["mp4"]))
    received = next((tmp_path / "pictures").glob("*.mp4")).read_bytes()
    # The run was validated twice.
    assert received.count(b"\x89PNG\r\n") == 1 + 4


def test_the_reason_of_an_ffmpeg_that_fails_is_shown(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ffmpeg").write_text("#!/bin/sh\ncat > /dev/null\necho Unknown encoder >&2\nexit 1\n")
    (tmp_path / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    given = {"maps": "maps_luong/probes", "out": str(tmp_path), "dpi": 40, "formats": ["mp4"]}
    with pytest.raises(Mistake, match=r"ffmpeg could not write .*\.mp4 \(Unknown encoder\): install another ffmpeg"):
        draw_attention(job("draw_attention", **given))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"maps": "maps_luong/none"},
            "maps_luong/none has no maps of a run's validations, so there is nothing to film",
        ),
        ({"maps": ["maps_luong/probes", "maps_luong/probes/step_0000002"]}, "maps names the same step twice"),
        (
            {"maps": ["maps_luong/probes/step_0000002", "maps_bahdanau/probes/step_0000004"]},
            "A film shows one run, but maps names folders of several: name the probes of one run",
        ),
        ({"formats": ["mp4"]}, "formats includes mp4, which needs the program ffmpeg: install it, or use formats="),
        ({"formats": ["gif", "csv"]}, "formats includes csv, which shows a single folder of maps, but there are 2"),
        ({"grid": True}, "grid=true has no film: leave gif out of formats"),
        ({"width": 3.3}, "width is for print; leave it out, or leave gif out of formats"),
        ({"out": None}, "out is not given; name a folder for the files that show the 2 folders of maps"),
    ],
)
def test_what_cannot_be_filmed_is_refused(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], sentence: str
) -> None:
    monkeypatch.setenv("PATH", "")
    given = {"maps": "maps_luong/probes", "formats": ["gif"], "out": str(tmp_path), **changes}
    with pytest.raises(Mistake, match=sentence):
        draw_attention(job("draw_attention", **given))
