from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from nmt.attention import Attention, MultiHeadAttention, lengths_to_mask, normalizers, scorers, windows
from nmt.errors import Mistake
from nmt.kernels import fused_attention

MakeScorer = Callable[..., scorers.Scorer]


def attention_of(make_scorer: MakeScorer, **sizes: float) -> Attention:
    return Attention(make_scorer, windows.Global, normalizers.Softmax, **sizes).double()


def test_equal_keys_give_the_mean_of_the_allowed_values(scorer_name: str, make_scorer: MakeScorer):
    """For every scorer that reads the keys; location, which does not, gets a query of zeros."""
    attention = attention_of(make_scorer, query_dim=3, key_dim=3)
    keys = torch.ones(2, 1, 10, 3, dtype=torch.float64)
    values = torch.arange(40, dtype=torch.float64).view(1, 1, 10, 4).expand(2, 1, 10, 4)
    mask = lengths_to_mask(torch.tensor([2, 6]), 10)[:, None, None, :]
    queries = torch.randn(2, 1, 1, 3, dtype=torch.float64) * (scorer_name != "location")
    context = attention.context(queries, attention.project_keys(keys), values, mask)
    expected = torch.tensor([[2.0, 3, 4, 5], [10, 11, 12, 13]], dtype=torch.float64)
    torch.testing.assert_close(context.view(2, 4), expected)


def test_worked_numbers_of_self_attention():
    words = torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=torch.float64)
    queries = words @ torch.tensor([[0.0, 1, 1], [2, 0, 2], [2, 1, 0]], dtype=torch.float64)
    keys = words @ torch.tensor([[0.0, 1, 2], [0, 2, 1], [2, 0, 1]], dtype=torch.float64)
    values = words @ torch.tensor([[0.0, 2, 2], [0, 0, 0], [0, 1, 0]], dtype=torch.float64)
    everything = torch.ones(1, 1, 1, 4, dtype=torch.bool)
    dot, scaled = (attention_of(scorer, query_dim=3, key_dim=3) for scorer in (scorers.Dot, scorers.ScaledDot))
    q, k, v = (x.view(1, 1, 4, 3) for x in (queries, keys, values))
    assert dot.scorer.score(q, k)[0, 0, 0].tolist() == [3, 3, 6, 1]
    first = scaled.context(q, k, v, everything)[0, 0, 0]
    torch.testing.assert_close(first, torch.tensor([0, 1.70942138, 1.66986613], dtype=torch.float64), rtol=0, atol=1e-8)


def test_worked_numbers_of_the_second_set_of_matrices():
    """What numpy's `randint(3, size=(3, 3))` draws after `seed(42)`; docs/papers/vaswani2017.py has both sets."""
    words = torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=torch.float64)
    q = words @ torch.tensor([[2.0, 0, 2], [2, 0, 0], [2, 1, 2]], dtype=torch.float64)
    k = words @ torch.tensor([[2.0, 2, 2], [0, 2, 1], [0, 1, 1]], dtype=torch.float64)
    v = words @ torch.tensor([[1.0, 1, 0], [0, 1, 1], [0, 0, 0]], dtype=torch.float64)
    everything = torch.ones(1, 1, 1, 4, dtype=torch.bool)
    attention = attention_of(scorers.ScaledDot, query_dim=3, key_dim=3)
    context = attention.context(q.view(1, 1, 4, 3), k.view(1, 1, 4, 3), v.view(1, 1, 4, 3), everything)[0, 0]
    expected = [
        [0.98522025, 1.74174051, 0.75652026],
        [0.90965265, 1.40965265, 0.5],
        [0.99851226, 1.75849334, 0.75998108],
        [0.99560386, 1.90407309, 0.90846923],
    ]
    torch.testing.assert_close(context, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-8)


def test_the_weights_produce_the_context_and_are_what_a_watch_receives(make_scorer: MakeScorer):
    attention = attention_of(make_scorer, query_dim=5, key_dim=5, num_heads=3)
    queries, keys = (torch.randn(2, 3, n, 5, dtype=torch.float64) for n in (4, 7))
    mask = lengths_to_mask(torch.tensor([7, 2]), 7)[:, None, None, :]
    projected = attention.project_keys(keys)
    context, weights = attention.attend(queries, projected, keys, mask)
    assert context.equal(attention(queries, projected, keys, mask))
    seen: list[Tensor] = []
    assert context.equal(attention(queries, projected, keys, mask, watch=lambda weights, _: seen.append(weights)))
    assert seen[0].equal(weights)
    torch.testing.assert_close(context, weights @ keys)


def test_the_gpu_path_equals_the_formula_in_value_and_gradient(
    make_scorer: MakeScorer, monkeypatch: pytest.MonkeyPatch
):
    attention = attention_of(make_scorer, query_dim=5, key_dim=5, num_heads=3)
    inputs = [torch.randn(2, 3, n, 5, dtype=torch.float64, requires_grad=True) for n in (4, 7, 7)]
    mask = lengths_to_mask(torch.tensor([7, 0]), 7)[:, None, None, :]  # the second sentence has nothing to attend to
    results, calls, fused = [], [], fused_attention.inner_product_context
    monkeypatch.setattr(fused_attention, "inner_product_context", lambda *a: calls.append(1) or fused(*a))
    for prefers in (False, True):
        monkeypatch.setattr(fused_attention, "prefers_fused", lambda *_, answer=prefers: answer)
        context = attention.context(inputs[0], attention.project_keys(inputs[1]), inputs[2], mask)
        results.append([context, *torch.autograd.grad(context.square().sum(), [*inputs, *attention.parameters()])])
    assert calls == [1] * attention.scorer.inner_product, "only an inner product is fused"
    assert results[1][0][1].eq(0).all()
    for explicit, fused_result in zip(*results, strict=True):
        torch.testing.assert_close(fused_result, explicit)


