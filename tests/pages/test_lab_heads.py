"""All heads at a glance on the lab's page, and what pointing at a map marks."""

from typing import Any

import numpy as np
import pytest
from watched_page import tips

from nmt.config.direction import Direction
from nmt.insight.known_alignments import aligned_pairs
from nmt.maps.diagnostics import head_entropies

# Checking annotations would slow down the server, which runs in this process.
pytestmark = pytest.mark.unchecked

TEXT = "one two three."
READ_THUMBNAILS = """(buttons) => buttons.map((button) => {
    const canvas = button.querySelector("canvas"), { width, height } = canvas;
    const pixels = [...canvas.getContext("2d").getImageData(0, 0, width, height).data];
    return { layer: button.dataset.layer, head: button.dataset.head, width, height, pixels };
})"""
COLORS = "(shares) => import('/page/colors.js').then(({ colorOf }) => shares.map((share) => [...colorOf(share), 255]))"


def show(page: Any, **state: str) -> None:
    page.goto("/#" + "&".join(f"{key}={value}" for key, value in {"run": "maps_transformer", **state}.items()))
    page.locator("#results[aria-busy='false'] #intact .map svg").wait_for()


def thumbnail(page: Any, layer: int | str, head: int | str, key: str = "layer") -> Any:
    return page.locator(f".heads [data-layer-key='{key}'][data-layer='{layer}'][data-head='{head}']")


def weights(page: Any, section: str = "intact") -> list[float]:
    titles = tips(page.locator(f"#{section} .cell"))
    return [float(title.rsplit(": ", 1)[1]) for title in titles]


def test_a_thumbnail_is_the_large_map_that_a_click_on_it_shows(lab: Any) -> None:
    lab.emulate_media(reduced_motion="reduce")
    show(lab, text=TEXT, unit="words")
    found = lab.locator(".heads button").evaluate_all(READ_THUMBNAILS)
    assert len(found) == 9, "two layers and two heads, and their means"
    large = []
    for image in found:
        thumbnail(lab, image["layer"], image["head"]).click()
        chosen = lab.locator(".heads [aria-pressed='true']")
        assert chosen.count() == 1
        assert chosen.get_attribute("data-layer") == lab.locator("#layer").input_value() == image["layer"]
        assert chosen.get_attribute("data-head") == lab.locator("#head").input_value() == image["head"]
        assert image["width"] == lab.locator("#intact text[data-column]").count()
        assert image["height"] == lab.locator("#intact text[data-row]").count()
        large.append(weights(lab))
    assert len({tuple(weights) for weights in large}) == 9, "every head has a map of its own"
    most = max(map(max, large))
    for image, shown in zip(found, large, strict=True):
        expected = np.ravel(lab.evaluate(COLORS, [weight / most for weight in shown]))
        # There are 64 shades, and a titles' weight has 3 digits; a channel changes by at most 6 per percent.
        np.testing.assert_allclose(image["pixels"], expected, rtol=0, atol=8)


def test_a_change_asks_and_draws_nothing_again_of_a_translation_that_stays(lab: Any) -> None:
    show(lab, text=TEXT, unit="words")
    asked: list[str] = []
    lab.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    lab.locator("#intact .cell").first.click()
    lab.get_by_role("button", name="Block at every step").first.click()
    lab.locator("#changes li").first.wait_for()
    lab.locator("#results[aria-busy='false'] #changed .cell").first.wait_for()
    lab.locator(".heads").first.evaluate("(table) => { table.dataset.kept = 'yes'; }")
    lab.get_by_role("button", name="Equal weights").first.click()
    lab.locator("#changes li:nth-child(2)").wait_for()
    lab.locator("#results[aria-busy='false'] #changed .cell").first.wait_for()
    assert asked.count("intervene") == 2
    assert asked.count("alternatives") == 1
    assert lab.locator(".heads[data-kept]").count() == 1
    lab.locator("#unit").select_option("pieces")
    lab.locator(".heads:not([data-kept])").first.wait_for()
    for text in ("two three.", TEXT):
        lab.locator("#text").fill(text)
        lab.locator("#ask button[type='submit']").click()
        lab.locator("#results[aria-busy='false'] #intact .map svg").wait_for()
    assert asked.count("alternatives") == 1, "no word is selected"
    assert lab.locator(".heads td canvas").first.evaluate("canvas => canvas.height") > 0


def test_the_entropies_are_those_of_the_library(lab: Any, address: str) -> None:
    show(lab, text=TEXT, site="decoder_self", unit="words")
    body = {"run": "maps_transformer", "text": TEXT}
    exact = np.array(lab.request.post(f"{address}/v1/attend", data=body).json()["maps"]["decoder_self"]["weights"])
    expected = {(layer, head): value for (layer, head), value in np.ndenumerate(head_entropies(exact))}
    for (layer, head), entropy in expected.items():
        button = thumbnail(lab, layer, head)
        assert float(button.get_attribute("data-entropy")) == pytest.approx(entropy, abs=1e-5)
        assert button.text_content() == f"{entropy:.2f}"
        assert f"layer {layer}, head {head}; entropy {entropy:.2f} nats" in button.get_attribute("aria-label")


