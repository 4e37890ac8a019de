"""From lines of text to translated lines: normalise, encode, batch by length, search, decode, restore the order."""

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

import torch
from torch.nn.utils import parametrize

from nmt.data.batch import pad, pad_source
from nmt.decoding.segments import split_line
from nmt.decoding.state import Decodable, Hypothesis, Search
from nmt.text.normalize import normalize
from nmt.text.tokenizer import TokenizerPair

logger = logging.getLogger(__name__)

_ROWS_PER_SENTENCE = 8
"""As many hypotheses of each sentence at a time are within what a batch is meant for; of n times as many, 1/n of it."""

Report = Callable[[int, int], None]
"""report(new, all) is told how many sentences have been searched since the last time, and how many there are."""


class Translation(NamedTuple):
    """A translation of a line; the sums of those of its parts where a long line was cut."""

    text: str
    log_prob: float
    """Natural logarithm of its probability, that of its end included."""
    score: float
    """What the search ranks by."""


MAX_SOURCE_TOKENS = 256
"""The most source pieces of one search, EOS counted, where nobody says otherwise."""


class Translator:
    """A model, its tokenizers and a search: line in, line out.

    `batch_tokens` bounds rows x longest source of a batch (padded, EOS counted; less where a search holds 16 or more
    hypotheses of a sentence at a time), `max_source_tokens` the source pieces of one search (EOS counted), which the
    model may bound too: a longer line is cut into parts. `choose` says which of the texts that the search found for a
    line is the best; without it that is the first. `device` is where the model's parameters are. The model searches in
    evaluation mode and is given back in the mode it was in. Raises ValueError for sizes too small.
    """

    def __init__(
        self,
        model: Decodable,
        tokenizers: TokenizerPair,
        search: Search,
        batch_tokens: int = 4096,
        max_source_tokens: int = MAX_SOURCE_TOKENS,
        device: torch.device | str = "cpu",
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
        self.device = torch.device(device)
        self.choose = choose

    def translate(
        self, lines: Sequence[str], prefixes: Sequence[str] | None = None, report: Report | None = None
    ) -> list[str]:
        """The best of `n_best` for each line, in order; an empty line gives an empty one."""
        return [_best(found) for found in self.n_best(lines, prefixes, report)]

    def n_best(
        self, lines: Sequence[str], prefixes: Sequence[str] | None = None, report: Report | None = None
    ) -> list[list[Translation]]:
        """The translations of each line that the search finds, best first, each one line; none of an empty line.

        Those of a line begin with its prefix, given in whole words. A line longer than `max_source_tokens` is
        translated in parts, joined by a space, with a warning in the log. Raises ValueError for a single string, whose
        letters would be taken for lines, and for another number of prefixes.
        """
        if isinstance(lines, str):
            raise ValueError("translate takes a list of lines, not a string; write translate([line]).")
        if isinstance(prefixes, str):
            raise ValueError("prefixes are a list with one for each line, not a string; write [prefix].")
        if prefixes is not None and len(prefixes) != len(lines):
            raise ValueError(f"{len(lines)} lines but {len(prefixes)} prefixes: give one for each line, '' for none.")
        return self._translate([*zip(lines, prefixes or [""] * len(lines), strict=True)], 1, report)

    def stream(self, lines: Iterable[tuple[str, str]], read_ahead: int = 1024) -> Iterator[list[Translation]]:
        """n_best() for lines and their prefixes of any number, in windows of 1, 4, 16, ... lines up to `read_ahead`.

        The first translations come soon, the many later ones in full batches; line numbers in warnings go on. A
        ValueError of `lines` is raised after the translations of the lines before it. Raises ValueError when
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
        """The hypotheses of each source, given as ids without EOS, best first; those of a source begin with its prefix.

        There are none for a source that is empty or longer than the model can read.
        """
        results: list[list[Hypothesis]] = [[] for _ in sources]
        most = self.model.max_source or math.inf
        lengths = [len(ids) + 1 if 0 < len(ids) < most else 0 for ids in sources]
        # FixNorm, for one, makes its weights anew at each use: here once.
        with _evaluating(self.model), torch.inference_mode(), parametrize.cached():
            budget = self.batch_tokens // max(1, self.search.rows_per_sentence // _ROWS_PER_SENTENCE)
            for indices in batches_by_length(lengths, budget):
                source, mask = pad_source([sources[index] for index in indices])
                begin = pad([prefixes[index] for index in indices]).to(self.device) if prefixes else None
                found = self.search(self.model, source.to(self.device), mask.to(self.device), begin)
                for index, hypotheses in zip(indices, found, strict=True):
                    results[index] = hypotheses
                if report:
                    report(len(indices), len(sources))
        return results

    def _translate(
        self, lines: Sequence[tuple[str, str]], first_line: int, report: Report | None = None
    ) -> list[list[Translation]]:
        parts = [self._parts(line, number) for number, (line, _) in enumerate(lines, first_line)]
        # The first part of a line begins with its prefix.
        begins = [
            prefix if index == 0 else ""
            for line, (_, prefix) in zip(parts, lines, strict=True)
            for index, _ in enumerate(line)
        ]
        sources = self.tokenizers.source.encode_all([part for line in parts for part in line])
        prefixes = self.tokenizers.target.encode_all([normalize(begin) for begin in begins]) if any(begins) else None
        found = iter(self.search_ids(sources, prefixes, report))
        return [self._joined([*islice(found, len(line))]) for line in parts]

    def _joined(self, parts: Sequence[Sequence[Hypothesis]]) -> list[Translation]:
        """A line's translations: those of rank 1 of its parts, those of rank 2, ..., and the chosen one in front."""
        decode = self.tokenizers.target.decode
        # A model may write any byte, line feeds too: only what is normalised is one line for sure.
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

    def _parts(self, line: str, number: int) -> list[str]:
        text = normalize(line)
        if not text:
            return []
        parts = split_line(text, self._source_tokens, self.max_source_tokens)
        if len(parts) > 1:
            logger.warning(
                "Line %d has %d source tokens, more than the %d of one search: translated in %d parts.",
                number,
                self._source_tokens(text),
                self.max_source_tokens,
                len(parts),
            )
        return parts

    def _source_tokens(self, text: str) -> int:
        return len(self.tokenizers.source.encode(text)) + 1


def batches_by_length(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Indices of the lengths above 0 in batches with rows x longest <= batch_tokens, longest first.

    One index that is longer than `batch_tokens` makes a batch of its own.
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
    """Up to `size` lines, and the error that ended them."""
    window: list[tuple[str, str]] = []
    try:
        # Not a list of islice: what was read before an error would be lost with it.
        window.extend(islice(lines, size))
    except ValueError as error:
        return window, error
    return window, None


@contextmanager
def _evaluating(model: Decodable) -> Iterator[None]:
    """Evaluation mode inside, the mode of before afterwards."""
    was_training = model.training
    model.train(False)
    try:
        yield
    finally:
        model.train(was_training)
