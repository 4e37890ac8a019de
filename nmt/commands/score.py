"""nmt.score: how probable a run finds given translations."""

import logging

from nmt.config.job import Job
from nmt.data.corpus import read_parallel
from nmt.files import existing_file
from nmt.runs.forced_scores import log_probs, perplexity
from nmt.runs.load import load_runs

logger = logging.getLogger(__name__)


def score(job: Job) -> None:
    """Prints log P(target | source) in nats of each pair of lines; logs the perplexities of all of them."""
    config = job.config
    pairs = read_parallel(existing_file("source", config["source"]), existing_file("target", config["target"]))
    runs = load_runs(config["run_dir"], config["device"])
    found = log_probs(runs, pairs.source, pairs.target, config["batch_tokens"])
    for value in found:
        print(f"{value:.4f}")
    of = perplexity(found, runs[0], pairs.target)
    logger.info(
        "Perplexity per piece %.3f, per word %.3f, per character %.4f (%d lines)",
        of.piece,
        of.word,
        of.character,
        of.lines,
    )
