"""What of a line a model translates: the rest is copied, and a line in capitals is read in sentence case."""

import re
import unicodedata
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from nmt.text.tokenizer import Tokenizer

# "1." "2.3." "4)" "(5)" "[6]" "a)" "(b)", bullets such as "-" and "•", and digits drawn as keys. Not "A.", which may be
# an initial, and no number of four digits, which may be a year.
_LIST_MARKER = re.compile(
    r"(?:\d{1,3}(?:\.\d{1,3})*\.|\(?(?:\d{1,3}(?:\.\d{1,3})*|[A-Za-z])\)|\[\d{1,3}\]|[-–—•‣·*+>#→]+|[\d#*]\ufe0f?\u20e3)"
    r"(?: |$)"
)
_ADDRESS = re.compile(r"\W*(?:(?:https?|ftp)://|mailto:|www\.|[\w.+-]+@\w[\w-]*\.\w)\S*", re.IGNORECASE)
_WORD = re.compile(r"(\W*)(.*?)(\W*)", re.DOTALL)
_SENTENCE_END = re.compile(r"[.!?…][\"')\]”’»]*$")
# Characters that join or change the symbols beside them: variation selectors, joiners, tags of flags.
_JOINERS = {*"\u200d\ufe0e\ufe0f\u20e3", *map(chr, range(0xE0020, 0xE0080))}
# Symbols below this one, such as ° and ©, belong to the words beside them.
_FIRST_SYMBOL = "\u2190"
# In shorter words of capitals, such as NATO, the capitals are usually the word's own.
_FEWEST_LETTERS = 5
_MOST_SHOWN = 20


class Translatable(NamedTuple):
    """A line in three parts, of which a model reads only `text`."""

    before: str
    """Copied: list markers and symbols in front. The whole line if no part of it can be translated."""
    text: str
    """'' if there is nothing to translate."""
    after: str
    """Copied: symbols at the end."""
    capitals: bool = False
    """Whether the line was in capitals, which its translation gets back."""

    def completed(self, translation: str) -> str:
        """The translation of the line, given that of `text`."""
        return f"{self.before}{translation.upper() if self.capitals else translation}{self.after}"


def translatable(line: str, tokenizer: Tokenizer) -> Translatable:
    """The part of a normalized line that a model translates.

    A line without letters outside web and mail addresses is only copied. List markers in front and symbols such as
    emoji at either end are copied too. Capitals become sentence case if at least two words, or one word of five letters
    or more, are in capitals and nothing is in lower case; `tokenizer`, that of the source, decides about each word.
    """
    start, end = _first_word(line), len(line)
    while end > start and (_is_symbol(line[end - 1]) or line[end - 1] == " "):
        end -= 1
    text = line[start:end]
    words = [word for word in text.split(" ") if any(map(str.isalpha, word)) and not _ADDRESS.match(word)]
    if not words:
        return Translatable(line, "", "")
    if text.isupper() and (len(words) > 1 or sum(map(str.isalpha, words[0])) >= _FEWEST_LETTERS):
        cased = sentence_case(text, tokenizer)
        return Translatable(line[:start], cased, line[end:], capitals=cased != text)
    return Translatable(line[:start], text, line[end:])


def sentence_case(text: str, tokenizer: Tokenizer) -> str:
    """A text in capitals, as the tokenizer's training text would write it; each sentence begins with a capital letter.

    Of lower case, a capital letter and capitals, a word gets the form of which the tokenizer needs the fewest pieces.
    If several forms are single pieces, the most frequent one wins, else lower case. So names and abbreviations that
    occurred often keep their capitals. A form with letters that never occurred is not used.
    """
    words: list[str] = []
    begins = True
    for word in text.split(" "):
        before, letters, after = _WORD.fullmatch(word).groups()  # type: ignore[union-attr]  # it matches any word
        lower = letters.lower()
        name = lower[:1].upper() + lower[1:]
        forms = [name, letters] if begins else [lower, name, letters]
        known = [form for form in forms if tokenizer.alphabet.issuperset(letter for letter in form if letter.isalpha())]
        words.append(f"{before}{min(known, key=partial(_pieces_needed, tokenizer), default=letters)}{after}")
        begins = _SENTENCE_END.search(word) is not None
    return " ".join(words)


def _pieces_needed(tokenizer: Tokenizer, word: str) -> tuple[int, float]:
    """The number of pieces and, to tell single pieces apart, how rare the piece is."""
    ids = tokenizer.encode(word)
    return len(ids), -tokenizer.score(ids[0]) if len(ids) == 1 else 0.0


@dataclass
class UnknownLines:
    """How many lines of a text contain characters that a model does not know, and which line is the first."""

    lines: int = 0
    first: int = 0
    characters: str = ""
    """The unknown characters of the first line."""

    def note(self, number: int, characters: str) -> None:
        """Counts a line if it has unknown characters."""
        if characters and self.lines == 0:
            self.first, self.characters = number, characters
        self.lines += bool(characters)

    @property
    def warning(self) -> str:
        lines = "1 line contains" if self.lines == 1 else f"{self.lines} lines contain"
        return (
            f"{lines} characters that the model never or hardly ever saw in training, first in line {self.first}: "
            f"'{self.characters[:_MOST_SHOWN]}'"
        )


def unknown_characters(text: str, tokenizer: Tokenizer) -> str:
    """The characters of a text for which the tokenizer has no piece, each once."""
    return "".join(dict.fromkeys(letter for letter in text if letter not in tokenizer.alphabet and letter != " "))


def _first_word(line: str) -> int:
    """The index after the list markers and symbols in front."""
    start, end = -1, 0
    while end > start:
        start = end
        while end < len(line) and (_is_symbol(line[end]) or line[end] == " "):
            end += 1
        if marker := _LIST_MARKER.match(line, end):
            end = marker.end()
    return end


def _is_symbol(character: str) -> bool:
    """Whether it is a pictograph or a part of one."""
    return character >= _FIRST_SYMBOL and (unicodedata.category(character) in ("So", "Sk") or character in _JOINERS)
