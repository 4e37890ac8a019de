"""Warnings of misleading scores: each appears when it should, and none for good text."""

import pytest

from nmt.evaluation.sanity import hypothesis_warnings, looks_tokenized, reference_warnings

GOOD = [f"Câu số {n} rất hay." for n in range(40)]
SOURCES = [f"Sentence number {n} is fine." for n in range(40)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["Hello , world .", "He said &quot; no &quot; ."], True),
        (["Hello, world.", "No?", "What a day ..."], False),
        (["Où est-il ?", "Ça va !", "Non, jamais."], False),
        (["Où est-il ?", "Ça va !"], False),
        (["no punctuation at all"], False),
        ([], False),
    ],
)
def test_tokenized_references_are_recognized(lines: list[str], expected: bool) -> None:
    assert looks_tokenized(lines) is expected


def test_good_lines_cause_no_warning() -> None:
    assert reference_warnings(GOOD) == []
    assert hypothesis_warnings(GOOD, SOURCES, GOOD) == []


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["Hello , world ."] * 3, "look tokenized"),
        (["a &amp; b", "c", "&#x27;d"], "2 of 3 lines of the references contain HTML entities"),
    ],
)
def test_misleading_references_cause_a_warning(lines: list[str], message: str) -> None:
    assert any(message in sentence for sentence in reference_warnings(lines))


@pytest.mark.parametrize(
    ("hypotheses", "message"),
    [
        (["Câu \u2047 hay.", *GOOD[1:]], "1 of 40 lines of the translations contain an unknown piece"),
        (["<unk>", *GOOD[1:]], "1 of 40 lines of the translations contain an unknown piece"),
        (["", " ", *GOOD[2:]], "2 of 40 lines of the translations are empty though their sources are not"),
        (SOURCES[:5] + GOOD[5:], "5 of 40 lines of the translations are copies of their sources"),
        (GOOD[:30] + ["Tôi."] * 10, "10 of 40 lines of the translations are the same: 'Tôi.'"),
        ([line[:5] for line in GOOD], "times as long as the references"),
        ([line * 2 for line in GOOD], "The translations are 2.00 times as long as the references, in characters."),
    ],
)
def test_suspicious_translations_cause_a_warning(hypotheses: list[str], message: str) -> None:
    assert any(message in sentence for sentence in hypothesis_warnings(hypotheses, SOURCES, GOOD))


def test_a_line_may_be_repeated_as_often_as_in_the_references() -> None:
    same = ["Vâng."] * 40
    assert hypothesis_warnings(same, SOURCES, same) == []


def test_lines_of_spaces_are_empty() -> None:
    [found, *_] = hypothesis_warnings([" "] * 3, None, ["một", "hai", "ba"])
    assert found == "3 of 3 lines of the translations are empty though their references are not."
