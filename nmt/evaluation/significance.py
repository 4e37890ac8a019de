"""Tests whether the difference between two BLEU scores is due to more than chance."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int
from sacrebleu.metrics.bleu import BLEU

from nmt.evaluation.scores import RESAMPLES, References, check_lines, resampling_seed

TRIALS = 10_000
"""sacrebleu's number of trials for approximate randomization."""

DECIMALS = 2
"""Scores that are equal when printed are not said to differ, however sure the test is."""

# A multiple of 32, so that the random bits of several blocks are those of one draw.
_BLOCK = 320


def approximate_randomization(
    systems: Sequence[Sequence[str]], references: References, metric: BLEU, trials: int = TRIALS
) -> list[float]:
    """The p-value of each system's BLEU against the first system's (Riezler & Maxwell 2005), as in sacrebleu.

    A trial exchanges the outputs of the two systems for each sentence with probability 1/2. p is the share of trials
    whose difference is at least the observed one, in absolute value; the observed difference counts as one more trial.
    In contrast to sacrebleu, trials that equal the observed difference count too: if only a few sentences differ,
    leaving them out makes p far too small. p is not corrected for the number of systems: see `holm`.

    p is 1 for the first system, for a score that equals the first system's in the decimals that are printed, and for a
    single line. Raises Mistake if the numbers of lines differ or there are no lines.
    """
    for hypotheses in systems:
        check_lines(hypotheses, references)
    first, *others = [_line_counts(hypotheses, references, metric) for hypotheses in systems]
    p_values = [1.0]
    for other in others:
        scores = [_bleu(counts.sum(axis=0, keepdims=True), metric).item() for counts in (first, other)]
        if _printed_alike(*scores):
            p_values.append(1.0)
            continue
        observed = abs(np.subtract(*scores))
        generator, reached = np.random.default_rng(resampling_seed()), 0
        for start in range(0, trials, _BLOCK):
            # Seed, generator and draws are sacrebleu's, in blocks because a large test set would need gigabytes.
            keeps = generator.integers(2, size=(min(_BLOCK, trials - start), len(first)), dtype=bool)
            one = _bleu(keeps @ first + ~keeps @ other, metric)
            two = _bleu(~keeps @ first + keeps @ other, metric)
            reached += int(np.sum(np.abs(one - two) >= observed))
        p_values.append((reached + 1) / (trials + 1))
    return p_values


def multi_bootstrap(
    settings: Sequence[Sequence[Sequence[str]]], references: References, metric: BLEU, resamples: int = RESAMPLES
) -> list[float]:
    """For each setting, the p-value of the difference between its mean BLEU over runs and the first setting's.

    settings[i][j] is the output of run j of setting i. The multi-bootstrap (Sellam et al. 2022) resamples both
    the sentences, with the same draws for all runs, and the runs of each setting, so it accounts for both sources of
    randomness. From n runs it draws n - 1, because drawing n would underestimate the variance of a mean over only a few
    runs (Rao & Wu 1988). p is the share of resamples whose difference lies at least as far from the mean of all
    resampled differences as the observed difference from 0; the observed difference counts as one more resample. With
    a few runs, the test is cautious (docs/explanation/search.md). p is not corrected for the number of settings: see
    `holm`. It is 1 for the first setting, for means that are printed alike, and for a single line, whose resamples are
    all the same. Raises Mistake as `approximate_randomization` does.
    """
    for runs in settings:
        for hypotheses in runs:
            check_lines(hypotheses, references)
    lines = len(references[0])
    if len(settings) == 1 or lines == 1:
        return [1.0] * len(settings)
    # Seed, generator and draws are sacrebleu's, as for the confidence intervals.
    generator = np.random.default_rng(resampling_seed())
    drawn_lines = generator.choice(lines, size=(resamples, lines), replace=True)
    # How often each resample contains each line; the first row is the whole corpus.
    times = np.stack([np.ones(lines, dtype=np.int64), *(np.bincount(row, minlength=lines) for row in drawn_lines)])
    observed, resampled = [], []
    for runs in settings:
        scores = np.stack([_bleu(times @ _line_counts(hypotheses, references, metric), metric) for hypotheses in runs])
        drawn_runs = generator.integers(len(runs), size=(resamples, max(1, len(runs) - 1)))
        observed.append(scores[:, 0].mean())
        resampled.append(scores[drawn_runs.T, np.arange(1, resamples + 1)].mean(axis=0))
    p_values = [1.0]
    for mean, means in zip(observed[1:], resampled[1:], strict=True):
        if _printed_alike(mean, observed[0]):
            p_values.append(1.0)
            continue
        differences = means - resampled[0]
        reached = int(np.sum(np.abs(differences - differences.mean()) >= abs(mean - observed[0])))
        p_values.append((reached + 1) / (resamples + 1))
    return p_values


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction (1979) of the p-values of several comparisons with one baseline, without the baseline's own p.

    If no system differs from the one they are all compared with, the probability that any corrected p is below 0.05
    is at most 0.05.
    """
    corrected, largest = [1.0] * len(p_values), 0.0
    for rank, number in enumerate(sorted(range(len(p_values)), key=lambda number: p_values[number])):
        largest = max(largest, min(1.0, p_values[number] * (len(p_values) - rank)))
        corrected[number] = largest
    return corrected


def _printed_alike(score: float, other: float) -> bool:
    return f"{score:.{DECIMALS}f}" == f"{other:.{DECIMALS}f}"


def _line_counts(hypotheses: Sequence[str], references: References, metric: BLEU) -> Int[np.ndarray, "lines counts"]:
    """For each line, the counts whose sums over a corpus determine its BLEU: lengths, matching n-grams, all n-grams."""
    line_scores = [
        metric.corpus_score([hypothesis], [[reference] for reference in line_references])
        for hypothesis, line_references in zip(hypotheses, zip(*references, strict=True), strict=True)
    ]
    return np.array(
        [[score.sys_len, score.ref_len, *score.counts, *score.totals] for score in line_scores], dtype=np.int64
    )


def _bleu(sums: Int[np.ndarray, "corpora counts"], metric: BLEU) -> np.ndarray:
    """BLEU of each corpus; a row holds the summed counts of its lines."""
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
        for length, reference_length, *counts in sums.tolist()
    ]
    return np.array(scores)
