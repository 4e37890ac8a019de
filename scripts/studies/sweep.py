"""What the studies share: runs that are kept and resumed, and the circumstances under which they are made."""

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from nmt.cli.arguments import for_hydra
from nmt.cli.overrides import jobs_of_sweep, parsed
from nmt.cli.settings_class import settings_class
from nmt.cores import threads_of_process, usable_cores
from nmt.errors import Mistake
from nmt.files import write_json

_MADE = "made.json"


def threads_each(jobs: int) -> int:
    """The threads of each parallel run: OMP_NUM_THREADS, or an equal share of the cores.

    Raises Mistake unless OMP_NUM_THREADS and `jobs` are at least 1.
    """
    if jobs < 1:
        raise Mistake(f"--jobs is {jobs}; it must be at least 1.")
    return threads_of_process(default=max(1, usable_cores() // jobs))


def sweep(command: str, out: Path, name: str, overrides: Sequence[str], threads: int, jobs: int = 1) -> None:
    """Runs 'python -m COMMAND -m', `jobs` runs at a time: keeps finished runs, resumes stopped ones, starts the others.

    `name` is the name of a run's folder in `out`, such as 'base' or 'model_${seed}'. A run that fails has its reason in
    its record, see `unfinished`, and so has one that is refused. Raises Mistake if all are refused, or if `out` has a
    finished run with other overrides.
    """
    launcher = ["hydra/launcher=joblib", f"hydra.launcher.n_jobs={jobs}"] if jobs > 1 else []
    arguments = [command, "-m", *overrides, f"sweep_dir={out}", f"hydra.sweep.subdir={name}", *launcher]
    print(f"python -m {shlex.join(arguments)}", file=sys.stderr)
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    before = _records(out)
    # The study prints a table of its own.
    process = subprocess.run([sys.executable, "-m", *arguments], env=environment, stdout=subprocess.DEVNULL)
    if process.returncode == 2:
        written = [file for file, when in _records(out).items() if when != before.get(file)]
        exit_codes = {json.loads(file.read_text(encoding="utf-8"))["exit_code"] for file in written}
        number = 0 if exit_codes <= {2} else _number_of_jobs(command, overrides)
        # A job leaves the record of a finished run with other overrides as it is.
        if number < 2 or len(written) < number:
            raise Mistake(f"{command} refused the overrides, see above. If {out} has other runs, choose another --out.")
    if process.returncode not in (0, 1, 2):  # interrupted
        sys.exit(process.returncode)


def _records(out: Path) -> dict[Path, int]:
    """The records of a sweep's jobs, and when each was written."""
    return {file: file.stat().st_mtime_ns for file in out.glob("jobs/*/record.json")}


def _number_of_jobs(command: str, overrides: Sequence[str]) -> int:
    name = command.removeprefix("nmt.")
    _, *arguments = for_hydra(["-m", *overrides], settings_class(name))
    return len([*jobs_of_sweep(parsed(name, arguments, sweep=True))])


def unfinished(run: Path) -> str:
    """Why a run in a sweep's folder has no result."""
    record = run.parent / "jobs" / run.name / "record.json"
    return str(json.loads(record.read_text(encoding="utf-8"))["error"]) if record.is_file() else "not started"


def add_circumstances(out: Path, study: str, arguments: Sequence[str], jobs: int) -> None:
    """Records where and how runs are made in `out`, beside what is recorded there."""
    info = Path("/proc/cpuinfo")  # the only place that has the name of the processor on Linux
    lines = info.read_text(encoding="utf-8").split("\n") if info.is_file() else []
    names = (line.split(":", maxsplit=1)[1].strip() for line in lines if line.startswith("model name"))
    made = {
        "command": shlex.join(["python", "-m", f"scripts.studies.{study}", *arguments]),
        "cpu": next(names, platform.processor() or platform.machine()),
        "cores": usable_cores(),
        "jobs": jobs,
        "threads": threads_each(jobs),
        "date": date.today().isoformat(),
    }
    earlier = circumstances(out)
    if made not in earlier:
        write_json(out / _MADE, [*earlier, made])


def circumstances(out: Path) -> list[dict[str, Any]]:
    """What `add_circumstances` has recorded."""
    file = out / _MADE
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
