"""nmt.prepare: a report on the corpora of a training run and on what its filters drop, or a corpus split into parts."""

import logging
import re
import shlex
from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path

from nmt.commands.prepare_settings import PrepareSettings
from nmt.config.direction import Direction
from nmt.config.job import Job
from nmt.config.schema import EMBEDDED, RunSettings, validated
from nmt.data.corpus import check_files, iter_pairs, matching_prefixes, read_pairs, training_files
from nmt.data.inspection import (
    IN_ANOTHER_SPLIT,
    JOINED_SYLLABLES,
    NEW_TONE_MARKS,
    OLD_TONE_MARKS,
    REPEATED_PAIR,
    REPEATED_SOURCE,
    Inspection,
    Seen,
    checks,
    inspect,
)
from nmt.data.seen_texts import SeenTexts
from nmt.data.split import PARTS, split_corpus
from nmt.paths import cache_folder, check_folder, check_writable
from nmt.tables import Table
from nmt.text.compressed import opened
from nmt.text.normalize import without_punctuation
from nmt.training.preparation import may_shrink
from nmt.training.start_from import inherited, inherited_tokenizers, pretrained_run
from nmt.training.translation import check_boundaries, parallel_corpora

logger = logging.getLogger(__name__)

_CRLF = "lines on either side that end in CR LF"
# In some corpora every line has these, so no lines are listed as examples.
_WITHOUT_EXAMPLES = ("punctuation between spaces", OLD_TONE_MARKS, NEW_TONE_MARKS, JOINED_SYLLABLES, _CRLF)
_LEGEND = """
Unless a filter is turned off, training drops pairs with an empty side, duplicates, pairs that share a line with another
split (whatever its case, punctuation and spaces), pairs with swapped languages, and pairs that are too long or too
unequal in length. Training measures length in pieces and applies data.detokenize first. This table counts words and
describes the files as they are. In every line, nmt composes letters with their marks (NFC), drops invisible characters
that the script does not need, and cleans up control characters, spaces, U+2581 and CR LF. It changes nothing else,
unless tokenizer.tone_marks=old or new gives Vietnamese tone marks one style.

The first lines with each defect:
"""


def prepare(job: Job[PrepareSettings]) -> None:
    """Prints the report, or splits a corpus if `split.corpus` is given.

    Raises whatever nmt.train and `split_corpus` raise.
    """
    settings = job.settings
    if settings.split.corpus is None:
        _report(job)
    else:
        _split(settings, settings.split.corpus)


def _split(settings: PrepareSettings, corpus: str) -> None:
    """Splits a corpus, and prints how many pairs each part has and the command that trains on them."""
    split = settings.split
    folder = Path(split.out or f"{corpus.removeprefix(EMBEDDED)}_split")
    check_writable("split.out", folder)
    counts = split_corpus(corpus, settings.direction, folder, valid=split.valid, test=split.test, seed=settings.seed)
    if counts["train"] < sum(counts.values()) / 2:
        logger.warning(
            "Only %d of %d pairs are left for training: to keep more, delete %s and lower split.valid and "
            "split.test, for example to 0.05.",
            counts["train"],
            sum(counts.values()),
            folder,
        )
    names = {"left out": "left out: also in validation or test"}
    rows = [[names.get(name, name), f"{count:,}"] for name, count in counts.items()]
    print(Table(["", "pairs"], rows).markdown())
    words = ["python", "-m", "nmt.train", "data=files", "experiment=none", f"direction={settings.direction}"]
    for part in PARTS:
        if counts[part]:
            prefix = str(folder / part)
            if not re.fullmatch(r"[A-Za-z0-9_./-]+", prefix):  # characters that Hydra reads only in quotes
                prefix = '"' + prefix.replace("\\", "\\\\").replace('"', '\\"') + '"'
            words.append(f"data.{part}=[{prefix}]" if part == "train" else f"data.{part}={prefix}")
    print("\nTo train on these files:\n")
    print(shlex.join(words))


