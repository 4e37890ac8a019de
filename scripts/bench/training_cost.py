"""Target tokens per second of training steps, compared with the machine's rate of matrix products."""

import argparse
import platform
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import lightning
import torch
from torch.utils.flop_counter import FlopCounterMode

from nmt.cli.compose import configuration as composed
from nmt.config.keys import value_at
from nmt.config.messages import written
from nmt.config.nodes import Config
from nmt.config.schema import TrainSettings, validated
from nmt.data.batch import Batch
from nmt.data.dataset import training_dataset
from nmt.data.drawn_pairs import DrawnPairs
from nmt.data.filters import Filters
from nmt.data.module import StepData
from nmt.data.vocabulary import learned_tokenizers
from nmt.errors import Mistake
from nmt.runs.load import build_model
from nmt.runs.record import git_commit, versions
from nmt.text import PAD, TokenizerPair
from nmt.training.machine import build_trainer
from nmt.training.task import TranslationTask, build_task

WINDOW = 5
"""Number of updates timed together; the time of a single update depends too much on its sentence lengths."""

SIZES = {
    "transformer": ("model.dim=256", "model.ffn_dim=1024", "model.num_heads=4", "model.num_layers=3"),
    "luong": ("model.embedding_dim=256", "model.encoder_dim=512", "model.decoder_dim=512", "model.num_layers=1"),
    "bahdanau": ("model.embedding_dim=256", "model.encoder_dim=512", "model.decoder_dim=512", "model.maxout_dim=256"),
}
RECIPE = (
    "data=files",
    "direction=en-vi",
    "tokenizer=unigram",
    "tokenizer.size=8000",
    "tokenizer.joint=true",
    "model.dropout=0.1",
    "label_smoothing=0.1",
    "unicode_noise=0",
    "batching.batch_tokens=4096",
    "optimizer=adamw",
    "schedule=inverse_sqrt",
    "schedule.warmup=1000",
    "trainer.gradient_clip_val=1.0",
)

UNMEASURED: dict[str, Any] = {
    "subword_sampling": None,
    "unicode_noise": 0,
    "data.concat_prob": 0,
    "data.sampling_temperature": 1,
    "data.detokenize": [],
    "ema_decay": None,
    "context.sentences": 0,
    "start_from": None,
}
"""The keys of nmt.train whose work is not measured, with the values that switch it off."""


class Mark(NamedTuple):
    """The clock in seconds at the end of an update, and the target tokens so far."""

    seconds: float
    tokens: int


class Marks(lightning.Callback):
    """Records a mark after every update, keeps the first batches, and counts positions with and without padding."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self.batches: list[Batch] = []
        self.positions = self.source_tokens = self.target_tokens = 0

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        self.marks.append(Mark(time.perf_counter(), 0))

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        outputs: Any,
        batch: list[Batch],
        batch_idx: int,
    ) -> None:
        for part in batch:
            # This comes before the clock is read: on a GPU, it waits until the update has been computed.
            self.target_tokens += part.tokens
            self.source_tokens += int((part.source != PAD).sum())
            self.positions += part.source.numel() + part.target_output.numel()
            if len(self.batches) < WINDOW:
                self.batches.append(part)
        self.marks.append(Mark(time.perf_counter(), self.target_tokens))
        if trainer.global_step % WINDOW == 0:
            print(f"update {trainer.global_step}/{trainer.max_steps}", file=sys.stderr)


def configuration(overrides: Sequence[str]) -> Config:
    """nmt.train's configuration with this script's recipe, then the overrides."""
    model = next(
        (text.removeprefix("model=") for text in reversed(overrides) if text.startswith("model=")), "transformer"
    )
    if model not in SIZES:
        raise Mistake(f"No benchmark sizes for model={model}; available: {', '.join(SIZES)}.")
    # The default run_dir needs a running Hydra application; nothing is written to this one.
    given = [f"model={model}", "run_dir=none", *RECIPE, *SIZES[model], *overrides]
    config = composed("train", given)
    for key, off in UNMEASURED.items():
        if (value := value_at(config, key, off)) != off:
            raise Mistake(
                f"{key} is {written(value)}, but this benchmark does not measure what that costs; it must be "
                f"{written(off)}."
            )
    return config


def training_data(settings: TrainSettings, updates: int) -> tuple[StepData, TokenizerPair]:
    """The batches of this many updates, and the tokenizers."""
    corpora, cache = settings.data.train, Path(settings.cache_dir)
    tokenizers = learned_tokenizers(corpora, settings.direction, settings.tokenizer, cache)
    rows, report = training_dataset(
        corpora, settings.direction, tokenizers, Filters(**settings.filters.model_dump()), [], cache
    )
    print(f"Training data: {report}", file=sys.stderr)
    data = StepData(
        DrawnPairs(rows),
        [],
        seed=settings.seed,
        batch_tokens=settings.batching.batch_tokens,
        max_steps=updates,
        accumulate=settings.trainer.accumulate_grad_batches,
        workers=settings.batching.workers,
    )
    return data, tokenizers


def window_rates(marks: Sequence[Mark], warmup: int) -> list[float]:
    """Target tokens per second of each full window of updates after the warm-up; marks[n] ends update n."""
    starts = range(warmup, len(marks) - WINDOW, WINDOW)
    if not starts:
        raise Mistake(
            f"{len(marks) - 1} updates with {warmup} of warm-up leave fewer than {WINDOW} to measure; add updates."
        )
    return [
        (marks[start + WINDOW].tokens - marks[start].tokens) / (marks[start + WINDOW].seconds - marks[start].seconds)
        for start in starts
    ]


def matrix_type(precision: str) -> torch.dtype:
    """The dtype of matrix products under one of Lightning's precisions."""
    return {"bf16": torch.bfloat16, "16": torch.float16, "64": torch.float64}.get(
        precision.split("-")[0], torch.float32
    )


