"""Laws and oracles of hierarchical attention (Miculicich et al. 2018)."""

from functools import partial
from itertools import pairwise

import pytest
import torch

from nmt.attention import Attention, normalizers, windows
from nmt.data.batch import ContextSentences, collate
from nmt.data.example import Example
from nmt.decoding.state import select_rows
from nmt.errors import Mistake
from nmt.models.document_model import DocumentModel
from nmt.models.hierarchical import EarlierSentences, HierarchicalAttention
from nmt.text.tokenizer import PAD

MODELS = ("bahdanau", "luong", "transformer")
FIRST = [([5, 6, 7], [8, 9]), ([4], [10, 11, 12])]
EXAMPLES = [
    Example(0, [5, 9, 4, 6], [7, 8, 12]),
    Example(1, [8, 8], [5], FIRST[:1]),
    Example(2, [4, 5, 6, 7, 8], [9, 10], [*FIRST, ([11, 12], [13])]),
]


def logits(model, examples):
    batch = collate(examples)
    return model(batch.source, batch.source_mask, batch.target_input, context=batch.context)


@pytest.fixture(params=[(model, at) for model in MODELS for at in ("encoder", "decoder", "both")], ids="-".join)
def model(request, document_model):
    return document_model(*request.param)


def test_a_gate_of_one_is_the_sentence_model_bit_for_bit(model):
    for part in (model.encoder_context, model.decoder_context):
        if part is not None:
            torch.nn.init.zeros_(part.gate.weight)
            torch.nn.init.constant_(part.gate.bias, 50.0)  # the sigmoid of 50 is 1 - 2e-22, which rounds to 1
    assert torch.equal(
        logits(model, EXAMPLES), logits(model.sentence, [each._replace(earlier=()) for each in EXAMPLES])
    )


def test_a_sentence_without_earlier_ones_is_that_of_the_sentence_model_bit_for_bit(model):
    size = len(EXAMPLES[0].target) + 1
    batch = collate(EXAMPLES)
    alone = model.sentence(batch.source, batch.source_mask, batch.target_input)
    assert torch.equal(logits(model, EXAMPLES)[0, :size], alone[0, :size])
    assert torch.equal(model(batch.source, batch.source_mask, batch.target_input), alone)


def test_an_empty_context_changes_nothing_and_reaches_every_parameter(model):
    """So that all processes of a distributed training have gradients of the same parameters."""
    batch = collate([each._replace(earlier=()) for each in EXAMPLES], always_context=True)
    inputs = batch.source, batch.source_mask, batch.target_input
    found = model(*inputs, context=batch.context)
    assert torch.equal(found, model(*inputs))
    found.sum().backward()
    for name, part in model.named_parameters():
        if "context" in name:
            assert part.grad is not None, name
            assert not part.grad.any(), name


def test_what_came_before_changes_the_rest(model):
    batch = collate(EXAMPLES)
    alone = model.sentence(batch.source, batch.source_mask, batch.target_input)
    assert (logits(model, EXAMPLES)[1:] != alone[1:]).flatten(1).any(dim=1).all()


def test_a_batch_is_its_sentences_one_by_one(model):
    whole = logits(model, EXAMPLES)
    for row, example in enumerate(EXAMPLES):
        size = len(example.target) + 1
        torch.testing.assert_close(whole[row, :size], logits(model, [example])[0], rtol=1e-10, atol=1e-10)


def test_only_the_side_that_is_read_matters(model):
    for side, reads in ((0, "encoder"), (1, "decoder")):
        pairs = [list(pair) for pair in EXAMPLES[2].earlier]
        pairs[1][side] = [14, 15]
        changed = EXAMPLES[2]._replace(earlier=[tuple(pair) for pair in pairs])
        same = torch.equal(logits(model, [EXAMPLES[2]]), logits(model, [changed]))
        # The decoder's states of earlier targets attend to their sources too.
        expected = model.decoder_context is None if side == 1 else False
        assert same == expected, reads


def test_step_by_step_equals_the_whole_forward(model):
    batch = collate(EXAMPLES)
    whole = logits(model, EXAMPLES).log_softmax(dim=-1)
    memory = model.encode(batch.source, batch.source_mask, context=batch.context)
    state = model.start(memory, beams=1)
    for t in range(batch.target_input.shape[1]):
        log_probs, state = model.step(batch.target_input[:, t : t + 1], state, memory)
        # `step` returns float32, whose logits below 32 are rounded.
        torch.testing.assert_close(
            log_probs[:, 0].double(), whole[:, t], rtol=0, atol=64 * torch.finfo(torch.float32).eps
        )


def test_beams_share_the_memory_of_their_sentence(model):
    batch = collate(EXAMPLES)
    memory = model.encode(batch.source, batch.source_mask, context=batch.context)
    tokens = torch.tensor([[5, 6], [7, 8], [9, 4]])
    both, _ = model.step(tokens, model.start(memory, beams=2), memory)
    for beam in (0, 1):
        one, _ = model.step(tokens[:, beam : beam + 1], model.start(memory, beams=1), memory)
        torch.testing.assert_close(both[:, beam], one[:, 0], rtol=0, atol=64 * torch.finfo(torch.float32).eps)


def test_selected_rows_of_a_memory_are_those_sentences(model):
    batch = collate(EXAMPLES)
    memory = model.encode(batch.source, batch.source_mask, context=batch.context)
    rows = torch.tensor([2, 0])
    some = select_rows(memory, rows)
    whole = model.output(model.decode(batch.target_input, memory))
    torch.testing.assert_close(model.output(model.decode(batch.target_input[rows], some)), whole[rows])


