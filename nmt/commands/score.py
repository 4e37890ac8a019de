"""nmt.score: the log-probabilities of given translations."""

import logging

from nmt.commands.score_settings import ScoreSettings
from nmt.config.job import Job
from nmt.data.corpus import read_parallel
from nmt.paths import existing_file
from nmt.runs.load import documents_to_read, load_runs
from nmt.scoring.forced_scores import log_probs, perplexity

logger = logging.getLogger(__name__)


def score(job: Job[ScoreSettings]) -> None:
    """Prints log P(target | source) of each pair of lines, in nats; logs the perplexities over all lines."""
    settings = job.settings
    pairs = read_parallel(existing_file("source", settings.source), existing_file("target", settings.target))
    runs = load_runs(settings.run_dir, settings.device)
    documents = documents_to_read(runs[0], settings.documents, len(pairs.source))
    values = log_probs(runs, pairs.source, pairs.target, settings.batch_tokens, documents)
    for value in values:
        print(f"{value:.4f}")
    perplexities = perplexity(values, runs[0], pairs.target)
    logger.info(
        "Perplexity per piece %.3f, per word %.3f, per character %.4f (%d lines)",
        perplexities.piece,
        perplexities.word,
        perplexities.character,
        perplexities.lines,
    )
