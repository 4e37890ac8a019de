"""The lab for a lecture hall: a presentation, and a QR code for the class."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from watched_page import watched_page

# Checking annotations would slow down the server, which runs in this process.
pytestmark = pytest.mark.unchecked

HIGH = 1080
STATE = "run=maps_transformer&text=one two three.&unit=words"
# The size of the letters of everything that can be seen, in pixels; a drawing may be magnified.
SIZES = """() => [...document.querySelectorAll("body *")].filter((item) => item.checkVisibility()
    && !item.matches(".unseen, .unseen *, h1, title, option, dialog *")
    && [...item.childNodes].some((node) => node.nodeType === 3 && node.data.trim())).map((item) => {
  const drawing = item.closest("svg"), scale = drawing ? drawing.clientWidth / drawing.viewBox.baseVal.width : 1;
  return [parseFloat(getComputedStyle(item).fontSize) * scale, item.textContent];
})"""


SCALE = "drawing => drawing.clientWidth / drawing.viewBox.baseVal.width"

# How much higher the page is than the window.
HIGHER = "() => document.documentElement.scrollHeight - innerHeight"


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The presentation."""
    with watched_page(browser, address, "data:", viewport={"width": 1920, "height": HIGH}) as page:
        page.goto(f"{address}/?present#{STATE}")
        page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
        yield page


