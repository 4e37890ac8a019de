"""Watch a long training run of a tiny model for leaks of memory, open files and threads.

    python -m tests.soak.long_run --steps 20000

The run validates, translates, and writes checkpoints and logs throughout. Exits with 1 if memory grows by more than 5%
from the first tenth of the run to the last, or if the number of open files or threads grows. Linux only.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from nmt.errors import Mistake
from scripts.mistakes import report_mistakes

TRAINING = [
    "model=transformer",
    "model.dim=16",
    "model.ffn_dim=32",
    "model.num_heads=2",
    "model.num_layers=1",
    "tokenizer.size=800",
    "batching.batch_tokens=256",
    "trainer.accelerator=cpu",
    "trainer.log_every_n_steps=100",
    "validation.every=200",
    "validation.sentences=4",
    "validation.patience=100000",
    "validation.monitor=loss",
    "checkpoints.recent=2",
]


class Held(NamedTuple):
    """The resources that a process uses; memory is in MiB."""

    memory: float
    files: int
    threads: int

    @classmethod
    def by(cls, process: int) -> "Held":
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
        values = dict(line.split(":", 1) for line in status)
        files = len(os.listdir(f"/proc/{process}/fd"))
        return cls(int(values["VmRSS"].split()[0]) / 1024, files, int(values["Threads"]))


def watch(folder: Path, steps: int, every: float) -> list[Held]:
    """Samples the resources from the first checkpoint to the last step. Raises RuntimeError if training fails."""
    options = [f"run_dir={folder / 'run'}", f"cache_dir={folder / 'cache'}", f"trainer.max_steps={steps}"]
    with (folder / "errors").open("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "nmt.train", *TRAINING, *options], stdout=subprocess.DEVNULL, stderr=errors
        )
        held = []
        while process.poll() is None:
            time.sleep(every)
            if not (folder / "run" / "checkpoints" / "last.ckpt").is_file():
                continue
            try:
                now = Held.by(process.pid)
            except (FileNotFoundError, ProcessLookupError, KeyError):
                break  # the process has just ended
            # Scoring the test split, after training, needs memory of its own.
            if not list((folder / "run").glob("model.safetensors*")):
                held.append(now)
        if process.wait():
            errors.seek(0)
            raise RuntimeError(errors.read())
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20000, help="training steps (default: %(default)s)")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between samples (default: %(default)s)")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        held = watch(Path(name), options.steps, options.every)
    if len(held) < 10:
        raise Mistake("The run was too short to sample; increase --steps or decrease --every.")
    tenth = max(1, len(held) // 10)
    print("| part of the run | memory, MiB | open files | threads |\n|---|---|---|---|")
    for part in (0, len(held) // 2 - tenth // 2, len(held) - tenth):
        some = held[part : part + tenth]
        ranges = (f"{min(values):,.0f} to {max(values):,.0f}" for values in zip(*some, strict=True))
        print(f"| {part / len(held):.0%} to {(part + tenth) / len(held):.0%} | {' | '.join(ranges)} |")
    first, last = (Held(*map(max, zip(*some, strict=True))) for some in (held[:tenth], held[-tenth:]))
    grown = last.memory > 1.05 * first.memory or last.files > first.files or last.threads > first.threads
    sys.exit(f"error: The run used more at its end, {last}, than at its start, {first}." if grown else 0)


if __name__ == "__main__":
    report_mistakes(main)