def _report(job: Job[PrepareSettings]) -> None:
    """Prints the defects of every corpus and what is left for training; fills the cache that nmt.train reads."""
    settings = job.settings
    check_folder("cache_dir", settings.cache_dir)
    train = matching_prefixes(settings.data.train, settings.direction)
    settings = settings.model_copy(update={"data": settings.data.model_copy(update={"train": train})})
    direction, tests = settings.direction, dict.fromkeys(settings.data.held_out.values())
    check_files([*train, *tests], direction)
    start = pretrained_run(settings, Path(settings.run_dir))
    if start is not None:
        config = {key: value for key, value in job.config.items() if key in RunSettings.model_fields}
        context = validated(RunSettings, inherited(config, job.given, start)).context
        settings = settings.model_copy(update={"context": context})
    check_boundaries(settings, Path(str(settings.cache_dir)))
    cache = cache_folder(settings.cache_dir)
    held_out = {
        prefix: {
            without_punctuation(line): f"{prefix}, line {number}"
            for side in read_pairs(prefix, direction)
            for number, line in reversed([*enumerate(side, start=1)])  # of equal lines, the first one is named
            if line
        }
        for prefix in tests
    }

    inspections, seen = dict[str, Inspection](), Seen(SeenTexts(), SeenTexts())
    all_held_out = dict(ChainMap(*held_out.values()))
    for prefix in train:
        name = f"{prefix} (training)" if prefix in held_out else prefix
        inspections[name] = _inspect(prefix, direction, all_held_out, seen)
    for prefix in held_out:
        others = [lines for other, lines in held_out.items() if other != prefix]
        inspections[prefix] = _inspect(prefix, direction, dict(ChainMap(*others)), None)

    # A row is printed even if its counts are 0, because people look for it, except the one on CR LF.
    counted = [kind for corpus in inspections.values() for kind in corpus.counts]
    kinds = dict.fromkeys([*checks(direction), REPEATED_PAIR, REPEATED_SOURCE, IN_ANOTHER_SPLIT, *counted])
    rows = [["pairs", *(f"{inspection.pairs:,}" for inspection in inspections.values())]]
    for side, language in enumerate((direction.source, direction.target)):
        rows.append([f"words, {language}", *(f"{inspection.words[side]:,}" for inspection in inspections.values())])
    rows += [[kind, *(f"{inspection.counts[kind]:,}" for inspection in inspections.values())] for kind in kinds]
    names = [Path(prefix).name.removeprefix(EMBEDDED) for prefix in inspections]
    print(Table(["", *(names if len(set(names)) == len(names) else inspections)], rows).markdown())
    print(_LEGEND)
    for prefix, inspection in inspections.items():
        for kind, lines in inspection.lines.items():
            if kind not in _WITHOUT_EXAMPLES:
                print(f"{prefix}, {'lines' if len(lines) > 1 else 'line'} {', '.join(map(str, lines))}: {kind}")
        for line, place in inspection.overlaps.items():
            print(f"{prefix}, line {line}: {IN_ANOTHER_SPLIT} ({place})")

    corpora = parallel_corpora(settings).plain(cache)
    if start:
        tokenizers = inherited_tokenizers(start, direction)
    else:
        tokenizers = corpora.learn_tokenizers(settings, cache, smaller=may_shrink(job.given))
    _, report = corpora.training_rows(settings, tokenizers, cache)
    print(f"\nTraining data: {report}")


def _inspect(prefix: str, direction: Direction, held_out: Mapping[str, str], seen: Seen | None) -> Inspection:
    """Counts the defects of a corpus, including lines that end in CR LF."""
    logger.info("Reading %s", prefix)
    inspection = inspect(iter_pairs(prefix, direction), checks(direction), held_out, seen)
    ends = 0
    for path in training_files(prefix, direction):
        with opened(path) as file:
            ends += sum(line.endswith(b"\r\n") for line in file)
    if ends:
        inspection.counts[_CRLF] = ends
    return inspection
