"""The picture of a cell: its numbers multiply and sum up to the answer, for every scorer, window and normalizer."""

import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from attention_parts import SCORERS, WINDOWS
from watched_page import tips

from nmt.attention import normalizers
from nmt.insight.cells import cells
from nmt.runs.load import load_run

# Checking annotations would slow down the server, which runs in this process.
pytestmark = pytest.mark.unchecked

COMBINED = [
    *((scorer, window, "softmax") for scorer, window in zip(SCORERS, 3 * [*WINDOWS], strict=False)),
    ("dot", "local_p", "sparsemax"),
    ("general", "renormalized", "sparsemax"),
    ("additive", "global", "sparsemax"),
]
# The answer has float32 numbers of size up to 10, and each sum has at most 12 terms.
CLOSE = 12 * 10 * float(torch.finfo(torch.float32).eps)
DRAW = """async (cell) => {
    const { drawCell } = await import("/page/lab/cell_picture.js");
    drawCell(cell, "row", 2, () => {});
    return [...document.querySelectorAll("#picture [data-value]")].map(({ dataset }) => ({ ...dataset }));
}"""
OPEN = "/#run=maps_transformer&text=one two three.&unit=pieces&layer=0&head=1&row=1&column=2"


class Drawn(NamedTuple):
    """The numbers of a picture by part; rows are keys, where a part has several."""

    parts: list[dict[str, str]]

    def numbers(self, part: str) -> np.ndarray:
        """In the order of the page: from top to bottom, from left to right."""
        return np.array([float(one["value"]) for one in self.parts if one["part"] == part and "sum" not in one])

    def rows(self, part: str, keys: int) -> np.ndarray:
        return self.numbers(part).reshape(keys, -1)

    @property
    def score(self) -> float:
        """What is written beside the products."""
        [score] = [float(one["value"]) for one in self.parts if one["part"] == "e" and "sum" in one]
        return score


def open_picture(page: Any, address: str = OPEN) -> None:
    page.goto(address)
    page.locator("#results[aria-busy='false'] #intact .map svg").wait_for()
    page.locator("#explanation > summary").click()
    page.locator("#picture svg").wait_for()


def test_the_numbers_of_the_picture_are_those_of_the_answer(lab: Any, folder: Path) -> None:
    open_picture(lab)
    trained = load_run(folder / "maps_transformer", "cpu")
    source, target = trained.tokenizers.source.encode("one two three."), [20, 40, 60]
    for scorer, window, normalizer in COMBINED:
        torch.manual_seed(5)
        run = trained._replace(model=copy.deepcopy(trained.model))
        attention = run.model.sentence_sites["cross"][0]
        attention.scorer = SCORERS[scorer](query_dim=6, key_dim=6, num_heads=2)
        attention.window = WINDOWS[window](state_dim=12, num_heads=2)
        attention.normalizer = {"softmax": normalizers.Softmax, "sparsemax": normalizers.Sparsemax}[normalizer]()
        with torch.no_grad():
            for parameter in attention.parameters():
                parameter.normal_(0, 0.7)
        cell = cells(run, source, target, "cross", 0, 1, 2)
        drawn = Drawn(lab.evaluate(DRAW, cell._asdict()))
        check(cell._asdict(), drawn, (scorer, window, normalizer))


def check(cell: dict[str, Any], drawn: Drawn, name: object) -> None:
    def same(found: Any, expected: Any) -> None:
        np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE, err_msg=str(name))

    keys, shown = len(cell["keys"]), 2
    same(drawn.numbers("e"), cell["scores"])
    if cell["scorer"] == "NoScore":
        assert drawn.numbers("q").size == 0
    else:
        q, k, product = (drawn.numbers(part) for part in ("q", "k", "product"))
        same(q, cell["query"])
        same(k, cell["keys"][shown])
        if cell["vector"] is None:
            same(product, q * k - (k**2 / 2 if cell["scorer"].startswith("Gaussian") else 0))
        else:
            same(drawn.numbers("tanh"), np.tanh(q + k))
            same(drawn.numbers("va"), cell["vector"])
            same(product, drawn.numbers("va") * drawn.numbers("tanh"))
        same(product.sum(), drawn.score)
        same(drawn.score, cell["scores"][shown])
    share, weights, total = drawn.numbers("share"), drawn.numbers("a"), drawn.numbers("total")[0]
    same(weights, cell["weights"])
    allowed = np.array(cell["allowed"])
    prior = np.ones(keys) if cell["log_prior"] is None else np.exp(cell["log_prior"])
    if cell["log_prior"] is not None:
        same(drawn.numbers("g"), prior)
    after, before = (1, np.log(prior)) if cell["renormalized"] else (prior, 0)
    inputs = np.array(cell["scores"]) + before
    if cell["normalizer"] == "Softmax":
        same(share, np.where(allowed, np.exp(inputs - inputs[allowed].max()), 0))
        same(share.sum(), total)
        same(after * share / total, weights)
    else:
        same(share, np.where(allowed, np.maximum(inputs - total, 0), 0))
        same(share.sum(), 1)
        same(after * share, weights)
    assert (share[~allowed] == 0).all(), name
    same(drawn.numbers("sum"), weights.sum())
    values, parts = drawn.rows("v", keys), drawn.rows("av", keys)
    same(values, cell["values"])
    same(parts, weights[:, None] * values)
    same(parts.sum(0), drawn.numbers("c"))
    same(drawn.numbers("c"), cell["context"])


