"""The tokenizers of a training corpus: learned once from its text, then cached by content."""

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import sentencepiece

from nmt.config.direction import Direction
from nmt.data.cache import cached_folder, content_key, file_digest
from nmt.data.corpus import corpus_files, iter_lines
from nmt.text import Tokenizer, TokenizerPair, normalize, train_tokenizer
from nmt.text.tokenizer import USUAL_SIZE

logger = logging.getLogger(__name__)

# Part of the cache key. Raise it when the same files and settings give a different model.
_FORMAT = 2
_FILE = "tokenizer.model"


def tokenizers(
    prefixes: Sequence[str],
    direction: Direction,
    *,
    kind: str,
    size: int | None,
    joint: bool,
    seed: int = 0,
    cache_dir: Path,
) -> TokenizerPair:
    """SentencePiece models for the two sides of the training corpora; see `train_tokenizer` for kind, size and seed.

    joint: one model, learned from both sides, instead of one for each side. A model is cached under `cache_dir` by the
    content of its files and its settings; both directions share it.
    Raises the errors of `corpus_files`, `iter_lines` and `train_tokenizer`.
    """
    train = partial(_tokenizer, kind=kind, size=size, seed=seed, cache_dir=cache_dir)
    source, target = zip(*(corpus_files(prefix, direction) for prefix in prefixes), strict=True)
    if joint:
        shared = train([*source, *target])
        return TokenizerPair(shared, shared)
    return TokenizerPair(train(source), train(target))


def _tokenizer(paths: Sequence[Path], *, kind: str, size: int | None, seed: int, cache_dir: Path) -> Tokenizer:
    # Sorted by content, so that neither the direction nor the order of the corpora changes the model.
    by_content = sorted((file_digest(path), path) for path in paths)
    digests = [digest for digest, _ in by_content]
    key = content_key([_FORMAT, sentencepiece.__version__, kind, size, seed, *digests])

    def fill(folder: Path) -> None:
        lines = (normalize(line) for _, path in by_content for line in iter_lines(path))
        logger.info("Training a %s tokenizer of %s pieces", kind, f"{USUAL_SIZE if size is None else size:,}")
        model = train_tokenizer(lines, kind=kind, size=size, seed=seed)
        (folder / _FILE).write_bytes(model)

    return Tokenizer.load(cached_folder(cache_dir / "tokenizers" / key, fill) / _FILE)
