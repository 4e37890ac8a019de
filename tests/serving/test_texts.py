"""Texts are cut into sentences and joined again without losing a character between them."""

import asyncio
import sys
import threading
from collections.abc import Sequence
from html.parser import HTMLParser
from types import FrameType
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import Mistake
from nmt.serving.texts import segment, translated_html, translated_texts


async def shout(sentences: Sequence[str]) -> list[list[str]]:
    return [[sentence.upper(), sentence.title()] for sentence in sentences]


def texts(*given: str, number: int = 1) -> list[list[str]]:
    return asyncio.run(translated_texts(given, "en", number, shout))


def html(page: str, number: int = 1) -> list[str]:
    return asyncio.run(translated_html([page], "en", number, shout))[0]


@settings(max_examples=100)
@given(st.text(alphabet='ab. ?!\n\t"A…1-', max_size=40))
def test_the_sentences_and_gaps_are_the_text(text: str) -> None:
    segmented = segment(text, "en")
    assert segmented.joined(segmented.sentences) == text
    assert all(sentence == sentence.strip() != "" for sentence in segmented.sentences)


def test_lines_and_sentences_are_cut() -> None:
    assert segment("  One. Two is here?\n\nThree\n", "en").sentences == ["One.", "Two is here?", "Three"]
    assert segment("Xin chào. Bạn khỏe không?", "vi").sentences == ["Xin chào.", "Bạn khỏe không?"]


def test_what_lies_between_sentences_stays() -> None:
    assert texts("  One.  Two?\n\n three \n") == [["  ONE.  TWO?\n\n THREE \n"]]
    assert texts("", " \n") == [[""], [" \n"]]


def test_the_second_translation_has_the_second_of_each_sentence() -> None:
    assert texts("one two. Three.", number=3) == [["ONE TWO. THREE.", "One Two. Three."]]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ('<p class="a">one <b>two</b>.</p>', '<p class="a">ONE <b>TWO</b>.</p>'),
        ("<code>one</code> two", "<code>one</code> TWO"),
        ('<i translate="no">one</i> two', '<i translate="no">one</i> TWO'),
        ("<script>one()</script><!-- two -->three", "<script>one()</script><!-- two -->THREE"),
        ("a &lt; b", "A &lt; B"),
        ('<i class="a notranslate">one <b>two</b></i> three', '<i class="a notranslate">one <b>two</b></i> THREE'),
        (
            '<p translate="NO">one <b translate="yes">two</b></p>',
            '<p translate="NO">one <b translate="yes">TWO</b></p>',
        ),
        (
            '<p translate="no">one <b translate="">two</b> <i translate>three</i></p>',
            '<p translate="no">one <b translate="">TWO</b> <i translate="">THREE</i></p>',
        ),
        (
            '<p translate="no">one <b translate="maybe">two</b></p>',
            '<p translate="no">one <b translate="maybe">two</b></p>',
        ),
        ('<i class="NoTranslate">one</i>', '<i class="NoTranslate">ONE</i>'),
        ("<kbd>one</kbd> <samp>two</samp> <var>x</var> three", "<kbd>one</kbd> <samp>two</samp> <var>x</var> THREE"),
        ("", ""),
    ],
)
def test_tags_stay(page: str, expected: str) -> None:
    assert html(page) == [expected]


def test_conditionals_stay() -> None:
    """Python's parser once took them for declarations; its newest releases take them for comments, as browsers do."""
    assert html("<![if !IE]>one<![endif]>")[0] in ("<![if !IE]>ONE<![endif]>", "<!--[if !IE]-->ONE<!--[endif]-->")


def test_markup_that_the_parser_rejects_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Python's parser rejects, such as "<![a]", depends on its release."""
    monkeypatch.setattr(HTMLParser, "parse_html_declaration", Mock(side_effect=AssertionError))
    with pytest.raises(Mistake, match=r"^The text cannot be read as HTML; use format=text\.$"):
        html("<!a>")


def test_met_html_white_space_of_the_source_is_a_space() -> None:
    asked: list[str] = []

    async def translate(sentences: Sequence[str]) -> list[list[str]]:
        asked.extend(sentences)
        return await shout(sentences)

    page = "<p>\n  They returned\n\tto the theatre. <b>One</b>\n</p>\n<pre>a\nb</pre>"
    [[translation]] = asyncio.run(translated_html([page], "en", 1, translate))
    assert asked == ["They returned to the theatre.", "One"]
    assert translation == "<p>\n  THEY RETURNED TO THE THEATRE. <b>ONE</b>\n</p>\n<pre>a\nb</pre>"


def test_pages_are_parsed_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser takes a second for 5,000 characters of tags that do not end."""
    threads = []
    feed = HTMLParser.feed

    def recorded(parser: HTMLParser, data: str) -> None:
        threads.append(threading.current_thread())
        feed(parser, data)

    monkeypatch.setattr(HTMLParser, "feed", recorded)
    assert html("<b>one</b> two") == ["<b>ONE</b> TWO"]
    assert threads
    assert threading.current_thread() not in threads


@pytest.mark.parametrize("part", ["<b>a", "<p>a", "<a ", "<i translate=no>"])
def test_the_work_of_the_event_loop_for_nested_and_unfinished_tags_grows_in_proportion(part: str) -> None:
    """5,000 characters of them once took two seconds. Counts calls, because seconds depend on what else runs."""

    def calls(times: int) -> int:
        number = 0

        def count(frame: FrameType, event: str, argument: object) -> None:
            nonlocal number
            number += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(count)  # of this thread, which runs the event loop
        try:
            html(part * times)
        finally:
            sys.setprofile(before)
        return number

    few, many = calls(150), calls(600)
    assert 500 < many < 6 * few, "linear work grows by four, quadratic by sixteen"


def test_every_translation_of_a_page_has_the_tags() -> None:
    assert html("<b>one</b> two", number=2) == ["<b>ONE</b> TWO", "<b>One</b> Two"]
