"""nmt.draw_attention on exported maps."""

from pathlib import Path
from typing import Any

import pytest
from attention_runs import export, job
from jobs import job_of

from nmt.cli.compose import configuration
from nmt.commands.attribute import attribute
from nmt.commands.draw_attention import draw_attention
from nmt.errors import Mistake


def test_exported_maps_are_drawn_without_the_run(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export("maps_transformer", tmp_path / "maps", target="in.vi", formats=[])
    capsys.readouterr()
    common = {"maps": str(tmp_path / "maps"), "out": str(tmp_path / "out"), "lines": [3]}
    draw_attention(job("draw_attention", **common, formats=["png"], grid=True, site="encoder_self"))
    draw_attention(job("draw_attention", **common, formats=["svg"], head=1))
    draw_attention(job("draw_attention", **common, formats=["pdf"], words=True, width=3.3, layer=0, head=1))
    printed = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    assert printed == ["00003.encoder_self.grid.png", "00003.cross.head1.svg", "00003.cross.layer0.head1.pdf"]
    pictures = tmp_path / "out" / "pictures"
    assert all((pictures / name).is_file() for name in printed)
    assert ">Cross attention, line 3, " in (pictures / printed[1]).read_text(encoding="utf-8")


def test_maps_without_cross_attention_are_drawn_at_their_sites(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(export("maps_transformer", tmp_path / "maps", sites=["encoder_self"], formats=[]).path)
    capsys.readouterr()
    draw_attention(job("draw_attention", maps=folder, formats=["svg"], lines=[3]))
    draw_attention(job("draw_attention", maps=[folder, folder], formats=["svg"], lines=[3], out=str(tmp_path / "both")))
    assert [Path(line).name for line in capsys.readouterr().out.split()] == ["00003.encoder_self.svg"] * 2
    both = str(export("maps_transformer", tmp_path / "two_sites", sites=["encoder_self", "cross"], formats=[]).path)
    capsys.readouterr()
    draw_attention(job("draw_attention", maps=[both, folder], formats=["svg"], lines=[3], out=str(tmp_path / "mixed")))
    assert [Path(line).name for line in capsys.readouterr().out.split()] == ["00003.encoder_self.svg"]
    given = job_of("draw_attention", {**configuration("draw_attention", []), "maps": folder}, given=("site",))
    with pytest.raises(Mistake, match="There is no attention at site 'cross', only at encoder_self"):
        draw_attention(given)


def test_a_map_too_wide_for_the_page_is_skipped_with_a_warning(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (here / "long.en").write_text("one two three " * 9 + "\nthree\n")
    (here / "short.vi").write_text("ba\nba\n")
    export("maps_luong", tmp_path, input="long.en", target="short.vi", formats=["pdf"], width=2)
    printed = [str(tmp_path / name) for name in ("manifest.json", "pictures/00002.cross.pdf")]
    assert capsys.readouterr().out.splitlines() == printed
    assert "00001.cross is not drawn: A picture of" in caplog.text


def test_several_folders_make_one_page(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(export(f"maps_{name}", tmp_path / name, formats=[]).path) for name in ("luong", "transformer")]
    capsys.readouterr()
    draw_attention(job("draw_attention", maps=folders, formats=["viewer"], out=str(tmp_path / "both")))
    assert capsys.readouterr().out.split() == [str(tmp_path / "both" / "viewer.html")]
    page = (tmp_path / "both" / "viewer.html").read_text(encoding="utf-8")
    assert "maps_luong" in page
    assert "maps_transformer" in page


def test_several_folders_make_a_picture_of_each_sentence(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"target": "in.vi", "formats": []}
    export("maps_luong", tmp_path / "maps", **given)
    explained = {"run_dir": "maps_luong", "input": "in.en", "out": str(tmp_path / "why"), "device": "cpu"}
    attribute(job("attribute", method="occlusion", **explained, **given))
    capsys.readouterr()
    # The head is that of the attention: an attribution has a single map.
    folders = [str(tmp_path / "maps"), str(tmp_path / "why")]
    draw_attention(job("draw_attention", maps=folders, formats=["svg"], head=1, out=str(tmp_path / "both")))
    printed = [Path(line) for line in capsys.readouterr().out.split()]
    assert [path.name for path in printed] == ["00001.cross.svg", "00003.cross.svg"]
    text = printed[0].read_text(encoding="utf-8")
    assert "Line 1, maps_luong" in text
    assert "Occlusion" in text


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"maps": "nowhere"}, "nowhere is not a folder of attention maps"),
        ({"maps": []}, "maps is an empty list"),
        ({"maps": ["MAPS", "MAPS"], "formats": ["csv"]}, "formats includes csv, which shows a single folder of maps"),
        ({"maps": ["MAPS", "MAPS"], "head": "all"}, "Pictures of 2 folders show one map of each, so head=all cannot"),
        ({"maps": ["MAPS", "MAPS"], "grid": True}, "show one map of each, so grid=true cannot be drawn"),
        ({"maps": "MAPS", "formats": ["gif"]}, "was not recorded during training, so it cannot be part of a film"),
        ({"maps": ["MAPS", "MAPS"], "formats": ["viewer"]}, "out is not given"),
        ({"maps": "PROBES", "formats": ["gif"]}, "out is not given; name a folder for the film"),
        (
            {"maps": "PROBES", "formats": ["gif", "png"], "layer": "all", "out": "films"},
            "formats includes png and gif; pictures made together with a film show one map, so layer=all cannot be",
        ),
        ({"maps": "MAPS", "formats": []}, "formats is an empty list; name at least one format"),
        ({"maps": "MAPS", "site": "encoder_self"}, "There is no attention at site 'encoder_self', only at cross"),
        ({"maps": "MAPS", "lines": [0]}, "it must be a list of line numbers, counted from 1"),
        ({"maps": "MAPS", "lines": []}, r"lines is \[\]; it must be a list of line numbers, counted from 1"),
        (
            {"maps": "MAPS", "width": 1.0},
            r"No picture could be drawn\. A picture of \d+ columns does not fit into 1\.0 inches .* use at least \d",
        ),
        ({"maps": "MAPS", "lines": [2]}, "has no maps for line 2"),
        ({"maps": "MAPS", "out": "maps_luong/probes/step_0000002"}, "which contains other maps; choose another folder"),
        ({"maps": "MAPS", "layer": 7}, "layer is 7; cross has only layer 0: choose one, or leave it out"),
    ],
)
def test_settings_that_cannot_be_drawn_are_refused(
    here: Path, tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    path = str(export("maps_luong", tmp_path, formats=[]).path)
    given = changes["maps"]
    changes = changes | {
        "maps": [path] * len(given)
        if isinstance(given, list)
        else given.replace("MAPS", path).replace("PROBES", "maps_luong/probes/step_0000002")
    }
    with pytest.raises(Mistake, match=sentence):
        draw_attention(job("draw_attention", **changes))


def test_folders_with_different_sentences_are_warned_of(
    here: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (here / "other.en").write_text("two\n")
    folders = [
        str(export("maps_luong", tmp_path / name, input=name, formats=[]).path) for name in ("in.en", "other.en")
    ]
    draw_attention(job("draw_attention", maps=folders, formats=["viewer"], out=str(tmp_path / "both")))
    assert f"Line 1 of {folders[1]} differs from line 1 of {folders[0]}" in caplog.text