def test_heads_have_an_alignment_error_rate_where_the_alignment_is_known(lab: Any, address: str) -> None:
    pair = min(aligned_pairs(Direction("en", "vi")), key=lambda pair: len(pair.source))
    show(lab, text=pair.source, beamSize="1")
    lab.locator(".heads .aer").first.wait_for()
    body = {"run": "maps_transformer", "text": pair.source}
    rates = lab.request.post(f"{address}/v1/align", data=body).json()["error_rates"]
    for layer, head in np.ndindex(2, 2):
        assert float(thumbnail(lab, layer, head).get_attribute("data-aer")) == rates[layer][head]
    assert lab.locator(".heads .aer").count() == 4, "a mean is not a head"
    lab.locator("#site").select_option("encoder_self")
    assert lab.locator(".heads .aer").count() == 0, "only cross attention links words of the two languages"


def test_the_keyboard_moves_among_the_heads(lab: Any) -> None:
    show(lab, text=TEXT, layer="0", head="0")
    drawn = thumbnail(lab, 0, 0).element_handle()
    lab.locator("#intact .cell").first.click()
    lab.locator("#intact .cursor").wait_for()
    assert drawn.evaluate("(button) => button.isConnected"), "a selected cell changes no thumbnail"
    thumbnail(lab, 0, 0).focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
        lab.keyboard.press(key)
    assert (lab.locator("#layer").input_value(), lab.locator("#head").input_value()) == ("1", "1")
    assert lab.evaluate("[document.activeElement.dataset.layer, document.activeElement.dataset.head]") == ["1", "1"]


def test_pointing_marks_row_column_and_word_in_both_maps_whose_rows_are_aligned(lab: Any) -> None:
    show(lab, text=TEXT, second="maps_luong", unit="words")
    assert lab.locator(".heads").count() == 2, "one table for each run"
    size = "(cells) => [...new Set(cells.flatMap((cell) => [cell.getAttribute('width'), cell.getAttribute('height')]))]"
    sizes = {tuple(lab.locator(f"#{name} .cell").evaluate_all(size)) for name in ("intact", "other")}
    assert len(sizes) == 1, "cells of equal size"
    tops = [lab.locator(f"#{name} .cell").first.bounding_box()["y"] for name in ("intact", "other")]
    assert tops[0] == tops[1]
    lab.locator("#intact .cell[data-row='0'][data-column='1']").hover()
    columns = lab.locator("#intact text[data-column]").count()
    rows = lab.locator("#intact text[data-row]").count()
    assert lab.locator("#intact .cell.lit").count() == columns + rows - 1
    assert lab.locator("#intact text.lit").count() == 2
    label = lab.locator("#intact text[data-row='0'] title").text_content()
    assert lab.locator("#answer .translation .lit").all_text_contents() == [label]
    assert lab.locator("#other text.lit[data-column='1']").count() == 1, "the same source word"
    word = lab.locator("#other .translation [data-word='0']")
    word.hover()
    assert lab.locator("#other .cell.lit[data-row='0']").count() == lab.locator("#other text[data-column]").count()
    thumbnail(lab, 0, 1, "otherLayer").click()
    assert lab.locator("#other-head").input_value() == "1"
    assert lab.locator("#head").input_value() == "mean", "that of the other run"


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_weights_that_change_grow_unless_motion_is_unwelcome(lab: Any, motion: str) -> None:
    lab.emulate_media(reduced_motion=motion)
    show(lab, text=TEXT, layer="0", head="0", unit="pieces")
    before = weights(lab)
    moved = lab.evaluate(
        """async () => {
            const drawn = new Promise((resolve) => {
                new MutationObserver(resolve).observe(document.querySelector("#intact .map"), { childList: true });
            });
            document.querySelector(".heads [data-layer='1'][data-head='1']").click();
            await drawn;
            return document.getAnimations().map(({ effect }) => [
                effect.target.dataset.tip, effect.getTiming().duration,
            ]);
        }"""
    )
    changed = np.abs(np.array(weights(lab)) - before)
    titles = tips(lab.locator("#intact .cell"))
    expected = {title for title, change in zip(titles, changed, strict=True) if change > 0.022}
    possible = {title for title, change in zip(titles, changed, strict=True) if change > 0.018}
    if motion == "reduce":
        assert moved == []
        return
    assert expected
    assert expected <= {title for title, _ in moved} <= possible, "those whose weight changes by 0.02, up to rounding"
    assert max(duration for _, duration in moved) < 500


def test_a_wide_map_has_the_whole_width_and_the_heads_below_it(lab: Any) -> None:
    long = " ".join(["one two three four"] * 6)
    for text, is_wide in ((TEXT, False), (long, True)):
        lab.goto("about:blank")
        show(lab, text=text, unit="words")
        lab.locator(".heads").first.wait_for()
        scroll = lab.locator("#intact .scroll")
        assert scroll.evaluate("(box) => box.scrollWidth <= box.clientWidth"), "no map is scrolled sideways"
        map_box, heads_box = (lab.locator(place).bounding_box() for place in ("#intact .map", "#heads"))
        assert (heads_box["x"] < map_box["x"] + map_box["width"] / 2) == is_wide
        assert heads_box["y"] + heads_box["height"] <= 720 or not is_wide, "the strip stays in the window"
