"""A sweep: Hydra runs one job for each combination of the given values, in this process or in others.

With sweep_dir=FOLDER, the command can be stopped at any moment and run again: each job has a folder named after its
overrides, so finished jobs are kept, stopped ones are resumed, and other values add jobs.
"""

import hashlib
import itertools
import logging
import os
import pkgutil
import re
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override, Quote, QuotedString
from omegaconf import OmegaConf
from pydantic import ConfigDict

from nmt.cli.compose import job_of, run_hydra
from nmt.cli.configs import composed_config, sweep_folder
from nmt.cli.log import log_to_standard_error
from nmt.cli.overrides import has_hydras_sweeper, jobs_of_sweep, parsed
from nmt.config.job import JobRecord
from nmt.config.schema import NOT_STORED
from nmt.config.stored import Count, Stored, read_stored
from nmt.errors import CheckFailed, Mistake, report
from nmt.files import locked, temporary_folder, write_json
from nmt.paths import check_writable
from nmt.ranks import is_alone, rank
from nmt.signals import received_signal

logger = logging.getLogger(__name__)

_LONGEST_NAME = 100  # bytes, without the hash


class _StoredRecord(Stored):
    """The file of a JobRecord."""

    model_config = ConfigDict(extra="forbid")
    number: Count
    folder: str
    overrides: list[str]
    exit_code: int
    error: str


class Sweep(NamedTuple):
    """What every job of a sweep knows; the processes of a launcher get a copy."""

    name: str
    """The command."""
    function: str
    """What runs a job, as 'module:function'."""
    run_directory: str | None
    """The class of the folders that the jobs write, as 'module:class'; None if the command writes no runs."""
    resumable: bool
    """Whether the command line gives sweep_dir."""
    named: bool
    """Whether the command line names the jobs' folders itself, by hydra.sweep.subdir."""
    record_folder: Path
    """The folder for the records of this command's jobs."""

    def run_in(self, folder: Path) -> Any:
        """The run in a job's folder; None if the command writes no runs."""
        return None if self.run_directory is None else pkgutil.resolve_name(self.run_directory)(folder)


class _Place(NamedTuple):
    """Where a sweep writes."""

    folder: Path | None
    """The folder of its runs; None if there are none, or if only Hydra knows it."""
    parent_of_records: Path | None
    """None: the system's folder for temporary files."""
    named_by_time: bool
    """Whether the folder has the name that is used if the command line gives none."""


def run_sweep(
    name: str, function: str, after_sweep: str | None, run_directory: str | None, arguments: Sequence[str]
) -> int:
    """Runs all jobs of a sweep, prints the report that `after_sweep` makes, and returns the worst exit code.

    A job that fails does not stop the others. Raises Mistake if Hydra rejects the whole sweep.
    """
    typed = [argument for argument in arguments if not argument.startswith("-")]
    overrides = parsed(name, typed, sweep=True)
    by_key = {override.key_or_group: override for override in overrides}
    sweep_dir = _sweep_dir(overrides)
    writes_runs = run_directory is not None
    _check_keys(name, overrides, sweep_dir, writes_runs)
    typed_dir = by_key["hydra.sweep.dir"].value() if "hydra.sweep.dir" in by_key else None
    place = _place(sweep_dir, typed_dir, writes_runs, has_launcher="hydra/launcher" in by_key)
    # The processes of a distributed job must agree on the folder, which each of them names after the time.
    with _records_in(place.parent_of_records, new=place.named_by_time and is_alone()) as record_folder:
        hydras_dir: Path | None = None
        if place.named_by_time:
            hydras_dir = Path(os.path.relpath(record_folder.parent))
        elif sweep_dir is not None:
            hydras_dir = place.folder
        elif typed_dir is None:
            hydras_dir = record_folder / "hydra"  # for Hydra's multirun.yaml, which nobody asked for
        if hydras_dir is not None:
            typed.append(f"hydra.sweep.dir={QuotedString(str(hydras_dir), Quote.single).with_quotes()}")
        sweep = Sweep(
            name=name,
            function=function,
            run_directory=run_directory,
            resumable=sweep_dir is not None,
            named="hydra.sweep.subdir" in by_key,
            record_folder=record_folder,
        )

        def run_job(composed: Any) -> float | None:
            return _run_job(sweep)

        sys.argv[1:] = ["--multirun", *typed]
        os.environ["HYDRA_FULL_ERROR"] = "1"  # otherwise Hydra prints errors itself and exits
        records: list[JobRecord] = []
        try:
            run_hydra(name, run_job, overrides)
            hydras = [text for text in typed if text.startswith("hydra")]
            records = _missing_records(sweep, overrides, hydras)
        finally:
            records = sorted([*records, *map(_read, record_folder.glob("*.json"))])
            if after_sweep and records and rank() == 0:
                folder = None if place.folder is None else record_folder.parent
                command = shlex.join(["python", "-m", f"nmt.{name}", *arguments])
                print(pkgutil.resolve_name(after_sweep)(records, folder, command))
    return max((record.exit_code for record in records), default=0, key=lambda code: (code == 1, code))


