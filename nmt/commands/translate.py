"""nmt.translate: standard input to standard output, line by line."""

import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from nmt.commands.translate_settings import TranslateSettings
from nmt.config.direction import Direction
from nmt.config.job import Job
from nmt.data.inspection import foreign_check
from nmt.decoding.translatable import UnknownLines
from nmt.decoding.translator import Translation
from nmt.errors import Mistake
from nmt.exports.engines import load_with_engine
from nmt.files import existing_file
from nmt.runs.search import build_translator
from nmt.text.lines import text_lines

logger = logging.getLogger(__name__)


def translate(job: Job[TranslateSettings]) -> None:
    """Translates every line of standard input as soon as possible; an empty line stays empty.

    Raises Mistake for a line that is not UTF-8, after printing the translations of the lines before it.
    """
    if sys.stdin is None:
        raise Mistake("Standard input is closed. Give it a file, as in '< in.en', or a pipe.")
    settings = job.settings
    prefix_file = None if settings.prefixes is None else existing_file("prefixes", settings.prefixes)
    runs, engine = load_with_engine(settings.run_dir, settings.device, settings.precision, settings.engine)
    if settings.document:
        runs[0].require_context("document=true")
    translator = build_translator(
        runs,
        settings.search,
        settings.batch_tokens,
        max_source_tokens=settings.max_source_tokens,
        minimum_bayes_risk=settings.minimum_bayes_risk,
        verbatim=settings.verbatim,
        engine=engine,
        workers=settings.workers,
    )
    lines = _with_language_check(text_lines(sys.stdin.buffer, "Standard input"), runs[0].direction)
    if prefix_file is None:
        pairs: Iterator[tuple[str, str]] = ((line, "") for line in lines)
    else:
        pairs = _with_prefixes(lines, prefix_file)
    # Someone at a terminal waits for each line to be translated before typing the next.
    read_ahead = 1 if sys.stdin.isatty() else settings.read_ahead
    rows_of = FORMATS[settings.format]
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    unknown = UnknownLines()
    for number, line in enumerate(translator.stream(pairs, read_ahead, settings.document), start=1):
        unknown.note(number, line.unknown_characters)
        for row in rows_of(number, line.translations):
            print(row, flush=True)
    if unknown.lines:
        logger.warning("%s", unknown.warning)


def _with_language_check(lines: Iterator[str], direction: Direction) -> Iterator[str]:
    """Yields the lines, and warns about the first one that seems to be in the wrong language."""
    foreign = foreign_check(direction)
    for number, line in enumerate(lines, start=1):
        if foreign and foreign(line):
            logger.warning(
                "Line %d does not look like %s, but this run translates from %s into %s: check the input, or use a "
                "run with direction=%s-%s.",
                number,
                direction.source,
                direction.source,
                direction.target,
                direction.target,
                direction.source,
            )
            foreign = None
        yield line


def _with_prefixes(lines: Iterator[str], file: Path) -> Iterator[tuple[str, str]]:
    """Pairs each line with the prefix on the same line of the file.

    Raises Mistake, after the last pair, if the file has more or fewer lines than the input.
    """
    with file.open("rb") as stream:
        prefixes = text_lines(stream, str(file))
        for line in lines:
            prefix = next(prefixes, None)
            if prefix is None:
                raise Mistake(
                    f"{file} has fewer lines than standard input; write one prefix per line, or an empty line for none."
                )
            yield line, prefix
        if next(prefixes, None) is not None:
            raise Mistake(
                f"{file} has more lines than standard input; write one prefix per line, or an empty line for none."
            )


def _text(number: int, translations: Sequence[Translation]) -> list[str]:
    return [translations[0].text if translations else ""]


def _tsv(number: int, translations: Sequence[Translation]) -> list[str]:
    return [
        f"{number}\t{rank}\t{translation.score:.4f}\t{translation.log_prob:.4f}\t{translation.text}"
        for rank, translation in enumerate(translations, start=1)
    ]


def _jsonl(number: int, translations: Sequence[Translation]) -> list[str]:
    record = {"line": number, "translations": [translation._asdict() for translation in translations]}
    return [json.dumps(record, ensure_ascii=False)]


FORMATS: dict[str, Callable[[int, Sequence[Translation]], list[str]]] = {"text": _text, "tsv": _tsv, "jsonl": _jsonl}
"""What is printed for a line. text: its best translation. tsv: a row for each translation, with the line number, rank,
score, log_prob and text. jsonl: one JSON object with all translations.
"""
