"""Finds and counts likely defects of a parallel corpus line by line, without changing it."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nmt.config.direction import Direction
from nmt.data.language_checks import Check, swapped_check
from nmt.data.seen_texts import SeenTexts
from nmt.text import changes, normalize
from nmt.text.normalize import without_punctuation
from nmt.text.patterns import HTML_ENTITY, SENTENCE_END, UNSPACED_END, all_capitals
from nmt.text.tone_marks import tone_mark_styles

OLD_TONE_MARKS, NEW_TONE_MARKS = "old tone marks, as in hòa", "new tone marks, as in hoà"
"""Not defects by themselves, but a corpus should have only one of them."""
JOINED_SYLLABLES = "joined syllables, as in học_sinh"
"""Vietnamese text that was segmented into words."""
MANY_WORDS, MANY_TIMES, MANY_SENTENCES = 100, 3, 2

REPEATED_PAIR, REPEATED_SOURCE = "duplicates of a pair", "a repeated source with a different target"
IN_ANOTHER_SPLIT = "a side is in another split"
"""A pair shares a side with a validation or test corpus; if it belongs to one itself, with another one."""

_ENTITY = re.compile(HTML_ENTITY)
_SENTENCE_END = re.compile(rf"{SENTENCE_END}(?:\s|$)|{UNSPACED_END}")
_QUOTES = re.compile('["“”„«»]|&quot;')
_JOINED = re.compile(r"[^\W\d_]_[^\W\d_]")
_DETACHED = re.compile(r"(?<!\S)[.,!?;:](?!\S)")


@dataclass
class Inspection:
    """How many pairs of a corpus have each defect, and the line numbers, from 1, of the first ones that do."""

    pairs: int = 0
    words: tuple[int, int] = (0, 0)
    counts: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[int]] = field(default_factory=dict)
    overlaps: dict[int, str] = field(default_factory=dict)
    """For the first lines with a side in another split: the line there, such as 'my/test, line 3'."""

    def note(self, kind: str, examples: int) -> None:
        """Counts the current pair under a kind of defect."""
        self.counts[kind] += 1
        lines = self.lines.setdefault(kind, [])
        if len(lines) < examples:
            lines.append(self.pairs)


def checks(direction: Direction) -> dict[str, Check]:
    """The checks of single pairs, by kind of defect. Swapped languages are found only if one of them is Vietnamese."""
    by_kind: dict[str, Check] = {
        "a side is empty": lambda source, target: not (normalize(source) and normalize(target)),
        "both sides are the same": lambda source, target: source == target != "",
        f"more than {MANY_WORDS} words": lambda *sides: any(len(side.split()) > MANY_WORDS for side in sides),
        f"more than {MANY_TIMES} times as many words": _unequal,
        f"at least {MANY_SENTENCES} sentences more or fewer": lambda source, target: (
            abs(len(_SENTENCE_END.findall(source)) - len(_SENTENCE_END.findall(target))) >= MANY_SENTENCES
        ),
        "not in NFC": lambda *sides: any("nfc" in changes(side) for side in sides),
        "HTML entities": lambda *sides: any(_ENTITY.search(side) for side in sides),
        "doubled CSV quotes": lambda *sides: any('""' in side for side in sides),
        "control characters": lambda *sides: any("control" in changes(side) for side in sides),
        "invisible characters": lambda *sides: any("invisible" in changes(side) for side in sides),
        "irregular spaces": lambda *sides: any("spaces" in changes(side) for side in sides),
        "the character U+2581": lambda *sides: any("underline" in changes(side) for side in sides),
        "capital letters on one side only": lambda source, target: _in_capitals(source) != _in_capitals(target),
        "quotation marks on one side only": lambda source, target: (
            bool(_QUOTES.search(source)) != bool(_QUOTES.search(target))
        ),
        "punctuation between spaces": lambda *sides: any(_DETACHED.search(side) for side in sides),
    }
    if "vi" in (direction.source, direction.target):
        side = (direction.source, direction.target).index("vi")
        by_kind |= {
            OLD_TONE_MARKS: lambda *sides: "old" in tone_mark_styles(normalize(sides[side])),
            NEW_TONE_MARKS: lambda *sides: "new" in tone_mark_styles(normalize(sides[side])),
            JOINED_SYLLABLES: lambda *sides: bool(_JOINED.search(sides[side])),
        }
    swapped = swapped_check(direction)
    return by_kind | {"languages swapped": swapped} if swapped else by_kind


class Seen(NamedTuple):
    """The pairs and sources seen so far."""

    pairs: SeenTexts
    sources: SeenTexts


def inspect(
    pairs: Iterable[tuple[str, str]],
    wanted: dict[str, Check],
    held_out: Mapping[str, str] | None = None,
    seen: Seen | None = None,
    examples: int = 2,
    overlaps: int = 10,
) -> Inspection:
    """Checks every pair once. `examples` and `overlaps` limit how many lines are listed.

    `held_out` maps the `without_punctuation` of the lines of other splits, which should not occur here, to their
    places. A pair whose normalized lines occurred before, here or in `seen`, is a duplicate; a repeated source with a
    different target is counted separately. Adds the pairs to `seen`.
    """
    inspection, seen = Inspection(), seen or Seen(SeenTexts(), SeenTexts())
    for raw_source, raw_target in pairs:
        inspection.pairs += 1
        source_words, target_words = inspection.words
        inspection.words = source_words + len(raw_source.split()), target_words + len(raw_target.split())
        for kind, check in wanted.items():
            if check(raw_source, raw_target):
                inspection.note(kind, examples)
        source, target = normalize(raw_source), normalize(raw_target)
        pair_repeats, source_repeats = seen.pairs.add(f"{source}\n{target}"), seen.sources.add(source)
        if pair_repeats:
            inspection.note(REPEATED_PAIR, examples)
        elif source and source_repeats:
            inspection.note(REPEATED_SOURCE, examples)
        if held_out:
            places = [held_out[text] for text in map(without_punctuation, (source, target)) if text in held_out]
            if places:
                inspection.counts[IN_ANOTHER_SPLIT] += 1
                if len(inspection.overlaps) < overlaps:
                    inspection.overlaps[inspection.pairs] = places[0]
    return inspection


def _in_capitals(line: str) -> bool:
    """Whether all letters of a line with several words are capitals."""
    return len(line.split()) > 1 and all_capitals(line)


def _unequal(source: str, target: str) -> bool:
    shorter, longer = sorted([len(source.split()), len(target.split())])
    return longer > MANY_TIMES * shorter > 0  # an empty side has its own row
