import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.evaluation.scores import by_length, corpus_scores, looks_tokenized, sentence_scores


def corpus(lines: int) -> tuple[list[str], list[str], list[str]]:
    draw = random.Random(7)
    sources = [" ".join(draw.choices("abcdefg", k=draw.randint(1, 60))) for _ in range(lines)]
    references = [" ".join(draw.choices(["mèo", "chó,", "ngồi", "đây.", "xanh"], k=11)) for _ in range(lines)]
    hypotheses = [" ".join(word for word in line.split() if draw.random() > 0.2) for line in references]
    return sources, hypotheses, references


@pytest.mark.parametrize("tokenize", ["13a", "none"])
def test_equals_the_sacrebleu_command_line(tmp_path: Path, tokenize: str) -> None:
    _, hypotheses, references = corpus(23)
    (tmp_path / "hyp").write_text("\n".join(hypotheses) + "\n", encoding="utf-8")
    (tmp_path / "ref").write_text("\n".join(references) + "\n", encoding="utf-8")
    command = f"-i hyp -m bleu chrf --tokenize {tokenize} --confidence -f json -w 4 ref"
    output = subprocess.run(
        [sys.executable, "-m", "sacrebleu", *command.split()], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    scores = corpus_scores(hypotheses, references, tokenized=tokenize == "none")
    for score, theirs in zip((scores[0], scores[-1]), json.loads(output), strict=True):
        assert (score.name, score.signature) == (theirs["name"], theirs["signature"])
        assert score.value == pytest.approx(theirs["score"], abs=1e-4)
        assert (score.low + score.high) / 2 == pytest.approx(theirs["confidence_mean"], abs=1e-4)
        assert (score.high - score.low) / 2 == pytest.approx(theirs["confidence_var"], abs=1e-4)


def test_tokenized_text_has_its_own_headline() -> None:
    _, hypotheses, references = corpus(5)
    assert [score.name for score in corpus_scores(hypotheses, references)] == ["BLEU", "chrF2"]
    scores = corpus_scores(hypotheses, references, tokenized=True)
    assert [score.name for score in scores] == ["BLEU", "BLEU", "chrF2"]
    assert "tok:none" in scores[0].signature
    assert "tok:13a" in scores[1].signature


def test_a_perfect_translation_scores_100_and_an_unrelated_one_0() -> None:
    _, _, references = corpus(5)
    assert [score.value for score in corpus_scores(references, references)] == pytest.approx([100, 100])
    assert [score[1:4] for score in corpus_scores(["zzz"] * 5, references)] == [(0, 0, 0)] * 2


def test_buckets_hold_every_sentence_once() -> None:
    sources, hypotheses, references = corpus(41)
    buckets = by_length(hypotheses, references, sources)
    assert sum(bucket.sentences for bucket in buckets) == 41
    for bucket in buckets:
        longest = bucket.longest or 99
        chosen = [i for i, source in enumerate(sources) if bucket.shortest <= len(source.split()) <= longest]
        alone = corpus_scores([hypotheses[i] for i in chosen], [references[i] for i in chosen])[0]
        assert bucket.score == alone


def test_empty_buckets_are_left_out() -> None:
    (bucket,) = by_length(["x y"], ["x y"], ["a " * 51])
    assert (bucket.shortest, bucket.longest, bucket.sentences) == (51, None, 1)


def test_sentence_scores_tell_good_lines_from_bad_ones() -> None:
    assert sentence_scores(["mèo đen", "zzz"], ["mèo đen", "chó trắng"]) == pytest.approx([100, 0])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["Hello , world .", "He said &quot; no &quot; ."], True),
        (["Hello, world.", "No?", "What a day ..."], False),
        (["no punctuation at all"], False),
        ([], False),
    ],
)
def test_tokenised_references_are_recognised(lines: list[str], expected: bool) -> None:
    assert looks_tokenized(lines) is expected


def test_different_numbers_of_lines_are_refused() -> None:
    with pytest.raises(ValueError, match="2 hypotheses but 1 references"):
        corpus_scores(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="1 hypotheses but 2 sources"):
        by_length(["a"], ["a"], ["a", "b"])
    with pytest.raises(ValueError, match="no sentences to score"):
        sentence_scores([], [])


def test_resamples_with_and_without_a_match_have_an_interval() -> None:
    hypotheses = [", , , ,"] * 9 + ["x y z w"]
    references = ["a b c d e f."] + ["x y z w v u."] * 9
    bleu = corpus_scores(hypotheses, references)[0]
    assert bleu.low < bleu.value < bleu.high
