"""Significance: the p-values of sacrebleu's command line, and a direct computation on texts."""

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import Mistake
from nmt.evaluation import significance
from nmt.evaluation.scores import headline_metrics
from nmt.evaluation.significance import multi_bootstrap, paired_bootstrap

BLEU = headline_metrics(tokenized=False)["BLEU"]


def corpus(lines: int) -> tuple[list[str], list[list[str]]]:
    """References, and three systems: one that drops words, one that drops more, one that drops as many."""
    draw = random.Random(7)
    references = [" ".join(draw.choices(["mèo", "chó,", "ngồi", "đây.", "xanh"], k=11)) for _ in range(lines)]
    systems = [
        [" ".join(word for word in line.split() if draw.random() > share) for line in references]
        for share in (0.1, 0.3, 0.1)
    ]
    return references, systems


def test_p_values_are_those_of_the_sacrebleu_command_line(tmp_path: Path) -> None:
    references, systems = corpus(31)
    for name, lines in {"ref": references, **{f"s{n}": lines for n, lines in enumerate(systems)}}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = "ref -i s0 s1 s2 -m bleu --paired-bs --paired-bs-n 1000 -f json"
    output = subprocess.run(
        [sys.executable, "-m", "sacrebleu", *command.split()], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    theirs = [system["BLEU"]["p_value"] for system in json.loads(output)[1:]]
    found = paired_bootstrap(systems, [references], BLEU)
    assert found[0] == 1
    assert found[1:] == pytest.approx(theirs)
    assert found[1] < 0.01 < found[2]


def test_p_is_1_for_equal_scores_a_single_system_and_a_single_line() -> None:
    references, systems = corpus(13)
    assert paired_bootstrap([systems[0], systems[0]], [references], BLEU) == [1, 1]
    assert paired_bootstrap(systems[:1], [references], BLEU) == [1]
    spaced = [line.replace(",", " ,") + " " for line in systems[0]]
    assert paired_bootstrap([systems[0], spaced], [references], BLEU) == [1, 1]
    assert paired_bootstrap([["a b c d"] * 13, ["e f g h"] * 13], [references], BLEU) == [1, 1]
    assert paired_bootstrap([references[:1], systems[0][:1]], [references[:1]], BLEU) == [1, 1]


def test_different_numbers_of_lines_are_refused() -> None:
    with pytest.raises(Mistake, match="2 hypotheses but 1 references"):
        paired_bootstrap([["a"], ["a", "b"]], [["a"]], BLEU)
    with pytest.raises(Mistake, match="2 hypotheses but 1 references"):
        multi_bootstrap([[["a"]], [["a"], ["a", "b"]]], [["a"]], BLEU)


def outputs(references: list[str], share: float, seed: int) -> list[str]:
    """References with a share of their words left out."""
    draw = random.Random(seed)
    return [" ".join(word for word in line.split() if draw.random() > share) for line in references]


def test_with_one_run_each_settings_have_the_p_values_of_their_runs() -> None:
    references, systems = corpus(31)
    found = multi_bootstrap([[system] for system in systems], [references], BLEU)
    assert found == pytest.approx(paired_bootstrap(systems, [references], BLEU))
    two = [references, [line.replace("mèo", "chó") for line in references]]
    found = multi_bootstrap([[system] for system in systems], two, BLEU)
    assert found == pytest.approx(paired_bootstrap(systems, two, BLEU))


def test_p_of_settings_is_that_of_texts_put_together_and_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    resamples, lines = 25, 13
    monkeypatch.setattr(significance, "RESAMPLES", resamples)
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
    differences = np.abs(np.array(means[1]) - np.array(means[0]))
    exceeding = sum(differences - differences.mean() > abs(observed[1] - observed[0]))
    assert multi_bootstrap(settings, [references], BLEU) == pytest.approx([1, (exceeding + 1) / (resamples + 1)])


def test_a_difference_that_seeds_explain_is_not_one_of_settings() -> None:
    references, _ = corpus(300)
    good, bad = (outputs(references, share, 1) for share in (0.1, 0.3))
    assert paired_bootstrap([good, bad], [references], BLEU)[1] < 0.01
    mixed = [[good, outputs(references, 0.3, 2)], [bad, outputs(references, 0.12, 3)]]
    assert multi_bootstrap(mixed, [references], BLEU)[1] > 0.1
    alike = [[good, outputs(references, 0.1, 2)], [bad, outputs(references, 0.3, 3)]]
    assert multi_bootstrap(alike, [references], BLEU)[1] < 0.01


def test_settings_with_equal_scores_or_a_single_line_have_p_1() -> None:
    references, systems = corpus(13)
    assert multi_bootstrap([systems[:2], systems[1::-1]], [references], BLEU) == [1, 1]
    assert multi_bootstrap([systems], [references], BLEU) == [1]
    assert multi_bootstrap([[references[:1]], [systems[0][:1]]], [references[:1]], BLEU) == [1, 1]
