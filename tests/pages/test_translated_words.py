"""The words of a translation on the lab's page, with the included models, whose translations are words."""

import json
import re
from typing import Any

import pytest
from watched_page import link

from nmt.runs.included import named_run
from nmt.serving.gallery import Gallery

# Checking annotations would slow down the server, which runs in this process.
pytestmark = pytest.mark.unchecked


@pytest.fixture(scope="module")
def gallery() -> Gallery:
    return Gallery([named_run("en-vi"), named_run("vi-en")], "cpu", "float32", max_models=2)


@pytest.fixture
def page(lab: Any) -> Any:
    """The page with a short sentence's translation."""
    lab.goto("/#run=en-vi&unit=pieces&text=We drink tea.")
    lab.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
    return lab


def translate(page: Any, text: str) -> None:
    page.locator("#text").fill(text)
    page.locator("#ask button").click()
    ready(page)


def ready(page: Any) -> None:
    page.locator("#results[aria-busy='false']").wait_for()


def word(page: Any, index: int) -> Any:
    return page.locator(f"#answer .translation [data-word='{index}']")


def words(page: Any) -> list[str]:
    return page.locator("#answer .translation").text_content().split(" ")


def remove_changes(page: Any) -> None:
    page.get_by_role("button", name=re.compile("^Remove: ")).first.click()
    page.locator("#changes-box").wait_for(state="hidden")
    ready(page)


def test_a_word_is_replaced_locked_and_deleted(page: Any) -> None:
    translate(page, "We drink tea in the morning.")
    before = words(page)
    word(page, 1).click()
    assert page.locator("#word-name").text_content() == f"“{before[1]}”"
    taken = page.locator("#word-others button:enabled").first
    piece = taken.text_content().rsplit(" ", 2)[0].replace("␣", "")
    taken.click()
    page.locator("#changes li").first.wait_for()
    ready(page)
    assert words(page)[:1] == before[:1]
    assert "".join(words(page)[1:]).startswith(piece)
    remove_changes(page)
    assert words(page) == before

    word(page, 2).focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Lock", exact=True).press("Enter")
    page.locator("#answer .translation .locked").wait_for()
    ready(page)
    assert "locks=" in link(page)
    locked = page.evaluate("JSON.parse(new URLSearchParams(location.hash.slice(1)).get('locks'))")
    page.locator("#text").fill("We drink tea every day.")
    page.locator("#ask button").click()
    page.locator("#answer .translation .locked").wait_for()
    ready(page)
    with page.expect_download() as download:
        page.locator("#save-menu").evaluate("menu => { menu.open = true; }")
        page.locator("#save-json").click()
    ids = json.loads(download.value.path().read_text(encoding="utf-8"))["intact"]["ids"]
    assert [(place, ids[place]) for place, piece in enumerate(locked) if piece] == [
        (place, piece) for place, piece in enumerate(locked) if piece
    ]
    assert page.locator("#changes li").text_content().startswith("Locked: ")
    remove_changes(page)
    assert "locks=" not in link(page)

    before = words(page)
    word(page, 0).click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.locator("#changes li").first.wait_for()
    ready(page)
    assert words(page)[0] == before[1], "the next word comes first"


def kinds_of_changes(page: Any) -> list[str]:
    kinds = ("equal weights", "blocked", "Kept", "Locked")
    shown = page.locator("#changes li:not(.all)").all_text_contents()
    return [next(kind for kind in kinds if kind in text) for text in shown]


