"""Translations of a test corpus and their scores."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.data.corpus import Direction, Pairs, file_pair, read_aligned
from nmt.decoding.translator import Translator
from nmt.evaluation.scores import Score, corpus_scores, looks_tokenized
from nmt.text import changes, count_changes, normalize

logger = logging.getLogger(__name__)


class Scored(NamedTuple):
    """Hypotheses in the order of the references, and the scores of the whole."""

    hypotheses: list[str]
    scores: list[Score]


def read_references(prefix: str, direction: Direction) -> Pairs:
    """The normalised source lines of a corpus and its references as they stand in the file, with a warning if need be.

    Raises as `nmt.data.corpus.read_aligned`.
    """
    pairs = read_aligned(prefix, direction)
    warn_of_changes(file_pair(prefix, direction)[1], pairs.target)
    return Pairs([normalize(line) for line in pairs.source], pairs.target)


def warn_of_changes(path: Path, references: Sequence[str]) -> None:
    """One warning in the log when normalisation would change references: hypotheses are normalised, they are not."""
    changed = sum(bool(changes(line)) for line in references)
    if changed:
        kinds = ", ".join(f"{kind} {lines}" for kind, lines in sorted(count_changes(references).items()))
        logger.warning(
            "%s: references are scored as they stand, but normalisation would change %d of %d lines (%s); BLEU may "
            "suffer.",
            path,
            changed,
            len(references),
            kinds,
        )


def score(translator: Translator, pairs: Pairs) -> Scored:
    """Translates the sources and scores them against the references."""
    hypotheses = translator.translate(pairs.source)
    return Scored(hypotheses, corpus_scores(hypotheses, pairs.target, tokenized=looks_tokenized(pairs.target)))
