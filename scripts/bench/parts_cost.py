"""The cost of each optimized part compared with a plain implementation of the same computation."""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from nmt.attention import masked_softmax
from nmt.attention.multihead import KeysValues
from nmt.decoding.state import move_rows, select_rows
from nmt.errors import Mistake
from nmt.kernels.dropout import Dropout
from nmt.kernels.fused_attention import inner_product_context
from nmt.kernels.headwise_product import headwise_product
from nmt.kernels.key_value_cache import NextLength, append
from nmt.kernels.packed_weights import PackedLinear, PackedLSTMCell
from nmt.kernels.vocabulary_loss import summed_agreement, summed_nll
from nmt.kernels.wide_top_k import wide_top_k
from nmt.models.transformer_layers import FeedForward
from nmt.runs.precision import with_precision
from nmt.text import EOS, PAD

_DROPOUT, _LABEL_SMOOTHING = 0.1, 0.1


class Part(NamedTuple):
    """Two functions without arguments that compute the same, apart from dropout's random masks and int8's rounding."""

    plain: Callable[[], Any]
    ours: Callable[[], Any]
    description: str


def dropout(sentences: int, length: int, width: int) -> Part:
    """Dropout, forward and backward."""
    x = torch.randn(sentences, length, width, requires_grad=True)
    plain, ours = nn.Dropout(_DROPOUT), Dropout(_DROPOUT)
    description = f"dropout of {sentences} x {length} x {width}, forward and backward"
    return Part(*(partial(_forward_and_backward, partial(way, x), [x]) for way in (plain, ours)), description)


def feed_forward(sentences: int, length: int, width: int, autocast: bool = False) -> Part:
    """A layer's feed-forward net: in-place ReLU followed by dropout, compared with the layer itself."""
    torch.manual_seed(1)
    net, x = FeedForward(width, 4 * width, _DROPOUT), torch.randn(sentences, length, width, requires_grad=True)
    in_bfloat16 = torch.autocast("cpu", torch.bfloat16, enabled=autocast, cache_enabled=False)

    def plain(inputs: Tensor) -> Tensor:
        result: Tensor = net.outer(net.dropout(functional.relu(net.inner(inputs), inplace=True)))
        return result

    description = f"feed-forward net, {sentences} x {length} x {width}, forward and backward"
    description += ", bfloat16" if autocast else ""
    wanted = [x, *net.parameters()]
    return Part(
        *(partial(_forward_and_backward, partial(in_bfloat16(way), x), wanted) for way in (plain, net)), description
    )


def softmax(sentences: int, length: int, dtype: torch.dtype) -> Part:
    """Masked softmax over four heads: step by step, compared with the fused function."""
    torch.manual_seed(1)
    scores = torch.randn(sentences, 4, length, length).to(dtype).requires_grad_()
    mask = torch.rand(sentences, 1, 1, length) < 0.9

    def plain(inputs: Tensor) -> Tensor:
        return inputs.masked_fill(~mask, torch.finfo(dtype).min).softmax(dim=-1) * mask

    ways = (
        partial(_forward_and_backward, partial(way, scores), [scores])
        for way in (plain, partial(masked_softmax, mask=mask))
    )
    return Part(*ways, f"softmax of {sentences} x 4 x {length} x {length} scores in {dtype}, forward and backward")


def projection(sentences: int, positions: int, width: int, autocast: bool = False) -> Part:
    """The projection of queries or keys by the matrix of a scorer with one head."""
    torch.manual_seed(1)
    vectors = torch.randn(sentences, 1, positions, width, requires_grad=True)
    matrices = torch.randn(1, width, width, requires_grad=True)
    in_bfloat16 = torch.autocast("cpu", torch.bfloat16, enabled=autocast, cache_enabled=False)
    ways = (partial(in_bfloat16(way), vectors, matrices) for way in (torch.matmul, headwise_product))
    description = f"{sentences} x {positions} vectors of {width} times a scorer's matrix, forward and backward"
    description += ", bfloat16" if autocast else ""
    return Part(*(partial(_forward_and_backward, way, [vectors, matrices]) for way in ways), description)


