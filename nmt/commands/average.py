"""nmt.average: a new run directory whose weights are the mean of a run's checkpoints."""

import logging
from pathlib import Path
from typing import Literal

from nmt.commands.average_settings import AverageSettings
from nmt.config.job import Job
from nmt.errors import CheckFailed, Mistake
from nmt.files import locked
from nmt.insight.unknown_words import known_words
from nmt.models.embeddings import with_plain_weights
from nmt.paths import check_writable
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun, build_model, choose_device, load_run, save_weights
from nmt.runs.memory import on_out_of_memory
from nmt.runs.record import print_run
from nmt.scoring.run_scores import score_test_split
from nmt.training.averaging import mean_weights
from nmt.training.checkpoints import BestCheckpoints, load_checkpoint

logger = logging.getLogger(__name__)


def average(job: Job[AverageSettings]) -> None:
    """Writes the averaged run, scores it on the test split, and prints its folder and scores.

    Raises Mistake, before anything is written, if the run, its checkpoints or `out` cannot be used.
    """
    settings = job.settings
    run = load_run(Path(settings.run_dir), settings.device)
    files = checkpoint_files(run, settings.checkpoints, settings.number)
    path = run.directory.path
    beside = path if path.name not in ("", "..") else path.resolve()
    out = RunDirectory(Path(settings.out) if settings.out else beside.with_name(f"{beside.name}_average"))
    check_writable("out", out.path)
    if path.resolve().is_relative_to(out.path.resolve()):
        raise Mistake(f"out is {out.path}, which is or contains the run to average; choose another folder.")
    out.require_free(settings.overwrite, key="out", resumable=False)
    before = out.state()
    words = known_words(run.directory)
    logger.info("Averaging %s", ", ".join(file.name for file in files))
    weights = {name.removeprefix("model."): tensor for name, tensor in mean_weights(files).items()}
    model = build_model(run.settings.model, run.tokenizers, run.settings.context.model)
    model.load_state_dict(weights)
    with locked(out.path):
        if out.state() != before:
            raise Mistake(f"Another command has written to {out.path} in the meantime; run this command again.")
        out.clear()
        metrics = {
            **{key: value for key, value in run.directory.metrics().items() if key != "best"},  # of other weights
            "command": job.command,
            "averaged": [file.name for file in files],
            "averaged_from": run.directory.metrics()["command"],
            "scores": {},
        }
        try:
            out.write_config(run.directory.config())
            out.write_tokenizers(run.tokenizers, run.direction)
            out.write_dictionary(run.dictionary)
            out.write_source_words(words or ())
            save_weights(model, out.weights)
            # Last, because a folder with metrics.json counts as a finished run; the scores follow below.
            out.write_metrics(metrics)
        except BaseException:
            out.clear()  # otherwise the same command could not be run again
            raise
        with_plain_weights(model)
        device = choose_device(settings.device)
        averaged = run._replace(directory=out, model=model.eval().to(device), device=device)
        remedy = "" if device.type == "cpu" else " device=cpu uses the CPU's."
        with on_out_of_memory(
            lambda: CheckFailed(
                f"Out of memory while scoring. {out.path} is complete: free some memory, and score it with "
                f"nmt.evaluate run_dir={out.path}.{remedy}"
            )
        ):
            scores = score_test_split(averaged)
        out.write_metrics({**metrics, "scores": {"test": [score.record() for score in scores]} if scores else {}})
    print_run(out)


def checkpoint_files(run: LoadedRun, kind: Literal["best", "recent"], number: int | None) -> list[Path]:
    """The `number` best or most recent checkpoints, or all. Raises Mistake if there are fewer, or fewer than two."""
    directory, higher = run.directory, run.settings.validation.better == "max"
    files = directory.checkpoints.glob(f"{kind}-*.ckpt")
    ranked = sorted(files, key=(lambda file: _goodness(file, higher)) if kind == "best" else _step)
    setting, other = ("checkpoints.keep", "recent") if kind == "best" else ("checkpoints.recent", "best")
    if not ranked and not any(directory.checkpoints.glob("*.ckpt")):
        raise Mistake(
            f"{directory.path} has no checkpoints, so its weights cannot be averaged: name a run that was trained on "
            f"this machine with {setting}=5."
        )
    if not ranked:
        raise Mistake(
            f"{directory.checkpoints} has no {kind} checkpoints: train with {setting}=5, or use checkpoints={other}."
        )
    if len(ranked) < (number or 2):
        raise Mistake(
            f"{directory.checkpoints} has {len(ranked)} {kind} checkpoints, but averaging needs {number or 2}: train "
            f"longer, with a smaller validation.every, or with a larger {setting}."
        )
    return ranked[-number:] if number else ranked


def _step(file: Path) -> int:
    return int(load_checkpoint(file)["global_step"])


def _goodness(file: Path, higher: bool) -> tuple[float, int]:
    """The checkpoint's validation score, negated if lower is better; ties go to the later checkpoint."""
    checkpoint = load_checkpoint(file)
    [state] = (state for name, state in checkpoint["callbacks"].items() if name.startswith(BestCheckpoints.__name__))
    score = float(state["current_score"])
    return score if higher else -score, int(checkpoint["global_step"])
