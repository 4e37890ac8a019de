"""Translates lines of text: normalizes, encodes, batches by length, searches, decodes and restores the order."""

import logging
import math
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from nmt.data.documents import NO_CONTEXT, ContextWindow, check_named, earlier_pairs
from nmt.data.example import Example, TokenizedPair
from nmt.decoding.id_search import Hypothesis, IdBatch, Search
from nmt.decoding.segments import split_line
from nmt.decoding.translatable import Translatable, translatable, unknown_characters
from nmt.decoding.workers import Workers
from nmt.errors import CheckFailed, Mistake
from nmt.text.dictionary import NO_DICTIONARY, Dictionary
from nmt.text.normalize import normalize
from nmt.text.tokenizer import TokenizerPair

logger = logging.getLogger(__name__)

_ROWS_PER_SENTENCE = 8
"""`batch_tokens` assumes at most this many hypotheses per sentence; with n times as many, it is divided by n."""

ReportSearched = Callable[[int, int], None]
"""report(new, all): the number of sentences searched since the last call, and the total number of sentences."""


class Translation(NamedTuple):
    """A translation of one line; if the line was cut, `log_prob` and `score` are sums over its parts.

    Both belong to the text that the model wrote, and are 0 if the whole line was copied.
    """

    text: str
    log_prob: float
    """log p(text and EOS | source), in nats."""
    score: float
    """The value by which the search ranks translations."""


class TranslatedLine(NamedTuple):
    """The translations of a line, and what the model may have misread."""

    translations: list[Translation]
    """Best first; none for an empty line."""
    unknown_characters: str
    """The characters, each once, that the model had to translate although its vocabulary does not contain them."""

    @property
    def best(self) -> str:
        """The text of the best translation, or '' for an empty line."""
        return self.translations[0].text if self.translations else ""


MAX_SOURCE_TOKENS = 256
"""Default limit on the source pieces of one search, including EOS."""


class DocumentSoFar(NamedTuple):
    """The last sentence pairs of a document that continues in the next window of lines."""

    document: Hashable
    pairs: list[TokenizedPair]


