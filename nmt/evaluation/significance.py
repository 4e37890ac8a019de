"""Tests whether the difference between two scores is due to more than chance."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from nmt.evaluation.scores import RESAMPLES, References, check_lines


def paired_bootstrap(systems: Sequence[Sequence[str]], references: References, metric: Metric) -> list[float]:
    """The p-value of each system against the first, from sacrebleu's paired bootstrap resampling (Koehn 2004).

    p is 1 for the first system, for a score equal to the first system's, and for a single line, whose resamples are all
    the same. Raises Mistake if the numbers of lines differ or there are no lines.
    """
    for hypotheses in systems:
        check_lines(hypotheses, references)
    if len(systems) == 1 or len(systems[0]) == 1:
        return [1.0] * len(systems)
    named = [(str(number), hypotheses) for number, hypotheses in enumerate(systems)]
    test = PairedTest(named, {"score": metric}, references, test_type="bs", n_samples=RESAMPLES)
    # The columns are 'System' and sacrebleu's name for the metric.
    columns: dict[str, Any] = dict(test()[1])
    [results] = (column for name, column in columns.items() if name != "System")
    first, *others = results
    # For equal scores, sacrebleu finds no resample with a larger difference and returns the smallest p.
    return [1.0, *(1.0 if other.score == first.score else other.p_value for other in others)]


def multi_bootstrap(settings: Sequence[Sequence[Sequence[str]]], references: References, metric: BLEU) -> list[float]:
    """For each setting, the p-value of the difference between its mean BLEU over runs and the first setting's.

    settings[i][j] is the output of run j of setting i. The multi-bootstrap (Sellam et al. 2022) resamples both
    the sentences, with the same draws for all runs, and the runs of each setting, so it accounts for both sources of
    randomness. From n runs it draws n - 1, because drawing n would underestimate the variance of a mean over only a few
    runs (Rao & Wu 1988). p is computed with the same formula as in `paired_bootstrap`. With a single run per setting,
    which adds no variation, p equals that of `paired_bootstrap`. With two or three runs, p is still somewhat too small.
    Raises Mistake as `paired_bootstrap` does.
    """
    for runs in settings:
        for hypotheses in runs:
            check_lines(hypotheses, references)
    lines = len(references[0])
    if len(settings) == 1 or lines == 1:
        return [1.0] * len(settings)
    # Seed, generator and draws are sacrebleu's, so that `paired_bootstrap` draws the same lines.
    seed = os.environ.get("SACREBLEU_SEED", "12345")
    generator = np.random.default_rng(None if seed.lower() == "none" else int(seed))
    drawn_lines = generator.choice(lines, size=(RESAMPLES, lines), replace=True)
    # How often each resample contains each line; the first row is the whole corpus.
    times = np.stack([np.ones(lines, dtype=np.int64), *(np.bincount(row, minlength=lines) for row in drawn_lines)])
    observed, resampled = [], []
    for runs in settings:
        scores = np.stack([_bleu_of_resamples(hypotheses, references, metric, times=times) for hypotheses in runs])
        drawn_runs = generator.integers(len(runs), size=(RESAMPLES, max(1, len(runs) - 1)))
        observed.append(scores[:, 0].mean())
        resampled.append(scores[drawn_runs.T, np.arange(1, RESAMPLES + 1)].mean(axis=0))
    return [_p_value(mean - observed[0], means - resampled[0]) for mean, means in zip(observed, resampled, strict=True)]


def _p_value(difference: float, resampled: np.ndarray) -> float:
    """sacrebleu's p: the share of resampled differences that exceed their mean by more than the observed difference."""
    if difference == 0:
        return 1.0
    differences = np.abs(resampled)
    exceeding = np.sum(differences - differences.mean() > abs(difference))
    return float(exceeding + 1) / (RESAMPLES + 1)


def _bleu_of_resamples(
    hypotheses: Sequence[str], references: References, metric: BLEU, *, times: np.ndarray
) -> np.ndarray:
    """BLEU of a system on each resample; each row of `times` says how often a resample contains each line."""
    references_of_lines = zip(*references, strict=True)
    line_scores = [
        metric.corpus_score([hypothesis], [[reference] for reference in line_references])
        for hypothesis, line_references in zip(hypotheses, references_of_lines, strict=True)
    ]
    # Corpus BLEU depends on sums of these counts alone, so a product of matrices gives those of all resamples at once.
    statistics = np.array(
        [[score.sys_len, score.ref_len, *score.counts, *score.totals] for score in line_scores], dtype=np.int64
    )
    order = metric.max_ngram_order
    scores = [
        metric.compute_bleu(
            correct=counts[:order],
            total=counts[order:],
            sys_len=length,
            ref_len=reference_length,
            smooth_method=metric.smooth_method,
            smooth_value=metric.smooth_value,
            effective_order=metric.effective_order,
            max_ngram_order=order,
        ).score
        for length, reference_length, *counts in (times @ statistics).tolist()
    ]
    return np.array(scores)
