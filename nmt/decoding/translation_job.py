"""Translates files in parts: a job can be killed at any moment and started again, by one process or by many.

FOLDER/job.json             what is translated, and with what; any other job is refused
FOLDER/NAME.parts/000007    a finished part, which is there whole or not at all
FOLDER/NAME                 all parts in order; they are joined when the last one is finished, and then deleted

Processes share nothing but this folder. `Shard(2, 8)` is the share of the second of eight processes.
"""

import gzip
import io
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO

from nmt.config.messages import written
from nmt.config.stored import Count, Stored, read_stored
from nmt.data.cache import file_digest
from nmt.errors import Mistake
from nmt.files import atomic_write, locked, remove, remove_parts_of, write_json
from nmt.text.compressed import compression, opened
from nmt.text.lines import text_lines

logger = logging.getLogger(__name__)

RECORD = "job.json"
_LARGEST_RECORD = 2**28
"""Bytes; the record holds a number for each part."""


class _StoredFile(Stored):
    input: str
    bytes: Count
    modified: int
    sha256: str
    lines: list[Count]


class _Record(Stored):
    """The file RECORD."""

    made_with: dict[str, Any]
    files: dict[str, _StoredFile]


class Shard(NamedTuple):
    """The share of one process: every `of`-th part, beginning with part `number`, counted from 1."""

    number: int
    of: int

    def has(self, part: int) -> bool:
        """Whether a part, counted from 0 over all files, belongs to this share."""
        return part % self.of == self.number - 1


class Part(NamedTuple):
    """Consecutive lines of a file."""

    path: Path
    """Where their translations belong."""
    first_line: int
    """Counted from 1."""
    lines: list[str]


class JobFile(NamedTuple):
    """A file to translate."""

    source: Path
    target: Path
    first_part: int
    """The number of its first part, counted from 0 over all files."""
    lines: Sequence[int]
    """The number of lines in each part."""

    @property
    def parts(self) -> Path:
        """The folder of the finished parts, until they are joined."""
        return _parts(self.target)

    def missing(self) -> list[int]:
        """The indices of the parts that are not translated yet."""
        missing = [index for index in range(len(self.lines)) if not self._part(index).exists()]
        # Asked last, because another process may be joining and deleting the parts.
        return [] if self.target.exists() else missing

    def read(self, indices: Sequence[int]) -> Iterator[Part]:
        """Reads some of the parts, in order, until another process has finished the file.

        Raises Mistake if the file has fewer lines than it had.
        """
        wanted, first_line = set(indices), 1
        with opened(self.source) as file:
            remaining = text_lines(file, str(self.source))
            for index in range(max(wanted, default=-1) + 1):
                lines = list(islice(remaining, self.lines[index]))
                if len(lines) < self.lines[index]:
                    raise Mistake(f"{self.source} has lost lines since the job began: restore it.")
                # A process of a killed command may live on for a while, beside those of the command that continues.
                if self.target.exists():
                    return
                if index in wanted:
                    yield Part(self._part(index), first_line, lines)
                first_line += len(lines)

    @contextmanager
    def writing(self, part: Part) -> Iterator[TextIO]:
        """A text file that becomes the part when the block ends; after an error, nothing of it remains."""
        part.path.parent.mkdir(exist_ok=True)
        begun = False
        try:
            with atomic_write(part.path) as temporary, temporary.open("wb") as raw:
                # Compressed parts can be joined as they are. Without a time stamp, equal parts are equal files.
                file = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if compression(self.target) else raw
                with io.TextIOWrapper(file, encoding="utf-8", newline="\n") as text:
                    begun = True
                    yield text
        except FileNotFoundError:
            # Another process was faster: it has translated the same parts, joined them and deleted the folder.
            if not self.target.exists():
                raise
            if not begun:
                yield io.StringIO()  # the block must run, and what it writes is no longer needed
        if self.target.exists():
            remove(self.parts)  # mkdir has made it again, just after the process that joined the parts deleted it

    def join(self) -> bool:
        """Joins the parts if all of them are finished. Returns whether the file is there."""
        if self.missing():
            return False
        with locked(self.target.parent, wait=True, task=f"joining files in {self.target.parent}") as alone:
            if alone:
                # A process that was killed here has left a file as large as the translation.
                remove_parts_of(self.target)
            if not self.target.exists():
                try:
                    with atomic_write(self.target) as temporary, temporary.open("wb") as whole:
                        for index in range(len(self.lines)):
                            with self._part(index).open("rb") as part:
                                shutil.copyfileobj(part, whole)
                except FileNotFoundError:
                    # Without locks, another process may have joined and deleted the parts meanwhile.
                    if not self.target.exists():
                        raise
            remove(self.parts)
        return True

    def _part(self, index: int) -> Path:
        return self.parts / f"{index:06}"


