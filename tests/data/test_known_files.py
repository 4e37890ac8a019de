"""Text is read again only if it has changed."""

import gzip
import hashlib
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from jobs import run_settings
from tiny import TINY, write_corpora

from nmt.config.direction import Direction
from nmt.data import known_files
from nmt.data.corpus import check_files, corpus_hashes
from nmt.data.known_files import known_digest, known_lines
from nmt.errors import Mistake
from nmt.training.translation import Translation

DIRECTION = Direction("en", "vi")
_opened: Counter[str] | None = None


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _opened is not None:
        _opened[os.path.basename(str(arguments[0]))] += 1


@pytest.fixture(scope="module", autouse=True)
def audited() -> None:
    sys.addaudithook(_note)  # cannot be removed again


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file has been opened since the beginning of the test, by its name."""
    monkeypatch.setattr(sys.modules[__name__], "_opened", counts := Counter[str]())
    return counts


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that have just been written count as old."""
    monkeypatch.setattr(known_files, "_SETTLED", -1.0)


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.vi.gz").write_bytes(gzip.compress(b"m\xe1\xbb\x99t\nhai\n"))
    return str(tmp_path / "a")


@pytest.mark.usefixtures("settled")
def test_the_second_start_reads_no_text(tmp_path: Path, corpus: str, reads: Counter[str]) -> None:
    cache = tmp_path / "cache"
    check_files([corpus], DIRECTION, cache)
    hashes = corpus_hashes([corpus], DIRECTION, cache)
    assert (reads["a.en"], reads["a.vi.gz"]) == (1, 1)
    check_files([corpus], DIRECTION, cache)
    assert corpus_hashes([corpus], DIRECTION, cache) == hashes == corpus_hashes([corpus], DIRECTION)
    assert (reads["a.en"], reads["a.vi.gz"]) == (2, 2)  # by the last call, without a cache


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("times", ["new", "set back"])
def test_a_file_that_has_changed_is_read_again(tmp_path: Path, corpus: str, times: str) -> None:
    path, cache = Path(f"{corpus}.en"), tmp_path / "cache"
    before = path.stat()
    check_files([corpus], DIRECTION, cache)
    path.write_text("one\nsix\n")  # as long as before
    if times == "set back":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert known_digest(path, cache) == hashlib.sha256(b"one\nsix\n").hexdigest()
    path.write_text("one\n\xff", encoding="latin-1")
    with pytest.raises(Mistake, match=r"a\.en, line 2 is not UTF-8"):
        check_files([corpus], DIRECTION, cache)


def test_a_file_that_was_just_written_is_not_recorded(tmp_path: Path, corpus: str) -> None:
    """It may change again within the same tick of the file system's clock."""
    check_files([corpus], DIRECTION, tmp_path / "cache")
    assert known_lines(Path(f"{corpus}.en"), tmp_path / "cache") is None


@pytest.mark.usefixtures("settled")
def test_lines_that_do_not_match_are_found_again(tmp_path: Path, corpus: str) -> None:
    """Each file alone may be part of a corpus that can be read."""
    (tmp_path / "b.en").write_text("one\n")
    (tmp_path / "b.vi").write_text("m\n")
    cache = tmp_path / "cache"
    check_files([corpus, str(tmp_path / "b")], DIRECTION, cache)
    (tmp_path / "b.vi").unlink()
    (tmp_path / "b.vi.gz").symlink_to(tmp_path / "a.vi.gz")
    for _ in range(2):
        with pytest.raises(Mistake, match=r"b\.en has 1 lines but .*b\.vi\.gz has 2"):
            check_files([str(tmp_path / "b")], DIRECTION, cache)


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("damage", ["", "[]", '{"size": 8}', "{"])
def test_a_damaged_record_is_made_again(tmp_path: Path, corpus: str, damage: str) -> None:
    path, cache = Path(f"{corpus}.en"), tmp_path / "cache"
    digest = known_digest(path, cache)
    [record] = (cache / "files").iterdir()
    record.write_text(damage)
    assert known_digest(path, cache) == digest
    assert known_lines(path, cache) is None  # only the digest was asked for


@pytest.mark.usefixtures("settled")
def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, corpus: str) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "files").write_text("")  # root may write to read-only folders
    check_files([corpus], DIRECTION, tmp_path / "cache")
    assert len(known_digest(Path(f"{corpus}.en"), tmp_path / "cache")) == 64


@pytest.mark.usefixtures("settled")
def test_a_later_start_of_training_reads_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: Counter[str]
) -> None:
    monkeypatch.chdir(write_corpora(tmp_path))
    settings = run_settings(*(item for item in TINY if not item.startswith("run_dir=")))

    def start() -> None:
        cache = Path("cache")
        corpora = Translation().corpora(settings, cache)
        corpora.hashes(cache)
        corpora.examples(settings, corpora.learn_tokenizers(settings, cache, smaller=False), cache)

    start()
    first = reads["train.en"]
    assert first >= 3  # to check and hash it, to learn the tokenizer, and to tokenize it
    start()
    assert reads["train.en"] == first
