"""nmt.compare: several runs, or files of translations, in one table with paired significance."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.config.job import Job
from nmt.config.nodes import Config
from nmt.data.corpus import read_lines
from nmt.evaluation.sanity import hypothesis_warnings, looks_tokenized
from nmt.evaluation.scores import corpus_scores, headline_metrics
from nmt.files import check_writable, existing_file
from nmt.runs.comparison import System, report, run_system
from nmt.runs.differences import differences
from nmt.runs.directory import RunDirectory
from nmt.runs.record import scores_record
from nmt.runs.references import warn_of_references
from nmt.text import changes, count_changes

logger = logging.getLogger(__name__)


def compare(job: Job) -> None:
    """Prints the table and writes it to `out`, as Markdown, CSV, LaTeX, JSON and a picture."""
    config = job.config
    if bool(config["run_dirs"]) == bool(config["outputs"]):
        raise ValueError("Give either run_dirs=[A,B], finished trainings, or outputs=[a.vi,b.vi] with reference=FILE.")
    check_writable("out", config["out"])
    if config["run_dirs"]:
        systems, references = _own(config)
    else:
        systems, references = _foreign(config["outputs"], config["reference"])
    print(report(systems, references, Path(str(config["out"]))))


def _own(config: Config) -> tuple[list[System], list[list[str]]]:
    """The runs of a configuration, and their references."""
    runs = [RunDirectory(Path(str(path))) for path in config["run_dirs"]]
    for run in runs:
        run.require_finished()
    settings = {
        "run": [str(run.path) for run in runs],
        **_averaged(runs),
        **differences([run.config() for run in runs]),
    }
    systems: list[System] = []
    references = None
    for number, run in enumerate(runs):
        own = {key: values[number] for key, values in settings.items()}
        system, references = run_system(run.path, config["device"], str(config["split"]), own, references)
        systems.append(system)
    return systems, references or []


def _foreign(outputs: Any, reference: Any) -> tuple[list[System], list[list[str]]]:
    """Files of translations against one or more reference files."""
    if reference in (None, []):
        raise ValueError("outputs need reference=FILE, or reference=[A,B], of the same lines.")
    names = reference if isinstance(reference, list) else [reference]
    references = [read_lines(existing_file("reference", name)) for name in names]
    for name, lines in zip(names, references, strict=True):
        warn_of_references(Path(str(name)), lines)
    files = [existing_file("outputs", name) for name in outputs]
    metrics = headline_metrics(looks_tokenized(references[0]))
    systems = []
    for file in files:
        lines = read_lines(file)
        for name, lines_of_reference in zip(names, references, strict=True):
            if len(lines) != len(lines_of_reference):
                raise ValueError(
                    f"{file} has {len(lines)} lines but {name} has {len(lines_of_reference)}; "
                    "they must be the same lines."
                )
        for sentence in [*hypothesis_warnings(lines, None, references[0]), *_unlike_normal(lines)]:
            logger.warning("%s: %s", file, sentence)
        scores = {"scores": scores_record(corpus_scores(lines, references, metrics))}
        systems.append(System({"output": str(file)}, lines, scores, {}))
    return systems, references


def _unlike_normal(lines: Sequence[str]) -> list[str]:
    """What a system of another's making may get wrong in its letters, such as decomposed ones."""
    changed = sum(bool(changes(line)) for line in lines)
    kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(count_changes(lines).items()))
    told = f"Normalisation would change {changed} of {len(lines)} lines ({kinds}), which can cost most of the score"
    return [f"{told}; convert the file to NFC and plain spaces."] * bool(changed)


def _averaged(runs: Sequence[RunDirectory]) -> dict[str, list[str]]:
    """Of how many checkpoints the weights of each run are the mean; nothing where none are."""
    numbers = [str(len(run.metrics().get("averaged", ())) or "") for run in runs]
    return {"averaged": numbers} if any(numbers) else {}
