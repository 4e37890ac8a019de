"""Settings that are refused before the search, and how pictures look."""

import re
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from jobs import job_of, run_settings

import nmt.commands.export_attention
from nmt.cli.compose import configuration
from nmt.commands.draw_attention import draw_attention
from nmt.commands.export_attention import export_attention
from nmt.config.job import Job
from nmt.config.shared_settings import DrawingSettings
from nmt.errors import Mistake
from nmt.maps.attention_map import AttentionMap, SentenceMaps, selected, site_labels
from nmt.maps.diagnostics import Measures
from nmt.maps.drawing import Drawing, draw_pictures, draw_tables, layer_and_head
from nmt.maps.links import argmax_links
from nmt.maps.map_files import MapFolder, write_maps
from nmt.maps.symmetrization import pharaoh
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun

SITES = {site: {"layers": 3, "heads": 2, "rows": "target", "columns": "source"} for site in ("encoder_self", "cross")}


drawing_of = partial(Drawing, sites=SITES, formats=["png"], threshold=0.2, sort_by="coverage")


def asked(**changes: Any) -> Job[Any]:
    """A job of nmt.export_attention."""
    paths = {"run_dir": "run", "input": "in.en", "out": "out"}
    return job_of("export_attention", {**configuration("export_attention", []), **paths, **changes})


