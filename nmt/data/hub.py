"""Writes parallel datasets, from the Hugging Face Hub or from a folder, as aligned text files."""

import logging
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import datasets

from nmt.config.direction import Direction
from nmt.data.fetch import DownloadFailed
from nmt.errors import Mistake
from nmt.files import atomic_write, write_text

logger = logging.getLogger(__name__)

_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_FOLDER_PREFIXES = ("/", "./", "../")
"""How the name of a folder begins; any other name is that of a dataset on the Hub."""
# The names of splits on the Hub, and our names for them.
_SPLITS = {"validation": "valid", "dev": "valid"}
_ORIGIN = ".origin"
"""The file that names the folder whose dataset is stored here; another folder can have the same name."""
_LINE_END = re.compile(r"[\r\n]+")
_LOG_EVERY = 100_000


def checked_name(name: str) -> str:
    """Returns the name of a dataset on the Hub, or of a folder: ./FOLDER, ../FOLDER or /FOLDER.

    Raises Mistake for a folder that does not exist, and for a name that is malformed or is also a local path.
    """
    if name.startswith(_FOLDER_PREFIXES):
        if not Path(name).is_dir():
            raise Mistake(
                f"There is no folder {name}; check the path, or write hub:OWNER/SET for a dataset on the Hub."
            )
        return name
    if not _NAME.fullmatch(name):
        raise Mistake(f"'{name}' is not the name of a dataset on the Hugging Face Hub; write hub:OWNER/SET.")
    if Path(name).exists():
        raise Mistake(
            f"{name} is a local path, which hides the dataset of that name: write hub:./{name} for the folder, or run "
            "the command in another folder."
        )
    return name


def stored_name(name: str) -> str:
    """The name under which a dataset is stored, and by which data.name refers to it."""
    return Path(name).resolve().name if name.startswith(_FOLDER_PREFIXES) else name


def write_splits(name: str, config: str | None, languages: Direction, folder: Path) -> list[Path]:
    """Writes each split of a dataset as one file per language, and returns all paths.

    Each row is a pair: either its column 'translation' maps languages to texts, or it has one column per language. Line
    ends inside a text become spaces. Existing files are kept. Raises DownloadFailed if the dataset cannot be loaded,
    and Mistake if it lacks the configuration or a language, has two validation splits, or if the files are those of
    another folder.
    """
    origin = str(Path(name).resolve()) if name.startswith(_FOLDER_PREFIXES) else ""
    stored = (folder / _ORIGIN).read_text(encoding="utf-8") if (folder / _ORIGIN).is_file() else origin
    if stored != origin:
        raise Mistake(
            f"{folder} has the files of {stored}, not of {origin}: choose another folder with out=, or delete it."
        )
    codes = [languages.source, languages.target]
    dataset = _loaded(name, config)
    splits = {split: _SPLITS.get(split, split) for split in dataset}
    if len(set(splits.values())) < len(splits):
        raise Mistake(
            f"Dataset '{name}' has two validation splits among {', '.join(splits)}, but nmt reads only one; choose "
            "another hub_config, if there is one."
        )
    columns = {split: _columns(name, rows.features, codes) for split, rows in dataset.items()}
    if origin:
        write_text(folder / _ORIGIN, origin)  # first, because the command may be interrupted between two splits
    written = []
    for split, rows in dataset.items():
        paths = [folder / f"{splits[split]}.{code}" for code in codes]
        if all(path.is_file() for path in paths):
            logger.info("%s already exist", " and ".join(map(str, paths)))
        else:
            _write(_pairs(rows.select_columns(columns[split]), codes, split), paths)
            logger.info("%s, %s: %s pairs", name, split, f"{len(rows):,}")
        written += paths
    return written


def _loaded(name: str, config: str | None) -> Any:
    try:
        if any(Path(name, file).is_file() for file in ("dataset_dict.json", "state.json")):  # of save_to_disk
            dataset = datasets.load_from_disk(name)
            return {"train": dataset} if isinstance(dataset, datasets.Dataset) else dataset
        return datasets.load_dataset(name, config)
    # The network and the underlying libraries can raise any exception.
    except Exception as error:
        if isinstance(error, OSError) and error.errno:
            raise
        # A missing and an unknown configuration are a ValueError, like much else: the list of them decides.
        if isinstance(error, ValueError) and not _has_configuration(name, config):
            raise Mistake(f"Dataset '{name}' needs another hub_config: {_shortened(error)}") from error
        if name.startswith(_FOLDER_PREFIXES):
            advice = "Check the files in the folder."
        else:
            advice = "Check its name and the network connection."
        raise DownloadFailed(f"Dataset '{name}' could not be loaded. {advice} {_shortened(error)}") from error


def _has_configuration(name: str, config: str | None) -> bool:
    """Whether a dataset has the configuration, by default its own default; true if it does not even list them."""
    try:
        return (config or datasets.get_dataset_default_config_name(name)) in datasets.get_dataset_config_names(name)
    except Exception:  # of any library: the dataset cannot be read at all, so its configuration is not to blame
        return True


def _shortened(error: Exception) -> str:
    return textwrap.shorten(str(error) or type(error).__name__, 300, placeholder=" ...")


def _columns(name: str, features: Any, codes: Sequence[str]) -> list[str]:
    """The names of the columns that hold the texts. Raises Mistake if a language is missing."""
    nested = features.get("translation")
    names = getattr(nested, "languages", None) or (nested if isinstance(nested, dict) else features)
    missing = [code for code in codes if code not in names]
    if missing:
        raise Mistake(
            f"Dataset '{name}' has no {' and no '.join(missing)}, only {', '.join(sorted(names))}; set languages= to "
            "two of these, or choose another hub_config."
        )
    return ["translation"] if names is not features else list(codes)


def _pairs(rows: Any, codes: Sequence[str], split: str) -> Iterator[list[str]]:
    for number, row in enumerate(rows, start=1):
        if number % _LOG_EVERY == 0:
            logger.info("%s: %s of %s pairs", split, f"{number:,}", f"{len(rows):,}")
        texts = row.get("translation", row)
        yield [_LINE_END.sub(" ", str(texts[code] or "")) for code in codes]


def _write(pairs: Iterator[list[str]], paths: Sequence[Path]) -> None:
    """Writes one file per side; the files get their final names once all of them are complete."""
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        parts = [stack.enter_context(atomic_write(path)) for path in paths]
        files = [stack.enter_context(part.open("w", encoding="utf-8", newline="\n")) for part in parts]
        for texts in pairs:
            for file, text in zip(files, texts, strict=True):
                file.write(f"{text}\n")
