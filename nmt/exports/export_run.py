"""Exports a run to another format: write, compare with the run, and keep the folder only if both are equal."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nmt.data.cache import file_digest
from nmt.data.corpus import Pairs, read_aligned, read_parallel
from nmt.errors import FULL_DISK
from nmt.exports.formats import open_exported, write_format
from nmt.exports.parity import SENTENCES, Parity, compare
from nmt.files import atomic_folder, check_writable, existing_file, write_json
from nmt.runs.load import Trained
from nmt.text import detokenizer

RECORD = "export.json"
"""Says what a folder was exported from, and how equal it is."""


def first_pairs(trained: Trained, source: str | None = None, reference: Sequence[str] | None = None) -> Pairs:
    """The pairs to compare an exported model on: the first of the user's files, or of the run's validation corpus.

    Raises FileNotFoundError for a missing file.
    """
    if source is not None and reference:
        sources, references = read_parallel(existing_file("source", source), existing_file("reference", reference[0]))
    else:
        data, direction = trained.settings.data, trained.direction
        try:
            sources, references = read_aligned(data.valid, direction)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"The exported model is compared with the run on its validation corpus. {error} Or compare them on "
                "sentence pairs of your own: source=FILE reference=FILE."
            ) from error
        if data.becomes_plain(data.valid):
            sources, references = (
                [*map(detokenizer(language), lines[:SENTENCES])]
                for language, lines in ((direction.source, sources), (direction.target, references))
            )
    return Pairs(sources[:SENTENCES], references[:SENTENCES])


def export_run(
    trained: Trained, format: str, out: Path, quantization: str, pairs: Pairs, *, overwrite: bool = False
) -> Parity:
    """Writes the run to the folder `out`, compares both on sentence pairs, and returns the result.

    Raises FileExistsError if the folder exists, unless it is an older export and `overwrite` is set; ValueError for
    what the format cannot hold, and CheckFailed if the two differ. Nothing is then written.
    """
    check_writable("out", out)
    if out.exists() and not (overwrite and (out / RECORD).is_file()):
        remedy = "overwrite=true to replace it" if (out / RECORD).is_file() else "it is no export, so it is kept"
        raise FileExistsError(f"out is {out}, which exists: choose another folder, or {remedy}.")
    with _named(out), atomic_folder(out) as part:
        write_format(trained, format, part, quantization)
        exported = open_exported(trained, format, part, quantization)
        parity = compare(trained, exported, *pairs)
        parity.check(quantization)
        write_json(part / RECORD, {**origin(trained), "quantization": quantization, "parity": parity._asdict()})
        if out.exists():
            shutil.rmtree(out)
    return parity


@contextmanager
def _named(out: Path) -> Iterator[None]:
    """Names the folder in the error of a full disk: most libraries that write an export do not say what they wrote."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL_DISK:
            error.filename = str(out)
        raise


def origin(trained: Trained) -> dict[str, Any]:
    """What an export depends on."""
    return {"weights_sha256": file_digest(trained.run.weights), "nmt-attention": version("nmt-attention")}
