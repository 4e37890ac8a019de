"""The dictionary whose translations a model reads in place of source words."""

from pathlib import Path

import pytest

from nmt.errors import Mistake
from nmt.text.dictionary import NO_DICTIONARY, Dictionary

WORDS = Dictionary(
    {
        "soup": "súp",
        "ice cream": "kem",
        "ice": "đá",
        "mother-in-law": "mẹ vợ",
        "Turner": "Turner (họa sĩ)",
        "attention": "chú ý",
    }
)


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("The soup is hot.", "The súp is hot."),
        ("“Soup, soup!”", "“Súp, súp!”"),
        ("My ice cream, not ice, ice  cream", "My kem, not đá, đá  cream"),
        ("My mother-in-law’s soup…soup", "My mother-in-law’s súp…súp"),
        ("My mother-in-law eats 'soup' (soup): soup; soup.", "My mẹ vợ eats 'súp' (súp): súp; súp."),
        ("Ice cream and Ice", "Kem and Ice"),
        ("1. Soup. Soup", "1. Súp. Soup"),
        ("Well...soup, yes--soup", "Well...súp, yes--súp"),
        ("A turner met Turner.", "A turner met Turner (họa sĩ)."),
        ("The Soup is called SOUP.", "The Soup is called SOUP."),
        ("soup.py soup_2 soup3 /soup soup/ a.soup soups soup-like @soup soup's", None),
        ("http://soup.org/soup?soup=soup&soup#soup soup@soup.com soup:80 100%soup", None),
        ("https://en.wikipedia.org/wiki/Dish_(soup),soup <soup> {soup} $soup soup?dish soup#x soup&x", None),
        ("soup\u0331", None),
        ("", ""),
    ],
)
def test_whole_words_are_replaced(text: str, replaced: str | None) -> None:
    assert WORDS.replaced(text) == (text if replaced is None else replaced)


def test_both_apostrophes_are_equal() -> None:
    for apostrophe in "'’":
        words = Dictionary({f"mother{apostrophe}s day": "ngày của mẹ"})
        assert words.replaced("On Mother's day, mother’s day") == "On Mother's day, ngày của mẹ"


def test_words_and_translations_are_respelled() -> None:
    words = Dictionary({"hoà bình": "peace"}).respelled(lambda text: text.replace("oà", "òa"), str.upper)
    assert words.translations == {"hòa bình": "PEACE"}


def test_an_empty_dictionary_changes_nothing() -> None:
    assert not NO_DICTIONARY
    assert NO_DICTIONARY.replaced("The soup is hot.") == "The soup is hot."


def test_what_is_replaced_is_named_once() -> None:
    text = "Ice cream, soup, ice and soup"
    assert WORDS.found(text) == [("Ice cream", "Kem"), ("soup", "súp"), ("ice", "đá")]
    assert WORDS.removed(text) == " ,  ,   and  "


def test_of_two_dictionaries_the_second_wins() -> None:
    both = WORDS | Dictionary({"soup": "canh", "hot": "nóng"})
    assert both.replaced("The soup is hot, with ice.") == "The canh is nóng, with đá."
    assert WORDS | NO_DICTIONARY is WORDS
    assert WORDS.replaced("soup") == "súp"


def test_a_table_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "dictionary.tsv"
    path.write_text(WORDS.table(), encoding="utf-8")
    again = Dictionary.load(path)
    assert again.translations == WORDS.translations
    in_another_order = Dictionary(dict(reversed(WORDS.translations.items())))
    assert again.digest == in_another_order.digest == WORDS.digest != NO_DICTIONARY.digest


def test_a_file_is_normalized(tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_bytes("\ufeffcafe\u0301 \tca\u0300  phe\u0302\r\n".encode())
    assert Dictionary.load(path).translations == {"café": "cà phê"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("soup\tsúp\nhot nóng\n", r"line 2: expected a word or phrase, a tab and its translation\.$"),
        ("soup\tsúp\tcanh\n", r"line 1: expected a word or phrase, a tab and its translation\.$"),
        ("soup\t \n", r"line 1: expected a word or phrase"),
        ("\n", r"line 1: expected a word or phrase"),
        ("C++\tC++\n", r"line 1: 'C\+\+' is not a word or phrase of letters, .*; remove the line\.$"),
        ("a, b\tx\n", r"line 1: 'a, b' is not a word or phrase of letters"),
        ("soup\tsúp\nhot\tnóng\nsoup\tcanh\n", r"line 3: 'soup' is already in line 1; keep one translation of it\.$"),
        ("mother's\ta\nmother’s\tb\n", r"line 2: 'mother's' is already in line 1"),
        (
            "हिन्दी\tx\n",
            r"is not a word or phrase of letters, with hyphens and apostrophes only inside words and without combining",
        ),
        ("", r"words\.tsv is empty; use a file with at least one line\.$"),
    ],
)
def test_other_files_are_refused_with_the_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "words.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(Mistake, match=message):
        Dictionary.load(path)


def test_words_given_in_python_are_normalized() -> None:
    given = Dictionary.from_mapping({"cafe\u0301 ": " cà\nphê", "mother’s day": "ngày của mẹ"})
    assert given.translations == {"café": "cà phê", "mother's day": "ngày của mẹ"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["soup"], r"^dictionary is of type list; pass the name of a file, or a dict of words and translations\.$"),
        ({"soup": 3}, r"^dictionary has 'soup': 3; pass words and translations that are strings with text\.$"),
        ({3: "ba"}, r"^dictionary has 3: 'ba'; pass words and translations"),
        ({"soup": " "}, r"^dictionary has 'soup': ' '; pass words and translations"),
        ({"soup": "\ud800"}, r"^dictionary\['soup'\] contains an unpaired surrogate; pass valid Unicode\.$"),
        ({"C++": "C++"}, r"^dictionary has 'C\+\+', which is not a word or phrase of letters, .*; remove it\.$"),
        ({"ice": "đá", " ice": "kem"}, r"^dictionary has 'ice' and ' ice', the same word; keep one of them\.$"),
    ],
)
def test_what_is_not_a_dictionary_in_python_is_refused(given: object, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        Dictionary.from_mapping(given)


def test_time_grows_with_the_length_of_the_text() -> None:
    """Neither a word that is not whole nor a long phrase is tried again at each place; that would take an hour."""
    long = Dictionary({"a": "x", " ".join(["a"] * 200): "y"})
    assert long.replaced("a b " * 100_000) == "x b " * 100_000
    assert long.replaced("a@b.co a " * 100_000) == "a@b.co x " * 100_000
    assert WORDS.replaced("a" * 1_000_000 + "@") == "a" * 1_000_000 + "@"
    assert WORDS.replaced("a-" * 500_000) == "a-" * 500_000
