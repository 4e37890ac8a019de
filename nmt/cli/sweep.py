"""A sweep: Hydra runs one job for each combination of the given values, in this process or in others."""

import json
import os
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from nmt.cli.compose import job_of, parsed, run_hydra
from nmt.config.job import JobRecord
from nmt.errors import Mistake, report
from nmt.files import write_json


def run_sweep(name: str, run: str, after_sweep: str | None, arguments: Sequence[str]) -> int:
    """Runs all jobs of a sweep, prints the report that `after_sweep` makes, and returns the worst exit code.

    A job that fails does not stop the others. Raises Mistake if Hydra rejects the whole sweep.
    """
    given = [argument for argument in arguments if not argument.startswith("-")]
    overrides = parsed(name, given, sweep=True)
    # Other sweepers, such as Optuna's, have their own settings for the values to try.
    if not any(each.is_sweep_override() or each.key_or_group.startswith("hydra") for each in overrides):
        raise Mistake("-m runs one job per value, but no key has more than one value. Write key=A,B or drop -m.")
    with TemporaryDirectory() as folder:
        records = Path(folder)

        def run_job(composed: Any) -> None:
            _run_job(name, run, records)

        sys.argv[1:] = ["--multirun", *given]
        os.environ["HYDRA_FULL_ERROR"] = "1"  # otherwise Hydra prints errors itself and exits
        try:
            run_hydra(name, run_job, overrides)
        finally:
            jobs = _read(records)
            # The other processes of a distributed job run the same command; only the first one prints a report.
            if after_sweep and jobs and "LOCAL_RANK" not in os.environ:
                print(pkgutil.resolve_name(after_sweep)(jobs))
    return max((job.exit_code for job in jobs), default=0, key=lambda code: (code == 1, code))


def _run_job(name: str, run: str, records: Path) -> None:
    """Runs one job and records how it ended. Until then, the record says that the job is not finished."""
    known: Any = HydraConfig.get()
    overrides: Any = OmegaConf.to_container(known.overrides.task, resolve=False)
    folder = Path(known.runtime.output_dir)
    file = records / f"{known.job.num}.json"
    begun = JobRecord(known.job.num, str(folder), overrides, 1, "not finished")
    write_json(file, begun._asdict())
    code, sentence = 0, ""
    try:
        pkgutil.resolve_name(run)(job_of(name, overrides, overrides, folder))
    except Exception as error:
        # Reported here, because an error that reaches Hydra ends the sweep.
        code, sentence = report(error, f"error in {' '.join(overrides)}"), str(error)
    write_json(file, begun._replace(exit_code=code, error=sentence)._asdict())


def _read(records: Path) -> list[JobRecord]:
    """All records in the order of their jobs."""
    found = [JobRecord(**json.loads(file.read_text(encoding="utf-8"))) for file in records.glob("*.json")]
    return sorted(found, key=lambda record: record.number)
