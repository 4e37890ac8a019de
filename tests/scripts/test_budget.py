"""scripts/bench/budget.py: what it counts; nothing here depends on the clock."""

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from scripts.bench.budget import KINDS, PRODUCTS, MeasuredOperations, multiplications


def test_every_operation_is_of_one_kind() -> None:
    names = [name for kind in KINDS.values() for name in kind]
    assert len(names) == len(set(names))


def test_the_multiplications_of_products_are_counted() -> None:
    x, weight, bias = torch.randn(5, 7), torch.randn(11, 7), torch.randn(11)
    with torch.inference_mode(), MeasuredOperations() as operations:
        functional.linear(x, weight, bias)  # 5 x 7 x 11
        x @ x.T  # 5 x 7 x 5
        x + 1
    assert operations.multiplications == 5 * 7 * 11 + 5 * 7 * 5
    with MeasuredOperations() as operations:
        functional.linear(x, weight.requires_grad_(), bias).sum().backward()
    assert operations.multiplications == 2 * 5 * 7 * 11, operations.calls  # forward, and the gradient of the weight


def test_products_under_autocast_are_counted_apart_from_their_casts() -> None:
    x, weight = torch.randn(5, 7), torch.randn(11, 7)
    with torch.autocast("cpu", torch.bfloat16), torch.inference_mode(), MeasuredOperations() as operations:
        functional.linear(x, weight)
    assert operations.multiplications == 5 * 7 * 11
    assert {name for name in operations.calls if name in KINDS["casts"]}, operations.calls


def test_the_multiplications_of_an_lstm_are_counted() -> None:
    lstm, x = nn.LSTM(7, 11), torch.randn(3, 5, 7)
    of_lstm = 3 * 5 * 4 * 11 * (7 + 11)
    for inputs in (x, pack_padded_sequence(x, torch.tensor([3] * 5))):
        with torch.inference_mode(), MeasuredOperations() as operations:
            lstm(inputs)
        assert operations.multiplications == of_lstm, operations.calls
    weights = lstm.weight_ih_l0, lstm.weight_hh_l0
    assert multiplications("mkldnn_rnn_layer_backward", (x, *weights), None) == 2 * of_lstm
    with MeasuredOperations() as operations:
        lstm(x)[0].sum().backward()
    assert {name for name in operations.calls if "rnn_layer" in name} <= {*KINDS[PRODUCTS]}


def test_fused_attention_is_of_its_own_kind() -> None:
    query = torch.randn(1, 2, 3, 8, requires_grad=True)
    with MeasuredOperations() as operations:
        functional.scaled_dot_product_attention(query, query, query).sum().backward()
    assert {name for name in operations.calls if "attention" in name} == {*KINDS["fused attention"]}
