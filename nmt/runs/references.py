"""References: read as they stand, with a warning where they are not what they seem."""

import logging
from collections.abc import Sequence
from pathlib import Path

from nmt.config.direction import Direction
from nmt.data.corpus import Pairs, file_pair, read_aligned
from nmt.data.inspection import swapped_check
from nmt.evaluation.sanity import looks_tokenized, reference_warnings
from nmt.text import changes, count_changes, detokenizer, normalize

logger = logging.getLogger(__name__)


def read_references(prefix: str, direction: Direction, detokenize: bool = False) -> Pairs:
    """The normalised source lines of a corpus and its references as they stand in the file, with a warning if need be.

    With `detokenize` the sources become plain text; the references are never changed. Raises as
    `nmt.data.corpus.read_aligned`.
    """
    pairs = read_aligned(prefix, direction)
    warn_of_references(file_pair(prefix, direction)[1], pairs.target)
    _warn_of_swapped(prefix, pairs, direction)
    plain = detokenizer(direction.source) if detokenize else str
    return Pairs([normalize(plain(line)) for line in pairs.source], pairs.target)


def _warn_of_swapped(prefix: str, pairs: Pairs, direction: Direction) -> None:
    check = swapped_check(direction)
    swapped = [number for number, pair in enumerate(zip(*pairs, strict=True), start=1) if check and check(*pair)]
    if swapped:
        logger.warning(
            "%s: %d of %d pairs seem to have their languages swapped, line %d first; they are scored as they stand: "
            "mend the files, unless the scores shall compare with those of others.",
            prefix,
            len(swapped),
            len(pairs.source),
            swapped[0],
        )


def is_tokenized(said: bool | None, references: Sequence[str]) -> bool:
    """Whether BLEU is over the references' own tokens: as data.tokenized has it, or as they look where that is null."""
    return looks_tokenized(references) if said is None else bool(said)


def warn_of_references(path: Path, references: Sequence[str]) -> None:
    """Warns in the log where scores against these references mislead, and where normalisation would change them.

    Hypotheses are normalised, references are not.
    """
    for sentence in reference_warnings(references):
        logger.warning("%s: %s", path, sentence)
    changed = sum(bool(changes(line)) for line in references)
    if changed:
        kinds = ", ".join(f"{kind} {lines}" for kind, lines in sorted(count_changes(references).items()))
        logger.warning(
            "%s: references are scored as they stand, but normalisation would change %d of %d lines (%s); BLEU may "
            "suffer: write them in NFC with single spaces, unless the scores shall compare with those of others.",
            path,
            changed,
            len(references),
            kinds,
        )
