"""Maps of several folders in one picture."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import RendererAgg
from PIL import Image

from nmt.errors import Mistake
from nmt.maps.attention_map import AttentionMap, SentenceMaps, site_labels
from nmt.maps.comparison import draw_side_by_side
from nmt.maps.drawing import Drawing
from nmt.maps.map_files import MapFolder, write_maps
from nmt.maps.plots import Look, Panel, heat_maps_side_by_side

RUN = {"run_dir": "runs/luong"}


def folder_of(
    path: Path, made_from: dict[str, Any], lines: Sequence[str] = ("one two",), heads: int = 1, target: str = "m h"
) -> MapFolder:
    """A folder with a map of cross attention for each line."""
    sentences = []
    for line, text in enumerate(lines, start=1):
        pieces = [[f"▁{word}" for word in side.split()] for side in (text, target)]
        labels = site_labels(*pieces)["cross"]
        weights = np.full((1, heads, len(labels.inputs), len(labels.columns)), 1 / len(labels.columns), np.float32)
        cross = AttentionMap(
            site="cross", weights=weights, inputs=labels.inputs, outputs=labels.outputs, columns=labels.columns
        )
        sentences.append(
            SentenceMaps(line=line, rank=1, source_pieces=pieces[0], target_pieces=pieces[1], maps=[cross])
        )
    site = {"layers": 1, "heads": heads, "rows": "target", "columns": "source"}
    method = {"method": made_from["method"]} if "method" in made_from else {}
    return write_maps(path, sentences, {"cross": site | method}, {"lines": len(lines), **made_from})


def texts_of(folders: list[MapFolder], out: Path, **options: Any) -> tuple[list[str], list[str]]:
    """The names of the pictures, and the texts of the first one except for the labels and the color bar."""
    drawings = [
        Drawing(
            sites=folder.manifest["sites"], formats=["svg"], threshold=0.2, sort_by="coverage", site="cross", **options
        )
        for folder in folders
    ]
    out.mkdir(exist_ok=True)
    paths = [Path(path) for path in draw_side_by_side(folders, drawings, out)]
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", paths[0].read_text(encoding="utf-8"))
    return [path.name for path in paths], [
        text for text in texts if not re.fullmatch(r"▁.*|&lt;.*|[\d.]+|weight", text)
    ]


def test_two_runs_share_a_title_and_have_their_own_names(tmp_path: Path) -> None:
    folders = [
        folder_of(tmp_path / "a", RUN),
        folder_of(tmp_path / "b", {"run_dir": "runs/transformer"}, heads=2, target="m h b"),
    ]
    names, texts = texts_of(folders, tmp_path / "out")
    assert names == ["00001.cross.svg"]
    # A name is wrapped to the width of its map.
    assert "Cross attention, line 1" in texts
    assert "luong" in texts
    assert " ".join(texts[texts.index("transformer,") :][:3]).startswith("transformer, mean of 2 heads")
    assert texts_of(folders, tmp_path / "out", width=3.3)[1].count("Cross attention, line 1") == 0


def test_runs_are_named_by_what_differs_in_their_paths(tmp_path: Path) -> None:
    runs = [f"runs/sample_en-vi/{name}/seed1" for name in ("luong_dot", "luong_general")]
    folders = [folder_of(tmp_path / str(number), {"run_dir": run}) for number, run in enumerate(runs)]
    assert {"luong_dot/seed1", "luong_general/seed1"} <= set(texts_of(folders, tmp_path / "out")[1])
    same = [folder_of(tmp_path / name, {"run_dir": runs[0]}) for name in ("maps_a", "maps_b")]
    assert {"maps_a", "maps_b"} <= set(texts_of(same, tmp_path / "same")[1])


def test_attention_and_attribution_are_named_after_their_methods(tmp_path: Path) -> None:
    folders = [folder_of(tmp_path / "a", RUN), folder_of(tmp_path / "b", {**RUN, "method": "occlusion"})]
    _, texts = texts_of(folders, tmp_path / "out")
    assert {"Line 1, luong", "Cross attention", "Occlusion"} <= set(texts)


def test_sentences_that_differ_are_left_out_or_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folders = [
        folder_of(tmp_path / name, {"run_dir": name}, lines)
        for name, lines in {"a": ["one", "two"], "b": ["one", "six"], "c": ["six"]}.items()
    ]
    names, _ = texts_of(folders[:2], tmp_path / "out")
    assert names == ["00001.cross.svg"]
    assert f"1 of 2 sentences are not drawn: {folders[0].path} has 'two' on line 2, but" in caplog.text
    with pytest.raises(Mistake, match=r"has 'one' on line 1, but .* has 'six': maps are drawn side by side"):
        texts_of(folders[::2], tmp_path / "out")


def test_maps_side_by_side_have_one_color_scale_and_fit_the_width(tmp_path: Path) -> None:
    """A weight has the same color in both maps, although only one has the largest weight."""
    panels = [
        Panel("a", np.full((3, 4), 0.2), ["x"] * 4, ["y"] * 3),
        Panel("b", np.full((5, 2), 0.8), ["x"] * 2, ["a_long_label"] * 5),
    ]
    for width in (None, 4.0):
        heat_maps_side_by_side(panels, Look(title="t", dpi=100, width=width)).save(tmp_path / "a.png")
        picture = Image.open(tmp_path / "a.png").convert("RGB")
        colors = [color for _, color in sorted(picture.getcolors(2**20), reverse=True)]
        light, dark = (max(colors[:4], key=sum), min(colors[:4], key=sum))
        assert sum(light) > 700 > 300 > sum(dark)
    assert picture.width == pytest.approx(400, abs=1)
    with pytest.raises(Mistake, match=r"2 maps of 6 columns in all do not fit into 1.0 inches .* use at least \d"):
        heat_maps_side_by_side(panels, Look(width=1.0))


def test_maps_side_by_side_are_never_measured_on_more_pixels_than_a_picture_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each measurement of text makes a canvas of the whole figure."""
    sizes = []

    class Recorded(RendererAgg):
        def __init__(self, width: float, height: float, dpi: float) -> None:
            sizes.append((width, height))
            super().__init__(width, height, dpi)

    monkeypatch.setattr("matplotlib.backends.backend_agg.RendererAgg", Recorded)
    monkeypatch.setattr("nmt.maps.plots._MOST_PIXELS", 300)
    panels = [Panel("a", np.eye(9), ["x"] * 9, ["y"] * 9), Panel("b", np.eye(9), ["x"] * 9, ["z"] * 9)]
    heat_maps_side_by_side(panels, Look(title="t", dpi=1000))
    assert sizes
    # The maps are moved apart after the first measurement, and inches are rounded to pixels.
    assert max(map(max, sizes)) <= 301
