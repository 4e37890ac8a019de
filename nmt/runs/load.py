"""Loads a finished run from its directory."""

import errno
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError

from nmt.config.direction import Direction
from nmt.config.nodes import Node, make
from nmt.config.schema import RunSettings
from nmt.data.documents import ContextWindow, documents_of_file
from nmt.decoding.binding import Algorithm
from nmt.errors import Mistake
from nmt.files import sync, temporary_folder
from nmt.models import Seq2Seq, VocabularySizes
from nmt.models.base import Attending
from nmt.models.embeddings import with_plain_weights
from nmt.models.no_initial_weights import NoInitialWeights
from nmt.paths import existing_file
from nmt.runs.directory import RunDirectory
from nmt.runs.precision import check_precision, with_precision
from nmt.runs.reading import StoredRun, context_window, read_run
from nmt.runs.weights import enough_memory, header_matches, load_weights
from nmt.text import TokenizerPair
from nmt.text.dictionary import NO_DICTIONARY, Dictionary

DEVICES = ("auto", "cpu", "cuda")


class LoadedRun(NamedTuple):
    """A run in memory: its settings, tokenizers, dictionary and model, which is on `device` and in `precision`."""

    directory: RunDirectory
    settings: RunSettings
    tokenizers: TokenizerPair
    model: Seq2Seq
    device: torch.device
    precision: str = "float32"
    dictionary: Dictionary = NO_DICTIONARY

    @property
    def direction(self) -> Direction:
        return self.settings.direction

    @property
    def context_window(self) -> ContextWindow:
        """The earlier sentences that the model reads."""
        return context_window(self.settings)

    @property
    def stored(self) -> StoredRun:
        """The run without its model."""
        return StoredRun(self.directory, self.settings, self.tokenizers, self.dictionary)

    def source_text(self, line: str) -> str:
        """What the model reads of a source line; see StoredRun.source_text."""
        return self.stored.source_text(line)

    def require_context(self, key: str) -> None:
        """Raises Mistake as StoredRun.require_context does."""
        self.stored.require_context(key)


def build_model(model: Node, tokenizers: TokenizerPair, context: Node | None = None) -> Seq2Seq:
    """A model with fresh weights, for vocabularies of the tokenizers' sizes; `context` makes it a document model."""
    sizes = VocabularySizes(tokenizers.source.size, tokenizers.target.size, tokenizers.joint)
    return composed_model(model, sizes, context)


def composed_model(model: Node, sizes: VocabularySizes, context: Node | None) -> Seq2Seq:
    """The model that a node describes; `context` makes it a document model."""
    sentence: Seq2Seq = make(model, Seq2Seq)(vocabulary=sizes)
    return sentence if context is None else make(context, Seq2Seq)(sentence)


def documents_to_read(run: LoadedRun, documents: str | None, lines: int) -> list[int] | None:
    """The document number of each line, read from the file `documents`; None if there is no file.

    `lines` is the number of lines that the file must have. Raises Mistake for a missing file, for
    a run without context and for a file that does not fit the lines.
    """
    if documents is None:
        return None
    run.require_context("documents")
    return documents_of_file(existing_file("documents", documents), lines)


def load_run(path: Path, device: str, precision: str = "float32") -> LoadedRun:
    """The finished run in a folder, or the included model with that name (see nmt.runs.included).

    Raises Mistake if the folder holds no finished run, if its files do not belong together, or if the device or the
    precision cannot be used, DamagedWeights if a weight is NaN or infinite, and CheckFailed if the memory is full.
    """
    torch_device = choose_device(device)
    check_precision(precision, torch_device)
    directory, settings, tokenizers, dictionary = read_run(path)
    path = directory.path
    try:
        make(settings.search, Algorithm)
        with torch.device("meta"), NoInitialWeights():
            trial = build_model(settings.model, tokenizers, settings.context.model)
    except Mistake as error:
        raise Mistake(
            f"{path / 'config.yaml'} does not describe a model and a search that this version of nmt can build "
            f"({str(error).rstrip('.')}): train the run again."
        ) from error
    damaged = Mistake(
        f"{directory.weights} does not hold the weights of the model that {path / 'config.yaml'} describes, with "
        f"vocabularies of {tokenizers.source.size} and {tokenizers.target.size} pieces: copy the run's own files "
        "back, or train the run again."
    )
    # Before anything is allocated: a model of any size can be described in one line.
    if not header_matches(trial, directory.weights):
        raise damaged
    with enough_memory(directory.weights), NoInitialWeights():
        model = build_model(settings.model, tokenizers, settings.context.model)
    try:
        load_weights(model, directory.weights, settings.trainer.precision)
    except (RuntimeError, SafetensorError) as error:
        raise damaged from error
    with_plain_weights(model)
    model = with_precision(model.eval(), precision, torch_device)
    return LoadedRun(directory, settings, tokenizers, model, torch_device, precision, dictionary)


