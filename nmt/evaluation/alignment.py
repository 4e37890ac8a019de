"""Word alignments: Pharaoh files, alignment error rate, and links read off attention maps."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from nmt.data.corpus import read_lines
from nmt.evaluation.words import word_map

SHIFTS = (0, 1)

Link = tuple[int, int]
"""(source word, target word), both from 0."""

_LINK = re.compile(r"(\d+)([-?])(\d+)", re.ASCII)


class Alignment(NamedTuple):
    """A human alignment of one sentence pair; every sure link is possible too."""

    sure: frozenset[Link]
    possible: frozenset[Link]


class Choice(NamedTuple):
    """The map that links are read from."""

    shift: int
    """1: the row one step later, where the target piece is the decoder's input (Chen et al. 2020, Shift-Att)."""
    layer: int
    head: int | None
    """None: the mean of the heads."""
    aer: float
    """On the data that it was chosen on."""


def read_alignments(path: Path, *, flip: bool = False) -> list[Alignment]:
    """A Pharaoh file: per line links 'i-j' (sure) and 'i?j' (possible), source word first, from 0.

    `flip` swaps source and target: for a file of the other direction. Raises FileNotFoundError, and ValueError naming
    file and line.
    """
    return [_parse(line, flip, f"{path}, line {number}") for number, line in enumerate(read_lines(path), 1)]


def check_links(path: Path, alignments: Sequence[Alignment], sources: Sequence[str], targets: Sequence[str]) -> None:
    """Raise ValueError where `alignments`, read from `path`, are not those of the sentence pairs."""
    if not len(alignments) == len(sources) == len(targets):
        raise ValueError(
            f"{path} has {len(alignments)} lines, but there are {len(sources)} source and {len(targets)} target "
            "sentences: one line per sentence pair is needed."
        )
    for number, (gold, source, target) in enumerate(zip(alignments, sources, targets, strict=True), 1):
        words = len(source.split()), len(target.split())
        for i, j in sorted(gold.sure | gold.possible):
            if i >= words[0] or j >= words[1]:
                raise ValueError(
                    f"{path}, line {number}: link {i}-{j} is outside of a pair of {words[0]} source and {words[1]} "
                    "target words; words are counted from 0, source first (or should the file be flipped?)."
                )


def aer(predicted: Sequence[Collection[Link]], gold: Sequence[Alignment]) -> float:
    """Alignment error rate 1 - (|A n S| + |A n P|) / (|A| + |S|), summed over the corpus first (Och & Ney 2003).

    A: predicted, S: sure, P: possible links. 0 is perfect, 1 worst. Raises ValueError when the numbers of sentences
    differ or there is neither a predicted nor a sure link.
    """
    if len(predicted) != len(gold):
        raise ValueError(
            f"{len(predicted)} predicted alignments but {len(gold)} gold ones: they must be the same pairs."
        )
    agreed = total = 0
    for links, (sure, possible) in zip(map(frozenset, predicted), gold, strict=True):
        agreed += len(links & sure) + len(links & possible)
        total += len(links) + len(sure)
    if total == 0:
        raise ValueError("The alignment error rate of no links is not defined: neither side has one.")
    return 1 - agreed / total


def argmax_links(weights: Float[np.ndarray, "target_words source_words"]) -> frozenset[Link]:
    """One link per target word, to the source word of largest weight (Luong et al. 2015, sec. 5.4).

    A target word without any weight on the source gets none.
    """
    return frozenset((int(row.argmax()), j) for j, row in enumerate(weights) if row.max() > 0)


def links(
    weights: Float[np.ndarray, "layers heads rows columns"],
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
    choice: Choice,
) -> frozenset[Link]:
    """The links of one sentence pair from its cross attention under `choice`; see `word_map` for rows and columns."""
    layer = weights[choice.layer]
    chosen = layer.mean(0) if choice.head is None else layer[choice.head]
    return argmax_links(word_map(chosen, source_pieces, target_pieces, choice.shift))


def choose(
    weights: Sequence[Float[np.ndarray, "layers heads _ _"]],
    source_pieces: Sequence[Sequence[str]],
    target_pieces: Sequence[Sequence[str]],
    gold: Sequence[Alignment],
) -> Choice:
    """The shift, layer and head (or mean of heads) of lowest error rate: to be chosen on the validation set.

    One item per sentence pair in each argument. Of equals the first wins: shift 0, lower layer, mean before heads.
    Raises ValueError like `aer`, and when there is no sentence.
    """
    if not weights:
        raise ValueError("There are no attention maps to choose from: give at least one aligned sentence pair.")
    layers, heads = weights[0].shape[:2]
    choices = []
    for shift in SHIFTS:
        maps = [word_map(*pair, shift) for pair in zip(weights, source_pieces, target_pieces, strict=True)]
        for layer in range(layers):
            means = [argmax_links(sentence[layer].mean(0)) for sentence in maps]
            choices.append(Choice(shift, layer, None, aer(means, gold)))
            for head in range(heads):
                single = [argmax_links(sentence[layer, head]) for sentence in maps]
                choices.append(Choice(shift, layer, head, aer(single, gold)))
    return min(choices, key=lambda choice: choice.aer)


def _parse(line: str, flip: bool, place: str) -> Alignment:
    sure, possible = set(), set()
    for token in line.split():
        match = _LINK.fullmatch(token)
        if match is None:
            raise ValueError(
                f"{place}: '{token}' is not a link; expected i-j (sure) or i?j (possible), counted from 0."
            )
        i, kind, j = int(match[1]), match[2], int(match[3])
        link = (j, i) if flip else (i, j)
        possible.add(link)
        if kind == "-":
            sure.add(link)
    return Alignment(frozenset(sure), frozenset(possible))
