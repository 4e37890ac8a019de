"""Memory and time of the additive score v . tanh(q + k), by its plain formula and as the models compute it."""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.profiler import profile

from nmt.attention.kernels import additive_score

Score = Callable[[Tensor, Tensor, Tensor], Tensor]


def plain_score(queries: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    """The formula as it stands: its (batch, heads, queries, keys, hidden) tensor is kept for backward."""
    hidden = torch.tanh(queries.unsqueeze(3) + keys.unsqueeze(2))
    return (hidden @ vector[:, None, :, None]).squeeze(-1)


WAYS: dict[str, Score] = {"plain formula": plain_score, "recomputed in blocks": additive_score}


def peak_memory(work: Callable[[], Any]) -> int:
    """The most bytes that torch held at a time while it worked, beyond those that it held before."""
    with profile(profile_memory=True, use_device="cuda" if torch.cuda.is_available() else None) as found:
        work()
    events = [event for event in found.kineto_results.events() if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


def measure(shape: tuple[int, int, int, int, int], rounds: int, device: torch.device) -> dict[str, Any]:
    """The record of a measurement: from projected queries and keys to scores and back, in alternating rounds.

    `shape` is (batch, heads, queries, keys, hidden). Memory holds the scores and the gradients; inputs do not count.
    """
    batch, heads, queries, keys, hidden = shape
    torch.manual_seed(1)
    leaves = [
        torch.randn(*size, device=device, requires_grad=True)
        for size in ((batch, heads, queries, hidden), (batch, heads, keys, hidden), (heads, hidden))
    ]
    grad = torch.randn(batch, heads, queries, keys, device=device)

    def there_and_back(score: Score) -> None:
        torch.autograd.grad(score(*leaves), leaves, grad)

    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(rounds + 1):
        for name, score in WAYS.items():
            seconds[name].append(_timed(lambda score=score: there_and_back(score), device))  # type: ignore[misc]
    size = grad.numel() * grad.element_size()
    peaks = {name: peak_memory(lambda score=score: there_and_back(score)) for name, score in WAYS.items()}  # type: ignore[misc]
    return {
        "shape": list(shape),
        "score_bytes": size,
        "peak_bytes": peaks,
        "peak_in_scores": {name: round(peak / size, 2) for name, peak in peaks.items()},
        # The first round warms up.
        "seconds": {name: [round(value, 5) for value in found[1:]] for name, found in seconds.items()},
        "device": str(device),
        "threads": torch.get_num_threads(),
    }


def _timed(work: Callable[[], None], device: torch.device) -> float:
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def table(record: dict[str, Any]) -> str:
    """A record as a Markdown table."""
    batch, heads, queries, keys, hidden = record["shape"]
    lines = [
        f"Additive score: batch {batch}, {heads} heads, {queries} queries, {keys} keys, hidden {hidden}; the scores "
        f"take {record['score_bytes'] / 2**20:.1f} MiB; {record['device']}, {record['threads']} threads",
        "",
        "| way | peak extra memory | in score tensors | forward and backward, median | fastest to slowest |",
        "|---|---|---|---|---|",
    ]
    for name, found in record["seconds"].items():
        peak, times = record["peak_bytes"][name] / 2**20, record["peak_in_scores"][name]
        middle, best, worst = statistics.median(found) * 1e3, min(found) * 1e3, max(found) * 1e3
        lines.append(f"| {name} | {peak:.1f} MiB | {times:.2f} | {middle:.1f} ms | {best:.1f} to {worst:.1f} ms |")
    return "\n".join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `benchmark.py attention`."""
    for name, default in (("batch", 32), ("heads", 4), ("queries", 128), ("keys", 128), ("hidden", 64), ("rounds", 7)):
        parser.add_argument(f"--{name}", type=int, default=default, help="default: %(default)s")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The record that the options ask for."""
    shape = (options.batch, options.heads, options.queries, options.keys, options.hidden)
    if min(*shape, options.rounds) < 1:
        raise ValueError(f"Sizes and rounds must be at least 1, not {shape} and {options.rounds}.")
    return measure(shape, options.rounds, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
