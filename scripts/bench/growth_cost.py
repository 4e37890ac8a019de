"""The cost of a training step on random batches as sentence length, vocabulary and model width grow."""

import argparse
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from nmt.config.nodes import make
from nmt.config.schema import TrainSettings, validated
from nmt.data.batch import Batch, collate
from nmt.data.example import Example
from nmt.errors import Mistake
from nmt.models import VocabularySizes
from nmt.text import EOS
from nmt.training.task import TranslationTask, build_task
from scripts.bench.attention_cost import SCORERS
from scripts.bench.size_lists import size_list
from scripts.bench.training_cost import SIZES, configuration, matrix_rate, operations_per_token

AXES = {
    "length": (16, 32, 64, 128, 256, 512),
    "vocabulary": (4000, 8000, 16000, 32000, 64000),
    "width": (256, 512, 1024),
}
BASE = {"length": 32, "vocabulary": 8000, "width": 256}
_SPECIAL = EOS + 1  # PAD, UNK, BOS and EOS are 0 to 3
_HEAD = 64
_LEAST = {"length": 2, "vocabulary": _SPECIAL + 1, "width": _HEAD}


def made_up(length: int, vocabulary: int, tokens: int, seed: int = 1) -> Batch:
    """A batch of `tokens` // `length` sentences, at least one, each with `length` random pieces including EOS."""
    torch.manual_seed(seed)
    ids = torch.randint(_SPECIAL, vocabulary, (max(1, tokens // length), 2, length - 1)).tolist()
    return collate([Example(index, source, target) for index, (source, target) in enumerate(ids)])


def widths(model: str, width: int) -> list[str]:
    """Overrides for this model width. A Transformer has heads of 64 and a feed-forward net four times as wide."""
    return {
        "transformer": [f"model.dim={width}", f"model.ffn_dim={4 * width}", f"model.num_heads={width // _HEAD}"],
        "luong": [f"model.{part}_dim={width}" for part in ("embedding", "encoder", "decoder")],
        "bahdanau": [f"model.{part}_dim={width}" for part in ("embedding", "encoder", "decoder", "maxout")],
    }[model]


def step(
    task: TranslationTask,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    forward_context: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> float:
    """One optimizer step, in seconds; the loss is computed inside `forward_context`."""
    start = time.perf_counter()
    with forward_context():
        loss = task.nll(batch, label_smoothing=0.1) / batch.tokens
    loss.backward()
    torch.nn.utils.clip_grad_norm_(task.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if batch.source.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def measure(
    length: int, vocabulary: int, width: int, model: str, scorer: str | None, tokens: int, steps: int
) -> dict[str, Any]:
    """Measures steps after one warm-up step, in this process, and its peak memory."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = configuration([f"model={model}", *([f"scorer={scorer}"] if scorer else []), *widths(model, width)])
    made = make(config["model"])(vocabulary=VocabularySizes(vocabulary, vocabulary, joint=True))
    task = build_task(validated(TrainSettings, config), made).to(device).train()
    optimizer = make(config["optimizer"])(task.model.parameters())
    batch = made_up(length, vocabulary, tokens).to(device)
    step(task, optimizer, batch)
    seconds = [step(task, optimizer, batch) for _ in range(steps)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated()
    speed = batch.tokens / statistics.median(seconds)
    operations = operations_per_token(task, [batch])
    return {
        "target_tokens_per_second": round(speed, 1),
        "seconds": [round(value, 4) for value in seconds],
        "peak_memory_bytes": peak,
        "device": str(device),
        "operations_per_target_token": round(operations),
        "parameters": sum(parameter.numel() for parameter in task.parameters()),
        "matrix_share": round(speed * operations / matrix_rate(device, torch.float32), 4),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark growth`."""
    for axis, values in AXES.items():
        others = ", ".join(f"{key} {value}" for key, value in BASE.items() if key != axis)
        default = ",".join(map(str, values))
        parser.add_argument(f"--{axis}", default=default, metavar="N,N", help=f"with {others} (default: {default})")
    parser.add_argument("--model", default="transformer", choices=SIZES, help="default: %(default)s")
    parser.add_argument("--scorer", choices=SCORERS, help="default: the model's own")
    parser.add_argument("--tokens", type=int, default=2048, help="target tokens per batch (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=3, help="measured steps (default: %(default)s)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures what the options ask for: one axis at a time, each size in its own process."""
    if min(options.tokens, options.steps) < 1:
        raise Mistake(f"--tokens {options.tokens} and --steps {options.steps} must be at least 1.")
    sizes = {axis: size_list(f"--{axis}", getattr(options, axis), _LEAST[axis]) for axis in AXES}
    if odd := [width for width in sizes["width"] if width % _HEAD]:
        raise Mistake(f"--width {odd[0]} must be a multiple of {_HEAD}, the width of a head.")
    given = {key: getattr(options, key) for key in ("model", "scorer", "tokens", "steps")}
    context = multiprocessing.get_context("spawn")
    costs: dict[str, list[dict[str, Any]]] = {axis: [] for axis in AXES}
    for axis, values in sizes.items():
        for value in values:
            sizes_of_step = BASE | {axis: value}
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                costs[axis].append({axis: value, **pool.submit(measure, **sizes_of_step, **given).result()})
            print(f"measured {axis} {value}", file=sys.stderr)
    return {"growth": costs, "base": BASE, **given, "threads": torch.get_num_threads()}


def table(record: dict[str, Any]) -> str:
    """The measurements as a Markdown table."""
    lines = [
        "| varied | value | target tokens/s | matrix products | peak memory | parameters |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {axis} | {cost[axis]:,} | {cost['target_tokens_per_second']:,.0f} | "
        f"{cost['matrix_share']:.0%} of the machine's rate | {cost['peak_memory_bytes'] / 2**30:.2f} GiB | "
        f"{cost['parameters']:,} |"
        for axis, costs in record["growth"].items()
        for cost in costs
    ]
    return "\n".join(lines)
