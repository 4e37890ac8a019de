"""The viewer's page in a browser: opened from disk, used by mouse, touch and keyboard."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from viewed_sentences import EVIL_SOURCE, HEADS, LAYERS, SOURCE, TARGET, cross, peak, peaky, sentence

from nmt.maps.attention_map import BOS, EOS, LocalWindow, SentenceMaps
from nmt.pages.bundle import WEB
from nmt.pages.viewer import ViewedRun, write_viewer

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """one.html has one run of three sentences, film.html three runs, whose last one lacks sentence 2."""
    folder = tmp_path_factory.mktemp("viewer")
    write_viewer(
        folder / "one.html", [ViewedRun("only", [sentence(1), sentence(2, SOURCE[:3]), sentence(7, EVIL_SOURCE)])]
    )
    frames = [ViewedRun(f"step {i}", [sentence(1, share=0.3 + 0.2 * i), sentence(2)][: 2 - i // 2]) for i in range(3)]
    write_viewer(folder / "film.html", frames)
    long = SentenceMaps(1, 1, ["▁0", *["0"] * 44], ["▁0"], cross(np.full((1, 1, 2, 46), 1 / 46)).maps, -0.75)
    one_word = replace(long, maps=[replace(long.maps[0], columns=[*long.source_pieces, EOS])])
    write_viewer(folder / "whole.html", [ViewedRun(f"step {i}", [one_word]) for i in range(2)])
    weights = np.stack([np.full((3, 4), 0.25, dtype=np.float32), np.zeros((3, 4), dtype=np.float32)])[None]
    window = LocalWindow(np.array([[[0, 1.234, 3]] * 2], dtype=np.float32), np.ones((1, 2, 3, 4), dtype=bool), None)
    ranked = [replace(cross(weights, window), rank=rank, score=score) for rank, score in ((1, -0.5), (2, -1.5))]
    write_viewer(folder / "local.html", [ViewedRun("local", ranked)])
    write_viewer(folder / "two.html", [ViewedRun(name, [sentence(1)]) for name in ("runs/a", "runs/b")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nmt.pages.viewer._MOST_IN_PAGE", 4)
        patch.setattr("nmt.pages.viewer._IN_SCRIPT", 2)
        (folder / "many").mkdir()
        several = [sentence(line) if line % 2 else sentence(line, SOURCE[:3]) for line in range(1, 6)]
        write_viewer(folder / "many" / "viewer.html", [ViewedRun("many", several, 5)])
    return folder


@pytest.fixture(scope="module")
def faults() -> list[str]:
    """Requests to a network, console messages and exceptions of all pages."""
    return []


def new_page(context: Any, faults: list[str]) -> Any:
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.on("request", lambda request: request.url.startswith("file://") or faults.append(request.url))
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    return page


@pytest.fixture(scope="module")
def desktop(browser: Any, faults: list[str]) -> Iterator[Any]:
    """One page for all tests of this module, because a new context for each is slow."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    yield new_page(context, faults)
    context.close()


@pytest.fixture
def visit(browser: Any, desktop: Any, pages: Path, faults: list[str]) -> Iterator[Open]:
    """Opens a page from disk, in a context of its own if that has options. At the end there must be no faults."""
    contexts = []
    faults.clear()

    def visit(name: str, **options: Any) -> Any:
        page = desktop
        if options:
            contexts.append(browser.new_context(**options))
            page = new_page(contexts[-1], faults)
        # Neither the mouse nor the state of the last page may remain.
        page.mouse.move(0, 0)
        page.goto("about:blank")
        page.goto(f"{(pages / name.partition('#')[0]).as_uri()}#{name.partition('#')[2]}")
        page.wait_for_selector("#heat[aria-label]")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert faults == []


def lit(page: Any, side: str = "source", panel: str = "#lines") -> list[int]:
    tokens = page.locator(f"{panel} [data-side={side}].lit").all()
    return [int(token.get_attribute("data-index")) for token in tokens]


