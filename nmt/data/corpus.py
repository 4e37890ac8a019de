"""Corpora: PREFIX.en and PREFIX.vi hold one sentence per line, and line n of one is the translation of line n of the
other. For training, the name of a .tsv with both sides can replace PREFIX; see nmt.data.table_corpora.
"""

import difflib
import glob
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from nmt.config.direction import Direction
from nmt.config.nodes import CONFIGS
from nmt.config.schema import EMBEDDED
from nmt.data.cache import file_digest
from nmt.data.known_files import ReadLines, known_digest, known_lines, remembered_lines
from nmt.data.table_corpora import is_table, iter_table
from nmt.errors import MissingFile, Mistake
from nmt.paths import check_utf8, how_to_unpack
from nmt.text import normalize
from nmt.text.compressed import COMPRESSED, uncompressed
from nmt.text.lines import iter_lines

# A hint about a missing file considers at most this many names in its folder.
_MOST_NAMES = 10_000

_PACKAGE = Path(__file__).resolve().parents[1]
# The wheel contains the sample corpus inside the package; in a checkout, it is beside the package.
_SAMPLE_FOLDERS = (_PACKAGE / "_sample", _PACKAGE.parent / "data" / "sample")


class Pairs(NamedTuple):
    """Line n of `source` and line n of `target` are translations of each other."""

    source: list[str]
    target: list[str]


def iter_parallel(source_path: Path, target_path: Path, read: ReadLines = iter_lines) -> Iterator[tuple[str, str]]:
    """Yields the unchanged lines of two files as pairs. Both files are read to their end.

    Raises whatever `read` raises, and Mistake after the last pair if one file has more lines.
    """
    source, target = read(source_path), read(target_path)
    for number, (source_line, target_line) in enumerate(zip_longest(source, target)):
        if source_line is None or target_line is None:
            longer = number + 1 + sum(1 for _ in (target if source_line is None else source))
            lengths = (number, longer) if source_line is None else (longer, number)
            raise Mistake(
                f"{source_path} has {lengths[0]} lines but {target_path} has {lengths[1]}; "
                "line n of one must be the translation of line n of the other."
            )
        yield source_line, target_line


def read_parallel(source_path: Path, target_path: Path, read: ReadLines = iter_lines) -> Pairs:
    """The pairs that `iter_parallel` yields, as two lists."""
    pairs = Pairs([], [])
    for source, target in iter_parallel(source_path, target_path, read):
        pairs.source.append(source)
        pairs.target.append(target)
    return pairs


def file_pair(prefix: str, direction: Direction) -> tuple[Path, Path]:
    """The paths of a corpus's source and target files, whether or not they exist.

    'sample:NAME' is a part of the embedded corpus. A relative prefix is looked up in the working folder first and then
    in the checkout that this package is part of. If a file is missing and a compressed form of it is there, such as
    PREFIX.en.gz, the path is that of the compressed form. Raises Mistake for an unknown part of the embedded corpus.
    """
    if prefix.startswith(EMBEDDED):
        stem = _sample_stem(prefix.removeprefix(EMBEDDED), direction.source)
        return Path(f"{stem}.{direction.source}"), Path(f"{stem}.{direction.target}")
    candidates = [
        (folder / f"{prefix}.{direction.source}", folder / f"{prefix}.{direction.target}") for folder in _roots(prefix)
    ]
    candidates = [(_present(source), _present(target)) for source, target in candidates]
    return next((pair for pair in candidates if any(path.is_file() for path in pair)), candidates[0])


def _present(path: Path) -> Path:
    """The file or, if only a compressed form of it exists, that one."""
    forms = (path, *(path.with_name(f"{path.name}{ending}") for ending in COMPRESSED))
    return next((form for form in forms if form.is_file()), path)


def matching_prefixes(names: Iterable[str], direction: Direction) -> list[str]:
    """The prefixes of corpora, with each pattern such as shards/* replaced by all corpora that match, in order.

    Raises Mistake for a pattern that no corpus matches.
    """
    prefixes: list[str] = []
    for name in names:
        if name.startswith(EMBEDDED) or not glob.has_magic(name):
            prefixes.append(name)
            continue
        end = "" if is_table(name) else f".{direction.source}"
        paths = [Path(path) for path in glob.glob(f"{name}{end}*") if os.path.isfile(path)]
        if is_table(name):
            # Of a.tsv and a.tsv.gz, which sort in this order, only the first.
            tables = {uncompressed(path): path for path in sorted(paths, reverse=True) if is_table(path.name)}
            files = set(tables.values())
        else:
            files = set(map(uncompressed, paths))
        matching = sorted(str(path).removesuffix(end) for path in files if path.name.endswith(end))
        for prefix in matching:
            check_utf8(prefix)
        if not matching and not any(path.is_file() for path in file_pair(name, direction)):
            raise Mistake(f"data.train contains {name}, but there is no file {name}{end}; check the pattern.")
        prefixes += matching or [name]
    return list(dict.fromkeys(prefixes))


