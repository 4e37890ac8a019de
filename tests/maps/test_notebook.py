"""Attention maps in a notebook: HTML, axes and tables."""

import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from nmt.errors import Mistake
from nmt.maps.attention_map import BOS, EOS, AttentionMap
from nmt.maps.notebook import LineMaps

PIECES = ["▁chú", "ng", "▁<i>", EOS]
SOURCE = ["▁w", "e", "▁drink", EOS]


def cross(layers: int = 2, heads: int = 3) -> AttentionMap:
    weights = np.random.default_rng(0).dirichlet(np.ones(4), size=(layers, heads, 4)).astype(np.float32)
    return AttentionMap("cross", weights, [BOS, *PIECES[:-1]], PIECES, SOURCE)


def parsed(html: str) -> ElementTree.Element:
    """The HTML, which is also XML except for the elements that have no end."""
    return ElementTree.fromstring(re.sub(r"(<img [^>]*)>", r"\1/>", html))


def test_a_notebook_shows_the_mean_map_between_words_and_every_head() -> None:
    item = cross()
    page = parsed(item._repr_html_())
    svg = "{http://www.w3.org/2000/svg}"
    assert [text.text for text in page.iter(f"{svg}text")] == ["we", "drink", EOS, "chúng", "<i>", EOS]
    tips = [tip.text for tip in page.iter(f"{svg}title")]
    # A word's row is the mean of its pieces' rows, and its column the sum of theirs.
    expected = item.weights.mean((0, 1))[:2, :2].sum(1).mean()
    assert tips[0] == f"chúng → we: {expected:.3f}"
    assert len(tips) == 9
    assert [image.get("title") for image in page.iter("img")][:4] == [
        "layer 0, head 0",
        "layer 0, head 1",
        "layer 0, head 2",
        "layer 1, head 0",
    ]


def test_what_a_notebook_shows_needs_no_script_and_no_network() -> None:
    page = LineMaps([[cross()], [cross(1, 1)], []])._repr_html_()
    assert "<script" not in page
    assert "<i>" not in page, "text is escaped"
    addresses = re.findall(r"(?:src|href|url)\W+([^\s\"')]{0,20})", page)
    assert {address.partition(";")[0] for address in addresses} == {"data:image/png"}
    assert set(re.findall(r"https?://[^\s\"']+", page)) == {"http://www.w3.org/2000/svg"}


def test_a_map_of_many_words_is_a_picture_so_that_the_notebook_stays_small() -> None:
    """A notebook stores all maps of ten sentences, open or not."""
    words = [*(f"▁{number}" for number in range(200)), EOS]
    weights = np.random.default_rng(0).dirichlet(np.ones(201), size=(1, 1, 201)).astype(np.float32)
    html = AttentionMap("cross", weights, [BOS, *words[:-1]], words, words)._repr_html_()
    assert len(html) < 300_000
    page = parsed(html)
    svg = "{http://www.w3.org/2000/svg}"
    assert len(list(page.iter(f"{svg}text"))) == 402, "it has all labels"
    [picture] = page.iter(f"{svg}image")
    assert (picture.get("width"), picture.get("height")) == (str(24 * 201), str(24 * 201))
    assert picture.get("href").startswith("data:image/png;base64,")


def test_marks_of_direction_in_a_sentence_do_not_reach_the_other_one() -> None:
    item = cross(1, 1)
    changed = AttentionMap("cross", item.weights, item.inputs, item.outputs, ["▁\u202ew", *SOURCE[1:]])
    assert "<bdi>\u202ewe drink</bdi> → <bdi>chúng &lt;i&gt;</bdi>" in LineMaps([[changed]])._repr_html_()


def test_a_list_of_maps_shows_each_sentence_with_cross_attention_open() -> None:
    encoder = AttentionMap("encoder_self", cross().weights, SOURCE, SOURCE, SOURCE)
    html = LineMaps([[encoder, cross()], []])._repr_html_()
    assert re.findall(r"<details( open)?><summary[^>]*>(\w+)", html) == [(" open", "cross"), ("", "encoder_self")]
    page = parsed(html.replace("<details open>", "<details>"))
    assert ["".join(title.itertext()) for title in page.iter("b")] == ["we drink → chúng <i>"]
    assert "1: no maps, because a side is empty or too long for the model." in "".join(page.itertext())
    maps = LineMaps([[cross(1, 1)]] * 12)
    assert maps._repr_html_().count("<b>") == 10
    assert "2 more: add [10:] to what you displayed." in maps._repr_html_()
    assert maps[10:]._repr_html_().count("<b>") == 2


def test_the_maps_of_a_sentence_are_found_by_site_and_print_on_a_line_each() -> None:
    encoder = AttentionMap("encoder_self", cross().weights, SOURCE, SOURCE, SOURCE)
    maps = LineMaps([[encoder, cross()], []])
    assert maps[0]["cross"] is maps[0][1]
    assert isinstance(maps[0], list)
    assert repr(maps[0]["cross"]) == "AttentionMap(site='cross', layers=2, heads=3, rows=4, columns=4)"
    assert repr(maps) == f"[[{maps[0][0]!r},\n  {maps[0][1]!r}],\n []]"
    assert repr(LineMaps([[]] * 12)).endswith("[],\n ... 2 more]")
    assert maps[0]._repr_html_() == maps[:1]._repr_html_()
    assert repr(maps[0][1:]["cross"]) == repr(cross())
    with pytest.raises(Mistake, match=r"^There are no maps at site 'crs', only at encoder_self, cross; choose one\.$"):
        maps[0]["crs"]
    with pytest.raises(Mistake, match=r"^There is no map at site 'cross': a side of the pair is empty or too long"):
        maps[1]["cross"]
    with pytest.raises(Mistake, match=r"write maps\[0\]\['cross'\] for that site of the first sentence"):
        LineMaps.__getitem__(maps, "cross")  # type: ignore[call-overload]