def test_long_vectors_are_drawn_by_their_largest_products(lab: Any) -> None:
    open_picture(lab)
    generator = np.random.default_rng(1)
    query, keys, values = (generator.normal(size=shape) for shape in (512, (3, 512), (3, 400)))
    scores, weights = keys @ query, np.eye(3)[2]
    cell = {
        "scorer": "Dot", "normalizer": "Softmax", "row": "r", "columns": ["a", "b", "c"], "query": query.tolist(),
        "keys": keys.tolist(), "vector": None, "scores": scores.tolist(), "allowed": [True] * 3, "log_prior": None,
        "renormalized": False, "center": None, "weights": weights.tolist(), "values": values.tolist(),
        "context": values[2].tolist(),
    }  # fmt: skip
    parts = [one for one in lab.evaluate(DRAW, cell) if one["part"] in ("q", "product")]
    products = query * keys[2]
    assert 50 < len(parts) / 2 < 200, "as many stripes as can be told apart"
    assert str(np.abs(products).argmax()) in {one["dim"] for one in parts}
    for one in parts:
        expected = (query if one["part"] == "q" else products)[int(one["dim"])]
        assert float(one["value"]) == pytest.approx(expected, rel=1e-6)


def test_a_symbol_and_its_picture_light_up_together(lab: Any) -> None:
    open_picture(lab)
    shown = tips(lab.locator("#intact .cell[data-row='1']"))
    weights = lab.locator("#picture [data-part='a']").evaluate_all("items => items.map(({dataset}) => dataset.value)")
    assert [f"{float(weight):.3f}" for weight in weights] == [title[-5:] for title in shown], "those of the map"
    lab.mouse.move(5, 5)  # away from the picture
    assert "so a = " in lab.locator("#reading").text_content()
    assert "exp" in lab.locator("#equation").text_content()
    lab.locator("#picture [data-part='k']").first.hover()
    lit = "(items) => [...new Set(items.map((item) => item.dataset.symbol))]"
    assert lab.locator("#equation .lit").evaluate_all(lit) == ["k"]
    assert "k₁ = " in lab.locator("#reading").text_content()
    lab.locator("#equation [data-symbol='v']").hover()
    assert lab.locator("#picture .lit").evaluate_all(lit) == ["v"]
    assert lab.locator("#reading").text_content().startswith("v, the value of ")
    lab.locator("#picture svg").focus()
    said = set()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"):
        lab.keyboard.press(key)
        said.add(lab.locator("#reading").text_content())
    assert len(said) == 6, "every key says something else"
    lab.locator("#equation [tabindex='0']").focus()
    lab.keyboard.press("ArrowRight")
    assert lab.locator("#equation .lit").evaluate_all(lit) == ["q"]


def test_a_key_of_the_picture_selects_its_column_and_a_mean_offers_a_head(lab: Any) -> None:
    open_picture(lab)
    lab.locator("#picture [data-part='key'][data-key='0']").click()
    lab.locator("#intact text.chosen[data-column='0']").wait_for()
    assert lab.locator("#picture [data-part='k']").first.get_attribute("data-key") == "0"
    box = lab.locator("#picture svg").bounding_box()
    assert box["y"] + box["height"] <= 720, "beside the map, in the window"
    lab.locator("#head").select_option("mean")
    lab.locator("#intact .cell[data-row='1'][data-column='2']").click()
    lab.locator("#of-mean button").click()
    lab.locator("#picture svg").wait_for()
    assert lab.locator("#head").input_value() in ("0", "1")
