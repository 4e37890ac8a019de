"""Text is read again only if it has changed."""

import gzip
import hashlib
import os
import sys
import time
from collections import Counter
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from jobs import run_settings
from tiny import TINY, write_corpora

from nmt.cli.compose import configuration
from nmt.config.direction import Direction
from nmt.config.schema import EncoderSettings, validated
from nmt.data import known_files
from nmt.data.corpus import check_files, corpus_hashes
from nmt.data.documents import check_documents
from nmt.data.known_files import count_lines, known_digest, known_lines, remembered_lines
from nmt.errors import Mistake
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun
from nmt.scoring.training_words import training_counts
from nmt.text import lines as text_lines
from nmt.training.pretraining import MaskedPretraining
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
    time.sleep(0.05)  # the clock of the file system ticks
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


def test_a_file_that_was_new_before_it_was_read_is_not_recorded(
    tmp_path: Path, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long reading it takes."""
    path, cache = Path(f"{corpus}.en"), tmp_path / "cache"
    written = path.stat().st_mtime
    clock = chain([written + 1], repeat(written + 100))
    monkeypatch.setattr(known_files, "time", SimpleNamespace(time=lambda: next(clock)))
    known_digest(path, cache)
    assert not cache.exists()
    known_digest(path, cache)
    assert len(list((cache / "files").iterdir())) == 1


@pytest.mark.usefixtures("settled")
def test_where_changes_are_not_dated_nothing_is_recorded(
    tmp_path: Path, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_files, "_CHANGES_ARE_DATED", False)
    check_files([corpus], DIRECTION, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("settled")
def test_a_line_that_was_cut_is_reported_at_every_start(
    tmp_path: Path, corpus: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 16)
    cache, path = tmp_path / "cache", Path(f"{corpus}.en")
    path.write_text("one\n" + 9 * "ộ" + "\n")  # of 27 bytes, of which 15 are kept
    for starts in (1, 2):
        check_files([corpus], DIRECTION, cache)
        assert caplog.text.count("a.en, line 2 is too long: its last 12 bytes were ignored.") == starts
    assert (known_lines(path, cache), known_lines(Path(f"{corpus}.vi.gz"), cache)) == (None, 2)


@pytest.mark.usefixtures("settled")
def test_a_file_that_is_deleted_while_it_is_read_is_not_recorded(tmp_path: Path, corpus: str) -> None:
    path, cache = Path(f"{corpus}.en"), tmp_path / "cache"
    lines = remembered_lines(path, cache)
    assert next(lines) == "one"
    path.unlink()
    assert list(lines) == ["two"]
    assert not cache.exists()


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

    def reads_of_a_start() -> dict[str, int]:
        reads.clear()
        start()
        return {name: number for name, number in reads.items() if name.endswith((".en", ".vi"))}

    first = reads_of_a_start()
    assert first.keys() == {f"{part}.{side}" for part in ("train", "valid", "test") for side in ("en", "vi")}
    # To check and hash it, to learn the tokenizer, and to tokenize it.
    assert (first["train.en"], first["train.vi"]) == (3, 3)
    assert reads_of_a_start() == {"valid.en": 1, "valid.vi": 1}


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize(("valid", "expected"), [("[valid.en]", {"valid.en": 1}), ("null", {"train.en": 1})])
def test_a_later_start_of_pretraining_reads_only_validation_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: Counter[str], valid: str, expected: dict[str, int]
) -> None:
    """Without a validation file, they are at the end of the training file."""
    monkeypatch.chdir(write_corpora(tmp_path))
    config = configuration(
        "pretrain",
        ["data.train=[train.en]", f"data.valid={valid}", "data.valid_lines=7", "tokenizer.size=290", "run_dir=unused"],
    )
    settings = validated(EncoderSettings, {key: config[key] for key in EncoderSettings.model_fields if key in config})

    def reads_of_a_start() -> dict[str, int]:
        reads.clear()
        cache = Path("cache")
        corpora = MaskedPretraining().corpora(settings, cache)
        corpora.hashes(cache)
        corpora.examples(settings, corpora.learn_tokenizers(settings, cache, smaller=False), cache)
        return {name: number for name, number in reads.items() if name.endswith(".en")}

    assert reads_of_a_start()["train.en"] > 2
    assert reads_of_a_start() == expected


@pytest.mark.usefixtures("settled")
def test_the_lines_of_a_text_are_counted_once(tmp_path: Path, corpus: str, reads: Counter[str]) -> None:
    path, cache = Path(f"{corpus}.en"), tmp_path / "cache"
    (tmp_path / "a.doc").write_text("1\n1\n")
    reads.clear()
    for _ in range(2):
        assert check_documents(corpus, DIRECTION, cache)
        assert count_lines(path, cache) == 2
    assert (reads["a.en"], reads["a.doc"]) == (1, 2)
    assert count_lines(path, None) == 2
    assert reads["a.en"] == 2


@pytest.fixture
def untrained(tmp_path: Path, corpus: str) -> LoadedRun:
    """A run on the corpus and on a table, without a model."""
    (tmp_path / "b.tsv").write_text("Three &amp; two\tba\n")
    train = [corpus, str(tmp_path / "b.tsv")]
    absent: Any = None
    settings = run_settings(train=train, detokenize=train[1:])
    return LoadedRun(RunDirectory(tmp_path), settings, absent, absent, torch.device("cpu"))


@pytest.mark.usefixtures("settled")
def test_the_words_of_a_training_corpus_are_counted_once(
    tmp_path: Path, untrained: LoadedRun, reads: Counter[str]
) -> None:
    cache = tmp_path / "cache"
    check_files(untrained.settings.data.train, DIRECTION, cache)  # as training does first
    reads.clear()
    counts = training_counts(untrained, cache)
    assert counts == training_counts(untrained) == {"one": 1, "two": 2, "three": 1, "&": 1}
    assert (reads["a.en"], reads["b.tsv"]) == (2, 2)
    assert training_counts(untrained, cache) == counts
    assert (reads["a.en"], reads["b.tsv"]) == (2, 2)
    (tmp_path / "a.en").write_text("one\none more\n")
    assert training_counts(untrained, cache)["one"] == 2


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("damage", ["", "[]", '{"words": {"one": "x"}}', '{"words": {"one": 7'])
def test_damaged_counts_of_words_are_made_again(tmp_path: Path, untrained: LoadedRun, damage: str) -> None:
    counts = training_counts(untrained, tmp_path / "cache")
    [file] = (tmp_path / "cache" / "words").iterdir()
    whole = file.read_bytes()
    file.write_text(damage)
    assert training_counts(untrained, tmp_path / "cache") == counts
    assert file.read_bytes() == whole


def test_counts_of_words_that_cannot_be_written_are_no_error(tmp_path: Path, untrained: LoadedRun) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "words").write_text("")  # root may write to read-only folders
    assert training_counts(untrained, tmp_path / "cache") == training_counts(untrained)