def loss(sentences: int, length: int, width: int, vocab: int, autocast: bool = False) -> Part:
    """The output layer and cross entropy: all positions at once, compared with the blockwise loss."""
    torch.manual_seed(1)
    targets = _targets(sentences, length, vocab)
    layer, outputs = nn.Linear(width, vocab, bias=False), torch.randn(sentences, length, width, requires_grad=True)
    in_bfloat16 = torch.autocast("cpu", torch.bfloat16, enabled=autocast, cache_enabled=False)
    ways = (partial(in_bfloat16(way), outputs, layer, targets, _LABEL_SMOOTHING) for way in (whole_loss, summed_nll))
    description = f"output layer and loss of {sentences} x {length} tokens, {vocab:,} pieces, forward and backward"
    description += ", bfloat16" if autocast else ""
    return Part(*(partial(_forward_and_backward, way, [outputs, layer.weight]) for way in ways), description)


def whole_loss(outputs: Tensor, layer: nn.Linear, targets: Tensor, label_smoothing: float) -> Tensor:
    """torch's cross entropy over all positions, ignoring padding."""
    return functional.cross_entropy(
        layer(outputs).flatten(0, 1).float(),
        targets.flatten(),
        ignore_index=PAD,
        reduction="sum",
        label_smoothing=label_smoothing,
    )


def agreement(sentences: int, length: int, width: int, vocab: int, autocast: bool = False) -> Part:
    """R-Drop's loss over two passes: all positions at once, compared with the blockwise loss."""
    torch.manual_seed(1)
    targets = _targets(sentences, length, vocab)
    layer, first = nn.Linear(width, vocab, bias=False), torch.randn(sentences, length, width, requires_grad=True)
    second = (first + 0.3 * torch.randn_like(first)).detach().requires_grad_()
    in_bfloat16 = torch.autocast("cpu", torch.bfloat16, enabled=autocast, cache_enabled=False)
    weights = {"nll": (0.5, 0.5), "divergence": (1.25, 1.25)}
    ways = (
        partial(in_bfloat16(way), (first, second), layer, targets, _LABEL_SMOOTHING, **weights)
        for way in (whole_agreement, summed_agreement)
    )
    description = f"output layer and R-Drop loss of two passes, {sentences} x {length} tokens, {vocab:,} pieces"
    description += ", forward and backward"
    description += ", bfloat16" if autocast else ""
    return Part(*(partial(_forward_and_backward, way, [first, second, layer.weight]) for way in ways), description)


def whole_agreement(
    passes: tuple[Tensor, Tensor],
    layer: nn.Linear,
    targets: Tensor,
    label_smoothing: float,
    nll: tuple[float, float],
    divergence: tuple[float, float],
) -> Tensor:
    """The weighted sum of both losses and both divergences, over all positions at once."""
    tokens = targets != PAD
    p, q = (layer(outputs[tokens]).float().log_softmax(dim=-1) for outputs in passes)
    total = sum(
        weight * functional.cross_entropy(logits, targets[tokens], reduction="sum", label_smoothing=label_smoothing)
        for weight, logits in zip(nll, (p, q), strict=True)
    )
    for weight, one, other in zip(divergence, (p, q), (q, p), strict=True):
        total = total + weight * functional.kl_div(other, one, log_target=True, reduction="sum")
    return total


def int8(rows: int, width: int, vocab: int) -> Part:
    """A linear layer with 8-bit weights."""
    torch.manual_seed(1)
    layer = nn.Sequential(nn.Linear(width, vocab))
    rounded = with_precision(layer, "int8", torch.device("cpu"))
    x = torch.randn(rows, width)
    ways = (partial(torch.inference_mode()(way), x) for way in (layer, rounded))
    return Part(*ways, f"linear layer in int8, {rows} x {width} to {vocab:,}")


