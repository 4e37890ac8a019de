import pytest
import torch

from nmt.data.batch import collate, context_sentences, pad_source, separated
from nmt.data.example import Example
from nmt.text import BOS, EOS, PAD

EXAMPLES = [Example(11, [5, 6, 7], [8]), Example(2, [9], [10, 13, 12, 14]), Example(7, [], [])]


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
    source, mask = pad_source([example.source for example in EXAMPLES])
    batch = collate(EXAMPLES)
    assert torch.equal(source, batch.source)
    assert torch.equal(mask, batch.source_mask)
    assert (source.dtype, mask.dtype) == (torch.int64, torch.bool)


def test_an_empty_batch_is_refused():
    with pytest.raises(ValueError, match="at least one sentence"):
        pad_source([])


def test_context_sentences_by_hand():
    """Sentence 0 has one earlier sentence, sentence 1 none, sentence 2 the same one and another."""
    context = context_sentences([[([5, 6], [7])], [], [([5, 6], [7]), ([8], [9, 10, 11])]])
    assert context is not None
    assert context.source.tolist() == [[5, 6, EOS], [8, EOS, PAD]]
    assert context.source_mask.tolist() == [[True] * 3, [True, True, False]]
    assert context.target_input.tolist() == [[BOS, 7, PAD, PAD], [BOS, 9, 10, 11]]
    assert context.target_mask.tolist() == [[True, True, False, False], [True] * 4]
    assert context.rows.tolist() == [[-1, 0], [-1, -1], [0, 1]]


def test_without_earlier_sentences_there_is_no_context():
    assert context_sentences([[], []]) is None
    assert collate(EXAMPLES).context is None
    assert collate([EXAMPLES[0]._replace(earlier=[([5], [6])])]).context is not None


def test_an_empty_context_is_read_by_no_sentence():
    context = collate(EXAMPLES, always_context=True).context
    assert context is not None
    assert (context.source.tolist(), context.target_input.tolist()) == ([[EOS]], [[BOS]])
    assert context.rows.tolist() == [[-1]] * 3
