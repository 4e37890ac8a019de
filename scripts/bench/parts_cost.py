"""What each part that was made faster costs, beside the plain way to compute the same."""

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
from nmt.kernels.dropout import Dropout
from nmt.kernels.headwise_product import headwise_product
from nmt.kernels.vocabulary_loss import summed_agreement, summed_nll
from nmt.models.transformer_layers import FeedForward
from nmt.runs.precision import with_precision
from nmt.text import EOS, PAD

_DROPOUT, _LABEL_SMOOTHING = 0.1, 0.1


class Part(NamedTuple):
    """Two functions without arguments that do the same, dropout and int8 but for rounding."""

    plain: Callable[[], Any]
    ours: Callable[[], Any]
    does: str
    """What is computed, in words."""


def dropout(sentences: int, length: int, width: int) -> Part:
    """Dropout, there and back."""
    x = torch.randn(sentences, length, width, requires_grad=True)
    plain, ours = nn.Dropout(_DROPOUT), Dropout(_DROPOUT)
    does = f"dropout of {sentences} x {length} x {width}, forward and backward"
    return Part(*(partial(_there_and_back, partial(each, x), [x]) for each in (plain, ours)), does)


def feed_forward(sentences: int, length: int, width: int, autocast: bool = False) -> Part:
    """The feed-forward net of a layer: ReLU in a view, then dropout, or as the layer computes it; also in bfloat16."""
    torch.manual_seed(1)
    net, x = FeedForward(width, 4 * width, _DROPOUT), torch.randn(sentences, length, width, requires_grad=True)
    in_bfloat16 = torch.autocast("cpu", torch.bfloat16, enabled=autocast, cache_enabled=False)

    def plain(inputs: Tensor) -> Tensor:
        result: Tensor = net.outer(net.dropout(functional.relu(net.inner(inputs), inplace=True)))
        return result

    does = f"feed-forward net, {sentences} x {length} x {width}, forward and backward"
    does += ", bfloat16" if autocast else ""
    wanted = [x, *net.parameters()]
    return Part(*(partial(_there_and_back, partial(in_bfloat16(way), x), wanted) for way in (plain, net)), does)


def softmax(sentences: int, length: int, dtype: torch.dtype) -> Part:
    """The weights of masked scores of four heads, there and back: step by step, or as one function."""
    torch.manual_seed(1)
    scores = torch.randn(sentences, 4, length, length).to(dtype).requires_grad_()
    mask = torch.rand(sentences, 1, 1, length) < 0.9

    def plain(inputs: Tensor) -> Tensor:
        return inputs.masked_fill(~mask, torch.finfo(dtype).min).softmax(dim=-1) * mask

    ways = (
        partial(_there_and_back, partial(way, scores), [scores]) for way in (plain, partial(masked_softmax, mask=mask))
    )
    return Part(*ways, f"softmax of {sentences} x 4 x {length} x {length} scores in {dtype}, forward and backward")


def projection(sentences: int, positions: int, width: int, autocast: bool = False) -> Part:
    """What a scorer with one head makes of queries or keys by its matrix; also in bfloat16."""
    torch.manual_seed(1)
    vectors = torch.randn(sentences, 1, positions, width, requires_grad=True)
    matrices = torch.randn(1, width, width, requires_grad=True)
    in_bfloat16 = torch.autocast("cpu", torch.bfloat16, enabled=autocast, cache_enabled=False)
    ways = (partial(in_bfloat16(way), vectors, matrices) for way in (torch.matmul, headwise_product))
    does = f"{sentences} x {positions} vectors of {width} times a scorer's matrix, forward and backward"
    does += ", bfloat16" if autocast else ""
    return Part(*(partial(_there_and_back, way, [vectors, matrices]) for way in ways), does)


def loss(sentences: int, length: int, width: int, vocab: int, autocast: bool = False) -> Part:
    """The output layer and cross entropy: of all positions at once, or as the task computes it; also in bfloat16."""
    torch.manual_seed(1)
    targets = _targets(sentences, length, vocab)
    layer, outputs = nn.Linear(width, vocab, bias=False), torch.randn(sentences, length, width, requires_grad=True)
    in_bfloat16 = torch.autocast("cpu", torch.bfloat16, enabled=autocast, cache_enabled=False)
    ways = (partial(in_bfloat16(way), outputs, layer, targets, _LABEL_SMOOTHING) for way in (whole_loss, summed_nll))
    does = f"output layer and loss of {sentences} x {length} tokens, {vocab:,} pieces, forward and backward"
    does += ", bfloat16" if autocast else ""
    return Part(*(partial(_there_and_back, way, [outputs, layer.weight]) for way in ways), does)


