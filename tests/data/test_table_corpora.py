"""A .tsv holds the same corpus as its two columns in two files."""

import gzip
from pathlib import Path

import pyarrow
import pytest

from nmt.config.direction import Direction
from nmt.data.corpus import check_files, corpus_files, corpus_hashes, iter_pairs, iter_sources, matching_prefixes
from nmt.data.table_corpora import is_table, split_table
from nmt.errors import Mistake

PAIRS = [("one", "một"), ("", "hai"), ("lone\rreturn", "line\u2028separator"), ("four", "bốn")]
TEXT = "".join(f"{source}\t{target}\n" for source, target in PAIRS).encode()


def written(path: Path, content: bytes) -> str:
    if path.suffix == ".gz":
        content = gzip.compress(content)
    if path.suffix == ".zst":
        content = pyarrow.compress(content, codec="zstd", asbytes=True)
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.tsv.zst"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_table_is_the_corpus_of_its_columns(tmp_path: Path, direction: Direction, name: str, end: bytes) -> None:
    table = written(tmp_path / name, TEXT.replace(b"\n", end))
    assert list(iter_pairs(table, direction)) == PAIRS
    assert list(iter_sources(table, direction)) == [source for source, _ in PAIRS]
    copy = split_table(Path(table), direction, tmp_path / "cache")
    assert list(iter_pairs(copy, direction)) == PAIRS
    assert split_table(Path(table), direction, tmp_path / "cache") == copy
    assert [*corpus_hashes([table], direction)] == [table]
    written(tmp_path / name, TEXT * 2)
    assert split_table(Path(table), direction, tmp_path / "cache") != copy


@pytest.mark.parametrize(("name", "table"), [("a", False), ("a.en", False), ("a.gz", False), ("b.c/a.tsv.xz", True)])
def test_names_of_tables(name: str, table: bool) -> None:
    assert is_table(name) == table


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"alone", r"a\.tsv, line 2 has no tab; each line must be a source, a tab, and its translation"),
        (b"a\tb\tc", r"a\.tsv, line 2 has 3 columns; .* choose them, as with: cut -f1,2"),
        (b"a\t\xff", r"a\.tsv, line 2 is not UTF-8"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_with_its_number(
    tmp_path: Path, direction: Direction, line: bytes, message: str
) -> None:
    table = written(tmp_path / "a.tsv", b"one\ttwo\n" + line + b"\n")
    for _ in range(2):  # a file with a mistake is not remembered as checked
        with pytest.raises(Mistake, match=message):
            check_files([table], direction, tmp_path / "cache")
    with pytest.raises(Mistake, match=message):
        split_table(Path(table), direction, tmp_path / "cache")
    assert not [*(tmp_path / "cache" / "tables").iterdir()]


def test_patterns_match_tables_compressed_or_not(tmp_path: Path, direction: Direction) -> None:
    tables = [written(tmp_path / name, TEXT) for name in ("a.tsv", "b.tsv.gz", "c.tsv")]
    written(tmp_path / "a.en", b"x\n")
    assert matching_prefixes([f"{tmp_path}/*.tsv"], direction) == tables
    written(tmp_path / "a.tsv.gz", TEXT)  # the same table twice
    assert matching_prefixes([f"{tmp_path}/*.tsv"], direction) == tables
    (tmp_path / "a.tsv.gz").unlink()
    assert matching_prefixes([f"{tmp_path}/*.tsv.gz"], direction) == [tables[1]]
    with pytest.raises(Mistake, match=r"data\.train contains .*/x\*\.tsv, but there is no file .*/x\*\.tsv; check"):
        matching_prefixes([f"{tmp_path}/x*.tsv"], direction)


def test_a_missing_table_and_one_for_validation_are_refused(tmp_path: Path, direction: Direction) -> None:
    with pytest.raises(Mistake, match=r"There is no file .*a\.tsv; check the path"):
        check_files([str(tmp_path / "a.tsv")], direction)
    table = written(tmp_path / "valid.tsv", TEXT)
    with pytest.raises(Mistake, match=r"only data\.train can name a \.tsv; split it with: cut -f1 .*valid\.tsv > "):
        corpus_files(table, direction)
