"""Significance: the law of p-values, sacrebleu's p-values, and a direct computation on texts."""

import math
import random
from typing import Any

import numpy as np
import pytest
from sacrebleu.significance import PairedTest

from nmt.errors import Mistake
from nmt.evaluation.scores import headline_metrics
from nmt.evaluation.significance import approximate_randomization, holm, multi_bootstrap

BLEU: Any = headline_metrics(tokenized=False)["BLEU"]


def corpus(lines: int) -> tuple[list[str], list[list[str]]]:
    """References, and three systems: one that drops words, one that drops more, one that drops as many."""
    draw = random.Random(7)
    references = [" ".join(draw.choices(["mèo", "chó,", "ngồi", "đây.", "xanh"], k=11)) for _ in range(lines)]
    systems = [
        [" ".join(word for word in line.split() if draw.random() > share) for line in references]
        for share in (0.1, 0.3, 0.1)
    ]
    return references, systems


def test_p_values_are_those_of_sacrebleu() -> None:
    """The oracle counts only trials above the observed difference; here none equals it."""
    draw = random.Random(3)
    references = [" ".join(draw.choices([f"từ{n}" for n in range(40)], k=draw.randrange(6, 20))) for _ in range(60)]
    systems = [outputs(references, share, seed) for seed, share in enumerate((0.1, 0.16, 0.1, 0.3))]
    named = [(str(number), hypotheses) for number, hypotheses in enumerate(systems)]
    test = PairedTest(named, {"score": BLEU}, [references], test_type="ar", n_samples=1000)
    columns: dict[str, Any] = dict(test()[1])
    found = approximate_randomization(systems, [references], BLEU, trials=1000)
    assert found == pytest.approx([1.0, *(result.p_value for result in columns["BLEU"][1:])])
    assert found[3] < 0.01 < found[2]


def test_equally_good_systems_have_p_values_of_every_size() -> None:
    """The share of p-values up to x is x. sacrebleu's paired bootstrap gives a tenth below 0.05 and none above 0.5."""
    simulations, draw, p_values = 100, random.Random(5), []
    references = [" ".join(draw.choices([f"từ{n}" for n in range(40)], k=8)) for _ in range(16)]
    for _ in range(simulations):
        systems = [outputs(references, 0.1, draw.randrange(10**9)) for _ in range(2)]
        p_values.append(approximate_randomization(systems, [references], BLEU, trials=99)[1])
    shares = np.arange(1, simulations + 1) / simulations
    # The Dvoretzky-Kiefer-Wolfowitz inequality, exceeded once in a million times; p is a multiple of 1/100.
    bound = math.sqrt(math.log(2 / 1e-6) / (2 * simulations)) + 1 / 100
    assert np.abs(np.sort(p_values) - shares).max() < bound + 1 / simulations
    # Hoeffding's inequality (Chernoff's form) for a binomial count, exceeded once in ten thousand times.
    few = simulations * 0.05 + math.sqrt(3 * simulations * 0.05 * math.log(1e4))
    assert sum(p < 0.05 for p in p_values) < few


def test_the_two_tests_agree_on_pairs_of_runs() -> None:
    references, systems = corpus(200)
    randomized = approximate_randomization(systems, [references], BLEU, trials=999)
    resampled = multi_bootstrap([[system] for system in systems], [references], BLEU)
    assert randomized[1] < 0.01
    assert resampled[1] < 0.01
    # Four standard errors of the difference of two shares of 1,000 resamples.
    assert randomized[2] == pytest.approx(resampled[2], abs=4 * math.sqrt(2 * 0.25 / 1000))


def test_trials_that_equal_the_observed_difference_count() -> None:
    """Only one of 25 sentences differs, so every trial has the observed difference."""
    references, _ = corpus(25)
    one = [references[0].replace("mèo", "chó").replace("xanh", "đỏ"), *references[1:]]
    assert one != references
    assert approximate_randomization([references, one], [references], BLEU, trials=99) == [1, 1]


def test_p_is_1_for_equal_scores_a_single_system_and_a_single_line() -> None:
    references, systems = corpus(13)
    assert approximate_randomization([systems[0], systems[0]], [references], BLEU, trials=99) == [1, 1]
    assert approximate_randomization(systems[:1], [references], BLEU) == [1]
    spaced = [line.replace(",", " ,") + " " for line in systems[0]]
    assert approximate_randomization([systems[0], spaced], [references], BLEU, trials=99) == [1, 1]
    assert approximate_randomization([["a b c d"] * 13, ["e f g h"] * 13], [references], BLEU, trials=99) == [1, 1]
    assert approximate_randomization([references[:1], systems[0][:1]], [references[:1]], BLEU, trials=99) == [1, 1]


