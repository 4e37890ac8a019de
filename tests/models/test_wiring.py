"""The differences between the three models, each tested against its equation."""

import math

import pytest
import torch

from nmt.attention.scorers import Location
from nmt.errors import Mistake
from nmt.models.embeddings import sinusoids
from nmt.models.encoders import Bidirectional


def cross_map(model, source, mask, target):
    seen = []
    model(source, mask, target, watch=lambda site, layer, weights, _: seen.append(weights))
    return seen[-1]


@pytest.mark.parametrize(("name", "asks_with_previous_state"), [("bahdanau", True), ("luong", False)])
def test_the_query_is_the_previous_state_in_bahdanau_and_the_current_in_luong(
    name, asks_with_previous_state, sentences, make_model
):
    source, mask, target = sentences
    model, other = make_model(name, "additive"), target.clone()
    other[:, 0] = 4 + (target[:, 0] - 3) % 19
    first = [cross_map(model, source, mask, tokens)[:, :, 0] for tokens in (target, other)]
    assert first[0].equal(first[1]) == asks_with_previous_state


def test_luong_attentional_vector(sentences, close, make_model):
    """h~_t = tanh(W_c [c_t; h_t]), c_t = sum_s a_t(s) h_s, score = h_t . h_s, by hand for one step."""
    model, (source, mask, _) = make_model("luong", "dot"), sentences
    memory = model.encode(source[:1], mask[:1])
    state = model.start(memory, beams=1)
    embedded = torch.randn(1, 1, 11, dtype=torch.float64)
    result, new = model.advance(embedded, state, memory)
    h, annotations = new.hidden[0, -1], memory.annotations.values[0, 0]
    weights = (annotations @ h).softmax(dim=0)
    by_hand = torch.tanh(model.combine.weight @ torch.cat([weights @ annotations, h]))
    close(result[0, 0], by_hand)
    close(new.attentional[0], by_hand)


@pytest.mark.parametrize("input_feeding", [True, False])
def test_luong_input_feeding_is_a_switch(input_feeding, sentences, make_model):
    source, mask, _ = sentences
    model = make_model("luong", "general", input_feeding=input_feeding)
    memory = model.encode(source, mask)
    state, embedded = model.start(memory, beams=1), torch.randn(3, 1, 11, dtype=torch.float64)
    fed = state._replace(attentional=torch.ones_like(state.attentional))
    same = model.advance(embedded, state, memory)[0].equal(model.advance(embedded, fed, memory)[0])
    assert same != input_feeding
    assert state.attentional.eq(0).all(), "zeros at t = 0"


def test_the_reversed_encoder_of_luong_passes_its_final_states_to_the_decoder(sentences, close, make_model):
    """It reads the source backwards; the decoder starts from its final states, and annotations stay at their pieces."""
    model, (source, mask, _) = make_model("luong", "dot", encoder="reversed"), sentences
    memory, below = model.encode(source, mask), model.source_embedding(source[1, :3])
    for index, layer in enumerate(model.encoder):
        h, c, states = torch.zeros(14).double(), torch.zeros(14).double(), {}
        for position in (1, 0, 2):  # EOS is read last
            gates = layer.weight_ih_l0 @ below[position] + layer.bias_ih_l0 + layer.weight_hh_l0 @ h + layer.bias_hh_l0
            i, f, g, o = gates.chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = states[position] = o.sigmoid() * c.tanh()
        close(memory.first.hidden[1, index], h)
        close(memory.first.cell[1, index], c)
        below = [states[position] for position in range(3)]
    close(memory.annotations.values[1, 0, :3], torch.stack(below))
    assert "encoder = Reversed" in model.extra_repr()


def test_an_encoder_of_the_wrong_width_is_refused(make_model):
    with pytest.raises(
        Mistake,
        match=r"^The encoder Reversed needs encoder_dim equal to decoder_dim, .* but they are 14 and 15; make",
    ):
        make_model("luong", "general", encoder="reversed", decoder_dim=15)


def test_bahdanau_starts_from_the_last_state_of_a_reversed_encoder(sentences, close, make_model):
    model, (source, mask, _) = make_model("bahdanau", "dot", encoder="reversed"), sentences
    memory = model.encode(source[1:2], mask[1:2])
    # EOS, at position 2, is read last.
    close(memory.first.hidden[0], torch.tanh(model.bridge(memory.annotations.values[0, 0, 2])))


