import json
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import Mistake
from nmt.evaluation import scores
from nmt.evaluation.scores import all_metrics, corpus_scores, headline_metrics, sentence_scores

# A score is a Python float after at most 30 operations.
ROUNDED = 30 * sys.float_info.epsilon


def corpus(lines: int) -> tuple[list[str], list[str]]:
    """Hypotheses and references."""
    draw = random.Random(7)
    references = [" ".join(draw.choices(["mèo", "Chó,", "ngồi", "đây.", "xanh"], k=11)) for _ in range(lines)]
    return [" ".join(word for word in line.split() if draw.random() > 0.2) for line in references], references


THEIRS = {
    "BLEU": "-m bleu --tokenize 13a",
    "BLEU none": "-m bleu --tokenize none",
    "BLEU uncased": "-m bleu -lc",
    "chrF2": "-m chrf",
    "chrF2++": "-m chrf --chrf-word-order 2",
    "TER": "-m ter",
}


@pytest.mark.parametrize("references", [1, 2])
def test_all_scores_equal_those_of_the_sacrebleu_command_line(tmp_path: Path, references: int) -> None:
    hypotheses, first = corpus(23)
    given = [first, [line.upper() for line in reversed(first)]][:references]
    for name, lines in {"hyp": hypotheses, **{f"ref{n}": lines for n, lines in enumerate(given)}}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = {score.name: score for score in corpus_scores(hypotheses, given, all_metrics(tokenized=False))}
    assert set(THEIRS) <= set(found)
    files = " ".join(f"ref{n}" for n in range(references))
    for name, options in THEIRS.items():
        command = f"{files} -i hyp {options} --confidence -f json -w 4"
        theirs = json.loads(
            subprocess.run(
                [sys.executable, "-m", "sacrebleu", *command.split()],
                cwd=tmp_path,
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        # The command prints four decimals; our interval comes from six. The command computes resamples in float32, with
        # at most 20 operations on numbers up to 100: those of one chrF order, and the sum and the mean of all orders.
        score, printed = found[name], 0.5e-4 + ROUNDED * 100
        interval = printed + 0.5e-6 + 20 * 100 * 2**-24
        assert score.signature == theirs["signature"]
        assert score.value == pytest.approx(theirs["score"], rel=0, abs=printed)
        assert (score.low + score.high) / 2 == pytest.approx(theirs["confidence_mean"], rel=0, abs=interval)
        assert (score.high - score.low) / 2 == pytest.approx(theirs["confidence_var"], rel=0, abs=interval)


def test_tokenized_text_has_its_own_headline() -> None:
    hypotheses, references = corpus(5)
    assert [score.name for score in corpus_scores(hypotheses, [references])] == ["BLEU", "chrF2"]
    headline = corpus_scores(hypotheses, [references], headline_metrics(tokenized=True))[0]
    assert "tok:none" in headline.signature
    assert "BLEU 13a" in all_metrics(tokenized=True)
    assert "BLEU none" not in all_metrics(tokenized=True)


def test_spbleu_is_scored_if_its_model_is_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACREBLEU", str(tmp_path))
    assert "spBLEU" not in all_metrics(tokenized=False)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "flores200sacrebleuspm").touch()
    asked = []

    class Recorder(scores.Bleu):
        def __init__(self, tokenize: str = "13a", **options: Any) -> None:
            asked.append(tokenize)

    monkeypatch.setattr(scores, "Bleu", Recorder)
    assert "spBLEU" in all_metrics(tokenized=False)
    assert "flores200" in asked


def test_a_perfect_translation_scores_100_and_an_unrelated_one_0() -> None:
    _, references = corpus(5)
    assert [score.value for score in corpus_scores(references, [references])] == pytest.approx([100, 100], rel=ROUNDED)
    assert [score[1:4] for score in corpus_scores(["zzz"] * 5, [references])] == [(0, 0, 0)] * 2


def test_the_better_of_two_references_counts() -> None:
    assert sentence_scores(["mèo đen"], [["chó"], ["mèo đen"]]) == pytest.approx([100], rel=ROUNDED)
    assert corpus_scores(["mèo đen ngồi đây"], [["chó"], ["mèo đen ngồi đây"]])[0].value == pytest.approx(
        100, rel=ROUNDED
    )


def test_good_lines_have_higher_sentence_scores() -> None:
    assert sentence_scores(["mèo đen", "zzz"], [["mèo đen", "chó trắng"]]) == pytest.approx(
        [100, 0], rel=ROUNDED, abs=0
    )


def test_different_numbers_of_lines_are_refused() -> None:
    with pytest.raises(Mistake, match="2 hypotheses but 1 references"):
        corpus_scores(["a", "b"], [["a"]])
    with pytest.raises(Mistake, match="1 hypotheses but 2 references"):
        corpus_scores(["a"], [["a"], ["a", "b"]])
    with pytest.raises(Mistake, match="no sentences to score"):
        sentence_scores([], [[]])
    with pytest.raises(Mistake, match="no references to score against"):
        sentence_scores(["a"], [])


def test_resamples_with_and_without_a_match_have_an_interval() -> None:
    hypotheses = [", , , ,"] * 9 + ["x y z w"]
    references = ["a b c d e f."] + ["x y z w v u."] * 9
    for score in corpus_scores(hypotheses, [references], all_metrics(tokenized=False)):
        assert score.low <= score.value <= score.high
        assert not math.isnan(score.low)


def test_intervals_stay_in_the_range_of_the_score() -> None:
    """Around the mean of a skewed distribution they would reach below 0, and above 100."""
    good, bad = "a b c d e f", "p q r s t"
    high = {each.name: each for each in corpus_scores([good] * 4 + ["x"], [[good] * 4 + [bad]], all_metrics(False))}
    assert high["BLEU"].high == high["chrF2"].high == 100
    assert high["TER"].low == 0
    low = {each.name: each for each in corpus_scores([good, good, "x"], [[good, bad, bad]], all_metrics(False))}
    assert low["BLEU"].low == low["chrF2"].low == 0
    assert low["TER"].high > 100
