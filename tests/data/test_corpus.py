import bz2
import gzip
import lzma
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow
import pytest

from nmt.data import corpus as module
from nmt.data.corpus import (
    Direction,
    alignment_file,
    check_files,
    corpus_hashes,
    file_pair,
    matching_prefixes,
    read_aligned,
    read_pairs,
    text_file,
)
from nmt.errors import Mistake
from nmt.text.lines import read_lines

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


def test_pairs_are_normalized_and_none_is_dropped(write, direction):
    prefix = write("test", [*ODD, "same", "same"], ["e\u0301"] * 9 + ["", ""])
    pairs = read_pairs(prefix, direction)
    assert pairs.source == [
        *("plain", "", "lone return", "nul", "line separator", "next line", "form feed", "mark", "edge", "same", "same")
    ]
    assert pairs.target == ["é"] * 9 + ["", ""]
    assert read_aligned(prefix, direction).source[:9] == ODD


def test_the_reverse_direction_swaps_the_sides(corpus, direction):
    source, target = read_pairs(corpus, direction)
    assert read_pairs(corpus, Direction.parse("vi-en")) == (target, source)


def test_file_pair_keeps_dots_in_the_prefix(direction):
    assert [str(path) for path in file_pair("a.b/c.d", direction)] == ["a.b/c.d.en", "a.b/c.d.vi"]


def test_direction_prints_as_it_is_written():
    assert str(Direction.parse("vi-en")) == "vi-en"


@pytest.mark.parametrize("text", ["en", "en-en", "envi", "en_vi", "EN-VI", "en-vi-fr", "", "en->vi", "en-vi\n"])
def test_a_malformed_direction_is_refused(text):
    with pytest.raises(Mistake, match="write two different language codes, such as en-vi or vi-en"):
        Direction.parse(text)


def test_the_alignment_file_serves_both_directions(tmp_path, corpus, direction):
    assert alignment_file(corpus, direction) is None
    path = tmp_path / "train.en-vi.align"
    path.touch()
    assert alignment_file(corpus, direction) == path
    assert alignment_file(corpus, Direction("vi", "en")) == path