def test_bahdanau_first_state_and_readout(sentences, close, make_model):
    """s_0 = tanh(W_s h_1), h_1 backward; readout = maxout over pairs of U_o s_{t-1} + V_o E y_{t-1} + C_o c_t."""
    model, (source, mask, _) = make_model("bahdanau", "dot"), sentences
    memory = model.encode(source[1:2], mask[1:2])
    annotations = memory.annotations.values[0, 0, :3]
    s_0 = torch.tanh(model.bridge.weight @ annotations[0, 7:] + model.bridge.bias)
    close(memory.first.hidden[0], s_0)
    embedded = torch.randn(11, dtype=torch.float64)
    result, state = model.advance(embedded.view(1, 1, 11), model.start(memory, beams=1), memory)
    context = (annotations @ s_0).softmax(dim=0) @ annotations
    close(state.hidden, model.cell(torch.cat([embedded, context])[None], s_0[None]))
    pairs = (model.readout.weight @ torch.cat([s_0, embedded, context]) + model.readout.bias).view(7, 2)
    close(model.output(model.read_out(result))[0, 0], model.output.weight @ pairs.max(dim=1).values + model.output.bias)


def test_luong_first_states(sentences, close, make_model):
    """In every layer h_0 = tanh(W_h [h_forward; h_backward]); c_0 is the same for the cells, with separate weights."""
    model, (source, mask, _) = make_model("luong", "dot"), sentences
    first = model.encode(source[1:2], mask[1:2]).first
    inputs = model.source_embedding(source[1:2, : int(mask[1].sum())])
    for layer, network in enumerate(model.encoder):
        inputs, (hidden, cell) = network(inputs)
        for state, bridge, last in (
            (first.hidden, model.hidden_bridge[layer], hidden),
            (first.cell, model.cell_bridge[layer], cell),
        ):
            close(state[0, layer], torch.tanh(bridge.weight @ last.flatten() + bridge.bias))


def test_transformer_input(sentences, close, make_model):
    """sqrt(d) E x + PE(pos) (Vaswani et al. 2017, sections 3.4 and 3.5) is the input of the first encoder layer."""
    model, (source, mask, _) = make_model("transformer", "scaled_dot"), sentences
    given = []
    model.encoder[0].register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    model.encode(source, mask)
    positions = sinusoids(torch.arange(source.shape[1]), 12)
    close(given[0], math.sqrt(12) * model.source_embedding.weight[source] + positions.double())


def test_sinusoids():
    """PE for d = 4 and pos = 0 is [0, 1, 0, 1]: cosines at odd places, and wavelengths of 2 pi 10000^(2i/d)."""
    assert sinusoids(torch.tensor([0]), 4).tolist() == [[0, 1, 0, 1]]
    embedding = torch.tensor([0.1, 0.2, 0.3, 0.4]) + sinusoids(torch.tensor([0]), 4)[0]
    torch.testing.assert_close(embedding, torch.tensor([0.1, 1.2, 0.3, 1.4]))
    expected = [math.sin(7), math.cos(7), math.sin(7 / 100), math.cos(7 / 100)]
    torch.testing.assert_close(sinusoids(torch.tensor([7]), 4)[0], torch.tensor(expected))


def test_transformer_ties_its_output_to_the_target_embedding(make_model):
    model = make_model("transformer", "dot")
    assert model.output.weight is model.target_embedding.weight
    assert model.source_embedding is not model.target_embedding


@pytest.mark.parametrize("norm_first", [True, False])
def test_place_of_the_normalization(norm_first, sentences, make_model):
    """Post-norm (the paper's) normalizes after each sub-layer; pre-norm has one norm at the end of the stack."""
    model = make_model("transformer", "scaled_dot", norm_first=norm_first)
    x = torch.randn(2, 5, 12, dtype=torch.float64) * 9
    out = model.encoder[0](x, torch.ones(2, 1, 1, 5, dtype=torch.bool))
    normalised = torch.allclose(out.mean(dim=-1), torch.zeros(2, 5, dtype=torch.float64), atol=1e-9)
    assert normalised != norm_first
    assert isinstance(model.encoder_norm, torch.nn.LayerNorm) == norm_first
    assert isinstance(model.decoder_norm, torch.nn.LayerNorm) == norm_first


def test_an_odd_encoder_width_is_refused():
    with pytest.raises(Mistake, match="encoder_dim is 15; it must be even"):
        Bidirectional().state_dim(15)


def test_location_counts_the_pieces_read_and_not_the_unused_cache(make_model):
    """A search of 17 steps works with 17 positions, although the cache grows in larger blocks."""
    model = make_model("transformer", "location")
    for module in model.modules():
        if isinstance(module, Location):
            module.weight.data = module.weight.data[:, :17]
    source = torch.randint(4, 19, (2, 5))
    memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    tokens = torch.randint(4, 23, (2, 17))
    whole = model.output(model.decode(tokens, memory)).log_softmax(dim=-1)
    state = model.start(memory, beams=1)
    for step in range(17):
        log_probs, state = model.step(tokens[:, step : step + 1], state, memory)
        # The step returns float32: logits below 32 are rounded, and the softmax sums 23 terms.
        tolerance = 64 * torch.finfo(torch.float32).eps
        torch.testing.assert_close(log_probs[:, 0], whole[:, step].to(log_probs.dtype), rtol=0, atol=tolerance)
    with pytest.raises(Mistake, match="has weights for 17 positions, but the sentence has 18"):
        model.step(tokens[:, :1], state, memory)
