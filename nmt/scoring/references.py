"""Reads references unchanged, and warns about those that may make scores misleading."""

import logging
from collections.abc import Sequence
from pathlib import Path

from nmt.config.direction import Direction
from nmt.data.corpus import Pairs, file_pair, read_aligned
from nmt.data.language_checks import swapped_check
from nmt.evaluation.sanity import looks_tokenized, reference_warnings
from nmt.text import changed_lines, detokenizer, normalize
from nmt.text.tone_marks import ToneMarks, with_tone_marks

logger = logging.getLogger(__name__)


def read_references(
    prefix: str, direction: Direction, detokenize: bool = False, tone_marks: ToneMarks | None = None
) -> Pairs:
    """The normalized source lines of a corpus and its unchanged references; logs warnings about the references.

    With `detokenize`, the sources are detokenized. `tone_marks` is the style of the translations. Raises whatever
    `nmt.data.corpus.read_aligned` raises.
    """
    pairs = read_aligned(prefix, direction)
    warn_of_references(file_pair(prefix, direction)[1], pairs.target, tone_marks)
    _warn_of_swapped(prefix, pairs, direction)
    plain = detokenizer(direction.source) if detokenize else str
    return Pairs([normalize(plain(line)) for line in pairs.source], pairs.target)


def _warn_of_swapped(prefix: str, pairs: Pairs, direction: Direction) -> None:
    check = swapped_check(direction)
    swapped = [number for number, pair in enumerate(zip(*pairs, strict=True), start=1) if check and check(*pair)]
    if swapped:
        logger.warning(
            "%s: %d of %d pairs seem to have their languages swapped, the first on line %d. They are scored unchanged; "
            "fix the files, unless you need scores comparable with published ones.",
            prefix,
            len(swapped),
            len(pairs.source),
            swapped[0],
        )


def is_tokenized(said: bool | None, references: Sequence[str]) -> bool:
    """Whether BLEU uses the references' own tokens: `said` (data.tokenized), or how they look if it is None."""
    return looks_tokenized(references) if said is None else said


def warn_of_references(path: Path, references: Sequence[str], tone_marks: ToneMarks | None = None) -> None:
    """Logs a warning if these references may make scores misleading, and another if normalization would change them.

    Hypotheses are normalized, and have their Vietnamese tone marks in the style `tone_marks`; references do not.
    """
    for sentence in reference_warnings(references):
        logger.warning("%s: %s", path, sentence)
    changed, kinds = changed_lines(references)
    if changed:
        logger.warning(
            "%s: references are scored unchanged, but normalization would change %d of %d lines (%s), which may lower "
            "BLEU: write them in NFC with single spaces and no invisible characters, unless you need scores "
            "comparable with published ones.",
            path,
            changed,
            len(references),
            kinds,
        )
    if tone_marks is None:
        return
    differing = sum(with_tone_marks(line, tone_marks) != line for line in map(normalize, references))
    if differing:
        logger.warning(
            "%s: references are scored unchanged, but %d of %d lines have Vietnamese tone marks in a different style "
            "from the translations (tokenizer.tone_marks=%s), which may lower BLEU: rewrite them in that style, unless "
            "you need scores comparable with published ones.",
            path,
            differing,
            len(references),
            tone_marks,
        )