def test_scores_that_are_printed_alike_do_not_differ() -> None:
    """Both BLEU are printed as 0.00, but one is larger than the other in nearly every trial."""
    references, _ = corpus(2000)
    wrong = ["x " * 11 for _ in references]
    better = [
        f"{line.split()[0]} {line.split()[1]} {'x ' * 9}" if n < 1 else wrong[0] for n, line in enumerate(references)
    ]
    scores = [BLEU.corpus_score(each, [references]).score for each in (wrong, better)]
    assert scores[0] != scores[1]
    assert [f"{score:.2f}" for score in scores] == ["0.00", "0.00"]
    assert approximate_randomization([wrong, better], [references], BLEU, trials=99) == [1, 1]
    assert multi_bootstrap([[wrong], [better]], [references], BLEU, 99) == [1, 1]


def test_the_correction_for_several_comparisons_is_holm_s() -> None:
    """By rank, multiplied by 4, 3, 2 and 1, and never below a smaller one."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.4, 0.9]) == [0.8, 0.9]
    assert holm([0.6, 0.9]) == [1, 1]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


def test_different_numbers_of_lines_are_refused() -> None:
    with pytest.raises(Mistake, match="2 hypotheses but 1 references"):
        approximate_randomization([["a"], ["a", "b"]], [["a"]], BLEU)
    with pytest.raises(Mistake, match="2 hypotheses but 1 references"):
        multi_bootstrap([[["a"]], [["a"], ["a", "b"]]], [["a"]], BLEU)


def outputs(references: list[str], share: float, seed: int) -> list[str]:
    """References with a share of their words left out."""
    draw = random.Random(seed)
    return [" ".join(word for word in line.split() if draw.random() > share) for line in references]


def test_p_of_settings_is_that_of_texts_put_together_and_scored() -> None:
    resamples, lines = 25, 13
    references, _ = corpus(lines)
    settings = [
        [outputs(references, 0.1, seed) for seed in (1, 2, 3)],
        [outputs(references, 0.15, seed) for seed in (4, 5)],
    ]

    def bleu(hypotheses: list[str], rows: np.ndarray) -> float:
        return float(BLEU.corpus_score([hypotheses[i] for i in rows], [[references[i] for i in rows]]).score)

    generator = np.random.default_rng(12345)
    drawn_lines = generator.choice(lines, size=(resamples, lines), replace=True)
    means, observed = [], []
    for runs in settings:
        drawn_runs = generator.integers(len(runs), size=(resamples, len(runs) - 1))
        means.append(
            [np.mean([bleu(runs[j], rows) for j in own]) for rows, own in zip(drawn_lines, drawn_runs, strict=True)]
        )
        observed.append(np.mean([bleu(run, np.arange(lines)) for run in runs]))
    differences = np.array(means[1]) - np.array(means[0])
    reached = sum(np.abs(differences - differences.mean()) >= abs(observed[1] - observed[0]))
    found = multi_bootstrap(settings, [references], BLEU, resamples)
    assert found == pytest.approx([1, (reached + 1) / (resamples + 1)])


def test_a_difference_that_seeds_explain_is_not_one_of_settings() -> None:
    references, _ = corpus(300)
    good, bad = (outputs(references, share, 1) for share in (0.1, 0.3))
    assert approximate_randomization([good, bad], [references], BLEU, trials=999)[1] < 0.01
    mixed = [[good, outputs(references, 0.3, 2)], [bad, outputs(references, 0.12, 3)]]
    assert multi_bootstrap(mixed, [references], BLEU)[1] > 0.1
    alike = [[good, outputs(references, 0.1, 2)], [bad, outputs(references, 0.3, 3)]]
    assert multi_bootstrap(alike, [references], BLEU)[1] < 0.01


def test_settings_with_equal_scores_or_a_single_line_have_p_1() -> None:
    references, systems = corpus(13)
    assert multi_bootstrap([systems[:2], systems[1::-1]], [references], BLEU) == [1, 1]
    assert multi_bootstrap([systems], [references], BLEU) == [1]
    assert multi_bootstrap([[references[:1]], [systems[0][:1]]], [references[:1]], BLEU) == [1, 1]
