"""The tokenizers of a training corpus: learned once from its text, then cached by content."""

import logging
from collections.abc import Sequence
from pathlib import Path

import sentencepiece

from nmt.config.direction import Direction
from nmt.config.schema import TokenizerSettings
from nmt.data.cache import cached_folder, content_key
from nmt.data.corpus import corpus_files
from nmt.data.known_files import Sources
from nmt.text import Tokenizer, TokenizerPair, normalize, train_tokenizer
from nmt.text.tokenizer import USUAL_SIZE, VocabularySizeError
from nmt.text.tone_marks import tone_marks_of_file, with_tone_marks

logger = logging.getLogger(__name__)

# Part of the cache key. Increment it when a code change gives a different model for the same files and settings.
_FORMAT = 5
_FILE = "tokenizer.model"


def learned_tokenizers(
    prefixes: Sequence[str],
    direction: Direction,
    settings: TokenizerSettings,
    cache_dir: Path,
    at_most: bool = False,
) -> TokenizerPair:
    """SentencePiece models for the two sides of the training corpora; see `train_tokenizer` for the settings.

    With settings.joint, one model is learned from both sides, otherwise one for each side. A model is cached under
    `cache_dir`, keyed by its settings and the contents of its files; both directions share it. With `at_most`, text
    that is too small for the requested size gets a smaller vocabulary, with a warning; two separate models then have
    the same size.
    Raises whatever `corpus_files`, `Sources` and `train_tokenizer` raise.
    """
    size = settings.size
    source, target = zip(*(corpus_files(prefix, direction) for prefix in prefixes), strict=True)
    texts = [[*source, *target]] if settings.joint else [source, target]
    while True:
        try:
            sized = settings.model_copy(update={"size": size})
            models = [learned_tokenizer(paths, sized, cache_dir) for paths in texts]
            break
        except VocabularySizeError as error:
            if not at_most:
                raise
            size = error.largest  # both models are learned again, because they must have the same size
    if size != settings.size:
        logger.warning(
            "The training text supports at most %s pieces, so the vocabulary has %s instead of %s; "
            "tokenizer.size=500 suits a few hundred lines.",
            *(f"{number:,}" for number in (size, size, settings.size)),
        )
    pair = TokenizerPair(models[0], models[-1])
    return pair.in_style(settings.tone_marks, source=direction.source, target=direction.target)


def learned_tokenizer(paths: Sequence[Path], settings: TokenizerSettings, cache_dir: Path) -> Tokenizer:
    """A SentencePiece model learned from all lines of some text files, cached under `cache_dir` by their contents.

    With settings.tone_marks, it is learned from Vietnamese files (*.vi) in that style; the tokenizer itself has none.
    Raises whatever `Sources` and `train_tokenizer` raise.
    """
    # Sorted by content, so that neither the direction nor the order of the corpora changes the model.
    sources = Sources(paths, cache_dir)
    by_content = sorted((sources.digests[path], path) for path in paths)
    contents = [(digest, tone_marks_of_file(path, settings.tone_marks)) for digest, path in by_content]
    seed = 0
    kind, size, coverage = settings.kind, settings.size, settings.character_coverage
    key = content_key([_FORMAT, sentencepiece.__version__, kind, size, coverage, seed, *contents])

    def fill(folder: Path) -> None:
        lines = (
            with_tone_marks(normalize(line), style)
            for (_, path), (_, style) in zip(by_content, contents, strict=True)
            for line in sources.lines(path)
        )
        logger.info("Training a %s tokenizer with %s pieces", kind, f"{USUAL_SIZE if size is None else size:,}")
        model = train_tokenizer(lines, kind=kind, size=size, character_coverage=coverage, seed=seed)
        (folder / _FILE).write_bytes(model)

    folder = cached_folder(cache_dir / "tokenizers" / key, fill, "training this tokenizer")
    return Tokenizer.load(folder / _FILE)
