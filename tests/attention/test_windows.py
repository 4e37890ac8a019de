"""Luong's local attention against its equations."""

import math

import pytest
import torch
from torch import Tensor, nn

from nmt.attention import Attention, lengths_to_mask, normalizers, scorers, windows
from nmt.errors import Mistake

LENGTHS = (11, 3)
STATE, HEADS, QUERIES, KEYS = 5, 2, 7, 11


@pytest.fixture
def mask() -> Tensor:
    """Two sentences of 11 and 3 pieces, padded."""
    return lengths_to_mask(torch.tensor(LENGTHS), KEYS)[:, None, None, :]


@pytest.fixture
def query_states() -> windows.QueryStates:
    torch.manual_seed(1)
    return windows.QueryStates(torch.randn(2, QUERIES, STATE).double(), torch.arange(QUERIES).unsqueeze(0) * 3)


def local_p(half_width: int = 2, renormalize: bool = False) -> windows.LocalP:
    torch.manual_seed(2)
    return windows.LocalP(STATE, HEADS, half_width, renormalize).double()


def test_local_m_sees_the_keys_around_the_target_position(mask: Tensor, query_states: windows.QueryStates) -> None:
    visible = windows.LocalM(STATE, HEADS, half_width=2)(mask, query_states)
    assert visible.log_prior is None
    for b, length in enumerate(LENGTHS):
        for i, t in enumerate(query_states.positions[0].tolist()):
            center = min(t, length - 1)
            expected = [abs(s - center) <= 2 and s < length for s in range(KEYS)]
            assert visible.mask[b, 0, i].tolist() == expected


def test_a_local_m_window_is_never_empty(mask: Tensor) -> None:
    """Even if the target is longer than source + D."""
    far = windows.QueryStates(torch.zeros(2, 40, STATE), torch.arange(40).unsqueeze(0))
    for half_width in (0, 1, 10):
        assert windows.LocalM(STATE, HEADS, half_width)(mask, far).mask.any(dim=-1).all()


@torch.no_grad()
def test_local_p_is_equations_9_and_10(mask: Tensor, query_states: windows.QueryStates) -> None:
    """p_t = S sigmoid(v_p . tanh(W_p h_t)), g(s) = exp(-(s - p_t)^2 / (2 sigma^2)), sigma = D / 2, by plain loops."""
    window = local_p(half_width=2)
    visible = window(mask, query_states)
    for b, length in enumerate(LENGTHS):
        for h in range(HEADS):
            for i in range(QUERIES):
                place = window.place.weight[h] @ torch.tanh(window.hidden.weight @ query_states.states[b, i])
                p = length / (1 + math.exp(-float(place)))
                for s in range(KEYS):
                    assert bool(visible.mask[b, h, i, s]) == (abs(s - p) <= 2 and s < length)
                    assert math.exp(visible.log_prior[b, h, i, s]) == pytest.approx(math.exp(-((s - p) ** 2) / 2))


def test_p_t_stays_within_the_length_of_its_sentence(mask: Tensor, query_states: windows.QueryStates) -> None:
    window = local_p()
    window.place.weight.data.mul_(100)
    centers = window.center(mask, query_states)
    for center, length in zip(centers, LENGTHS, strict=True):
        assert center.ge(0).all()
        assert center.le(length).all()
        assert center.max() > length - 1, "the test reaches the end"
    wider = torch.nn.functional.pad(mask, (0, 6), value=False)
    assert window.center(wider, query_states).equal(centers)


def test_p_t_has_the_digits_of_float32_in_bfloat16() -> None:
    """Between 128 and 256, neighboring numbers of bfloat16 are a whole position apart."""
    window, length = local_p().bfloat16(), 200
    states = torch.randn(1, QUERIES, STATE).bfloat16()
    place = window.place(torch.tanh(window.hidden(states))).double()
    center = window.center(
        torch.ones(1, 1, 1, length, dtype=torch.bool), windows.QueryStates(states, torch.zeros(1, 1))
    )
    # float32 rounds the exponential, its sum with 1, the quotient and the product.
    exact = (length * place.sigmoid()).transpose(1, 2).unsqueeze(-1)
    torch.testing.assert_close(center.double(), exact, rtol=4 * torch.finfo(torch.float32).eps, atol=0)


