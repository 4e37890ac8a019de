"""Translations of a test corpus and their scores."""

from typing import NamedTuple

from nmt.data.corpus import Direction, Pairs, file_pair, read_lines, read_pairs
from nmt.decoding.translator import Translator
from nmt.evaluation.scores import Score, corpus_scores, looks_tokenized


class Scored(NamedTuple):
    """Hypotheses in the order of the references, and the scores of the whole."""

    hypotheses: list[str]
    scores: list[Score]


def read_references(prefix: str, direction: Direction) -> Pairs:
    """The normalised source lines of a corpus and its references as they stand in the file."""
    return Pairs(read_pairs(prefix, direction).source, read_lines(file_pair(prefix, direction)[1]))


def score(translator: Translator, pairs: Pairs) -> Scored:
    """Translates the sources and scores them against the references."""
    hypotheses = translator.translate(pairs.source)
    return Scored(hypotheses, corpus_scores(hypotheses, pairs.target, tokenized=looks_tokenized(pairs.target)))
