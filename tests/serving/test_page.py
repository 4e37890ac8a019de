"""The lab's page in a browser: a sentence is typed, its attention changed, and a link shows the same again."""

import json
import re
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import uvicorn

from nmt.serving.application import application
from nmt.serving.engine import Engine
from nmt.serving.gallery import Gallery
from nmt.serving.page import FILES
from nmt.serving.service import Access, Limits, Service

TEXT = "one two three."


@pytest.fixture(scope="module")
def address(gallery: Gallery) -> Iterator[str]:
    """A server in a thread."""
    limits = Limits(characters=1000, sentences=10, alternatives=3, body_bytes=100_000, seconds=60.0)
    engine = Engine(gallery, batch_tokens=400, batch_window=0.0, max_waiting=100)
    app = application(Service(gallery, engine, limits, Access(frozenset(), None, ())))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The page with the Transformer; at the end there was no message and no request to anybody else."""
    faults: list[str] = []
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(20000)
    page = context.new_page()
    page.on("request", lambda request: request.url.startswith((address, "data:")) or faults.append(request.url))
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(address)
    page.locator("#run").select_option("maps_transformer")
    yield page
    context.close()
    assert faults == []


def translate(page: Any, text: str = TEXT) -> None:
    page.locator("#text").fill(text)
    page.locator("#ask button").click()
    page.locator("#intact svg").wait_for()


def cell(page: Any, row: int, column: int) -> Any:
    return page.locator(f"#intact .cell[data-row='{row}'][data-column='{column}']")


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_a_typed_sentence_is_translated_with_its_map(page: Any) -> None:
    translate(page)
    assert page.locator("#intact .translation").text_content().strip()
    sites = page.locator("#site option").all_text_contents()
    assert sites == ["encoder_self", "decoder_self", "cross"]
    assert page.locator("#head option").all_text_contents() == ["mean", "0", "1"]
    page.locator("#site").select_option("encoder_self")
    pieces = page.locator("#intact text[data-column]").count()
    assert page.locator("#intact .cell").count() == pieces**2
    page.locator("#unit").select_option("words")
    assert page.locator("#intact text[data-column]").count() < pieces


def test_the_beam_is_a_tree_whose_best_path_is_the_translation(page: Any) -> None:
    translate(page)
    page.locator("#beam-box summary").click()
    best = page.locator("#beam text.best title").all_text_contents()
    rows = page.locator("#intact text[data-row]").count()
    assert len(best) == rows - 1, "every piece but the end"
    assert page.locator("#beam path").count() >= len(best) - 1


def test_a_blocked_word_has_no_weight_in_the_other_translation(page: Any) -> None:
    translate(page)
    cell(page, 0, 1).click()
    assert re.search(r"attends to .* with weight 0\.\d{3}", page.locator("#selection").text_content())
    press(page, "Block this word everywhere")
    page.locator("#changed svg").wait_for()
    titles = page.locator("#changed .cell[data-column='1'] title").all_text_contents()
    assert titles
    assert all(title.endswith(": 0.000") for title in titles)
    assert "nats, most at" in page.locator("#changed .verdict").text_content()
    page.get_by_role("button", name=re.compile("Remove: Block")).click()
    page.locator("#changed svg").wait_for(state="hidden")


def test_a_head_is_switched_off_and_a_row_made_even(page: Any) -> None:
    translate(page)
    page.locator("#layer").select_option("1")
    page.locator("#head").select_option("0")
    cell(page, 1, 0).click()
    press(page, "Switch this head off")
    page.locator("#changed svg").wait_for()
    titles = page.locator("#changed .cell title").all_text_contents()
    assert all(title.endswith(": 0.000") for title in titles)
    press(page, "Equal weights in this row")
    page.locator("#changes li").nth(1).wait_for()


def test_another_piece_is_taken_and_the_translation_goes_on_from_it(page: Any) -> None:
    translate(page)
    page.locator("#intact text[data-row='0']").click()
    choice = page.locator("#alternatives button:enabled").first
    piece = choice.text_content().rsplit(" ", 2)[0].replace("␣", "▁")
    choice.click()
    page.wait_for_function(
        "piece => document.querySelector('#intact text[data-row]').textContent.startsWith(piece)", arg=piece
    )
    assert page.locator("#changes li").count() == 1


def test_a_cell_is_explained(page: Any) -> None:
    translate(page)
    page.locator("#layer").select_option("0")
    page.locator("#head").select_option("1")
    cell(page, 1, 2).click()
    page.locator("#explanation summary").click()
    page.locator("#numbers tr").first.wait_for()
    weights = [
        float(text) for text in page.locator("#numbers tr:not(:first-child) td:nth-child(5)").all_text_contents()
    ]
    assert sum(weights) == pytest.approx(1, abs=1e-4 * len(weights))
    assert page.locator("#equation math").count() == 1


def test_a_link_shows_the_same(page: Any, browser: Any) -> None:
    translate(page)
    cell(page, 0, 1).click()
    press(page, "Block this word everywhere")
    page.locator("#changed svg").wait_for()
    shown = [page.locator(f"#{name} .translation").text_content() for name in ("intact", "changed")]
    context = browser.new_context()
    other = context.new_page()
    other.goto(page.url)
    other.locator("#changed svg").wait_for()
    assert [other.locator(f"#{name} .translation").text_content() for name in ("intact", "changed")] == shown
    assert other.locator("#text").input_value() == TEXT
    context.close()


def test_the_map_is_saved(page: Any) -> None:
    translate(page)
    for kind, begins in (("svg", "<svg"), ("json", "{"), ("csv", '"",')):
        with page.expect_download() as download:
            page.locator(f"#save-{kind}").click()
        assert download.value.path().read_text(encoding="utf-8").startswith(begins)
        assert download.value.suggested_filename == f"map.{kind}"


def test_the_keyboard_moves_the_cell(page: Any) -> None:
    translate(page)
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
    names = page.evaluate("import('/page/text.js').then((text) => text.labelNames)")
    assert names["en"] == names["vi"]
    used = "".join(path.read_text(encoding="utf-8") for name, path in FILES.items() if name != "text.js")
    assert [name for name in names["en"] if f'"{name}"' not in used] == []
    page.goto(f"{address}/?lang=vi")
    page.locator("#run option").first.wait_for(state="attached")
    assert page.locator("html").get_attribute("lang") == "vi"
    assert page.get_by_role("button", name="Dịch", exact=True).count() == 1


def test_an_error_is_shown_in_a_sentence(browser: Any, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}/#run=maps_transformer&text=one&site=cross&changes=" + quote('[{"change": {}}]'))
    page.locator("#status.error").wait_for()
    assert page.locator("#status").text_content().startswith("The intervention changes nothing")
    context.close()


def test_only_the_pages_files_can_be_had(client: Any) -> None:
    for name in FILES:
        assert client.get(f"/page/{name}").status_code == 200
    for name in ("lab.py", "..%2fpage.py", "../page.py", "%2e%2e/page.py"):
        assert client.get(f"/page/{name}").status_code == 404
    assert "text/html" in client.get("/").headers["content-type"]
    assert json.loads(client.get("/openapi.json").text)["paths"].keys() >= {"/translate", "/v1/intervene"}
