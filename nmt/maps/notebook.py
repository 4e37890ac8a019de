"""Attention maps in a notebook: as HTML that needs no script and no network, as axes of matplotlib, as a table."""

import base64
import html
import os
import unicodedata
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np
from jaxtyping import Float
from PIL import Image

from nmt.errors import Mistake
from nmt.maps.attention_map import BOS, EOS, AttentionMap, check_layer_or_head, map_at, selected
from nmt.maps.words import PieceRow, labeled, text_of

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

_CELL, _LETTER, _LONGEST = 24, 7.5, 18  # pixels, and letters in a label
_THUMBNAIL = 72
_CELL_INCHES, _MARGIN = 0.34, 0.06  # of a figure, in inches
_MOST_SENTENCES = 10
"""Further sentences would make the notebook too large to open."""
_MOST_CELLS = 2500
"""A larger map is one picture without tooltips, which would take 200 bytes for each cell."""
# Notebooks are dark or light; a map is on white paper in both.
_STYLE = "padding:8px 12px;background:#fff;color:#1d1b22;font:14px/1.5 system-ui,sans-serif;color-scheme:light"
_MUTED = "color:#625e6b;font-size:12px"
_TEXTS = {
    "en": {
        "more": "{} more: add {} to what you displayed.",
        "none": "no maps, because a side is empty or too long for the model.",
        "mean": "mean of {} × {} heads; rows: {}, columns: {}; dark: a large weight",
        "layer": "layer",
        "head": "head",
        "source": "source",
        "target": "target",
        "earlier source": "earlier source",
        "earlier target": "earlier target",
        "earlier sentences": "earlier sentences",
    },
    "vi": {
        "more": "còn {} câu nữa: hãy thêm {} vào sau biểu thức vừa hiển thị.",
        "none": "không có bản đồ, vì một bên trống hoặc quá dài cho mô hình.",
        "mean": "trung bình của {} × {} đầu chú ý; hàng: {}, cột: {}; màu đậm: trọng số lớn",
        "layer": "tầng",
        "head": "đầu",
        "source": "nguồn",
        "target": "đích",
        "earlier source": "nguồn của các câu trước",
        "earlier target": "đích của các câu trước",
        "earlier sentences": "các câu trước",
    },
}


def _text(name: str, *values: object) -> str:
    """A text in Vietnamese if the kernel's locale is Vietnamese, as in LANG=vi_VN.UTF-8; otherwise in English.

    Notebooks run no script of an output, so the browser's language cannot be asked for.
    """
    # The first of these that is set counts, as in every program of a Unix system.
    locales = (os.environ.get(variable) for variable in ("LC_ALL", "LC_MESSAGES", "LANG"))
    language = "vi" if next(filter(None, locales), "").startswith("vi") else "en"
    return _TEXTS[language][name].format(*values)


class SiteMaps(list[AttentionMap]):
    """The maps of one sentence pair, one for each site, such as maps["cross"]; a notebook displays them."""

    @overload
    def __getitem__(self, index: SupportsIndex | str) -> AttentionMap: ...

    @overload
    def __getitem__(self, index: slice) -> "SiteMaps": ...

    def __getitem__(self, index: Any) -> Any:
        """The map at a position or of a site. Raises Mistake for a site that the maps lack."""
        if isinstance(index, str):
            return map_at(index, self)
        item = super().__getitem__(index)
        return SiteMaps(item) if isinstance(index, slice) else item

    def __repr__(self) -> str:
        return "[" + ",\n ".join(map(repr, self)) + "]"

    def _repr_html_(self) -> str:
        return LineMaps([self])._repr_html_()


class LineMaps(list[SiteMaps]):
    """The maps of several sentence pairs, a list for each pair, which a notebook displays."""

    def __init__(self, pairs: Iterable[Iterable[AttentionMap]] = ()) -> None:
        super().__init__(SiteMaps(maps) for maps in pairs)

    @overload
    def __getitem__(self, index: SupportsIndex) -> SiteMaps: ...

    @overload
    def __getitem__(self, index: slice) -> "LineMaps": ...

    def __getitem__(self, index: Any) -> Any:
        """The maps of a sentence pair or, for a slice, several of them, which a notebook displays too."""
        if isinstance(index, str):
            raise Mistake(
                f"The maps of a sentence come first: write maps[0]['{index}'] for that site of the first sentence."
            )
        item = super().__getitem__(index)
        return LineMaps(item) if isinstance(index, slice) else item

    def __repr__(self) -> str:
        pairs = [repr(maps).replace("\n", "\n ") for maps in self[:_MOST_SENTENCES]]
        rest = len(self) - _MOST_SENTENCES
        if rest > 0:
            pairs.append(f"... {rest} more")
        return "[" + ",\n ".join(pairs) + "]"

    def _repr_html_(self) -> str:
        shown = "".join(_pair_html(number, maps) for number, maps in enumerate(self[:_MOST_SENTENCES]))
        rest = len(self) - _MOST_SENTENCES
        if rest > 0:
            shown += f"<p>{_text('more', rest, f'[{_MOST_SENTENCES}:]')}</p>"
        return f'<div style="{_STYLE}">{shown}</div>'