def test_parts_of_the_sample_corpus(tmp_path, monkeypatch, direction):
    monkeypatch.setattr(module, "_SAMPLE_FOLDERS", (tmp_path / "absent", tmp_path))
    for name in ("train.en", "train.vi", "test.en", "test.vi", "README.md"):
        (tmp_path / name).write_text("a\n")
    assert file_pair("sample:train", direction) == (tmp_path / "train.en", tmp_path / "train.vi")
    with pytest.raises(Mistake, match="no part 'sample:tain' in language 'en'; choose one of test, train"):
        file_pair("sample:tain", direction)
    with pytest.raises(Mistake, match="in language 'de'; set data=files to train on"):
        file_pair("sample:train", Direction("de", "en"))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with data/sample, and a working folder beside it."""
    checkout, working = tmp_path / "checkout", tmp_path / "working"
    (checkout / "data" / "sample").mkdir(parents=True)
    working.mkdir()
    monkeypatch.setattr(module, "_SAMPLE_FOLDERS", (tmp_path / "absent", checkout / "data" / "sample"))
    monkeypatch.chdir(working)
    return checkout


def test_a_relative_prefix_is_found_in_the_working_folder_and_then_in_the_checkout(
    checkout: Path, direction: Direction
) -> None:
    (checkout / "data" / "my").mkdir()
    for language in ("en", "vi"):
        (checkout / "data" / "my" / f"a.{language}").write_text("theirs\n")
    assert read_aligned("data/my/a", direction) == (["theirs"], ["theirs"])
    assert alignment_file("data/my/a", direction) is None
    (checkout / "data" / "my" / "a.en-vi.align").touch()
    assert alignment_file("data/my/a", direction) == checkout / "data" / "my" / "a.en-vi.align"
    Path("data/my").mkdir(parents=True)
    Path("data/my/a.vi").write_text("ours\n")
    with pytest.raises(Mistake, match=r"There is no file data/my/a\.en in "):  # never one side of each corpus
        read_aligned("data/my/a", direction)
    Path("data/my/a.en").write_text("ours\n")
    assert read_aligned("data/my/a", direction) == (["ours"], ["ours"])
    assert file_pair(str(checkout / "data" / "my" / "a"), direction)[0] == checkout / "data" / "my" / "a.en"


@pytest.mark.parametrize(
    ("prefix", "remedy"),
    [
        ("data/envi/news", "; 'python -m nmt.download envi' downloads it."),
        ("data/hub/some/set/train", "; 'python -m nmt.download hub:some/set' downloads it."),
        ("my/news", "; a corpus PREFIX consists of the files PREFIX.en and PREFIX.vi."),
    ],
)
def test_a_missing_corpus_says_where_it_was_searched_for(
    checkout: Path, direction: Direction, prefix: str, remedy: str
) -> None:
    with pytest.raises(Mistake) as caught:
        check_files([prefix], direction)
    assert str(caught.value) == f"There is no file {prefix}.en in {Path.cwd()} or {checkout}{remedy}"


def test_without_a_checkout_only_the_working_folder_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direction: Direction
) -> None:
    monkeypatch.setattr(module, "_SAMPLE_FOLDERS", (tmp_path, tmp_path / "absent"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Mistake, match=rf"^There is no file a\.en in {tmp_path}; a corpus PREFIX consists of the files"):
        check_files(["a"], direction)


def test_an_absolute_prefix_is_not_searched_for(checkout: Path, direction: Direction) -> None:
    with pytest.raises(Mistake, match=rf"^There is no file {checkout}/a\.en; a corpus PREFIX consists of the files"):
        check_files([f"{checkout}/a"], direction)


def test_empty_files_are_named(write: Callable[..., str], corpus: str, direction: Direction) -> None:
    with pytest.raises(Mistake, match=r"empty\.en is empty; use a file with at least one line"):
        check_files([corpus, write("empty", [], ["a"])], direction)


def test_a_missing_corpus_comes_with_the_likely_remedy(
    tmp_path: Path, write: Callable[..., str], corpus: str, direction: Direction
) -> None:
    def refused(prefix: str, direction: Direction = direction) -> str:
        with pytest.raises(Mistake) as caught:
            check_files([prefix], direction)
        return str(caught.value)

    with_extension = refused(f"{corpus}.en")
    assert with_extension == f"There is no file {corpus}.en.en: write the corpus without its extension, as {corpus}."
    # A file whose name only looks like a corpus file.
    (tmp_path / "absent.txt").write_text("a\n")
    assert "; a corpus PREFIX consists of the files PREFIX.en and" in refused(f"{tmp_path}/absent.txt")
    for folder in (str(tmp_path), f"{tmp_path}/"):
        message = f"{tmp_path} is a folder; give the path of a corpus without its language extension, such as {corpus}."
        assert message in refused(folder)
    name = Path(corpus).name
    assert refused(corpus, Direction("vn", "de")).endswith(
        f", only {name}.en and {name}.vi; set direction=en-vi or direction=vi-en."
    )
    (tmp_path / f"{name}.fr").touch()
    assert refused(corpus, Direction("vn", "de")).endswith(
        f", only {name}.en and {name}.fr and {name}.vi; set direction= to two of these extensions."
    )
    write("valid", ["a"], ["b"])
    assert refused(f"{tmp_path}/vaild").endswith(f"vaild.en. Did you mean {tmp_path}/valid?")
    assert "; a corpus PREFIX consists of the files" in refused(f"{tmp_path}/nowhere/absent")


@pytest.mark.parametrize(
    ("ending", "compress"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", partial(pyarrow.compress, codec="zstd", asbytes=True)),
    ],
)
def test_a_compressed_corpus_is_read_as_it_is(
    tmp_path: Path, direction: Direction, ending: str, compress: Callable[[bytes], bytes]
) -> None:
    prefix = tmp_path / "my corpus"
    (tmp_path / f"my corpus.en{ending}").write_bytes(compress(b"one\n"))
    (tmp_path / "my corpus.vi").write_bytes(b"mot\n")
    (tmp_path / "my corpus.en-vi.align").write_bytes(b"0-0\n")
    assert read_aligned(str(prefix), direction) == (["one"], ["mot"])
    assert [*corpus_hashes([str(prefix)], direction)] == [f"{prefix}.en", f"{prefix}.vi"]
    assert alignment_file(str(prefix), direction) == tmp_path / "my corpus.en-vi.align"
    assert text_file(f"{prefix}.en") == tmp_path / f"my corpus.en{ending}"
    (tmp_path / "my corpus.en").write_bytes(b"two\n")
    assert read_aligned(str(prefix), direction) == (["two"], ["mot"])


@pytest.mark.parametrize(("there", "missing"), [("c.en.zst", "c.vi"), ("c.vi.gz", "c.en"), ("c.en", "c.vi")])
def test_the_side_that_is_missing_is_named(tmp_path: Path, direction: Direction, there: str, missing: str) -> None:
    for name in (there, "c.doc", "c.tsv.gz"):
        (tmp_path / name).touch()
    with pytest.raises(Mistake) as caught:
        check_files([str(tmp_path / "c")], direction)
    assert str(caught.value) == (
        f"There is no file {tmp_path / missing}, only {there}: add it, with the translation of line n of {there} in "
        "line n."
    )


def test_a_compressed_corpus_in_other_languages_is_named(tmp_path: Path, direction: Direction) -> None:
    for name in ("c.en.zst", "c.fr.gz"):
        (tmp_path / name).touch()
    with pytest.raises(
        Mistake, match=r"c\.vi, only c\.en\.zst and c\.fr\.gz; set direction=en-fr or direction=fr-en\.$"
    ):
        check_files([str(tmp_path / "c")], direction)


def test_a_pattern_names_all_corpora_that_match(
    tmp_path: Path, direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("p/2.en", "p/10.en.gz", "p/2.vi", "p/10.vi", "p/3.vi", "p/4.entity", "a[1].en"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    assert matching_prefixes(["x", "p/*", "p/2", "a[1]", "sample:train"], direction) == [
        *("x", "p/10", "p/2", "a[1]", "sample:train")
    ]
    with pytest.raises(Mistake, match=r"data\.train contains q/\*, but there is no file q/\*\.en; check the pattern"):
        matching_prefixes(["q/*"], direction)


def test_a_table_is_named_and_the_remedy_splits_it(tmp_path: Path, direction: Direction) -> None:
    prefix = str(tmp_path / "M")
    Path(f"{prefix}.tsv.gz").touch()
    with pytest.raises(Mistake, match=rf"M\.en, only M\.tsv\.gz; unpack it with: gunzip -k {prefix}\.tsv\.gz$"):
        check_files([prefix], direction)
    Path(f"{prefix}.tsv").write_text("one\tmột\ntwo\thai\n", encoding="utf-8")
    with pytest.raises(
        Mistake, match=r"only M\.tsv; if its first column is en, name M\.tsv in data\.train, or split it with: cut -f1 "
    ) as caught:
        check_files([prefix], direction)
    subprocess.run(["sh", "-c", str(caught.value).partition("with: ")[2]], check=True)
    assert read_aligned(prefix, direction) == (["one", "two"], ["một", "hai"])


def test_a_missing_text_file_is_named() -> None:
    with pytest.raises(Mistake, match=r"^There is no file absent; check the path\.$"):
        read_lines(Path("absent"))


@pytest.mark.parametrize(
    ("content", "kind"),
    [(gzip.compress(b"one\n", mtime=0), "gzip"), ("one\n".encode("utf-16"), "UTF-16")],
    ids=["gzip", "utf-16"],
)
def test_the_format_of_a_file_that_is_not_plain_text_is_named(tmp_path: Path, content: bytes, kind: str) -> None:
    (tmp_path / "a.en").write_bytes(content)
    with pytest.raises(Mistake, match=rf"a\.en is {kind}, not UTF-8; use a plain text file in UTF-8\.$"):
        read_lines(tmp_path / "a.en")


def test_unequal_line_counts_are_named(write, direction):
    prefix = write("short", ["a", "b", "c"], ["d", "e"])
    with pytest.raises(Mistake, match=r"short\.en has 3 lines but .*short\.vi has 2"):
        check_files([prefix], direction)
    with pytest.raises(Mistake, match=r"short\.vi has 2 lines but .*short\.en has 3"):
        check_files([prefix], Direction("vi", "en"))
    prefix = write("shorter", ["a"], ["b", "c", "d", "e"])
    with pytest.raises(Mistake, match=r"shorter\.en has 1 lines but .*shorter\.vi has 4"):
        read_aligned(prefix, direction)


def test_the_line_of_invalid_utf8_is_named(tmp_path):
    path = tmp_path / "latin.en"
    path.write_bytes(b"one\ntwo\ncaf\xe9\n")
    with pytest.raises(
        Mistake, match=r"latin\.en, line 3 is not UTF-8 \(.*\); convert the file with iconv, or fix the line"
    ):
        read_lines(path)