def test_gradients_are_finite_for_every_scorer_and_normalizer(document_model, scorers):
    for scorer in scorers:
        for normalizer in (normalizers.Softmax, normalizers.Sparsemax):
            model = document_model("transformer", "both", scorer, normalizer)
            logits(model, EXAMPLES).sum().backward()
            assert all(part.grad is None or part.grad.isfinite().all() for part in model.parameters())


def test_heads_that_do_not_divide_the_width_are_refused_by_their_key(scorers):
    site = partial(Attention, scorers["dot"], windows.Global, normalizers.Softmax)
    with pytest.raises(Mistake, match=r"context.model.num_heads=5 does not divide the state width 6: choose a"):
        HierarchicalAttention(site, site, dim=6, ffn_dim=5, num_heads=5, dropout=0.0)


@pytest.mark.parametrize("dropout", [1.0, -0.1])
def test_a_dropout_that_is_no_probability_is_refused_by_its_key(scorers, dropout):
    site = partial(Attention, scorers["dot"], windows.Global, normalizers.Softmax)
    with pytest.raises(Mistake, match=f"context.model.dropout is {dropout}; it must be a number of at least 0 and"):
        HierarchicalAttention(site, site, dim=6, ffn_dim=5, num_heads=2, dropout=dropout)


def test_a_document_model_that_reads_no_earlier_sentence_is_refused(make_model):
    with pytest.raises(Mistake, match=r"context\.model\.encoder and context\.model\.decoder are both null"):
        DocumentModel(make_model("transformer", "dot"), None, None, ffn_dim=5, num_heads=2, dropout=0.0)


def test_both_levels_by_loops(scorers):
    """d_t = FFN(MultiHead_s(h_t, [s^1 .. s^k])) and the gate, word by word and sentence by sentence."""
    torch.manual_seed(3)
    dim, heads, sentences, words = 6, 2, 3, 4
    own = partial(Attention, scorers["scaled_dot"], windows.Global, normalizers.Softmax)
    layer = HierarchicalAttention(own, own, dim=dim, ffn_dim=5, num_heads=heads, dropout=0.0).double().eval()
    states, earlier = torch.randn(1, 2, dim).double(), torch.randn(sentences, words, dim).double()
    lengths = [4, 2, 3]
    mask = torch.tensor([[word < length for word in range(words)] for length in lengths])
    found = layer(states, layer.project(earlier, mask, torch.arange(sentences)[None]))

    def attend(around, query, vectors):
        parts = []
        for head in range(heads):
            span = slice(head * dim // heads, (head + 1) * dim // heads)
            q = around.query(query)[span]
            scores = torch.stack([q @ around.key(vector)[span] for vector in vectors]) / (dim / heads) ** 0.5
            weights = scores.exp() / scores.exp().sum()
            parts.append(
                sum(weight * around.value(vector)[span] for weight, vector in zip(weights, vectors, strict=True))
            )
        return around.output(torch.cat(parts))

    for t in range(2):
        h = states[0, t]
        summaries = [attend(layer.words, h, earlier[j, : lengths[j]]) for j in range(sentences)]
        inner = torch.relu(layer.feed_forward.inner(attend(layer.sentences, h, summaries)))
        d = layer.feed_forward.outer(inner)
        gate = torch.sigmoid(layer.gate(torch.cat([h, d])))
        torch.testing.assert_close(found[0, t], gate * h + (1 - gate) * d, rtol=1e-10, atol=1e-10)


def test_the_watched_weights_of_each_level_sum_to_one(model):
    batch, seen = collate(EXAMPLES), {}

    def watch(site, layer, weights, visible):
        seen[site] = weights
        assert not weights[~visible.mask.expand_as(weights)].any()

    plain = logits(model, EXAMPLES)
    watched = model(batch.source, batch.source_mask, batch.target_input, watch, batch.context)
    torch.testing.assert_close(watched, plain)
    of_document = [site for site in model.sites if site not in model.sentence_sites]
    assert of_document
    for site in of_document:
        sums = seen[site].sum(dim=-1)
        torch.testing.assert_close(sums[1:], torch.ones_like(sums[1:]))
        assert not sums[0].any()
    assert set(seen) <= set(model.sites)


def test_padding_of_earlier_sentences_changes_nothing(document_model):
    model, batch = document_model(), collate(EXAMPLES)
    wider = torch.nn.functional.pad
    context = ContextSentences(
        wider(batch.context.source, (0, 2), value=PAD),
        wider(batch.context.source_mask, (0, 2)),
        wider(batch.context.target_input, (0, 3), value=PAD),
        wider(batch.context.target_mask, (0, 3)),
        wider(batch.context.rows, (2, 0), value=-1),
    )
    found = model(batch.source, batch.source_mask, batch.target_input, context=context)
    torch.testing.assert_close(found, logits(model, EXAMPLES))


def test_a_sentence_model_refuses_context(make_model):
    batch = collate(EXAMPLES)
    with pytest.raises(ValueError, match=r"^Transformer reads single sentences; use a DocumentModel for documents"):
        make_model("transformer", "dot").encode(batch.source, batch.source_mask, context=batch.context)


def test_the_projected_words_of_a_missing_sentence_are_masked(scorers):
    own = partial(Attention, scorers["dot"], windows.Global, normalizers.Softmax)
    layer = HierarchicalAttention(own, own, dim=4, ffn_dim=3, num_heads=1, dropout=0.0)
    mask = torch.tensor([[True, False], [True, True]])
    earlier = layer.project(torch.randn(2, 2, 4), mask, torch.tensor([[-1, 1], [0, 1], [-1, -1]]))
    assert isinstance(earlier, EarlierSentences)
    assert earlier.mask.tolist() == [[[False] * 2, [True] * 2], [[True, False], [True] * 2], [[False] * 2] * 2]
    assert all(one.shape == other.shape for one, other in pairwise((earlier.keys, earlier.values)))