def open_job(
    folder: Path, inputs: Mapping[str, Path], made_with: Mapping[str, Any], part_lines: int, documents: bool
) -> list[JobFile]:
    """Opens the job in a folder, or begins one, and returns its files.

    `inputs` maps names of files in the folder to what they are translated from, in any order, and `made_with` names
    everything else on which the translations depend. The files of the job keep their first order. A part has
    `part_lines` lines; with `documents`, it goes on to an empty line.

    Raises Mistake if the folder holds another job, or files with these names that belong to no job, if an input has
    changed, and for an input that is not UTF-8.
    """
    made_with = {**made_with, "shard_lines": part_lines}
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        with locked(folder, wait=True, task=f"preparing the job in {folder}") as alone:
            if alone:
                remove_parts_of(folder / RECORD)
            if (folder / RECORD).exists():
                record = read_stored(folder / RECORD, _Record, _LARGEST_RECORD)
                _check_settings(folder, record["made_with"], made_with)
                _check_inputs(folder, record["files"], inputs)
            else:
                _check_free(folder, inputs)
                logger.info("Counting the lines of %d file%s", len(inputs), "s" * (len(inputs) > 1))
                measured = {name: _measured(path, part_lines, documents) for name, path in inputs.items()}
                record = {"made_with": made_with, "files": measured}
                write_json(folder / RECORD, record)
    except BaseException:
        with suppress(OSError):  # the first folder with something in it
            for path in new:
                path.rmdir()
        raise
    files: list[JobFile] = []
    first_part = 0
    # Every process must number the parts alike, whatever the order in which it names the inputs.
    for name, stored in record["files"].items():
        files.append(JobFile(inputs[name], folder / name, first_part, stored["lines"]))
        first_part += len(stored["lines"])
    return files


def recorded_setting(folder: Path, key: Literal["engine", "precision"]) -> str | None:
    """The engine or the precision with which the job in a folder was begun; None if there is no job."""
    if not (folder / RECORD).is_file():
        return None
    value = read_stored(folder / RECORD, _Record, _LARGEST_RECORD)["made_with"].get(key)
    return value if isinstance(value, str) else None


def _check_free(folder: Path, names: Iterable[str]) -> None:
    """Raises Mistake if a new job would overwrite files, or join parts that it has not translated."""
    for name in names:
        for path in (folder / name, _parts(folder / name)):
            if os.path.lexists(path):
                raise Mistake(f"{path} exists already: choose another folder as output, or delete it.")


def _parts(target: Path) -> Path:
    """The folder of a file's finished parts."""
    return target.with_name(f"{target.name}.parts")


def cut(lines: Iterable[str], part_lines: int, documents: bool) -> Iterator[int]:
    """The number of lines in each part. With `documents`, a part goes on until an empty line, which ends a document."""
    count = 0
    for line in lines:
        count += 1
        if count >= part_lines and not (documents and line.strip()):
            yield count
            count = 0
    if count:
        yield count


def _measured(path: Path, part_lines: int, documents: bool) -> dict[str, Any]:
    """What the record says about an input."""
    status = path.stat()
    with opened(path) as file:
        # An empty file has one empty part, which is compressed like any other.
        lines = list(cut(text_lines(file, str(path)), part_lines, documents)) or [0]
    return {
        "input": str(path),
        "bytes": status.st_size,
        "modified": status.st_mtime_ns,
        "sha256": file_digest(path),
        "lines": lines,
    }


_HASHED = {
    "weights": "different weights: use the same run again",
    "dictionary": "a different dictionary: use the same one again",
}
"""What to say if the hash that is stored under a key differs."""


def _check_settings(folder: Path, stored: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raises Mistake for the first setting that differs from those with which the job was started."""
    # First the kind of search, because two kinds have different settings.
    for key in dict.fromkeys(["search", *now, *stored]):
        if stored.get(key) == now.get(key):
            continue
        if key == "search":
            raise Mistake(
                f"output is {folder}, whose job was started with search={stored.get(key)}, not search={now.get(key)}: "
                "use the same search again, or choose another output."
            )
        if key in _HASHED:
            raise Mistake(f"output is {folder}, whose job was started with {_HASHED[key]}, or choose another output.")
        before, asked = written(stored.get(key)), written(now.get(key))
        raise Mistake(
            f"output is {folder}, whose job was started with {key}={before}, not {asked}: use the same value again, or "
            "choose another output."
        )


def _check_inputs(folder: Path, stored: Mapping[str, Any], inputs: Mapping[str, Path]) -> None:
    """Raises Mistake if the inputs are not those with which the job was started."""
    for name in {**stored, **inputs}:
        if name not in inputs or name not in stored:
            former = stored[name]["input"] if name in stored else None
            differs = f"translates {former}, which is not in input" if former else f"does not translate {inputs[name]}"
            raise Mistake(
                f"output is {folder}, whose job {differs}: name the same files again, or choose another output."
            )
        status = inputs[name].stat()
        unchanged = (status.st_size, status.st_mtime_ns) == (stored[name]["bytes"], stored[name]["modified"])
        if not unchanged and file_digest(inputs[name]) != stored[name]["sha256"]:
            raise Mistake(
                f"{inputs[name]} has changed since the job in {folder} began: restore it, or choose another output."
            )
