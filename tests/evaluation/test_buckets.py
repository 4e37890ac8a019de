"""Scores by groups of sentences."""

import random
from collections import Counter

import pytest

from nmt.errors import Mistake
from nmt.evaluation.buckets import by_length, by_rarest_word, words_of
from nmt.evaluation.scores import corpus_scores, headline_metrics

METRIC = {"BLEU": headline_metrics(tokenized=False)["BLEU"]}


def corpus(lines: int) -> tuple[list[str], list[str], list[str]]:
    """Sources, hypotheses and references."""
    draw = random.Random(7)
    sources = [" ".join(draw.choices("abcdefg", k=draw.randint(1, 60))) for _ in range(lines)]
    references = [" ".join(draw.choices(["mèo", "chó,", "ngồi", "đây.", "xanh"], k=11)) for _ in range(lines)]
    return sources, [" ".join(word for word in line.split() if draw.random() > 0.2) for line in references], references


def test_every_sentence_is_in_one_bucket_of_length() -> None:
    sources, hypotheses, references = corpus(41)
    buckets = by_length(hypotheses, [references], sources, METRIC)
    assert sum(bucket.sentences for bucket in buckets) == 41
    for bucket in buckets:
        most = bucket.most or 99
        chosen = [i for i, source in enumerate(sources) if bucket.least <= len(source.split()) <= most]
        [alone] = corpus_scores([hypotheses[i] for i in chosen], [[references[i] for i in chosen]], METRIC)
        assert bucket.score == alone


def test_empty_buckets_are_left_out() -> None:
    [bucket] = by_length(["x y"], [["x y"]], ["a " * 51], METRIC)
    assert (bucket.least, bucket.most, bucket.sentences) == (51, None, 1)


def test_a_sentence_is_as_rare_as_its_rarest_word() -> None:
    counts = Counter({"the": 500, "cat": 7, "dog": 1})
    sources = ["The cat.", "the DOG, the cat", "a the", "the", ""]
    lines = ["x"] * 5
    found = {(b.least, b.most): b.sentences for b in by_rarest_word(lines, [lines], sources, counts, METRIC)}
    assert found == {(0, 0): 1, (1, 1): 1, (5, 9): 1, (100, None): 1}


def test_words_are_compared_without_case_and_punctuation_around_them() -> None:
    assert list(words_of("“He said: don't - go!”")) == ["he", "said", "don't", "go"]


def test_different_numbers_of_lines_are_refused() -> None:
    with pytest.raises(Mistake, match="1 hypotheses but 2 sources"):
        by_length(["a"], [["a"]], ["a", "b"], METRIC)