def token(page: Any, side: str, index: int, panel: str = "#lines") -> Any:
    return page.locator(f'{panel} .token[data-side="{side}"][data-index="{index}"]')


def heat_cell(page: Any, row: int, column: int, suffix: str = "") -> Any:
    return page.locator(f"#heat{suffix} .cell[data-row='{row}'][data-column='{column}']")


def choose(page: Any, **choices: str) -> None:
    for name, value in choices.items():
        page.select_option(f"#{name}", value)


def shows(page: Any, label: str) -> None:
    page.wait_for_selector(f'#heat[aria-label*="{label}"]')


def until(page: Any, expression: str, wanted: Any) -> None:
    """Waits until a JavaScript expression has a value. wait_for_function needs eval, which the page forbids."""
    for _ in range(3000):
        if page.evaluate(expression) == wanted:
            return
        page.wait_for_timeout(20)
    assert page.evaluate(expression) == wanted


def address_has(page: Any, part: str) -> None:
    until(page, f"location.hash.slice(1).split('&').includes('{part}')", True)


def test_a_hovered_target_word_lights_the_source_words_with_the_largest_weights(visit: Open) -> None:
    page = visit("one.html")
    assert page.locator("#site").input_value() == "cross"
    for layer, head in ((0, 0), (1, 2)):
        choose(page, layer=str(layer), head=str(head))
        shows(page, f"layer {layer}, head {head}")
        for row in (0, 4):
            token(page, "target", row).hover()
            column = peak(layer, head, row, len(SOURCE) + 1)
            assert sorted(lit(page)) == sorted([column, (column + 1) % 7])
            assert float(token(page, "source", column).get_attribute("data-weight")) == pytest.approx(0.714, abs=0.006)
    assert (
        page.locator("#status").inner_text().startswith(f"step 5: 'này' ← '{[*SOURCE, EOS][column].strip('▁')}' 0.71")
    )


def test_a_hovered_source_word_lights_the_target_words_that_attend_to_it(visit: Open) -> None:
    page = visit("one.html#layer=0&head=0")
    token(page, "source", 3).hover()
    assert lit(page, "target") == [2, 3]
    assert page.locator("#status").inner_text().startswith("'are' → 'o' 0.71, 'mè' 0.22")


def test_the_heat_map_shows_the_weight_under_the_mouse_and_a_click_pins(visit: Open) -> None:
    page = visit("one.html#layer=0&head=0")
    heat_cell(page, 1, 2).hover()
    assert page.locator("#status").inner_text() == "step 2: 'con' ← 'ts' 0.216"
    page.locator("#heat text[data-column='3']").hover()
    assert page.locator("#status").inner_text().startswith("'are' → ")
    heat_cell(page, 4, 1).click()
    page.locator("h1").hover()
    assert page.locator(".token.pinned").get_attribute("data-index") == "4"
    page.keyboard.press("Escape")
    assert page.locator(".token.pinned, .token.lit").count() == 0


def test_the_keyboard_steps_through_words_heads_layers_and_sentences(visit: Open) -> None:
    page = visit("one.html")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.locator(".token.pinned").get_attribute("data-index") == "1"
    for key, shown in (("ArrowDown", "layer mean, head 0"), ("]", "layer 0, head 0"), ("PageDown", "layer 1, head 0")):
        page.keyboard.press(key)
        shows(page, shown)
    assert page.locator(".token.pinned").get_attribute("data-index") == "1"
    for key, shown in (
        ("ArrowUp", "layer 1, head mean"),
        ("[", "layer 0"),
        ("m", "layer mean, head mean"),
        ("w", "words"),
    ):
        page.keyboard.press(key)
        shows(page, shown)
    page.keyboard.press("n")
    shows(page, "line 2")
    assert page.locator("#sentence").input_value() == "1"
    page.keyboard.press("?")
    assert page.locator("#keys").get_attribute("open") is not None
    page.locator("#sentence").focus()
    page.keyboard.press("w")
    assert page.locator("#unit").input_value() == "words"


