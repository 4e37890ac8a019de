"""LSTMs under bfloat16 autocast run on every CPU, even on one that oneDNN's bfloat16 LSTM does not support."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from nmt.kernels import lstm

EPS = torch.finfo(torch.bfloat16).eps


@pytest.mark.parametrize("supported", [True, False])
@pytest.mark.parametrize("lengths", [(7, 7), (7, 5)])
def test_equal_and_unequal_lengths_run(lengths: tuple[int, int], supported: bool, monkeypatch: pytest.MonkeyPatch):
    """They are also close to float32, with and without oneDNN."""
    if not supported:
        monkeypatch.setattr(lstm, "_has_bfloat16_lstm", lambda: False)
    torch.manual_seed(1)
    network, x = nn.LSTM(5, 6, batch_first=True, bidirectional=True), torch.randn(2, 7, 5)
    packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True)
    exact, _ = network(packed)
    with torch.autocast("cpu", torch.bfloat16), lstm.lstm_supported(network):
        found, _ = network(packed)
    # Per step: inputs, weights, two products and the state are rounded; a gate's sum of 11 terms is below 11.
    assert (found.data - exact.data).abs().max() < 7 * 5 * EPS / 2 * 11
    assert (found.data - exact.data).abs().max() > 0
    found.data.sum().backward()
    assert network.weight_hh_l0.grad.isfinite().all()


def test_onednn_is_disabled_only_for_a_bfloat16_lstm_that_it_cannot_compute(monkeypatch: pytest.MonkeyPatch):
    enabled = torch.backends.mkldnn.enabled
    monkeypatch.setattr(lstm, "_has_bfloat16_lstm", lambda: False)
    for network, dtype, expected in [
        (nn.LSTM(2, 3), torch.bfloat16, False),
        (nn.GRU(2, 3), torch.bfloat16, enabled),
        (nn.LSTM(2, 3), torch.float16, enabled),
    ]:
        with torch.autocast("cpu", dtype), lstm.lstm_supported(network):
            assert torch.backends.mkldnn.enabled is expected
        assert torch.backends.mkldnn.enabled is enabled
    with lstm.lstm_supported(nn.LSTM(2, 3)):
        assert torch.backends.mkldnn.enabled is enabled


def test_detecting_the_support_draws_no_random_numbers():
    before = torch.get_rng_state()
    lstm._has_bfloat16_lstm.cache_clear()
    lstm._has_bfloat16_lstm()
    assert torch.get_rng_state().equal(before)
