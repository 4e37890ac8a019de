"""nmt.average: a new run directory whose weights are the mean of a run's checkpoints."""

import logging
from pathlib import Path
from typing import Any

from nmt.config.job import Job
from nmt.files import check_writable, locked
from nmt.models import Seq2Seq
from nmt.models.embeddings import with_plain_weights
from nmt.runs.directory import RunDirectory
from nmt.runs.evaluation import score_test_split
from nmt.runs.load import Trained, build_model, choose_device, load_run, save_weights
from nmt.runs.record import print_run, scores_record
from nmt.training.averaging import mean_weights
from nmt.training.checkpoints import BestCheckpoints, load_checkpoint

logger = logging.getLogger(__name__)

_KINDS = {"best": "best-*.ckpt", "recent": "recent-*.ckpt"}


def average(job: Job) -> None:
    """Writes the averaged run, evaluates it on the test split, and prints its folder and scores.

    Raises ValueError and FileExistsError before anything is written when the configuration cannot be used.
    """
    config = job.config
    source = load_run(Path(str(config["run_dir"])), config["device"])
    files = checkpoint_files(source, config["checkpoints"], config["number"])
    path = source.run.path
    out = RunDirectory(Path(str(config["out"])) if config["out"] else path.with_name(f"{path.name}_average"))
    if path.resolve().is_relative_to(out.path.resolve()):
        raise ValueError(f"out is {out.path}, which is or holds the run that is averaged; name another folder.")
    check_writable("out", out.path)
    out.require_free(config["overwrite"])
    before = out.state()
    logger.info("Averaging %s", ", ".join(file.name for file in files))
    weights = {name.removeprefix("model."): tensor for name, tensor in mean_weights(files).items()}
    model = build_model(source.config, source.tokenizers)
    model.load_state_dict(weights)
    with locked(out.path):
        if out.state() != before:
            raise ValueError(f"Another command has written to {out.path} meanwhile; run this one again.")
        _write(source, model, files, out, job)


def _write(source: Trained, model: Seq2Seq, files: list[Path], out: RunDirectory, job: Job) -> None:
    """The averaged run, finished with its last file, and its scores."""
    config = job.config
    out.clear()
    out.write_config(source.config)
    out.write_tokenizers(source.tokenizers, source.direction)
    save_weights(model, out.weights)
    metrics = {
        **source.run.metrics(),
        "command": job.command,
        "averaged": [file.name for file in files],
        "averaged_from": source.run.metrics()["command"],
        "scores": {},
    }
    out.write_metrics(metrics)
    with_plain_weights(model)
    place = choose_device(config["device"])
    trained = Trained(out, source.config, source.direction, source.tokenizers, model.eval().to(place), place)
    scores = score_test_split(trained)
    out.write_metrics({**metrics, "scores": {"test": scores_record(scores)} if scores else {}})
    print_run(out.path, scores)


def checkpoint_files(source: Trained, kind: str, number: Any) -> list[Path]:
    """The `number` best or newest checkpoints, or all of that kind. Raises ValueError for fewer than two."""
    if kind not in _KINDS:
        raise ValueError(f"checkpoints is '{kind}'; it must be one of {', '.join(_KINDS)}.")
    if number is not None and (not isinstance(number, int) or number < 2):
        raise ValueError(f"number is {number}; it must be a whole number of at least 2, for a mean, or null for all.")
    run, sign = source.run, -1 if source.settings.validation.better == "max" else 1
    files = run.checkpoints.glob(_KINDS[kind])
    found = sorted(files, key=(lambda file: _goodness(file, sign)) if kind == "best" else _step)
    setting, other = ("checkpoints.keep", "recent") if kind == "best" else ("checkpoints.recent", "best")
    if not found:
        raise ValueError(
            f"{run.checkpoints} has no {kind} checkpoints: train with {setting}=5, or give checkpoints={other}."
        )
    if len(found) < (number or 2):
        raise ValueError(
            f"{run.checkpoints} has {kind} checkpoints of {len(found)} validations, and {number or 2} are to be "
            f"averaged; train longer, with a smaller validation.every, or with a larger {setting}."
        )
    return found[-number:] if number else found


def _step(file: Path) -> int:
    return int(load_checkpoint(file)["global_step"])


def _goodness(file: Path, sign: int) -> tuple[float, int]:
    """The checkpoint's own validation score, times -1 where `sign` says that less is better; then the later one."""
    found = load_checkpoint(file)
    [state] = (state for name, state in found["callbacks"].items() if name.startswith(BestCheckpoints.__name__))
    return -sign * float(state["current_score"]), int(found["global_step"])