WINDOWS = {
    "global": windows.Global,
    "local_m": partial(windows.LocalM, half_width=1),
    "local_p": partial(windows.LocalP, half_width=2, renormalize=False),
}
NORMALIZERS = {"softmax": normalizers.Softmax, "sparsemax": normalizers.Sparsemax}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("scorer", [scorers.ScaledDot, scorers.Additive])
def test_the_gpu_path_keeps_the_window_and_the_normalizer(
    scorer: MakeScorer, window: str, normalizer: str, monkeypatch: pytest.MonkeyPatch
):
    """Only an inner product with the softmax and a window without a prior is fused."""
    torch.manual_seed(1)
    site = Attention(scorer, WINDOWS[window], NORMALIZERS[normalizer], query_dim=5, key_dim=5, num_heads=3).double()
    queries, keys = (torch.randn(2, 3, n, 5, dtype=torch.float64) for n in (4, 7))
    mask = lengths_to_mask(torch.tensor([7, 4]), 7)[:, None, None, :]
    query_states = windows.QueryStates(torch.randn(2, 4, 15, dtype=torch.float64), torch.arange(4).unsqueeze(0))
    calls, fused = [], fused_attention.inner_product_context
    monkeypatch.setattr(fused_attention, "inner_product_context", lambda *a: calls.append(1) or fused(*a))
    monkeypatch.setattr(fused_attention, "prefers_fused", lambda *_: True)
    projected = site.project_keys(keys)
    found = site.context(queries, projected, keys, mask, query_states)
    torch.testing.assert_close(found, site.attend(queries, projected, keys, mask, query_states)[0])
    assert bool(calls) == (scorer is scorers.ScaledDot and normalizer == "softmax" and window != "local_p")


class ArgMax(normalizers.Normalizer):
    """Puts all weight on the allowed key with the highest score, which no fused kernel computes."""

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        best = scores.masked_fill(~mask, -torch.inf).argmax(dim=-1)
        return nn.functional.one_hot(best, scores.shape[-1]).to(scores.dtype) * mask


def test_a_normalizer_without_a_fused_kernel_takes_the_explicit_path(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fused_attention, "prefers_fused", lambda *_: True)
    attention = Attention(scorers.Dot, windows.Global, ArgMax, query_dim=3, key_dim=3)
    queries, keys = torch.randn(2, 1, 4, 3), torch.randn(2, 1, 5, 3)
    mask = lengths_to_mask(torch.tensor([5, 2]), 5)[:, None, None, :]
    context = attention.context(queries, keys, keys, mask)
    torch.testing.assert_close(context, attention.attend(queries, keys, keys, mask)[0])


@pytest.mark.parametrize(
    ("dtype", "dropout", "training", "gradients", "keys", "expected"),
    [
        (torch.float32, 0.1, False, True, 5, True),
        (torch.float32, 0.0, True, True, 5, True),
        (torch.float32, 0.1, True, True, 5, False),
        (torch.bfloat16, 0.1, False, True, 5, False),
        (torch.float64, 0.0, False, True, 5, False),
        (torch.float32, 0.0, False, False, 127, False),
        (torch.float32, 0.0, False, False, 128, True),
        (torch.float32, 0.1, True, False, 128, False),
        (torch.bfloat16, 0.0, False, False, 128, False),
    ],
)
def test_the_cpu_uses_the_fused_kernel_where_it_is_faster(
    dtype: torch.dtype,
    dropout: float,
    training: bool,
    gradients: bool,
    keys: int,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
):
    calls, fused = [], fused_attention.inner_product_context
    monkeypatch.setattr(fused_attention, "inner_product_context", lambda *a: calls.append(1) or fused(*a))
    site = Attention(scorers.ScaledDot, windows.Global, normalizers.Softmax, query_dim=3, key_dim=3, dropout=dropout)
    queries, memory = (torch.randn(2, 1, n, 3, dtype=dtype) for n in (5, keys))
    with torch.set_grad_enabled(gradients):
        site.train(training).context(queries, memory, memory, torch.ones(5, keys, dtype=torch.bool))
    assert bool(calls) == expected


def test_multihead_equals_torchs():
    site = partial(Attention, scorers.ScaledDot, windows.Global, normalizers.Softmax)
    ours = MultiHeadAttention(site, query_dim=6, key_dim=6, num_heads=3, dropout=0.0).double()
    theirs = nn.MultiheadAttention(6, 3, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    queries, keys = torch.randn(2, 4, 6).double(), torch.randn(2, 5, 6).double()
    mask, seen = lengths_to_mask(torch.tensor([5, 3]), 5), []
    expected, weights = theirs(queries, keys, keys, key_padding_mask=~mask, average_attn_weights=False)
    torch.testing.assert_close(
        ours(queries, ours.project(keys), mask[:, None, None, :], watch=lambda weights, _: seen.append(weights)),
        expected,
    )
    torch.testing.assert_close(seen[0], weights)


def test_heads_that_do_not_divide_the_width_are_refused():
    site = partial(Attention, scorers.Dot, windows.Global, normalizers.Softmax)
    with pytest.raises(Mistake, match=r"model.num_heads=5 does not divide the query width 12: choose a divisor"):
        MultiHeadAttention(site, query_dim=12, key_dim=12, num_heads=5, dropout=0.0)
    with pytest.raises(Mistake, match=r"model.num_heads is -1; it must be a whole number of at least 1"):
        MultiHeadAttention(site, query_dim=12, key_dim=12, num_heads=-1, dropout=0.0)
