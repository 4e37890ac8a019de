"""Segmentations drawn at random: by BPE-dropout (Provilkov et al. 2020) or by a unigram model (Kudo 2018).

SentencePiece draws them too, but its random numbers of one seed are other ones in every process, so that no training
could be resumed or run again. No piece holds a space but at its start, so each word is segmented on its own.
"""

import math
from bisect import bisect
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from random import Random
from typing import NamedTuple

import sentencepiece

_WORD_START = "\u2581"
# Of so many words the sums of unigram sampling are kept, about 3 kB each; of longer ones they would take more.
_WORDS_KEPT, _LONGEST_KEPT = 20_000, 20
# How far a character that is no piece lies below the worst piece; the same as SentencePiece's.
_UNKNOWN_PENALTY = 10.0


class Pieces:
    """The pieces that text can become, with their scores; a character that is none becomes its UTF-8 bytes.

    Raises ValueError for a model without pieces for bytes.
    """

    def __init__(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        special = (processor.is_control, processor.is_unknown, processor.is_unused, processor.is_byte)
        ids = [id_ for id_ in range(processor.get_piece_size()) if not any(is_one(id_) for is_one in special)]
        self.ids = {processor.id_to_piece(id_): id_ for id_ in ids}
        self.scores = {processor.id_to_piece(id_): processor.get_score(id_) for id_ in ids}
        self.unknown = min(self.scores.values(), default=0.0) - _UNKNOWN_PENALTY
        self.longest = max(map(len, self.ids), default=1)
        self._bytes = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
        if not all(map(processor.is_byte, self._bytes)):
            raise ValueError(
                "The SentencePiece model has no pieces for bytes, with which sampling spells unknown characters; "
                "train one with byte_fallback=true, or set subword_sampling=null."
            )

    def to_ids(self, segmentation: Sequence[str]) -> list[int]:
        """The ids of pieces and of characters that are none."""
        found: list[int] = []
        for piece in segmentation:
            id_ = self.ids.get(piece)
            found.extend([id_] if id_ is not None else [self._bytes[byte] for byte in piece.encode()])
        return found


def words(text: str) -> list[str]:
    """What is segmented on its own: the words of a text, each with the mark of its start."""
    return [_WORD_START + word for word in text.split(" ")] if text else []


class BPEDropout:
    """Byte-pair merges, each skipped at each step with probability `alpha` (Provilkov et al. 2020, algorithm 1).

    The time grows with the square of a word's length: 4 ms for 200 characters.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._scores = pieces.scores

    def draw(self, word: str, alpha: float, random: Random) -> list[str]:
        """One segmentation; with alpha 0 the usual one, with 1 the characters."""
        scores, symbols = self._scores, list(word)
        while merges := [
            (-scores[left + right], place)
            for place, (left, right) in enumerate(pairwise(symbols))
            if left + right in scores and random.random() >= alpha
        ]:
            _, place = min(merges)
            symbols[place : place + 2] = ["".join(symbols[place : place + 2])]
        return symbols


class _Ends(NamedTuple):
    """The pieces that may end at one place of a word: where each starts, and the running sum of their chances."""

    starts: list[int]
    chances: list[float]


class UnigramSampling:
    """Segmentations by their probability to the power of `alpha` (Kudo 2018, section 3.3).

    All segmentations take part: forward sums over the pieces that end at each place, then pieces drawn from the end to
    the start. The sums of the latest words are kept.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._scores, self._unknown, self._longest = pieces.scores, pieces.unknown, pieces.longest
        self._kept_sums = lru_cache(_WORDS_KEPT)(self._sums)

    def draw(self, word: str, alpha: float, random: Random) -> list[str]:
        """One segmentation."""
        end = len(word)
        table = self._kept_sums(word, alpha) if end <= _LONGEST_KEPT else self._sums(word, alpha)
        segmentation = []
        while end:
            starts, chances = table[end - 1]
            start = starts[bisect(chances, random.random() * chances[-1], hi=len(starts) - 1)]
            segmentation.append(word[start:end])
            end = start
        return segmentation[::-1]

    def _sums(self, word: str, alpha: float) -> list[_Ends]:
        """Of each place the pieces that end there, by the logarithms of the sums before them, so that none vanishes."""
        sums, table = [0.0], list[_Ends]()
        for end in range(1, len(word) + 1):
            first = max(0, end - self._longest)
            starts = [start for start in range(first, end) if word[start:end] in self._scores or start == end - 1]
            logs = [sums[start] + alpha * self._scores.get(word[start:end], self._unknown) for start in starts]
            most = max(logs)
            chances = list(accumulate(math.exp(log - most) for log in logs))
            sums.append(most + math.log(chances[-1]))
            table.append(_Ends(starts, chances))
        return table
