"""scripts/studies/contrastive_test.py: the right last sentence of a document against one that fits another context."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.config.direction import Direction
from nmt.errors import Mistake
from nmt.runs.load import load_run
from nmt.scoring.forced_scores import log_probs
from scripts.studies import contrastive_test as script

EN_VI = Direction("en", "vi")
DOCUMENTS = [
    [("one", "một"), ("two three", "hai ba")],
    [("four", "bốn"), ("two three", "hai bốn")],
    [("five", "năm"), ("six", "sáu"), ("one", "một")],
    [("four", "bốn"), ("six", "sáu"), ("one", "năm")],
]


def write(folder: Path, documents: Any, distances: str = "1\n1\n2\n2\n") -> str:
    for side, language in enumerate(("en", "vi")):
        lines = [pair[side] for document in documents for pair in document]
        (folder / f"c.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    names = [f"{number // 2}{'ab'[number % 2]}" for number, document in enumerate(documents) for _ in document]
    (folder / "c.doc").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    (folder / "c.antecedent").write_text(distances, encoding="utf-8")
    return str(folder / "c")


def test_the_wrong_sentence_is_the_right_one_of_the_other_document(tmp_path: Path) -> None:
    first, second, third, fourth = script.read_cases(write(tmp_path, DOCUMENTS), EN_VI)
    assert first == script.Case(["one", "two three"], ["một", "hai ba"], "hai bốn", 1)
    assert (second.targets[-1], second.wrong) == (first.wrong, first.targets[-1])
    assert (third.wrong, fourth.wrong, fourth.distance) == ("năm", "một", 2)


def test_a_run_is_right_where_the_right_sentence_is_more_probable(document_runs: Path, tmp_path: Path) -> None:
    cases = script.read_cases(write(tmp_path, DOCUMENTS), EN_VI)
    trained = load_run(document_runs / "hierarchical", "cpu")
    found = script.is_right(trained, cases, in_context=True)
    for case, right in zip(cases, found, strict=True):
        same = ["d"] * len(case.sources)
        given = log_probs([trained], case.sources, case.targets, documents=same)[-1]
        other = log_probs([trained], case.sources, [*case.targets[:-1], case.wrong], documents=same)[-1]
        assert right == (given > other)


def test_without_context_half_of_the_documents_are_right(document_runs: Path, tmp_path: Path) -> None:
    """The two of a pair ask for different translations of one sentence."""
    cases = script.read_cases(write(tmp_path, DOCUMENTS), EN_VI)
    found = script.is_right(load_run(document_runs / "sentences", "cpu"), cases, in_context=False)
    assert [found[0] != found[1], found[2] != found[3]] == [True, True]


def test_the_weight_is_that_of_the_antecedents_sentence(document_runs: Path, tmp_path: Path) -> None:
    trained = load_run(document_runs / "hierarchical", "cpu")
    cases = script.read_cases(write(tmp_path, DOCUMENTS), EN_VI)
    found = script.antecedent_weights(trained, cases)
    assert found is not None
    # One earlier sentence has all the weight; of two, each has a part of it.
    np.testing.assert_allclose([weight for weight, _ in found[:2]], 1, rtol=1e-5)
    assert [equal for _, equal in found] == [1, 1, 0.5, 0.5]
    assert all(0 < weight < 1 for weight, _ in found[2:])
    near = [case._replace(distance=1) for case in cases[2:]]
    others = script.antecedent_weights(trained, near)
    assert others is not None
    sums = [one + other for (one, _), (other, _) in zip(found[2:], others, strict=True)]
    np.testing.assert_allclose(sums, 1, rtol=1e-5)
    assert script.antecedent_weights(load_run(document_runs / "sentences", "cpu"), cases) is None


def test_the_table_has_an_interval(document_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prefix = write(tmp_path, DOCUMENTS)
    script.main([str(document_runs / "sentences"), str(document_runs / "hierarchical"), "--corpus", prefix])
    printed = capsys.readouterr().out
    assert "50.0 [15.0, 85.0] | 50.0, 50.0" in printed
    assert math.isfinite(float(printed.strip().splitlines()[-1].split("|")[4]))


@pytest.mark.parametrize(
    ("documents", "distances", "message"),
    [
        (DOCUMENTS[:3], "1\n1\n2\n", "has 3 documents and 3 antecedents; it must have pairs"),
        (DOCUMENTS, "1\n1\n", "has 4 documents and 2 antecedents; it must have pairs"),
        (
            [DOCUMENTS[0], DOCUMENTS[2]],
            "1\n1\n",
            "Documents 1 and 2 of .* are not a pair: their last sources",
        ),
    ],
)
def test_a_corpus_without_pairs_is_refused(tmp_path: Path, documents: Any, distances: str, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        script.read_cases(write(tmp_path, documents, distances), EN_VI)
    (tmp_path / "c.doc").unlink()
    with pytest.raises(Mistake, match=r"has no PREFIX\.doc, so it has no documents to test"):
        script.read_cases(str(tmp_path / "c"), EN_VI)
