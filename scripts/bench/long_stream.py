"""Stream many short lines through `nmt.translate`: time to the first output, memory, order, and exit codes.

    python -m scripts.bench.long_stream runs/demo --lines 1000000

Lines are drawn at random from the sample corpus's short phrases. Every thousandth output is compared with the
translation of its line alone, which detects lost, repeated and misplaced lines. Then the same command is stopped by a
closed pipe and by Ctrl-C; it must exit with 141 and 130, and print nothing but "interrupted" after Ctrl-C.
"""

import argparse
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import nmt
from nmt.text.lines import read_lines
from scripts.processes import resident_mib

PHRASES = Path(__file__).resolve().parents[2] / "data" / "sample" / "phrases.en"
SEARCH = ("search.beam_size=1", "search.constraints.max_length=4")
EVERY = 1000


def lines(number: int, seed: int) -> Iterator[str]:
    """Short phrases of the sample corpus, drawn at random."""
    short = [line for line in read_lines(PHRASES) if len(line.split()) <= 3]
    draw = random.Random(seed)
    return (draw.choice(short) for _ in range(number))


def start(run_dir: str, errors: IO[bytes] | None) -> subprocess.Popen[bytes]:
    # engine=auto would say on standard error which engine it chooses.
    command = [sys.executable, "-m", "nmt.translate", f"run_dir={run_dir}", "engine=torch", *SEARCH]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)


def feed(process: subprocess.Popen[bytes], number: int, seed: int) -> threading.Thread:
    """Writes the lines in a thread, while the caller reads their translations."""

    def write() -> None:
        try:
            with process.stdin as pipe:  # type: ignore[union-attr]
                pipe.writelines(f"{line}\n".encode() for line in lines(number, seed))
        except BrokenPipeError:
            pass  # expected when the process is stopped

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def stream(run_dir: str, number: int, seed: int) -> bool:
    """Prints time and memory; returns whether every line came out and the sampled ones are right."""
    begun = time.monotonic()
    with start(run_dir, None) as process:
        writer = feed(process, number, seed)
        sampled, count = [], 0
        for count, raw in enumerate(process.stdout, start=1):  # type: ignore[arg-type]
            if count == 1:
                print(f"first line out after {time.monotonic() - begun:.1f} s, including start-up")
            if count % EVERY == 0:
                sampled.append(raw.decode().rstrip("\n"))
            if count in (number // 10, number - 1):
                rate = count / (time.monotonic() - begun)
                print(f"{count:,} lines: {resident_mib(process.pid):.0f} MiB, {rate:,.0f} lines per second", flush=True)
        writer.join()
        print(f"lines in {number:,}, lines out {count:,}, exit code {process.wait()}")
    search = {"beam_size": 1, "constraints": {"max_length": 4}}
    expected = nmt.load(run_dir).translate([*islice(lines(number, seed), EVERY - 1, None, EVERY)], **search)
    right = sum(a == b for a, b in zip(sampled, expected, strict=False))
    print(f"correct: {right} of {len(expected)} compared outputs ({len(set(expected))} distinct)")
    return count == number and right == len(expected)


def stopped(run_dir: str, name: str, code: int, message: str) -> bool:
    """Stops the command after its first output; returns whether it exits with this code and message."""
    with TemporaryFile() as errors, start(run_dir, errors) as process:
        writer = feed(process, 100_000, seed=2)
        process.stdout.readline()  # type: ignore[union-attr]
        if name == "Ctrl-C":
            process.send_signal(signal.SIGINT)
            process.stdout.read()  # type: ignore[union-attr]
        else:
            process.stdout.close()  # type: ignore[union-attr]
        writer.join()
        process.wait()
        errors.seek(0)
        said = errors.read().decode()
    print(f"{name}: exit code {process.returncode}, standard error {said!r}")
    return process.returncode == code and said == message


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_dir", help="directory of a finished run")
    parser.add_argument("--lines", type=int, default=1_000_000, help="number of lines (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (default: %(default)s)")
    args = parser.parse_args()
    checks = [
        stream(args.run_dir, args.lines, args.seed),
        stopped(args.run_dir, "closed pipe", 141, ""),
        stopped(args.run_dir, "Ctrl-C", 130, "interrupted\n"),
    ]
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
