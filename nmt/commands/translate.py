"""nmt.translate: standard input to standard output, line by line."""

import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nmt.config.direction import Direction
from nmt.config.job import Job
from nmt.config.messages import check_source_tokens, unknown
from nmt.config.nodes import Config
from nmt.data.corpus import text_lines
from nmt.data.inspection import foreign_check
from nmt.decoding.translator import Translation
from nmt.files import existing_file
from nmt.runs.load import load_runs
from nmt.runs.search import build_translator

logger = logging.getLogger(__name__)


def translate(job: Job) -> None:
    """Translates every line of standard input; an empty line stays empty, and each line comes out as soon as it can.

    Raises ValueError for a line that is not UTF-8, after the translations of those before it.
    """
    if sys.stdin is None:
        raise ValueError("Standard input is closed. Give it a file, as in '< in.en', or a pipe.")
    config = job.config
    form = FORMATS.get(config["format"])
    if form is None:
        raise ValueError(unknown("format", str(config["format"]), FORMATS))
    check_source_tokens(config["max_source_tokens"])
    prefixes = _prefixes(config)
    runs = load_runs(config["run_dir"], config["device"], str(config["precision"]))
    sizes = (config["batch_tokens"], config["max_source_tokens"])
    translator = build_translator(runs, config["search"], *sizes, config["minimum_bayes_risk"])
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    # A person waits for the translation of a line before writing the next.
    read_ahead = 1 if sys.stdin.isatty() else config["read_ahead"]
    lines = _watched(text_lines(sys.stdin.buffer, "Standard input"), runs[0].direction)
    paired = _paired(lines, prefixes, config["prefixes"])
    for number, found in enumerate(translator.stream(paired, read_ahead), start=1):
        # An empty line has no translation, and no row of its own.
        if found or form is not _tsv:
            print(form(number, found), flush=True)


def _watched(lines: Iterator[str], direction: Direction) -> Iterator[str]:
    """The lines, with a warning at the first that seems to be in another language: a search says nothing of it."""
    foreign = foreign_check(direction)
    for number, line in enumerate(lines, start=1):
        if foreign and foreign(line):
            logger.warning(
                "Line %d seems not to be in %s, from which the run translates into %s: give it such text, or a run "
                "with direction=%s-%s.",
                number,
                direction.source,
                direction.target,
                direction.target,
                direction.source,
            )
            foreign = None
        yield line


def _prefixes(config: Config) -> Iterator[str] | None:
    """The beginning of each translation; None where there are none."""
    if config["prefixes"] is None:
        return None
    file = existing_file("prefixes", config["prefixes"])

    def lines() -> Iterator[str]:
        with file.open("rb") as stream:
            yield from text_lines(stream, str(file))

    return lines()


def _paired(lines: Iterator[str], prefixes: Iterator[str] | None, name: Any) -> Iterator[tuple[str, str]]:
    """Each line with its prefix. Raises ValueError, after the last pair, when there are not as many of both."""
    if prefixes is None:
        yield from ((line, "") for line in lines)
        return
    for line in lines:
        prefix = next(prefixes, None)
        if prefix is None:
            raise ValueError(f"{name} has fewer lines than standard input; write one for each, empty for none.")
        yield line, prefix
    if next(prefixes, None) is not None:
        raise ValueError(f"{name} has more lines than standard input; write one for each, empty for none.")


def _text(number: int, found: Sequence[Translation]) -> str:
    return found[0].text if found else ""


def _tsv(number: int, found: Sequence[Translation]) -> str:
    rows = [
        f"{number}\t{rank}\t{each.score:.4f}\t{each.log_prob:.4f}\t{each.text}"
        for rank, each in enumerate(found, start=1)
    ]
    return "\n".join(rows)


def _jsonl(number: int, found: Sequence[Translation]) -> str:
    return json.dumps({"line": number, "translations": [each._asdict() for each in found]}, ensure_ascii=False)


FORMATS: dict[str, Callable[[int, Sequence[Translation]], str]] = {"text": _text, "tsv": _tsv, "jsonl": _jsonl}
"""What is printed of a line's translations: the best one; or line, rank, score, log_prob and text of all; or JSON."""
