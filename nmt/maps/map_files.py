"""Attention maps on disk: manifest.json and an .npz for every 100 sentences; see docs/reference/map_format.md."""

import io
import json
import math
import re
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from nmt.config.fields import Positive
from nmt.config.stored import Count, Number, Stored, read_stored
from nmt.data.cache import file_digest
from nmt.errors import Mistake
from nmt.files import PART, atomic_write, locked, remove_parts, subfolder, write_text
from nmt.maps.attention_map import AttentionMap, EarlierPair, Labels, LocalWindow, SentenceMaps, site_labels
from nmt.maps.words import word_ids

MANIFEST = "manifest.json"
FORMAT, VERSION = "nmt-attention-maps", 1  # also in _Manifest
CONVENTION = (
    "Rows are queries, columns are keys. In the decoder row t is step t, which reads y_(t-1) and predicts y_t: the "
    "inputs are BOS and the target pieces, the outputs the target pieces and EOS. In the encoder rows and columns are "
    "the source pieces and EOS."
)
_FOLDER = "maps"
_LARGEST_MANIFEST = 2**28  # bytes; a sentence needs about a thousand
LARGEST_ARRAYS = 2**31
"""Bytes of the arrays of a sentence; 12 layers with 16 heads need less for 800 pieces."""
_LARGEST_HEADER = 1024  # bytes of an array's header; numpy writes 128
_FILE = re.compile(rf"{_FOLDER}/\d+\.npz", re.ASCII)
_MOST_OPEN = 128  # archives; a process may often open 1024 files
_IN_FILE = 100  # sentences; a file of each would be slow to copy and to delete
_LOCAL = ("center", "allowed", "prior")
_ATTRIBUTION, _MASK = "attribution", "mask"


class _Site(Stored):
    layers: Positive
    heads: Positive
    rows: str
    columns: str


class _Entry(Stored):
    line: Positive
    rank: Positive
    file: str
    sha256: str
    score: Number | None
    source_pieces: list[str]
    target_pieces: list[str]
    earlier: list[Annotated[list[list[str]], Field(min_length=2, max_length=2)]] = Field([])


class _Origin(Stored):
    lines: Annotated[int, Field(ge=0, le=10**8)]
    step: Count | None = None
    run_dir: str = ""
    method: str = ""


class _Manifest(Stored):
    """What is read of manifest.json."""

    format: Literal["nmt-attention-maps"]
    version: Literal[1]
    made_from: _Origin
    sites: dict[str, _Site]
    sentences: list[_Entry]


class _NotMaps(Exception):  # noqa: N818
    """An archive holds something other than the maps that its manifest describes."""


# What numpy and zipfile raise for a damaged .npz file.
_DAMAGED = (
    _NotMaps,
    tokenize.TokenError,  # numpy reads a header as Python
    SyntaxError,
    OverflowError,
    OSError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    MemoryError,
    NotImplementedError,  # an unusual compression
    RuntimeError,  # encrypted
    zipfile.BadZipFile,
    zlib.error,
)