def packed(rows: int, width: int, outputs: int, dtype: torch.dtype) -> Part:
    """A linear layer whose weight is packed once."""
    torch.manual_seed(1)
    layer, x = nn.Linear(width, outputs).to(dtype), torch.randn(rows, width, dtype=dtype)
    ways = (partial(torch.inference_mode()(way), x) for way in (layer, PackedLinear(layer)))
    number = str(dtype).removeprefix("torch.")
    return Part(*ways, f"linear layer with packed weights, {rows} x {width} to {outputs:,}, {number}")


def packed_cell(rows: int, inputs: int, width: int) -> Part:
    """A step of an LSTM cell whose weights are packed once."""
    torch.manual_seed(1)
    cell, x, states = nn.LSTMCell(inputs, width), torch.randn(rows, inputs), torch.randn(2, rows, width).unbind()
    ways = (partial(torch.inference_mode()(way), x, states) for way in (cell, PackedLSTMCell(cell)))
    return Part(*ways, f"LSTM cell with packed weights, {rows} x {inputs} to {width:,}, float32")


def rows(number: int, length: int, width: int, layers: int) -> Part:
    """Reordering a Transformer's state after a search step in which one row in five changes its parent."""
    torch.manual_seed(1)
    kept = [KeysValues(*(torch.randn(number, 4, length, width // 4) for _ in range(2))) for _ in range(layers)]
    chosen = torch.where(torch.rand(number) < 0.2, torch.randint(number, (number,)), torch.arange(number))
    state = tuple(kept)
    description = f"{number} rows of {layers} layers' keys and values, {length} positions of {width}; one in five moves"
    return Part(partial(select_rows, state, chosen), partial(move_rows, state, chosen), description)


def top_k(sentences: int, scores: int, k: int) -> Part:
    """The best continuations of the hypotheses of each sentence."""
    torch.manual_seed(1)
    x = torch.randn(sentences, scores)
    description = f"the {k} largest of {scores:,} scores, for {sentences} sentences"
    return Part(partial(torch.topk, x, k), partial(wide_top_k, x, k), description)


def cache(number: int, length: int, width: int, dtype: torch.dtype) -> Part:
    """Writing the keys of the newest position to a cache in which all rows are equally long."""
    kept = torch.zeros(number, 4, length, width // 4, dtype=dtype)
    new, position = torch.randn(number, 4, 1, width // 4).to(dtype), torch.full((number,), length - 1)
    index = position.view(-1, 1, 1, 1).expand_as(new)
    ways = partial(kept.clone().scatter_, 2, index, new), partial(append, kept, new, position, NextLength(length, True))
    name = str(dtype).removeprefix("torch.")
    return Part(*ways, f"{number} rows of a cache of {length} positions of {width} get one more, {name}")


def search_attention(sentences: int, queries: int, keys: int) -> Part:
    """Inner-product attention over four heads without gradients; `plain` is torch's fused kernel."""
    torch.manual_seed(1)
    q, k, v = (torch.randn(sentences, 4, n, 64) for n in (queries, keys, keys))
    mask = torch.arange(keys) < torch.randint(keys // 2, keys + 1, (sentences, 1, 1, 1))

    def formula() -> Tensor:
        return masked_softmax(q @ k.transpose(-2, -1), mask) @ v

    fused = partial(inner_product_context, q, k, v, mask, 0.0)
    description = f"the formula instead of torch's fused kernel, {sentences} x 4 x {queries} queries, {keys} keys"
    return Part(*(torch.inference_mode()(way) for way in (fused, formula)), description)


def parts() -> list[Part]:
    """All parts, at the sizes of a Transformer of width 256, a recurrent model of width 512 and a search.

    The vocabulary has 8,000 pieces. Batches have about 4,096 tokens, half as many where there are two passes.
    """
    return [
        dropout(100, 40, 1024),
        feed_forward(100, 40, 256),
        feed_forward(100, 40, 256, True),
        softmax(140, 29, torch.float32),
        softmax(140, 29, torch.bfloat16),
        softmax(85, 48, torch.bfloat16),
        projection(100, 1, 512),
        projection(100, 1, 512, True),
        projection(100, 40, 512),
        loss(110, 40, 256, 8000),
        loss(110, 40, 256, 8000, True),
        agreement(50, 40, 256, 8000),
        agreement(50, 40, 256, 8000, True),
        int8(320, 256, 8000),
        packed(1, 256, 256, torch.float32),
        packed(5, 256, 256, torch.float32),
        packed(400, 256, 256, torch.float32),
        packed(5, 256, 256, torch.bfloat16),
        packed(400, 256, 256, torch.bfloat16),
        packed(1, 256, 1024, torch.float32),
        packed(1, 256, 8000, torch.float32),
        packed(5, 256, 1024, torch.float32),
        packed(5, 256, 8000, torch.float32),
        packed(320, 256, 8000, torch.float32),
        packed(5, 256, 8000, torch.bfloat16),
        packed(320, 256, 8000, torch.bfloat16),
        packed_cell(1, 768, 512),
        packed_cell(5, 768, 512),
        packed_cell(320, 768, 512),
        rows(320, 40, 256, 3),
        top_k(1, 5 * 8000, 10),
        top_k(80, 5 * 8000, 10),
        cache(400, 32, 256, torch.float32),
        cache(400, 32, 256, torch.bfloat16),
        search_attention(1, 5, 30),
        search_attention(80, 5, 30),
        search_attention(400, 1, 20),
        search_attention(16, 5, 64),
        search_attention(16, 5, 128),
        search_attention(16, 5, 256),
        search_attention(80, 30, 30),
        search_attention(16, 100, 100),
        search_attention(16, 200, 200),
    ]


def _targets(sentences: int, length: int, vocab: int) -> Tensor:
    """Random pieces; about a tenth is padding."""
    targets = torch.randint(EOS + 1, vocab, (sentences, length))
    targets[torch.arange(length) >= torch.randint(length * 4 // 5, length + 1, (sentences, 1))] = PAD
    return targets


def _forward_and_backward(compute: Callable[[], Tensor], wanted: list[Tensor]) -> None:
    torch.autograd.grad(compute().sum(), wanted)


def measure(part: Part, rounds: int) -> dict[str, Any]:
    """Times both ways in alternating rounds, after one warm-up round."""
    seconds: dict[str, list[float]] = {"plain": [], "ours": []}
    for _ in range(rounds + 1):
        for name, durations in seconds.items():
            start = time.perf_counter()
            getattr(part, name)()
            durations.append(time.perf_counter() - start)
    return {
        "description": part.description,
        **{name: [round(value, 8) for value in durations[1:]] for name, durations in seconds.items()},
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark parts`."""
    parser.add_argument("--rounds", type=int, default=11, help="measured rounds (default: %(default)s)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures all parts."""
    if options.rounds < 1:
        raise Mistake(f"--rounds {options.rounds} must be at least 1.")
    return {"parts": [measure(part, options.rounds) for part in parts()], "threads": torch.get_num_threads()}


def table(record: dict[str, Any]) -> str:
    """The measurements as a Markdown table. The ratio is the median over rounds."""
    lines = ["| part | plain, median | ours, median | plain / ours |", "|---|---|---|---|"]
    for part in record["parts"]:
        plain, ours = (1e3 * statistics.median(part[name]) for name in ("plain", "ours"))
        ratio = statistics.median(a / b for a, b in zip(part["plain"], part["ours"], strict=True))
        lines.append(f"| {part['description']} | {plain:.3f} ms | {ours:.3f} ms | {ratio:.2f} |")
    return "\n".join(lines)