def corpus_files(prefix: str, direction: Direction) -> tuple[Path, Path]:
    """The two files of a corpus. If one is missing, raises MissingFile with the folders searched and a hint."""
    files = file_pair(prefix, direction)
    for path, language in zip(files, (direction.source, direction.target), strict=True):
        if not path.is_file():
            folders = " or ".join(str(folder.absolute()) for folder in _roots(prefix))
            searched = "" if path.is_absolute() else f" in {folders}"
            raise MissingFile(f"There is no file {path}{searched}{_hint(prefix, direction, language)}")
    return files


def check_no_table(prefix: str, direction: Direction) -> None:
    """Raises MissingFile for a held-out corpus that is a table, with the command that splits it."""
    if is_table(prefix):
        corpus_files(prefix, direction)


def training_files(prefix: str, direction: Direction) -> tuple[Path, ...]:
    """The file of a table, or the source and the target file of a corpus. Raises Mistake if one is missing."""
    return (text_file(prefix),) if is_table(prefix) else corpus_files(prefix, direction)


def source_file(prefix: str, direction: Direction) -> Path:
    """The file with the source lines of a corpus, whether or not it exists."""
    return _text_file(prefix)[0] if is_table(prefix) else file_pair(prefix, direction)[0]


def text_file(name: str) -> Path:
    """The path of a text file, looked up like a corpus prefix; 'sample:NAME.en' is a file of the embedded corpus.

    Raises MissingFile for a file that does not exist.
    """
    if name.startswith(EMBEDDED):
        stem, _, language = name.removeprefix(EMBEDDED).rpartition(".")
        return Path(f"{_sample_stem(stem, language)}.{language}")
    file, candidates = _text_file(name)
    if not file.is_file():
        neighbors = [neighbor for path in candidates for neighbor in _names(path.parent)]
        # A corpus PREFIX is often given where one of its files is meant.
        similar = [neighbor for neighbor in neighbors if neighbor.startswith(f"{candidates[0].name}.")]
        similar = similar or difflib.get_close_matches(candidates[0].name, neighbors, n=1)
        suggestions = " or ".join(str(candidates[0].with_name(neighbor)) for neighbor in similar[:2])
        hint = f". Did you mean {suggestions}?" if similar else "; check the path."
        raise MissingFile(f"There is no file {candidates[0]}{hint}")
    return file


def _text_file(name: str) -> tuple[Path, list[Path]]:
    """The path of a text file, whether or not it exists, and all paths where it is looked up."""
    candidates = [_present(folder / name) for folder in _roots(name)]
    return next((path for path in candidates if path.is_file()), candidates[0]), candidates


def corpus_hashes(prefixes: list[str], direction: Direction, cache_dir: Path | None = None) -> dict[str, str]:
    """SHA-256 of each corpus file, by prefix and language, or by the name of a table.

    With `cache_dir`, only files that have changed since they were last read are read.
    """
    files = list[tuple[str, Path]]()
    for prefix in prefixes:
        if is_table(prefix):
            files.append((prefix, text_file(prefix)))
        else:
            names = (f"{prefix}.{language}" for language in (direction.source, direction.target))
            files += zip(names, file_pair(prefix, direction), strict=True)
    return {name: known_digest(path, cache_dir) if cache_dir else file_digest(path) for name, path in files}


def alignment_file(prefix: str, direction: Direction) -> Path | None:
    """The path of a corpus's word alignments, such as PREFIX.en-vi.align, or None if there is no such file.

    Both directions can use the same file. If its name has the languages in the opposite order, the caller must swap the
    two sides.
    """
    stem = uncompressed(file_pair(prefix, direction)[0]).with_suffix("")
    forth, back = f"{direction.source}-{direction.target}", f"{direction.target}-{direction.source}"
    paths = (stem.with_name(f"{stem.name}.{way}.align") for way in (forth, back))
    return next((path for path in paths if path.is_file()), None)


def iter_pairs(prefix: str, direction: Direction, read: ReadLines = iter_lines) -> Iterator[tuple[str, str]]:
    """Yields the unchanged lines of a corpus as pairs.

    Raises whatever `corpus_files` and `iter_parallel`, or for a table `text_file` and `iter_table`, raise.
    """
    if is_table(prefix):
        yield from iter_table(text_file(prefix), read)
    else:
        yield from iter_parallel(*corpus_files(prefix, direction), read)


def iter_sources(prefix: str, direction: Direction, read: ReadLines = iter_lines) -> Iterator[str]:
    """Yields the unchanged source lines of a corpus. Raises whatever `read` or `iter_pairs` raise."""
    if is_table(prefix):
        return (source for source, _ in iter_pairs(prefix, direction, read))
    return read(source_file(prefix, direction))


def check_files(prefixes: Iterable[str], direction: Direction, cache_dir: Path | None = None) -> None:
    """Checks that every line of the corpora can be read. Raises whatever `iter_pairs` raises.

    With `cache_dir`, only files that have changed since they were last read are read, and their digests are recorded.
    """
    read = iter_lines if cache_dir is None else partial(remembered_lines, cache_dir=cache_dir)
    for prefix in prefixes:
        if cache_dir is not None:
            lines = {known_lines(path, cache_dir) for path in training_files(prefix, direction)}
            if None not in lines and len(lines) == 1:
                continue
        for _ in iter_pairs(prefix, direction, read):
            pass


