"""The words of Wiktionary's dictionaries: as downloaded, and as the command read of dictionary.py writes them."""

import html
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

from nmt.errors import Mistake
from nmt.text.lines import iter_lines
from nmt.text.tone_marks import ToneMarks, with_tone_marks

_LABELS = re.compile(
    r"\b(obsolete|archaic|dated|derogatory|vulgar|slang|rare|literary|historical|dialectal?|Southern|Northern|Central"
    r"|informal|colloquial|figurative(ly)?|euphemis\w*|offensive|nonstandard|in compounds|poetic|elevated|regional"
    r"|Roman Catholicism|misspelling|childish|humorous|internet|uncommon|Vietnam|Mekong|Saigon|Huế|Hải Phòng|Nghệ An"
    r"|Hà Tĩnh|Thanh H(oá|óa)|Quảng \w+)\b"
)
"""Senses with one of these labels are left out."""
_EXPLANATION = re.compile(
    r"(Synonym|Alternative|Initialism|Clipping|Short for|Abbreviation|Acronym|Obsolete|Misspelling|Nonstandard"
    r"|[Uu]sed (to|in|as|for|with) |[Oo]nly "
    r"|Romanization|Letter |The name|a (fe)?male|a unisex|a surname|An? |The |[Aa]ny |[Ss]omeone|one who"
    r"|of |one of|Contraction|Pronunciation|Dated |Archaic |[Ss]ee |[Ii]ndicat(es|ing) |[Ee]xpress(es|ing) |same as"
    r"|to be used|or )"
)
_PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv", "name", "num", "phrase", "prep", "conj")
_NO_SENSE = "-"


class Entry(NamedTuple):
    """A Vietnamese word and an English translation; `sense` is None where senses have no order."""

    word: str
    translation: str
    part: str
    sense: int | None


def wiktionary_entries(path: Path) -> Iterator[Entry]:
    for line in iter_lines(path):
        heads, _, body = line.partition("\t")
        # Forms in Chinese characters follow those in Latin script.
        latin = [head for head in heads.split("|") if all(ord(letter) < 0x2000 for letter in head)]
        if not latin:
            continue
        for part, meanings in re.findall(r"<i>([^<]*)</i><br><ol>(.*?)</ol>", body):
            if part not in _PARTS_OF_SPEECH:
                continue
            for sense, meaning in enumerate(re.findall(r"<li>(.*?)</li>", meanings)):
                yield from (Entry(latin[0], text, part, sense) for text in _translations(meaning))


def _translations(meaning: str) -> Iterator[str]:
    text = html.unescape(re.sub(r"<[^>]+>", "", meaning)).strip().rstrip(".")
    label = re.match(r"\(([^)]*)\)\s*", text)
    if label and _LABELS.search(label[1]):
        return
    text = text[label.end() :] if label else text
    if _EXPLANATION.match(text):
        return
    for phrase in re.split(r"\s*[;,]\s*", re.sub(r"\s*\([^)]*\)", "", text)):
        if (
            re.fullmatch(r"[A-Za-z][A-Za-z' -]*", phrase)
            and len(phrase.split()) <= 4
            and not _EXPLANATION.match(phrase)
        ):
            yield phrase


def english_entries(path: Path) -> Iterator[Entry]:
    """The words of lines such as "soup {n} (dish) :: canh, soup".

    Verbs get "to", as in the other dictionary. Names of letters are left out: "bee" is also B, "bê" or "bờ".
    """
    for line in iter_lines(path):
        fields = re.match(r"([a-z]+) \{(n|v|adj)\}(?: \((.*)\))? :: (.*)$", line)
        if not fields:
            continue
        english, kind, gloss, words = fields.groups(default="")
        label = re.match(r"\(?([^:()]*)[:)]", gloss)  # "obsolete: ..." and "(obsolete) ..."
        if "of the letter" in gloss or (label and _LABELS.search(label[1])):
            continue
        part = {"n": "noun", "v": "verb", "adj": "adj"}[kind]
        bracketed = r"[^,;(\[]*[(\[]([^)\]]*)[)\]][^,;]*"  # a word with a remark before or after it
        words = re.sub(bracketed, lambda item: "" if _LABELS.search(item[1]) else item[0], words)
        for word in re.split(r"\s*[,;]\s*", re.sub(r"\s*[(\[{/][^)\]}/]*[)\]}/]\s*", " ", words)):
            if re.fullmatch(r"[^\W\d_]+( [^\W\d_]+){0,3}", word.strip()):
                yield Entry(word.strip(), f"to {english}" if part == "verb" else english, part, None)


def stored_entries(path: Path, tone_marks: ToneMarks | None) -> list[Entry]:
    entries = []
    for number, line in enumerate(iter_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 4 or not (columns[3].isdecimal() or columns[3] == _NO_SENSE):
            raise Mistake(
                f"{path}, line {number}: expected a word, a translation, a part of speech and a sense number, "
                "with tabs between them; make the file with the command read."
            )
        word, translation, part, sense = columns
        number_of_sense = None if sense == _NO_SENSE else int(sense)
        entries.append(Entry(with_tone_marks(word, tone_marks), translation, part, number_of_sense))
    return entries


def print_entries(entries: Iterable[Entry], file: TextIO) -> None:
    """Writes what `stored_entries` reads."""
    for word, translation, part, sense in entries:
        print(word, translation, part, _NO_SENSE if sense is None else sense, sep="\t", file=file)
