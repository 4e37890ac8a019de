"""The lab's page in a browser: a sentence is typed, its attention changed, and a link shows the same again."""

import json
import re
import threading
import time
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from watched_page import link, tips, watched_page

from nmt.config.direction import Direction
from nmt.insight.known_alignments import aligned_pairs
from nmt.maps.attention_map import AttentionMap
from nmt.maps.links import rates
from nmt.maps.words import labeled
from nmt.serving.batcher import Abandoned, Batcher
from nmt.serving.gallery import Gallery
from nmt.serving.page import FILES
from nmt.text.dictionary import Dictionary

# Checking annotations would slow down the server, which runs in this process.
pytestmark = pytest.mark.unchecked

TEXT = "one two three."
EVERYTHING = (
    "run=maps_transformer&second=maps_luong&text=one two three.&unit=words&layer=0&head=1&row=1&column=2"
    "&difference=true&revealed=true&method=occlusion"
)


@pytest.fixture
def empty(browser: Any, address: str) -> Iterator[Any]:
    """A page that may open the lab, and nothing else."""
    with watched_page(browser, address, "data:", "blob:", viewport={"width": 1200, "height": 900}) as page:
        yield page


@pytest.fixture
def page(empty: Any, address: str) -> Any:
    """The page with the Transformer's translation of TEXT.

    It opens with TEXT, because its default sentence is long and is drawn again after every step.
    """
    empty.goto(f"{address}/#run=maps_transformer&unit=pieces&text={TEXT}")
    empty.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
    return empty


def translate(page: Any, text: str = TEXT) -> None:
    page.locator("#text").fill(text)
    page.locator("#ask button").click()
    ready(page)


def ready(page: Any) -> None:
    page.locator("#results[aria-busy='false']").wait_for()


def cell(page: Any, row: int, column: int) -> Any:
    return page.locator(f"#intact .cell[data-row='{row}'][data-column='{column}']")


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def save(page: Any, kind: str) -> None:
    page.locator("#save-menu").evaluate("menu => { menu.open = true; }")
    page.locator(f"#save-{kind}").click()


def test_a_typed_sentence_is_translated_with_its_map(page: Any) -> None:
    columns = page.locator("#intact text[data-column]").count()
    translate(page, f"{TEXT} four five.")
    assert page.locator("#intact text[data-column]").count() > columns
    assert page.locator("#answer .translation").text_content().strip()
    sites = page.locator("#site option").all_text_contents()
    assert sites == ["encoder self-attention", "decoder self-attention", "cross attention"]
    assert page.locator("#head option").all_text_contents() == ["mean", "0", "1"]
    page.locator("#site").select_option("encoder_self")
    pieces = page.locator("#intact text[data-column]").count()
    assert page.locator("#intact .cell").count() == pieces**2
    page.locator("#unit").select_option("words")
    assert page.locator("#intact text[data-column]").count() < pieces


def test_typing_says_how_to_translate_and_fades_the_old_translation(page: Any) -> None:
    page.locator("#text").fill(f"{TEXT} four")
    assert page.locator("#status").text_content() == "Press Enter to translate"
    assert page.locator("#answer.typed").count() == 1
    page.locator("#text").press("Enter")
    ready(page)
    assert page.locator("#status").text_content() == ""
    assert page.locator("#answer.typed").count() == 0


def test_a_run_without_the_selected_site_is_compared_by_its_translation(page: Any, address: str) -> None:
    page.goto(f"{address}/#run=maps_transformer&second=maps_luong&text={TEXT}&site=encoder_self")
    page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
    assert page.locator("#status").text_content() == ""
    assert page.locator("#other").is_hidden(), "Luong's model has no self-attention"
    page.locator("#options").evaluate("box => { box.open = true; }")
    page.locator("#site").select_option("cross")
    page.locator("#other .cell").first.wait_for()


def test_controls_of_another_sentence_cannot_be_used_while_one_is_translated(page: Any) -> None:
    cell(page, 0, 1).click()
    held: list[Any] = []
    page.route("**/v1/translate/stream", lambda route: held.append(route))
    page.locator("#text").fill("two one.")
    page.locator("#text").press("Enter")
    page.locator("#side[inert]").wait_for(state="attached")
    page.wait_for_timeout(50)
    with pytest.raises(Exception, match="Timeout"):
        cell(page, 1, 1).click(timeout=200)
    assert page.locator("#side[inert], #results[inert], #heads[inert]").count() == 3
    held.pop().continue_()
    ready(page)
    assert page.locator("[inert]").count() == 0
    assert "row=" not in page.url


def test_a_run_with_one_layer_does_not_choose_the_layer_of_another(page: Any) -> None:
    page.locator("#options").evaluate("box => { box.open = true; }")
    page.locator("#layer").select_option("1")
    translate(page, "two one.")
    page.locator("#run").select_option("maps_luong")
    page.locator("#intact-name", has_text="maps_luong").wait_for()
    ready(page)
    assert page.locator("#layer").input_value() == "0"
    page.go_back()
    page.locator("#intact-name", has_text="maps_transformer").wait_for()
    ready(page)
    assert page.locator("#layer").input_value() == "1", "what the address says"
    page.locator("#run").select_option("maps_luong")
    page.locator("#intact-name", has_text="maps_luong").wait_for()
    page.locator("#run").select_option("maps_transformer")
    page.locator("#intact-name", has_text="maps_transformer").wait_for()
    ready(page)
    assert page.locator("#layer").input_value() == "mean"


def test_the_first_arrow_key_selects_the_first_cell(page: Any) -> None:
    page.locator("#intact .map svg").focus()
    page.keyboard.press("ArrowDown")
    assert "row=0&column=0" in link(page)
    page.keyboard.press("ArrowDown")
    assert "row=1&column=0" in link(page)


def test_a_key_that_is_held_down_seldom_writes_the_address(page: Any, address: str) -> None:
    """Safari throws an error after 100 changes in 30 seconds."""
    page.evaluate(
        """() => {
            const replace = history.replaceState, written = window.written = [];
            history.replaceState = (...change) => { written.push(change[2]); replace.apply(history, change); };
        }"""
    )
    page.locator("#intact .map svg").focus()
    for _ in range(8):
        page.keyboard.press("ArrowDown")
    page.wait_for_function("() => written.some((anchor) => anchor.includes('row='))")
    assert page.evaluate("written.filter((anchor) => anchor.includes('row=')).length") < 8
    # What waits to be written does not replace the address that somebody opens.
    page.keyboard.press("ArrowRight")
    page.goto(f"{address}/#run=maps_transformer&text=two one.")
    page.wait_for_function("() => document.getElementById('text').value === 'two one.'")
    ready(page)
    assert "row=" not in link(page)
    # A new sentence leaves what was waiting in the entry that the Back button returns to.
    cell(page, 0, 1).click()
    translate(page, "three one.")
    assert "row=" not in link(page)
    page.go_back()
    page.locator("#intact .cursor").wait_for()
    assert page.locator("#text").input_value() == "two one."


def test_what_was_clicked_comes_first_among_the_actions(page: Any) -> None:
    groups = "groups => groups.map((group) => [group.firstChild.textContent, group.className])"
    heads = "cross attention, all layers and heads"  # the map is their mean
    for place, names in (
        ("[data-row='1'][data-column='2']:not(.label, .hit)", ["this cell", "this word", "this row", heads]),
        ("text[data-row='1']", ["this row", heads]),
        ("text[data-column='1']", ["this word", heads]),
    ):
        page.locator(f"#intact {place}").click()
        shown = page.locator("#actions > div").evaluate_all(groups)
        main = 2 if names[0] == "this cell" else 1
        assert shown == [[name, "" if at < main else "less"] for at, name in enumerate(names)]


def test_the_beam_is_a_tree_whose_best_path_is_the_translation(page: Any) -> None:
    page.locator("#beam-box summary").click()
    best = page.locator("#beam text.best title").all_text_contents()
    rows = page.locator("#intact text[data-row]").count()
    assert len(best) == rows, "every piece, and the end"
    assert page.locator("#beam path").count() >= len(best) - 1


