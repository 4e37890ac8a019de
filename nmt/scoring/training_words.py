"""How often each word occurs in the text that a run was trained on."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from nmt.config.stored import Count, Stored, read_stored
from nmt.data.cache import content_key
from nmt.data.corpus import iter_sources, source_file
from nmt.data.known_files import ReadLines, Sources
from nmt.errors import Mistake
from nmt.evaluation.buckets import words_of
from nmt.files import write_json
from nmt.runs.load import LoadedRun
from nmt.text import detokenizer, normalize
from nmt.text.lines import iter_lines

# Part of the cache key. Increment it when a code change gives different counts for the same files.
_FORMAT = 1
_MOST_BYTES = 4_000_000_000


class _StoredCounts(Stored):
    words: Mapping[str, Count]


def training_counts(run: LoadedRun, cache_dir: Path | None = None) -> Counter[str]:
    """How often each source word occurs in the run's training corpus; empty if one of its files is missing.

    With `cache_dir`, the text is read only if it has changed since it was last counted: the counts are kept in
    CACHE/words/KEY.json, keyed by the digests of the files. Raises whatever `iter_sources` and `Sources` raise.
    """
    data, direction = run.settings.data, run.direction
    files = [source_file(prefix, direction) for prefix in data.train]
    if not all(path.is_file() for path in files):
        return Counter()
    if cache_dir is None:
        return _counted(run, iter_lines)
    sources = Sources(files, cache_dir)
    plain = [data.becomes_plain(prefix) for prefix in data.train]
    digests = [sources.digests[path] for path in files]
    key = content_key([_FORMAT, direction.source, digests, plain, version("sacremoses") if any(plain) else None])
    file = cache_dir / "words" / f"{key}.json"
    with suppress(OSError, Mistake):  # not there, or damaged: made again
        return Counter(read_stored(file, _StoredCounts, _MOST_BYTES)["words"])
    counts = _counted(run, sources.lines)
    with suppress(OSError):  # the cache may be read-only or full: then the text is read again
        write_json(file, {"words": counts})
    return counts


def _counted(run: LoadedRun, read: ReadLines) -> Counter[str]:
    data, counts = run.settings.data, Counter[str]()
    for prefix in data.train:
        # A detokenizer takes half a second to build.
        plain = detokenizer(run.direction.source) if data.becomes_plain(prefix) else str
        for line in iter_sources(prefix, run.direction, read):
            counts.update(words_of(normalize(plain(line))))
    return counts
