"""Measure the cost of OpenMP threads that spin while they wait, in training and in search.

    python -m scripts.bench.spinning --rounds 5 --threads 2

Each round starts a process for each setting. On a quiet machine, compare the elapsed seconds: the setting of
nmt.cli.command.limit_spinning should cost at most 2 % more than the default of the OpenMP library. Beside other work,
compare the CPU seconds.
"""

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from scripts.mistakes import report_mistakes

SETTINGS = {
    "default": {},
    "10,000 rounds": {"GOMP_SPINCOUNT": "10000"},
    "1,000 rounds": {"GOMP_SPINCOUNT": "1000"},
    "passive": {"OMP_WAIT_POLICY": "PASSIVE"},
}
TEXT = Path(__file__).resolve().parents[2] / "data" / "sample" / "test.en"
PARTS = ("search", "training")


def measure(lines: int, steps: int) -> list[tuple[float, float]]:
    """The elapsed and the CPU seconds of translating some lines and of training a Transformer's layer."""
    import torch

    import nmt

    run = nmt.load("en-vi", device="cpu")
    with TEXT.open(encoding="utf-8") as file:
        text = [line.strip() for line in itertools.islice(file, lines)]
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True)
    optimizer = torch.optim.Adam(layer.parameters())
    batch = torch.randn(32, 32, 256)

    def train(count: int) -> None:
        for _ in range(count):
            layer(batch).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    run.translate(text[:4])
    train(2)
    times = []
    for work in (lambda: run.translate(text, beam_size=5), lambda: train(steps)):
        began = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each process (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=60, help="lines to translate (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=60, help="training steps (default: %(default)s)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(*(number for pair in measure(options.lines, options.steps) for number in pair))
        return
    command = [sys.executable, "-m", "scripts.bench.spinning", "--child"]
    command += [f"--lines={options.lines}", f"--steps={options.steps}"]
    plain = {key: value for key, value in os.environ.items() if key not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    times: dict[str, list[list[float]]] = {name: [] for name in SETTINGS}
    for _ in range(options.rounds):
        for name, setting in SETTINGS.items():
            environment = {**plain, **setting, "OMP_NUM_THREADS": str(options.threads)}
            shown = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
            times[name].append([float(number) for number in shown.split()])
    print("| setting | " + " | ".join(f"{part}, {unit}" for part in PARTS for unit in ("s", "CPU-s")) + " |")
    print("|---|" + "---|" * 2 * len(PARTS))
    for name, rounds in times.items():
        print(
            f"| {name} | "
            + " | ".join(f"{statistics.median(column):.2f}" for column in zip(*rounds, strict=True))
            + " |"
        )


if __name__ == "__main__":
    report_mistakes(main)
