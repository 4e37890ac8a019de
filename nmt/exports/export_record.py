"""The record of an export: what it was made from, and whether it may be used."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmt.config.stored import Stored, read_stored
from nmt.data.cache import file_digest
from nmt.errors import Mistake
from nmt.exports.damage import DamagedExport
from nmt.runs.directory import RunDirectory, tokenizer_hashes
from nmt.runs.reading import StoredRun

RECORD = "export.json"
"""The file that records what a folder was exported from and how closely it matches the run."""

EXPORTER = 1
"""Version of the exporter. It is increased when the export of an unchanged run changes; engines then export again."""


class _Record(Stored):
    """What is read of export.json."""

    files: dict[str, str]


def origin(run: StoredRun, format: str, quantization: str) -> dict[str, Any]:
    """What an export was made from, as its record stores it."""
    return {
        "format": format,
        "quantization": quantization,
        "weights_sha256": file_digest(run.directory.weights),
        "tokenizers": tokenizer_hashes(run.tokenizers, run.direction),
        "exporter": EXPORTER,
    }


def engine_folder(run: RunDirectory, engine: str, precision: str) -> Path:
    """The folder in a run with the model for an engine."""
    return run.exports / (engine if precision == "float32" else f"{engine}_{precision}")


def read_record(folder: Path) -> dict[str, Any]:
    """The record of what a folder was exported from; empty if the record is missing or damaged."""
    try:
        return read_stored(folder / RECORD, _Record)
    except (OSError, Mistake):
        return {}


def check_files(folder: Path, record: Mapping[str, Any]) -> None:
    """Raises DamagedExport if a file of an export is missing or has changed, or if one was added."""
    digests = file_digests(folder)
    for name in sorted(digests.keys() | record["files"].keys()):
        if digests.get(name) != record["files"].get(name):
            raise DamagedExport(f"{folder / name} is missing, has changed or was added: export the run again.")


def file_digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of an export, except its record."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: file_digest(path) for name, path in files.items() if name != RECORD}
