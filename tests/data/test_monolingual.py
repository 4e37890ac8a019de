"""Text without translations: what is held out, what is dropped, and which files are refused."""

from pathlib import Path

import pytest

from nmt.config.schema import TokenizerSettings
from nmt.data.corpus import text_file
from nmt.data.monolingual import LineFilters, Lines, encoded_lines, split_lines, training_lines
from nmt.data.vocabulary import learned_tokenizer
from nmt.errors import Mistake

ALL = LineFilters(max_tokens=128, drop_duplicates=False, drop_overlap=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "text.en"
    path.write_text("".join(f"line number {number}\n" for number in range(40)), encoding="utf-8")
    return path


def tokenizer_of(file: Path, cache: Path):
    settings = TokenizerSettings(kind="bpe", size=280, joint=True, character_coverage=1.0, tone_marks=None)
    return learned_tokenizer([file], settings, cache)


def test_training_and_validation_share_no_line_and_have_all_of_them(file: Path) -> None:
    [train], [valid], none = split_lines([file], None, 5)
    assert none == []
    assert [*train, *valid] == file.read_text(encoding="utf-8").splitlines()
    assert len(list(valid)) == 5


def test_only_vietnamese_files_get_a_style_of_tone_marks(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.vi", "a.fr", "a.txt")]
    for path in files:
        path.write_text("Noé\nkhoẻ\n", encoding="utf-8")
    split = split_lines(files, files[:1], 1, files[1:], tone_marks="old")
    plain, old = ["Noé", "khoẻ"], ["Nóe", "khỏe"]
    assert [list(part) for part in split.train] == [old, plain, plain]
    assert [list(part) for part in (*split.valid, *split.excluded)] == [old, plain, plain]
    rows, _ = training_lines(split, tokenizer_of(files[0], tmp_path), ALL, tmp_path)
    other, _ = training_lines(split_lines(files, files[:1], 1), tokenizer_of(files[0], tmp_path), ALL, tmp_path)
    assert rows[0].source != other[0].source


def test_named_files_are_read_whole(file: Path) -> None:
    assert split_lines([file], [file], 5) == ([Lines(file, 0, 40)], [Lines(file, 0, 40)], [])


def test_rows_are_the_lines_in_their_order_and_know_their_file(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.vi"
    other.write_text("một\nhai\n", encoding="utf-8")
    tokenizer = tokenizer_of(file, tmp_path)
    rows, report = training_lines(split_lines([file, other], [file], 1), tokenizer, ALL, tmp_path)
    texts = [tokenizer.decode(line.source) for line in rows.__getitems__(list(range(len(rows))))]
    assert texts == [*file.read_text(encoding="utf-8").splitlines(), "một", "hai"]
    assert rows.parts == [40, 2]
    assert rows.lengths[:, 0].tolist() == [len(tokenizer.encode(text)) + 1 for text in texts]
    assert report.startswith("42 lines, 42 kept (")


def test_each_filter_drops_its_lines(tmp_path: Path, file: Path) -> None:
    path, held, test = (tmp_path / f"{name}.en" for name in ("a", "held", "test"))
    test.write_text("tested\n", encoding="utf-8")
    path.write_text("one\n\none\nSeen!\ntested\n" + "very " * 50 + "long\n", encoding="utf-8")
    held.write_text("seen\n", encoding="utf-8")
    filters = LineFilters(max_tokens=40, drop_duplicates=True, drop_overlap=True)
    rows, report = training_lines(
        split_lines([path], [held], 1, [test]), tokenizer_of(file, tmp_path), filters, tmp_path
    )
    assert len(rows) == 1
    assert report.endswith("dropped: 1 empty, 1 duplicate, 2 overlap, 1 too long")


def test_empty_lines_are_not_validated(tmp_path: Path, file: Path) -> None:
    path = tmp_path / "a.en"
    path.write_text("one\n\ntwo\n", encoding="utf-8")
    assert len(encoded_lines([Lines(path, 0, 3)], tokenizer_of(file, tmp_path))) == 2


def test_too_few_lines_are_refused(file: Path) -> None:
    message = (
        r"has 40 lines, and more than half of them would be held out .* data\.valid_lines to less than 21, or name"
    )
    with pytest.raises(Mistake, match=message):
        split_lines([file], None, 21)


def test_no_line_left_is_refused(tmp_path: Path, file: Path) -> None:
    filters = LineFilters(max_tokens=2, drop_duplicates=False, drop_overlap=False)
    with pytest.raises(Mistake, match=r"No training line is left: 40 lines, 0 kept .*40 too long; check .*text\.en"):
        training_lines(split_lines([file], [file], 1), tokenizer_of(file, tmp_path), filters, tmp_path)


def test_a_missing_file_is_named_with_those_that_are_near(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    with pytest.raises(Mistake, match=r"There is no file text\. Did you mean text\.en\?"):
        text_file("text")
    with pytest.raises(Mistake, match=r"There is no file nothing/there\.en; check the path\."):
        text_file("nothing/there.en")


def test_a_file_of_the_embedded_corpus_has_a_name() -> None:
    assert text_file("sample:valid.vi").is_file()
    with pytest.raises(Mistake, match="has no part 'sample:nothing' in language 'en'"):
        text_file("sample:nothing.en")