def test_the_tab_key_reaches_words_which_take_arrow_keys_and_enter(visit: Open) -> None:
    page = visit("one.html#layer=0&head=0")
    page.locator("#head").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.side") == "source"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    focused = page.evaluate("({...document.activeElement.dataset})")
    assert (focused["side"], focused["index"]) == ("target", "1")
    assert lit(page) == [1, 2]
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    shows(page, "layer 1, head 1")


def test_a_click_in_the_entropy_grid_selects_layer_and_head(visit: Open) -> None:
    page = visit("one.html")
    assert page.locator("#entropy button").count() == LAYERS * HEADS
    page.locator('#entropy [data-layer="1"][data-head="2"]').click()
    shows(page, "layer 1, head 2")
    assert (page.locator("#layer").input_value(), page.locator("#head").input_value()) == ("1", "2")
    chosen = page.locator('#entropy [aria-pressed="true"]')
    assert chosen.get_attribute("aria-label").startswith("layer 1, head 2: 0.")
    images = page.locator("#entropy canvas").evaluate_all(
        "all => all.map(one => [...one.getContext('2d').getImageData(0, 0, one.width, one.height).data])"
    )
    assert len({tuple(image) for image in images}) == LAYERS * HEADS, "a small map of each head"
    size = chosen.locator("canvas").evaluate("canvas => [canvas.height, canvas.width]")
    assert size == [page.locator(f"#heat text[data-{side}]").count() for side in ("row", "column")]


def test_words_sum_their_columns_and_average_their_rows(visit: Open) -> None:
    page = visit("one.html#layer=0&head=1&unit=words")
    words = page.locator('#lines .token[data-side="source"]').all_text_contents()
    assert words == ["These", "cats", "are", "asleep.", EOS]
    rows = [[0], [1], [2, 3], [4], [5], [6, 7], [8]]
    columns = [[0], [1, 2], [3], [4, 5], [6]]
    weights = peaky(9, 7)[0, 1]
    expected = [[weights[r][:, c].sum(1).mean() for c in columns] for r in rows]
    for row, weights_of_row in enumerate(expected):
        token(page, "target", row).hover()
        shown = [
            float(item.get_attribute("data-weight") or 0)
            for item in page.locator("#lines [data-side=source].token").all()
        ]
        np.testing.assert_allclose(shown, weights_of_row, atol=0.006 + 0.005)
    choose(page, rows="reads")
    page.wait_for_selector('#lines .token[data-side="target"][data-text="<s>"]')
    assert page.locator('#lines .token[data-side="target"]').count() == 7


def test_sites_have_their_own_rows_and_columns(visit: Open) -> None:
    page = visit("one.html")
    assert page.locator("#site option").all_text_contents() == ["encoder_self", "decoder_self", "cross"]
    choose(page, site="encoder_self", sentence="1")
    shows(page, "encoder_self attention")
    assert page.locator("#lines .token").all_text_contents() == [*SOURCE[:3], EOS] * 2
    choose(page, site="decoder_self", rows="reads")
    page.wait_for_selector('#lines .token[data-side="target"][data-text="<s>"]')
    assert page.locator("#lines .token").all_text_contents() == [BOS, *TARGET] * 2


def test_a_second_panel_has_its_own_head_and_lights_the_same_word(visit: Open) -> None:
    page = visit("one.html#layer=0&head=0")
    page.check("#compare")
    choose(page, **{"head-2": "1"})
    page.wait_for_selector('#heat-2[aria-label*="layer 0, head 1"]')
    token(page, "target", 2).hover()
    assert (lit(page), lit(page, panel="#lines-2")) == ([2, 3], [4, 5])
    token(page, "target", 3, "#lines-2").hover()
    assert (lit(page), lit(page, panel="#lines-2")) == ([3, 4], [5, 6])
    address_has(page, "compare=1.0.1")