class MapFolder:
    """A complete folder of maps. Raises Mistake if it has no manifest or a damaged one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        file = path / MANIFEST
        if not file.is_file():
            raise Mistake(
                f"{path} is not a folder of attention maps, because it has no {MANIFEST}; use the folder (out=) that "
                "nmt.export_attention wrote."
            )
        self.manifest = read_stored(file, _Manifest, _LARGEST_MANIFEST, remedy="Export the maps again.")

    @property
    def lines(self) -> list[int]:
        """The input lines that have maps, from 1, in order."""
        return sorted({entry["line"] for entry in self.manifest["sentences"]})

    @property
    def origin(self) -> str:
        """The run that the maps come from, or 'step 400' for a probe of a run that trains."""
        made_from = self.manifest["made_from"]
        step = made_from.get("step")
        return f"step {step}" if step is not None else str(made_from.get("run_dir", self.path))

    def check_lines(self, lines: Iterable[int]) -> None:
        """Raises Mistake if a line has no maps."""
        if missing := sorted(set(lines) - set(self.lines)):
            raise Mistake(
                f"{self.path} has no maps for line {missing[0]}; it has maps for {len(self.lines)} lines from "
                f"{self.lines[0] if self.lines else 0} to {self.lines[-1] if self.lines else 0}: choose one of these."
            )

    def number(self, lines: Iterable[int]) -> int:
        """The number of sentences on the given lines; a line counts once for each of its translations."""
        wanted = set(lines)
        return sum(entry["line"] in wanted for entry in self.manifest["sentences"])

    def sentences(self, lines: Iterable[int] | None = None) -> Iterator[SentenceMaps]:
        """The maps of all sentences, or of those on the given lines, sorted by line and rank and read one at a time.

        Raises Mistake if a line has no maps, and if a file is missing or damaged.
        """
        wanted = set(self.lines if lines is None else lines)
        self.check_lines(wanted)
        entries_of = dict[str, list[Mapping[str, Any]]]()
        for entry in self.manifest["sentences"]:
            entries_of.setdefault(entry["file"], []).append(entry)
        checked = set[str]()
        with closing(_Archives()) as archives:
            for entry in self.manifest["sentences"]:
                if entry["line"] in wanted:
                    if entry["file"] not in checked:
                        self._check(entry["file"], entries_of[entry["file"]])
                        checked.add(entry["file"])
                    yield self._read(entry, archives)

    def _check(self, name: str, entries: Sequence[Mapping[str, Any]]) -> None:
        """Raises Mistake unless a file of maps is the one that was written."""
        # The manifest may come from an untrusted source: a name in it must not lead out of the folder.
        if not _FILE.fullmatch(name):
            raise Mistake(f"{self.path / MANIFEST} names '{name}', which is not a file of maps: export the maps again.")
        most_bytes = sum(array.most_bytes for entry in entries for array in self._known_arrays(entry).values())
        path = self.path / name
        # Before the digest, because a file may consist of holes. Incompressible arrays need half of this.
        if path.is_file() and path.stat().st_size > most_bytes:
            raise Mistake(f"{path} is damaged: export the maps again.")
        if not path.is_file() or {file_digest(path)} != {entry["sha256"] for entry in entries}:
            raise Mistake(f"{path} is missing or differs from its manifest: export the maps again.")

    def _known_arrays(self, entry: Mapping[str, Any]) -> dict[str, "_Known"]:
        sizes = {site: (item["layers"], item["heads"]) for site, item in self.manifest["sites"].items()}
        return _known_arrays(sizes, _labels(entry))

    def _read(self, entry: Mapping[str, Any], archives: "_Archives") -> SentenceMaps:
        source_pieces, target_pieces = entry["source_pieces"], entry["target_pieces"]
        earlier = _earlier(entry)
        labels = _labels(entry)
        path = self.path / entry["file"]
        try:
            stem = file_stem(entry["line"], entry["rank"])
            arrays = _read_arrays(path, archives.opened(path), stem, self._known_arrays(entry))
        except Mistake:  # a ValueError too
            raise
        except _DAMAGED as error:
            raise Mistake(f"{path} is damaged: export the maps again.") from error
        maps = [_map(site, arrays, labels[site]) for site in arrays if "." not in site]
        return SentenceMaps(
            line=entry["line"],
            rank=entry["rank"],
            source_pieces=source_pieces,
            target_pieces=target_pieces,
            maps=maps,
            score=entry["score"],
            earlier=earlier,
        )


class _Archives:
    """The archives read last, which stay open: reading the table of one takes longer than reading a sentence."""

    def __init__(self) -> None:
        self._open: dict[Path, tuple[zipfile.ZipFile, dict[str, list[zipfile.ZipInfo]]]] = {}

    def opened(self, path: Path) -> tuple[zipfile.ZipFile, dict[str, list[zipfile.ZipInfo]]]:
        """An archive, and its members by folder."""
        if path not in self._open:
            if len(self._open) >= _MOST_OPEN:
                self._open.pop(next(iter(self._open)))[0].close()
            archive, members = zipfile.ZipFile(path), dict[str, list[zipfile.ZipInfo]]()
            for member in archive.infolist():
                members.setdefault(member.filename.rpartition("/")[0], []).append(member)
            self._open[path] = archive, members
        self._open[path] = self._open.pop(path)  # the last one in the order of the dict
        return self._open[path]

    def close(self) -> None:
        for archive, _ in self._open.values():
            archive.close()


def _earlier(entry: Mapping[str, Any]) -> list[EarlierPair]:
    return [EarlierPair(*pair) for pair in entry.get("earlier", [])]


def _labels(entry: Mapping[str, Any]) -> dict[str, Labels]:
    return site_labels(entry["source_pieces"], entry["target_pieces"], _earlier(entry))


class _Known(NamedTuple):
    """An array that a file of maps may hold."""

    shape: tuple[int, ...]
    kind: str
    """numpy's letter: f for floating-point numbers, b for truth values."""

    @property
    def most_bytes(self) -> int:
        """The size of the largest such array with its header."""
        return 8 * math.prod(self.shape) + _LARGEST_HEADER


