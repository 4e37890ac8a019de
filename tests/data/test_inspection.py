import unicodedata

import pytest

from nmt.config.direction import Direction
from nmt.data.inspection import Seen, checks, inspect
from nmt.data.language_checks import foreign_check
from nmt.data.seen_texts import SeenTexts
from nmt.text.normalize import without_punctuation

EN_VI = Direction("en", "vi")
GOOD = ("We drink a cup of tea.", "Chúng tôi uống một tách trà.")

WRONG = {
    "a side is empty": ("\u00a0", "Một."),
    "both sides are the same": ("CNN", "CNN"),
    "more than 100 words": ("word " * 100 + "word", "từ " * 99 + "từ"),
    "more than 3 times as many words": ("One.", "Một hai ba bốn."),
    "at least 2 sentences more or fewer": ('He said: "Yes." He left! Why?', "Anh ấy đi"),
    "not in NFC": ("tea", "tra\u0300"),
    "HTML entities": ("Tom &amp; I", "Tom và tôi"),
    "doubled CSV quotes": ('"He said ""no"""', "Anh ấy nói không"),
    "control characters": ("a\x07b", "a b"),
    "invisible characters": ("a\u200bb", "a b"),
    "irregular spaces": ("a  b", "a b"),
    "the character U+2581": ("a \u2581 b", "a b"),
    "capital letters on one side only": ("THE PEACE OF WESTPHALIA", "Hòa ước Westphalia"),
    "quotation marks on one side only": ("He said &quot;no&quot;.", "Anh ấy nói không."),
    "punctuation between spaces": ("a , b", "a, b"),
    "old tone marks, as in hòa": ("peace", "hòa bình"),
    "new tone marks, as in hoà": ("peace", "hoà bình"),
    "joined syllables, as in học_sinh": ("students", "các học_sinh"),
    "languages swapped": ("Chúng tôi uống trà.", "We drink tea."),
}


def kinds(source: str, target: str, direction: Direction = EN_VI) -> set[str]:
    return set(inspect([(source, target)], checks(direction)).counts)


def test_a_good_pair_has_no_defects() -> None:
    assert kinds(*GOOD) == set()


@pytest.mark.parametrize("kind", WRONG)
def test_every_kind_of_defect_is_found(kind: str) -> None:
    assert kind in kinds(*WRONG[kind])


def test_every_kind_of_defect_has_an_example_here() -> None:
    assert set(WRONG) == set(checks(EN_VI))


@pytest.mark.parametrize(
    "pair",
    [
        ("NATO", "Tổ chức"),
        ("NEW YEAR", "NĂM MỚI"),
        ('"No", he said.', "“Không”, anh ấy nói."),
        ("It's", "Đó là"),
        ("I saw TV", "나는 TV를 봤다"),
    ],
)
def test_capitals_and_quotation_marks_that_belong_there_are_no_defects(pair: tuple[str, str]) -> None:
    assert not {"capital letters on one side only", "quotation marks on one side only"} & kinds(*pair)


@pytest.mark.parametrize(
    "kind", ["more than 100 words", "more than 3 times as many words", "at least 2 sentences more or fewer"]
)
def test_values_at_the_limits_are_no_defects(kind: str) -> None:
    at_the_limit = {
        "more than 100 words": ("word " * 100, "từ " * 100),
        "more than 3 times as many words": ("One.", "Một hai ba."),
        "at least 2 sentences more or fewer": ("Yes. He left.", "Vâng. Anh ấy đi. Rồi."),
    }
    assert kind not in kinds(*at_the_limit[kind])


@pytest.mark.parametrize(("direction", "expected"), [("vi-en", True), ("en-vi", False), ("en-de", False)])
def test_vietnamese_is_recognized_on_either_side(direction: str, expected: bool) -> None:
    found = kinds("We drink tea now.", "Chúng tôi uống trà.", Direction.parse(direction))
    assert ("languages swapped" in found) == expected


def test_an_empty_side_is_not_counted_as_a_short_one() -> None:
    assert kinds("", "Một hai ba bốn.") == {"a side is empty"}


def test_decomposed_vietnamese_is_recognized() -> None:
    decomposed = unicodedata.normalize("NFD", "Chúng tôi uống trà.")
    assert "languages swapped" in kinds(decomposed, "We drink tea.")


def test_a_pair_seen_in_an_earlier_corpus_is_a_duplicate() -> None:
    seen = Seen(SeenTexts(), SeenTexts())
    inspect([GOOD], {}, seen=seen)
    assert inspect([GOOD], {}, seen=seen).counts == {"duplicates of a pair": 1}
    assert inspect([GOOD], {}).counts == {}


def test_vietnamese_names_do_not_make_english_vietnamese() -> None:
    assert "languages swapped" not in kinds("Nguyễn Văn An met Mr. Smith.", "Nguyễn Văn An gặp ông Smith.")


def test_repeated_pairs_repeated_sources_and_lines_of_other_splits_are_counted() -> None:
    pairs = [GOOD, ("  We drink a cup of tea. ", GOOD[1]), (GOOD[0], "Ta uống trà."), ("x", "Ngủ."), ("", "")]
    found = inspect(pairs, {}, {without_punctuation("Ngủ."): "test, line 3"}, examples=1)
    assert found.pairs == 5
    assert found.words == (19, 16)
    assert dict(found.counts) == {
        "duplicates of a pair": 1,
        "a repeated source with a different target": 1,
        "a side is in another split": 1,
    }
    assert found.lines == {
        "duplicates of a pair": [2],
        "a repeated source with a different target": [3],
    }
    assert found.overlaps == {4: "test, line 3"}


def test_only_the_first_lines_of_a_kind_are_listed() -> None:
    found = inspect([("", "")] * 5, checks(EN_VI), examples=2)
    assert (found.counts["a side is empty"], found.lines["a side is empty"]) == (5, [1, 2])


@pytest.mark.parametrize(
    ("direction", "line", "expected"),
    [
        ("en-vi", "Chúng tôi đã uống trà ở đây.", True),
        ("en-vi", "Tôi là sinh viên.", True),  # no letter is only Vietnamese, but two of the words are
        ("fr-vi", "Chúng tôi vẫn còn vui.", True),
        ("fr-vi", "Là, Nguyễn a été très gêné.", False),
        ("en-vi", "She sang à la Beyoncé.", False),
        ("en-vi", "Nguyễn Văn An met Mr. Smith, who drinks tea.", False),
        ("fr-vi", "Il a été très fâché.", False),
        ("pt-vi", "Não é só você.", False),
        ("vi-en", "We drink tea when it rains.", True),
        ("vi-en", "Chúng tôi uống trà.", False),
        ("vi-en", "Facebook, Google 2019", False),
    ],
)
def test_a_source_in_the_wrong_language_is_found(direction: str, line: str, expected: bool) -> None:
    check = foreign_check(Direction.parse(direction))
    assert check is not None
    assert check(line) == expected


def test_without_vietnamese_there_is_no_language_check() -> None:
    assert foreign_check(Direction.parse("en-de")) is None
