"""Kill nmt.translate input=FILES output=FOLDER at random moments, and compare the result with a plain translation.

    python -m tests.soak.translation_jobs --lines 3000 --kills 20 --seed 1 run_dir=en-vi

Two processes share each job (`shard=1/2` and `shard=2/2`), and one or both of them are killed with SIGKILL after a
random time. A job that ends nevertheless is followed by another one, until `--kills` kills are done. Every job has two
inputs, which the processes name in different order. Every line must be there once, in order, and byte for byte as
`nmt.translate < FILE` writes it, and nothing else may be left in the folder. The arguments after the options are passed
to nmt.translate.
"""

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

CORPUS = Path(__file__).resolve().parents[2] / "data" / "sample" / "train.en"


def start(arguments: list[str], **streams: object) -> subprocess.Popen[bytes]:
    """nmt.translate on one thread: two processes run at a time."""
    command = [sys.executable, "-m", "nmt.translate", *arguments]
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, **streams)  # type: ignore[call-overload]


def cpu_seconds() -> float:
    """CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=3000, help="lines to translate (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=20, help="kills with SIGKILL (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments (default: %(default)s)")
    parser.add_argument("arguments", nargs="*", default=["run_dir=en-vi", "search.beam_size=1"])
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with TemporaryDirectory() as name:
        source, second, plain = Path(name, "in.en"), Path(name, "second.en"), Path(name, "plain.vi")
        lines = CORPUS.read_text(encoding="utf-8").splitlines(keepends=True)
        # Repeated lines would hide a line that is translated twice or in the wrong place.
        numbered = [f"{number} {lines[number % len(lines)]}" for number in range(options.lines)]
        # The second file has part of the lines of the first one, in the same order.
        source.write_text("".join(numbered))
        second.write_text("".join(numbered[: len(numbered) // 3]))
        began = cpu_seconds(), time.monotonic()
        with source.open("rb") as given, plain.open("wb") as out:
            if start(options.arguments, stdin=given, stdout=out).wait():
                sys.exit("The plain translation failed.")
        plain_cpu, plain_wall = cpu_seconds() - began[0], time.monotonic() - began[1]
        began_cpu, kills, jobs, same = cpu_seconds(), 0, 1, True
        while True:
            out = Path(name, f"out{jobs}")
            job = [*options.arguments, f"output={out}", "shard_lines=100"]
            processes = [
                start([*job, f"input=[{inputs}]", f"shard={number}/2"], stdout=subprocess.DEVNULL)
                for number, inputs in ((1, f"{source},{second}"), (2, f"{second},{source}"))
            ]
            killed = chance.choice([processes[:1], processes[1:], processes])[: options.kills - kills]
            if killed:
                # Some kills come while a process starts, others while it translates.
                time.sleep(chance.uniform(0.0, max(3.0, plain_wall / 2)))
                for process in killed:
                    process.send_signal(signal.SIGKILL)
                kills += len(killed)
            codes = [process.wait() for process in processes]
            if not set(codes) <= {0, -signal.SIGKILL}:
                sys.exit(f"exit codes {codes}")
            targets = [out / "in.vi", out / "second.vi"]
            # Dead processes leave something behind that the job still has to delete.
            if all(target.exists() for target in targets) and (codes == [0, 0] or not list(out.glob("*.parts"))):
                whole = plain.read_bytes()
                same = same and targets[0].read_bytes() == whole
                same = same and targets[1].read_bytes() == b"".join(whole.splitlines(True)[: len(numbered) // 3])
                left = sorted(path.name for path in out.iterdir())
                if left != ["in.vi", "job.json", "second.vi"]:
                    sys.exit(f"The folder of the finished job has {left}.")
                # Only a job that is not finished has anything to lose.
                jobs += bool(killed)
            elif not killed:
                sys.exit("Both processes have ended, but the job is not finished.")
            print(f"{kills} kills, exit codes {codes}", file=sys.stderr)
            if not killed:
                break
        job_cpu = cpu_seconds() - began_cpu
    print(f"{options.lines} lines, plain: {plain_cpu:.1f} CPU-seconds; {jobs} jobs with {kills} kills: {job_cpu:.1f}")
    print("byte-identical" if same else "DIFFERENT")
    sys.exit(not same)


if __name__ == "__main__":
    main()
