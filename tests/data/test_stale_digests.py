"""A file that has changed unnoticed, as on a network share, is not cached under the key of its old text."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config.direction import Direction
from nmt.config.schema import TokenizerSettings
from nmt.data import known_files
from nmt.data.dataset import training_dataset
from nmt.data.detokenized import detokenized
from nmt.data.filters import Filters
from nmt.data.known_files import known_digest
from nmt.data.monolingual import LineFilters, split_lines, training_lines
from nmt.data.vocabulary import learned_tokenizer
from nmt.errors import CheckFailed
from nmt.text import TokenizerPair

DIRECTION = Direction("en", "vi")
CACHES = ("tokenizers", "datasets", "detokenized")
SETTINGS = TokenizerSettings(kind="bpe", size=300, joint=True, character_coverage=1.0, tone_marks=None)
LINES = LineFilters(max_tokens=128, drop_duplicates=False, drop_overlap=True)
# What is cached, and the endings of the files that it is made from.
MADE: dict[str, tuple[Callable[[str, TokenizerPair, Path], object], tuple[str, ...]]] = {
    "tokenizer": (lambda prefix, _, cache: learned_tokenizer([Path(f"{prefix}.en")], SETTINGS, cache), ("en",)),
    "copy": (lambda prefix, _, cache: detokenized(prefix, DIRECTION, cache), ("en", "vi", "doc")),
    "training pairs": (
        lambda prefix, pair, cache: training_dataset([prefix], DIRECTION, pair, Filters(), [], cache, documents=True),
        ("en", "vi", "doc"),
    ),
    "held-out pairs": (
        lambda prefix, pair, cache: training_dataset(
            ["sample:valid"], DIRECTION, pair, Filters(), [prefix], cache, documents=True
        ),
        ("en", "vi", "doc"),
    ),
    "lines": (
        lambda prefix, pair, cache: training_lines(
            split_lines([Path(f"{prefix}.en")], None, 3), pair.source, LINES, cache
        ),
        ("en",),
    ),
    "other lines": (
        lambda prefix, pair, cache: training_lines(
            split_lines([Path(f"{prefix}.en")], [Path(f"{prefix}.vi")], 3), pair.source, LINES, cache
        ),
        ("en", "vi"),
    ),
}


def change_unnoticed(path: Path, cache: Path) -> None:
    """Changes the last line of a file, but not what the cache knows about the file."""
    [record] = (cache / "files").iterdir()
    text = path.read_bytes()
    path.write_bytes(text[:-2] + b"9\n")
    assert path.read_bytes() != text
    state = known_files._state(path)
    assert state is not None
    record.write_text(json.dumps({**json.loads(record.read_text()), **state.values}))


@pytest.mark.parametrize(
    ("made", "ending"), [(made, ending) for made, (_, endings) in MADE.items() for ending in endings]
)
def test_text_that_has_changed_unnoticed_is_not_cached(
    made: str, ending: str, corpus: str, pair: TokenizerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_files, "_SETTLED", -1.0)
    cache, path = tmp_path / "cache", Path(f"{corpus}.{ending}")
    Path(f"{corpus}.doc").write_text("".join(f"{line // 10}\n" for line in range(211)))
    make = MADE[made][0]
    before = known_digest(path, cache)
    change_unnoticed(path, cache)
    assert known_digest(path, cache) == before
    with pytest.raises(CheckFailed, match=rf"train\.{ending} has changed since .* Run the command again\.$"):
        make(corpus, pair, cache)
    assert [file for name in CACHES if (cache / name).exists() for file in (cache / name).iterdir()] == []
    make(corpus, pair, cache)
    assert known_digest(path, cache) != before


def test_a_file_that_changes_while_it_is_read_is_not_cached(
    corpus: str, pair: TokenizerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kept = Path(f"{corpus}.en"), LineFilters(128, drop_duplicates=False, drop_overlap=False)
    split = split_lines([path], [path], 3)
    monkeypatch.setattr(known_files, "known_digest", lambda *_: "of the text before")
    with pytest.raises(CheckFailed, match=r"train\.en has changed since the command began"):
        training_lines(split, pair.source, kept, tmp_path / "cache")