def _sweep_dir(overrides: Sequence[Override]) -> Any:
    """The value of sweep_dir; None if it is not given."""
    given = [override for override in overrides if override.get_key_element() == "sweep_dir"]
    if any(override.is_sweep_override() or isinstance(override.value(), (list, dict)) for override in given):
        raise Mistake("sweep_dir must be one folder for the whole sweep; quote its name if it has a comma.")
    return given[-1].value() if given else None


def _check_keys(name: str, overrides: Sequence[Override], sweep_dir: Any, writes_runs: bool) -> None:
    """Raises Mistake for keys that are missing in a sweep, or have no effect in it."""
    # Other sweepers, such as Optuna's, have their own settings for the values to try.
    several = any(override.is_sweep_override() or override.key_or_group.startswith("hydra") for override in overrides)
    if not several and sweep_dir is None:
        raise Mistake("-m runs one job per value, but no key has more than one value. Write key=A,B or drop -m.")
    by_key = {override.key_or_group: override for override in overrides}
    # hydra.sweep.subdir may be made of run_dir.
    if writes_runs and "run_dir" in by_key and "hydra.sweep.subdir" not in by_key:
        remedy = "leave it out" if sweep_dir is not None else "write sweep_dir=FOLDER instead"
        raise Mistake(
            f"'{by_key['run_dir'].input_line}' has no effect in a sweep, where each job has its own folder in "
            f"sweep_dir: {remedy}."
        )
    if sweep_dir is not None and not writes_runs:
        raise Mistake(f"nmt.{name} writes no runs that sweep_dir could resume; leave out sweep_dir={sweep_dir}.")


def _place(sweep_dir: Any, hydras_dir: Any, writes_runs: bool, has_launcher: bool) -> _Place:
    """Where a sweep writes, by the values of sweep_dir and hydra.sweep.dir. Raises Mistake if it cannot write there."""
    named_by_time = writes_runs and sweep_dir is None and hydras_dir is None
    folder: Path | None = None
    if sweep_dir is not None:
        check_writable("sweep_dir", sweep_dir)
        folder = Path(str(sweep_dir))
    elif named_by_time:
        folder = Path("runs", "sweeps", time.strftime("%Y-%m-%d_%H-%M-%S"))
        check_writable("hydra.sweep.dir", folder)
    elif hydras_dir is not None and "$" not in str(hydras_dir):  # only Hydra knows what an interpolation means
        check_writable("hydra.sweep.dir", hydras_dir)
        folder = Path(str(hydras_dir))
    if writes_runs:
        return _Place(folder, folder or Path(), named_by_time)
    # A launcher may run the jobs on other machines, which do not see this one's /tmp.
    return _Place(None, Path() if has_launcher else None, named_by_time)


@contextmanager
def _records_in(folder: Path | None, *, new: bool = False) -> Iterator[Path]:
    """A temporary folder for records, inside `folder`; `folder` and its new parents are removed again if nothing else
    is in them.

    None: in the system's folder for temporary files. With `new`, a number is added to the name of a folder that exists.
    """
    if folder is None:
        with TemporaryDirectory() as name:
            yield Path(name)
        return
    wanted, removable = folder, [path for path in (folder, *folder.parents) if not path.exists()]
    folder.parent.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(2):
        try:
            folder.mkdir()
            break
        except FileExistsError:
            if not new:
                break
            folder = wanted.with_name(f"{wanted.name}_{number}")
    if folder != wanted:
        removable = [folder]
    try:
        with temporary_folder(folder, "records") as records:
            yield records.absolute()
    finally:
        with suppress(OSError):  # the first one with something in it
            for path in removable:
                path.rmdir()


def _missing_records(sweep: Sweep, overrides: Sequence[Override], hydras: Sequence[str]) -> list[JobRecord]:
    """Records for the jobs that left none although the sweep has ended. There are none for other sweepers than Hydra's,
    which choose their jobs themselves.

    A job leaves no record if its machine or its launcher fails before it begins, or if it writes to another folder.
    `hydras` are all of Hydra's settings in the sweep, of which nmt has chosen some.
    """
    if not has_hydras_sweeper(overrides):
        return []
    error = (
        f"left no record in {sweep.record_folder.parent}: see the logs of the launcher, which must run jobs "
        "where this folder is shared"
    )
    recorded, missing = {int(file.stem) for file in sweep.record_folder.glob("*.json")}, list[JobRecord]()
    for number, job in enumerate(jobs_of_sweep(overrides)):
        if number not in recorded:
            hydras_folder = sweep_folder(composed_config(sweep.name, parsed(sweep.name, [*hydras, *job])), number)
            folder = str(_job_folder(sweep, hydras_folder.absolute(), job))
            missing.append(JobRecord(number=number, folder=folder, overrides=list(job), exit_code=1, error=error))
    for record in missing if rank() == 0 else []:
        logger.error("Job %d (%s) %s", record.number, " ".join(record.overrides), error)
    return missing


