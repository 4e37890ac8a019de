"""Paired significance: sacrebleu's own, from its command line."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.evaluation.scores import headline_metrics
from nmt.evaluation.significance import paired_bootstrap

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


def test_equal_systems_differ_by_chance_for_sure_and_one_has_nothing_to_differ_from() -> None:
    references, systems = corpus(13)
    assert paired_bootstrap([systems[0], systems[0]], [references], BLEU) == [1, 1]
    assert paired_bootstrap(systems[:1], [references], BLEU) == [1]
    spaced = [line.replace(",", " ,") + " " for line in systems[0]]
    assert paired_bootstrap([systems[0], spaced], [references], BLEU) == [1, 1]
    assert paired_bootstrap([["a b c d"] * 13, ["e f g h"] * 13], [references], BLEU) == [1, 1]
    assert paired_bootstrap([references[:1], systems[0][:1]], [references[:1]], BLEU) == [1, 1]


def test_systems_of_other_lines_are_refused() -> None:
    with pytest.raises(ValueError, match="2 hypotheses but 1 references"):
        paired_bootstrap([["a"], ["a", "b"]], [["a"]], BLEU)
