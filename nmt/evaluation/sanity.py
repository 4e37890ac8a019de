"""Signs of misleading scores and of bad translations."""

import re
from collections import Counter
from collections.abc import Sequence

from nmt.text.patterns import HTML_ENTITY

# Without ! ? ; and :, because French has a space before them in plain text too.
_DETACHED = re.compile(rf"(?<!\S)(?:[.,]|{HTML_ENTITY})(?!\S)")
_ATTACHED = re.compile(r"\w[.,](?!\S)")
_ENTITY = re.compile(HTML_ENTITY)
_UNKNOWN = ("<unk>", "\u2047")  # the piece as text, and the character that SentencePiece decodes it to
_SHARE = 0.05
"""Copied sources and repeated lines are reported only if they exceed this share of all lines."""


def looks_tokenized(references: Sequence[str]) -> bool:
    """Whether periods, commas and entities that stand alone outnumber periods and commas at the end of a word."""
    detached = sum(len(_DETACHED.findall(line)) for line in references)
    return detached > sum(len(_ATTACHED.findall(line)) for line in references)


def reference_warnings(references: Sequence[str]) -> list[str]:
    """Reasons why scores against these references may be misleading, one sentence each."""
    warnings = []
    if looks_tokenized(references):
        warnings.append(
            "The references look tokenized: this BLEU is comparable only with BLEU computed on the same tokens."
        )
    entities = sum(bool(_ENTITY.search(line)) for line in references)
    if entities:
        warnings.append(f"{_lines(entities, references)} of the references contain HTML entities such as &quot;.")
    return warnings


def hypothesis_warnings(
    hypotheses: Sequence[str], sources: Sequence[str] | None, references: Sequence[str]
) -> list[str]:
    """Signs of bad translations, one sentence each. Copied sources are detected only if `sources` is given."""
    warnings = []
    originals, kind = (references, "references") if sources is None else (sources, "sources")
    unknown = sum(any(sign in line for sign in _UNKNOWN) for line in hypotheses)
    if unknown:
        warnings.append(f"{_lines(unknown, hypotheses)} of the translations contain an unknown piece.")
    empty = sum(not line.strip() and bool(source.strip()) for line, source in zip(hypotheses, originals, strict=True))
    if empty:
        warnings.append(f"{_lines(empty, hypotheses)} of the translations are empty though their {kind} are not.")
    triples = zip(hypotheses, originals, references, strict=True)
    copies = sum(line == source != reference and " " in source for line, source, reference in triples)
    if copies > _SHARE * len(hypotheses):
        warnings.append(f"{_lines(copies, hypotheses)} of the translations are copies of their sources.")
    repeated = Counter(line for line in hypotheses if line.strip()).most_common(1)
    line, times = repeated[0] if repeated else ("", 0)
    usual = Counter(references).most_common(1)[0][1]
    if times > max(usual, _SHARE * len(hypotheses), 1):
        warnings.append(f"{_lines(times, hypotheses)} of the translations are the same: '{line}'.")
    ratio = sum(map(len, hypotheses)) / max(1, sum(map(len, references)))
    if not 0.8 <= ratio <= 1.25:
        warnings.append(f"The translations are {ratio:.2f} times as long as the references, in characters.")
    return warnings


def _lines(number: int, all_of_them: Sequence[str]) -> str:
    return f"{number} of {len(all_of_them)} lines"