def map_html(item: AttentionMap) -> str:
    """A map between words, averaged over layers and heads, and below it a small one for each layer and head."""
    return f'<div style="{_STYLE}">{_map_html(item)}</div>'


def plot_map(
    item: AttentionMap,
    layer: int | None = None,
    head: int | None = None,
    *,
    row: PieceRow = "predicts",
    words: bool = True,
    title: str = "",
    axes: Any = None,
) -> "matplotlib.axes.Axes":
    """Draws a map on `axes`, by default on those of a new figure, and returns them."""
    from matplotlib import pyplot  # takes half a second to load, and its figures are windows on some machines

    from nmt.maps.plots import Look, draw_on

    check_layer_or_head("layer", layer, item.weights.shape[0], item.site)
    check_layer_or_head("head", head, item.weights.shape[1], item.site)
    shown = labeled(item, row, words=words)
    weights = selected(shown.weights, layer, head)
    rows, columns = item.sides
    look = Look(title=title, rows=rows, columns=columns)
    if axes is not None:
        draw_on(axes, weights, shown.columns, shown.rows, look)
        return axes
    # A figure that is as large as the map; once the text around the map is known, it becomes as large as both.
    high, wide = (_CELL_INCHES * number for number in weights.shape)
    whole = {"left": 0, "right": 1, "bottom": 0, "top": 1}
    figure, axes = pyplot.subplots(figsize=(wide, high), layout="constrained", gridspec_kw=whole)
    # The layout does not count a title that is wider than the map, so its room is on the right.
    axes.set_anchor("W")
    draw_on(axes, weights, shown.columns, shown.rows, look)
    figure.set_size_inches(figure.get_tightbbox().padded(_MARGIN).size)
    return axes


def frame_of(item: AttentionMap, row: PieceRow = "predicts") -> "pandas.DataFrame":
    """A table with a row for each weight. Raises Mistake if pandas is not installed."""
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise Mistake("to_frame needs pandas, which is not installed; run pip install pandas first.") from error
    layers, heads, rows, columns = (axis.ravel() for axis in np.indices(item.weights.shape))
    row_labels = item.inputs if row == "reads" else item.outputs
    values: dict[str, Any] = {
        "site": item.site,
        "layer": layers,
        "head": heads,
        "row": rows,
        "row_label": np.array(row_labels, dtype=object)[rows],
        "column": columns,
        "column_label": np.array(item.columns, dtype=object)[columns],
        "weight": item.weights.ravel(),
    }
    if item.attribution is not None:
        values["attribution"] = item.attribution.ravel()
    return pandas.DataFrame(values)


def _pair_html(number: int, maps: Sequence[AttentionMap]) -> str:
    if not maps:
        return f"<p>{number}: {_text('none')}</p>"
    texts = []
    by_site = {item.site: item for item in maps}
    first = by_site.get("cross", maps[0])
    for pieces in (first.columns, first.outputs):
        # A mark of direction in one text must not turn the other one round.
        text = f"<bdi>{html.escape(text_of([piece for piece in pieces if piece not in (BOS, EOS)]))}</bdi>"
        if text not in texts:  # an encoder's map has one sentence on both sides
            texts.append(text)
    sites = sorted(maps, key=lambda item: item.site != "cross")
    details = "".join(
        f'<details{" open" if item is sites[0] else ""}><summary style="cursor:pointer">{html.escape(item.site)}'
        f"</summary>{_map_html(item)}</details>"
        for item in sites
    )
    return f'<div style="margin-bottom:12px"><b>{" → ".join(texts)}</b>{details}</div>'


