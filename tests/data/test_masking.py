"""Masking: which pieces are predicted, what the encoder reads there, and that both depend on the key alone."""

import math
from collections.abc import Sequence

import pytest
import torch

from nmt.data.example import Example
from nmt.data.masking import MASK, Masking, collate_masked
from nmt.text import EOS, PAD, UNK

VOCABULARY = 1000
DRAWS = 4000
IDS = list(range(100, 120))
# A binomial count differs by more than this many standard deviations from its mean with a probability below 1e-6.
SIGMAS = 5


def drawn(ids: Sequence[int] = IDS, masking: Masking | None = None, draws: int = DRAWS) -> list[tuple[list, list]]:
    masking = masking or Masking(VOCABULARY)
    return [masking(0, ids, f"7/0/{draw}")[1:3] for draw in range(draws)]


def assert_binomial(count: int, number: int, probability: float) -> None:
    spread = math.sqrt(number * probability * (1 - probability))
    assert abs(count - number * probability) <= SIGMAS * spread


@pytest.mark.parametrize("length", [1, 2, 3, 6, 10, 20, 57])
def test_fifteen_percent_of_the_pieces_are_predicted_but_at_least_one(length: int) -> None:
    for _, predicted in drawn(range(10, 10 + length), draws=20):
        assert sum(piece != PAD for piece in predicted) == max(1, round(0.15 * length))


def test_what_is_predicted_is_the_piece_of_the_sentence_and_the_rest_is_read_unchanged() -> None:
    for read, predicted in drawn():
        for piece, seen, target in zip(IDS, read, predicted, strict=True):
            assert target in (PAD, piece)
            assert target == piece or seen == piece


def test_of_the_predicted_pieces_80_percent_are_hidden_10_become_any_piece_and_10_stay() -> None:
    pairs = [
        (seen, target)
        for read, predicted in drawn()
        for seen, target in zip(read, predicted, strict=True)
        if target != PAD
    ]
    number, pieces = len(pairs), VOCABULARY - 4
    assert number == 3 * DRAWS
    assert_binomial(sum(seen == MASK for seen, _ in pairs), number, 0.8)
    # A random piece is the same one with the probability 1 / pieces.
    assert_binomial(sum(seen == target for seen, target in pairs), number, 0.1 + 0.1 / pieces)
    others = [seen for seen, target in pairs if seen not in (MASK, target)]
    assert_binomial(len(others), number, 0.1 * (1 - 1 / pieces))
    assert min(others) > EOS
    assert max(others) < VOCABULARY
    assert_binomial(sum(piece < VOCABULARY // 2 for piece in others), len(others), (VOCABULARY // 2 - 4) / pieces)


def test_every_position_is_predicted_equally_often() -> None:
    counts = [sum(target != PAD for target in column) for column in zip(*(p for _, p in drawn()), strict=True)]
    for count in counts:
        assert_binomial(count, DRAWS, 0.15)


@pytest.mark.parametrize(
    ("mask", "random", "expected"), [(1.0, 0.0, MASK), (0.0, 0.0, 100)], ids=["all are hidden", "all stay"]
)
def test_the_probabilities_may_be_zero_and_one(mask: float, random: float, expected: int) -> None:
    found = Masking(VOCABULARY, share=1.0, mask=mask, random=random)(3, [100], "key")
    assert (found.source, found.target) == ([expected], [100])


def test_a_draw_depends_on_its_key_alone() -> None:
    masking = Masking(VOCABULARY)
    first = masking(5, IDS, "1/2/5")
    for key in ("1/2/6", "1/3/5", "2/2/5"):
        assert masking(5, IDS, key) != first
    assert masking(5, IDS, "1/2/5") == first


def test_a_batch_counts_the_predicted_pieces_and_never_predicts_eos() -> None:
    batch = collate_masked([Example(4, [UNK, 11], [10, PAD]), Example(9, [12, UNK, UNK], [PAD, 13, 14])])
    assert batch.source.tolist() == [[UNK, 11, EOS, PAD], [12, UNK, UNK, EOS]]
    assert batch.source_mask.tolist() == [[True, True, True, False], [True] * 4]
    assert batch.predicted.tolist() == [[10, PAD, PAD, PAD], [PAD, 13, 14, PAD]]
    assert batch.tokens == 3
    torch.testing.assert_close(batch.indices, torch.tensor([4, 9]))
    assert batch.examples == [Example(4, [UNK, 11], [10]), Example(9, [12, UNK, UNK], [13, 14])]