def test_a_blocked_word_has_no_weight_in_the_other_translation(page: Any) -> None:
    cell(page, 0, 1).click()
    assert re.search(r"looks at .* with weight 0\.\d{3}", page.locator("#selection").text_content())
    press(page, "Block at every step")
    page.locator("#changed svg").wait_for()
    titles = tips(page.locator("#changed .cell[data-column='1']"))
    assert titles
    assert all(title.endswith(": 0.000") for title in titles)
    assert re.search(r"The first translation is .* \(.* nats", page.locator("#outcome .verdict").text_content())
    page.get_by_role("button", name=re.compile("Remove: .* blocked")).click()
    page.locator("#changed svg").wait_for(state="hidden")


def test_a_head_is_switched_off_and_a_row_made_even(page: Any) -> None:
    page.locator("#layer").select_option("1")
    page.locator("#head").select_option("0")
    cell(page, 1, 0).click()
    press(page, "Switch off")
    page.locator("#changed svg").wait_for()
    titles = tips(page.locator("#changed .cell"))
    assert all(title.endswith(": 0.000") for title in titles)
    press(page, "Equal weights")
    page.locator("#changes li").nth(1).wait_for()


def test_another_piece_is_taken_and_the_translation_goes_on_from_it(page: Any) -> None:
    page.locator("#intact text[data-row='0']").click()
    choice = page.locator("#alternatives button:enabled").first
    piece = choice.text_content().rsplit(" ", 2)[0].replace("␣", "▁")
    choice.click()
    page.wait_for_function(
        "piece => document.querySelector('#intact text[data-row]').textContent.startsWith(piece)", arg=piece
    )
    ready(page)
    assert page.locator("#changes li").count() == 1


def test_a_cell_is_explained(page: Any) -> None:
    page.locator("#layer").select_option("0")
    page.locator("#head").select_option("1")
    cell(page, 1, 2).click()
    page.locator("#explanation > summary").click()
    page.locator("#numbers-details summary").click()
    page.locator("#numbers tr").first.wait_for()
    weights = [
        float(text) for text in page.locator("#numbers tr:not(:first-child) td:nth-child(2)").all_text_contents()
    ]
    assert sum(weights) == pytest.approx(1, abs=1e-4 * len(weights))
    assert page.locator("#equation math").count() == 3, "score, weight and context"


def test_a_link_shows_the_same(page: Any, browser: Any) -> None:
    cell(page, 0, 1).click()
    press(page, "Block at every step")
    page.locator("#changed svg").wait_for()
    shown = [page.locator(f"#{name} .translation").text_content() for name in ("answer", "changed")]
    context = browser.new_context()
    other = context.new_page()
    other.goto(link(page))
    other.locator("#changed svg").wait_for()
    assert [other.locator(f"#{name} .translation").text_content() for name in ("answer", "changed")] == shown
    assert other.locator("#text").input_value() == TEXT
    context.close()


