"""Parallel corpora of the Hugging Face hub as aligned text files."""

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import datasets

from nmt.config.direction import Direction
from nmt.data.fetch import DownloadFailed

logger = logging.getLogger(__name__)

_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
# The hub's names of splits, and ours.
_SPLITS = {"validation": "valid", "dev": "valid"}
_LINE_END = re.compile(r"[\r\n]+")
_TOLD = 100_000


def checked_name(name: str) -> str:
    """The name of a set on the hub. Raises ValueError for anything else, a folder of that name too."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"'{name}' is no name of a set on the Hugging Face hub; write hub:OWNER/SET.")
    if Path(name).exists():
        raise ValueError(f"{name} is here, and a set of that name on the hub would be taken for it; use data=files.")
    return name


def write_splits(name: str, config: str | None, languages: Direction, folder: Path) -> list[Path]:
    """Writes each split of a set that the hub or a folder has, one file a language; all files of it.

    A pair is a row with a column 'translation' of texts by language, or a column of each language. A line end within a
    text becomes a space. A split whose files are there is left alone. Raises DownloadFailed where the set cannot be
    had, and ValueError where it has no such configuration or no such pairs.
    """
    codes = [languages.source, languages.target]
    found = _loaded(name, config)
    splits = {split: _SPLITS.get(split, split) for split in found}
    if len(set(splits.values())) < len(splits):
        raise ValueError(f"The set '{name}' has the splits {', '.join(splits)}, of which two are for validation.")
    columns = {split: _columns(name, rows.features, codes) for split, rows in found.items()}
    written = []
    for split, rows in found.items():
        paths = [folder / f"{splits[split]}.{code}" for code in codes]
        if all(path.is_file() for path in paths):
            logger.info("%s is there already", " and ".join(map(str, paths)))
        else:
            _write(_pairs(rows.select_columns(columns[split]), codes, split), paths)
            logger.info("%s, %s: %s pairs", name, split, f"{len(rows):,}")
        written += paths
    return written


def _loaded(name: str, config: str | None) -> Any:
    try:
        return datasets.load_dataset(name, config)
    except ValueError as error:
        raise ValueError(
            f"The set '{name}' cannot be read so: {' '.join(str(error).split())} Give hub_config."
        ) from error
    # Whatever the libraries below and the network may raise.
    except Exception as error:
        if isinstance(error, OSError) and error.errno:
            raise
        reason = " ".join(str(error).split())
        raise DownloadFailed(
            f"The set '{name}' could not be loaded: {reason[:300]} Check its name and the network, or fetch its files "
            "by other means and use data=files."
        ) from error


def _columns(name: str, features: Any, codes: Sequence[str]) -> list[str]:
    """Which columns hold the texts. Raises ValueError where none do."""
    nested = features.get("translation")
    names = getattr(nested, "languages", None) or (nested if isinstance(nested, dict) else features)
    missing = [code for code in codes if code not in names]
    if missing:
        raise ValueError(
            f"The set '{name}' has {', '.join(sorted(names))}, not {' and '.join(missing)}: choose languages=A-B among "
            "them, or another hub_config."
        )
    return ["translation"] if names is not features else list(codes)


def _pairs(rows: Any, codes: Sequence[str], split: str) -> Iterator[list[str]]:
    for number, row in enumerate(rows, start=1):
        if number % _TOLD == 0:
            logger.info("%s: %s of %s pairs", split, f"{number:,}", f"{len(rows):,}")
        texts = row.get("translation", row)
        yield [_LINE_END.sub(" ", str(texts[code] or "")) for code in codes]


def _write(pairs: Iterator[list[str]], paths: Sequence[Path]) -> None:
    """Writes lines side by side; the files take their names when all are whole."""
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    parts = [path.with_name(f"{path.name}.part") for path in paths]
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(part.open("w", encoding="utf-8", newline="\n")) for part in parts]
            for texts in pairs:
                for file, text in zip(files, texts, strict=True):
                    file.write(f"{text}\n")
        for part, path in zip(parts, paths, strict=True):
            part.replace(path)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