def whole_loss(outputs: Tensor, layer: nn.Linear, targets: Tensor, label_smoothing: float) -> Tensor:
    """torch's cross entropy of all positions, which leaves out padding itself."""
    return functional.cross_entropy(
        layer(outputs).flatten(0, 1).float(),
        targets.flatten(),
        ignore_index=PAD,
        reduction="sum",
        label_smoothing=label_smoothing,
    )


def agreement(sentences: int, length: int, width: int, vocab: int, autocast: bool = False) -> Part:
    """R-Drop's loss of two passes: of all positions at once, or as the objective computes it; also in bfloat16."""
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
    does = f"output layer and R-Drop of two passes of {sentences} x {length} tokens, {vocab:,} pieces, there and back"
    does += ", bfloat16" if autocast else ""
    return Part(*(partial(_there_and_back, way, [first, second, layer.weight]) for way in ways), does)


def whole_agreement(
    passes: tuple[Tensor, Tensor],
    layer: nn.Linear,
    targets: Tensor,
    label_smoothing: float,
    nll: tuple[float, float],
    divergence: tuple[float, float],
) -> Tensor:
    """The sum of both losses and both divergences, of all positions at once."""
    tokens = targets != PAD
    p, q = (layer(outputs[tokens]).float().log_softmax(dim=-1) for outputs in passes)
    total = sum(
        weight * functional.cross_entropy(each, targets[tokens], reduction="sum", label_smoothing=label_smoothing)
        for weight, each in zip(nll, (p, q), strict=True)
    )
    for weight, one, other in zip(divergence, (p, q), (q, p), strict=True):
        total = total + weight * functional.kl_div(other, one, log_target=True, reduction="sum")
    return total


def int8(rows: int, width: int, vocab: int) -> Part:
    """A linear layer with weights of 8 bits."""
    layer = nn.Sequential(nn.Linear(width, vocab))
    rounded = with_precision(layer, "int8", torch.device("cpu"))
    x = torch.randn(rows, width)
    ways = (torch.inference_mode()(partial(each, x)) for each in (layer, rounded))
    return Part(*ways, f"linear layer in int8, {rows} x {width} to {vocab:,}")


def rows(number: int, length: int, width: int, layers: int) -> Part:
    """The rows of a Transformer's state after a step of search, of which one in five has another parent."""
    torch.manual_seed(1)
    kept = [KeysValues(*(torch.randn(number, 4, length, width // 4) for _ in range(2))) for _ in range(layers)]
    chosen = torch.where(torch.rand(number) < 0.2, torch.randint(number, (number,)), torch.arange(number))
    state = tuple(kept)
    does = f"{number} rows of {layers} layers' keys and values, {length} positions of {width}; one in five moves"
    return Part(partial(select_rows, state, chosen), partial(move_rows, state, chosen), does)


def parts() -> list[Part]:
    """Sizes of a Transformer of width 256 with 8,000 pieces and batches of 4,096 tokens, half as many for two passes;
    of a recurrent model of width 512, and of a search with 320 rows.
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
        rows(320, 40, 256, 3),
    ]


def _targets(sentences: int, length: int, vocab: int) -> Tensor:
    """Random pieces, of which a tenth is padding."""
    targets = torch.randint(EOS + 1, vocab, (sentences, length))
    targets[torch.arange(length) >= torch.randint(length * 4 // 5, length + 1, (sentences, 1))] = PAD
    return targets


def _there_and_back(compute: Callable[[], Tensor], wanted: list[Tensor]) -> None:
    torch.autograd.grad(compute().sum(), wanted)


def measure(part: Part, rounds: int) -> dict[str, Any]:
    """Seconds of both ways in alternating rounds; the first one warms up."""
    seconds: dict[str, list[float]] = {"plain": [], "ours": []}
    for _ in range(rounds + 1):
        for name, found in seconds.items():
            start = time.perf_counter()
            getattr(part, name)()
            found.append(time.perf_counter() - start)
    return {"does": part.does, **{name: [round(value, 5) for value in found[1:]] for name, found in seconds.items()}}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `benchmark.py parts`."""
    parser.add_argument("--rounds", type=int, default=11, help="default: %(default)s")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The record of all parts."""
    if options.rounds < 1:
        raise ValueError(f"--rounds {options.rounds} must be at least 1.")
    return {"parts": [measure(part, options.rounds) for part in parts()], "threads": torch.get_num_threads()}


def table(record: dict[str, Any]) -> str:
    """A record as a Markdown table; the ratio is the median of those of each round."""
    lines = ["| part | plain way, median | ours, median | plain / ours |", "|---|---|---|---|"]
    for each in record["parts"]:
        plain, ours = (1e3 * statistics.median(each[name]) for name in ("plain", "ours"))
        ratio = statistics.median(a / b for a, b in zip(each["plain"], each["ours"], strict=True))
        lines.append(f"| {each['does']} | {plain:.2f} ms | {ours:.2f} ms | {ratio:.2f} |")
    return "\n".join(lines)
