"""nmt.prepare: what is wrong with the corpora of a training, and what its filters leave."""

import logging
from collections.abc import Iterator
from pathlib import Path

from nmt.config.direction import Direction
from nmt.config.job import Job
from nmt.config.schema import TrainSettings
from nmt.data.corpus import check_files, file_pair, iter_parallel, read_pairs
from nmt.data.dataset import training_dataset
from nmt.data.inspection import Inspection, Seen, checks, inspect
from nmt.files import cache_folder, check_folder
from nmt.tables import Table
from nmt.training.prepared import filters_of, finished_run, learned_tokenizers, plain_corpora

logger = logging.getLogger(__name__)

_CRLF = "lines of a side that end in CR LF"
# What is there is in every corpus of a kind, and no single line is an example.
_OF_ALL = ("punctuation between spaces", _CRLF)
_LEGEND = """
Left out of training, if their filters are on: pairs with an empty side, duplicates, pairs of another split, swapped
languages, and what is too long or too unequal. Training counts lengths in pieces, this table in words; training looks
for duplicates and other splits after data.detokenize, this table in the files as they are. Mended in all text: NFC
(letters and marks composed), control characters, spaces, U+2581, CR LF. All else stays as it is.

The first lines of each kind:
"""


def prepare(job: Job[TrainSettings]) -> None:
    """Prints the report on every corpus, and what is left for training; fills the cache that nmt.train reads.

    Raises ValueError and FileNotFoundError as nmt.train does.
    """
    settings = job.settings
    check_folder("cache_dir", settings.cache_dir)
    data, direction = settings.data, settings.direction
    held_out_prefixes = list(dict.fromkeys(data.held_out.values()))
    check_files([*data.train, *held_out_prefixes], direction)
    cache = cache_folder(settings.cache_dir)
    held_out = {prefix: _lines(prefix, direction) for prefix in held_out_prefixes}
    found, training, all_held_out = {}, Seen(set(), set()), set[str]().union(*held_out.values())
    for prefix in data.train:
        found[f"{prefix} (training)" if prefix in held_out else prefix] = _inspected(
            prefix, direction, all_held_out, training
        )
    for prefix in held_out:
        others = (lines for other, lines in held_out.items() if other != prefix)
        found[prefix] = _inspected(prefix, direction, set[str]().union(*others), None)
    print(_table(found, direction).markdown())
    print(_LEGEND)
    for line in _examples(found):
        print(line)
    corpora = plain_corpora(settings, cache)
    start = finished_run(settings, Path(settings.run_dir))
    pair = start.tokenizers if start else learned_tokenizers(settings, corpora.train, cache)
    _, report = training_dataset(corpora.train, direction, pair, filters_of(settings), corpora.excluded, cache)
    print()
    print(f"Training data: {report}")


def _inspected(prefix: str, direction: Direction, others: set[str], seen: Seen | None) -> Inspection:
    logger.info("Reading %s", prefix)
    files = file_pair(prefix, direction)
    found = inspect(iter_parallel(*files), checks(direction), others, seen)
    if ends := sum(_crlf(path) for path in files):
        found.counts[_CRLF] = ends
    return found


def _lines(prefix: str, direction: Direction) -> set[str]:
    pairs = read_pairs(prefix, direction)
    return {line for side in pairs for line in side if line}


def _crlf(path: Path) -> int:
    with path.open("rb") as file:
        return sum(line.endswith(b"\r\n") for line in file)


def _table(found: dict[str, Inspection], direction: Direction) -> Table:
    """A column for each corpus and a row for each kind of finding that there is."""
    kinds = dict.fromkeys([*checks(direction), *(kind for each in found.values() for kind in each.counts)])
    rows = [["pairs", *(f"{each.pairs:,}" for each in found.values())]]
    for side, language in enumerate((direction.source, direction.target)):
        rows.append([f"words, {language}", *(f"{each.words[side]:,}" for each in found.values())])
    rows += [[kind, *(f"{each.counts[kind]:,}" for each in found.values())] for kind in kinds]
    return Table(["", *_titles(list(found))], rows)


def _examples(found: dict[str, Inspection]) -> Iterator[str]:
    for prefix, each in found.items():
        for kind, lines in each.lines.items():
            if kind not in _OF_ALL:
                yield f"{prefix}, {'lines' if len(lines) > 1 else 'line'} {', '.join(map(str, lines))}: {kind}"


def _titles(prefixes: list[str]) -> list[str]:
    """The last parts of the prefixes, or all of them where two are the same."""
    short = [Path(prefix).name.removeprefix("sample:") for prefix in prefixes]
    return short if len(set(short)) == len(short) else prefixes
