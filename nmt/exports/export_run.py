"""Exports a run to another format: writes the model, compares it with the run, and keeps it only if the two match."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nmt.data.corpus import Pairs, read_aligned, read_parallel
from nmt.errors import FULL_DISK, MissingFile, Mistake
from nmt.exports.damage import DamagedExport, UnreadableExport
from nmt.exports.export_record import RECORD, check_files, file_digests, origin, read_record
from nmt.exports.formats import open_engine, open_exported, write_format
from nmt.exports.parity import BOUNDS, SENTENCES, Parity, compare, computes_alike
from nmt.files import atomic_folder, write_json
from nmt.paths import check_writable, existing_file
from nmt.runs.engine import Engine
from nmt.runs.included import included_name
from nmt.runs.load import LoadedRun
from nmt.runs.reading import StoredRun
from nmt.scoring.test_sets import stored_pairs
from nmt.text import detokenizer

logger = logging.getLogger(__name__)


def comparison_pairs(run: StoredRun, source: str | None = None, reference: str | None = None) -> Pairs:
    """The first pairs of the user's files or of the validation corpus, on which a run and its export are compared.

    If that corpus is gone, pairs that the run directory stores take its place. Raises MissingFile if it stores none.
    """
    if source is not None and reference is not None:
        sources, references = read_parallel(existing_file("source", source), existing_file("reference", reference))
    else:
        data, direction = run.settings.data, run.direction
        try:
            sources, references = read_aligned(data.valid, direction)
        except MissingFile as error:
            stored = stored_pairs(run)
            if stored is None:
                raise MissingFile(
                    f"The exported model is compared with the run on its validation corpus, which is missing ({error}) "
                    "and of which the run stores no sentence. Give pairs of your own: source=FILE reference=FILE."
                ) from error
            file, pairs = stored
            # Included models ship these sentences instead of their corpora, so this is no news.
            logger.log(
                logging.DEBUG if included_name(run.directory.path) else logging.WARNING,
                "The validation corpus %s is missing: the exported model is compared with the run on the sentences in "
                "%s.",
                data.valid,
                file,
            )
            return Pairs(pairs.source[:SENTENCES], pairs.target[:SENTENCES])
        if data.becomes_plain(data.valid):
            sources, references = (
                [*map(detokenizer(language), lines[:SENTENCES])]
                for language, lines in ((direction.source, sources), (direction.target, references))
            )
    return Pairs(sources[:SENTENCES], references[:SENTENCES])


def check_replaceable(out: Path, overwrite: bool) -> None:
    """Raises Mistake unless `out` contains no files, or contains only an export and `overwrite` is true."""
    check_writable("out", out)
    if out.is_symlink():
        raise Mistake(f"out is {out}, a symbolic link: name the folder itself, {out.resolve()}.")
    if Path.cwd().is_relative_to(out.resolve()):
        raise Mistake(f"out is {out}, which contains the working folder: choose another folder.")
    if out.name == "..":
        raise Mistake(f"out is {out}, which has no name of its own: write {out.resolve()}.")
    record, contents = read_record(out), _contents(out)
    if not record and any(contents):  # stops at the first one, because a folder that is no export may be of any size
        raise Mistake(f"out is {out}, which exists and is not an export: choose another folder.")
    present = set(contents)
    if present and not overwrite:
        raise Mistake(f"out is {out}, which exists: choose another folder, or overwrite=true to replace it.")
    others = sorted(present - {RECORD, *record.get("files", {})})
    if others:
        raise Mistake(
            f"out is {out}, which contains files besides the export ({', '.join(others[:3])}): move these files to "
            "another folder."
        )


def _contents(folder: Path) -> Iterator[str]:
    """Everything in a folder except folders; links are not followed."""
    for parent, folders, files in os.walk(folder):
        links = [name for name in folders if Path(parent, name).is_symlink()]
        yield from (Path(parent, name).relative_to(folder).as_posix() for name in (*links, *files))


def export_run(run: LoadedRun, format: str, out: Path, quantization: str, pairs: Pairs) -> Parity:
    """Writes the run to the folder `out`, replacing its contents, and compares the export with the run.

    Raises Mistake if the format does not support the run, and CheckFailed if the two differ. In both cases `out`
    is left unchanged.
    """
    with _named(out), atomic_folder(out, replace=True) as part:
        return write_compared(run, format, part, quantization, pairs)


def write_compared(run: LoadedRun, format: str, folder: Path, quantization: str, pairs: Pairs) -> Parity:
    """Writes the run and its record to an empty folder, and compares the two. Raises what `export_run` raises."""
    write_format(run, format, folder, quantization)
    files = file_digests(folder)
    try:
        exported = open_exported(run, format, folder, quantization)
    except DamagedExport as error:
        # These files were just written, so exporting again does not help.
        raise UnreadableExport(f"The export that was just written as {format} cannot be opened.") from error
    parity = compare(run, exported, *pairs)
    parity.check(quantization)
    record = origin(run.stored, format, quantization)
    write_json(folder / RECORD, {**record, "parity": parity._asdict(), "files": files})
    return parity


def open_kept(run: LoadedRun, engine: str, folder: Path, precision: str) -> tuple[Engine | None, str]:
    """The engine with the export in a folder and an empty reason, or None and the reason why it cannot be used."""
    record = read_record(folder)
    if not record:
        return None, "there is no export yet"
    if not origin(run.stored, engine, precision).items() <= record.items():
        return None, "the old export was made from other weights or by another version"
    try:
        check_files(folder, record)
        opened = open_engine(run, engine, folder, precision)
    except DamagedExport:
        return None, "the old export is damaged"
    # Whoever made the folder also wrote the digests in its record, so the model itself is asked too.
    if not computes_alike(run, opened, BOUNDS[precision]):
        return None, "the old export does not compute what the run computes"
    return opened, ""


@contextmanager
def _named(out: Path) -> Iterator[None]:
    """Adds the folder's name to a full-disk error, because most libraries that write exports do not name the file."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL_DISK:
            error.filename = str(out)
        raise
