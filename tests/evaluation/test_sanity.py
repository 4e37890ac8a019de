"""Warnings of what makes scores mislead: each comes where it should, and not where all is well."""

import pytest

from nmt.evaluation.sanity import hypothesis_warnings, looks_tokenized, reference_warnings

GOOD = [f"Câu số {n} rất hay." for n in range(40)]
SOURCES = [f"Sentence number {n} is fine." for n in range(40)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["Hello , world .", "He said &quot; no &quot; ."], True),
        (["Hello, world.", "No?", "What a day ..."], False),
        (["no punctuation at all"], False),
        ([], False),
    ],
)
def test_tokenised_references_are_recognised(lines: list[str], expected: bool) -> None:
    assert looks_tokenized(lines) is expected


def test_good_lines_are_not_warned_of() -> None:
    assert reference_warnings(GOOD) == []
    assert hypothesis_warnings(GOOD, SOURCES, GOOD) == []


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["Hello , world ."] * 3, "look tokenised"),
        (["a &amp; b", "c", "&#39;d"], "2 of 3 lines of the references hold HTML entities"),
    ],
)
def test_references_that_mislead(lines: list[str], message: str) -> None:
    assert any(message in sentence for sentence in reference_warnings(lines))


@pytest.mark.parametrize(
    ("hypotheses", "message"),
    [
        (["Câu \u2047 hay.", *GOOD[1:]], "1 of 40 lines of the translations hold an unknown piece"),
        (["<unk>", *GOOD[1:]], "1 of 40 lines of the translations hold an unknown piece"),
        (["", " ", *GOOD[2:]], "2 of 40 lines of the translations are empty though their sources are not"),
        (SOURCES[:5] + GOOD[5:], "5 of 40 lines of the translations are copies of their sources"),
        (GOOD[:30] + ["Tôi."] * 10, "10 of 40 lines of the translations are the same: 'Tôi.'"),
        ([line[:5] for line in GOOD], "times as long as the references"),
        ([line * 2 for line in GOOD], "The translations are 2.00 times as long as the references, in characters."),
    ],
)
def test_translations_that_are_not_what_they_should_be(hypotheses: list[str], message: str) -> None:
    assert any(message in sentence for sentence in hypothesis_warnings(hypotheses, SOURCES, GOOD))


def test_what_references_repeat_hypotheses_may_repeat() -> None:
    same = ["Vâng."] * 40
    assert hypothesis_warnings(same, SOURCES, same) == []


def test_lines_of_nothing_but_spaces_are_empty_and_no_failure() -> None:
    [found, *_] = hypothesis_warnings([" "] * 3, None, ["một", "hai", "ba"])
    assert found == "3 of 3 lines of the translations are empty though their references are not."
