"""Try random inputs of every parser of what a stranger may have made, and count how they end.

    python -m tests.soak.fuzz --inputs 100000 --seed 1 --targets maps.npz zip

Each target gets --inputs inputs, or as many as fit into --seconds. An input that neither gives a value nor a Mistake or
CheckFailed in our own words is written to --out, one for each kind, and the exit code is 1. See tests/fuzzing.py.
"""

import argparse
import logging
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzzing import Workshop, inputs, outcome

LAWFUL = ("value", "Mistake", "CheckFailed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--targets", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=Path("fuzz_failures"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    failures, total = 0, Counter[str]()
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        workshop = Workshop(Path(folder))
        for name, target in workshop.targets.items():
            if arguments.targets and name not in arguments.targets:
                continue
            counts, started = Counter[str](), time.monotonic()
            for data in inputs(name, target, arguments.inputs, arguments.seed):
                kind, message = outcome(target, data)
                counts[kind] += 1
                if kind not in LAWFUL and counts[kind] == 1:
                    arguments.out.mkdir(parents=True, exist_ok=True)
                    file = arguments.out / f"{name}.{failures}"
                    file.write_bytes(data)
                    print(f"{file}: {kind}: {message[:300]}", flush=True)
                    failures += 1
                if time.monotonic() - started > arguments.seconds:
                    break
            total += counts
            seconds = time.monotonic() - started
            print(f"{name:20} {counts.total():>9,} in {seconds:5.0f} s: {dict(counts)}", flush=True)
        workshop.close()
    print(f"{'all':20} {total.total():>9,}: {dict(total)}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