def drawn_colors(page: Any, row: int, column: int, suffix: str = "") -> list[str]:
    """The colors of a weight in the heat map and in the word list; the word must be hovered."""
    word = token(page, "source", column, f"#lines{suffix}")
    return [
        heat_cell(page, row, column, suffix).evaluate("cell => getComputedStyle(cell).fill"),
        word.evaluate("word => getComputedStyle(word).backgroundColor"),
    ]


STRONGEST = "rgb(20, 14, 54)"


def test_side_by_side_equal_colors_are_equal_weights(visit: Open) -> None:
    """The mean of all heads has smaller weights than a head; side by side, both have that head's scale."""
    page = visit("one.html#layer=mean&head=mean")
    weights = np.mean([peaky(9, 7)[layer, head, 4] for layer, head in np.ndindex(LAYERS, HEADS)], axis=0)
    column = int(weights.argmax())
    token(page, "target", 4).hover()
    assert set(drawn_colors(page, 4, column)) == {STRONGEST}
    alone = page.locator("#most").inner_text()
    page.check("#compare")
    choose(page, **{"layer-2": "0", "head-2": "0"})
    page.wait_for_selector('#heat-2[aria-label*="layer 0, head 0"]')
    token(page, "target", 4).hover()
    assert STRONGEST not in drawn_colors(page, 4, column)
    assert set(drawn_colors(page, 4, peak(0, 0, 4, 7), "-2")) == {STRONGEST}
    first, second = (page.locator(f"#most{suffix}").inner_text() for suffix in ("", "-2"))
    assert first == second != alone
    page.uncheck("#compare")
    until(page, "document.getElementById('most').innerText", alone)


def test_a_film_keeps_sentence_head_and_pinned_word(visit: Open) -> None:
    page = visit("film.html#layer=1&head=1&word=4")
    column = peak(1, 1, 3, 7)
    seen = []
    for frame in range(3):
        page.locator("#film").fill(str(frame))
        shows(page, f"step {frame}")
        seen.append(float(token(page, "source", column).get_attribute("data-weight")))
        assert page.locator(".token.pinned").get_attribute("data-index") == "3"
    np.testing.assert_allclose(seen, [0.37, 0.54, 0.71], atol=0.015)
    # A busy machine may not notice a frame before the next one is shown, so the page itself takes note.
    page.evaluate(
        """() => {
            const frame = document.querySelector("#frame"), frames = window.frames_seen = [];
            new MutationObserver(() => frames.push(frame.textContent)).observe(frame, { childList: true });
        }"""
    )
    page.locator("#play").click()
    shows(page, "step 2")
    until(page, "document.querySelector('#play').textContent", "Play")
    assert page.evaluate("frames_seen") == ["step 0", "step 1", "step 2"]
    choose(page, sentence="1")
    page.wait_for_selector("#missing:visible")
    assert page.locator("#missing").inner_text() == "This step has no line 2, translation 1."


def test_an_address_restores_the_view(visit: Open) -> None:
    address = "sentence=2&site=decoder_self&layer=1&head=2&run=2&unit=words&rows=reads&word=3&compare=1.0.mean"
    page = visit(f"film.html#{address}")
    names = ("site", "layer", "head", "unit", "rows", "run", "run-2", "layer-2", "head-2")
    values = [page.locator(f"#{name}").input_value() for name in names]
    assert values == ["decoder_self", "1", "2", "words", "reads", "1", "0", "0", "mean"]
    assert page.locator("#lines .token.pinned").get_attribute("data-index") == "2"
    for part in address.split("&"):
        address_has(page, part)
    other = visit("film.html#sentence=99&site=nowhere&layer=x&head=77&run=0&word=-1&compare=8")
    assert other.locator("#site").input_value() == "cross"
    assert other.locator("#head").input_value() == str(HEADS - 1)


def test_markup_in_a_sentence_is_shown_as_text(visit: Open) -> None:
    page = visit("one.html#sentence=7")
    texts = page.locator('#lines .token[data-side="source"]').all_text_contents()
    assert texts == [*EVIL_SOURCE, EOS]
    assert "<script>window.alerted=1</script>" in page.locator("#pair").inner_text()
    token(page, "source", 1).hover()
    assert "'<script>window.alerted=1</script>'" in page.locator("#status").inner_text()
    assert page.evaluate("window.alerted") is None
    assert page.locator("img").count() == 0


