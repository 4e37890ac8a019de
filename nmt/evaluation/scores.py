"""Translation scores by sacrebleu (Post 2018), each with its signature and a confidence interval.

References are given as one or more lists, each with a reference for every hypothesis.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

RESAMPLES = 1000
References = Sequence[Sequence[str]]


class PlainNumbers:
    """Hands a sacrebleu metric Python's numbers: resampling gives it numpy's, whose mean with a plain 0.0 fails."""

    def _compute_score_from_stats(self, stats: Iterable[Any]) -> Any:
        return super()._compute_score_from_stats([float(number) for number in stats])  # type: ignore[misc]


class Bleu(PlainNumbers, BLEU):
    """BLEU (Papineni et al. 2002)."""


class Chrf(PlainNumbers, CHRF):
    """chrF (Popović 2015); with words, chrF++ (Popović 2017)."""


class Ter(PlainNumbers, TER):
    """Translation edit rate (Snover et al. 2006): the only score here of which less is better."""


class Score(NamedTuple):
    """One figure for a corpus. All three numbers run from 0 to 100, TER's may exceed it."""

    name: str
    """What it is called here; the signature tells what it is."""
    value: float
    low: float
    """Lower end of the 95 % interval from bootstrap resampling (Koehn 2004)."""
    high: float
    signature: str
    """sacrebleu's: what has to be equal for two figures to compare; holds the seed and the number of resamples."""


def headline_metrics(tokenized: bool) -> dict[str, Metric]:
    """BLEU, and chrF as a second opinion. For text that is already tokenised BLEU is that of its own tokens."""
    return {"BLEU": Bleu(tokenize="none" if tokenized else "13a", force=True), "chrF2": Chrf()}


def all_metrics(tokenized: bool) -> dict[str, Metric]:
    """The headline, and whatever else the literature prints; spBLEU only where its SentencePiece model is at hand."""
    found: dict[str, Metric] = headline_metrics(tokenized)
    found |= {
        "BLEU 13a": Bleu(tokenize="13a", force=True),
        "BLEU none": Bleu(tokenize="none", force=True),
        "BLEU uncased": Bleu(tokenize="none" if tokenized else "13a", lowercase=True, force=True),
        "chrF2++": Chrf(word_order=2),
        "TER": Ter(),
    }
    del found["BLEU none" if tokenized else "BLEU 13a"]  # which is the headline
    if flores200_model().is_file():
        found["spBLEU"] = Bleu(tokenize="flores200", force=True)
    return found


def flores200_model() -> Path:
    """Where sacrebleu keeps the SentencePiece model of spBLEU (Goyal et al. 2022) once it has fetched it."""
    folder = os.environ.get("SACREBLEU") or Path.home() / ".sacrebleu"
    return Path(folder) / "models" / "flores200sacrebleuspm"


def corpus_scores(
    hypotheses: Sequence[str], references: References, metrics: Mapping[str, Metric] | None = None
) -> list[Score]:
    """The scores of whole texts by the metrics, or by the headline metrics for raw text.

    Resampling uses sacrebleu's seed: 12345, or the environment's SACREBLEU_SEED. Raises ValueError when the numbers of
    lines differ or there are none.
    """
    check_lines(hypotheses, references)
    chosen = headline_metrics(tokenized=False) if metrics is None else metrics
    return [_score(name, metric, hypotheses, references) for name, metric in chosen.items()]


def sentence_scores(hypotheses: Sequence[str], references: References) -> list[float]:
    """chrF of each line: BLEU says little about a single sentence. Raises ValueError like `corpus_scores`."""
    check_lines(hypotheses, references)
    return [sentence_chrf(hypothesis, *own) for hypothesis, *own in zip(hypotheses, *references, strict=True)]


def sentence_chrf(hypothesis: str, *references: str) -> float:
    """chrF of a sentence, from 0 to 100."""
    value: float = _SENTENCE_CHRF.sentence_score(hypothesis, references).score
    return value


_SENTENCE_CHRF = Chrf()


def check_lines(hypotheses: Sequence[str], others: Sequence[Sequence[str]], name: str = "references") -> None:
    """Raises ValueError when there are no hypotheses, or not as many lines in each of the others."""
    if not others:
        raise ValueError(f"There are no {name} to score against: give at least one file.")
    for lines in others:
        if len(hypotheses) != len(lines):
            raise ValueError(
                f"{len(hypotheses)} hypotheses but {len(lines)} {name}: they must be the same lines, in order."
            )
    if not hypotheses:
        raise ValueError("There are no sentences to score: give at least one.")


def _score(name: str, metric: Metric, hypotheses: Sequence[str], references: References) -> Score:
    score = metric.corpus_score(hypotheses, references, n_bootstrap=RESAMPLES)
    signature = str(metric.get_signature())
    # The JSON form is sacrebleu's public way to its interval; it has none where every resample scores 0.
    details = json.loads(score.format(width=6, signature=signature, is_json=True))
    mean, half_width = details.get("confidence_mean", 0.0), details.get("confidence_var", 0.0)
    # The interval is symmetric, and a score is not: near the ends it would reach beyond them.
    most = math.inf if isinstance(metric, TER) else 100.0
    return Score(name, score.score, max(0.0, mean - half_width), min(most, mean + half_width), signature)
