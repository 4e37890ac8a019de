"""Turns attention between pieces into attention between space-separated words."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float

from nmt.maps.attention_map import BOS, EOS, AttentionMap
from nmt.text.normalize import WORD_START

PieceRow = Literal["predicts", "reads"]
"""The row of a decoder map that belongs to a target piece: the step that predicts it, or the step that reads it."""
PIECE_ROWS: tuple[PieceRow, ...] = get_args(PieceRow)

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


class LabeledMap(NamedTuple):
    """Maps as they are shown, between pieces or between words, with one label for each row and column."""

    weights: Float[np.ndarray, "*stack rows columns"]
    rows: list[str]
    columns: list[str]


def labeled(item: AttentionMap, row: PieceRow = "predicts", *, words: bool = False, special: bool = True) -> LabeledMap:
    """A map whose rows are labeled by the pieces that they predict, or by those that they read.

    With `words`, the columns of a word are summed and its rows averaged, so that each row keeps its sum. BOS and EOS
    count as words. If `special` is false, the rows and columns of BOS and EOS are left out; the other rows keep their
    weights, which may sum to less than 1.
    """
    rows, columns = item.inputs if row == "reads" else item.outputs, item.columns
    if not words and special:
        return LabeledMap(item.weights, rows, columns)
    # Chosen by the pieces, because a word of several pieces may look like BOS or EOS.
    row_spans, column_spans = (
        [
            (start, end)
            for start, end in (merge_pieces(side) if words else [(i, i + 1) for i in range(len(side))])
            if special or side[start] not in (BOS, EOS)
        ]
        for side in (rows, columns)
    )
    if not words:
        kept_rows, kept_columns = ([start for start, _ in spans] for spans in (row_spans, column_spans))
        weights = item.weights[..., kept_rows, :][..., kept_columns]
        return LabeledMap(weights, [rows[i] for i in kept_rows], [columns[i] for i in kept_columns])
    means, sums = _membership(row_spans, len(rows)), _membership(column_spans, len(columns))
    return LabeledMap(
        (means / means.sum(1, keepdims=True)) @ item.weights @ sums.T,
        [text_of(rows[start:end]) for start, end in row_spans],
        [text_of(columns[start:end]) for start, end in column_spans],
    )


def merge_pieces(pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Start and end of each word. U+2581 starts a word; every other piece, such as punctuation, continues one.

    BOS and EOS count as words.
    """
    starts = [
        i
        for i, piece in enumerate(pieces)
        if i == 0 or piece.startswith(WORD_START) or {piece, pieces[i - 1]} & {BOS, EOS}
    ]
    return list(zip(starts, [*starts[1:], len(pieces)], strict=True)) if pieces else []


def text_of(pieces: Sequence[str]) -> str:
    """The text that the pieces form: U+2581 is a space, and byte pieces (<0xC4>) are decoded as UTF-8."""
    joined = b"".join(
        bytes.fromhex(match[1]) if (match := _BYTE.fullmatch(piece)) else piece.encode() for piece in pieces
    )
    return joined.decode("utf-8", errors="replace").replace(WORD_START, " ").strip()


def spaced(pieces: Sequence[str]) -> str:
    """The words that the pieces form, separated by spaces; word i of an alignment is the i-th of them, from 0.

    A model may generate any byte, so white space within a word and an empty word are written as U+2581.
    """
    texts = (text_of(pieces[start:end]) for start, end in merge_pieces(pieces))
    words = ("".join(WORD_START if letter.isspace() else letter for letter in text) for text in texts)
    return " ".join(word or WORD_START for word in words)


def word_ids(pieces: Sequence[str]) -> list[int]:
    """The number of each piece's word, from 0."""
    return [word for word, (start, end) in enumerate(merge_pieces(pieces)) for _ in range(start, end)]


def word_map(
    weights: Float[np.ndarray, "*stack rows columns"],
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
    row: PieceRow,
) -> Float[np.ndarray, "*stack target_words source_words"]:
    """Attention of target words to source words: summed over a source word's pieces, averaged over a target word's.

    `weights` has a row for each target piece and EOS, and a column for each source piece and EOS. The EOS column is
    dropped without renormalization. Row t predicts piece t and reads piece t - 1, so the row that reads piece t is row
    t + 1; the row that reads the last piece predicts EOS. Raises ValueError if `weights` has a different shape.
    """
    rows, columns = len(target_pieces), len(source_pieces)
    if weights.shape[-2:] != (rows + 1, columns + 1):
        raise ValueError(
            f"A map of {weights.shape[-2]} rows and {weights.shape[-1]} columns does not fit {rows} target and "
            f"{columns} source pieces: it must have one row and one column more, for EOS."
        )
    start = 1 if row == "reads" else 0  # the first row reads BOS
    sums = _membership(merge_pieces(source_pieces), columns)
    means = _membership(merge_pieces(target_pieces), rows)
    means = means / means.sum(1, keepdims=True)
    return means @ weights[..., start : start + rows, :columns] @ sums.T


def _membership(spans: Sequence[tuple[int, int]], pieces: int) -> Float[np.ndarray, "words pieces"]:
    """A matrix that is 1 where a piece belongs to a word, and 0 elsewhere."""
    matrix = np.zeros((len(spans), pieces))
    for word, (start, end) in enumerate(spans):
        matrix[word, start:end] = 1
    return matrix
