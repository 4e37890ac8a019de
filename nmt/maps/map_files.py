"""Attention maps on disk: manifest.json and one .npz for each sentence; see docs/reference/map_format.md."""

import json
import re
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from nmt.config.fields import Positive
from nmt.config.stored import Count, Number, Stored, read_stored
from nmt.data.cache import file_digest
from nmt.errors import Mistake
from nmt.files import PART, remove_parts, subfolder, write_text
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
_FILE = re.compile(rf"{_FOLDER}/\d+(-\d+)?\.npz", re.ASCII)
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


# What numpy and zipfile raise for a damaged .npz file.
_DAMAGED = (
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
        try:
            self.manifest = read_stored(file, _Manifest, _LARGEST_MANIFEST)
        except Mistake as error:
            raise Mistake(
                f"{file} is damaged or not a manifest of attention maps, of format '{FORMAT}', version {VERSION}: "
                f"export the maps again. ({error})"
            ) from error

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
        for entry in self.manifest["sentences"]:
            if entry["line"] in wanted:
                yield self._read(entry)

    def _read(self, entry: Mapping[str, Any]) -> SentenceMaps:
        # The manifest may come from an untrusted source: a name in it must not lead out of the folder.
        if not _FILE.fullmatch(str(entry["file"])):
            raise Mistake(
                f"{self.path / MANIFEST} names '{entry['file']}', which is not a file of maps: export the maps again."
            )
        path = self.path / entry["file"]
        if not path.is_file() or file_digest(path) != entry["sha256"]:
            raise Mistake(f"{path} is missing or differs from its manifest: export the maps again.")
        source_pieces, target_pieces = entry["source_pieces"], entry["target_pieces"]
        earlier = [EarlierPair(*pair) for pair in entry.get("earlier", [])]
        labels = site_labels(source_pieces, target_pieces, earlier)
        try:
            # Pickled objects could run code when they are loaded.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
        except _DAMAGED as error:
            raise Mistake(f"{path} is damaged: export the maps again.") from error
        # A member that is not in numpy's format is read as bytes.
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise Mistake(f"{path} is damaged: export the maps again.")
        try:
            maps = [_map(site, arrays, labels) for site in arrays if "." not in site]
            if not maps:
                raise Mistake("There are no weights.")
        except Mistake as error:  # anything else is a bug
            raise Mistake(f"{path} is damaged: export the maps again.") from error
        return SentenceMaps(
            line=entry["line"],
            rank=entry["rank"],
            source_pieces=source_pieces,
            target_pieces=target_pieces,
            maps=maps,
            score=entry["score"],
            earlier=earlier,
        )


def _map(site: str, arrays: Mapping[str, Any], labels_of_sites: Mapping[str, Labels]) -> AttentionMap:
    if site not in labels_of_sites:
        raise Mistake(f"'{site}' is not a site of attention.")
    weights, labels = arrays[site], labels_of_sites[site]
    shapes = {"center": weights.shape[:-1], "allowed": weights.shape, "prior": weights.shape}
    if weights.ndim != 4 or weights.shape[2:] != (len(labels.inputs), len(labels.columns)) or weights.dtype.kind != "f":
        raise Mistake(f"Weights of shape {weights.shape} do not fit the pieces of the manifest.")
    parts: list[Any] = [arrays.get(f"{site}.{part}") for part in (*_LOCAL, _ATTRIBUTION, _MASK)]
    *local, attribution, mask = parts
    if attribution is not None and (attribution.shape != weights.shape or attribution.dtype.kind != "f"):
        raise Mistake(f"Attributions of shape {attribution.shape} do not match weights of shape {weights.shape}.")
    if mask is not None and (mask.shape != weights.shape[2:] or mask.dtype != bool):
        raise Mistake(f"A mask of shape {mask.shape} does not match weights of shape {weights.shape}.")
    given = {part: array for part, array in zip(_LOCAL, local, strict=True) if array is not None}
    if given and not {"center", "allowed"} <= given.keys():
        raise Mistake("The local window is incomplete.")
    for part, array in given.items():
        if array.shape != shapes[part] or array.dtype.kind != ("b" if part == "allowed" else "f"):
            raise Mistake(f"{part} has shape {array.shape}, but the weights have shape {weights.shape}.")
    return AttentionMap(
        site=site,
        weights=weights,
        inputs=labels.inputs,
        outputs=labels.outputs,
        columns=labels.columns,
        local=None if local[0] is None else LocalWindow(*local),
        attribution=attribution,
        mask=mask,
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
    belongs to another program.
    """
    if (folder / MANIFEST).exists():
        MapFolder(folder)  # raises if the folder is not ours to replace
    folder.mkdir(parents=True, exist_ok=True)
    remove_parts(folder)
    with tempfile.TemporaryDirectory(prefix=f".{_FOLDER}.", suffix=PART, dir=folder) as new:
        entries = [_write(Path(new), item) for item in sentences]
        entries.sort(key=lambda entry: (entry["line"], entry["rank"]))
        maps = subfolder(folder, _FOLDER)
        # Without a manifest, the folder counts as incomplete until the new files are in place.
        (folder / MANIFEST).unlink(missing_ok=True)
        for old in maps.glob("*.npz"):
            if _FILE.fullmatch(f"{_FOLDER}/{old.name}"):  # other programs' files stay
                old.unlink()
        for file in Path(new).iterdir():
            file.rename(maps / file.name)
    head = {
        "format": FORMAT,
        "version": VERSION,
        "convention": CONVENTION,
        "made_from": made_from,
        "sites": sites,
    }
    # One line per sentence, to keep the manifest short and readable.
    rows = ",\n    ".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    text = json.dumps(head, indent=2, ensure_ascii=False).removesuffix("\n}")
    write_text(folder / MANIFEST, f'{text},\n  "sentences": [\n    {rows}\n  ]\n}}\n')
    return MapFolder(folder)


def file_stem(line: int, rank: int) -> str:
    """The name of a sentence's files: its line, and its rank unless that is 1."""
    return f"{line:05}" if rank == 1 else f"{line:05}-{rank}"


def _write(folder: Path, sentence: SentenceMaps) -> dict[str, Any]:
    """Writes the arrays of a sentence into a folder and returns its entry for the manifest."""
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
    name = f"{file_stem(sentence.line, sentence.rank)}.npz"
    with open(folder / name, "wb") as file:
        np.savez_compressed(file, **arrays)
    earlier = {"earlier": sentence.earlier} if sentence.earlier else {}
    return {
        "line": sentence.line,
        "rank": sentence.rank,
        "score": sentence.score,
        "file": f"{_FOLDER}/{name}",
        "sha256": file_digest(folder / name),
        "source_pieces": sentence.source_pieces,
        "target_pieces": sentence.target_pieces,
        "source_words": word_ids(sentence.source_pieces),
        "target_words": word_ids(sentence.target_pieces),
        **earlier,
    }
