"""The drawings of the documents: how each model is wired, the axes, the data flow, documents and local windows.

  python -m scripts.studies.diagrams            writes docs/images/*.svg
  python -m scripts.studies.diagrams --out DIR

The weights in local_windows.svg come from nmt.attention. Every drawing has a light background of its own, so it can be
read on light and dark pages.
"""

import argparse
import math
from functools import partial
from pathlib import Path
from xml.sax.saxutils import escape

import torch

from nmt.attention import Attention, normalizers, scorers, windows

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
# Fill and stroke of what belongs to the source, the target, attention, and anything else.
COLORS = {
    "source": ("#dce9f7", "#33658a"),
    "target": ("#fde6cc", "#a85a10"),
    "attention": ("#dff0d8", "#3c763d"),
    "plain": ("#eeeeec", "#555753"),
}
STYLE = "font-family: 'DejaVu Sans', Verdana, sans-serif; font-size: 14px; fill: #1a1a1a"
Point = tuple[float, float]


class Drawing:
    """Boxes, arrows and words on a light background, as SVG."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def words(self, x: float, y: float, text: str, *, anchor: str = "middle", size: int = 14, color: str = "") -> None:
        """Lines of text whose middle is y. '_{t}' and '^{k}' make an index."""
        lines = text.split("\n")
        top = y - (len(lines) - 1) * size * 0.65 + size * 0.35
        fill = f"; fill: {color}" if color else ""
        for number, line in enumerate(lines):
            self.parts.append(
                f'<text x="{x:g}" y="{top + number * size * 1.3:.1f}" text-anchor="{anchor}"'
                f' style="font-size: {size}px{fill}">{indexed(line)}</text>'
            )

    def box(self, x: float, y: float, width: float, height: float, text: str, kind: str = "plain") -> None:
        """A box whose upper left corner is (x, y)."""
        fill, stroke = COLORS[kind]
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7" fill="{fill}" stroke="{stroke}"'
            ' stroke-width="1.5"/>'
        )
        self.words(x + width / 2, y + height / 2, text)

    def group(self, x: float, y: float, width: float, height: float, text: str, kind: str = "plain") -> None:
        """A dashed frame with a caption in its upper left corner."""
        stroke = COLORS[kind][1]
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="10" fill="none" stroke="{stroke}"'
            ' stroke-width="1.2" stroke-dasharray="5 4"/>'
        )
        self.words(x + 10, y + 14, text, anchor="start", size=12, color=stroke)

    def arrow(self, *points: Point, kind: str = "plain", text: str = "", at: Point | None = None) -> None:
        """A line through the points with a head at the last one."""
        stroke = COLORS[kind][1]
        (x0, y0), (x1, y1) = points[-2:]
        length = math.hypot(x1 - x0, y1 - y0)
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        path = " ".join(f"{x:g},{y:g}" for x, y in [*points[:-1], (x1 - 6 * dx, y1 - 6 * dy)])
        head = [(x1, y1), (x1 - 9 * dx - 4 * dy, y1 - 9 * dy + 4 * dx), (x1 - 9 * dx + 4 * dy, y1 - 9 * dy - 4 * dx)]
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in head)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="1.6"/>')
        self.parts.append(f'<polygon points="{corners}" fill="{stroke}"/>')
        if text and at:
            self.words(*at, text, size=12, color=stroke)

    def svg(self) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}"'
            f' height="{self.height}" role="img" style="{STYLE}">\n<title>{escape(self.title)}</title>\n'
            f'<rect width="{self.width}" height="{self.height}" rx="12" fill="#fcfcfa"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def indexed(text: str) -> str:
    """Text with its indices as smaller letters below or above the line."""
    shown, rest = "", text
    while rest:
        places = [place for place in (rest.find("_{"), rest.find("^{")) if place >= 0]
        if not places:
            return shown + escape(rest)
        place = min(places)
        end = rest.index("}", place)
        shift = 4 if rest[place] == "_" else -5
        shown += escape(rest[:place])
        shown += f'<tspan dy="{shift}" style="font-size: 70%">{escape(rest[place + 2 : end])}</tspan>'
        rest = rest[end + 1 :]
        if rest:  # back to the line, with a zero-width space if nothing else carries it
            shown += f'<tspan dy="{-shift}">{escape(rest[0])}</tspan>'
            rest = rest[1:]
    return shown


def encoder(drawing: Drawing, caption: str) -> None:
    """The source words and the states of a recurrent encoder, on the left."""
    drawing.group(20, 150, 300, 190, caption, "source")
    for number, word in enumerate(["We", "drink", "tea", "</s>"]):
        x = 36 + number * 70
        drawing.box(x, 285, 58, 34, word, "source")
        drawing.box(x, 190, 58, 38, f"h_{{{number + 1}}}", "source")
        drawing.arrow((x + 29, 285), (x + 29, 230), kind="source")
        if number:
            drawing.arrow((x - 12, 203), (x, 203), kind="source")
            drawing.arrow((x, 215), (x - 12, 215), kind="source")


def attention_and_decoder(drawing: Drawing) -> None:
    """The attention above the encoder, and the frame of the decoder."""
    drawing.box(100, 50, 140, 56, "attention\n(cross)", "attention")
    drawing.arrow((170, 150), (170, 108), kind="source", text="keys, values", at=(216, 130))
    drawing.group(400, 24, 420, 330, "decoder, step t", "target")


def bahdanau() -> Drawing:
    drawing = Drawing(840, 380, "Bahdanau's model: the previous decoder state is the query")
    encoder(drawing, "encoder: bidirectional GRU")
    attention_and_decoder(drawing)
    drawing.box(430, 150, 90, 46, "s_{t-1}", "target")
    drawing.arrow((475, 150), (475, 90), (242, 90), kind="attention", text="query: s_{t-1}", at=(330, 104))
    drawing.box(580, 150, 100, 46, "GRU", "target")
    drawing.arrow((520, 173), (578, 173), kind="target")
    drawing.arrow((680, 173), (740, 173), kind="target")
    drawing.box(740, 150, 64, 46, "s_{t}", "target")
    drawing.box(580, 285, 100, 46, "y_{t-1}", "target")
    drawing.arrow((630, 285), (630, 198), kind="target")
    drawing.arrow((240, 66), (630, 66), (630, 148), kind="attention", text="context c_{t}", at=(330, 54))
    drawing.box(700, 44, 104, 44, "readout", "plain")
    drawing.arrow((630, 66), (698, 66), kind="attention")
    drawing.words(745, 104, "maxout, softmax: y_{t}", size=12)
    drawing.words(745, 119, "also reads s_{t-1}, y_{t-1}", size=12)
    return drawing


def luong() -> Drawing:
    drawing = Drawing(840, 380, "Luong's model: the current decoder state is the query; input feeding")
    encoder(drawing, "encoder: bidirectional LSTM")
    attention_and_decoder(drawing)
    drawing.box(430, 195, 120, 46, "LSTM", "target")
    drawing.box(430, 285, 120, 46, "y_{t-1}", "target")
    drawing.arrow((470, 285), (470, 243), kind="target")
    drawing.box(620, 195, 90, 46, "h_{t}", "target")
    drawing.arrow((550, 218), (618, 218), kind="target")
    drawing.arrow(
        (645, 195), (645, 128), (385, 128), (385, 90), (242, 90), kind="attention", text="query: h_{t}", at=(500, 116)
    )
    drawing.box(600, 44, 180, 46, "h̃_{t} = tanh(W [c_{t}; h_{t}])", "target")
    drawing.arrow((240, 66), (598, 66), kind="attention", text="context c_{t}", at=(330, 54))
    drawing.arrow((690, 195), (690, 92), kind="target")
    drawing.words(690, 34, "softmax: y_{t}", size=12)
    drawing.arrow((765, 90), (765, 308), (552, 308), kind="plain")
    drawing.words(665, 324, "input feeding: h̃_{t} joins the next y", size=12)
    return drawing


def transformer() -> Drawing:
    drawing = Drawing(840, 470, "The Transformer: three attention sites")
    drawing.group(40, 60, 300, 300, "encoder layer, repeated", "source")
    drawing.group(440, 60, 360, 300, "decoder layer, repeated", "target")
    drawing.box(80, 400, 220, 44, "source pieces + positions", "source")
    drawing.box(510, 400, 220, 44, "target pieces + positions", "target")
    drawing.box(80, 270, 220, 56, "self-attention\nencoder_self", "attention")
    drawing.box(80, 120, 220, 56, "feed-forward", "source")
    drawing.box(510, 285, 220, 52, "self-attention to the past\ndecoder_self", "attention")
    drawing.box(510, 190, 220, 52, "attention to the source\ncross", "attention")
    drawing.box(510, 95, 220, 52, "feed-forward", "target")
    drawing.arrow((190, 400), (190, 328), kind="source")
    drawing.arrow((190, 270), (190, 178), kind="source")
    drawing.arrow((620, 400), (620, 339), kind="target")
    drawing.arrow((620, 285), (620, 244), kind="target", text="queries", at=(655, 266))
    drawing.arrow((620, 190), (620, 149), kind="target")
    drawing.arrow(
        (190, 120), (190, 36), (390, 36), (390, 216), (508, 216), kind="source", text="keys, values", at=(436, 204)
    )
    drawing.arrow((620, 95), (620, 42), kind="target")
    drawing.words(620, 26, "softmax: the next piece", size=13)
    for x, bottom, top in ((60, 345, 248), (60, 200, 100), (752, 352, 262), (752, 256, 168), (752, 162, 76)):
        start = 190 if x < 400 else 620
        drawing.parts.append(
            f'<path d="M {start} {bottom} H {x} V {top} H {start}" fill="none" stroke="#888a85" stroke-width="1.2"'
            ' stroke-dasharray="2 3"/>'
        )
    drawing.words(420, 456, "dotted: residual connections around every part, each with a norm", size=12)
    return drawing


def axes() -> Drawing:
    drawing = Drawing(840, 300, "The five axes that the command line swaps")
    columns = [
        ("model=", "who asks, and when", ["bahdanau", "luong", "transformer"], "target"),
        (
            "scorer=",
            "how well a key fits",
            ["additive, concat", "dot, scaled_dot", "general, location", "gaussian, none, ..."],
            "attention",
        ),
        ("window=", "which keys are visible", ["global", "local_m", "local_p"], "attention"),
        ("normalizer=", "scores to weights", ["softmax", "sparsemax"], "attention"),
        ("data=", "what is learned", ["sample", "documents", "files, hub", "envi, iwslt15"], "source"),
    ]
    for number, (key, meaning, choices, kind) in enumerate(columns):
        x = 18 + number * 163
        drawing.box(x, 24, 152, 40, key, kind)
        drawing.words(x + 76, 82, meaning, size=12)
        for row, choice in enumerate(choices):
            drawing.box(x + 6, 104 + row * 40, 140, 32, choice, kind)
    drawing.words(
        420,
        284,
        "python -m nmt.train model=luong scorer=additive window=local_p normalizer=sparsemax data=sample",
        size=13,
    )
    return drawing


def data_flow() -> Drawing:
    drawing = Drawing(840, 330, "How data flows from text to scores and maps")
    top = [("text", "source"), ("pieces", "source"), ("batch", "source"), ("model", "target"), ("loss", "target")]
    labels = ["normalize,\ntokenize", "sort, pad", "", "cross\nentropy"]
    for number, (name, kind) in enumerate(top):
        drawing.box(20 + number * 170, 40, 96, 48, name, kind)
        if number:
            x = 20 + number * 170
            drawing.arrow((x - 74, 64), (x - 2, 64), kind=top[number - 1][1])
            if labels[number - 1]:
                drawing.words(x - 38, 30 if "\n" in labels[number - 1] else 48, labels[number - 1], size=12)
    drawing.words(748, 104, "training", size=12)
    drawing.box(360, 150, 96, 48, "memory", "source")
    drawing.arrow((578, 88), (578, 130), (408, 130), (408, 148), kind="target", text="encode", at=(492, 121))
    drawing.box(530, 150, 96, 48, "search", "target")
    drawing.arrow((456, 174), (528, 174), kind="source")
    drawing.box(700, 150, 116, 48, "translation", "target")
    drawing.arrow((626, 174), (698, 174), kind="target", text="beam", at=(660, 163))
    drawing.box(700, 255, 116, 48, "scores", "plain")
    drawing.arrow((758, 198), (758, 253), kind="target", text="references", at=(796, 228))
    drawing.box(480, 255, 160, 48, "attention maps", "attention")
    drawing.arrow(
        (720, 198), (720, 226), (560, 226), (560, 253), kind="attention", text="once more, watched", at=(636, 214)
    )
    drawing.box(220, 255, 190, 48, "pictures, page, AER", "attention")
    drawing.arrow((480, 279), (412, 279), kind="attention")
    return drawing


def hierarchical() -> Drawing:
    drawing = Drawing(840, 372, "Hierarchical attention: to the words of each earlier sentence, then to the sentences")
    for number, text in enumerate(["sentence -3", "sentence -2", "sentence -1"]):
        x = 30 + number * 200
        drawing.group(x, 235, 180, 100, text, "source")
        for word in range(4):
            drawing.box(x + 12 + word * 41, 270, 34, 44, "", "source")
        drawing.box(x + 30, 150, 120, 44, f"s^{{{number + 1}}}", "attention")
        drawing.arrow((x + 90, 235), (x + 90, 196), kind="source")
        drawing.arrow((x + 90, 150), (x + 90, 98), kind="attention")
    drawing.words(320, 352, "s^{j}: attention to the words of a sentence, encoder_words and decoder_words", size=12)
    drawing.box(60, 52, 500, 44, "attention to the sentences: encoder_sentences, decoder_sentences", "attention")
    drawing.box(660, 235, 150, 60, "h_{t}\nthis sentence", "target")
    drawing.arrow((735, 235), (735, 172), (582, 172), kind="target", text="query", at=(680, 161))
    drawing.arrow((735, 172), (735, 98), kind="target")
    drawing.arrow((620, 172), (620, 84), (562, 84), kind="target")
    drawing.box(660, 44, 150, 52, "gate: h'_{t}", "target")
    drawing.arrow((560, 66), (658, 66), kind="attention", text="d_{t}", at=(610, 54))
    return drawing


def local_windows() -> Drawing:
    """Equal scores over 30 source and 30 target positions, so only the window is seen; D = 4."""
    length, half, cell = 30, 4, 11
    drawing = Drawing(840, 450, "Local windows with D = 4 over 30 positions")
    everything = torch.ones(1, 1, 1, length, dtype=torch.bool)
    keys, position = torch.zeros(1, 1, length, 2).double(), torch.arange(length)[None]
    # A predicted center that moves faster at first: the state of step t, of which W_p and v_p make p_t.
    states = torch.stack([torch.linspace(-2.2, 2.2, length), torch.zeros(length)], dim=-1)[None].double()
    panels = [
        ("window=local_m: |s - t| ≤ D", partial(windows.LocalM, half_width=half), 60),
        (
            "window=local_p: a predicted center, and a Gaussian",
            partial(windows.LocalP, half_width=half, renormalize=False),
            455,
        ),
    ]
    for title, window, left in panels:
        attention = Attention(scorers.NoScore, window, normalizers.Softmax, query_dim=2, key_dim=2).double()
        if isinstance(attention.window, windows.LocalP):
            attention.window.hidden.weight.data = torch.tensor([[1.0, 0.0], [0.0, 0.0]]).double()
            attention.window.place.weight.data = torch.tensor([[1.75, 0.0]]).double()
        with torch.no_grad():
            state = windows.QueryStates(states, position)
            queries = torch.zeros(1, 1, length, 2).double()
            weights = attention.attend(queries, attention.project_keys(keys), keys, everything, state)[1][0, 0]
        drawing.words(left + length * cell / 2, 26, title, size=13)
        drawing.parts.append(
            f'<rect x="{left}" y="60" width="{length * cell}" height="{length * cell}"'
            ' fill="#ffffff" stroke="#555753"/>'
        )
        darkest = weights.max()
        for row, column in weights.nonzero().tolist():
            shade = 0.15 + 0.85 * float(weights[row, column] / darkest)
            drawing.parts.append(
                f'<rect x="{left + column * cell}" y="{60 + row * cell}" width="{cell}" height="{cell}"'
                f' fill="#3c763d" fill-opacity="{shade:.2f}"/>'
            )
        drawing.words(left + length * cell / 2, 50, "source position s", size=12)
        row = 12
        seen = weights[row].nonzero().flatten().tolist()
        start, end, y = left + seen[0] * cell, left + (seen[-1] + 1) * cell, 60 + (row + 0.5) * cell
        drawing.parts.append(
            f'<rect x="{start}" y="{60 + row * cell}" width="{end - start}" height="{cell}" fill="none"'
            ' stroke="#a40000" stroke-width="1.6"/>'
        )
        drawing.words(
            end + 8,
            y,
            "2 D + 1 positions" if end - start == (2 * half + 1) * cell else "2 D wide",
            anchor="start",
            size=12,
            color="#a40000",
        )
        drawing.parts.append(
            f'<text transform="translate({left - 12} {60 + length * cell / 2}) rotate(-90)" text-anchor="middle"'
            ' style="font-size: 12px">target position t</text>'
        )
    drawing.words(
        420, 424, "equal scores, so the shade shows the window alone; white cells have a weight of exactly 0", size=12
    )
    return drawing


DRAWINGS = {
    "bahdanau": bahdanau,
    "luong": luong,
    "transformer": transformer,
    "axes": axes,
    "data_flow": data_flow,
    "hierarchical": hierarchical,
    "local_windows": local_windows,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder to write to (default: docs/images)")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWINGS.items():
        (out / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")
        print(out / f"{name}.svg")


if __name__ == "__main__":
    main()