def test_the_link_is_copied(page: Any) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#copy-link").click()
    page.get_by_text("Link copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    # Without TLS, another machine's page has no clipboard, only the old command.
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.evaluate(
        "document.addEventListener('copy', () => { window.copiedText = String(document.activeElement.value); })"
    )
    page.locator("#text").fill("")
    page.locator("#copy-link").click()
    page.wait_for_function("url => window.copiedText === url", arg=page.url)
    page.evaluate("document.execCommand = () => false")
    page.locator("#copy-link").click()
    page.get_by_text("Copy the address from the address bar.").wait_for()


def test_the_map_is_saved(page: Any) -> None:
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("() => document.querySelector('#intact .cell').getAttribute('fill') !== null")
    for kind, begins in (("svg", b"<svg"), ("png", b"\x89PNG"), ("json", b"{"), ("csv", b"map,target,source,weight")):
        with page.expect_download() as download:
            save(page, kind)
        content = download.value.path().read_bytes()
        assert content.startswith(begins)
        if kind == "svg":
            assert f">{TEXT}</text>" in content.decode()
            size = re.match(r'<svg[^>]*? width="(\d+)" height="(\d+)"', content.decode())
        assert download.value.suggested_filename == f"attention-maps_transformer-cross.{kind}"
        if kind == "png":
            image = Image.open(BytesIO(content))
            assert image.size == tuple(2 * int(number) for number in size.groups()), "twice the size of the SVG"
            assert image.convert("RGB").getpixel((2, 2)) == (255, 255, 255), "the paper is white in dark mode too"
            assert len(image.convert("RGB").getcolors(100_000)) > 10, "it is not empty"


def test_the_keyboard_moves_the_cell(page: Any) -> None:
    page.locator("#intact svg").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.locator("#intact .cursor").wait_for()
    first = page.locator("#selection").text_content()
    page.keyboard.press("ArrowRight")
    assert page.locator("#selection").text_content() != first
    page.keyboard.press("Escape")
    assert page.locator("#intact .cursor").count() == 0


def test_every_label_is_there_in_both_languages(page: Any, address: str) -> None:
    names = page.evaluate("import('/page/i18n.js').then((module) => module.labelNames)")
    assert names["en"] == names["vi"]
    used = "".join(path.read_text(encoding="utf-8") for name, path in FILES.items() if name != "i18n.js")
    assert [name for name in names["en"] if f'"{name}"' not in used] == []
    page.goto(f"{address}/?lang=vi")
    page.locator("#run option").first.wait_for(state="attached")
    assert page.locator("html").get_attribute("lang") == "vi"
    assert page.get_by_role("button", name="Dịch", exact=True).count() == 1


def test_numbers_have_a_comma_in_vietnamese_but_not_in_data(page: Any, address: str) -> None:
    page.goto(f"{address}/?lang=vi#run=maps_transformer&unit=words&layer=0&head=1&row=1&column=2&text={TEXT}")
    ready(page)
    press(page, "Dồn hết vào đây")
    page.locator("#outcome:not([hidden])").wait_for()
    page.locator("details").evaluate_all("boxes => boxes.forEach((box) => { box.open = true; })")
    page.locator("#numbers tr").first.wait_for()
    page.locator("#alternatives button").first.wait_for(state="attached")
    page.locator("#about").evaluate("about => about.remove()")  # its number of parameters is grouped by points
    shown = page.locator("body").inner_text() + "".join(tips(page.locator(".cell")))
    shown += page.locator("#alternatives").text_content()
    assert re.findall(r"\d\.\d", shown) == []
    for words in ("với trọng số 0,", "Sau thay đổi: 1,000", "→ “three.” = 1,00", "log p = −", "0,00", " %"):
        assert words in shown
    assert re.search(r"\(−?0,\d\d; −?0,\d\d; ", page.locator("#numbers").inner_text()), "the numbers of a vector"
    assert page.locator("#weight").input_value() == "1"
    assert '"1.00"' in unquote(link(page))
    with page.expect_download() as download:
        save(page, "csv")
    assert re.search(r",0\.\d+\n", download.value.path().read_text(encoding="utf-8"))


def colors(page: Any, section: str) -> list[str]:
    return page.locator(f"#{section} .cell").evaluate_all("cells => cells.map(cell => cell.getAttribute('fill'))")


def numbers(page: Any, section: str) -> list[float]:
    titles = tips(page.locator(f"#{section} .cell"))
    return [float(title.rsplit(": ", 1)[1]) for title in titles]


def test_the_map_grows_while_the_translation_appears(page: Any) -> None:
    page.evaluate(
        """() => {
            const rows = window.rowsSeen = [], map = document.querySelector("#intact .map");
            const count = (drawing) => rows.push(drawing.querySelectorAll("text[data-row]").length);
            // Several steps may arrive at once, so every drawing is looked at, also one that was never painted.
            new MutationObserver((records) => records.forEach(({ addedNodes }) => addedNodes.forEach(count)))
                .observe(map, { childList: true });
        }"""
    )
    translate(page, f"{TEXT} four")
    seen = page.evaluate("rowsSeen")
    seen = seen[seen.index(1) :]  # before: the former sentence
    assert seen == sorted(seen)
    assert sorted(set(seen)) == list(range(1, max(seen) + 1)), "a row for each step, and at last that of the end"
    assert max(seen) > 2


def test_two_runs_are_compared_on_one_scale(page: Any, address: str) -> None:
    page.locator("#second").select_option("maps_luong")
    ready(page)
    assert page.locator("#other .translation").text_content().strip()
    assert "log p" in page.locator("#other .verdict").text_content()
    strongest = max(("intact", "other"), key=lambda name: max(numbers(page, name)))
    darkest = [name for name in ("intact", "other") if "rgb(20 14 54)" in colors(page, name)]
    assert darkest == [strongest], "only the largest weight of both has the last color"
    page.locator("#difference").check()
    assert "Set the unit to words" in page.locator("#minus .verdict").text_content(), "the runs have different pieces"
    page.locator("#unit").select_option("words")
    page.locator("#minus .cell").first.wait_for()
    rows = page.locator("#minus text[data-row]").all_text_contents()
    assert rows == page.locator("#intact text[data-row]").all_text_contents()
    assert page.locator("#minus-name").text_content() == "maps_transformer minus maps_luong"
    body = {"run": "maps_luong", "text": TEXT, "target": page.locator("#answer .translation").text_content()}
    found = page.request.post(f"{address}/v1/attend", data=body).json()["maps"]["cross"]
    names = (found[name] for name in ("inputs", "outputs", "columns"))
    second = labeled(AttentionMap("cross", np.array(found["weights"]), *names), words=True)
    expected = np.array(numbers(page, "intact")) - second.weights.mean((0, 1)).ravel()
    np.testing.assert_allclose(numbers(page, "minus"), expected, rtol=0, atol=1e-3 + 1e-6)  # 3 digits are shown
    assert np.abs(expected).max() > 0.05


def test_the_difference_that_a_change_makes(page: Any) -> None:
    assert page.locator("#difference-box").is_hidden(), "there is nothing to compare"
    cell(page, 0, 1).click()
    press(page, "Block at every step")
    page.locator("#difference").check()
    page.locator("#minus .cell").first.wait_for()
    box = page.locator("#minus h2").bounding_box()
    assert 0 <= box["y"] < 900, "the map that was asked for is in the window"
    before = numbers(page, "intact")
    width = page.locator("#intact text[data-column]").count()
    blocked = numbers(page, "minus")[1::width]
    assert blocked == pytest.approx([-weight for weight in before[1::width]], abs=1e-3), "its weight is gone"


@pytest.mark.parametrize(
    ("width", "names", "in_row"), [(1720, "intact other minus", 3), (1200, "intact changed other minus", 2)]
)
def test_all_results_are_side_by_side_or_in_equal_rows(
    browser: Any, address: str, width: int, names: str, in_row: int
) -> None:
    with watched_page(browser, address, viewport={"width": width, "height": 900}) as page:
        anchor = f"run=maps_transformer&second=maps_luong&text={TEXT}&unit=words&difference=true"
        page.goto(f"{address}/#{anchor}")
        page.locator("#minus .cell").first.wait_for()
        if "changed" in names:
            page.locator("#try-block").click()
            page.locator("#changed .cell").first.wait_for()
            page.locator("#results[aria-busy='false']").wait_for()
        maps = [page.locator(f"#{name} .map svg").bounding_box() for name in names.split()]
        headings = [page.locator(f"#{name} h2").bounding_box() for name in names.split()]
        tops = [box["y"] for box in maps]
        assert {tops.count(top) for top in tops} == {in_row}, "maps of a row begin at the same height"
        for heading, box in zip(headings, maps, strict=True):
            assert heading["y"] < box["y"] < heading["y"] + 300, "a map is below its own heading"
        said = page.locator("#minus .verdict").text_content()
        assert said.endswith("”")
        assert ".”." not in said


def test_the_page_says_that_another_run_or_sentence_drops_the_changes(page: Any) -> None:
    assert page.locator("#status").text_content() == ""
    page.locator("#try-block").click()
    page.locator("#changed .cell").first.wait_for()
    page.locator("#run").select_option("maps_luong")
    page.get_by_text("The changes to the previous translation").wait_for()
    assert page.locator("#changes li").count() == 0
    page.go_back()
    page.locator("#changes li").wait_for()
    ready(page)
    page.locator("#changed .cell").first.wait_for()
    assert page.locator("#run").input_value() == "maps_transformer"
    assert page.locator("#status").text_content() == ""
    translate(page, "two one.")
    page.get_by_text("The changes to the previous translation").wait_for()
    translate(page, "three one.")
    assert page.locator("#status").text_content() == ""


def test_a_menu_closes_when_something_else_is_clicked(page: Any) -> None:
    page.locator("#save-menu summary").click()
    assert page.locator("#save-csv").is_visible()
    cell(page, 0, 0).click()
    assert not page.locator("#save-csv").is_visible()


def test_the_weight_of_the_cell_under_the_pointer_is_written_into_it(page: Any) -> None:
    page.locator("#unit").select_option("words")
    cell(page, 1, 0).hover()
    written = page.locator("#intact .readout").text_content()
    assert float(written) == pytest.approx(float(cell(page, 1, 0).locator("title").text_content()[-5:]), abs=0.0051)
    word(page, 0).hover()
    assert page.locator("#intact .readout").count() == 0


def test_lines_have_the_weights_of_the_cells(page: Any) -> None:
    strong = [title for title in tips(page.locator("#intact .cell")) if float(title[-5:]) > 0.05]
    page.locator("#view").select_option("lines")
    assert page.locator("#intact .cell").count() == 0
    lines = page.locator("#intact path title").all_text_contents()
    assert set(strong) <= set(lines)
    page.locator("#intact text[data-row='1']").click()
    assert "looks at" in page.locator("#selection").text_content()
    page.locator("#intact svg").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.querySelector('#intact text[data-row].chosen').dataset.row === '2'")


def test_a_cell_is_dragged(page: Any) -> None:
    page.locator("#layer").select_option("1")
    page.locator("#head").select_option("1")
    fills = "cells => cells.map(cell => cell.getAttribute('fill'))"
    row_fills = [page.locator(f"#intact .cell[data-row='{row}']") for row in range(2)]
    trained = [locator.evaluate_all(fills) for locator in row_fills]
    box = cell(page, 1, 1).bounding_box()
    page.mouse.move(box["x"] + 10, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 10, box["y"] - 100, steps=4)
    page.locator("#intact .map svg").dispatch_event("pointercancel")
    assert [locator.evaluate_all(fills) for locator in row_fills] == trained
    page.mouse.up()
    page.mouse.move(box["x"] + 10, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 10, box["y"] - 200, steps=4)
    other, row = [locator.evaluate_all(fills) for locator in row_fills]
    assert other == trained[0]
    assert row[1] != trained[1][1]
    assert set(row[:1] + row[2:]) == {row[0]}, "the other weights of the row are 0 already before the release"
    page.mouse.up()
    page.locator("#changed svg").wait_for()
    assert len(set(row_fills[1].evaluate_all(fills))) > 2, "the run's own weights are back"
    row = tips(page.locator("#changed .cell[data-row='1']"))
    assert [float(title[-5:]) for title in row] == [float(column == 1) for column in range(len(row))]
    page.locator("#weight").fill("0.25")
    edited = "#changed .cell[data-row='1'][data-column='1']"
    page.wait_for_function("place => document.querySelector(place).dataset.tip.endsWith('0.250')", arg=edited)
    assert page.locator("#changes li").count() == 1, "the change of a row replaces the one before"
    page.locator("#intact svg").focus()
    for _ in range(3):
        page.keyboard.press("+")
    page.wait_for_function("() => document.querySelector('#changes li').textContent.includes('= 0.55')")


def test_weight_is_never_given_to_a_column_that_the_row_cannot_see(page: Any) -> None:
    page.locator("#site").select_option("decoder_self")
    page.locator("#layer").select_option("0")
    page.locator("#head").select_option("0")
    ready(page)
    cell(page, 2, 0).click()
    press(page, "All weight here")
    page.locator("#changed svg").wait_for()
    page.locator("#weight").fill("0.5")
    edited = "#changed .cell[data-row='2'][data-column='0']"
    page.wait_for_function("place => document.querySelector(place).dataset.tip.endsWith('0.500')", arg=edited)
    row = [title for title in tips(page.locator("#changed .cell[data-row='2']")) if re.search(r"\d\.\d{3}$", title)]
    assert sum(float(title[-5:]) for title in row) == pytest.approx(1, abs=0.002)
    cell(page, 0, 0).click()
    page.locator("#weight").fill("0.4")
    only = "#changed .cell[data-row='0'][data-column='0']"
    page.wait_for_function("place => document.querySelector(place).dataset.tip.endsWith('0.400')", arg=only)
    others = tips(page.locator("#changed .cell[data-row='0']"))[1:]
    assert all(title.endswith("so the weight is always 0.") for title in others)


def test_a_row_sees_itself_unless_it_is_one_of_an_lstmn(page: Any, address: str) -> None:
    page.locator("#site").select_option("decoder_self")
    ready(page)
    cell(page, 0, 0).click()
    press(page, "Block at every step")
    page.locator("#changed svg").wait_for()
    assert "always 0" not in tips(page.locator("#changed .cell[data-row='1'][data-column='1']"))[0]
    described = {**page.request.get(f"{address}/v1/runs/maps_transformer").json(), "model": "Luong"}
    page.route("**/v1/runs/maps_transformer", lambda route: route.fulfill(json=described))
    page.reload()
    ready(page)
    for site in ("decoder_self", "encoder_self"):
        page.locator("#site").select_option(site)
        row = [title for column in range(3) for title in tips(cell(page, 1, column))]
        assert [title.endswith("is always 0.") for title in row] == [False, True, True]
    assert "sees only what comes before it, so its weight on" in row[1]


def test_temperature_normalizer_and_window_of_a_layer(page: Any) -> None:
    page.locator("#layer-box summary").click()
    before = max(numbers(page, "intact"))
    page.locator("#temperature").fill("50")
    page.locator("#temperature").press("Tab")
    page.locator("#changed svg").wait_for()
    width = page.locator("#changed text[data-column]").count()
    assert numbers(page, "changed") == pytest.approx([1 / width] * len(numbers(page, "changed")), abs=0.05)
    assert max(numbers(page, "changed")) < before
    page.locator("#temperature").fill("1")
    page.locator("#temperature").press("Tab")
    page.locator("#changed svg").wait_for(state="hidden")
    page.locator("#normalizer").select_option("sparsemax")
    page.locator("#changed svg").wait_for()
    page.locator("#half-width").fill("0")
    page.locator("#half-width").press("Tab")
    page.locator("#changes li").nth(1).wait_for()
    ready(page)
    assert sorted(set(numbers(page, "changed")))[-1] == 1.0, "a window of one word"
    # In the other language, a link says it in that language.
    page.goto(link(page).replace("#", "?lang=vi#"))
    page.locator("#changes li").nth(1).wait_for()
    shown = [text.split(" · ")[0] for text in page.locator("#changes li:not(.all)").all_text_contents()]
    assert shown == ["hàm chuẩn hóa = sparsemax", "nửa độ rộng cửa sổ D = 0"]
    ready(page)


def test_the_beam_is_as_wide_as_asked_for(page: Any) -> None:
    page.locator("#search-box summary").click()
    page.locator("#beam-box summary").click()
    page.locator("#beam text.other").first.wait_for()
    page.locator("#beam-size").fill("1")
    page.locator("#beam-size").press("Tab")
    page.wait_for_function("() => document.querySelectorAll('#beam text.other').length === 0")
    assert page.locator("#beam text.best").count() > 0
    assert "beamSize=1" in link(page)


def test_a_guess_is_compared_with_the_known_alignment(page: Any, browser: Any) -> None:
    page.locator("#guess-box summary").click()
    page.locator("#guess-pair").select_option("How old is Mai?")
    first = page.get_by_role("button", name="“Mai” – “Mai?”")
    first.click()
    assert first.get_attribute("aria-pressed") == "true"
    clicked = first.element_handle()
    for run in ("maps_luong", "maps_transformer"):
        page.locator("#run").select_option(run)
        page.wait_for_load_state("networkidle")
    assert clicked.evaluate("cell => cell.isConnected"), "the examples of another run draw the same table only once"
    first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.i") == "3", "there is no column to the right"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    press(page, "Reveal")
    page.locator("#guess-rates tr").nth(3).wait_for()
    board, score = (page.locator(name).bounding_box() for name in ("#guess-table", "#guess-rates"))
    assert board["y"] <= score["y"] + 8 < board["y"] + board["height"], "the score is beside the map"
    names = page.locator("#guess-rates th[scope='row']").all_text_contents()
    assert names == ["you", "the model", "the diagonal"]
    [gold] = [pair.gold for pair in aligned_pairs(Direction("en", "vi")) if pair.source == "How old is Mai?"]
    expected = rates([{(3, 0), (2, 0)}], [gold]).aer
    assert page.locator("#guess-rates tr").nth(1).locator("td").first.text_content() == f"{expected:.2f}"
    assert page.locator("#guess-table button", has_text="●").count() == len(gold.sure)
    assert page.locator("#guess-table .largest").count() == 4, "a largest weight for each word of the translation"
    assert page.locator("#guess-text p").all_text_contents()[0] == "How old is Mai?", "the pair is running text too"
    other = browser.new_context().new_page()
    other.goto(link(page))
    other.locator("#guess-rates tr").nth(3).wait_for()
    assert other.locator("#guess-pair").input_value() == "How old is Mai?"
    other.context.close()
    press(page, "Close")
    page.locator("#guess-table").wait_for(state="hidden")
    page.wait_for_function("() => !location.hash.includes('pair=')")
    assert not re.search("pair=|guess=|revealed=", link(page))
    assert page.evaluate("document.activeElement.parentElement.id") == "guess-box"
    page.locator("#guess-box summary").click()
    page.locator("#guess-table button").first.wait_for()
    assert "pair=How" in link(page)
    assert page.locator("#guess-table [aria-pressed='true']").count() == 0, "a new guess"


def test_the_address_has_the_guess_that_is_open(page: Any) -> None:
    examples = "**/v1/examples?run=maps_luong"
    pair = {"source": "Hello!", "target": "Xin chào!", "aligned": True}
    page.locator("#guess-box summary").click()
    page.locator("#guess-pair").select_option("How old is Mai?")
    page.locator("#guess-table button").first.click()
    # A run without this sentence begins with a sentence that it has.
    page.route(examples, lambda route: route.fulfill(json=[pair]))
    page.locator("#run").select_option("maps_luong")
    page.locator("#guess-text p", has_text="Hello!").wait_for()
    ready(page)
    assert "pair=Hello" in link(page)
    assert "guess=" not in link(page)
    # A run without such sentences has no guess.
    page.unroute(examples)
    page.route(examples, lambda route: route.fulfill(json=[]))
    page.reload()
    page.locator("#guess-box").wait_for(state="hidden")
    page.wait_for_function("() => !location.hash.includes('pair=')")


def test_the_address_keeps_its_guess_if_the_sentences_of_the_run_are_not_known(browser: Any, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.route("**/v1/examples?run=*", lambda route: route.fulfill(status=500, json={"error": "No examples."}))
    page.goto(f"{address}/#run=maps_transformer&text={TEXT}&pair=How old is Mai?&guess=[[0,0]]")
    page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
    assert page.locator("#guess-box").is_hidden()
    page.locator("#intact .cell").first.click()
    assert "row=0" in link(page)
    assert "pair=How+old+is+Mai%3F&guess=" in link(page)
    context.close()


def test_the_back_button_leaves_the_reader_at_the_map(page: Any) -> None:
    page.locator("#guess-box summary").click()
    page.locator("#guess-table button").first.wait_for()
    translate(page, f"{TEXT} four.")
    page.evaluate("scrollTo(0, 0)")
    columns = page.locator("#intact text[data-column]").count()
    page.go_back()
    page.wait_for_function("most => document.querySelectorAll('#intact text[data-column]').length < most", arg=columns)
    ready(page)
    page.wait_for_load_state("networkidle")
    assert page.locator("#guess-table").is_visible()
    assert page.evaluate("scrollY") == 0


def open_attribution(page: Any) -> None:
    page.get_by_text("What each piece depends on (attribution)").click()
    page.locator("#attributed .cell").first.wait_for()


def test_what_a_piece_depends_on(page: Any, browser: Any) -> None:
    open_attribution(page)
    rows, columns = (page.locator(f"#intact text[data-{side}]").count() for side in ("row", "column"))
    assert page.locator("#attributed .cell").count() == rows * columns
    page.locator("#attributed .cell").nth(1).click()
    assert re.search(
        r"“.+” contributes [+−]?\d+\.\d\d nats to “.+”\.", page.locator("#attributed .verdict").text_content()
    )
    page.keyboard.press("Escape")
    assert page.locator("#attributed .verdict").text_content() == ""
    occluded = numbers(page, "attributed")
    page.locator("#method").select_option("value_zeroing")
    page.get_by_role("heading", name="value zeroing").wait_for()
    page.locator("#attributed .cell").first.wait_for()
    assert not page.locator("#contrast").is_visible()
    assert min(numbers(page, "attributed")) >= 0
    assert numbers(page, "attributed") != occluded
    page.locator("#method").select_option("occlusion")
    page.locator("#contrast").fill("</s>")
    page.locator("#contrast").press("Enter")
    page.get_by_role("heading", name="occlusion, contrasted with “</s>”").wait_for()
    page.locator("#attributed .cell").first.wait_for()
    expected = numbers(page, "attributed")
    assert expected != occluded

    other = browser.new_context().new_page()
    other.goto(link(page))
    other.locator("#attributed .cell").first.wait_for()
    assert other.locator("#contrast").input_value() == "</s>"
    assert numbers(other, "attributed") == expected
    other.context.close()


def test_the_attribution_of_another_sentence_or_run_goes(page: Any) -> None:
    open_attribution(page)
    page.locator("#layer").select_option("0")
    press(page, "Switch off")
    page.locator("#changed .cell").first.wait_for()
    assert "without your changes" in page.locator("#attributed .verdict").text_content()
    with page.expect_download() as download:
        save(page, "csv")
    assert '\n"occlusion",' in download.value.path().read_text(encoding="utf-8")
    page.route("**/v1/attribute/stream", lambda route: None)  # never answered
    page.locator("#text").fill("one.")
    page.locator("#ask button").click()
    page.get_by_text("computing …").wait_for()
    assert page.locator("#attributed .cell").count() == 0
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/v1/attribute/stream")):
        page.locator("#run").select_option("maps_luong")
    page.unroute("**/v1/attribute/stream")
    page.get_by_text("What each piece depends on (attribution)").click()
    ready(page)
    with page.expect_download() as download:
        save(page, "svg")
    assert "occlusion" not in download.value.path().read_text(encoding="utf-8")
    open_attribution(page)
    assert page.get_by_role("heading", name="Attribution by maps_luong: occlusion").is_visible()


def test_an_attribution_shows_its_percentage_and_is_canceled(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    own, canceled = Batcher.between_steps, threading.Event()

    def slowly(self: Batcher, step: object = None) -> None:
        time.sleep(0.05)
        try:
            own(self, step)
        except Abandoned:
            canceled.set()
            raise

    monkeypatch.setattr(Batcher, "between_steps", slowly)
    page.get_by_text("What each piece depends on (attribution)").click()
    page.locator("#method").select_option("integrated_gradients")
    page.wait_for_function("() => document.getElementById('attribution-progress').value >= 2")
    assert re.fullmatch(r"\d+ %", page.locator("#attribution-percent").text_content())
    page.locator("#attribution-cancel").focus()
    page.keyboard.press("Enter")
    assert page.locator("#attributed-verdict").text_content() == "Canceled."
    assert canceled.wait(20), "the server stops"
    monkeypatch.setattr(Batcher, "between_steps", own)
    assert page.evaluate("document.activeElement.id") == "attribution-again"
    page.keyboard.press("Enter")
    page.locator("#attributed .cell").first.wait_for()
    assert page.locator("#attribution-wait").is_hidden()


def test_an_attribution_that_cannot_be_made_says_why(browser: Any, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}/#run=maps_transformer&text=one&method=occlusion&contrast=m%E1%BB%99t hai")
    page.get_by_text("it must be one piece of the target vocabulary").wait_for()
    assert page.locator("#contrast").get_attribute("aria-invalid") == "true"
    page.locator("#contrast").fill("")
    page.locator("#contrast").press("Enter")
    page.locator("#attributed .cell").first.wait_for()
    context.close()


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(empty: Any, address: str, dark: bool) -> None:
    page = empty
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto(f"{address}/?lang={'vi' if dark else 'en'}#{EVERYTHING}")
    page.locator("#minus .cell").first.wait_for()
    page.locator("#attributed .cell").first.wait_for()
    page.locator("#guess-rates tr").nth(2).wait_for()
    word(page, 0).click()
    page.locator("#word-others button").first.wait_for()
    page.locator("details").evaluate_all("boxes => boxes.forEach(box => { box.open = true; })")
    page.evaluate("document.getElementById('file-box').hidden = false")
    page.locator("#numbers tr").first.wait_for()
    found = Axe().run(page).response["violations"]
    assert [(each["id"], each["impact"], [node["html"][:80] for node in each["nodes"]]) for each in found] == []


def test_a_phone_shows_everything_without_scrolling_sideways(browser: Any, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{address}/#{EVERYTHING}")
    page.locator("#minus .cell").first.wait_for()
    page.locator("#attributed .cell").first.wait_for()
    page.locator("#guess-rates tr").nth(2).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("#weight").bounding_box()["height"] >= 24
    context.close()


def test_a_phone_shows_the_guess_of_the_address(browser: Any, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{address}/#run=maps_transformer&text={TEXT}&pair=How old is Mai?")
    page.wait_for_function("() => scrollY > 0")
    box = page.locator("#guess-table").bounding_box()
    assert 0 <= box["y"] < 844
    wide = "name => document.querySelector(name).scrollWidth - document.querySelector(name).clientWidth"
    for pair in page.locator("#guess-pair option").all_text_contents():
        page.locator("#guess-pair").select_option(pair)
        page.locator("#guess-text p", has_text=pair).first.wait_for()
        assert page.evaluate(wide, "#guess-board > .scroll") <= 0, pair
    assert page.locator("#guess-table button").first.bounding_box()["width"] >= 24
    assert page.locator("#selection").text_content().startswith("Tap a word")
    context.close()


def test_the_page_opens_translated_and_does_what_it_offers_to_try(browser: Any, address: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    page.goto(address)
    page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
    example = page.request.get(f"{address}/v1/examples").json()[0]["source"]
    assert page.locator("#text").input_value() == example
    assert page.locator("#answer .translation").text_content().strip()
    legend = "Each row is a word of the translation, and each column a word of the source."
    assert page.locator("#legend").text_content().startswith(legend)
    assert page.locator("#unit").input_value() == "words"
    page.locator("#try-cell").click()
    assert page.locator("#intact .cursor").count() == 1
    assert "looks at" in page.locator("#selection").text_content()
    assert page.locator("#tries").bounding_box()["height"] < 50, "the next things to try stay in one line"
    page.keyboard.press("Escape")
    assert page.locator("#start-over").is_hidden(), "nothing is selected or changed"
    page.locator("#try-block").click()
    page.locator("#changed svg").wait_for()
    assert "blocked" in page.locator("#changes li").text_content()
    page.get_by_role("button", name="Start over").click()
    page.locator("#changed svg").wait_for(state="hidden")
    assert "changes=" not in link(page)
    assert "row=" not in link(page)
    page.locator("#try-guess").click()
    assert page.evaluate("document.activeElement.closest('#guess-table') !== null")
    page.goto("about:blank")
    page.goto(f"{address}/#text={TEXT}&row=0&column=0&unit=letters&view=none&beamSize=0")
    page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
    assert page.locator("#unit").input_value() == "words"
    assert page.locator("#view").input_value() == "heat"
    assert page.locator("#beam-size").input_value() == ""
    context.close()


def test_what_the_model_never_saw_is_named(page: Any, address: str) -> None:
    assert page.locator("#warning").is_hidden(), "the run was not trained on the embedded corpus"
    translate(page, "one Ω two.")
    assert "“Ω”" in page.locator("#unknown").text_content()
    described = {**page.request.get(f"{address}/v1/runs/maps_luong").json(), "embedded": True}
    page.route("**/v1/runs/maps_luong", lambda route: route.fulfill(json=described))
    page.reload()
    page.locator("#run").select_option("maps_luong")
    page.locator("#warning").wait_for()


def test_runs_of_other_languages_are_offered_no_other_direction(page: Any) -> None:
    """The letters of a sentence tell English and Vietnamese apart, but no further language."""
    directions = {"maps_luong": ("de", "en"), "maps_transformer": ("en", "de")}
    runs = [{"name": name, "source": source, "target": target} for name, (source, target) in directions.items()]
    page.route("**/v1/runs", lambda route: route.fulfill(json=runs))
    page.reload()
    for run, text in (
        ("maps_luong", "Das ist gut."),
        ("maps_luong", "We drink tea."),
        ("maps_transformer", "Một hai."),
    ):
        page.locator("#run").select_option(run)
        translate(page, text)
        assert page.locator("#intact .cell").count() > 0
        assert page.locator("#status").text_content() == ""
        assert page.locator("#direction").is_hidden()


def test_a_language_is_named_only_where_the_letters_tell(page: Any) -> None:
    expected = {
        "How old is Mai?": "en",
        "Chúng tôi uống trà.": "vi",
        "Toi la sinh vien o Ha Noi.": "",  # Vietnamese that is typed without its accents
        "Nguoi ban cua toi dung Facebook.": "",
        "Das ist schön und gut.": "",
        "Mai Lan": "",
    }
    languages = "texts => import('/page/lab/direction.js').then(({ languageOf }) => texts.map(languageOf))"
    assert dict(zip(expected, page.evaluate(languages, list(expected)), strict=True)) == expected


def test_how_many_times_less_likely_is_said_up_to_a_million(page: Any) -> None:
    written = "nats => import('/page/lab/wording.js').then(({ timesOf }) => nats.map(timesOf))"
    changes = [0, -0.5, 7, -13.8, -14, 100, -800]
    expected = ["1", "1.6", "1,100", "980,000", "more than a million", "more than a million", "more than a million"]
    assert page.evaluate(written, changes) == expected
    page.goto(page.url.replace("#", "?lang=vi#"))
    assert page.evaluate(written, [-0.5, 800]) == ["1,6", "trên một triệu"]


def test_the_pieces_of_the_other_choices_are_explained(page: Any) -> None:
    page.locator("#intact text[data-row='0']").click()
    page.locator("#alternatives button").first.wait_for()
    assert page.locator("#alternatives-box h2").text_content() == "Pieces for this position"
    page.locator("#alternatives-box .term").click()
    assert page.locator("#tip").text_content().startswith("Words and parts of words")


LONG = "one two three one two three one two three one two three."


@pytest.mark.parametrize(("width", "height", "first_row"), [(1280, 720, 420), (390, 844, 400)])
def test_cause_and_effect_are_in_one_window(
    browser: Any, address: str, width: int, height: int, first_row: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.goto(f"{address}/#run=maps_transformer&text={LONG}&unit=words")
    page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
    before = cell(page, 0, 0).bounding_box()["y"]
    assert before < first_row
    cell(page, 0, 1).click()
    press(page, "Block at every step")
    page.locator("#changed svg").wait_for()
    page.evaluate("scrollTo(0, 0)")
    boxes = {
        name: page.locator(name).bounding_box()
        for name in ("#intact svg", "#clicked", "#outcome", "#changed svg", "#actions")
    }
    for name in ("#clicked", "#outcome", *(["#actions"] if width < 1000 else [])):
        assert boxes[name]["y"] + boxes[name]["height"] <= height, f"{name} is in the window"
    if width > 1000:
        assert boxes["#clicked"]["x"] >= boxes["#intact svg"]["x"] + boxes["#intact svg"]["width"]
        assert boxes["#changed svg"]["x"] > boxes["#intact svg"]["x"]
        assert cell(page, 0, 0).bounding_box()["y"] == page.locator("#changed .cell").first.bounding_box()["y"]
        assert abs(cell(page, 0, 0).bounding_box()["y"] - before) <= 20, "the map stays where it was"
        buttons = page.locator("#heads button").all()
        assert len(buttons) == 9, "two layers with two heads, and their means"
        for box in (button.bounding_box() for button in buttons):
            assert 0 < box["y"] < box["y"] + box["height"] <= height, "all heads are in the window"
            assert 0 < box["x"] < box["x"] + box["width"] <= width
    assert not page.locator("#site").is_visible(), "the options are folded"
    chosen = "cross attention, all layers and heads · words"
    assert page.locator("#chosen").text_content() == chosen
    page.locator("#options summary").focus()
    page.keyboard.press("Enter")
    page.locator("#head").select_option("1")
    if width > 1000:
        columns = page.locator("#choices > :visible").evaluate_all("items => items.map(item => item.offsetTop)")
        assert max(columns) - min(columns) < 10, "one row of controls"
    page.locator("#chosen", has_text="cross attention, head 1 · words").wait_for()
    context.close()


def word(page: Any, index: int) -> Any:
    return page.locator(f"#answer .translation [data-word='{index}']")


def test_a_translation_is_typed_over(page: Any) -> None:
    translate(page, LONG)
    press(page, "Edit")
    assert page.locator("#edit-text").input_value() == page.locator("#answer .translation").text_content()
    page.keyboard.press("Escape")
    assert page.locator("#edit-box").is_hidden()
    press(page, "Edit")
    page.locator("#edit-text").fill("ba hai")
    page.keyboard.press("Enter")
    page.locator("#changes li").first.wait_for()
    ready(page)
    assert page.locator("#answer .translation").text_content().startswith("ba hai")
    assert page.locator("#changes li").text_content().startswith("Kept: ba hai")
    press(page, "Edit")
    translate(page)
    assert page.locator("#edit-box").is_hidden(), "the text in it was another sentence's"
    assert page.locator("#answer .translation").is_visible()
    module = "import('/page/lab/translation.js').then((module) => %s)"
    for before, typed, kept in [
        ("a b c d", "a x c d", "a x"),
        ("a b c d", "a b", "a b"),
        ("a b c d", "a c d", "a c"),
        ("a b c d", "", ""),
        ("a b", "a b c", "a b c"),
        ("a b c d", "x a b c d", "x"),
    ]:
        assert page.evaluate(module % f"module.keptText({json.dumps(before)}, {json.dumps(typed)})") == kept


def test_a_word_should_look_at_a_source_word(page: Any) -> None:
    page.locator("#unit").select_option("words")
    start, end = word(page, 0).bounding_box(), page.locator("#intact .label[data-column='1']").bounding_box()
    page.mouse.move(start["x"] + 4, start["y"] + 6)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=4)
    assert page.locator("#ghost").is_visible()
    assert page.locator("#intact .target").count() == 1
    page.mouse.up()
    page.locator("#changed svg").wait_for()
    assert page.locator("#word-menu").is_hidden(), "a drag is no click"
    ready(page)
    lit = page.locator("#intact text.lit").evaluate_all("labels => labels.map(({ dataset }) => dataset.row)")
    assert lit == ["0"], "the map that moved under the pointer is not pointed at"
    row = tips(page.locator("#changed .cell[data-row='0']"))
    assert [float(title[-5:]) for title in row] == [float(column == 1) for column in range(len(row))]
    ready(page)
    word(page, 0).press("Enter")
    page.locator("#word-look").select_option("2")
    edited = "#changed .cell[data-row='0'][data-column='2']"
    page.wait_for_function("place => document.querySelector(place).dataset.tip.endsWith('1.000')", arg=edited)
    assert page.locator("#changes li").count() == 1, "the new place replaces the old one"
    ready(page)
    word(page, 0).hover()
    end = page.locator("#echo span").first.bounding_box()
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=4)
    assert page.locator("#echo .target").all_text_contents() == [TEXT.split()[0]]
    page.mouse.up()
    edited = "#changed .cell[data-row='0'][data-column='0']"
    page.wait_for_function("place => document.querySelector(place).dataset.tip.endsWith('1.000')", arg=edited)
    # What is selected at another site is no place in the map of cross attention.
    page.locator("#site").select_option("encoder_self")
    page.locator("#intact text[data-column='1']").click()
    page.locator("#word-look").select_option("1")
    edited = "#changed .cell[data-row='0'][data-column='1']"
    page.wait_for_function("place => document.querySelector(place).dataset.tip.endsWith('1.000')", arg=edited)
    assert page.locator("#site").input_value() == "cross"
    assert page.locator("#intact .outline, #intact .cursor").count() == 0
    ready(page)
    assert page.locator("#word-look").input_value() == "1"
    page.locator("#word-look").select_option("")
    page.locator("#changed svg").wait_for(state="hidden")
    cell(page, 1, 0).click()
    assert page.locator("#word-menu").is_hidden(), "the menu is not of the selected row"


def test_a_translation_is_copied_and_followed_step_by_step(page: Any) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    press(page, "Copy")
    page.get_by_text("Translation copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#answer .translation").text_content()
    assert page.locator("#swap").is_hidden(), "no run has the opposite direction"
    rows = page.locator("#intact text[data-row]").count()
    seen = page.locator("#intact text[data-row]:not(.later)")
    page.locator("#intact svg").focus()
    for step in (1, 2):
        page.keyboard.press("Space")
        assert page.locator("#step-name").text_content() == f"{step} of {rows}"
        assert seen.count() == step
    press(page, "Previous step")
    assert seen.count() == 1
    with page.expect_download() as download:
        save(page, "svg")
    saved = download.value.path().read_text(encoding="utf-8")
    columns = page.locator("#intact text[data-column]").count()
    assert len(re.findall(r"<text [^>]*data-row=", saved)) == 1, "a picture hides what the page hides"
    assert len(re.findall(r'<rect class="cell[^>]*fill="#ffffff"', saved)) == (rows - 1) * columns
    assert len(re.findall(r"<title>[^<]*: [01]\.\d{3}</title>", saved)) == columns, "the weights of one row"
    words = page.locator("#answer .translation [data-word]:not(.later)").all_text_contents()
    assert re.findall(r'<text [^>]*y="72"[^>]*>([^<]*)<', saved) == [" ".join(words)]
    press(page, "Show all")
    assert seen.count() == rows
    assert page.locator("#intact .later").count() == 0


def test_steps_play_by_themselves_until_somebody_looks_closer(page: Any) -> None:
    press(page, "▶ Play")
    page.get_by_text(re.compile("^2 of ")).wait_for()
    assert page.locator("#edit").is_hidden(), "a step has the row to itself"
    cell(page, 0, 0).click()
    assert page.get_by_role("button", name="▶ Play").count() == 1
    shown = page.locator("#step-name").text_content()
    page.wait_for_timeout(1500)  # longer than a step
    assert page.locator("#step-name").text_content() == shown


def play_two_steps(page: Any) -> None:
    press(page, "▶ Play")
    page.get_by_text(re.compile("^2 of ")).wait_for()
    assert page.locator("#intact .later").count() > 0


def film_has_ended(page: Any) -> None:
    page.locator("#step-all").wait_for(state="hidden")
    assert page.locator(".later").count() == 0
    assert page.get_by_role("button", name="▶ Play").count() == 1


@pytest.mark.parametrize("opener", ["#answer [data-word='0']", "#guess-box summary"])
def test_what_opens_a_panel_ends_the_film(page: Any, opener: str) -> None:
    play_two_steps(page)
    page.locator(opener).click()
    film_has_ended(page)


def test_a_thing_to_try_ends_the_film(page: Any) -> None:
    play_two_steps(page)
    page.locator("#try-cell").click()
    film_has_ended(page)
    assert page.locator("#intact .cursor").count() == 1, "what was selected stays selected"


def test_a_new_weight_ends_the_film(page: Any) -> None:
    play_two_steps(page)
    cell(page, 0, 0).click()
    page.locator("#weight").fill("0.5")
    film_has_ended(page)


SHARES = """names => names.map(name => [...document.querySelectorAll(name)].map(
    word => [word.textContent, parseFloat(word.style.getPropertyValue("--share")) || 0]))"""


@pytest.mark.parametrize("unit", ["words", "pieces"])
def test_pointing_at_a_word_shades_the_words_that_it_looks_at(page: Any, unit: str) -> None:
    page.locator("#unit").select_option("words")
    rows = page.locator("#intact text[data-row]").count()
    weights = np.array(numbers(page, "intact")).reshape(rows, -1)
    page.locator("#unit").select_option(unit)
    word(page, 0).hover()
    page.locator("#echo span").first.wait_for()
    [echo] = page.evaluate(SHARES, ["#echo span"])
    assert [text for text, _ in echo] == TEXT.split()
    if unit == "words":
        assert [share for _, share in echo] == pytest.approx(100 * weights[0, : len(echo)], abs=0.6)
        page.locator("#intact text[data-column='1']").hover()
        assert page.locator("#echo .pointed").text_content() == "two"
        [answer] = page.evaluate(SHARES, ["#answer [data-word]"])
        assert [share for _, share in answer] == pytest.approx(100 * weights[: len(answer), 1], abs=0.6)
    page.locator("#text").fill("one two four.")
    assert page.locator("#echo span").count() == 0, "the weights belong to another sentence"


@pytest.mark.parametrize("unit", ["words", "pieces"])
def test_words_that_were_replaced_have_the_shade_of_their_translation(
    page: Any, monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    loaded, words = Gallery.load, Dictionary({"five six": "one", "five": "two", "six": "five", "four": "two three"})
    monkeypatch.setattr(Gallery, "load", lambda self, name: loaded(self, name)._replace(dictionary=words))
    page.locator("#unit").select_option("words")
    translate(page, "five six  four.")
    rows = page.locator("#intact text[data-row]").count()
    one, two, three, _ = np.array(numbers(page, "intact")).reshape(rows, -1)[0]
    page.locator("#unit").select_option(unit)
    word(page, 0).hover()
    page.locator("#echo span").first.wait_for()
    [echo] = page.evaluate(SHARES, ["#echo span"])
    assert [text for text, _ in echo] == ["five", "six", "four."]
    if unit == "words":
        assert [share for _, share in echo] == pytest.approx([100 * x for x in (one, one, two + three)], abs=1.1)
    page.locator("#intact text[data-column='0']").hover()
    assert page.locator("#echo .pointed").all_text_contents() == ["five", "six"]
    translate(page, "five six,six four.")
    word(page, 0).hover()
    page.locator("#intact .cell").first.hover()
    assert page.locator("#echo span").count() == 0, "two words without a space between them"


DROP = """(text) => {
    const data = new DataTransfer();
    data.items.add(new File([text], "in.txt", { type: "text/plain" }));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


def test_a_file_is_translated_line_by_line(page: Any) -> None:
    expected = page.locator("#answer .translation").text_content()
    copied, in_parts = ["12345", "https://a.b/c"], "one two. " * 80
    page.evaluate(DROP, "\n".join([f"{TEXT}\r", "", *copied, in_parts, TEXT]))
    page.get_by_text("Done. Lines translated: 6.").wait_for()
    with page.expect_download() as download:
        page.locator("#file-save").click()
    assert download.value.suggested_filename == "in.maps_transformer.txt"
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert lines == [expected, "", *copied, lines[4], expected], "as by nmt.translate"
    assert lines[4]
    page.evaluate(DROP, "")
    page.get_by_text("The file is empty; choose one with a sentence on each line.").wait_for()
    page.route("**/v1/translate", lambda route: None)  # never answered
    page.evaluate(DROP, TEXT)
    page.get_by_text("line 1 of 1 …").wait_for()
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/v1/translate")):
        page.locator("#file-cancel").click()
    page.wait_for_function("() => document.getElementById('file-said').textContent === 'Canceled.'")
    assert page.locator("#file-save").is_hidden(), "no line was translated"
    page.unroute("**/v1/translate")
    held: list[Any] = []
    page.route("**/v1/translate", lambda route: route.continue_() if not held.append(route) and len(held) < 2 else None)
    page.evaluate(DROP, f"{TEXT}\n{TEXT}")
    page.get_by_text("line 2 of 2 …").wait_for()
    page.locator("#file-cancel").click()
    with page.expect_download() as download:
        page.locator("#file-save").click()
    assert download.value.path().read_text(encoding="utf-8").splitlines() == [expected]
    page.locator("#file-close").click()
    assert page.locator("#file-box").is_hidden()


def test_a_line_of_a_file_waits_while_the_server_is_busy_and_is_skipped_if_it_fails(browser: Any, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}/#run=maps_transformer&text={TEXT}")
    page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
    busy: list[dict[str, Any]] = [{"status": 429, "json": {"error": "busy"}, "headers": {"retry-after": "1"}}]
    page.route("**/v1/translate", lambda route: route.fulfill(**busy.pop()) if busy else route.continue_())
    page.evaluate(DROP, TEXT)
    page.get_by_text("Done. Lines translated: 1.").wait_for()
    assert not busy, "the line waited for its turn"
    page.evaluate(DROP, f"{'one ' * 260}\n{TEXT}")
    page.get_by_text("1 of 2 lines could not be translated; failed lines are left empty.").wait_for()
    assert (
        page.locator("#file-errors")
        .text_content()
        .startswith("Line 1: Invalid request: request (1040 characters) exceeds")
    )
    context.close()


def test_an_error_is_shown_in_a_sentence(browser: Any, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(
        f"{address}/#run=maps_transformer&text=one&site=cross&changes="
        + quote('[{"key": "", "says": ["isOff"], "place": {"site": "cross"}, "changes": [{"site": "cross"}]}]')
    )
    page.locator("#status.error").wait_for()
    assert page.locator("#status").text_content().startswith("The intervention changes nothing")
    field, said = (page.locator(name).bounding_box() for name in ("#text", "#status"))
    assert 0 <= said["y"] - field["y"] - field["height"] < 30, "beside the field"
    page.goto("about:blank")
    page.goto(f"{address}/#run=maps_transformer&text=one")
    page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
    page.locator("#search-box summary").click()
    page.route("**/v1/translate/stream", lambda route: route.fulfill(status=400, json={"error": "Too many beams."}))
    page.locator("#beam-size").fill("3")
    page.locator("#beam-size").press("Tab")
    page.locator("#search-box #status.error").wait_for()
    assert page.locator("#beam-size").get_attribute("aria-invalid") == "true"
    assert page.locator("#tools").is_visible(), "the translation is there as before"
    page.locator("#intact .term").first.hover()
    assert page.locator("#tip").text_content().startswith("The logarithm of the probability")
    # A proxy says that the server does not answer in words of its own.
    page.route("**/v1/translate/stream", lambda route: route.fulfill(status=502, body="<html>Bad Gateway</html>"))
    page.locator("#beam-size").fill("4")
    page.locator("#beam-size").press("Tab")
    page.get_by_text("The server cannot be reached. Check that nmt.serve is still running").wait_for()
    page.route("**/v1/translate/stream", lambda route: route.abort())
    page.locator("#beam-size").fill("5")
    page.locator("#beam-size").press("Tab")
    page.locator("#results[aria-busy='false']").wait_for()
    page.get_by_text("The server cannot be reached. Check that nmt.serve is still running").wait_for()
    page.route("**/v1/translate", lambda route: route.abort())
    asked: list[Any] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate(DROP, f"\n{TEXT}\n{TEXT}\n")
    page.get_by_text("Line 2: The server cannot be reached.").wait_for()
    with page.expect_download() as download:
        page.locator("#file-save").click()
    assert download.value.path().read_text(encoding="utf-8") == "\n", "the lines before"
    lines = [url for url in asked if url.endswith("/v1/translate")]
    assert len(lines) == 1, "the lines that follow would fail too"
    context.close()


def test_a_page_that_is_used_again_is_as_new(browser: Any, address: str) -> None:
    """All tests rely on it; see tests/watched_page.py."""
    settings = {"viewport": {"width": 700, "height": 500}}
    look = """() => [innerWidth, localStorage.length, matchMedia("(prefers-color-scheme: dark)").matches,
        matchMedia("(prefers-reduced-motion: reduce)").matches, typeof window.mark, document.cookie]"""
    expected = [700, 0, False, False, "undefined", ""]
    with watched_page(browser, address, **settings) as page:
        page.goto(address)
        page.evaluate("() => { localStorage.mark = window.mark = 1; document.cookie = 'mark=1'; }")
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        page.set_viewport_size({"width": 400, "height": 500})
        page.route("**/v1/runs", lambda route: route.fulfill(status=500))
        page.context.grant_permissions(["clipboard-read"])
        page.context.new_page()
        assert page.evaluate(look) == [400, 1, True, True, "number", "mark=1"]
    with watched_page(browser, address, **settings) as again:
        assert again == page
        assert again.context.pages == [again]
        again.goto(address)
        assert again.evaluate(look) == expected
        assert again.evaluate("() => fetch('/v1/runs').then(answer => answer.status)") == 200
        permission = "() => navigator.permissions.query({ name: 'clipboard-read' }).then(found => found.state)"
        assert again.evaluate(permission) == "prompt"
    with pytest.raises(AssertionError, match="said"), watched_page(browser, address, **settings) as faulty:
        faulty.evaluate("console.log('said')")
    with watched_page(browser, address, **settings) as other:
        assert other != faulty, "a page with a fault is not used again"


@pytest.mark.parametrize("path", ["/", "/page/lab.js", "/docs", "/docs/swagger-ui-bundle.js"])
def test_a_file_that_the_browser_has_is_not_sent_again(client: Any, path: str) -> None:
    first = client.get(path)
    tag = first.headers["etag"]
    for tags in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        again = client.get(path, headers={"if-none-match": tags})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    changed = client.get(path, headers={"if-none-match": '"other"'})
    assert (changed.status_code, changed.content) == (200, first.content)


def test_only_the_pages_files_can_be_had(client: Any) -> None:
    for name in FILES:
        assert client.get(f"/page/{name}").status_code == 200
    for name in ("lab.py", "..%2fpage.py", "../page.py", "%2e%2e/page.py"):
        assert client.get(f"/page/{name}").status_code == 404
    assert "text/html" in client.get("/").headers["content-type"]
    assert json.loads(client.get("/openapi.json").text)["paths"].keys() >= {"/translate", "/v1/intervene"}
