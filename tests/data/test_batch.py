import pytest
import torch

from nmt.data.batch import collate, pad_source, separated
from nmt.text import BOS, EOS, PAD

EXAMPLES = [(11, [5, 6, 7], [8]), (2, [9], [10, 13, 12, 14]), (7, [], [])]


def test_collate_by_hand():
    batch = collate(EXAMPLES)
    assert batch.source.tolist() == [[5, 6, 7, EOS], [9, EOS, PAD, PAD], [EOS, PAD, PAD, PAD]]
    assert batch.source_mask.tolist() == [[True] * 4, [True, True, False, False], [True, False, False, False]]
    assert batch.target_input.tolist() == [[BOS, 8, 0, 0, 0], [BOS, 10, 13, 12, 14], [BOS, 0, 0, 0, 0]]
    assert batch.target_output.tolist() == [[8, EOS, 0, 0, 0], [10, 13, 12, 14, EOS], [EOS, 0, 0, 0, 0]]
    assert batch.indices.tolist() == [11, 2, 7]
    assert batch.tokens == 2 + 5 + 1


def test_separated_is_the_inverse_of_collate():
    assert separated(collate(EXAMPLES)) == EXAMPLES


def test_padding_does_not_change_the_sentences():
    batch = collate(EXAMPLES)
    for row, example in enumerate(EXAMPLES):
        alone = collate([example])
        for field in ("source", "source_mask", "target_input", "target_output"):
            whole, single = getattr(batch, field)[row], getattr(alone, field)[0]
            torch.testing.assert_close(whole[: len(single)], single)
            assert not whole[len(single) :].any()


def test_the_input_is_the_output_shifted_by_one():
    batch = collate(EXAMPLES[:2])
    for inputs, outputs in zip(batch.target_input, batch.target_output, strict=True):
        length = int((outputs != PAD).sum())
        assert inputs[1:length].tolist() == outputs[: length - 1].tolist()


def test_search_and_training_pad_the_same_way():
    source, mask = pad_source([ids for _, ids, _ in EXAMPLES])
    batch = collate(EXAMPLES)
    assert torch.equal(source, batch.source)
    assert torch.equal(mask, batch.source_mask)
    assert (source.dtype, mask.dtype) == (torch.int64, torch.bool)


def test_an_empty_batch_is_refused():
    with pytest.raises(ValueError, match="at least one sentence"):
        pad_source([])