def test_a_phone_need_not_scroll_sideways_and_a_tap_pins(visit: Open) -> None:
    page = visit("film.html#layer=0&head=0&compare=2.0.1", viewport={"width": 390, "height": 800}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    small = (
        "els => els.filter(e => e.offsetParent && (e.offsetHeight < 32 || e.offsetWidth < 32)).map(e => e.outerHTML)"
    )
    assert page.eval_on_selector_all("button, select, .token, summary, input[type=range]", small) == []
    token(page, "target", 4).tap()
    assert page.locator("#lines .token.pinned").get_attribute("data-index") == "4"
    assert lit(page) == [4, 5]


def test_the_dark_scheme_has_its_own_colors(visit: Open) -> None:
    page = visit("one.html")
    colors = {}
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        colors[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colors == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 19, 26)"}


@pytest.mark.parametrize("unit", ["pieces", "words"])
def test_a_film_has_one_color_scale(visit: Open, unit: str) -> None:
    """A map that is not sharp yet is pale."""
    page = visit(f"film.html#layer=0&head=0&unit={unit}")
    darkness = []
    for frame in range(3):
        page.locator("#film").fill(str(frame))
        shows(page, f"step {frame}")
        assert page.locator("#most").inner_text().startswith("1.00")
        token(page, "target", 0).hover()
        cell, word = drawn_colors(page, 0, 0)
        assert cell == word != STRONGEST
        darkness.append(-sum(map(int, re.findall(r"\d+", cell))))
        token(page, "target", 1).hover()
    assert darkness == sorted(set(darkness))


@pytest.mark.parametrize(("name", "kind"), [("whole.html", "step"), ("two.html", "run")])
def test_steps_of_a_run_are_a_film_and_two_runs_are_compared(visit: Open, name: str, kind: str) -> None:
    page = visit(name)
    assert page.locator("#subject").inner_text() == f"2 {kind}s"
    assert page.locator("#run-kind").inner_text() == kind
    assert page.locator("#compare").is_checked() == (kind == "run")


def test_a_word_of_many_pieces_may_exceed_a_weight_of_1(visit: Open) -> None:
    """The sum of its rounded weights may exceed 1."""
    page = visit("whole.html#unit=words")
    shows(page, "step 0")
    token(page, "target", 0).hover()
    assert float(token(page, "source", 0).get_attribute("data-weight")) > 1


def test_the_score_of_a_translation_is_shown_beside_it(visit: Open) -> None:
    page = visit("whole.html")
    assert page.locator("#pair .score").inner_text() == "-0.75"


def test_a_window_has_its_center_and_a_head_without_weights_no_entropy(visit: Open) -> None:
    page = visit("local.html#layer=0&head=0&word=2")
    assert page.locator("#status").inner_text().endswith("(window around p = 1.23)")
    assert page.locator("#heat .center-line").count() == 3
    assert page.locator("#centers").is_visible()
    assert page.locator("#entropy button").all_text_contents() == ["1.39", "–"], "log 4"
    choose(page, head="mean")
    shows(page, "head mean")
    assert page.locator("#heat .center-line").count() == 0, "a mean of centers means nothing"


def test_each_translation_of_a_line_is_a_sentence_of_its_own(visit: Open) -> None:
    page = visit("local.html#sentence=1&rank=2")
    assert page.locator("#sentence option").all_text_contents() == ["1: 0 1 2", "1 (translation 2): 0 1 2"]
    assert page.locator("#pair .score").inner_text() == "-1.50"
    page = visit("local.html#sentence=1&rank=2", locale="vi-VN")
    assert page.locator("#sentence option").all_text_contents() == ["1: 0 1 2", "1 (bản dịch 2): 0 1 2"]


def test_the_page_speaks_the_browsers_language_and_switches(visit: Open, browser: Any) -> None:
    page = visit("film.html#sentence=1&word=2", locale="vi-VN")
    assert page.title() == page.locator("h1").inner_text() == "Bản đồ chú ý"
    assert page.locator("html").get_attribute("lang") == "vi"
    assert page.locator("#subject").inner_text() == "3 bước"
    assert page.locator("#frame").inner_text() == "bước 0"
    assert page.locator("#site option").all_text_contents()[-1] == "chú ý chéo"
    assert page.locator("#status").inner_text().startswith("bước 2: 'con' ← ")
    assert "chú ý chéo, tầng trung bình" in page.locator("#heat").get_attribute("aria-label")
    # Every label is in the chosen language, except the names of pieces.
    texts = page.locator("body").inner_text()
    for english in ("sentence", "layer", "head", "weight", "entropy of", "shortcuts"):
        assert english not in texts
    page.locator("#language").click()
    page.wait_for_selector("html[lang=en]")
    shows(page, "layer mean")
    assert page.locator("h1").inner_text() == "Attention maps"
    assert page.locator(".token.pinned").get_attribute("data-index") == "1"
    assert page.locator("#language").inner_text() == "Tiếng Việt"


@pytest.mark.parametrize("module", ["viewer/texts.js", "glossary.js"])
def test_every_label_of_the_viewer_is_there_in_both_languages(module: str) -> None:
    text = (WEB / module).read_text(encoding="utf-8")
    english, vietnamese = (re.findall(r"(\w+): \"", part) for part in text.split("  vi: {"))
    assert english == vietnamese


def test_a_page_of_many_sentences_adds_them_when_they_are_shown(visit: Open, pages: Path, faults: list[str]) -> None:
    from playwright.sync_api import expect  # not installed everywhere: see the fixture `browser`

    page = visit("many/viewer.html")
    scripts = "[...document.querySelectorAll('script[src]')].map((script) => script.getAttribute('src'))"
    page.wait_for_selector(".token[data-index]")
    assert page.evaluate(scripts) == ["viewer_sentences/0-0.js"]
    assert page.locator("#sentence option").count() == 5
    page.select_option("#sentence", "3")
    expect(page.locator(".tokens[data-side=source] .token")).to_have_count(4)
    assert page.evaluate(scripts) == ["viewer_sentences/0-0.js", "viewer_sentences/0-1.js"]
    (pages / "many" / "viewer_sentences" / "0-2.js").rename(pages / "many" / "away.js")
    page.select_option("#sentence", "4")
    expect(page.locator("#status")).to_contain_text("viewer_sentences/0-2.js is missing: keep it beside")
    # A failure that comes after the next selection is not shown.
    page.select_option("#sentence", "3")
    page.evaluate(
        "() => { const append = document.head.append;"
        "document.head.append = (script) => setTimeout(() => append.call(document.head, script), 100); }"
    )
    page.select_option("#sentence", "4")
    page.select_option("#sentence", "3")
    page.wait_for_timeout(400)
    expect(page.locator("#status")).not_to_contain_text("missing")
    (pages / "many" / "away.js").rename(pages / "many" / "viewer_sentences" / "0-2.js")
    faults.clear()  # the browser reports the missing file
    # A later export of other maps has replaced a script.
    script = pages / "many" / "viewer_sentences" / "0-2.js"
    text = script.read_text(encoding="utf-8")
    script.write_text(text.replace('"', '"0', 1), encoding="utf-8")
    page.select_option("#sentence", "3")
    page.select_option("#sentence", "4")
    expect(page.locator("#status")).to_contain_text("This page is older than its files (viewer_sentences/0-2.js)")
    script.write_text(text, encoding="utf-8")
    page.select_option("#sentence", "3")
    page.select_option("#sentence", "4")
    expect(page.locator(".tokens[data-side=source] .token").first).to_be_visible()
    expect(page.locator("#status")).not_to_contain_text("older")
