"""Splits a corpus into training, validation and test pairs without overlap.

The text is read from disk more than once; only the hashes of its lines, 16 bytes per pair, are kept in memory.
"""

import hashlib
from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
from jaxtyping import Int8, UInt64

from nmt.config.direction import Direction
from nmt.data.corpus import alignment_file, corpus_files, iter_pairs
from nmt.data.documents import check_documents, read_documents
from nmt.errors import Mistake
from nmt.files import atomic_folder
from nmt.text import normalize
from nmt.text.compressed import uncompressed
from nmt.text.lines import iter_lines
from nmt.text.normalize import without_punctuation

PARTS = ("train", "valid", "test")
_LEFT_OUT = len(PARTS)


def split_corpus(
    prefix: str, direction: Direction, folder: Path, *, valid: int | float, test: int | float, seed: int
) -> dict[str, int]:
    """Writes the pairs of a corpus to train, valid and test files in `folder`, in their original order; counts them.

    valid, test: a number of pairs, or a share of the corpus, which is at least one pair. If the corpus has a
    PREFIX.doc, they count documents instead. Held-out documents are kept whole; training documents lose the lines that
    also occur in a held-out one. Lines are written unchanged, with LF as the line end. PREFIX.doc and a word alignment
    file are split in the same way. 'left out' counts the pairs that are duplicates of held-out ones, or that share a
    side with a held-out document. The folder appears only when it is complete.

    Raises Mistake if the folder exists already, whatever `iter_pairs` and `check_documents` raise, and
    if an alignment file has a different number of lines or the corpus cannot provide enough held-out pairs.
    """
    if folder.exists():
        raise Mistake(f"{folder} exists; choose a new folder with split.out=, or delete it.")
    files = [(path, uncompressed(path).suffix) for path in corpus_files(prefix, direction)]
    check_documents(prefix, direction)
    documents = read_documents(prefix, direction)
    hashes = _side_hashes(prefix, direction, seed, documents=documents)
    sizes = [max(round(size * len(hashes)), 1) if isinstance(size, float) else size for size in (valid, test)]
    parts = assign_parts(hashes, sizes[0], sizes[1], "pairs" if documents is None else "documents")
    if documents is not None:
        parts = parts[documents]
        _leave_out_held_out_lines(parts, _side_hashes(prefix, direction, seed, documents=None))
        files.append((uncompressed(files[0][0]).with_suffix(".doc"), ".doc"))
    counts = np.bincount(parts, minlength=_LEFT_OUT + 1).tolist()
    if not counts[0]:
        raise Mistake(f"No pair of {prefix} is left for training; lower split.valid and split.test.")
    if alignment := alignment_file(prefix, direction):
        if (lines := sum(1 for _ in iter_lines(alignment))) != len(parts):
            raise Mistake(f"{alignment} has {lines} lines, but the corpus has {len(parts)}; fix or remove the file.")
        files.append((alignment, f".{'.'.join(alignment.name.split('.')[-2:])}"))
    with atomic_folder(folder) as temporary:
        for path, ending in files:
            _write_parts(path, parts, [temporary / f"{name}{ending}" for name in PARTS])
    return dict(zip((*PARTS, "left out"), counts, strict=True))


def assign_parts(
    hashes: UInt64[np.ndarray, "pairs 2"], valid: int, test: int, unit: str = "pairs"
) -> Int8[np.ndarray, " pairs"]:
    """The part of each pair: an index into PARTS, or len(PARTS) for a duplicate of a held-out pair.

    A held-out pair shares neither its source nor its target with any other pair, except duplicates of itself. The hash
    of a pair decides whether it is held out, so most of the choice stays the same when a corpus grows. Raises
    Mistake if there are too few such pairs, which it calls by the `unit` of a row.
    """
    source, target = hashes.T
    # Not symmetric, so that a pair and the same pair with its sides swapped differ. The product wraps around at 2^64.
    pair = source * np.uint64(0x9E3779B97F4A7C15) + target
    _, first = np.unique(pair, return_index=True)
    alone = np.ones(len(first), dtype=bool)
    for side in (source[first], target[first]):
        _, inverse, count = np.unique(side, return_inverse=True, return_counts=True)
        alone &= (count[inverse] == 1) & (side != 0)
    candidates = first[alone]
    if valid + test > len(candidates):
        raise Mistake(
            f"split.valid and split.test ask for {valid + test:,} {unit}, but only {len(candidates):,} of "
            f"{len(hashes):,} {unit} share no line with another one; lower them."
        )
    # The sum makes both directions choose the same pairs.
    chosen = candidates[np.argsort(source[candidates] + target[candidates], kind="stable")][: valid + test]
    parts = np.zeros(len(hashes), dtype=np.int8)
    # This includes the chosen pairs themselves, so it comes before they get their parts.
    parts[np.isin(pair, pair[chosen])] = _LEFT_OUT
    parts[chosen[:test]] = PARTS.index("test")
    parts[chosen[test:]] = PARTS.index("valid")
    return parts


def _leave_out_held_out_lines(parts: Int8[np.ndarray, " pairs"], hashes: UInt64[np.ndarray, "pairs 2"]) -> None:
    """Leaves out the training pairs that share a side with a pair of a held-out document; empty sides do not count."""
    training = parts == PARTS.index("train")
    held_out = ~training & (parts != _LEFT_OUT)
    for side in hashes.T:
        parts[training & (side != 0) & np.isin(side, side[held_out])] = _LEFT_OUT


def _side_hashes(
    prefix: str, direction: Direction, seed: int, *, documents: Sequence[int] | None
) -> UInt64[np.ndarray, "pairs 2"]:
    """Hashes, keyed by the seed, of the source and target of each pair or document; 0 for empty text.

    Texts that differ only in case, punctuation or spaces have the same hash.
    """
    key, hashes = str(seed).encode(), array("Q")
    numbers = count() if documents is None else documents
    # Not strict, because count() never ends.
    for _, group in groupby(zip(iter_pairs(prefix, direction), numbers, strict=False), key=itemgetter(1)):
        for lines in zip(*(map(normalize, pair) for pair, _ in group), strict=True):
            text = without_punctuation("\n".join(lines).strip("\n"))
            digest = hashlib.blake2b(text.encode(), digest_size=8, key=key).digest()
            hashes.append(int.from_bytes(digest, "big") if text else 0)
    return np.frombuffer(hashes, dtype=np.uint64).reshape(-1, 2)


def _write_parts(path: Path, parts: Int8[np.ndarray, " pairs"], outputs: Sequence[Path]) -> None:
    """Distributes the lines of a file among the outputs; a part without lines gets no file."""
    used = set(np.unique(parts).tolist())
    with ExitStack() as stack:
        files = {
            part: stack.enter_context(output.open("w", encoding="utf-8", newline="\n"))
            for part, output in enumerate(outputs)
            if part in used
        }
        for part, line in zip(parts.tolist(), iter_lines(path), strict=True):
            if part in files:
                files[part].write(f"{line}\n")
