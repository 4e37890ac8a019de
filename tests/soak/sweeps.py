"""Kill a sweep twice, continue it with the same command, and compare its table with that of an uninterrupted sweep.

    python -m tests.soak.sweeps --launchers basic joblib submitit_local ray

The sweep has 12 tiny jobs, of which three fail. With each of Hydra's launchers, all processes of the command's group
are killed with SIGKILL, first after some jobs have ended and then after some more. In the end, the exit code and the
table (except speeds) must be those of an uninterrupted sweep on the basic launcher, the weights of every run must be
bit for bit the same, and a job that was finished before a kill must not have written its run again. Launchers other
than the basic one need the extra `sweeps`, `slurm` or `ray`.
"""

import argparse
import difflib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from safetensors.torch import load_file

from tests.tiny import TINY, write_corpora

JOBS = 12
SETTINGS = ["trainer.max_steps=9", "validation.every=3", "scorer=dot,general,additive"]
# The last value makes three jobs fail: with a mistake, or because the loss is not finite. The exit code of the sweep.
FAILING = {"model.num_heads=1,2,3,5": 2, "optimizer.lr=0.01,0.02,0.03,1e38": 1}
LAUNCHERS = {
    "basic": [],
    "joblib": ["hydra.launcher.n_jobs=2"],
    "submitit_local": ["hydra.launcher.timeout_min=60"],
    "ray": ["+hydra.launcher.ray.init.num_cpus=2", "+hydra.launcher.ray.init.include_dashboard=false"],
}


def start(arguments: list[str], log: Path) -> subprocess.Popen[str]:
    """nmt.train in a process group of its own, on one thread; its log is added to a file."""
    with log.open("a", encoding="utf-8") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "nmt.train", "-m", *arguments],
            cwd=log.parent,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )


def table(output: str, sweep: str) -> list[list[str]]:
    """The cells of the printed tables and the reasons of the failed jobs, without the columns of speeds."""
    output = output.replace(f" {sweep}/", " SWEEP/")  # messages name files
    rows = [[cell.strip() for cell in line.split("|")] for line in output.splitlines() if line.startswith("|")]
    speeds = {index for row in rows for index, cell in enumerate(row) if cell.endswith("/s")}
    failed = [[line] for line in output.splitlines() if line.startswith("- job")]
    return [[cell for index, cell in enumerate(row) if index not in speeds] for row in rows] + failed


def finished(folder: Path) -> dict[str, tuple[int, int]]:
    """The jobs of a sweep that are recorded as finished, with what changes if their weights are written again."""
    records = [json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("jobs/*/record.json")]
    weights = {one["folder"]: Path(one["folder"], "model.safetensors") for one in records if one["exit_code"] == 0}
    return {name: (file.stat().st_ino, file.stat().st_mtime_ns) for name, file in weights.items()}


def same_weights(one: Path, other: Path) -> bool:
    """Whether two sweeps have the same runs with the same weights."""
    runs = [{file.parent.name: load_file(file) for file in each.glob("*/model.safetensors")} for each in (one, other)]
    return runs[0].keys() == runs[1].keys() and all(
        runs[0][name].keys() == runs[1][name].keys()
        and all(weight.equal(runs[1][name][key]) for key, weight in runs[0][name].items())
        for name in runs[0]
    )


def killed_sweep(arguments: list[str], folder: Path, log: Path, chance: random.Random) -> tuple[str, int, list[str]]:
    """Runs a sweep that is killed twice; its output, its exit code, and the runs that were made again after a kill."""
    again: list[str] = []
    for more in (chance.randint(2, 4), chance.randint(2, 3)):
        before = finished(folder)
        process = start([*arguments, f"sweep_dir={folder}"], log)
        while process.poll() is None and len(finished(folder)) < len(before) + more:
            time.sleep(0.3)
        time.sleep(chance.uniform(0.0, 4.0))
        if process.poll() is not None:
            sys.exit(f"The sweep has ended by itself with {process.returncode}: see {log}")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        now = finished(folder)
        again += [name for name, file in before.items() if now.get(name) != file]
        print(f"killed with {len(now)} finished runs", file=sys.stderr)
    before = finished(folder)
    process = start([*arguments, f"sweep_dir={folder}"], log)
    output, _ = process.communicate()
    now = finished(folder)
    again += [name for name, file in before.items() if now.get(name) != file]
    return output, process.returncode, again


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launchers", nargs="+", default=["basic", "joblib"], choices=LAUNCHERS)
    parser.add_argument("--failing", default=next(iter(FAILING)), choices=FAILING, help="what makes jobs fail")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments (default: %(default)s)")
    parser.add_argument("--keep", type=Path, help="an empty folder for the sweeps and their logs")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with TemporaryDirectory() as name:
        folder = write_corpora((options.keep or Path(name)).absolute())
        settings = [*(item for item in TINY if not item.startswith("run_dir=")), *SETTINGS, options.failing]
        process = start([*settings, f"sweep_dir={folder}/whole"], folder / "whole.log")
        whole, _ = process.communicate()
        code = FAILING[options.failing]
        bad = process.returncode != code or len(finished(folder / "whole")) != JOBS * 3 // 4
        print(whole)
        for launcher in options.launchers:
            began = resource.getrusage(resource.RUSAGE_CHILDREN)
            sweep, log = folder / launcher, folder / f"{launcher}.log"
            arguments = [*settings, f"hydra/launcher={launcher}", *LAUNCHERS[launcher]]
            output, ended, again = killed_sweep(arguments, sweep, log, chance)
            records = len(list(sweep.glob("jobs/*/record.json")))
            checks = {
                f"exit code {ended}": ended == code,
                "the same table": table(output, launcher) == table(whole, "whole"),
                "the same weights": same_weights(sweep, folder / "whole"),
                f"{records} records": records == JOBS,
                f"{len(again)} runs made again": not again,
            }
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = used.ru_utime + used.ru_stime - began.ru_utime - began.ru_stime
            print(
                f"{launcher}: ", "; ".join(("" if held else "NOT ") + check for check, held in checks.items()), end=""
            )
            print(f"; {cpu:.0f} CPU seconds of processes that the command waited for", flush=True)
            if not checks["the same table"]:
                print(*difflib.unified_diff(whole.splitlines(), output.splitlines(), lineterm=""), sep="\n")
            bad = bad or not all(checks.values())
    sys.exit(bad)


if __name__ == "__main__":
    main()
