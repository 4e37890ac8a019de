"""scripts/studies/unusual_characters.py: what counts as unchanged and as copied."""

import pytest

from nmt.errors import Mistake
from scripts.studies.unusual_characters import CHANGES, main, table

LINES = ["one two three four", "five six"]


def rows(translate):
    return {name: (unchanged, copied) for name, unchanged, copied in table(LINES, translate).rows}


def test_a_translator_that_copies_keeps_every_line_and_one_that_drops_characters_copies_none():
    assert rows(list) == {change.name: ("2 of 2", "2" if change.inserted else "-") for change in CHANGES}
    ascii_only = rows(lambda lines: ["".join(filter(str.isascii, line)).strip() for line in lines])
    assert all(count == ("2 of 2", "0" if name != "capitals" else "-") for name, count in ascii_only.items())


def test_a_translator_that_is_thrown_off_by_a_character_changes_its_lines():
    thrown = rows(lambda lines: [line if line.isascii() and line.islower() else "nonsense" for line in lines])
    assert {unchanged for unchanged, _ in thrown.values()} == {"0 of 2"}


def test_less_than_a_line_is_refused():
    with pytest.raises(Mistake, match="--lines is 0; it must be at least 1"):
        main(["run", "file", "--lines", "0"])
