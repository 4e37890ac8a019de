"""The words that a run never saw in training."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from nmt.commands.train import store_source_words
from nmt.evaluation.buckets import words_of
from nmt.insight.unknown_words import folded_words, known_words, unknown_words
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun, load_run
from nmt.text.dictionary import Dictionary


@pytest.fixture
def run(here: Path, tmp_path: Path) -> LoadedRun:
    """A copy of a finished run, in the folder of its corpus."""
    shutil.copytree(here / "maps_luong", tmp_path / "run")
    return load_run(tmp_path / "run", "cpu")


def test_words_that_the_training_text_lacks_are_named(run: LoadedRun) -> None:
    text = "One two, parliament? The Parliament's 12 theatres; parliament!"
    assert unknown_words(run, text) == ["parliament", "The", "Parliament's", "theatres"]


def test_a_word_of_the_training_text_is_known_in_every_case(run: LoadedRun) -> None:
    """Case folding makes two letters of some, and divides a word with others."""
    text = "\u0130stanbul Straße ΣΟΦΟΣ Mai\u2019s"
    run.directory.write_source_words(folded_words(" ".join(words_of(text))))
    for typed in (text, text.upper(), text.lower(), text.casefold()):
        assert unknown_words(run, typed) == []
    assert unknown_words(run, "\u0130zmir") == ["\u0130zmir"]


def test_training_stores_the_words_of_its_sources(run: LoadedRun) -> None:
    words = {word.strip(".") for word in Path("train.en").read_text().split()}
    assert known_words(run.directory) == words


def test_words_of_the_dictionary_are_not_named(run: LoadedRun) -> None:
    with_words = run._replace(dictionary=Dictionary({"parliament": "quốc hội"}))
    assert unknown_words(with_words, "One parliament, two theatres") == ["theatres"]
    tokenizers = run.tokenizers.in_style("old", source="vi", target="en")
    assert unknown_words(run._replace(dictionary=Dictionary({"hòa": "peace"}), tokenizers=tokenizers), "hoà") == []


def test_nothing_is_named_if_the_words_are_not_stored(run: LoadedRun) -> None:
    run.directory.words.unlink()
    assert unknown_words(run, "parliament") == []


def test_a_run_that_started_from_another_one_knows_its_words(run: LoadedRun, here: Path) -> None:
    shutil.copytree(here / "maps_luong", run.directory.path / "earlier")
    earlier = RunDirectory(run.directory.path / "earlier")
    started = run._replace(settings=run.settings.model_copy(update={"start_from": str(earlier.path)}))
    own = run.directory.source_words()
    assert own
    earlier.write_source_words({"parliament"})
    store_source_words(started, here / "cache")
    assert known_words(run.directory) == own | {"parliament"}
    run.directory.words.unlink()
    earlier.words.unlink()
    store_source_words(started, here / "cache")
    assert known_words(run.directory) is None, "not all of the words are known"


def test_no_words_are_stored_if_the_corpus_is_gone(
    run: LoadedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.directory.words.unlink()
    monkeypatch.chdir(tmp_path)
    store_source_words(run, tmp_path / "cache")
    assert known_words(run.directory) is None


def test_too_many_words_are_not_stored(run: LoadedRun) -> None:
    run.directory.words.unlink()
    assert not run.directory.write_source_words({"x" * 2**23})
    assert not run.directory.words.exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x" * (2**23 + 1), " has 8,388,609 bytes, but such a file never has more than 8,388,608"),
        (b"one\ntw\xff\n", ", line 2 is not UTF-8 (invalid start byte)"),
        (b"", " is empty"),
    ],
)
def test_a_damaged_list_of_words_is_reported_once_and_not_used(
    run: LoadedRun, caplog: pytest.LogCaptureFixture, content: bytes, reason: str
) -> None:
    run.directory.words.write_bytes(content)
    for _ in range(2):
        assert unknown_words(run, "parliament") == []
    (message,) = (record.getMessage() for record in caplog.records)
    assert message.startswith(f"Unknown words will not be named, because {run.directory.words}{reason}")


def test_a_list_of_words_that_cannot_be_read_is_read_again_later(
    run: LoadedRun, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr("nmt.text.lines.bounded_lines", fail)
        assert unknown_words(run, "parliament") == []
    assert f"because {run.directory.words} cannot be read (Input/output error)" in caplog.text
    assert unknown_words(run, "parliament") == ["parliament"]