def _known_arrays(sizes: Mapping[str, tuple[int, int]], labels_of_sites: Mapping[str, Labels]) -> dict[str, _Known]:
    """All arrays that a file may hold, by name. `sizes` are the numbers of layers and heads of each site."""
    known: dict[str, _Known] = {}
    for site in sizes.keys() & labels_of_sites.keys():
        labels = labels_of_sites[site]
        rows_and_columns = len(labels.inputs), len(labels.columns)
        shape = (*sizes[site], *rows_and_columns)
        known[site] = known[f"{site}.{_ATTRIBUTION}"] = known[f"{site}.prior"] = _Known(shape, "f")
        known[f"{site}.center"] = _Known(shape[:-1], "f")
        known[f"{site}.allowed"] = _Known(shape, "b")
        known[f"{site}.{_MASK}"] = _Known(rows_and_columns, "b")
    return known


def _needed(name: str) -> set[str]:
    """The arrays that must accompany this one.

    They are the site's weights and, for a part of a local window, its center and mask.
    """
    site, _, part = name.partition(".")
    return {site, f"{site}.center", f"{site}.allowed"} if part in _LOCAL else {site}


def _read_arrays(
    path: Path,
    opened: tuple[zipfile.ZipFile, Mapping[str, list[zipfile.ZipInfo]]],
    stem: str,
    known: Mapping[str, _Known],
) -> dict[str, Any]:
    """The arrays of a sentence, from a file.

    Raises Mistake if they are too large, and _NotMaps if one is not among the `known`.

    All sizes are checked before anything is unpacked, because a few bytes may claim, or unpack to, any number.
    """
    archive, members_of = opened
    listed = members_of.get(stem, [])
    members = {member.filename.removeprefix(f"{stem}/").removesuffix(".npy"): member for member in listed}
    complete = all(_needed(name) <= members.keys() for name in members)
    if not members or len(members) < len(listed) or not members.keys() <= known.keys() or not complete:
        raise _NotMaps
    for name, member in members.items():
        # zipfile does not bound the memory that the other ways of compression need.
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _NotMaps
        with archive.open(member) as stream:
            start = io.BytesIO(stream.read(_LARGEST_HEADER))
        if np.lib.format.read_magic(start) != (1, 0):
            raise _NotMaps
        shape, _, kind = np.lib.format.read_array_header_1_0(start)
        expected = math.prod(shape) * kind.itemsize + start.tell()
        if (shape, kind.kind) != known[name] or kind.itemsize > 8 or member.file_size != expected:
            raise _NotMaps
    _check_size(f"{path} holds arrays", sum(member.file_size for member in members.values()))
    arrays: dict[str, Any] = {}
    for name, member in members.items():
        with archive.open(member) as stream:
            # Pickled objects could run code when they are loaded.
            arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
    return arrays


def _check_size(what: str, size: int) -> None:
    """Raises Mistake if the arrays of a sentence need too much memory."""
    if size > LARGEST_ARRAYS:
        raise Mistake(
            f"{what} of more than {LARGEST_ARRAYS / 2**30:g} GiB, which is too much to read: export the maps again "
            "with a lower max_tokens."
        )


def _map(site: str, arrays: Mapping[str, Any], labels: Labels) -> AttentionMap:
    local: list[Any] = [arrays.get(f"{site}.{part}") for part in _LOCAL]
    return AttentionMap(
        site=site,
        weights=arrays[site],
        inputs=labels.inputs,
        outputs=labels.outputs,
        columns=labels.columns,
        local=None if local[0] is None else LocalWindow(*local),
        attribution=arrays.get(f"{site}.{_ATTRIBUTION}"),
        mask=arrays.get(f"{site}.{_MASK}"),
    )


