"""Laws that every model keeps with every scorer."""

from copy import deepcopy
from functools import partial

import pytest
import torch

from nmt.attention import MultiHeadAttention
from nmt.attention.scorers import Location, NoScore
from nmt.attention.windows import LocalM, LocalP
from nmt.decoding.beam import BeamSearch
from nmt.decoding.constraints import Constraints
from nmt.decoding.state import select_rows
from nmt.kernels import fused_attention
from nmt.models import Transformer
from nmt.models.lstmn import LSTMN
from nmt.text.tokenizer import BOS, EOS, PAD, UNK

pytestmark = pytest.mark.unchecked

# `step` returns float32: logits below 32 are rounded, and the softmax sums 23 terms.
LOG_PROB = 64 * torch.finfo(torch.float32).eps


@pytest.mark.usefixtures("check_annotations")
def test_all_tensors_have_the_types_and_sizes_of_their_annotations(typical, sentences):
    source, mask, target = sentences
    assert typical(source, mask, target, watch=lambda *_: None).shape == (3, 6, 23)
    memory = typical.encode(source, mask)
    typical.attending_step(target[:, :1], typical.start(memory, beams=1), memory)
    assert len(BeamSearch(beam_size=2, constraints=Constraints(max_length=3))(typical, source, mask)) == 3


def test_step_by_step_equals_the_whole_forward(model, sentences, close):
    source, mask, target = sentences
    whole = model(source, mask, target).log_softmax(dim=-1)
    memory = model.encode(source, mask)
    state = model.start(memory, beams=1)
    for t in range(target.shape[1]):
        log_probs, state = model.step(target[:, t : t + 1], state, memory)
        close(log_probs.double(), whole[:, t : t + 1].float().double().log_softmax(-1), atol=LOG_PROB)


def test_a_step_without_gradients_is_the_same_and_leaves_the_features_alone(model, sentences, monkeypatch):
    model = deepcopy(model).float()
    features = torch.randn(3, 2, model.output.in_features)
    monkeypatch.setattr(model, "advance_features", lambda *_: (features, None))
    given, expected = features.clone(), model.output(features).log_softmax(dim=-1)
    with_gradients, _ = model.step(sentences[2][:, :2], None, None)
    with torch.no_grad():
        without, _ = model.step(sentences[2][:, :2], None, None)
    assert torch.equal(with_gradients, expected)
    assert torch.equal(without, expected)
    assert torch.equal(features, given)


def test_an_attending_step_is_a_step_that_also_returns_its_weights(typical, sentences, close):
    source, mask, target = sentences
    seen = {}
    typical(source, mask, target, watch=lambda site, layer, weights, _: seen.update({(site, layer): weights}))
    last = max(layer for site, layer in seen if site == "cross")
    memory = typical.encode(source, mask)
    plain, shown = typical.start(memory, beams=1), typical.start(memory, beams=1)
    for t in range(target.shape[1]):
        log_probs, plain = typical.step(target[:, t : t + 1], plain, memory)
        again, weights, shown = typical.attending_step(target[:, t : t + 1], shown, memory)
        close(again, log_probs, atol=1e-10)
        close(weights[:, 0], seen["cross", last].mean(dim=1)[:, t])


def test_beams_are_independent_prefixes_of_their_sentence(typical, sentences, close):
    source, mask, _ = sentences
    prefixes = torch.randint(4, 23, (3, 2, 20), generator=torch.Generator().manual_seed(1))
    memory = typical.encode(source, mask)
    state = typical.start(memory, beams=2)
    for t in range(20):  # longer than a block of the cache
        log_probs, state = typical.step(prefixes[:, :, t], state, memory)
    for beam in range(2):
        whole = typical(source, mask, prefixes[:, beam])[:, -1].log_softmax(dim=-1)
        close(log_probs[:, beam].double(), whole, atol=LOG_PROB)


def test_selected_rows_continue_unchanged(model, sentences, close):
    source, mask, target = sentences
    memory = model.encode(source, mask)
    state = model.start(memory, beams=2)
    tokens = torch.stack([target[:, 0], target[:, 1]], dim=1)
    _, state = model.step(tokens, state, memory)
    swapped = torch.tensor([1, 0, 3, 2, 5, 4])
    log_probs, _ = model.step(tokens, select_rows(state, swapped), memory)
    for beam in range(2):
        prefix = torch.stack([tokens[:, 1 - beam], tokens[:, beam]], dim=1)
        close(log_probs[:, beam].double(), model(source, mask, prefix)[:, -1].log_softmax(-1), atol=LOG_PROB)