def test_changes_of_words_that_are_replaced_go_and_come_back(page: Any) -> None:
    """Those of the words before, and of the words of the source, stay."""
    page.locator("#unit").select_option("words")
    for row in (0, 1):
        page.locator(f"#intact text[data-row='{row}']").click()
        page.get_by_role("button", name="Equal weights", exact=True).click()
        page.locator("#changes li").nth(row).wait_for()
    page.locator("#intact text[data-column='0']").click()
    page.get_by_role("button", name="Block at every step").click()
    page.locator("#changes li", has_text="blocked").wait_for()
    word(page, 0).click()
    page.get_by_role("button", name="Lock", exact=True).click()
    page.locator("#changes li", has_text="Locked").wait_for()
    ready(page)
    word(page, 1).click()
    page.locator("#word-others button:enabled").first.click()
    page.get_by_text("The changes to the previous translation").wait_for()
    ready(page)
    assert kinds_of_changes(page) == ["equal weights", "blocked", "Kept", "Locked"]
    page.go_back()
    page.locator("#changes li:nth-child(2)", has_text="equal weights").wait_for()
    ready(page)
    assert kinds_of_changes(page) == ["equal weights", "equal weights", "blocked", "Locked"]
    # A word that is deleted changes everything from there on.
    word(page, 0).click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_text("The changes to the previous translation").wait_for()
    ready(page)
    assert kinds_of_changes(page) == ["blocked", "Kept"]


def test_a_sentence_in_the_other_language_is_offered_the_other_direction(page: Any) -> None:
    assert page.locator("#direction").is_hidden()
    translate(page, "Chúng tôi uống trà.")
    assert page.locator("#direction").text_content().startswith("This does not look like English.")
    page.get_by_role("button", name="Translate it into English").click()
    page.wait_for_function("() => document.getElementById('run').value === 'vi-en'")
    ready(page)
    assert page.locator("#text").input_value() == "Chúng tôi uống trà."
    assert page.locator("#direction").is_hidden()


def test_a_run_of_another_language_ends_the_translation_and_its_changes(page: Any) -> None:
    page.locator("#try-block").click()
    page.locator("#changed .cell").first.wait_for()
    ready(page)
    held: list[Any] = []
    page.route(lambda url: url.endswith("/v1/examples?run=vi-en"), lambda route: held.append(route))
    page.locator("#run").select_option("vi-en")
    while not held:
        page.wait_for_timeout(20)
    assert page.locator("#answer .translation").text_content() == ""
    assert page.locator("#intact .cell, #changes li, #answer button:visible").count() == 0
    held.pop().continue_()
    page.get_by_text("The changes to the previous translation").wait_for()
    ready(page)
    assert page.locator("#text").get_attribute("lang") == "vi"
    page.go_back()
    page.locator("#changes li").wait_for()
    ready(page)
    assert page.locator("#text").input_value() == "We drink tea."


def test_the_page_opens_with_a_sentence_in_its_language(lab: Any) -> None:
    for language, run in (("vi", "vi-en"), ("en", "en-vi")):
        lab.goto(f"/?lang={language}")
        lab.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
        assert lab.locator("#run").input_value() == run
        assert lab.locator("#text").get_attribute("lang") == language


def test_sixteen_columns_and_the_title_fit_on_a_phone(lab: Any) -> None:
    lab.set_viewport_size({"width": 390, "height": 844})
    lab.goto("/?lang=vi#run=vi-en&unit=words&text=Thành phố đã mở một cây cầu mới bắc qua con sông vào thứ Hai.")
    lab.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
    assert lab.locator("#intact text[data-column]").count() == 16, "15 words, and the end"
    for name in ("#intact .scroll", "h1"):
        shown, needed = lab.locator(name).evaluate("item => [item.clientWidth, item.scrollWidth]")
        assert needed <= shown, name
    drawing = lab.locator("#intact svg").bounding_box()
    for label in lab.locator("#intact text[data-column]").all():
        assert label.bounding_box()["y"] >= drawing["y"], "the whole label is in the drawing"


def test_the_direction_is_swapped(page: Any) -> None:
    text = page.locator("#answer .translation").text_content()
    page.locator("#swap").click()
    page.wait_for_function("text => document.getElementById('text').value === text", arg=text)
    assert page.locator("#run").input_value() == "vi-en"
    ready(page)
    assert page.locator("#answer .translation").text_content() == "We drink tea."
    assert page.locator("#heard").text_content() == "We drink tea.", "for a screen reader"
    page.locator("#text").fill("We drink coffee.")
    page.locator("#swap").click()
    page.wait_for_function("() => document.getElementById('run').value === 'en-vi'")
    assert page.locator("#text").input_value() == "We drink coffee.", "what was typed stays"