def matrix_rate(device: torch.device, dtype: torch.dtype, size: int | None = None, repeats: int = 20) -> float:
    """The machine's rate of matrix products in operations per second: the best of several square products.

    The default size is 1,024, and 8,192 on a GPU, where a smaller product takes less time than its launch.
    """
    size = size or (8192 if device.type == "cuda" else 1024)
    left, right = torch.randn(2, size, size, device=device, dtype=dtype)
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        (left @ right)[0, 0].item()
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def operations_per_token(task: TranslationTask, batches: Sequence[Batch]) -> float:
    """Operations of matrix products per target token, forward and backward, padding included."""
    counter = FlopCounterMode(display=False)
    with counter:
        for batch in batches:
            task.loss(batch.to(task.device)).backward()
    return counter.get_total_flops() / sum(batch.tokens for batch in batches)


def profile(trainer: lightning.Trainer, task: TranslationTask, batches: Sequence[Batch], rows: int) -> str:
    """A table of the operations with the largest self time, in the precision of the measured training."""
    with torch.profiler.profile() as profiler:
        for batch in batches:
            with trainer.precision_plugin.forward_context():
                loss = task.loss(batch.to(task.device))
            loss.backward()
    order = "self_cpu_time_total" if task.device.type == "cpu" else "self_device_time_total"
    return profiler.key_averages().table(sort_by=order, row_limit=rows)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures what the options ask for: the rates, and what is needed to compare them with others."""
    if options.updates < options.warmup + WINDOW:
        raise Mistake(f"--updates {options.updates} must be at least --warmup {options.warmup} + {WINDOW}.")
    ours = [f"data.train=[{options.data}]"] + ([f"trainer.precision={options.precision}"] if options.precision else [])
    config = configuration([*ours, *options.overrides])
    settings = validated(TrainSettings, config)
    precision = settings.trainer.precision
    data, pair = training_data(settings, options.updates)
    torch.manual_seed(settings.seed)
    task = build_task(settings, build_model(settings.model, pair))
    marks = Marks()
    trainer = build_trainer(
        settings.trainer,
        max_steps=options.updates,
        use_distributed_sampler=False,
        callbacks=[marks],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        limit_val_batches=0,
    )
    device = trainer.strategy.root_device
    matrix = matrix_rate(device, matrix_type(precision))
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    trainer.fit(task, data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if device.type == "cuda":
        peak = torch.cuda.max_memory_reserved()
    rates = window_rates(marks.marks, options.warmup)
    operations = operations_per_token(task.to(device), marks.batches)
    if options.profile:
        print(profile(trainer, task, marks.batches, options.profile))
    speed = statistics.median(rates)
    return {
        "target_tokens_per_second": round(speed, 1),
        "windows": [round(rate, 1) for rate in rates],
        "updates": options.updates,
        "warmup": options.warmup,
        "source_tokens_per_second": round(speed * marks.source_tokens / marks.target_tokens, 1),
        "padding": round(1 - (marks.source_tokens + marks.target_tokens) / marks.positions, 4),
        "parameters": sum(parameter.numel() for parameter in task.parameters()),
        "peak_memory_bytes": peak,
        "operations_per_target_token": round(operations),
        "matrix_operations_per_second": round(matrix),
        "matrix_share": round(speed * operations / matrix, 4),
        "model": config["model"],
        "precision": precision,
        "overrides": options.overrides,
        "device": str(device),
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "versions": versions(),
        "git_commit": git_commit(),
    }


def table(record: dict[str, Any]) -> str:
    """The measurements as a Markdown table."""
    windows, rate = record["windows"], record["matrix_operations_per_second"] / 1e9
    memory = "GPU memory" if record["device"].startswith("cuda") else "memory of the process"
    rows = {
        "target tokens/s, median": f"{record['target_tokens_per_second']:,.0f}",
        f"slowest and fastest of {len(windows)} windows": f"{min(windows):,.0f} to {max(windows):,.0f}",
        "source tokens/s": f"{record['source_tokens_per_second']:,.0f}",
        "padding": f"{record['padding']:.1%}",
        "parameters": f"{record['parameters']:,}",
        f"peak {memory}": f"{record['peak_memory_bytes'] / 2**30:.2f} GiB",
        "the machine's rate of matrix products in this precision": f"{rate:,.0f} GFLOP/s",
        "share of that rate reached in training": f"{record['matrix_share']:.0%}",
        "precision, device, threads": f"{record['precision']}, {record['device']}, {record['threads']}",
    }
    return "\n".join(["| measure | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark train`."""
    parser.add_argument("--data", required=True, metavar="PREFIX,PREFIX", help="parallel files PREFIX.en and PREFIX.vi")
    parser.add_argument("--updates", type=int, default=40, help="updates in total (default: %(default)s)")
    parser.add_argument(
        "--warmup",
        type=int,
        default=5,
        help="unmeasured updates at the start; on a GPU, give those of two epochs (default: %(default)s)",
    )
    parser.add_argument(
        "--precision", help="trainer.precision, such as bf16-mixed (default: that of the overrides, or 32-true)"
    )
    parser.add_argument("--profile", type=int, default=0, metavar="N", help="also print the N slowest operations")
    parser.add_argument("overrides", nargs="*", help="overrides of nmt.train, such as model=luong scorer=general")
