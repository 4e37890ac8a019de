"""Search settings and their checks, without torch."""

from nmt.errors import Mistake

_LARGEST_RATIO = 1000
_LONGEST = 100_000
"""Upper limits of the length settings, in pieces; no text has sentences of this length."""
_LARGEST_ALPHA, _LARGEST_BETA = 10, 1000

BEAM_SEARCH = "nmt.decoding.beam.BeamSearch"
"""The `_target_` of a beam search. A user's subclass may find anything, so only torch runs it."""

MAX_BEAM_SIZE = 1000
"""Each hypothesis needs scores for the whole vocabulary: 1000 hypotheses x 32,000 pieces take 128 MB per sentence."""


class ConstraintSettings:
    """Which hypotheses a search may find.

    Lengths include EOS. A hypothesis has at least `min_length` pieces. Its maximum length is the smaller of
    `max_length` and max_length_ratio * S + max_length_offset for S source pieces, but at least `min_length`, at least
    the length of the prefix with EOS, and at most the model's limit. At the maximum length only EOS is allowed, so
    every hypothesis is complete. No sequence of `no_repeat_ngram` pieces occurs twice (0: no limit). PAD, BOS and UNK
    are never generated; with byte fallback no text needs UNK. The maximum length takes precedence over a forced piece
    of the prefix, and both take precedence over all other constraints.

    Raises Mistake if a setting is out of range.
    """

    def __init__(
        self,
        min_length: int = 1,
        max_length: int | None = None,
        max_length_ratio: float = 2.0,
        max_length_offset: int = 10,
        no_repeat_ngram: int = 0,
    ) -> None:
        _require("min_length", min_length, 1, "because EOS is counted")
        if max_length is not None:
            _require("max_length", max_length, min_length, "which is search.constraints.min_length")
        if not 0 <= max_length_ratio <= _LARGEST_RATIO:
            raise Mistake(
                f"search.constraints.max_length_ratio is {max_length_ratio}; it must be from 0 to {_LARGEST_RATIO}."
            )
        _require("max_length_offset", max_length_offset, 1, "to leave room for EOS")
        _require("no_repeat_ngram", no_repeat_ngram, 0, "which allows every repetition")
        self.min_length, self.max_length = min_length, max_length
        self.max_length_ratio, self.max_length_offset = max_length_ratio, max_length_offset
        self.no_repeat_ngram = no_repeat_ngram

    def check_reachable(self, longest_source: int) -> None:
        """Raises Mistake if `min_length` exceeds max_length_ratio * S + max_length_offset for the longest source S."""
        most = int(longest_source * self.max_length_ratio + self.max_length_offset)
        if self.min_length > most:
            raise Mistake(
                f"search.constraints.min_length is {self.min_length}, but max_length_ratio x {longest_source} source "
                f"pieces + max_length_offset is only {most}: use at most {most}, or raise max_length_ratio."
            )

    def limit(self, source: int, fixed: int, max_target: int | None) -> int:
        """The maximum length for a source of `source` pieces, including EOS, with a prefix of `fixed` pieces.

        It has room for the prefix and EOS unless `max_target`, the model's limit, is too small.
        """
        longest = int(source * self.max_length_ratio + self.max_length_offset)
        if self.max_length is not None:
            longest = min(longest, self.max_length)
        longest = max(longest, fixed + 1, self.min_length)
        return longest if max_target is None else min(longest, max_target)


class BeamSettings:
    """The settings of nmt.decoding.beam.BeamSearch, which explains them. Raises Mistake if one is out of range."""

    def __init__(
        self,
        beam_size: int = 5,
        length_penalty: float = 0.6,
        coverage_penalty: float = 0.0,
        n_best: int = 1,
        constraints: ConstraintSettings | None = None,
    ) -> None:
        if not 1 <= beam_size <= MAX_BEAM_SIZE:
            raise Mistake(
                f"search.beam_size is {beam_size}; it must be between 1 (greedy search) and {MAX_BEAM_SIZE}, because "
                "each hypothesis needs memory for the scores of the whole vocabulary."
            )
        # Lengths to a power above these overflow.
        if not abs(length_penalty) <= _LARGEST_ALPHA:
            raise Mistake(
                f"search.length_penalty is {length_penalty}; it must be from {-_LARGEST_ALPHA} to {_LARGEST_ALPHA} "
                "(0 turns it off)."
            )
        if not 0 <= coverage_penalty <= _LARGEST_BETA:
            raise Mistake(f"search.coverage_penalty is {coverage_penalty}; it must be from 0 to {_LARGEST_BETA}.")
        if not 1 <= n_best <= beam_size:
            raise Mistake(
                f"search.n_best is {n_best}; it must be between 1 and search.beam_size, which is {beam_size}."
            )
        self.beam_size, self.rows_per_sentence, self.n_best = beam_size, beam_size, n_best
        self.length_penalty, self.coverage_penalty = length_penalty, coverage_penalty
        self.constraints = constraints or ConstraintSettings()

    def length_factor(self, length: int) -> float:
        """((5 + length) / 6)^alpha, by which the log-probability of a hypothesis of `length` pieces is divided."""
        return float(((5 + length) / 6) ** self.length_penalty)


def _require(name: str, value: object, least: int, reason: str) -> None:
    if not isinstance(value, int) or value < least:
        raise Mistake(f"search.constraints.{name} is {value}; it must be a whole number of at least {least}, {reason}.")
    if value > _LONGEST:
        raise Mistake(f"search.constraints.{name} is {value}; it must be at most {_LONGEST:,}.")
