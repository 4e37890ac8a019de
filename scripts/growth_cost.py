"""What a training step costs as the sentences, the vocabulary and the width grow, on batches that are made up."""

import argparse
import multiprocessing
import resource
import statistics
import time
from collections.abc import Sequence
from typing import Any

import torch

from nmt.data.batch import Batch, collate
from nmt.models import VocabularySizes
from nmt.run import compose
from nmt.run.build_training import build_task
from nmt.text import EOS
from nmt.training import TranslationTask
from training_cost import configuration, matrix_rate, operations_per_token

AXES = {
    "length": (16, 32, 64, 128, 256, 512),
    "vocabulary": (4000, 8000, 16000, 32000, 64000),
    "width": (256, 512, 1024),
}
BASE = {"length": 32, "vocabulary": 8000, "width": 256}
_SPECIAL = EOS + 1  # PAD, UNK, BOS and EOS have the first ids


def made_up(length: int, vocabulary: int, tokens: int, seed: int = 1) -> Batch:
    """Sentences of `length` random pieces on both sides, EOS counted: as many as `tokens` holds, at least one."""
    torch.manual_seed(seed)
    ids = torch.randint(_SPECIAL, vocabulary, (max(1, tokens // length), 2, length - 1)).tolist()
    return collate([(index, source, target) for index, (source, target) in enumerate(ids)])


def overrides_of_width(width: int) -> list[str]:
    """A model that is that wide in all its parts: heads of 64, a feed-forward net four times as wide."""
    transformer = [f"model.dim={width}", f"model.ffn_dim={4 * width}", f"model.num_heads={max(1, width // 64)}"]
    recurrent = [f"model.embedding_dim={width}", f"model.encoder_dim={width}", f"model.decoder_dim={width}"]
    return [*transformer, *recurrent]


def step(task: TranslationTask, optimizer: torch.optim.Optimizer, batch: Batch) -> float:
    """The seconds of one optimiser step."""
    start = time.perf_counter()
    (task.nll(batch, label_smoothing=0.1) / batch.tokens).backward()
    torch.nn.utils.clip_grad_norm_(task.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if batch.source.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def measure(
    length: int, vocabulary: int, width: int, tokens: int, steps: int, overrides: Sequence[str]
) -> dict[str, Any]:
    """Medians of some steps after one that warms up, in this process; the memory is the most that it held."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = configuration(overrides)
    known = [text for text in overrides_of_width(width) if text.split("=")[0].removeprefix("model.") in config["model"]]
    config = configuration([*overrides, *known])
    model = compose.make(config["model"])(vocabulary=VocabularySizes(vocabulary, vocabulary, joint=True))
    task = build_task(config, model).to(device).train()
    optimizer = compose.make(config["optimizer"])(task.model.parameters())
    batch = Batch(*(part.to(device) for part in made_up(length, vocabulary, tokens)))
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
        "operations_per_target_token": round(operations),
        "parameters": sum(parameter.numel() for parameter in task.parameters()),
        "matrix_share": round(speed * operations / matrix_rate(device), 4),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `benchmark.py growth`."""
    for axis, values in AXES.items():
        shown = ",".join(map(str, values))
        parser.add_argument(
            f"--{axis}",
            default=shown,
            metavar="N,N",
            help="default: %(default)s; the others stay at "
            + ", ".join(f"{key} {value}" for key, value in BASE.items() if key != axis),
        )
    parser.add_argument("--tokens", type=int, default=2048, help="target tokens of a batch (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=3, help="steps that are measured (default: %(default)s)")
    parser.add_argument("overrides", nargs="*", help="overrides of nmt.train, such as model=luong scorer=additive")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The record that the options ask for: each size in a process of its own, one axis at a time."""
    if min(options.tokens, options.steps) < 1:
        raise ValueError(f"--tokens {options.tokens} and --steps {options.steps} must be at least 1.")
    sizes = {axis: _sizes(axis, getattr(options, axis)) for axis in AXES}
    configuration(options.overrides)
    context = multiprocessing.get_context("spawn")
    found: dict[str, list[dict[str, Any]]] = {}
    for axis, values in sizes.items():
        found[axis] = []
        for value in values:
            with context.Pool(1) as pool:
                of = BASE | {axis: value}
                cost = pool.apply(measure, (*of.values(), options.tokens, options.steps, options.overrides))
            found[axis].append({axis: value, **cost})
    return {
        "growth": found,
        "base": BASE,
        "tokens": options.tokens,
        "overrides": options.overrides,
        "threads": torch.get_num_threads(),
    }


def _sizes(axis: str, text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    least = {"length": 2, "vocabulary": _SPECIAL + 1, "width": 2}[axis]
    if not sizes or min(sizes) < least:
        raise ValueError(
            f"--{axis} is '{text}'; give numbers of at least {least}, as in {AXES[axis][0]},{AXES[axis][1]}."
        )
    return sizes


def table(record: dict[str, Any]) -> str:
    """A record as a Markdown table."""
    lines = [
        "| grows | to | target tokens/s | matrix products | peak memory | parameters |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {axis} | {each[axis]:,} | {each['target_tokens_per_second']:,.0f} | "
        f"{each['matrix_share']:.0%} of the machine | {each['peak_memory_bytes'] / 2**30:.2f} GiB | "
        f"{each['parameters']:,} |"
        for axis, costs in record["growth"].items()
        for each in costs
    ]
    return "\n".join(lines)
