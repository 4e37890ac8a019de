"""Kill a training run at random moments, resume it each time, and compare it with an uninterrupted run.

    python -m tests.soak.kills --kills 30 --seed 1

The process kills itself with SIGKILL at moments drawn at random: between two training steps; during validation, while
computing the loss or translating; while writing a checkpoint, after part of its bytes; or between renaming two files.
--signals N adds N moments with SIGTERM or SIGINT, after which the process must save and exit with 143 or 130. In the
end, the last checkpoint's weights and optimizer state and the best weights must be bit for bit those of the
uninterrupted run, and both run directories must contain the same files.
"""

import argparse
import os
import random
import runpy
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file

TRAINING = [
    "model=transformer",
    "model.dim=32",
    "model.ffn_dim=64",
    "model.num_heads=2",
    "model.num_layers=1",
    "model.dropout=0.2",
    "tokenizer.size=800",
    "batching.batch_tokens=512",
    "trainer.accumulate_grad_batches=2",
    "trainer.accelerator=cpu",
    "trainer.max_steps=1500",
    "trainer.log_every_n_steps=10",
    "schedule.warmup=40",
    "ema_decay=0.9",
    "checkpoints.keep=2",
    "checkpoints.recent=2",
    "validation.every=15",
    "validation.sentences=20",
    # Early stopping would leave nothing to kill.
    "validation.patience=100000",
]
MOMENTS = ("training", "validation loss", "validation BLEU", "writing", "renaming")
SIGNALS = {"SIGTERM": 143, "SIGINT": 130}


class Moment(NamedTuple):
    """The `number`th time that `name` happens in a process; a write is cut to `share` of its bytes."""

    name: str
    number: int
    share: float

    @classmethod
    def draw(cls, name: str, chance: random.Random) -> "Moment":
        most = {"training": 45, "validation loss": 6, "writing": 4, "renaming": 6, **dict.fromkeys(SIGNALS, 60)}
        return cls(name, chance.randint(1, most.get(name, 2)), chance.random())


def stop_at(moment: Moment) -> None:
    """Makes this process kill itself, or send itself a signal, at a moment."""
    from nmt.training import validation
    from nmt.training.task import TranslationTask

    number = signal.Signals[moment.name] if moment.name in SIGNALS else signal.SIGKILL
    places: dict[str, tuple[Any, str]] = {
        "validation loss": (TranslationTask, "validation_step"),
        "validation BLEU": (validation.ValidationBleu, "_measure"),
        "writing": (os, "fsync"),
        "renaming": (os, "replace"),
    }
    owner, name = places.get(moment.name, (TranslationTask, "training_sums"))
    own, times = getattr(owner, name), Counter[str]()

    def counted(*given: Any, **options: Any) -> Any:
        if owner is os:
            # Only checkpoints count: most other files are written before the first step.
            path = f"/proc/self/fd/{given[0]}" if isinstance(given[0], int) else given[0]
            if "/checkpoints/" not in os.path.realpath(path):
                return own(*given, **options)
        times[name] += 1
        if times[name] == moment.number:
            if moment.name == "writing":
                os.ftruncate(given[0], int(moment.share * os.fstat(given[0]).st_size))
            os.kill(os.getpid(), number)
        return own(*given, **options)

    setattr(owner, name, counted)


def child(moment: Moment, overrides: list[str]) -> None:
    """Runs nmt.train with the overrides in this process, stopped at a moment."""
    stop_at(moment)
    sys.argv = ["nmt.train", *overrides]
    runpy.run_module("nmt.train", run_name="__main__", alter_sys=True)


def train(overrides: list[str], moment: Moment | None = None) -> subprocess.CompletedProcess[str]:
    """Runs nmt.train in its own process, on one thread: sums must not depend on how they are split."""
    script = ["-m", "nmt.train"]
    if moment is not None:
        script = ["-m", "tests.soak.kills", "--child", moment.name, str(moment.number), str(moment.share)]
    return subprocess.run(
        [sys.executable, *script, *overrides],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def differences(run: Path, other: Path) -> list[str]:
    """The numbers and files in which two runs differ. Logs are excluded, because each process has its own folder."""
    found = []
    one, two = (torch.load(each / "checkpoints" / "last.ckpt", weights_only=True) for each in (run, other))
    for key in ("state_dict", "optimizer_states", "lr_schedulers", "target_tokens", "global_step"):
        found += [f"last.ckpt: {key}"] if not _equal(one[key], two[key]) else []
    best = [load_file(each / "model.safetensors") for each in (run, other)]
    found += [] if _equal(*best) else ["model.safetensors"]
    files = [{str(path.relative_to(each)) for path in each.rglob("*") if path.is_file()} for each in (run, other)]
    extra = sorted(name for name in files[0] ^ files[1] if not name.startswith("logs/"))
    return found + [f"{name} exists in only one of them" for name in extra]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


def study(folder: Path, moments: list[Moment]) -> Counter[str]:
    """Stops a run at each moment; returns how often each kind occurred. Raises RuntimeError on another exit code.

    Prints progress, because each of the processes spends most of its time on starting.
    """
    cache = f"cache_dir={folder / 'cache'}"
    whole, stopped = (["run_dir=" + str(folder / name), cache, *TRAINING] for name in ("whole", "stopped"))
    begun = time.monotonic()

    def tell(message: str) -> None:
        print(f"{time.monotonic() - begun:5.0f} s: {message}", file=sys.stderr, flush=True)

    tell("training without a stop, to compare with")
    ended = train(whole)
    if ended.returncode:
        raise RuntimeError(f"The uninterrupted run ended with {ended.returncode}:\n{ended.stderr}")
    times = Counter[str]()
    for number, moment in enumerate(moments, start=1):
        resume = ["resume=true"] if (folder / "stopped" / "config.yaml").is_file() else []
        ended = train([*stopped, *resume], moment)
        expected = SIGNALS.get(moment.name, -signal.SIGKILL)
        if ended.returncode != expected:
            raise RuntimeError(f"{moment} ended with {ended.returncode}, not {expected}:\n{ended.stderr}")
        times[moment.name] += 1
        tell(f"{number}/{len(moments)} {moment}: {ended.returncode}")
    tell("resuming until the end")
    ended = train([*stopped, "resume=true"])
    if ended.returncode:
        raise RuntimeError(f"The last resumed run ended with {ended.returncode}:\n{ended.stderr}")
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30, help="moments with SIGKILL (default: %(default)s)")
    parser.add_argument("--signals", type=int, default=6, help="moments with SIGTERM or SIGINT (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments (default: %(default)s)")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("overrides", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, number, share = options.child
        child(Moment(name, int(number), float(share)), options.overrides)
        return
    chance = random.Random(options.seed)
    names = [MOMENTS[index % len(MOMENTS)] for index in range(options.kills)]
    names += [list(SIGNALS)[index % 2] for index in range(options.signals)]
    chance.shuffle(names)
    with TemporaryDirectory() as name:
        times = study(Path(name), [Moment.draw(each, chance) for each in names])
        found = differences(Path(name) / "whole", Path(name) / "stopped")
    print("stopped:", ", ".join(f"{count} x {name}" for name, count in sorted(times.items())))
    print("differences:", ", ".join(found) or "none; every weight is the same bit for bit")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