def _map_html(item: AttentionMap) -> str:
    shown = labeled(item, words=True)
    layers, heads = item.weights.shape[:2]
    drawing = _drawing(selected(shown.weights, None, None), shown.rows, shown.columns)
    if layers * heads == 1:
        return f'<div style="overflow-x:auto">{drawing}</div>'
    most = float(item.weights.max())
    in_layer = [f"{_text('layer')} {layer}" for layer in range(layers)]
    of_head = [f"{_text('head')} {head}" for head in range(heads)]
    table = "".join(
        f'<tr><th style="{_MUTED};text-align:left;padding-right:6px">{in_layer[layer]}</th>'
        + "".join(
            f'<td style="padding:2px">'
            f"{_thumbnail(item.weights[layer, head], most, f'{in_layer[layer]}, {of_head[head]}')}</td>"
            for head in range(heads)
        )
        + "</tr>"
        for layer in range(layers)
    )
    names = "".join(f'<th style="{_MUTED}">{name}</th>' for name in of_head)
    caption = _text("mean", layers, heads, *map(_text, item.sides))
    return (
        f'<div style="{_MUTED}">{caption}</div><div style="overflow-x:auto">{drawing}'
        '<table style="border-collapse:collapse;margin-top:6px">'
        f"<tr><td></td>{names}</tr>{table}</table></div>"
    )


def _drawing(weights: Float[np.ndarray, "rows columns"], rows: Sequence[str], columns: Sequence[str]) -> str:
    """A map as SVG, with the exact weight of each cell as its tooltip if there are not too many."""
    left = 12 + max(map(_width, rows))
    top = 12 + round(0.71 * max(map(_width, columns)))
    # The last labels, which are slanted, end to the right of the cells.
    over = max(0.71 * _width(text) - (len(columns) - number - 0.5) * _CELL for number, text in enumerate(columns))
    wide, high = round(left + _CELL * len(columns) + max(over, 4)), top + _CELL * len(rows) + 4
    colors = _colors(weights, float(weights.max()))
    text = 'font-family="system-ui,sans-serif" font-size="13" fill="#1d1b22"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        'role="img">'
    ]
    for number, label in enumerate(columns):
        at = f"translate({left + (number + 0.5) * _CELL:g} {top - 6}) rotate(-45)"
        parts.append(f'<text {text} transform="{at}">{_short(label)}</text>')
    for number, label in enumerate(rows):
        y = top + (number + 0.5) * _CELL + 4.5
        parts.append(f'<text {text} x="{left - 6}" y="{y:g}" text-anchor="end">{_short(label)}</text>')
    if weights.size > _MOST_CELLS:
        parts.append(
            f'<image x="{left}" y="{top}" width="{_CELL * len(columns)}" height="{_CELL * len(rows)}" '
            f'href="{_picture(colors)}" preserveAspectRatio="none" style="image-rendering:pixelated"/></svg>'
        )
        return "".join(parts)
    for (i, j), weight in np.ndenumerate(weights):
        red, green, blue = colors[i, j]
        x, y = left + j * _CELL, top + i * _CELL
        tip = html.escape(f"{rows[i]} → {columns[j]}: {weight:.3f}")
        parts.append(
            f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" fill="#{red:02x}{green:02x}{blue:02x}" '
            f'stroke="#e4e1e8" stroke-width="1"><title>{tip}</title></rect>'
        )
    return "".join(parts) + "</svg>"


def _thumbnail(weights: Float[np.ndarray, "rows columns"], most: float, name: str) -> str:
    """A small picture of a map, one pixel for each weight."""
    high = round(_THUMBNAIL * min(max(weights.shape[0] / weights.shape[1], 0.5), 2))
    return (
        f'<img src="{_picture(_colors(weights, most))}" alt="{name}" title="{name}" width="{_THUMBNAIL}" '
        f'height="{high}" style="image-rendering:pixelated;border:1px solid #e4e1e8;max-width:none">'
    )


def _picture(colors: np.ndarray) -> str:
    """The address of a picture with a pixel for each cell, which contains the picture itself."""
    file = BytesIO()
    Image.fromarray(colors).save(file, "png")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"


def _colors(weights: Float[np.ndarray, "rows columns"], most: float) -> np.ndarray:
    """Red, green and blue of each weight, as in all pictures of maps."""
    from nmt.maps.plots import COLORS

    return COLORS(weights / max(most, 1e-6), bytes=True)[..., :3]


def _width(text: str) -> float:
    """About the width of a label in pixels."""
    return _LETTER * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text[:_LONGEST])


def _short(text: str) -> str:
    return html.escape(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
