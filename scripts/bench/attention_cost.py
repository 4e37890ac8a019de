"""Time and memory of every scorer by sequence length, for each way to compute the context."""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.profiler import profile

from nmt.attention import Attention
from nmt.attention.normalizers import Softmax
from nmt.attention.windows import Global
from nmt.config.nodes import CONFIGS, make, read_yaml
from nmt.errors import Mistake
from nmt.kernels import fused_attention
from scripts.bench.size_lists import size_list

Way = Callable[[Attention, Tensor, Tensor, Tensor, Tensor], Tensor]
"""way(site, queries, keys, values, mask) computes the context; all ways give the same result."""

SCORERS = {path.stem: make(read_yaml(path)["scorer"]) for path in sorted((CONFIGS / "scorer").glob("*.yaml"))}


def explicit(site: Attention, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Scores, then weights, then context. The additive score is computed in blocks, and again in the backward pass."""
    return site.attend(queries, site.project_keys(keys), values, mask)[0]


def fused(site: Attention, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """torch's fused kernel for inner-product scores."""
    vectors = site.scorer.key_vectors(site.project_keys(keys))
    return fused_attention.inner_product_context(
        site.scorer.project_queries(queries), vectors, values, mask, dropout=0.0
    )


def plain(site: Attention, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """The additive formula, which keeps a (batch, heads, queries, keys, hidden) tensor for the backward pass."""
    projected, keys = site.scorer.project_queries(queries), site.project_keys(keys)
    hidden = torch.tanh(projected.unsqueeze(3) + keys.unsqueeze(2))
    scores = (hidden @ site.scorer.vector[:, None, :, None]).squeeze(-1)
    weights: Tensor = site.normalizer(scores, mask)
    return weights @ values


def ways(site: Attention) -> dict[str, Way]:
    """The ways to compute a site's context."""
    if site.scorer.inner_product:
        return {"explicit": explicit, "fused": fused}
    return {"explicit, in blocks": explicit, "plain formula": plain}


def peak_memory(work: Callable[[], Any]) -> int:
    """Peak bytes that torch allocated during `work`, on top of what was allocated before."""
    with profile(profile_memory=True, use_device="cuda" if torch.cuda.is_available() else None) as profiler:
        work()
    events = [event for event in profiler.kineto_results.events() if event.name() == "[memory]"]
    allocated = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        allocated += event.nbytes()
        peak = max(peak, allocated)
    return peak


def inputs(shape: tuple[int, int, int, int], device: torch.device) -> tuple[list[Tensor], Tensor]:
    """Queries, keys and values of (batch, heads, length, width), and their mask. Every fifth sentence is shorter."""
    torch.manual_seed(1)
    batch, _, length, _ = shape
    lengths = torch.tensor([length if index % 5 else max(1, length // 2) for index in range(batch)])
    mask = torch.arange(length) < lengths[:, None]
    return [torch.randn(*shape, device=device, requires_grad=True) for _ in range(3)], mask[:, None, None].to(device)


def measure(scorer: str, shape: tuple[int, int, int, int], rounds: int, device: torch.device) -> list[dict[str, Any]]:
    """One record per way: forward and backward in alternating rounds. Memory excludes inputs and parameters."""
    batch, heads, length, width = shape
    torch.manual_seed(2)
    parts = {"query_dim": width, "key_dim": width, "num_heads": heads}
    site = Attention(SCORERS[scorer], Global, Softmax, **parts).to(device)
    leaves, mask = inputs(shape, device)
    wanted = [*leaves, *site.parameters()]

    def forward_and_backward(way: Way) -> None:
        context = way(site, *leaves, mask)
        torch.autograd.grad(context.sum(), wanted, allow_unused=True)

    site_ways = ways(site)
    seconds: dict[str, list[float]] = {name: [] for name in site_ways}
    for _ in range(rounds + 1):
        for name, way in site_ways.items():
            start = time.perf_counter()
            forward_and_backward(way)
            if device.type == "cuda":
                torch.cuda.synchronize()
            seconds[name].append(time.perf_counter() - start)
    return [
        {
            "scorer": scorer,
            "way": name,
            "batch": batch,
            "length": length,
            # The first round warms up.
            "seconds": [round(value, 5) for value in seconds[name][1:]],
            "peak_bytes": peak_memory(partial(forward_and_backward, way)),
        }
        for name, way in site_ways.items()
    ]


def table(record: dict[str, Any]) -> str:
    """The measurements as a Markdown table."""
    lines = [
        f"{record['heads']} heads of {record['width']}, batches of at most {record['tokens']:,} queries, "
        f"{record['device']}, {record['threads']} threads",
        "",
        "| scorer | batch x length | way | forward and backward, median | fastest to slowest | peak extra memory |",
        "|---|---|---|---|---|---|",
    ]
    for cost in record["costs"]:
        middle, best, worst = (1e3 * of(cost["seconds"]) for of in (statistics.median, min, max))
        lines.append(
            f"| {cost['scorer']} | {cost['batch']} x {cost['length']} | {cost['way']} | {middle:.1f} ms | "
            f"{best:.1f} to {worst:.1f} ms | {cost['peak_bytes'] / 2**20:.1f} MiB |"
        )
    return "\n".join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark attention`."""
    parser.add_argument(
        "--lengths", default="16,64,256", metavar="N,N", help="numbers of queries and keys (default: %(default)s)"
    )
    parser.add_argument("--scorers", default=",".join(SCORERS), metavar="NAME,NAME", help="default: %(default)s")
    helps = {
        "tokens": (4096, "queries per batch"),
        "heads": (4, "attention heads"),
        "width": (64, "width of a head"),
        "rounds": (7, "measured rounds"),
    }
    for name, (default, what) in helps.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{what} (default: %(default)s)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures what the options ask for."""
    sizes = {key: getattr(options, key) for key in ("tokens", "heads", "width")}
    if min(*sizes.values(), options.rounds) < 1:
        raise Mistake(f"Sizes and --rounds must be at least 1; got {sizes} and {options.rounds}.")
    lengths = size_list("--lengths", options.lengths, 1)
    names = options.scorers.split(",")
    if unknown := [name for name in names if name not in SCORERS]:
        raise Mistake(f"Unknown scorer '{unknown[0]}'; available: {', '.join(SCORERS)}.")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for name in names:
        most = SCORERS[name](query_dim=1, key_dim=1, num_heads=1).max_keys
        if most is not None and lengths[-1] > most:
            raise Mistake(
                f"scorer {name} accepts at most {most} keys: drop it from --scorers, or {lengths[-1]} from --lengths."
            )
    costs = []
    for name in names:
        for length in lengths:
            shape = (max(1, options.tokens // length), options.heads, length, options.width)
            costs += measure(name, shape, options.rounds, device)
    return {"costs": costs, **sizes, "device": str(device), "threads": torch.get_num_threads()}
