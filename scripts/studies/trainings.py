"""Runs many trainings from one command: parallel processes with logs, resumed after an interruption."""

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

from nmt.errors import Mistake
from nmt.runs.directory import RunDirectory


def resuming(run: RunDirectory) -> list[str]:
    """The overrides that resume a run if it was already started."""
    if not run.started:
        return []
    # Before its first checkpoint there is nothing to resume.
    return ["resume=true" if (run.checkpoints / "last.ckpt").is_file() else "overwrite=true"]


def threads_each(jobs: int) -> int:
    """The threads of each parallel run: OMP_NUM_THREADS, or an equal share of the cores.

    Raises Mistake unless OMP_NUM_THREADS and `jobs` are at least 1.
    """
    if jobs < 1:
        raise Mistake(f"--jobs is {jobs}; it must be at least 1.")
    given = os.environ.get("OMP_NUM_THREADS")
    if given is None:
        return max(1, (os.cpu_count() or 1) // jobs)
    if not given.isdecimal() or int(given) < 1:
        raise Mistake(f"OMP_NUM_THREADS is '{given}'; it must be an integer of at least 1.")
    return int(given)


def run_logged(name: str, command: Sequence[str], log: Path, threads: int) -> bool:
    """Runs 'python -m COMMAND', appending its output to a log; returns whether it succeeded."""
    print(f"{name}: python -m {shlex.join(command)}", file=sys.stderr)
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with log.open("a", encoding="utf-8") as file:
        print(f"$ OMP_NUM_THREADS={threads} python -m {shlex.join(command)}", file=file, flush=True)
        code = subprocess.run([sys.executable, "-m", *command], stdout=file, stderr=file, env=environment).returncode
    if code:
        print(f"{name}: failed, exit code {code}: {last_line(log)}", file=sys.stderr)
    return code == 0


def last_line(log: Path) -> str:
    """The last non-empty line of a log."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "not started")


def run_parallel(jobs: int, tasks: Sequence[Callable[[], None]]) -> None:
    """Runs all tasks, at most `jobs` at a time."""
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            for future in futures:
                future.result()
        except BaseException:
            # Ctrl-C reaches the running commands themselves; the waiting ones must not start.
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def circumstances(study: str, arguments: Sequence[str], jobs: int, threads: int) -> dict[str, Any]:
    """Where and how the runs are made, for the report."""
    return {
        "command": shlex.join(["python", "-m", f"scripts.studies.{study}", *arguments]),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "jobs": jobs,
        "threads": threads,
        "date": date.today().isoformat(),
    }


def _cpu() -> str:
    """The name of the processor. On Linux only /proc/cpuinfo has it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = (line.split(":", maxsplit=1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
