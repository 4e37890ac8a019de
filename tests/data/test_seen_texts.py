import random
import tracemalloc

import numpy as np
import pytest

from nmt.data import seen_texts
from nmt.data.seen_texts import SeenTexts, digest


@pytest.mark.parametrize("recent", [1, 7, 100_000])
def test_repeated_texts_are_found_wherever_they_are_kept(recent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_texts, "_RECENT", recent)
    chance, seen, known = random.Random(5), SeenTexts(), set[str]()
    for _ in range(3000):
        text = f"câu số {chance.randrange(1500)}"
        assert seen.add(text) == (text in known)
        known.add(text)
    assert len(known) < 1500


@pytest.mark.parametrize("recent", [1, 7, 100_000])
def test_many_digests_at_once_are_those_of_their_texts(recent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_texts, "_RECENT", recent)
    chance, one_by_one, at_once = random.Random(5), SeenTexts(), SeenTexts()
    for _ in range(30):
        texts = [f"câu số {chance.randrange(1500)}" for _ in range(100)]
        digests = np.array([digest(text) for text in texts], dtype=np.uint64)
        assert at_once.add_digests(digests).tolist() == [one_by_one.add(text) for text in texts]


def test_a_text_takes_8_bytes_and_16_at_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_texts, "_RECENT", 400)
    seen = SeenTexts()
    tracemalloc.start()
    try:
        for number in range(20_000):
            seen.add(str(number))
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The set keeps the size that it grew to.
    assert kept <= 8 * 20_000 + 150 * 400
    # When the digests are merged, the former array and the new one are there at once.
    assert 1.5 * kept < peak <= 16 * 20_000 + 150 * 400