def test_padding_changes_nothing(typical, sentences, close):
    source, mask, target = sentences
    wider = torch.nn.functional.pad(source, (0, 4), value=PAD)
    close(typical(wider, torch.nn.functional.pad(mask, (0, 4), value=False), target), typical(source, mask, target))


def test_blocked_keys_change_nothing(model, sentences, close):
    source, mask, target = sentences
    other = torch.where(mask, source, torch.randint_like(source, 4, 19))
    assert not other.equal(source)
    close(model(other, mask, target), model(source, mask, target))


def test_unblocked_keys_change_the_result(typical, sentences):
    source, mask, target = sentences
    other = source.clone()
    other[0, 6] = 4 + (source[0, 6] - 3) % 15
    assert not torch.allclose(typical(other, mask, target)[0], typical(source, mask, target)[0])


def test_a_future_token_does_not_change_earlier_positions(typical, sentences, close):
    source, mask, target = sentences
    other = target.clone()
    other[:, 4:] = 4 + (target[:, 4:] - 3) % 19
    before, after = typical(source, mask, target), typical(source, mask, other)
    close(after[:, :4], before[:, :4])
    assert not torch.allclose(after[:, 4], before[:, 4])


def test_a_batch_of_n_equals_n_batches_of_one(model, sentences, close):
    source, mask, target = sentences
    whole = model(source, mask, target)
    for i, length in enumerate(mask.sum(dim=1)):
        alone = model(source[i : i + 1, :length], mask[i : i + 1, :length], target[i : i + 1])
        close(alone[0], whole[i])


def test_beam_one_is_the_stepwise_argmax(typical, sentences):
    source, mask, _ = sentences
    limit = 2 * source.shape[1] + 10
    memory = typical.encode(source, mask)
    state, tokens, chosen = typical.start(memory, beams=1), torch.full((3, 1), BOS), []
    for _ in range(limit):
        log_probs, state = typical.step(tokens, state, memory)
        log_probs[..., [PAD, UNK, BOS]] = -torch.inf
        tokens = log_probs.argmax(dim=-1)
        chosen.append(tokens)
    search = BeamSearch(beam_size=1)
    for i, (found,) in enumerate(search(typical, source, mask)):
        greedy = torch.cat(chosen, dim=1)[i].tolist()[: int(2 * mask[i].sum()) + 9]  # then EOS is all that is left
        assert found.ids == (greedy[: greedy.index(EOS)] if EOS in greedy else greedy)


def test_watching_changes_no_result_and_sees_distributions(model, sentences, close):
    source, mask, target = sentences
    seen = {}
    watched = model(source, mask, target, watch=lambda site, layer, weights, _: seen.update({(site, layer): weights}))
    close(watched, model(source, mask, target))
    assert ("cross", 0) in seen
    for (site, _), weights in seen.items():
        rows = weights if site == "decoder_self" else weights.masked_fill(mask[:, None, None, :], 0)
        assert site == "decoder_self" or rows.eq(0).all(), "weight on padding"
        sums = weights.sum(dim=-1)
        if site in own_past(model):
            assert sums[:, :, 0].eq(0).all(), "the first position has no past"
            sums = sums[:, :, 1:]
        if site == "cross" and any(isinstance(m, LocalP) and not m.renormalize for m in model.modules()):
            assert sums.gt(0).all()
            assert sums.lt(1).all(), "the Gaussian takes its share"
        else:
            close(sums, torch.ones_like(sums))


def test_the_sites_are_exactly_those_watched_and_described(typical, sentences):
    seen, attending = [], []
    attentions = [attention for layers in typical.sites.values() for attention in layers]
    for attention in attentions:
        attention.register_forward_pre_hook(lambda module, _: attending.append(module))
    typical(*sentences, watch=lambda site, *_: seen.append(site))
    assert (
        list(dict.fromkeys(seen)) == list(typical.sites) == [site for site in typical.queries if site in typical.sites]
    )
    assert set(attending) == set(attentions)


