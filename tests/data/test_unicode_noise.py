"""Random characters in training pairs: equal on both sides, keyed, of all scripts, and nothing else changes."""

import unicodedata
from collections import Counter
from random import Random

import pytest

from nmt.data.drawn_pairs import Draw
from nmt.data.example import Example
from nmt.data.unicode_noise import UnicodeNoise, noise

SOURCE, TARGET = "we see the small house today", "hôm nay chúng ta thấy nhà nhỏ"


@pytest.fixture
def example(pair):
    return Example(0, pair.source.encode(SOURCE), pair.target.encode(TARGET))


@pytest.fixture
def changed(pair, example):
    """The texts of the pair in many draws."""

    def change(probability=1.0, seed=3, longest=(99, 99), draws=300):
        unicode_noise = UnicodeNoise(pair, probability, seed=seed, longest=longest)
        examples = [unicode_noise(Draw(0, number), example) for number in range(draws)]
        return [(pair.source.decode(one.source), pair.target.decode(one.target)) for one in examples]

    return change


def test_both_sides_get_the_same_characters_and_keep_their_own(changed):
    for source, target in changed():
        inserted = Counter(source) - Counter(SOURCE)
        assert inserted - Counter(" ") == Counter(target) - Counter(TARGET) - Counter(" ")
        assert 1 <= (inserted - Counter(" ")).total() <= 3
        for text, changed_text in ((SOURCE, source), (TARGET, target)):
            characters = iter(changed_text)
            assert all(character in characters for character in text)  # in the same order


def test_characters_are_inserted_in_front_after_between_and_attached(changed):
    texts = [source for source, _ in changed()]
    assert any(text.endswith(" " + SOURCE) for text in texts)
    assert any(text.startswith(SOURCE + " ") for text in texts)
    assert any(text.startswith(SOURCE) and text[len(SOURCE)] != " " for text in texts)
    assert any(not text.startswith(SOURCE) and not text.endswith(SOURCE) for text in texts)


def test_the_share_of_changed_pairs_is_the_probability(changed):
    share = sum(source != SOURCE for source, _ in changed(0.2, draws=2_000)) / 2_000
    assert abs(share - 0.2) < 4 * (0.2 * 0.8 / 2_000) ** 0.5
    assert changed(0.0) == [(SOURCE, TARGET)] * 300


def test_the_noise_depends_only_on_seed_epoch_and_pair(changed, pair, example):
    assert changed() == changed()
    assert changed() != changed(seed=4)
    unicode_noise = UnicodeNoise(pair, 1.0, seed=3, longest=(99, 99))
    assert unicode_noise(Draw(1, 0), example) != unicode_noise(Draw(0, 0), example)


def test_a_pair_that_would_become_too_long_stays_as_it_is(changed, example):
    assert changed(longest=(99, len(example.target) + 2)) == [(SOURCE, TARGET)] * 300


def test_every_byte_of_a_character_beyond_ascii_occurs():
    random = Random(1)
    texts = [noise(random) for _ in range(20_000)]
    # UTF-8 uses 0x80 to 0xBF after the first byte, and 0xC3 to 0xED and 0xF0 as the first byte of assigned characters.
    assert set(range(0x80, 0xC0)) | {0xC3, 0xD0, 0xE0, 0xE2, 0xE4, 0xE9, 0xED, 0xF0} <= set("".join(texts).encode())
    assert {"So", "Sm", "Lo", "Ll", "Po"} <= {unicodedata.category(text[0]) for text in texts}
    assert not any(character.isspace() for text in texts for character in text)