def map_folders(path: Path) -> list[Path]:
    """The folder itself, or the folders of maps in it if it has no manifest, sorted by name."""
    inside = [] if (path / MANIFEST).is_file() else sorted(file.parent for file in path.glob(f"*/{MANIFEST}"))
    return inside or [path]


def write_maps(
    folder: Path, sentences: Iterable[SentenceMaps], sites: Mapping[str, Any], made_from: Mapping[str, Any]
) -> MapFolder:
    """Writes maps as they arrive, in any order, and the manifest last: a folder with a manifest is complete.

    `sites` describes each site, `made_from` the run and its input; both are copied into the manifest. Maps already in
    the folder are replaced once all new ones are written. Raises Mistake if the old manifest is damaged or
    belongs to another program, and if another process is writing to the folder.
    """
    head = {
        "format": FORMAT,
        "version": VERSION,
        "convention": CONVENTION,
        "made_from": made_from,
        "sites": sites,
    }
    with locked(folder):
        if (folder / MANIFEST).exists():
            MapFolder(folder)  # raises if the folder is not ours to replace
        remove_parts(folder)
        with tempfile.TemporaryDirectory(prefix=f".{_FOLDER}.", suffix=PART, dir=folder) as new:
            entries = _write_files(Path(new), iter(sentences))
            entries.sort(key=lambda entry: (entry["line"], entry["rank"]))
            maps = subfolder(folder, _FOLDER)
            # Without a manifest, the folder counts as incomplete until the new files are in place.
            (folder / MANIFEST).unlink(missing_ok=True)
            for old in maps.glob("*.npz"):
                if _FILE.fullmatch(f"{_FOLDER}/{old.name}"):  # other programs' files stay
                    old.unlink()
            for file in Path(new).iterdir():
                file.rename(maps / file.name)
        # One line per sentence, to keep the manifest short and readable.
        rows = ",\n    ".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
        text = json.dumps(head, indent=2, ensure_ascii=False).removesuffix("\n}")
        write_text(folder / MANIFEST, f'{text},\n  "sentences": [\n    {rows}\n  ]\n}}\n')
    return MapFolder(folder)


def file_stem(line: int, rank: int) -> str:
    """The name of a sentence's arrays and files: its line, and its rank unless that is 1."""
    return f"{line:05}" if rank == 1 else f"{line:05}-{rank}"


def _write_files(folder: Path, sentences: Iterator[SentenceMaps]) -> list[dict[str, Any]]:
    """Writes the arrays of all sentences into files in a folder, and returns the entries for the manifest."""
    entries = []
    for number, first in enumerate(sentences, start=1):
        name = f"{number:05}.npz"
        with (
            atomic_write(folder / name) as part,  # on the disk before the manifest
            zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            in_file = [_write(archive, item) for item in chain([first], islice(sentences, _IN_FILE - 1))]
        digest = file_digest(folder / name)
        entries += [{**entry, "file": f"{_FOLDER}/{name}", "sha256": digest} for entry in in_file]
    return entries


def _write(archive: zipfile.ZipFile, sentence: SentenceMaps) -> dict[str, Any]:
    """Writes the arrays of a sentence into an archive and returns its entry for the manifest, without the file."""
    arrays: dict[str, Any] = {}
    for item in sentence.maps:
        arrays[item.site] = item.weights
        if item.attribution is not None:
            arrays[f"{item.site}.{_ATTRIBUTION}"] = item.attribution
        if item.mask is not None:
            arrays[f"{item.site}.{_MASK}"] = item.mask
        for part in _LOCAL if item.local else ():
            if (array := getattr(item.local, part)) is not None:
                arrays[f"{item.site}.{part}"] = array
    _check_size(f"The maps of line {sentence.line} are arrays", sum(array.nbytes for array in arrays.values()))
    stem = file_stem(sentence.line, sentence.rank)
    for name, array in arrays.items():
        with archive.open(f"{stem}/{name}.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array(file, np.asanyarray(array), version=(1, 0), allow_pickle=False)
    earlier = {"earlier": sentence.earlier} if sentence.earlier else {}
    return {
        "line": sentence.line,
        "rank": sentence.rank,
        "score": sentence.score,
        "source_pieces": sentence.source_pieces,
        "target_pieces": sentence.target_pieces,
        "source_words": word_ids(sentence.source_pieces),
        "target_words": word_ids(sentence.target_pieces),
        **earlier,
    }