def read_aligned(prefix: str, direction: Direction, read: ReadLines = iter_lines) -> Pairs:
    """All unchanged lines of a corpus. Raises whatever `iter_pairs` raises."""
    return read_parallel(*corpus_files(prefix, direction), read)


def read_pairs(prefix: str, direction: Direction, read: ReadLines = iter_lines) -> Pairs:
    """All lines of a corpus, normalized. None is dropped, so line n stays line n.

    Raises whatever `iter_pairs` raises.
    """
    source, target = read_aligned(prefix, direction, read)
    return Pairs([normalize(line) for line in source], [normalize(line) for line in target])


def _roots(prefix: str) -> list[Path]:
    """The folders in which a prefix is looked up: the working folder and, for a relative prefix, the checkout."""
    checkout = _SAMPLE_FOLDERS[-1].parents[1]
    relative = not Path(prefix).is_absolute() and _SAMPLE_FOLDERS[-1].is_dir() and checkout != Path.cwd()
    return [Path(), checkout] if relative else [Path()]


def _sample_stem(name: str, language: str) -> Path:
    folder = next((folder for folder in _SAMPLE_FOLDERS if folder.is_dir()), _SAMPLE_FOLDERS[-1])
    names = sorted(path.stem for path in folder.glob(f"*.{language}"))
    if name in names:
        return folder / name
    remedy = f"choose one of {', '.join(names)}." if names else "set data=files to train on files of your own."
    raise MissingFile(f"The sample corpus has no part '{EMBEDDED}{name}' in language '{language}'; {remedy}")


def _hint(prefix: str, direction: Direction, language: str) -> str:
    """The end of the error message about a missing file: the likely mistake and how to fix it."""
    candidates, end = [folder / prefix for folder in _roots(prefix)], f".{language}"
    path = next((candidate for candidate in candidates if candidate.parent.is_dir()), candidates[0])
    if path.is_dir():
        corpora = [name.removesuffix(end) for name in _names(path) if name.endswith(end) and name != end]
        example = f", such as {path / corpora[0]}" if corpora else ""
        return f": {path} is a folder; give the path of a corpus without its language extension{example}."
    sides = [path.with_name(f"{path.name}.{code}") for code in (direction.source, direction.target)]
    if is_table(path.name) and path.is_file():
        return f": only data.train can name a .tsv; split it with: {_columns(path, sides)}"
    without = path.with_suffix("")
    if path.is_file() and any(Path(f"{without}.{code}").is_file() for code in (direction.source, direction.target)):
        return f": write the corpus without its extension, as {without}."
    table = path.with_name(f"{path.name}.tsv")
    present = [side for side in map(_present, sides) if side.is_file()]
    if not present:
        if unpack := how_to_unpack(table):
            return unpack
        if table.is_file():
            return (
                f", only {table.name}; if its first column is {direction.source}, name {table.name} in data.train, or "
                f"split it with: {_columns(table, sides)}"
            )
    names = _names(path.parent)
    of_side = re.compile(rf"{re.escape(path.name)}\.(?!tsv|doc)[a-z]{{2,3}}")
    of_corpus = [name for name in names if of_side.fullmatch(uncompressed(Path(name)).name)]
    if len(of_corpus) == 2:
        one, other = (uncompressed(Path(name)).suffix.removeprefix(".") for name in of_corpus)
        return f", only {' and '.join(of_corpus)}; set direction={one}-{other} or direction={other}-{one}."
    if len(of_corpus) > 2:
        return f", only {' and '.join(of_corpus)}; set direction= to two of these extensions."
    if present:
        return f", only {present[0].name}: add it, with the translation of line n of {present[0].name} in line n."
    stems = [name.removesuffix(end) for name in names if name.endswith(end)]
    if near := difflib.get_close_matches(path.name, stems, n=1):
        return f". Did you mean {path.with_name(near[0])}?"
    match Path(prefix).parts:
        case ["data", "hub", owner, name, _]:
            return f"; 'python -m nmt.download hub:{owner}/{name}' downloads it."
        case ["data", name, _] if (CONFIGS / "corpus" / f"{name}.yaml").is_file():
            return f"; 'python -m nmt.download {name}' downloads it."
    return f"; a corpus PREFIX consists of the files PREFIX.{direction.source} and PREFIX.{direction.target}."


def _columns(table: Path, sides: Sequence[Path]) -> str:
    """The command that writes the columns of a table to files."""
    name = shlex.quote(str(table))
    return " && ".join(
        f"cut -f{column} {name} > {shlex.quote(str(side))}" for column, side in enumerate(sides, start=1)
    )


def _names(folder: Path) -> list[str]:
    """Up to 10,000 names in a folder, sorted; an empty list if the folder cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, _MOST_NAMES))
    except OSError:
        return []
