"""The cost of a training step on a batch of a new shape, compared with repeating the step on the same batch.

On a CPU, oneDNN generates code for each shape of a bfloat16 product, and caches it for a limited number of shapes.
"""

import argparse
import multiprocessing
import os
import resource
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import torch

from nmt.config.nodes import make
from nmt.config.schema import TrainSettings, validated
from nmt.data.batch import Batch
from nmt.errors import Mistake
from nmt.runs.load import build_model
from nmt.text import PAD
from nmt.training.machine import build_trainer
from nmt.training.task import build_task
from scripts.bench.growth_cost import step
from scripts.bench.size_lists import size_list
from scripts.bench.training_cost import configuration, training_data


def distinct_shapes(batches: Sequence[Batch]) -> list[Batch]:
    """The first batch of each shape."""
    distinct: dict[tuple[int, ...], Batch] = {}
    for batch in batches:
        distinct.setdefault((*batch.source.shape, batch.target_output.shape[1]), batch)
    return list(distinct.values())


def set_limits(limits: dict[str, str]) -> None:
    """Sets environment variables of a process in which torch has not used oneDNN yet."""
    os.environ.update(limits)


def measure(overrides: Sequence[str], batches: int) -> dict[str, Any]:
    """Measures steps on this many batches of distinct shapes, and the peak memory of this process.

    Each batch is used three times in a row; the first and third steps are timed. Then all batches are used once more.
    Raises Mistake if there are too few shapes.
    """
    settings = validated(TrainSettings, configuration(overrides))
    data, tokenizers = training_data(settings, 2 * batches + 1)
    distinct = distinct_shapes([batch for step in data.train_dataloader() for batch in step])
    if len(distinct) <= batches:
        raise Mistake(
            f"Only {len(distinct)} of the first {2 * batches + 1} training batches differ in shape, but --batches "
            f"{batches} needs {batches + 1}: lower it, or use a larger corpus."
        )
    warmup, *given = distinct[: batches + 1]
    torch.manual_seed(settings.seed)
    task = build_task(settings, build_model(settings.model, tokenizers)).train()
    optimizer = make(settings.optimizer)(task.model.parameters())
    trainer = build_trainer(settings.trainer, logger=False, enable_checkpointing=False)
    timed = partial(step, task, optimizer, forward_context=trainer.precision_plugin.forward_context)
    for _ in range(3):
        timed(warmup)
    thrice = [[timed(batch) for _ in range(3)] for batch in given]
    later = [timed(batch) for batch in given]
    new, again = [first for first, _, _ in thrice], [last for _, _, last in thrice]
    positions = sum(batch.source.numel() + batch.target_output.numel() for batch in given)
    padding = sum(int((side == PAD).sum()) for batch in given for side in (batch.source, batch.target_output))
    return {
        "new_seconds": new,
        "again_seconds": again,
        "later_seconds": later,
        "padding": round(padding / positions, 4),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark shapes`."""
    parser.add_argument("--data", required=True, metavar="PREFIX,PREFIX", help="parallel files PREFIX.en and PREFIX.vi")
    parser.add_argument("--tokens", default="2048,4096", metavar="N,N", help="tokens per batch (default: %(default)s)")
    parser.add_argument(
        "--cached", default="64,1024", metavar="N,N", help="shapes that oneDNN caches (default: %(default)s)"
    )
    parser.add_argument(
        "--interface-cached",
        type=int,
        default=8,
        help="shapes that torch's interface to oneDNN caches (default: %(default)s)",
    )
    parser.add_argument("--batches", type=int, default=20, help="batches of distinct shapes (default: %(default)s)")
    parser.add_argument("--precision", default="bf16-mixed", help="trainer.precision (default: %(default)s)")
    parser.add_argument("overrides", nargs="*", help="overrides of nmt.train, such as model=luong")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures every size of batches with every limit on what oneDNN caches, each in its own process."""
    if options.batches < 1:
        raise Mistake(f"--batches {options.batches} must be at least 1.")
    given = [f"data.train=[{options.data}]", f"trainer.precision={options.precision}", "trainer.accelerator=cpu"]
    given += options.overrides
    context = multiprocessing.get_context("spawn")
    costs: list[dict[str, Any]] = []
    for tokens in size_list("--tokens", options.tokens, 1):
        for cached in size_list("--cached", options.cached, 1):
            limits = {
                "ONEDNN_PRIMITIVE_CACHE_CAPACITY": str(cached),
                "LRU_CACHE_CAPACITY": str(options.interface_cached),
            }
            with ProcessPoolExecutor(1, context, set_limits, (limits,)) as pool:
                job = pool.submit(measure, [*given, f"batching.batch_tokens={tokens}"], options.batches)
                costs.append(
                    {"tokens": tokens, "cached": cached, "interface_cached": options.interface_cached, **job.result()}
                )
            print(f"measured {tokens} tokens, {cached} shapes cached", file=sys.stderr)
    return {"shapes": costs, "precision": options.precision, "threads": torch.get_num_threads()}


def table(record: dict[str, Any]) -> str:
    """The measurements as a Markdown table: medians, and medians of each batch's ratio to the same shape again."""
    lines = [
        "| batch tokens | shapes cached | new shape | same shape again | all shapes once more | new / again | "
        "once more / again | padding | peak memory |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for cost in record["shapes"]:
        times = [cost[f"{name}_seconds"] for name in ("new", "again", "later")]
        milliseconds = " | ".join(f"{1000 * statistics.median(seconds):,.0f} ms" for seconds in times)
        new, again, later = times
        ratios = " | ".join(
            f"{statistics.median(one / other for one, other in zip(some, again, strict=True)):.3f}"
            for some in (new, later)
        )
        lines.append(
            f"| {cost['tokens']:,} | {cost['cached']:,} | {milliseconds} | {ratios} | {cost['padding']:.1%} | "
            f"{cost['peak_memory_bytes'] / 2**20:,.0f} MiB |"
        )
    return "\n".join(lines)
