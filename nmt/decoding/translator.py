"""From lines of text to translated lines: normalize, encode, batch by length, search, decode, restore the order."""

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, islice
from typing import NamedTuple

import torch
from torch.nn.utils import parametrize

from nmt.data.batch import pad, pad_source
from nmt.decoding.constraints import Constraints
from nmt.decoding.segments import split_line
from nmt.decoding.state import Decodable, Hypothesis, Search
from nmt.text.normalize import normalize
from nmt.text.tokenizer import TokenizerPair

logger = logging.getLogger(__name__)

_ROWS_PER_SENTENCE = 8
"""Batch budgets assume at most this many hypotheses per sentence; with n times as many, the budget is divided by n."""

Report = Callable[[int, int], None]
"""report(new, all): the number of sentences searched since the last call, and the total number of sentences."""


class Translation(NamedTuple):
    """A translation of one line; if the line was cut, `log_prob` and `score` are sums over its parts."""

    text: str
    log_prob: float
    """log p(text and EOS | source), in nats."""
    score: float
    """What the search ranks by."""


MAX_SOURCE_TOKENS = 256
"""Default limit on the source pieces of one search, including EOS."""


class Translator:
    """Translates lines of text with a model, its tokenizers and a search.

    `batch_tokens` limits rows x longest source in a batch (including padding and EOS); the limit is lower if the search
    keeps 16 or more hypotheses per sentence. `max_source_tokens` limits the source pieces of one search (including
    EOS); the model's own limit applies too. A longer line is cut into parts. `choose` returns the index of the best of
    the texts that the search found for a line; by default the first one is best. The model runs in evaluation mode and
    is returned to its previous mode. Raises ValueError for a size that is too small.
    """

    def __init__(
        self,
        model: Decodable,
        tokenizers: TokenizerPair,
        search: Search,
        batch_tokens: int = 4096,
        max_source_tokens: int = MAX_SOURCE_TOKENS,
        choose: Callable[[Sequence[str]], int] | None = None,
    ) -> None:
        if batch_tokens < 1:
            raise ValueError(f"batch_tokens is {batch_tokens}; it must be at least 1.")
        if max_source_tokens < 2:
            raise ValueError(f"max_source_tokens is {max_source_tokens}; it must be at least 2, a piece and EOS.")
        self.model = model
        self.tokenizers = tokenizers
        self.search = search
        self.batch_tokens = batch_tokens
        self.max_source_tokens = min(max_source_tokens, model.max_source or max_source_tokens)
        self.choose = choose
        constraints = getattr(search, "constraints", None)  # a user's own search may have none
        if isinstance(constraints, Constraints):
            constraints.check_reachable(self.max_source_tokens)

    def translate(
        self, lines: Sequence[str], prefixes: Sequence[str] | None = None, report: Report | None = None
    ) -> list[str]:
        """The best translation of each line, in order; an empty line gives an empty translation."""
        return [_best(found) for found in self.n_best(lines, prefixes, report)]

    def n_best(
        self, lines: Sequence[str], prefixes: Sequence[str] | None = None, report: Report | None = None
    ) -> list[list[Translation]]:
        """All translations that the search finds for each line, best first; an empty list for an empty line.

        Each translation is a single line and begins with the line's prefix, which must consist of whole words. A line
        longer than `max_source_tokens` is translated in parts, which are joined by a space; a warning is logged. Raises
        ValueError if `lines` or `prefixes` is a single string, or if their lengths differ.
        """
        if isinstance(lines, str):
            raise ValueError("translate takes a list of lines, not a string; write translate([line]).")
        if isinstance(prefixes, str):
            raise ValueError("prefixes must be a list with one string for each line, not a string; write [prefix].")
        if prefixes is not None and len(prefixes) != len(lines):
            raise ValueError(f"{len(lines)} lines but {len(prefixes)} prefixes: pass one for each line, '' for none.")
        return self._translate([*zip(lines, prefixes or [""] * len(lines), strict=True)], 1, report)

    def stream(self, lines: Iterable[tuple[str, str]], read_ahead: int = 1024) -> Iterator[list[Translation]]:
        """n_best() for any number of (line, prefix) pairs, read in windows of 1, 4, 16, ... up to `read_ahead` lines.

        The small first windows return the first translations quickly, the large later ones fill batches. A ValueError
        raised by `lines` is raised again after the translations of the lines before it. Raises ValueError if
        `read_ahead` is below 1.
        """
        if read_ahead < 1:
            raise ValueError(f"read_ahead is {read_ahead}; it must be at least 1 line.")
        remaining, first_line, size = iter(lines), 1, 1
        while True:
            window, error = _take(remaining, size)
            yield from self._translate(window, first_line)
            if error:
                raise error
            if len(window) < size:
                return
            first_line, size = first_line + size, min(4 * size, read_ahead)

    def search_ids(
        self,
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]] | None = None,
        report: Report | None = None,
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first, each beginning with the source's prefix.

        Sources and prefixes are ids without EOS. A source that is empty or too long for the model has no hypotheses.
        """
        results: list[list[Hypothesis]] = [[] for _ in sources]
        most = self.model.max_source or math.inf
        lengths = [len(ids) + 1 if 0 < len(ids) < most else 0 for ids in sources]
        device = self.model.device
        # Parametrized weights (FixNorm) are computed once here, instead of at every use.
        with _evaluating(self.model), torch.inference_mode(), parametrize.cached():
            budget = self.batch_tokens // max(1, self.search.rows_per_sentence // _ROWS_PER_SENTENCE)
            for indices in batches_by_length(lengths, budget):
                source, mask = pad_source([sources[index] for index in indices])
                begin = pad([prefixes[index] for index in indices]).to(device) if prefixes else None
                found = self.search(self.model, source.to(device), mask.to(device), begin)
                for index, hypotheses in zip(indices, found, strict=True):
                    results[index] = hypotheses
                if report:
                    report(len(indices), len(sources))
        return results

    def _translate(
        self, lines: Sequence[tuple[str, str]], first_line: int, report: Report | None = None
    ) -> list[list[Translation]]:
        texts = [normalize(line) for line, _ in lines]
        encoded = self.tokenizers.source.encode_all(texts)
        parts = [self._parts(*line) for line in zip(texts, encoded, count(first_line))]
        # Only the first part of a line begins with the line's prefix.
        begins = [
            prefix if index == 0 else ""
            for line, (_, prefix) in zip(parts, lines, strict=True)
            for index, _ in enumerate(line)
        ]
        sources = [ids for line in parts for ids in line]
        prefixes = self.tokenizers.target.encode_all([normalize(begin) for begin in begins]) if any(begins) else None
        found = iter(self.search_ids(sources, prefixes, report))
        return [self._joined([*islice(found, len(line))]) for line in parts]

    def _parts(self, text: str, ids: list[int], number: int) -> list[list[int]]:
        """The ids of the parts of line `number`; one part unless the line is too long."""
        if not text:
            return []
        parts = split_line(text, ids, self.tokenizers.source.encode, self.max_source_tokens - 1)
        if len(parts) > 1:
            logger.warning(
                "Line %d has %d source tokens, more than the limit of %d: it is translated in %d parts.",
                number,
                len(ids) + 1,
                self.max_source_tokens,
                len(parts),
            )
        return parts

    def _joined(self, parts: Sequence[Sequence[Hypothesis]]) -> list[Translation]:
        """The translations of a line: its parts joined rank by rank, with the chosen translation moved to the front."""
        decode = self.tokenizers.target.decode
        # The model can generate any byte, line feeds included; normalizing makes the text a single line.
        joined = [
            Translation(
                normalize(" ".join(decode(hypothesis.ids) for hypothesis in hypotheses)),
                sum(hypothesis.log_prob for hypothesis in hypotheses),
                sum(hypothesis.score for hypothesis in hypotheses),
            )
            for hypotheses in zip(*parts, strict=False)
        ]
        if joined and self.choose:
            joined.insert(0, joined.pop(self.choose([translation.text for translation in joined])))
        return joined


def batches_by_length(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Batches of the indices of all lengths above 0, longest first, with rows x longest <= batch_tokens.

    A length above `batch_tokens` gets a batch of its own.
    """
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if lengths[index] == 0:
            break
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= batch_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def _best(found: Sequence[Translation]) -> str:
    return found[0].text if found else ""


def _take(lines: Iterator[tuple[str, str]], size: int) -> tuple[list[tuple[str, str]], ValueError | None]:
    """Up to `size` lines, and the error raised after them, if any."""
    window: list[tuple[str, str]] = []
    try:
        # list(islice(...)) would lose the lines read before an error.
        window.extend(islice(lines, size))
    except ValueError as error:
        return window, error
    return window, None


@contextmanager
def _evaluating(model: Decodable) -> Iterator[None]:
    """Puts the model into evaluation mode inside the block, and back into its previous mode afterwards."""
    was_training = model.training
    model.train(False)
    try:
        yield
    finally:
        model.train(was_training)
