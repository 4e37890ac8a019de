"""scripts/studies/search_study.py: the widest beam is always best, and every sentence is tried."""

import pytest

from nmt.errors import Mistake
from scripts.studies import search_study


def test_the_wide_beam_finds_the_best_of_all_sentences_under_every_penalty():
    rows = search_study.study(models=1)
    assert len(rows) == len(search_study.LENGTH_PENALTIES) * len(search_study.COVERAGE_PENALTIES)
    assert all(row[2] == "1 of 1" for row in rows)


def test_every_sentence_is_tried_once():
    sentences = list(search_study.every_sentence())
    assert len(sentences) == len(set(sentences)) == sum(3**n for n in range(7))


def test_the_probabilities_of_all_sentences_add_up_to_no_more_than_one():
    totals, coverages, _ = search_study.tried(search_study.Table(3), list(search_study.every_sentence()))
    assert 0.5 < float(totals.exp().sum()) <= 1
    assert coverages.le(0).all()


def test_a_number_of_models_below_one_is_refused():
    with pytest.raises(Mistake, match="--models is 0; it must be at least 1"):
        search_study.main(["--models", "0"])