class Translator:
    """Translates lines of text with a search and the tokenizers of its model.

    batch_tokens: limits the number of sentences in a batch times the length of the longest source (with EOS). The limit
        is lower if the search keeps 16 or more hypotheses per sentence, and it is shared by the batches that an engine
        searches at the same time.
    max_source_tokens: limits the source pieces of one search (with EOS); the model's own limit applies too. A longer
        line is cut into parts.
    choose: receives the texts that the search found for a line, and returns the index of the best one; by default the
        first one is the best.
    window: how much of a document the model reads before each line.
    workers: with more than one, that many processes search batches in parallel, with the model as it is when they
        start; the model must be on the CPU.
    observe: receives every step of the searches.
    dictionary: its words are replaced by their translations before the model reads a line.
    verbatim: the model reads every line as it is, without the dictionary; otherwise it reads the part that
        `translatable` chooses, which may depend on the code `source_language`, and the rest is copied.

    Raises Mistake if a number is too small, for a min_length that is too long for every source, and for more than one
    worker on a system that cannot fork or with `observe`.
    """

    def __init__(
        self,
        search: Search,
        tokenizers: TokenizerPair,
        *,
        batch_tokens: int = 4096,
        max_source_tokens: int = MAX_SOURCE_TOKENS,
        choose: Callable[[Sequence[str]], int] | None = None,
        window: ContextWindow = NO_CONTEXT,
        workers: int = 1,
        observe: Callable[[Any], None] | None = None,
        dictionary: Dictionary = NO_DICTIONARY,
        verbatim: bool = False,
        source_language: str = "",
    ) -> None:
        if batch_tokens < 1:
            raise Mistake(f"batch_tokens is {batch_tokens}; it must be at least 1.")
        if max_source_tokens < 2:
            raise Mistake(f"max_source_tokens is {max_source_tokens}; it must be at least 2, for a piece and EOS.")
        if workers > 1 and observe:
            raise Mistake(
                f"A search with workers={workers} cannot be observed, because other processes run it: use workers=1."
            )
        self.search, self.tokenizers, self.choose, self.window = search, tokenizers, choose, window
        self.dictionary = NO_DICTIONARY if verbatim else dictionary
        self.verbatim, self.source_language = verbatim, source_language
        self.batch_tokens = batch_tokens
        self.max_source_tokens = min(max_source_tokens, search.max_source or max_source_tokens)
        search.algorithm.constraints.check_reachable(self.max_source_tokens)
        self._search_batch = partial(search, observe=observe)
        self._workers = None if workers == 1 else Workers(workers, self._search_batch, search.begin_in_fork)

    def translate(
        self,
        lines: Sequence[str],
        prefixes: Sequence[str] | None = None,
        report: ReportSearched | None = None,
        documents: Sequence[Hashable] | None = None,
    ) -> list[str]:
        """The best translation of each line, in order; an empty line gives an empty translation."""
        return [line.best for line in self.translated_lines(lines, prefixes, report, documents)]

    def n_best(
        self,
        lines: Sequence[str],
        prefixes: Sequence[str] | None = None,
        report: ReportSearched | None = None,
        documents: Sequence[Hashable] | None = None,
    ) -> list[list[Translation]]:
        """All translations that the search finds for each line, best first; an empty list for an empty line."""
        return [line.translations for line in self.translated_lines(lines, prefixes, report, documents)]

    def translated_lines(
        self,
        lines: Sequence[str],
        prefixes: Sequence[str] | None = None,
        report: ReportSearched | None = None,
        documents: Sequence[Hashable] | None = None,
    ) -> list[TranslatedLine]:
        """All translations that the search finds for each line, and the line's unknown characters.

        `documents` says which document each line belongs to; without it, or with a model that reads no context, each
        line is translated by itself.

        A line without anything to translate, such as a number, has one translation, the line itself, whose log_prob
        and score are 0; later lines of its document do not read it. In a line with a prefix,
        only the words of the dictionary are replaced.

        Each translation is a single line and begins with the line's prefix, which must consist of whole words. A line
        longer than `max_source_tokens` is translated in parts, which are joined by spaces; a warning is logged. Raises
        Mistake if `lines` or `prefixes` is a single string, or if their lengths differ.
        """
        if isinstance(lines, str):
            raise Mistake("lines must be a list of strings, not a string; write [line].")
        if isinstance(prefixes, str):
            raise Mistake("prefixes must be a list with one string for each line, not a string; write [prefix].")
        if prefixes is not None and len(prefixes) != len(lines):
            raise Mistake(
                f"There are {len(lines)} lines but {len(prefixes)} prefixes: pass one for each line, or '' for a line "
                "without a prefix."
            )
        if documents is not None:
            check_named(documents, len(lines))
        pairs = [*zip(lines, prefixes or [""] * len(lines), strict=True)]
        return self._translate(pairs, report=report, documents=documents)[0]

    def stream(
        self,
        lines: Iterable[tuple[str, str]],
        *,
        read_ahead: int = 1024,
        paused: Callable[[], bool] = lambda: False,
        document: bool = False,
        first_line: int = 1,
        line_label: str = "Line",
    ) -> Iterator[TranslatedLine]:
        """`translated_lines` for any number of (line, prefix) pairs.

        They are read in windows of 1, 4, 16, ... up to `read_ahead` lines: the small first windows return the first
        translations quickly, and the larger later ones fill batches. A window also ends after a line if `paused()` is
        true, because the next line has not arrived yet. With `document`, all lines up to an empty line are one
        document. In warnings, a line is `line_label` and its number, from `first_line`. A Mistake or CheckFailed of
        `lines` is raised after the translations of the lines before it. Raises Mistake if `read_ahead` is below 1.
        """
        if read_ahead < 1:
            raise Mistake(f"read_ahead is {read_ahead}; it must be at least 1 line.")
        remaining, size = iter(lines), 1
        number, so_far = 0, None
        while True:
            window, error = _take(remaining, size, paused)
            if not window and error is None:
                return
            documents = []
            for line, _ in window:
                number += not line.strip()
                documents.append(number)
            translated, so_far = self._translate(
                window,
                first_line=first_line,
                documents=documents if document else None,
                so_far=so_far,
                line_label=line_label,
            )
            yield from translated
            if error:
                raise error
            first_line, size = first_line + len(window), min(4 * size, read_ahead)

    def unknown_characters(self, line: str, prefix: str = "") -> str:
        """The unknown characters of a line, without translating it."""
        return unknown_characters(self._translatable(line, prefix).text, self.tokenizers.source)

    def search_ids(
        self,
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]] | None = None,
        report: ReportSearched | None = None,
        earlier: Sequence[Sequence[TokenizedPair]] | None = None,
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first, each beginning with the source's prefix.

        Sources and prefixes are ids without EOS; `earlier` holds the pairs before each source in its document. A source
        that is empty or too long for the model gets no hypotheses.
        """
        if earlier is not None and self.window.joined:
            sources = [
                self.window(Example(0, source, [], self.context_that_fits(source, pairs))).source
                for source, pairs in zip(sources, earlier, strict=True)
            ]
            earlier = None
        most = self.search.max_source or math.inf
        contexts = [sum(len(pair[0]) + 1 for pair in pairs) for pairs in earlier] if earlier else [0] * len(sources)
        lengths = [
            len(ids) + 1 + context if 0 < len(ids) < most else 0 for ids, context in zip(sources, contexts, strict=True)
        ]
        budget = self.batch_tokens // max(1, self.search.algorithm.rows_per_sentence // _ROWS_PER_SENTENCE)
        at_once = self.search.at_once if self._workers is None else self._workers.number
        if self._workers is None:
            budget //= at_once  # the batches that are searched at the same time have batch_tokens together
        if at_once > 1:  # small batches, so that every thread or worker has some to search
            budget = min(budget, math.ceil(sum(lengths) / at_once))
        groups = batches_by_length(lengths, budget)
        batches = [
            IdBatch(
                [sources[index] for index in indices],
                [prefixes[index] for index in indices] if prefixes else None,
                [earlier[index] for index in indices] if earlier else None,
            )
            for indices in groups
        ]
        hypotheses: list[list[Hypothesis]] = [[] for _ in sources]
        with closing(self._searched(batches)) as searched:
            for indices, of_batch in zip(groups, searched, strict=True):
                for index, of_source in zip(indices, of_batch, strict=True):
                    hypotheses[index] = of_source
                if report:
                    report(len(indices), len(sources))
        return hypotheses

    def context_that_fits(self, source: Sequence[int], earlier: Sequence[TokenizedPair]) -> Sequence[TokenizedPair]:
        """The `earlier` pairs that a search reads before a source.

        If they are joined to it, these are the last ones, as many as the limit on a single search allows.
        """
        if not self.window.joined:
            return earlier
        for first in range(len(earlier)):
            joined = self.window(Example(0, source, [], earlier[first:])).source
            if source and len(joined) < self.max_source_tokens:
                return earlier[first:]
        return []

    def _searched(self, batches: Sequence[IdBatch]) -> Generator[list[list[Hypothesis]]]:
        """The hypotheses of each batch, in order."""
        if len(batches) == 1 or (self._workers is None and self.search.at_once == 1):
            yield from map(self._search_batch, batches)  # one batch would keep only one worker busy
        elif self._workers is not None:
            yield from self._workers.map(batches)
        else:
            pool = ThreadPoolExecutor(self.search.at_once)
            try:
                yield from pool.map(self._search_batch, batches)
            finally:
                pool.shutdown(cancel_futures=True)  # after an error or an interrupt, without those not yet begun

    def close(self) -> None:
        """Ends the workers, if there are any; the next search starts new ones."""
        if self._workers is not None:
            self._workers.close()

    def search_documents(
        self,
        sources: Sequence[Sequence[int]],
        documents: Sequence[Hashable] | None,
        prefixes: Sequence[Sequence[int]] | None = None,
        report: ReportSearched | None = None,
        so_far: DocumentSoFar | None = None,
    ) -> tuple[list[list[Hypothesis]], list[list[TokenizedPair]]]:
        """The hypotheses of each source, and the pairs before it in its window: sources and best translations.

        `context_that_fits` tells which of them the search has read. `documents` says which document each source belongs
        to; without it, every source is translated on its own. A source that gets no hypotheses is not read as context.
        `so_far` holds the last pairs of the first document if part of that document has already been translated.
        """
        if documents is not None and self.choose and self.window.translations:
            raise Mistake(
                "minimum_bayes_risk=true chooses a translation after the search, but this model reads the translations "
                "of earlier sentences during the search. Leave it out, or translate single sentences."
            )
        window = NO_CONTEXT if documents is None else self.window
        names: list[Hashable] = [None] * len(sources) if documents is None else [*documents]
        # One turn, unless sources need earlier translations: then turn n has the n-th source of each document.
        turns: list[list[int]] = []
        position = 0
        for index, document in enumerate(names):
            same = window.translations and index and document == names[index - 1]
            position = position + 1 if same else 0
            if position == len(turns):
                turns.append([])
            turns[position].append(index)
        hypotheses: list[list[Hypothesis]] = [[] for _ in sources]
        recent = so_far.pairs if so_far is not None and names and so_far.document == names[0] else []
        names = names[:1] * len(recent) + names
        # The translations are filled in as they are found. An empty source is not read as context.
        most = self.search.max_source or math.inf
        pairs: list[TokenizedPair] = [*recent, *((source if len(source) < most else [], []) for source in sources)]
        for turn in turns:
            earlier = earlier_pairs(names, pairs, window, [len(recent) + index for index in turn])
            of_turn = self.search_ids(
                [sources[index] for index in turn],
                [prefixes[index] for index in turn] if prefixes else None,
                report and (lambda new, _: report(new, len(sources))),
                earlier if window.sentences else None,
            )
            for index, of_source in zip(turn, of_turn, strict=True):
                hypotheses[index] = of_source
                if of_source:
                    pairs[len(recent) + index] = sources[index], of_source[0].ids
        return hypotheses, earlier_pairs(names, pairs, window)[len(recent) :]

    def _translate(
        self,
        lines: Sequence[tuple[str, str]],
        *,
        first_line: int = 1,
        report: ReportSearched | None = None,
        documents: Sequence[Hashable] | None = None,
        so_far: DocumentSoFar | None = None,
        line_label: str = "Line",
    ) -> tuple[list[TranslatedLine], DocumentSoFar | None]:
        """The lines with their translations, and the last pairs of their last document."""
        readings = [self._translatable(line, prefix) for line, prefix in lines]
        texts = [reading.text for reading in readings]
        encoded = self.tokenizers.source.encode_all(texts)
        longest, encode = self.max_source_tokens - 1, self.tokenizers.source.encode
        # The ids of each part of a line: one part unless the line is too long, none if there is nothing to translate.
        parts = [
            split_line(text, ids, encode, longest) if text else [] for text, ids in zip(texts, encoded, strict=True)
        ]
        for number, (ids, of_line) in enumerate(zip(encoded, parts, strict=True), start=first_line):
            if len(of_line) > 1:
                logger.warning(
                    "%s %d has %d source tokens, more than the limit of %d: it is translated in %d parts.",
                    line_label,
                    number,
                    len(ids) + 1,
                    self.max_source_tokens,
                    len(of_line),
                )
        # Only the first part of a line begins with the line's prefix.
        begins = [
            prefix if index == 0 else ""
            for of_line, (_, prefix) in zip(parts, lines, strict=True)
            for index, _ in enumerate(of_line)
        ]
        sources = [ids for of_line in parts for ids in of_line]
        prefixes = self.tokenizers.target.encode_all([normalize(begin) for begin in begins]) if any(begins) else None
        of_parts = None
        if documents is not None:
            of_parts = [document for of_line, document in zip(parts, documents, strict=True) for _ in of_line]
        hypotheses, earlier = self.search_documents(sources, of_parts, prefixes, report, so_far)
        if of_parts and self.window.sentences:
            best = hypotheses[-1][0].ids if hypotheses[-1] else []
            so_far = DocumentSoFar(of_parts[-1], [*earlier[-1], (sources[-1], best)])
        remaining = iter(hypotheses)
        return [
            TranslatedLine(
                self._joined(reading, [*islice(remaining, len(of_line))]),
                unknown_characters(reading.text, self.tokenizers.source),
            )
            for reading, of_line in zip(readings, parts, strict=True)
        ], so_far

    def _translatable(self, line: str, prefix: str = "") -> Translatable:
        """What the model reads of a line; all of it if the user says how the translation begins."""
        text = normalize(line)
        if self.verbatim:
            return Translatable("", text, "")
        reading = (
            Translatable("", text, "") if prefix else translatable(text, self.tokenizers.source, self.source_language)
        )
        return reading._replace(text=self.dictionary.replaced(self.tokenizers.source.respelled(reading.text)))

    def _joined(self, reading: Translatable, parts: Sequence[Sequence[Hypothesis]]) -> list[Translation]:
        """The translations of a line: its parts joined rank by rank, with the chosen translation moved to the front."""
        if not parts and reading.before:
            return [Translation(reading.before, 0.0, 0.0)]
        decode = self.tokenizers.target.decode
        # The model can generate any byte, line feeds included; normalizing makes the text a single line.
        joined = [
            Translation(
                normalize(reading.completed(" ".join(decode(hypothesis.ids) for hypothesis in hypotheses))),
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


def _take(
    lines: Iterator[tuple[str, str]], size: int, paused: Callable[[], bool]
) -> tuple[list[tuple[str, str]], Mistake | CheckFailed | None]:
    """Up to `size` lines, fewer if the input pauses or ends, and the error raised after them, if any."""
    window: list[tuple[str, str]] = []
    try:
        # Not list(islice(...)), which would lose the lines read before an error.
        for line in islice(lines, size):
            window.append(line)
            if len(window) < size and paused():
                break
    except (Mistake, CheckFailed) as error:  # CheckFailed: the file can no longer be read
        return window, error
    return window, None
