"""Translation scores computed by sacrebleu (Post 2018), each with its signature and a confidence interval.

References are given as one or more lists, each with one reference per hypothesis.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from nmt.errors import Mistake
from nmt.evaluation.score_record import Score

RESAMPLES = 1000
References = Sequence[Sequence[str]]


class PlainNumbers:
    """Passes Python floats to a sacrebleu metric.

    When it resamples, sacrebleu passes numpy numbers, and averaging them together with a plain 0.0 fails.
    """

    def _compute_score_from_stats(self, stats: Iterable[Any]) -> Any:
        return super()._compute_score_from_stats([float(number) for number in stats])  # type: ignore[misc]


class Bleu(PlainNumbers, BLEU):
    """BLEU (Papineni et al. 2002)."""


class Chrf(PlainNumbers, CHRF):
    """chrF (Popović 2015), or chrF++ with word n-grams (Popović 2017)."""


class Ter(PlainNumbers, TER):
    """Translation edit rate (Snover et al. 2006); lower is better."""


def headline_metrics(tokenized: bool) -> dict[str, Metric]:
    """BLEU, and chrF as a second opinion. For tokenized text, BLEU is computed on the given tokens."""
    return {"BLEU": Bleu(tokenize="none" if tokenized else "13a", force=True), "chrF2": Chrf()}


def all_metrics(tokenized: bool) -> dict[str, Metric]:
    """The headline metrics and others common in papers; spBLEU is included only if its tokenizer model is available."""
    metrics: dict[str, Metric] = headline_metrics(tokenized)
    metrics |= {
        "BLEU 13a": Bleu(tokenize="13a", force=True),
        "BLEU none": Bleu(tokenize="none", force=True),
        "BLEU uncased": Bleu(tokenize="none" if tokenized else "13a", lowercase=True, force=True),
        "chrF2++": Chrf(word_order=2),
        "TER": Ter(),
    }
    del metrics["BLEU none" if tokenized else "BLEU 13a"]  # the same as the headline
    if flores200_model().is_file():
        metrics["spBLEU"] = Bleu(tokenize="flores200", force=True)
    return metrics


def flores200_model() -> Path:
    """Where sacrebleu keeps the SentencePiece model of spBLEU (Goyal et al. 2022) after downloading it."""
    folder = os.environ.get("SACREBLEU") or Path.home() / ".sacrebleu"
    return Path(folder) / "models" / "flores200sacrebleuspm"


def resampling_seed() -> int | None:
    """The seed of sacrebleu's resampling: 12345, or the environment variable SACREBLEU_SEED; None if that is none.

    Raises Mistake if it is no number.
    """
    seed = os.environ.get("SACREBLEU_SEED", "12345")
    if seed.lower() == "none":
        return None
    if not seed.isdecimal():
        raise Mistake(f"SACREBLEU_SEED is '{seed}'; it must be a whole number of at least 0, or none.")
    return int(seed)


def corpus_scores(
    hypotheses: Sequence[str], references: References, metrics: Mapping[str, Metric] | None = None
) -> list[Score]:
    """Corpus-level scores by the given metrics; the defaults are the headline metrics for plain text.

    Resampling uses `resampling_seed`. Raises Mistake if the numbers of lines differ or there are no lines, and whatever
    `resampling_seed` raises.
    """
    check_lines(hypotheses, references)
    resampling_seed()  # sacrebleu reads it too, and would raise an error of its own
    scores = []
    for name, metric in (headline_metrics(tokenized=False) if metrics is None else metrics).items():
        score = metric.corpus_score(hypotheses, references, n_bootstrap=RESAMPLES)
        signature = str(metric.get_signature())
        # sacrebleu exposes its interval publicly only as JSON, which omits the interval if every resample scores 0.
        details = json.loads(score.format(width=6, signature=signature, is_json=True))
        mean, half_width = details.get("confidence_mean", 0.0), details.get("confidence_var", 0.0)
        # The interval is symmetric around the mean, so near 0 and 100 it could exceed the range of the score.
        low, high = max(0.0, mean - half_width), min(math.inf if isinstance(metric, TER) else 100.0, mean + half_width)
        scores.append(Score(name, value=score.score, low=low, high=high, signature=signature))
    return scores


def sentence_scores(hypotheses: Sequence[str], references: References) -> list[float]:
    """chrF of each line, because BLEU of a single sentence says little. Raises Mistake as `corpus_scores` does."""
    check_lines(hypotheses, references)
    return [sentence_chrf(*line) for line in zip(hypotheses, *references, strict=True)]


def sentence_chrf(hypothesis: str, *references: str) -> float:
    """chrF of a sentence against one or more references, from 0 to 100."""
    value: float = _SENTENCE_CHRF.sentence_score(hypothesis, references).score
    return value


_SENTENCE_CHRF = Chrf()


def check_lines(hypotheses: Sequence[str], others: Sequence[Sequence[str]], name: str = "references") -> None:
    """Raises Mistake if there are no hypotheses or no others, or if their numbers of lines differ."""
    if not others:
        raise Mistake(f"There are no {name} to score against; name at least one file.")
    for lines in others:
        if len(hypotheses) != len(lines):
            raise Mistake(
                f"{len(hypotheses)} hypotheses but {len(lines)} {name}; every sentence needs one line in each."
            )
    if not hypotheses:
        raise Mistake("There are no sentences to score; provide at least one.")