def test_the_presentation_can_be_read_from_the_last_row_and_left_by_a_key(page: Any) -> None:
    page.locator("#intact .cell").first.click()
    page.get_by_role("button", name="Block at every step").click()
    page.locator("#outcome:not([hidden])").wait_for()
    assert page.locator("#changed .cell").first.is_visible(), "the class sees what changed"
    sizes = page.evaluate(SIZES)
    assert len(sizes) > 20
    assert [(size, text) for size, text in sizes if size < HIGH / 50] == []
    words = page.locator("#intact .map .label, #answer .translation, #outcome .translation").all_text_contents()
    assert all(size >= HIGH / 40 - 0.1 for size, text in sizes if text in words)  # a drawing has whole pixels
    assert Axe().run(page).response["violations"] == []
    map_of_lecture = page.locator("#intact .map svg").bounding_box()
    assert map_of_lecture["y"] + map_of_lecture["height"] <= HIGH
    # What was clicked, what it changed and what else can be done are in the window, of a small projector too.
    page.set_viewport_size({"width": 1280, "height": 720})
    for part in ("#selection", "#weight", "#outcome", "#actions", "#changes"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 720, part
    page.set_viewport_size({"width": 1920, "height": HIGH})
    # The key is shown on the button, and does not act while somebody types.
    assert page.locator("#present").inner_text() == "Leave the presentation (P)"
    page.locator("#text").press("p")
    assert "?present#" in page.url
    page.locator("#text").blur()
    page.keyboard.press("p")
    assert "present" not in page.url
    assert "present" not in page.locator("#language").get_attribute("href")
    assert "#run=maps_transformer" in page.url
    assert page.locator("#present").inner_text() == "Present (P)"
    assert page.locator("#site").is_visible()
    assert page.locator("#intact .map svg").bounding_box()["width"] < map_of_lecture["width"]
    page.keyboard.press("p")
    assert "?present#" in page.url
    assert not page.locator("#site").is_visible()


def present(page: Any, address: str, width: int, height: int, language: str, state: str = STATE) -> None:
    """Opens the presentation in a window of this size."""
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{address}/?present&lang={language}#{state}")
    page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()


def block_a_word(page: Any) -> None:
    page.locator("#try-block").click()
    page.locator("#changed svg").wait_for()
    page.locator("#changes li").wait_for()
    chip, nav = (page.locator(part).bounding_box() for part in ("#changes li", "header nav"))
    assert chip["y"] + chip["height"] <= nav["y"], "nothing covers what takes the change back"


@pytest.mark.parametrize("language", ["en", "vi"])
@pytest.mark.parametrize(("width", "height"), [(1920, HIGH), (1366, 768), (1280, 720)])
def test_a_wide_window_has_two_maps_side_by_side(
    page: Any, address: str, width: int, height: int, language: str
) -> None:
    # The row labels of the tiny run are long, and its maps are wide: they are scrolled.
    present(page, address, width, height, language, STATE.replace("three.", "three four five six."))
    assert page.evaluate(HIGHER) == 0
    block_a_word(page)
    assert page.evaluate(HIGHER) == 0
    boxes = [name.bounding_box() for name in page.locator("#results h2:visible").all()]
    assert len(boxes) == 2
    assert max(box["height"] for box in boxes) < HIGH / 20, "a name has one line"


@pytest.mark.parametrize("language", ["en", "vi"])
@pytest.mark.parametrize(("width", "height"), [(1024, 768), (1300, 1300)])
def test_no_map_is_cut_off_in_a_high_window(page: Any, address: str, width: int, height: int, language: str) -> None:
    present(page, address, width, height, language)
    assert page.evaluate(HIGHER) == 0
    block_a_word(page)
    missing = page.locator("#results .scroll:visible").evaluate_all(
        "boxes => boxes.map((box) => box.scrollWidth - box.clientWidth)"
    )
    assert missing == [0, 0]


@pytest.mark.parametrize("language", ["en", "vi"])
@pytest.mark.parametrize(("width", "height"), [(1920, HIGH), (1024, 768)])
def test_a_guess_can_be_opened_after_a_change(page: Any, address: str, width: int, height: int, language: str) -> None:
    present(page, address, width, height, language)
    block_a_word(page)
    page.locator("#try-guess").click()
    page.locator("#guess-table button").first.wait_for()
    page.locator("#guess-close").click()
    page.locator("#guess-table").wait_for(state="hidden")
    assert page.evaluate("document.activeElement.id") == "try-guess"


def test_letters_and_drawings_grow_by_the_same_rule(page: Any, address: str) -> None:
    for width, height, used in ((1920, 1080, 1080), (1000, 2000, 750), (390, 844, 600)):
        present(page, address, width, height, "en")
        text = page.locator("#selection").evaluate("item => parseFloat(getComputedStyle(item).fontSize)")
        assert text == pytest.approx(0.025 * used)
        assert page.locator("#intact svg").evaluate(SCALE) == pytest.approx(used / 520, rel=0.01)


@pytest.mark.parametrize("language", ["en", "vi"])
@pytest.mark.parametrize(("width", "height"), [(1920, HIGH), (1280, 720), (1024, 768)])
def test_a_guess_and_its_error_rates_are_in_one_window(
    page: Any, address: str, width: int, height: int, language: str
) -> None:
    present(page, address, width, height, language)
    across = page.locator("#intact .map svg").bounding_box()["width"]
    page.locator("#try-guess").click()
    longest = max(page.locator("#guess-pair option").all_text_contents(), key=lambda text: len(text.split()))
    page.locator("#guess-pair").select_option(longest)
    page.locator("#guess-reveal").click()
    page.locator("#guess-legend:not([hidden])").wait_for()
    nav = page.locator("header nav").bounding_box()
    for part in ("#guess-table", "#guess-rates", "#guess-legend"):
        box = page.locator(part).bounding_box()
        assert box["y"] >= 0, part
        assert box["y"] + box["height"] <= (nav["y"] if box["x"] + box["width"] > nav["x"] else height), part
    assert page.evaluate(HIGHER) == 0
    for part in ("#maps", "#text", "#answer"):
        assert not page.locator(part).is_visible(), "they are about another sentence"
    assert page.locator("#guess-text p").first.text_content() == longest
    # The map that was drawn while it had no room gets it back.
    page.set_viewport_size({"width": width - 1, "height": height})
    page.locator("#guess-close").click()
    page.locator("#answer .translation").wait_for()
    assert page.locator("#guess-box").get_attribute("open") is None
    assert page.evaluate("document.activeElement.id") == "try-guess"
    page.wait_for_function(
        "across => document.querySelector('#intact .map svg').clientWidth > 0.9 * across", arg=across
    )


@pytest.mark.parametrize("language", ["en", "vi"])
@pytest.mark.parametrize(("width", "height"), [(1920, HIGH), (1024, 768), (1000, 2000)])
def test_what_happens_is_said_beside_the_buttons(
    page: Any, address: str, width: int, height: int, language: str
) -> None:
    present(page, address, width, height, language)
    page.locator("#try-block").click()
    page.locator("#outcome:not([hidden])").wait_for()
    page.locator("#text").fill("three two one.")
    page.locator("#text").press("Enter")
    page.locator("#status", has_text={"en": "The changes to", "vi": "Những thay đổi"}[language]).wait_for()
    notice, nav = (page.locator(part).bounding_box() for part in ("#status", "header nav"))
    assert notice["x"] + notice["width"] <= nav["x"]
    assert notice["width"] > width / 4, "there is room for it"
    assert notice["y"] + notice["height"] <= height
    if height == HIGH:
        drawn = page.locator("#intact .map svg").bounding_box()
        assert drawn["y"] + drawn["height"] <= notice["y"]


def test_a_qr_code_opens_the_same_state_for_the_class(page: Any, address: str) -> None:
    page.locator("#intact .cell").first.click()
    page.locator("#qr").click()
    page.locator("#share-code").evaluate("image => image.decode()")  # fails if it is no picture
    code = page.locator("#share-code").get_attribute("src")
    [shared] = parse_qs(urlsplit(code).query)["text"]
    assert shared == page.url.replace("?present", ""), "the class needs no presentation"
    assert page.locator("#share-address").inner_text() == urlsplit(address).netloc
    assert page.locator("#share-note").inner_text().startswith("Only this computer can open this address. ")
    assert "host=0.0.0.0" in page.locator("#share-note").inner_text()
    page.keyboard.press("Escape")
    assert not page.locator("#share").is_visible()
    assert page.locator("#intact .cursor").count() == 1, "the selection stays"
    # The page asks for no code that the server refuses.
    for longer, is_drawn in ((0, True), (1, False)):
        contrast = "a" * (1500 - len(shared) - len("&contrast=") + longer)
        page.evaluate("anchor => { location.hash = anchor; }", f"{urlsplit(shared).fragment}&contrast={contrast}")
        page.wait_for_function("contrast => document.getElementById('contrast').value === contrast", arg=contrast)
        page.locator("#qr").click()
        assert page.locator("#share-code").is_visible() == is_drawn
        said = page.locator("#share-note").inner_text()
        assert said.startswith("Only this computer" if is_drawn else "This state is too long for a QR code.")
        page.keyboard.press("Escape")
    page.goto(shared)
    page.locator("#intact .cursor").wait_for()
    assert page.locator("html").get_attribute("class") in (None, "", "by-pointer")


def test_the_server_draws_codes_up_to_a_length_that_a_camera_can_read(client: Any, serve: Any) -> None:
    drawn = client.get("/qr.svg", params={"text": "http://192.168.1.5:8000/#text=xin+chào"})
    assert drawn.headers["content-type"] == "image/svg+xml"
    assert drawn.text.startswith("<svg ")
    keyed = serve(keys=frozenset({"secret"}))
    assert keyed.get("/qr.svg", params={"text": "a"}).status_code == 403
    assert keyed.get("/qr.svg", params={"text": "a", "api_key": "secret"}).status_code == 200
    refused = client.get("/qr.svg", params={"text": "a" * 1501}, headers={"accept-language": "vi"})
    assert refused.status_code == 400
    assert refused.json()["error"] == "Yêu cầu không hợp lệ: query.text: không được dài quá 1500 ký tự"
    # The density depends on the bytes.
    assert client.get("/qr.svg", params={"text": "\U0001f469" * 375}).status_code == 200
    refused = client.get("/qr.svg", params={"text": "\U0001f469" * 376})
    assert (refused.status_code, refused.json()["error"]) == (
        400,
        "text has 1504 bytes in UTF-8; it must have at most 1500.",
    )


def test_what_is_typed_before_the_page_is_ready_stays(browser: Any, address: str) -> None:
    context = browser.new_context()
    context.set_default_timeout(60_000)
    page = context.new_page()
    waiting: list[Any] = []
    page.route("**/v1/runs", lambda route: waiting.append(route))
    with page.expect_request("**/v1/runs"):
        page.goto(address)
    page.locator("#text").fill("one two.")
    assert page.locator("#ask button").is_disabled()
    # A page that is busy when it is opened asks again; one that nobody answers says what to do.
    with page.expect_request("**/v1/runs"):
        waiting[0].fulfill(status=503, json={"error": "Too many questions."}, headers={"retry-after": "1"})
        page.get_by_text("Too many questions.").wait_for()
    while len(waiting) < 2:
        page.wait_for_timeout(20)
    waiting[1].continue_()
    page.locator("#ask button").click()
    page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
    assert page.locator("#text").input_value() == "one two."
    assert "text=one+two." in page.url
    assert page.locator("#status").text_content() == ""
    page.unroute("**/v1/runs")
    page.route("**/v1/runs", lambda route: route.abort())
    page.reload()
    page.get_by_text("The server cannot be reached. Check that nmt.serve is running, then reload this page.").wait_for()
    context.close()
