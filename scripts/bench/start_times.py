"""Measure the seconds from start to end of short commands: a line of text, --help, and training to its first step.

    OMP_NUM_THREADS=2 python -m scripts.bench.start_times --rounds 7
    sudo python -m scripts.bench.start_times --rounds 3 --cold

Each round runs every command once. The first round fills the system's cache of files and nmt's own caches, such as the
tokenized corpus and the export of engine=auto, and is not counted. --cold empties the system's cache before each
command, which only root may do, and only on Linux. Prints a table with the median, and the fastest and slowest command.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback

from nmt.errors import Mistake
from scripts.mistakes import report_mistakes

LINE = "The weather is good today.\n"
COMMANDS = {
    "one line, `engine=auto`": ("nmt.translate", "run_dir=en-vi"),
    "one line, `engine=torch`": ("nmt.translate", "run_dir=en-vi", "engine=torch"),
    "`nmt.translate --help`": ("nmt.translate", "--help"),
    "`nmt.train --help`": ("nmt.train", "--help"),
    "`nmt --help`": ("nmt", "--help"),
    "`nmt.train`, to its first step": (
        "nmt.train",
        "+callbacks.first_step._target_=scripts.bench.start_times.ExitAfterFirstStep",
    ),
}


class ExitAfterFirstStep(Callback):
    """Ends the process after the first optimizer step, without the validation and scores that would follow."""

    def on_train_batch_end(self, *_: Any) -> None:
        os._exit(0)


def seconds(command: tuple[str, ...], cold: bool) -> float:
    """Runs a command and returns how long it took. Training writes its run to a temporary folder.

    Raises RuntimeError if the command fails.
    """
    if cold:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
    with tempfile.TemporaryDirectory() as folder:
        run_dir = [f"run_dir={folder}/run"] if command[0] == "nmt.train" and "--help" not in command else []
        start = time.perf_counter()
        ended = subprocess.run([sys.executable, "-m", *command, *run_dir], input=LINE, text=True, capture_output=True)
        elapsed = time.perf_counter() - start
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr}")
    return elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count (default: %(default)s)")
    parser.add_argument("--cold", action="store_true", help="empty the system's cache of files before each command")
    options = parser.parse_args()
    if options.rounds < 1:
        raise Mistake(f"--rounds is {options.rounds}: use at least 1.")
    if options.cold and not os.access("/proc/sys/vm/drop_caches", os.W_OK):
        raise Mistake(
            "--cold needs root on Linux, to write /proc/sys/vm/drop_caches: run it with sudo, or without --cold."
        )
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for measured_round in range(options.rounds + 1):
        for name, command in COMMANDS.items():
            elapsed = seconds(command, options.cold)
            if measured_round > 0:
                taken[name].append(elapsed)
    print("| command | seconds (fastest to slowest) |\n|---|---|")
    for name, times in taken.items():
        print(f"| {name} | {statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f}) |")


if __name__ == "__main__":
    report_mistakes(main)
