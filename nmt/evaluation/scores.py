"""Translation scores by sacrebleu (Post 2018), each with its signature and a confidence interval."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

RESAMPLES = 1000
# Upper ends, in space-separated source words; a last bucket takes the rest.
BUCKETS = (10, 20, 30, 40, 50)

_DETACHED = re.compile(r"(?<!\S)(?:[.,!?;:]|&\w+;)(?!\S)")
_ATTACHED = re.compile(r"\w[.,!?;:](?!\S)")


class PlainNumbers:
    """Hands a sacrebleu metric Python's numbers: resampling gives it numpy's, whose mean with a plain 0.0 fails."""

    def _compute_score_from_stats(self, stats: Iterable[Any]) -> Any:
        return super()._compute_score_from_stats([float(number) for number in stats])  # type: ignore[misc]


class Bleu(PlainNumbers, BLEU):
    """BLEU (Papineni et al. 2002)."""


class Chrf(PlainNumbers, CHRF):
    """chrF (Popović 2015)."""


_SENTENCE_CHRF = Chrf()


class Score(NamedTuple):
    """One figure for a corpus. All three numbers run from 0 to 100."""

    name: str
    """'BLEU' or 'chrF2'."""
    value: float
    low: float
    """Lower end of the 95 % interval from bootstrap resampling (Koehn 2004)."""
    high: float
    signature: str
    """sacrebleu's: what has to be equal for two figures to compare; holds the seed and the number of resamples."""


class Bucket(NamedTuple):
    """BLEU of the sentences whose source has `shortest` to `longest` words (None: no upper end)."""

    shortest: int
    longest: int | None
    sentences: int
    score: Score


def corpus_scores(hypotheses: Sequence[str], references: Sequence[str], *, tokenized: bool = False) -> list[Score]:
    """BLEU (13a) and chrF of whole texts, one reference each; the headline is first.

    For a corpus that is already tokenised the headline is BLEU over its
    own tokens (tokenize=none). Resampling uses sacrebleu's seed: 12345, or the environment's SACREBLEU_SEED.
    Raises ValueError when the numbers of lines differ or there are none.
    """
    _check(hypotheses, references)
    metrics: list[Metric] = [Bleu(tokenize="13a", force=True), Chrf()]
    if tokenized:
        metrics.insert(0, Bleu(tokenize="none", force=True))
    return [_score(metric, hypotheses, references) for metric in metrics]


def by_length(
    hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str], *, tokenized: bool = False
) -> list[Bucket]:
    """Headline BLEU by number of source words; buckets without a sentence are left out.

    Raises ValueError when the numbers of lines differ or there are none.
    """
    _check(hypotheses, references)
    _check(hypotheses, sources, "sources")
    words = [len(source.split()) for source in sources]
    buckets = []
    for shortest, longest in zip((0, *(end + 1 for end in BUCKETS)), (*BUCKETS, None), strict=True):
        chosen = [i for i, n in enumerate(words) if shortest <= n and (longest is None or n <= longest)]
        if chosen:
            metric = Bleu(tokenize="none" if tokenized else "13a", force=True)
            score = _score(metric, [hypotheses[i] for i in chosen], [references[i] for i in chosen])
            buckets.append(Bucket(shortest, longest, len(chosen), score))
    return buckets


def sentence_scores(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF of each line: BLEU says little about a single sentence. Raises ValueError like `corpus_scores`."""
    _check(hypotheses, references)
    return [sentence_chrf(*pair) for pair in zip(hypotheses, references, strict=True)]


def sentence_chrf(hypothesis: str, reference: str) -> float:
    """chrF of a sentence, from 0 to 100."""
    value: float = _SENTENCE_CHRF.sentence_score(hypothesis, [reference]).score
    return value


def looks_tokenized(references: Sequence[str]) -> bool:
    """Whether punctuation (or an HTML entity) stands alone between spaces more often than it is attached to a word."""
    detached = sum(len(_DETACHED.findall(line)) for line in references)
    return detached > sum(len(_ATTACHED.findall(line)) for line in references)


def _score(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    score = metric.corpus_score(hypotheses, [references], n_bootstrap=RESAMPLES)
    signature = str(metric.get_signature())
    # The JSON form is sacrebleu's public way to its interval; it has none where every resample scores 0.
    details = json.loads(score.format(width=6, signature=signature, is_json=True))
    mean, half_width = details.get("confidence_mean", 0.0), details.get("confidence_var", 0.0)
    return Score(score.name, score.score, mean - half_width, mean + half_width, signature)


def _check(hypotheses: Sequence[str], others: Sequence[str], name: str = "references") -> None:
    if len(hypotheses) != len(others):
        raise ValueError(
            f"{len(hypotheses)} hypotheses but {len(others)} {name}: they must be the same lines, in order."
        )
    if not hypotheses:
        raise ValueError("There are no sentences to score: give at least one.")
