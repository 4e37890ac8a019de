"""nmt.train: from a configuration to a finished run directory."""

import logging
from collections.abc import Mapping
from pathlib import Path

from nmt.config.job import Job
from nmt.config.nodes import Config
from nmt.config.schema import RunSettings, TrainSettings
from nmt.errors import CheckFailed
from nmt.evaluation.scores import resampling_seed
from nmt.insight.unknown_words import folded_words, known_words
from nmt.models import Seq2Seq
from nmt.pages.film import write_film
from nmt.runs.directory import RunDirectory
from nmt.runs.included import named_run
from nmt.runs.load import LoadedRun
from nmt.runs.memory import on_out_of_memory
from nmt.runs.precision import with_precision
from nmt.runs.record import print_run
from nmt.scoring.run_scores import score_test_split
from nmt.scoring.training_words import training_counts
from nmt.training.loop import fit, ready_to_score, writing
from nmt.training.out_of_memory import halving_batches
from nmt.training.preparation import Prepared, prepare, resumes_run, run_folder
from nmt.training.resume import printing_if_finished
from nmt.training.translation import Translation

logger = logging.getLogger(__name__)


def train(job: Job[TrainSettings]) -> None:
    """Trains, saves the best weights, scores the test split, and prints the run directory and its scores.

    Raises Mistake before training if the configuration cannot be used.
    """
    resampling_seed()  # of the scores at the end: a value that cannot be used is refused now
    run = RunDirectory(run_folder(job))
    resumes = resumes_run(job, run)

    def attempt(changes: Mapping[str, int]) -> None:
        prepared = prepare(job, run, Translation(), resumes=resumes, changes=changes)
        result: Config = {}  # In a distributed run, only the leader gets one.
        with writing(prepared):
            result = fit(prepared)
            if result:
                score(prepared, result, Path(job.settings.cache_dir))
        if result:
            print_run(run)

    with printing_if_finished(run):
        halving_batches(attempt)


def score(prepared: Prepared[RunSettings, Seq2Seq], result: Config, cache_dir: Path) -> None:
    """Scores the best weights on the test split, completes metrics.json, and stores the words of the training text.

    `result` is what training adds to metrics.json; `cache_dir` is for `training_counts`.
    """
    directory, settings, device = prepared.run, prepared.settings, ready_to_score(prepared)
    model = with_precision(prepared.model, "float32", device)
    run = LoadedRun(directory, settings, prepared.tokenizers, model, device)
    remedy = "free some memory, and add resume=true to the command to score the run"
    if device.type != "cpu":
        remedy = "add resume=true trainer.accelerator=cpu to the command to score the run on the CPU"
    with on_out_of_memory(lambda: CheckFailed(f"Out of memory while scoring. Training is complete: {remedy}.")):
        scores = score_test_split(run, cache_dir)
    prepared.complete(result, {"test": [score.record() for score in scores]} if scores else {})
    write_film(directory.path / "probes")
    store_source_words(run, cache_dir)


def store_source_words(run: LoadedRun, cache_dir: Path) -> None:
    """Stores the words of the training sources, so that the lab can name words that the run never saw.

    A run that started from another one has also seen the other one's words. Nothing is stored if not all words are
    known.
    """
    start, counts = run.settings.start_from, training_counts(run, cache_dir)
    earlier = known_words(RunDirectory(named_run(start))) if start else frozenset[str]()
    if earlier is None:
        message = "The lab will not name unknown words, because the words that %s saw in training are not available"
        logger.info(message, start)
    elif not counts:
        logger.info("The lab will not name unknown words, because the training text is missing")
    elif not run.directory.write_source_words(earlier.union(*map(folded_words, counts))):
        logger.info("The lab will not name unknown words, because the training text has no words, or too many to store")
