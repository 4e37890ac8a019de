"""Random characters of all scripts at the same place on both sides of a pair, so that the model learns to copy."""

import unicodedata
from collections.abc import Sequence
from random import Random

from nmt.data.drawn_pairs import Draw
from nmt.data.example import Example
from nmt.data.keyed_seed import keyed_seed
from nmt.text import TokenizerPair, normalize

_BLOCKS = (
    range(0x00A1, 0x0250),  # Latin letters with diacritics, currency signs
    range(0x0370, 0x0400),  # Greek
    range(0x0400, 0x0500),  # Cyrillic
    range(0x05D0, 0x05EB),  # Hebrew
    range(0x0620, 0x064B),  # Arabic
    range(0x0904, 0x0940),  # Devanagari
    range(0x0E01, 0x0E31),  # Thai
    range(0x2010, 0x2028),  # dashes, quotation marks, bullets
    range(0x2030, 0x205F),  # per mille, primes
    range(0x2070, 0x20C1),  # superscripts, subscripts, currency signs
    range(0x2100, 0x2400),  # letterlike symbols, arrows, mathematical and technical signs
    range(0x2460, 0x2800),  # enclosed numbers, boxes, shapes, symbols, dingbats
    range(0x3001, 0x3100),  # East Asian punctuation, hiragana, katakana
    range(0x4E00, 0xA000),  # Chinese
    range(0xAC00, 0xD7A4),  # Hangul
    # Emoji are what most users type, so they have four of the nineteen blocks.
    range(0x1F300, 0x1F500),
    range(0x1F500, 0x1F650),
    range(0x1F680, 0x1F700),
    range(0x1F900, 0x1FA00),
)
_MOST_CHARACTERS = 3


class UnicodeNoise:
    """Inserts random characters into some training pairs, the same characters on both sides.

    Most characters of Unicode are rare in a corpus or absent from it. They are spelled as bytes, and a byte that
    training never shows keeps its random embedding, so one emoji in front of a sentence would destroy its translation.
    With these insertions, the model learns to copy bytes and to translate the rest of the sentence as usual.

    Up to three characters of one block are inserted as a word in front of the sentence, after it, or between two words
    at the same relative position on both sides, or they are attached to its end. All of it depends only on
    (seed, epoch, pair). `longest` holds the maximum number of pieces of each side, including EOS: a pair that would
    exceed it is not changed.
    """

    def __init__(self, tokenizers: TokenizerPair, probability: float, *, seed: int, longest: Sequence[int]) -> None:
        self.tokenizers, self.probability, self.seed, self.longest = tokenizers, probability, seed, longest

    def __call__(self, draw: Draw, example: Example) -> Example:
        """Returns the pair, with characters inserted at this probability."""
        random = Random(keyed_seed(f"{self.seed}/{draw.epoch}/{draw.pair}/noise"))
        if random.random() >= self.probability:
            return example
        inserted = noise(random)
        attached, position = random.random() < 0.25, random.choice((0.0, 1.0, random.random()))
        sides = []
        for tokenizer, ids, longest in zip(
            self.tokenizers, (example.source, example.target), self.longest, strict=True
        ):
            text = tokenizer.decode(ids)
            words = text.split(" ")
            words.insert(round(position * len(words)), inserted)
            changed = tokenizer.encode(normalize(text + inserted if attached else " ".join(words)))
            if len(changed) >= longest:
                return example
            sides.append(changed)
        source, target = sides
        return Example(example.number, source, target)


def noise(random: Random) -> str:
    """One to three assigned characters of one block of Unicode; no spaces, marks or controls."""
    block, characters = random.choice(_BLOCKS), ""
    number = random.randint(1, _MOST_CHARACTERS)
    while len(characters) < number:
        character = chr(random.choice(block))
        if unicodedata.category(character)[0] in "LNPS":
            characters += character
    return characters
