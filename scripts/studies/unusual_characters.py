"""How often a translation stays the same when its source gets emoji, rare or invisible characters, or capitals.

  python -m scripts.studies.unusual_characters runs/demo data/sample/test.en --lines 60
  python -m scripts.studies.unusual_characters runs/demo data/sample/test.en --lines 60 --verbatim    by the model alone

"Unchanged" counts the lines whose translation, without the inserted characters, is that of the original line (for
capitals: that translation in capitals). "Copied" counts the translations that contain the inserted characters.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import nmt
from nmt.errors import Mistake
from nmt.paths import existing_file
from nmt.tables import Cell, Table
from nmt.text.lines import iter_lines
from scripts.mistakes import report_mistakes

Translate = Callable[[Sequence[str]], list[str]]

INVISIBLE = ["\u200b", "\u200e", "\u200f", "\u2060", "\u00ad", "\u202a", "\u202e", "\ufeff"]


class Change(NamedTuple):
    """A change of every line, and the characters that it inserts."""

    name: str
    change: Callable[[str], str]
    inserted: str


def in_the_middle(line: str, inserted: str) -> str:
    words = line.split(" ")
    middle = len(words) // 2
    return " ".join([*words[:middle], inserted, *words[middle:]])


CHANGES = [
    Change("😀 in front", lambda line: f"😀 {line}", "😀"),
    Change("🎉 at the end", lambda line: f"{line} 🎉", "🎉"),
    Change("😀 attached to the end", lambda line: f"{line}😀", "😀"),
    Change("北京 in front", lambda line: f"北京 {line}", "北京"),
    Change("Ωλ in the middle", lambda line: in_the_middle(line, "Ωλ"), "Ωλ"),
    *(
        Change(f"U+{ord(character):04X} in front", lambda line, character=character: character + line, character)
        for character in INVISIBLE
    ),
    Change("capitals", str.upper, ""),
]


def table(lines: Sequence[str], translate: Translate) -> Table:
    """One row per change: how many lines keep their translation, and how many translations have the insertion."""
    usual = translate(lines)
    rows: list[list[Cell]] = []
    for name, change, inserted in CHANGES:
        translations = translate([change(line) for line in lines])
        expected = [line.upper() for line in usual] if not inserted else usual
        kept = [
            " ".join(translation.replace(inserted, "").split()) if inserted else translation
            for translation in translations
        ]
        unchanged = sum(mine == " ".join(other.split()) for mine, other in zip(kept, expected, strict=True))
        copied = sum(inserted in translation for translation in translations) if inserted else "-"
        rows.append([name, f"{unchanged} of {len(lines)}", str(copied)])
    return Table(["change", "unchanged", "copied"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a finished run")
    parser.add_argument("source", help="a file of source sentences")
    parser.add_argument("--lines", type=int, default=200, help="number of lines, from the first (default: %(default)s)")
    parser.add_argument("--verbatim", action="store_true", help="the model reads every line as it is")
    given = parser.parse_args(arguments)
    if given.lines < 1:
        raise Mistake(f"--lines is {given.lines}; it must be at least 1.")
    lines = list(iter_lines(existing_file("source", given.source)))[: given.lines]
    translate = nmt.load(given.run).translate
    print(table(lines, partial(translate, verbatim=True) if given.verbatim else translate).markdown())


if __name__ == "__main__":
    report_mistakes(main)