def save_weights(model: Attending, path: Path) -> None:
    """Writes a model's weights atomically; equal weights give equal bytes. Raises OSError if the disk is full."""
    # safetensors writes to a temporary file beside the one it is given, and leaves it behind if it is killed. In a
    # folder of its own, the next writer finds and deletes it.
    with system_errors(path), temporary_folder(path.parent, path.name) as folder:
        part = folder / path.name
        safetensors.torch.save_model(model, str(part))
        _sort_metadata(part)
        part.chmod(folder.stat().st_mode & 0o666)  # safetensors makes files that only the owner can read
        sync(part)  # so that a power cut cannot leave an empty file under the final name
        part.replace(path)


def _sort_metadata(path: Path) -> None:
    """Sorts the names in the metadata of a safetensors file, whose order is random: it names the shared tensors."""
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        if "__metadata__" not in header:
            return
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        if len(text) > length:
            raise ValueError(f"The header of {path} does not fit into its own place once it is sorted.")
        file.seek(8)
        file.write(text.ljust(length))  # the tensors stay where they are


@contextmanager
def system_errors(path: Path) -> Iterator[None]:
    """Turns an error that safetensors raises while writing a file into the underlying OSError."""
    try:
        yield
    except SafetensorError as error:
        # Only the text of this error contains the system's error number.
        number = re.search(r"os error (\d+)", str(error))
        code = int(number[1]) if number else errno.EIO
        raise OSError(code, os.strerror(code), str(path)) from error


def load_runs(paths: Sequence[str | Path], device: str, precision: str = "float32") -> list[LoadedRun]:
    """The finished runs in these folders, which translate as an ensemble if there are several.

    Raises whatever `load_run` raises, and Mistake if there are no folders, or if the runs' directions, vocabularies,
    dictionaries or contexts differ.
    """
    runs = [load_run(Path(path), device, precision) for path in paths]
    if not runs:
        raise Mistake("run_dir is an empty list; name at least one folder.")
    first = runs[0]
    for other in runs[1:]:
        if _must_agree(other) != _must_agree(first):
            if other.direction != first.direction:
                differ = f"they translate {other.direction} and {first.direction}; use runs with the same direction."
            elif other.context_window != first.context_window:
                differ = "they read the earlier sentences of a document differently; use runs with the same context."
            elif other.dictionary.translations != first.dictionary.translations:
                differ = "their dictionaries differ; use the same dictionary.tsv in both folders, or in neither."
            else:
                differ = "their tokenizers differ; train them on the same corpus with the same tokenizer settings."
            raise Mistake(f"{other.directory.path} and {first.directory.path} cannot translate together: {differ}")
    return runs


def choose_device(name: str) -> torch.device:
    """The device with that name; 'auto' is the GPU if there is one. Raises Mistake if it is not available."""
    if name not in DEVICES:
        raise Mistake(f"device is '{name}'; it must be one of {', '.join(DEVICES)}.")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise Mistake("device=cuda needs a GPU, but torch finds none; use device=cpu.")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def _must_agree(run: LoadedRun) -> tuple[object, ...]:
    """What must be equal in all runs of an ensemble."""
    tokenizers = [(tokenizer.model, tokenizer.tone_marks) for tokenizer in run.tokenizers]
    return run.direction, run.context_window, run.dictionary.translations, *tokenizers