def own_past(model):
    """The sites of LSTMNs, whose queries attend to the positions before them."""
    if isinstance(model, Transformer):
        return []
    return [site for site in model.sites if site != "cross"]


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize(("name", "scorer"), [("luong", "general"), ("bahdanau", "dot"), ("transformer", "scaled_dot")])
def test_a_step_does_not_copy_the_memory_of_the_source(make_model, name, scorer, autocast, largest_made):
    model = make_model(name, scorer, num_heads=2).float()
    source = torch.randint(4, 19, (2, 150))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        memory = model.encode(source, source != 0)
        state = model.start(memory, beams=2)
        with largest_made() as largest:
            model.step(torch.ones(2, 2, dtype=torch.int64), state, memory)
    assert 0 < largest.numbers < 2 * 150 * 12


def test_every_parameter_gets_a_gradient(model, sentences):
    source, mask, target = sentences
    model(source, mask, target).square().sum().backward()
    idle = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 1e-12}
    # A key's bias adds the same number to all inner products of a query, which cancels in the softmax.
    assert {name for name in idle if not name.endswith("key.bias")} == not_asked(model)


def not_asked(model):
    """The projections that a scorer does not use: location reads no keys, none reads neither queries nor keys."""
    names = set()
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            parts = {NoScore: ("query", "key"), Location: ("key",)}.get(type(module.attention.scorer), ())
            names |= {f"{name}.{part}.weight" for part in parts}
            names |= {f"{name}.query.bias" for part in parts if part == "query"}
            if "query" in parts and name.endswith(".cross"):
                # The norm before cross attention is used only for queries.
                names |= {f"{name.removesuffix('cross')}around_cross.norm.{part}" for part in ("weight", "bias")}
        elif isinstance(module, LSTMN) and isinstance(module.attention.scorer, NoScore):
            names.add(f"{name}.query.weight")
    return names


def test_training_drops_units_and_evaluation_does_not(typical, sentences):
    source, mask, target = sentences
    assert typical(source, mask, target).equal(typical(source, mask, target))
    typical.train()
    assert not typical(source, mask, target).equal(typical(source, mask, target))


def test_maps_of_a_whole_sentence_equal_those_of_its_steps(model, sentences, close):
    source, mask, target = sentences
    whole, steps = {}, []
    model(source, mask, target, watch=lambda site, layer, weights, _: whole.update({(site, layer): weights}))
    memory = model.encode(source, mask)
    state = model.start(memory, beams=1)
    for tokens in target.split(1, dim=1):
        seen = {}
        watch = partial(lambda seen, site, layer, weights, _: seen.update({(site, layer): weights}), seen)
        _, state = model.step(tokens, state, memory, watch)
        steps.append(seen)
    for place, weights in whole.items():
        if place[0] == "cross":
            close(torch.cat([step[place] for step in steps], dim=2), weights)


def test_maps_of_a_prefix_are_the_first_rows(typical, sentences, close):
    source, mask, target = sentences
    whole, part = {}, {}
    typical(source, mask, target, watch=lambda site, layer, weights, _: whole.update({(site, layer): weights}))
    typical(source, mask, target[:, :3], watch=lambda site, layer, weights, _: part.update({(site, layer): weights}))
    assert whole.keys() == part.keys()
    for (site, layer), weights in whole.items():
        rows = weights if site == "encoder_self" else weights[:, :, :3]
        close(part[site, layer], rows[..., :3] if site == "decoder_self" else rows)


def test_a_view_contains_the_blocked_keys_and_the_gaussian(model, sentences, close):
    source, mask, target = sentences
    seen = []
    model(source, mask, target, watch=lambda site, layer, weights, visible: seen.append((site, weights, visible)))
    for site, weights, visible in seen:
        assert weights.masked_fill(visible.mask, 0).eq(0).all(), "weight on what the window blocks"
        with_keys = weights[:, :, 1:] if site in own_past(model) else weights
        assert with_keys.gt(0).any(dim=-1).all()
        local = any(isinstance(m, (LocalM, LocalP)) for m in model.modules())
        assert (visible.center is not None) == (local and site == "cross")
        if visible.log_prior is not None and not visible.renormalized:
            shares = (weights / visible.log_prior.exp()).sum(dim=-1)
            close(shares, torch.ones_like(shares))


def test_the_fused_and_the_explicit_path_give_the_same_translations(typical, sentences, monkeypatch):
    source, mask, _ = sentences
    found = []
    for fused in (True, False):
        monkeypatch.setattr(fused_attention, "prefers_fused", lambda *_, fused=fused: fused)
        found.append([found.ids for beam in BeamSearch(beam_size=3)(typical, source, mask) for found in beam])
    assert found[0] == found[1]