@pytest.mark.parametrize("half_width", [1, 2, 10])
def test_a_local_p_window_is_never_empty(mask: Tensor, half_width: int) -> None:
    window, extreme = local_p(half_width), torch.tensor([-30.0, -1, 0, 1, 30]).double()
    query_states = windows.QueryStates(
        extreme.view(1, 5, 1).expand(2, 5, STATE) * 9, torch.zeros(1, 5, dtype=torch.long)
    )
    assert window(mask, query_states).mask.any(dim=-1).all()


def site(window: windows.Window) -> Attention:
    return Attention(
        scorers.Dot, lambda **_: window, normalizers.Softmax, query_dim=3, key_dim=3, num_heads=HEADS
    ).double()


@pytest.fixture
def vectors() -> tuple[Tensor, Tensor]:
    torch.manual_seed(3)
    return torch.randn(2, HEADS, QUERIES, 3).double(), torch.randn(2, HEADS, KEYS, 3).double()


def test_the_gaussian_multiplies_the_weights_after_the_softmax_without_renormalization(
    mask: Tensor, query_states: windows.QueryStates, vectors: tuple[Tensor, Tensor]
) -> None:
    queries, keys = vectors
    window = local_p()
    visible = window(mask, query_states)
    _, weights = site(window).attend(queries, keys, keys, mask, query_states)
    align = (queries @ keys.transpose(-2, -1)).masked_fill(~visible.mask, -torch.inf).softmax(dim=-1)
    torch.testing.assert_close(weights, align * visible.log_prior.exp())
    assert weights.masked_fill(visible.mask, 0).eq(0).all(), "outside of the window a weight is exactly 0"
    share = (align * visible.log_prior.exp()).sum(dim=-1)
    torch.testing.assert_close(weights.sum(dim=-1), share)
    assert share.lt(1).all()


def test_renormalize_adds_the_exponent_of_the_gaussian_to_the_scores(
    mask: Tensor, query_states: windows.QueryStates, vectors: tuple[Tensor, Tensor]
) -> None:
    queries, keys = vectors
    window = local_p(renormalize=True)
    visible = window(mask, query_states)
    _, weights = site(window).attend(queries, keys, keys, mask, query_states)
    scores = queries @ keys.transpose(-2, -1) + visible.log_prior
    torch.testing.assert_close(weights, scores.masked_fill(~visible.mask, -torch.inf).softmax(dim=-1))


def test_the_gradient_reaches_the_weights_that_predict_the_position(
    mask: Tensor, query_states: windows.QueryStates, vectors: tuple[Tensor, Tensor]
) -> None:
    queries, keys = vectors
    window = local_p()
    site(window).context(queries, keys, keys, mask, query_states).square().sum().backward()
    for parameter in (window.hidden.weight, window.place.weight):
        assert parameter.grad.abs().sum() > 1e-6


@pytest.mark.parametrize("window", [windows.Global(STATE, HEADS), windows.LocalM(STATE, HEADS, 2), local_p()])
def test_a_widened_view_blocks_the_additional_keys(
    window: nn.Module, mask: Tensor, query_states: windows.QueryStates
) -> None:
    visible = window(mask, query_states)
    wider = visible.widened(KEYS + 3)
    assert wider.mask[..., :KEYS].equal(visible.mask)
    assert not wider.mask[..., KEYS:].any()
    if visible.log_prior is not None:
        assert wider.log_prior.shape[-1] == KEYS + 3
        assert wider.log_prior[..., :KEYS].equal(visible.log_prior)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: windows.LocalM(STATE, HEADS, -1), "window.half_width is -1; it must be at least 0"),
        (lambda: windows.LocalM(STATE, HEADS, 2**62), "it must be at most 1,048,576"),
        (lambda: windows.LocalP(STATE, HEADS, 0, False), "window.half_width is 0; it must be at least 1"),
    ],
)
def test_a_width_out_of_range_is_refused(make: object, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        make()


@pytest.mark.parametrize("window", [windows.LocalM(STATE, HEADS, 2), local_p()])
def test_a_local_window_needs_the_queries(window: nn.Module, mask: Tensor) -> None:
    with pytest.raises(Mistake, match="needs the states and positions of the queries, which this site"):
        window(mask, None)
