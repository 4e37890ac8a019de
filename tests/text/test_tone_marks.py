"""Vietnamese tone marks in either style: whole syllables alone change, there and back."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.text import Tokenizer, TokenizerPair, normalize, train_tokenizer
from nmt.text.tone_marks import ToneMarks, tone_mark_styles, with_tone_marks

TEXT = st.text("hkqrtglnoaeuyHOAUYòóỏọàảạùủúỳỷýẻèé .,-_1đâ", max_size=24).map(normalize)
PAIRS = [
    ("hòa", "hoà"),
    ("Hòa bình", "Hoà bình"),
    ("KHỎE", "KHOẺ"),
    ("thúy, thủy, lũy, trụy", "thuý, thuỷ, luỹ, truỵ"),
    ("ủy ban", "uỷ ban"),
    ("tòa/họa(xõa)", "toà/hoạ(xoã)"),
    ("Ngụy-Nhụy", "Nguỵ-Nhuỵ"),
    ("đọa đày, lóe sáng, xòe, ọe", "đoạ đày, loé sáng, xoè, oẹ"),
]
BOTH = [
    *("quý", "quỷ", "quỳ", "QUÝ"),  # the u belongs to the consonant
    *("hoàn", "toán", "hoài", "khuỷu", "huỳnh", "ngoẹo", "xoáy", "huých"),  # closed syllables
    *("của", "mùa", "thuở", "tuệ", "huế", "nghĩa", "hoa", "khoe", "huy"),
    *("Chloé", "Zoé", "canoé", "Gòas"),  # not Vietnamese
]


PLAIN = Tokenizer(
    train_tokenizer(["anh khỏe không", "tôi khỏe", "hòa bình"] * 20, kind="bpe", size=300, character_coverage=1.0)
)


@given(TEXT)
@settings(deadline=None)
def test_there_and_back(text: str) -> None:
    old, new = with_tone_marks(text, "old"), with_tone_marks(text, "new")
    assert with_tone_marks(new, "old") == with_tone_marks(old, "old") == old
    assert with_tone_marks(old, "new") == with_tone_marks(new, "new") == new
    assert tone_mark_styles(old) <= {"old"}
    assert tone_mark_styles(new) <= {"new"}
    assert ("new" in tone_mark_styles(text)) == (old != text)
    assert ("old" in tone_mark_styles(text)) == (new != text)
    bare = [
        "".join(char for char in unicodedata.normalize("NFD", style) if not unicodedata.combining(char))
        for style in (text, old, new)
    ]
    assert bare[0] == bare[1] == bare[2]
    assert normalize(old) == old
    assert normalize(new) == new


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_the_two_styles(old: str, new: str) -> None:
    assert (with_tone_marks(new, "old"), with_tone_marks(old, "new")) == (old, new)
    assert (tone_mark_styles(old), tone_mark_styles(new)) == ({"old"}, {"new"})


@pytest.mark.parametrize("word", BOTH)
def test_what_both_styles_write_alike_stays(word: str) -> None:
    assert with_tone_marks(word, "old") == with_tone_marks(word, "new") == word
    assert tone_mark_styles(word) == set()


@given(TEXT, st.sampled_from([None, "old", "new"]))
@settings(deadline=None)
def test_decoding_gives_back_the_respelled_text(text: str, style: ToneMarks | None) -> None:
    tokenizer = PLAIN.in_style(style)
    assert tokenizer.decode(tokenizer.encode(text)) == tokenizer.respelled(text)
    assert tokenizer.respelled(text) == (text if style is None else with_tone_marks(text, style))


@pytest.mark.parametrize("languages", [("en", "vi"), ("vi", "en"), ("fr", "vi"), ("en", "fr")])
def test_only_the_vietnamese_side_gets_the_style(languages: tuple[str, str]) -> None:
    pair = TokenizerPair(PLAIN, PLAIN).in_style("old", source=languages[0], target=languages[1])
    for language, tokenizer in zip(languages, pair, strict=True):
        assert tokenizer.decode(tokenizer.encode("Noé, khoẻ")) == ("Nóe, khỏe" if language == "vi" else "Noé, khoẻ")


def test_a_tokenizer_with_a_style_reads_both_styles_alike() -> None:
    plain, old = PLAIN, PLAIN.in_style("old")
    assert old.encode("anh khoẻ không") == plain.encode("anh khỏe không") != plain.encode("anh khoẻ không")
    assert old.encode_all(["hoà", "hòa"]) == plain.encode_all(["hòa", "hòa"])
    assert old.decode(old.encode("hoà")) == "hòa"
    moved = old.__reduce__()
    assert moved[0](*moved[1]).tone_marks == "old"
