import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.data import corpus as module
from nmt.data.corpus import (
    Direction,
    alignment_file,
    check_files,
    file_pair,
    read_aligned,
    read_lines,
    read_pairs,
)

ODD = [
    "plain",
    "",
    "lone\rreturn",
    "nul\x00",
    "line\u2028separator",
    "next\x85line",
    "form\x0cfeed",
    "mark\ufeff",
    " edge ",
]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_only_a_line_feed_ends_a_line(tmp_path, end, last):
    path = tmp_path / "odd.en"
    path.write_bytes((end.join(ODD) + end * last).encode())
    assert read_lines(path) == ODD


def test_a_byte_order_mark_is_not_part_of_the_first_line(tmp_path):
    path = tmp_path / "marked.en"
    path.write_bytes(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n")
    assert read_lines(path) == ["one", "\ufefftwo"]


def test_pairs_are_normalised_and_none_is_dropped(write, direction):
    prefix = write("test", [*ODD, "same", "same"], ["e\u0301"] * 9 + ["", ""])
    pairs = read_pairs(prefix, direction)
    assert pairs.source == [
        *("plain", "", "lone return", "nul", "line separator", "next line", "form feed", "mark", "edge", "same", "same")
    ]
    assert pairs.target == ["é"] * 9 + ["", ""]
    assert read_aligned(prefix, direction).source[:9] == ODD


def test_the_other_direction_swaps_the_sides(corpus, direction):
    source, target = read_pairs(corpus, direction)
    assert read_pairs(corpus, Direction.parse("vi-en")) == (target, source)


def test_file_pair_keeps_dots_in_the_prefix(direction):
    assert [str(path) for path in file_pair("a.b/c.d", direction)] == ["a.b/c.d.en", "a.b/c.d.vi"]


def test_direction_prints_as_it_is_written():
    assert str(Direction.parse("vi-en")) == "vi-en"


@pytest.mark.parametrize("text", ["en", "en-en", "envi", "en_vi", "EN-VI", "en-vi-fr", "", "en->vi", "en-vi\n"])
def test_a_wrong_direction_is_refused(text):
    with pytest.raises(ValueError, match="write two different language codes, such as en-vi or vi-en"):
        Direction.parse(text)


def test_the_alignment_file_serves_both_directions(tmp_path, corpus, direction):
    assert alignment_file(corpus, direction) is None
    path = tmp_path / "train.en-vi.align"
    path.touch()
    assert alignment_file(corpus, direction) == path
    assert alignment_file(corpus, Direction("vi", "en")) == path


def test_parts_of_the_embedded_corpus(tmp_path, monkeypatch, direction):
    monkeypatch.setattr(module, "_SAMPLE_FOLDERS", (tmp_path / "absent", tmp_path))
    for name in ("train.en", "train.vi", "test.en", "test.vi", "README.md"):
        (tmp_path / name).write_text("a\n")
    assert file_pair("sample:train", direction) == (tmp_path / "train.en", tmp_path / "train.vi")
    with pytest.raises(FileNotFoundError, match="no part 'sample:tain' in language 'en'; its parts are: test, train"):
        file_pair("sample:tain", direction)
    with pytest.raises(FileNotFoundError, match="in language 'de'; for another language give data=files"):
        file_pair("sample:train", Direction("de", "en"))


def test_missing_and_empty_files_are_named(tmp_path, write, corpus, direction):
    with pytest.raises(FileNotFoundError, match=r"No file .*absent\.en: a corpus PREFIX is the files PREFIX\.en and"):
        check_files([corpus, str(tmp_path / "absent")], direction)
    with pytest.raises(FileNotFoundError, match=rf"{corpus}\.en\.en: a corpus is named without .*, as in {corpus}\."):
        check_files([f"{corpus}.en"], direction)
    # A name with a point of its own, whose other files are not there either.
    (tmp_path / "absent.txt").write_text("a\n")
    with pytest.raises(FileNotFoundError, match=r"No file .*absent\.txt\.en: a corpus PREFIX is the files"):
        check_files([str(tmp_path / "absent.txt")], direction)
    with pytest.raises(ValueError, match=r"empty\.en is empty"):
        check_files([corpus, write("empty", [], ["a"])], direction)


def test_what_there_is_beside_a_missing_file_is_told(tmp_path: Path, write: Callable[..., str], corpus: str) -> None:
    folder, name = Path(corpus).parent, Path(corpus).name
    with pytest.raises(FileNotFoundError, match=rf"{folder} is a folder; .*before \.en, such as {folder}/"):
        check_files([str(folder)], Direction("en", "vi"))
    with pytest.raises(FileNotFoundError, match=rf"{folder} is a folder; .*before \.en, such as {folder}/"):
        check_files([f"{folder}/"], Direction("en", "vi"))
    with pytest.raises(FileNotFoundError, match=rf"but {name}\.en and {name}\.vi: give direction=en-vi or vi-en, as"):
        check_files([corpus], Direction("vn", "de"))
    write("valid", ["a"], ["b"])
    with pytest.raises(FileNotFoundError, match=rf"No file .*vaild\.en\. Did you mean {tmp_path}/valid\?"):
        check_files([str(tmp_path / "vaild")], Direction("en", "vi"))
    with pytest.raises(FileNotFoundError, match=r"No file absent; give the path of a text file\.$"):
        read_lines(Path("absent"))
    with pytest.raises(FileNotFoundError, match=r"No file .*nowhere/absent\.en: a corpus PREFIX is the files"):
        check_files([str(tmp_path / "nowhere" / "absent")], Direction("en", "vi"))


@pytest.mark.parametrize(
    ("content", "kind"),
    [(gzip.compress(b"one\n", mtime=0), "a file of gzip"), ("one\n".encode("utf-16"), "UTF-16")],
    ids=["gzip", "utf-16"],
)
def test_files_that_are_no_plain_text_are_called_what_they_are(tmp_path: Path, content: bytes, kind: str) -> None:
    (tmp_path / "a.en").write_bytes(content)
    with pytest.raises(ValueError, match=rf"a\.en, line 1: not UTF-8 but {kind}; give plain text in UTF-8\.$"):
        read_lines(tmp_path / "a.en")


def test_unequal_line_counts_are_named(write, direction):
    prefix = write("short", ["a", "b", "c"], ["d", "e"])
    with pytest.raises(ValueError, match=r"short\.en has 3 lines but .*short\.vi has 2"):
        check_files([prefix], direction)
    with pytest.raises(ValueError, match=r"short\.vi has 2 lines but .*short\.en has 3"):
        check_files([prefix], Direction("vi", "en"))
    prefix = write("shorter", ["a"], ["b", "c", "d", "e"])
    with pytest.raises(ValueError, match=r"shorter\.en has 1 lines but .*shorter\.vi has 4"):
        read_aligned(prefix, direction)


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path):
    path = tmp_path / "latin.en"
    path.write_bytes(b"one\ntwo\ncaf\xe9\n")
    with pytest.raises(ValueError, match=r"latin\.en, line 3: not UTF-8"):
        read_lines(path)
