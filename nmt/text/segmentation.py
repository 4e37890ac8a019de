"""Random segmentations: BPE-dropout (Provilkov et al. 2020) or sampling from a unigram model (Kudo 2018).

SentencePiece can draw them too, but its random numbers differ between processes even with the same seed, so training
would not be reproducible. A space occurs only at the start of a piece, so each word is segmented on its own.
"""

import math
from bisect import bisect
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from random import Random
from typing import NamedTuple

import sentencepiece

from nmt.text.normalize import WORD_START

# Unigram sampling caches the sums for this many words, at about 3 kB each. Words with more characters than the second
# number would take more memory and are not cached.
_WORDS_KEPT, _LONGEST_KEPT = 20_000, 20
# The score of a character without a piece is this far below the lowest score, as in SentencePiece.
_UNKNOWN_PENALTY = 10.0


class Pieces:
    """The pieces of a model and their scores; a character without a piece is split into its UTF-8 bytes."""

    def __init__(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        special = (processor.is_control, processor.is_unknown, processor.is_byte)
        ids = [id_ for id_ in range(processor.get_piece_size()) if not any(is_one(id_) for is_one in special)]
        self.ids = {processor.id_to_piece(id_): id_ for id_ in ids}
        self.scores = {processor.id_to_piece(id_): processor.get_score(id_) for id_ in ids}
        self.unknown = min(self.scores.values(), default=0.0) - _UNKNOWN_PENALTY
        self.longest = max(map(len, self.ids), default=1)
        self._bytes = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]

    def to_ids(self, segmentation: Sequence[str]) -> list[int]:
        """The ids of the pieces; a character without a piece is replaced by the ids of its bytes."""
        ids: list[int] = []
        for piece in segmentation:
            id_ = self.ids.get(piece)
            ids.extend([id_] if id_ is not None else [self._bytes[byte] for byte in piece.encode()])
        return ids


def words(text: str) -> list[str]:
    """The words of a text, each preceded by the word-start mark; each word is segmented on its own."""
    return [WORD_START + word for word in text.split(" ")] if text else []


class BPEDropout:
    """Byte-pair merges, each skipped at each step with probability `alpha` (Provilkov et al. 2020, algorithm 1).

    Running time is quadratic in the length of the word: 4 ms for 200 characters.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._scores = pieces.scores

    def draw(self, word: str, alpha: float, random: Random) -> list[str]:
        """A random segmentation; alpha=0 gives the usual one, and alpha=1 gives single characters."""
        scores, symbols = self._scores, list(word)
        while merges := [
            (-scores[left + right], position)
            for position, (left, right) in enumerate(pairwise(symbols))
            if left + right in scores and random.random() >= alpha
        ]:
            _, position = min(merges)  # the leftmost one of the best, as in SentencePiece
            symbols[position : position + 2] = ["".join(symbols[position : position + 2])]
        return symbols


class _Ends(NamedTuple):
    """The pieces that can end at one position in a word: their starts, and the running sum of their probabilities."""

    starts: list[int]
    chances: list[float]


class UnigramSampling:
    """Draws segmentations in proportion to their probability raised to the power `alpha` (Kudo 2018, section 3.3).

    Any segmentation can be drawn. The method first sums, from the start of a word to its end, over the pieces that end
    at each position, and then draws pieces from the end back to the start. The sums of recent words are cached.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._scores, self._unknown, self._longest = pieces.scores, pieces.unknown, pieces.longest
        self._kept_sums = lru_cache(_WORDS_KEPT)(self._sums)

    def draw(self, word: str, alpha: float, random: Random) -> list[str]:
        """A random segmentation."""
        end = len(word)
        table = self._kept_sums(word, alpha) if end <= _LONGEST_KEPT else self._sums(word, alpha)
        segmentation = []
        while end:
            starts, chances = table[end - 1]
            # `hi`, because the product can be rounded up to the last sum.
            start = starts[bisect(chances, random.random() * chances[-1], hi=len(starts) - 1)]
            segmentation.append(word[start:end])
            end = start
        return segmentation[::-1]

    def _sums(self, word: str, alpha: float) -> list[_Ends]:
        """The pieces that end at each position. Sums are kept as logarithms so that they do not underflow."""
        sums, table = [0.0], list[_Ends]()
        for end in range(1, len(word) + 1):
            first = max(0, end - self._longest)
            # A single character can always be drawn: without a piece, it becomes bytes.
            starts = [start for start in range(first, end) if word[start:end] in self._scores or start == end - 1]
            logs = [sums[start] + alpha * self._scores.get(word[start:end], self._unknown) for start in starts]
            most = max(logs)
            chances = list(accumulate(math.exp(log - most) for log in logs))
            sums.append(most + math.log(chances[-1]))
            table.append(_Ends(starts, chances))
        return table