def test_a_kernel_with_a_vietnamese_locale_shows_vietnamese(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(variable, raising=False)
    maps = LineMaps([[cross()]] * 12 + [[]])
    assert "mean of" in maps._repr_html_()
    monkeypatch.setenv("LANG", "vi_VN.UTF-8")
    html = maps._repr_html_()
    assert "trung bình của" in html
    assert "còn 3 câu nữa: hãy thêm [10:] vào sau biểu thức vừa hiển thị." in html
    assert "không có bản đồ" in maps[12:]._repr_html_()
    assert not re.search(r"\b(mean|layer|head|more)\b", re.sub("<[^>]*>", " ", html))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert "mean of" in maps._repr_html_(), "LC_ALL counts more than LANG"


def test_a_map_is_drawn_on_axes_that_are_returned() -> None:
    item = cross()
    axes = item.plot(layer=1, head=2, words=False, title="drawn")
    np.testing.assert_array_equal(axes.get_images()[0].get_array(), item.weights[1, 2])
    assert [label.get_text() for label in axes.get_yticklabels()] == PIECES
    assert [label.get_text() for label in axes.get_xticklabels()] == SOURCE
    assert axes.get_title(loc="left") == "drawn"
    from matplotlib import pyplot

    given = pyplot.figure().add_subplot()
    assert item.plot(row="reads", axes=given) is given
    assert [label.get_text() for label in given.get_yticklabels()] == [BOS, "chúng", "<i>"]
    pyplot.close("all")
    assert (given.get_ylabel(), given.get_xlabel()) == ("target", "source")
    with pytest.raises(Mistake, match="head is 3; cross has heads 0 to 2: choose one, or leave it out for the mean"):
        item.plot(head=3)


@pytest.mark.parametrize("title", ["", "a title that is much wider than the map"])
def test_the_color_bar_is_as_high_as_the_map_and_nothing_is_cut_off(title: str) -> None:
    from matplotlib import pyplot

    new = cross().plot(title=title)
    given = pyplot.figure(figsize=(5, 4)).add_subplot()
    for axes in (new, cross().plot(axes=given)):
        axes.figure.canvas.draw()
        (bar,) = axes.child_axes
        map_box, bar_box = axes.get_window_extent(), bar.get_window_extent()
        assert (bar_box.y0, bar_box.y1) == pytest.approx((map_box.y0, map_box.y1), abs=1)
        assert bar_box.x0 > map_box.x1
        assert map_box.width == pytest.approx(map_box.height, abs=1), "cells are square"
        assert axes.get_in_layout()
    width, height = new.figure.get_size_inches()
    tight = new.figure.get_tightbbox()
    pyplot.close("all")
    edges = (tight.x0, tight.y0, width - tight.x1, height - tight.y1)
    assert all(0 <= edge < 0.15 for edge in edges), edges


@pytest.mark.parametrize(
    ("site", "rows", "columns", "in_vietnamese"),
    [
        ("encoder_self", "source", "source", "hàng: nguồn, cột: nguồn"),
        ("decoder_self", "target", "target", "hàng: đích, cột: đích"),
        ("encoder_words", "source", "earlier source", "hàng: nguồn, cột: nguồn của các câu trước"),
        ("context", "target", "earlier sentences", "hàng: đích, cột: các câu trước"),
    ],
)
def test_rows_and_columns_are_called_what_they_are_at_the_site(
    site: str, rows: str, columns: str, in_vietnamese: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib import pyplot

    item = AttentionMap(site, cross().weights, SOURCE, SOURCE, SOURCE)
    axes = item.plot()
    assert (axes.get_ylabel(), axes.get_xlabel()) == (rows, columns)
    pyplot.close("all")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert f"rows: {rows}, columns: {columns};" in item._repr_html_()
    monkeypatch.setenv("LC_ALL", "vi_VN.UTF-8")
    assert f"{in_vietnamese};" in item._repr_html_()


def test_a_map_becomes_a_table_with_a_row_for_each_weight() -> None:
    item = cross()
    frame = item.to_frame()
    assert list(frame.columns) == ["site", "layer", "head", "row", "row_label", "column", "column_label", "weight"]
    assert len(frame) == item.weights.size
    one = frame.query("layer == 1 and head == 2").pivot(index="row", columns="column", values="weight")
    np.testing.assert_array_equal(one.to_numpy(), item.weights[1, 2])
    assert list(frame.row_label[:5]) == [*["▁chú"] * 4, "ng"]
    assert list(frame.column_label[:4]) == SOURCE
    assert list(item.to_frame("reads").row_label[:1]) == [BOS]
    signed = AttentionMap("cross", item.weights, item.inputs, item.outputs, item.columns, attribution=-item.weights)
    assert (signed.to_frame().attribution == -signed.to_frame().weight).all()


def test_without_pandas_a_sentence_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(Mistake, match="to_frame needs pandas, which is not installed; run pip install pandas first"):
        cross().to_frame()


def test_a_layer_that_a_map_lacks_is_refused_with_those_that_it_has() -> None:
    for layer in (-1, 2):
        expected = rf"^layer is {layer}; cross has layers 0 to 1: choose one, or leave it out for the mean\.$"
        with pytest.raises(Mistake, match=expected):
            cross().plot(layer=layer)
    with pytest.raises(
        Mistake, match=r"^head is 1; cross has only head 0: choose one, or leave it out for the mean\.$"
    ):
        cross(1, 1).plot(head=1)
