"""Which part of a line a model translates: the rest is copied, and a line in capitals is read in sentence case."""

import re
import unicodedata
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from nmt.text.patterns import ADDRESS, SENTENCE_END, all_capitals
from nmt.text.tokenizer import Tokenizer

# "4)" "(5)" "[6]" "a)" "(b)" "C)", digits drawn as keys, and bullets such as "-" and "•". Not "(I)" or "(A)", which may
# be words; and not ">", "+" or "#" before a number, which is then more than 5, plus 5 or number 5.
_LIST_MARKER = re.compile(
    r"(?:\(?(?:\d{1,3}(?:\.\d{1,3})*|[a-z])\)|[A-Z]\)|\[\d{1,3}\]|[\d#*]\ufe0f?\u20e3"
    r"|[-–—•‣·*+>#→]+(?:(?<![+>#])|(?! \d)))(?: |$)"
)
# "1." "2.3." Not "A.", which may be an initial, and no number of four digits, which may be a year.
_NUMBER_WITH_PERIOD = re.compile(r"\d{1,3}(?:\.\d{1,3})*\.(?: |$)")
# Languages that write ordinal numbers with a period, as in "12. Oktober": there, "12." is a part of the sentence.
_ORDINALS_WITH_PERIOD = {
    *("bs", "cnr", "cs", "da", "de", "dsb", "et", "eu", "fi", "fo", "gsw", "hr", "hsb", "hu"),
    *("is", "lb", "lv", "nb", "nds", "nn", "no", "pl", "sh", "sk", "sl", "sr", "tr"),
}
_SENTENCE_END = re.compile(f"{SENTENCE_END}$")
# Characters that change the symbol before them: variation selectors, tags of flags.
_CHANGES = {*"\ufe0e\ufe0f", *map(chr, range(0xE0020, 0xE0080))}
# Joins two symbols to one; beside a letter, it belongs to the word.
_JOINER = "\u200d"
# Symbols below this one, such as ° and ©, and units such as ㎡ belong to the words beside them.
_FIRST_SYMBOL, _UNITS = "\u2190", range(0x3200, 0x3400)
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


def translatable(line: str, tokenizer: Tokenizer, language: str = "") -> Translatable:
    """The part of a normalized line that a model translates; `language` is the code of the line's language.

    A line without letters outside web and mail addresses is only copied. List markers in front and symbols such as
    emoji at either end are copied too; a number with a period is a marker except in languages such as German, where it
    may be an ordinal. Capitals become sentence case if every letter is a capital, in at least two words or in one word
    of five letters or more; `tokenizer`, that of the source, decides about each word. All this takes time in proportion
    to the length of the line.
    """
    end = len(line)
    while end > 0 and _is_copied(line[end - 1], line[end : end + 1]):
        end -= 1
    start = _first_word(line[:end], language not in _ORDINALS_WITH_PERIOD)
    text = line[start:end]
    words = [word for word in ADDRESS.sub("", text).split(" ") if any(map(str.isalpha, word))]
    if not words:
        return Translatable(line, "", "")
    if all_capitals(text) and (len(words) > 1 or sum(map(str.isalpha, words[0])) >= _FEWEST_LETTERS):
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
        first = next((index for index, character in enumerate(word) if _is_in_word(character)), len(word))
        end = len(word) - next((index for index, character in enumerate(reversed(word)) if _is_in_word(character)), 0)
        letters = word[first:end]
        lower = letters.lower()
        name = lower[:1].upper() + lower[1:]
        forms = [name, letters] if begins else [lower, name, letters]
        known = [form for form in forms if tokenizer.alphabet.issuperset(letter for letter in form if letter.isalpha())]
        chosen = min(known, key=partial(_pieces_needed, tokenizer), default=letters)
        words.append(f"{word[:first]}{chosen}{word[end:]}")
        # A dash between two sentences has no letters.
        begins = _SENTENCE_END.search(word) is not None or (begins and not letters)
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


def _first_word(line: str, numbers_with_period: bool) -> int:
    """The index after the list markers and symbols in front."""
    start, end = -1, 0
    while end > start:
        start = end
        while end < len(line) and _is_copied(line[end], line[max(end - 1, 0) : end]):
            end += 1
        marker = _LIST_MARKER.match(line, end)
        if marker is None and numbers_with_period:
            marker = _NUMBER_WITH_PERIOD.match(line, end)
        if marker is not None:
            end = marker.end()
    return end


def _is_copied(character: str, neighbor: str) -> bool:
    """Whether a character at an end of the text is copied.

    `neighbor` is the copied character next to it, or '' if it has none.
    """
    return _is_symbol(character) or character == " " or (character == _JOINER and _is_symbol(neighbor))


def _is_symbol(character: str) -> bool:
    """Whether it is a pictograph or a part of one; false for ''."""
    return (
        character >= _FIRST_SYMBOL
        and ord(character) not in _UNITS
        and (unicodedata.category(character) in ("So", "Sk") or character in _CHANGES)
    )


def _is_in_word(character: str) -> bool:
    return character.isalnum() or character == "_"
