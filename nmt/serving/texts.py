"""Translates texts of several lines and sentences: splits them into sentences, and joins the translations again."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import sentencex
from bs4 import BeautifulSoup
from bs4.element import Declaration, NavigableString, Tag
from bs4.exceptions import ParserRejectedMarkup

from nmt.errors import Mistake, TemplatedMessage
from nmt.text.lines import lines_with_ends

Translate = Callable[[Sequence[str]], Awaitable[list[list[str]]]]
"""translate(sentences) returns the translations of each sentence, best first."""

# HTML elements whose text is not prose.
_NOT_PROSE = {"script", "style", "code", "kbd", "samp", "var", "pre", "textarea"}
_HTML_SPACES = " \t\n\f\r"
_SPACES_WITHIN = re.compile(f"[{_HTML_SPACES}]+")


class SegmentedText(NamedTuple):
    """A text split into sentences and the gaps around them; there is one more gap than sentences."""

    sentences: list[str]
    gaps: list[str]

    def joined(self, sentences: Sequence[str]) -> str:
        """The text with the given sentences in place of its own."""
        between = "".join(sentence + gap for sentence, gap in zip(sentences, self.gaps[1:], strict=True))
        return self.gaps[0] + between


def segment(text: str, language: str) -> SegmentedText:
    """Splits a text into sentences, none of which spans two lines, and the white space around them."""
    sentences, gaps = [], [""]
    for line in lines_with_ends(text):
        for part in sentencex.segment(language, line):
            sentence = part.strip()
            if not sentence:
                gaps[-1] += part
                continue
            begin = part.index(sentence)
            gaps[-1] += part[:begin]
            sentences.append(sentence)
            gaps.append(part[begin + len(sentence) :])
    return SegmentedText(sentences, gaps)


async def translated_texts(texts: Sequence[str], language: str, number: int, translate: Translate) -> list[list[str]]:
    """Up to `number` translations of each text, best first. The n-th one joins the n-th translations of its sentences.

    If a sentence has fewer translations than others, its last one is repeated.
    """
    segmented = [segment(text, language) for text in texts]
    translations = iter(await translate([sentence for segments in segmented for sentence in segments.sentences]))
    results = []
    for segments in segmented:
        of_text = [next(translations) for _ in segments.sentences]
        ranks = range(min(number, max(map(len, of_text), default=1)))
        results.append([segments.joined([ranked[min(rank, len(ranked) - 1)] for ranked in of_text]) for rank in ranks])
    return results


async def translated_html(pages: Sequence[str], language: str, number: int, translate: Translate) -> list[list[str]]:
    """Like `translated_texts`, but for HTML: the text between tags is translated, and all tags are kept.

    Raises Mistake for markup that cannot be parsed.
    """
    try:
        # In a thread, because the parser takes a second for 5,000 characters of tags that do not end.
        soups = await asyncio.to_thread(_parsed, pages)
    except ParserRejectedMarkup as error:
        raise Mistake(TemplatedMessage("The text cannot be read as HTML; use format=text.")) from error
    nodes = [_prose(soup) for soup in soups]
    prose = [_one_line(str(node)) for page in nodes for node in page]
    translations = iter(await translated_texts(prose, language, number, translate))
    results = []
    for soup, page in zip(soups, nodes, strict=True):
        of_page = [next(translations) for _ in page]
        ranks = range(max(map(len, of_page), default=1))
        versions = []
        for rank in ranks:
            for index, node in enumerate(page):
                new = NavigableString(of_page[index][min(rank, len(of_page[index]) - 1)])
                node.replace_with(new)
                page[index] = new
            versions.append(soup.decode(formatter="minimal"))
        results.append(versions)
    return results


def _parsed(pages: Sequence[str]) -> list[BeautifulSoup]:
    return [BeautifulSoup(page, "html.parser", element_classes={Declaration: _Conditional}) for page in pages]


class _Conditional(Declaration):
    """A conditional such as <![if IE]>, which Beautiful Soup would write as an XML declaration.

    The newest releases of Python read it as a comment instead, as browsers do.
    """

    PREFIX, SUFFIX = "<![", "]>"


def _one_line(text: str) -> str:
    """The text of an HTML element on one line, as a browser shows it; the white space around it is kept."""
    inner = text.strip(_HTML_SPACES)
    begin = text.index(inner)
    return text[:begin] + _SPACES_WITHIN.sub(" ", inner) + text[begin + len(inner) :]


def _prose(soup: BeautifulSoup) -> list[NavigableString]:
    """The texts that are translated: those for readers, and not marked as untranslatable by the nearest mark."""
    nodes = []
    # One pass from the top, because elements may be nested as deeply as the page is long.
    is_prose, is_marked = {id(soup): True}, {id(soup): False}
    for node in soup.descendants:
        above = id(node.parent)
        if isinstance(node, Tag):
            is_prose[id(node)] = is_prose[above] and node.name not in _NOT_PROSE
            # The values of the HTML standard; with any other, an element does as its parent does.
            mark = str(node.get("translate", "invalid")).lower()
            # Google's mark, which most translators honor; in HTML, the case of a class name counts.
            if "notranslate" in (node.get("class") or ()):
                is_marked[id(node)] = True
            else:
                is_marked[id(node)] = mark == "no" if mark in ("", "yes", "no") else is_marked[above]
        # Comments and declarations are subclasses.
        elif type(node) is NavigableString and node.strip() and is_prose[above] and not is_marked[above]:
            nodes.append(node)
    return nodes