def _job_folder(sweep: Sweep, hydras_folder: Path, overrides: Sequence[str]) -> Path:
    """The folder of a job: the one that Hydra gives it, or with sweep_dir, one named after its overrides."""
    named_by_us = sweep.resumable and not sweep.named
    return hydras_folder.parent / job_name(overrides) if named_by_us else hydras_folder


def job_name(overrides: Sequence[str]) -> str:
    """The name of a job's folder: its overrides, shortened and with their hash if they are no good name."""
    settings = sorted(text for text in overrides if text.lstrip("+").partition("=")[0] not in NOT_STORED)
    text = ",".join(settings) or "defaults"
    name = re.sub(r"[^\w=.,@+-]+", "_", text).encode()[:_LONGEST_NAME].decode(errors="ignore")
    return name if name == text else f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _run_job(sweep: Sweep) -> float | None:
    """Runs one job and records how it ended. Until then, the record says that the job is not finished.

    Returns the validation score of the run, if the job made one: sweepers such as Optuna's choose values by it.
    """
    log_to_standard_error()  # in a process that a launcher has started; does nothing in the command's own
    hydra_config: Any = HydraConfig.get()
    overrides: Any = OmegaConf.to_container(hydra_config.overrides.task, resolve=False)
    # Normalized like Hydra's folder of the job.
    sweep_dir = Path(os.path.abspath(hydra_config.sweep.dir))
    hydras_folder = Path(hydra_config.runtime.output_dir)
    folder = _job_folder(sweep, hydras_folder, overrides)
    if folder != hydras_folder:
        # Hydra has made a folder such as sweep_dir/0, which stays empty unless a launcher uses it.
        with suppress(OSError):
            hydras_folder.rmdir()
    record = JobRecord(
        number=hydra_config.job.num, folder=str(folder), overrides=overrides, exit_code=1, error="not finished"
    )
    files, stored, earlier = [sweep.record_folder / f"{record.number}.json"], None, None
    write_json(files[0], record._asdict())
    leads = rank() == 0  # only the leader locks the job's folder and writes to it
    with ExitStack() as stack:
        if sweep.resumable:
            # hydra.sweep.subdir may be a path, also one that leads out of the sweep's folder.
            job = folder.relative_to(sweep_dir if folder.is_relative_to(sweep_dir) else folder.anchor)
            stored = sweep_dir / "jobs" / job / "record.json"
            if leads:
                # Another command that runs the same sweep waits here for the job, and then keeps its result. Training
                # locks the run directory itself, so this is a folder of its own.
                stack.enter_context(locked(stored.parent, wait=True, task=f"job {job}"))
        code, sentence = 0, ""
        try:
            if stored is not None:
                # All processes of a distributed job read the record, so that they keep the run or resume it together.
                earlier = _read(stored) if stored.is_file() else None
                # The record of a finished job must outlive a command with other overrides that is refused.
                if leads and (earlier is None or earlier.exit_code != 0 or _same(earlier, record)):
                    files.append(stored)
                    write_json(stored, record._asdict())
                _complete(sweep, record, earlier)
            else:
                pkgutil.resolve_name(sweep.function)(job_of(sweep.name, overrides, typed=overrides, sweep_dir=folder))
        except Exception as error:
            if number := received_signal():  # which a library turned into this error
                signal.raise_signal(number)
            # Reported here, because an error that reaches Hydra ends the sweep.
            code, sentence = report(error, f"error in {' '.join(overrides)}"), _sentence(error)
        if leads and stored is not None and earlier is not None and code == 0:
            files = [files[0], stored]
        for file in files:
            write_json(file, record._replace(exit_code=code, error=sentence)._asdict())
    run = None if code or not leads else sweep.run_in(folder)
    return None if run is None else run.best_value


def _complete(sweep: Sweep, record: JobRecord, earlier: JobRecord | None) -> None:
    """Starts the job, resumes it, or keeps its run if that is finished and was made with the same overrides."""
    folder = Path(record.folder)
    run = sweep.run_in(folder)
    overrides = parsed(sweep.name, record.overrides)
    replaced = any(override.key_or_group == "overwrite" and override.value() for override in overrides)
    if run.finished and not replaced and earlier is not None and _same(earlier, record):
        logger.info("Kept the finished run in %s", os.path.relpath(folder))
        return
    # Other overrides, in a folder that hydra.sweep.subdir names, are for the rules of resuming to refuse or accept.
    typed = [text for text in record.overrides if text.partition("=")[0] not in ("sweep_dir", "resume")]
    resume = f"resume={str(run.started and not replaced).lower()}"
    pkgutil.resolve_name(sweep.function)(job_of(sweep.name, [*record.overrides, resume], typed, sweep_dir=folder))


def _sentence(error: Exception) -> str:
    """The error for the record of a job; that of a bug may have no text, or only a key that is missing."""
    if isinstance(error, (Mistake, CheckFailed)):
        return str(error)
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _same(one: JobRecord, other: JobRecord) -> bool:
    """Whether two jobs have the same overrides."""
    return job_name(one.overrides) == job_name(other.overrides)


def _read(file: Path) -> JobRecord:
    return JobRecord(**read_stored(file, _StoredRecord, remedy="Delete it: the job is then resumed."))