@pytest.fixture
def fake_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with 3 layers of 2 heads that has no tokenizers and cannot search."""
    absent: Any = None
    fake: Any = type("Fake", (), {})()
    run = LoadedRun(RunDirectory(tmp_path), run_settings(), absent, fake, absent)
    monkeypatch.setattr(nmt.commands.export_attention, "load_run", lambda *_: run)
    monkeypatch.setattr(nmt.commands.export_attention, "described_sites", lambda _: SITES)
    monkeypatch.chdir(tmp_path)
    Path("in.en").write_text("one")


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("layer", -1, "layer is -1; it must be a whole number of at least 0, all, or null for the mean"),
        ("layer", "abc", "layer is abc; it must be a whole number of at least 0, all, or null for the mean"),
        ("head", 1.5, "head is 1.5; it must be a whole number of at least 0"),
        ("head", True, "head is true; it must be a whole number of at least 0"),
        ("formats", ["jpg"], "Unknown formats 'jpg'. Did you mean 'png'? Available: alignments, csv, diagnostics, pdf"),
        ("row", "2", "Unknown row '2'. Available: predicts, reads."),
        ("width", 0.5, "width is 0.5; it must be from 1 to 100 inches"),
        ("threshold", 0, "threshold is 0; it must be above 0 and at most 1"),
        ("max_weight", 1.5, "max_weight is 1.5; it must be above 0 and at most 1"),
        ("max_weight", "x", "max_weight is x; it must be above 0"),
        ("sort_by", "entropi", "Unknown sort_by 'entropi'. Did you mean 'entropy'?"),
        ("sites", [], "sites is an empty list; name at least one, or leave it out for all"),
        ("layers", [], "layers is an empty list; name at least one, or leave it out for all"),
        ("layers", [-1], "layers is -1; it must be a whole number of at least 0"),
        ("max_tokens", 1, "max_tokens is 1; it must be a whole number of at least 2"),
    ],
)
def test_invalid_settings_are_refused(key: str, value: object, sentence: str) -> None:
    with pytest.raises(Mistake, match=re.escape(sentence)):
        asked(**{key: value})


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("layer", 3, "layer is 3; cross has layers 0 to 2: choose one, or leave it out for the mean"),
        ("head", 2, "head is 2; cross has heads 0 to 1"),
        ("site", "self", "There is no attention at site 'self', only at encoder_self, cross"),
        ("site", "decoder_self", "There is no attention at site 'decoder_self'"),
        (
            "sites",
            ["cross", "self"],
            "sites contains 'self', but this model has attention only at encoder_self, cross:",
        ),
        ("layers", [1, 3], "layers contains 3, but encoder_self has layers 0 to 2: choose some of these, or leave out"),
    ],
)
@pytest.mark.usefixtures("fake_run")
def test_what_a_model_lacks_is_refused_before_the_search(key: str, value: object, sentence: str) -> None:
    with pytest.raises(Mistake, match=re.escape(sentence)):
        export_attention(asked(**{key: value}))


@pytest.mark.usefixtures("fake_run")
def test_alignments_need_cross_attention() -> None:
    settings = {"run_dir": "run", "input": "in.en", "out": "out", "sites": ["encoder_self"], "formats": ["alignments"]}
    job = job_of("export_attention", {**configuration("export_attention", []), **settings}, ("sites", "formats"))
    with pytest.raises(
        Mistake, match="formats includes alignments, but sites does not contain cross: leave alignments"
    ):
        export_attention(job)


@pytest.mark.usefixtures("fake_run")
def test_bad_paths_are_refused_before_the_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(nmt.commands.export_attention, "load_run")
    Path("dangling").symlink_to("nowhere")
    Path("loop").symlink_to("loop")
    for name in ("absent", "dangling", "loop"):
        with pytest.raises(Mistake, match=f"input is {name}, which does not exist"):
            export_attention(asked(input=name))
    for name, reason in (
        ("dangling", "dangling is a broken symbolic link; choose another folder"),
        ("loop/maps", "loop is a symbolic link that leads back to itself; choose another folder"),
        ("/proc/maps", "/proc cannot be written to"),
    ):
        with pytest.raises(Mistake, match=f"out is {name}, but {reason}"):
            export_attention(asked(out=name))


@pytest.mark.parametrize(("key", "value"), [("layer", None), ("layer", 2), ("head", "all"), ("site", "all")])
def test_valid_layers_heads_and_sites_are_accepted(key: str, value: object) -> None:
    changes: dict[str, Any] = {"site": "cross", key: value}
    assert drawing_of(**changes).drawn_sites == (list(SITES) if key == "site" else ["cross"])


@pytest.mark.parametrize("changes", [{"layer": 1}, {"head": "all"}])
def test_a_grid_refuses_a_layer_or_head(changes: dict[str, object]) -> None:
    with pytest.raises(Mistake, match="grid=true draws every layer and head; leave out layer and head"):
        asked(grid=True, **changes)


def test_diagnostics_can_be_sorted_by_every_measure() -> None:
    assert get_args(DrawingSettings.model_fields["sort_by"].annotation) == Measures._fields


def test_both_commands_have_the_same_drawing_keys_and_defaults() -> None:
    export, draw = (configuration(name, []) for name in ("export_attention", "draw_attention"))
    keys = set(DrawingSettings.model_fields)
    assert {key: export[key] for key in keys} == {key: draw[key] for key in keys}


def test_the_look_of_a_picture_follows_the_settings() -> None:
    look = drawing_of(max_weight=0.5, width=3.0).look("cross", 3, 1, "")
    assert (look.max_weight, look.width, look.rows, look.columns) == (0.5, 3.0, "target", "source")


@pytest.mark.parametrize(
    ("layer", "head", "detail"),
    [
        (None, None, ", mean of 3 layers and 2 heads"),
        (1, None, ", mean of 2 heads, layer 1"),
        (None, 0, ", mean of 3 layers, head 0"),
        (2, 1, ", layer 2, head 1"),
    ],
)
def test_a_title_names_the_layer_and_head_or_their_mean(layer: int | None, head: int | None, detail: str) -> None:
    assert layer_and_head(("layer", layer, 3), ("head", head, 2)) == detail
    assert layer_and_head(("layer", layer, 1), ("head", head, 1)) == ""


def test_pictures_without_special_pieces_keep_their_weights() -> None:
    sentence = sentence_of({"cross": 1})
    [(_, shown)] = drawing_of(sites={"cross": SITES["cross"]}, special=False).pictured_maps(sentence)
    assert (shown.rows, shown.columns) == (["▁x", "▁y"], ["▁a", "▁b"])
    np.testing.assert_array_equal(shown.weights, sentence.site("cross").weights[..., :2, :2])


def test_a_picture_for_print_has_no_title() -> None:
    titles = {width: drawing_of(width=width).look("cross", 3, 2, ", head 1").title for width in (None, 3.3)}
    assert titles == {None: "Cross attention, line 3, translation 2, head 1", 3.3: ""}


def sentence_of(sites: dict[str, int], line: int = 1) -> SentenceMaps:
    """A sentence of two words with random maps of one head, with the given number of layers at each site."""
    source, target = ["▁a", "▁b"], ["▁x", "▁y"]
    draw, labels = np.random.default_rng(7), site_labels(source, target)
    maps = [
        AttentionMap(site, draw.random((layers, 1, len(labels[site].inputs), len(labels[site].columns))), *labels[site])
        for site, layers in sites.items()
    ]
    return SentenceMaps(line=line, rank=1, source_pieces=source, target_pieces=target, maps=maps)


def folder_of(path: Path, sites: dict[str, int]) -> MapFolder:
    described = {site: {"layers": n, "heads": 1, "rows": "target", "columns": "source"} for site, n in sites.items()}
    return write_maps(path, [sentence_of(sites)], described, {"lines": 1})


def test_links_are_those_of_the_drawn_cross_attention_or_else_of_its_mean(tmp_path: Path) -> None:
    """Another site may have more layers than cross attention."""
    folder = folder_of(tmp_path, {"encoder_self": 3, "cross": 2})
    links = {}
    for site, layer in (("encoder_self", 2), ("encoder_self", None), ("cross", 1), ("cross", None)):
        drawing = drawing_of(sites=folder.manifest["sites"], formats=["alignments"], site=site, layer=layer)
        list(draw_tables(folder, drawing, tmp_path, [1]))
        links[site, layer] = (tmp_path / "alignments" / "argmax.align").read_text()
        weights = selected(next(folder.sentences()).site("cross").weights, layer if site == "cross" else None, None)
        expected = argmax_links(weights[:2, :2])
        assert links[site, layer] == f"{pharaoh(expected)}\n"
    assert links["cross", 1] != links["cross", None], "the two maps must differ, or this test shows nothing"


def test_alignments_of_maps_without_cross_attention_are_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "maps", {"encoder_self": 1})
    settings = {"maps": str(folder.path), "out": str(tmp_path / "out"), "site": "all", "formats": ["alignments"]}
    with pytest.raises(Mistake, match=f"formats includes alignments, but {folder.path} has no maps of cross attention"):
        draw_attention(job_of("draw_attention", {**configuration("draw_attention", []), **settings}))
    assert not (tmp_path / "out").exists()


def test_a_site_without_maps_in_the_drawn_sentences_names_a_remedy(tmp_path: Path) -> None:
    """The first sentence of a document has no maps of earlier sentences."""
    sites = {"cross": 1, "encoder_words": 1}
    described = {site: {"layers": 1, "heads": 1, "rows": "target", "columns": "source"} for site in sites}
    folder = write_maps(tmp_path, [sentence_of({"cross": 1})], described, {"lines": 1})
    drawing = drawing_of(sites=described, site="encoder_words")
    with pytest.raises(
        Mistake,
        match=r"No sentence has maps at encoder_words: choose other lines or another site, or export the maps again "
        r"with documents=FILE\.",
    ):
        list(draw_pictures(folder, drawing, tmp_path, [1]))
