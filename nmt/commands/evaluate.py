"""nmt.evaluate: the scores of a finished run on a split of its corpus or on files of the user's own."""

import logging
import math

from nmt.config.job import Job
from nmt.config.messages import check_source_tokens
from nmt.config.nodes import Config
from nmt.errors import CheckFailed
from nmt.evaluation.buckets import Bucket
from nmt.evaluation.comet import Comet
from nmt.runs.evaluation import evaluate_runs
from nmt.runs.load import load_runs
from nmt.runs.record import score_line
from nmt.runs.test_sets import check_files_given, chosen_test_set

logger = logging.getLogger(__name__)


def evaluate(job: Job) -> None:
    """Prints and saves all scores with signature and interval, BLEU by groups, perplexity and alignment error rate.

    Where `expect` is given and the headline is further from it than `band` it ends with exit code 1.
    """
    config = job.config
    _check(config)
    runs = load_runs(config["run_dir"], config["device"], str(config["precision"]))
    if len(runs) > 1 and config["out"] is None:
        raise ValueError("An ensemble has no folder of its own; give out=FOLDER.")
    if len(runs) > 1 and config["alignment"] is not None:
        raise ValueError(
            f"{len(runs)} runs have {len(runs)} different alignments: give one run_dir, or leave out alignment."
        )
    test_set = chosen_test_set(
        runs[0], str(config["split"]), config["source"], config["reference"], config["alignment"], config["out"]
    )
    # A large model, and perhaps a download: after all that may be refused.
    comet = Comet(str(config["comet"]), gpu=runs[0].device.type == "cuda") if config["comet"] else None
    found = evaluate_runs(
        runs,
        test_set,
        config["search"],
        config["batch_tokens"],
        max_source_tokens=config["max_source_tokens"],
        minimum_bayes_risk=config["minimum_bayes_risk"],
        comet=comet,
    )
    for score in found.scores:
        print(score_line(score))
    for bucket in found.lengths:
        print(_bucket_line(bucket, "sources of {} words"))
    for bucket in found.rarities:
        print(_bucket_line(bucket, "sources whose rarest word occurs {} times in training"))
    of = found.perplexity
    print(f"Perplexity per piece {of.piece:.3f}, per word {of.word:.3f}, per character {of.character:.4f}")
    if found.links:
        of_links = found.links.rates
        print(f"AER {of_links.aer:.3f}, precision {of_links.precision:.3f}, recall {of_links.recall:.3f}")
        print(f"  {found.links.note}")
    if config["expect"] is not None:
        check_band(found.scores[0].value, config["expect"], config["band"])


def check_band(value: float, expected: float, band: float) -> None:
    """Prints that a score is at most `band` from what was expected. Raises CheckFailed when it is not."""
    where = f"{value:.2f} is {abs(value - expected):.2f} from the expected {expected:.2f}"
    if not abs(value - expected) <= band:
        raise CheckFailed(f"outside: {where}, more than {band:.2f}")
    print(f"inside: {where}, at most {band:.2f}")


def _check(config: Config) -> None:
    check_files_given(config["source"], config["reference"], config["alignment"])
    check_source_tokens(config["max_source_tokens"])
    if config["expect"] is not None and not _finite(config["expect"]):
        raise ValueError(f"expect is '{config['expect']}'; it must be a score, a number such as 26.1, or null.")
    if not _finite(config["band"]) or config["band"] < 0:
        raise ValueError(f"band is {config['band']}; it must be a finite number, at least 0.")


def _finite(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _bucket_line(bucket: Bucket, group: str) -> str:
    ends = f"{bucket.least} to {bucket.most}" if bucket.most is not None else f"{bucket.least} or more"
    ends = str(bucket.least) if bucket.least == bucket.most else ends
    lines = "1 line" if bucket.sentences == 1 else f"{bucket.sentences} lines"
    return f"{bucket.score.name} of {group.format(ends)} {bucket.score.value:.2f} ({lines})"
