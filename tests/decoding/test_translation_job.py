"""Jobs that translate files in parts: each line once, in order, whatever is killed; other jobs are refused."""

import gzip
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from nmt.decoding import translation_job
from nmt.decoding.translation_job import JobFile, Shard, cut, open_job
from nmt.errors import Mistake

LINES = [f"line {number}" for number in range(1, 12)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.en"
    path.write_text("\n".join(LINES) + "\n")
    return path


def opened(tmp_path: Path, source: Path, name: str = "in.vi", **changes: object) -> JobFile:
    settings = {"weights": "w", "search.beam_size": 1, **changes}
    part_lines = settings.pop("part_lines", 4)
    [file] = open_job(tmp_path / "out", {name: source}, settings, part_lines, documents=False)  # type: ignore[arg-type]
    return file


ALL = Shard(1, 1)


def upper(file: JobFile, shard: Shard = ALL) -> None:
    """Translates a share of the missing parts into capitals."""
    for part in file.read([index for index in file.missing() if shard.has(file.first_part + index)]):
        with file.writing(part) as text:
            text.writelines(f"{line.upper()}\n" for line in part.lines)


@pytest.mark.parametrize(
    ("lines", "documents", "parts"),
    [
        (["a"] * 7, False, [3, 3, 1]),
        (["a"] * 6, False, [3, 3]),
        ([], False, []),
        (["a", "", "a", "a", "a", "", "a", ""], False, [3, 3, 2]),
        # A document is never divided.
        (["a", "", "a", "a", "a", "", "a", ""], True, [6, 2]),
        (["a"] * 7, True, [7]),
    ],
)
def test_a_file_is_cut_into_parts(lines: list[str], documents: bool, parts: list[int]) -> None:
    assert list(cut(lines, 3, documents)) == parts


def test_every_part_belongs_to_one_shard() -> None:
    shards = [Shard(number, 3) for number in (1, 2, 3)]
    assert [[part for part in range(8) if shard.has(part)] for shard in shards] == [[0, 3, 6], [1, 4, 7], [2, 5]]


def test_the_process_that_finishes_last_joins_the_parts(tmp_path: Path, source: Path) -> None:
    first, second = opened(tmp_path, source), opened(tmp_path, source)
    upper(first, Shard(1, 2))
    assert not first.join()
    assert first.missing() == [1]
    upper(second, Shard(2, 2))
    assert second.join()
    assert first.join()
    assert (tmp_path / "out" / "in.vi").read_text() == "".join(f"{line.upper()}\n" for line in LINES)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["in.vi", "job.json"]
    assert opened(tmp_path, source).missing() == []


def test_a_part_is_there_whole_or_not_at_all(tmp_path: Path, source: Path) -> None:
    file = opened(tmp_path, source)
    [part] = file.read([1])

    def stopped() -> None:
        with file.writing(part) as text:
            text.write("half of it\n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert file.missing() == [0, 1, 2]
    assert list(file.parts.iterdir()) == []


def test_parts_have_the_same_numbers_in_every_order_of_the_inputs(tmp_path: Path, source: Path) -> None:
    other = tmp_path / "b.en"
    other.write_text("other\n")
    for inputs, shard in (
        ({"in.vi": source, "b.vi": other}, Shard(1, 2)),
        ({"b.vi": other, "in.vi": source}, Shard(2, 2)),
    ):
        files = open_job(tmp_path / "out", inputs, {"weights": "w"}, 100, documents=False)
        assert [(file.target.name, file.first_part) for file in files] == [("in.vi", 0), ("b.vi", 1)]
        for file in files:
            upper(file, shard)
    assert all(file.join() for file in files)
    assert (tmp_path / "out" / "b.vi").read_text() == "OTHER\n"


def test_two_processes_may_join_the_parts_at_once_where_nothing_is_locked(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.files.try_lock", lambda _: None)
    slow, fast = opened(tmp_path, source), opened(tmp_path, source)
    upper(slow)
    copy = shutil.copyfileobj

    def overtaken(part: Any, whole: Any) -> None:
        monkeypatch.setattr(shutil, "copyfileobj", copy)
        assert fast.join()
        copy(part, whole)

    monkeypatch.setattr(shutil, "copyfileobj", overtaken)
    assert slow.join()
    assert slow.target.read_text() == source.read_text().upper()
    assert sorted(path.name for path in slow.target.parent.iterdir()) == ["in.vi", "job.json"]


def test_parts_that_another_process_has_just_joined_are_not_missing(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = opened(tmp_path, source)
    upper(file)
    exists = Path.exists

    def joined(path: Path) -> bool:
        monkeypatch.setattr(Path, "exists", exists)
        before = path.exists()
        assert file.join()
        return before

    monkeypatch.setattr(Path, "exists", joined)
    assert file.missing() == []


def test_half_a_file_of_a_killed_process_is_deleted(tmp_path: Path, source: Path) -> None:
    file = opened(tmp_path, source, f"{'long' * 20}.vi")
    upper(file)

    # Nothing deletes the temporary file of a process that is killed.
    (tmp_path / "out" / f".{('long' * 20)[:50]}.0123456789abcdef.part").write_text("half")
    (tmp_path / "out" / ".another.0123456789abcdef.part").write_text("of another command")
    assert file.join()
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [".another.0123456789abcdef.part", "job.json", file.target.name]


def test_a_process_that_is_overtaken_ends_well(tmp_path: Path, source: Path) -> None:
    slow, fast = opened(tmp_path, source), opened(tmp_path, source)
    [part] = slow.read([2])
    with slow.writing(part) as text:
        upper(fast)
        assert fast.join()
        text.write("too late\n")
    assert slow.join()
    assert "too late" not in slow.target.read_text()


def test_a_process_that_is_overtaken_before_it_writes_ends_well(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, fast = opened(tmp_path, source), opened(tmp_path, source)
    [part] = slow.read([2])
    whole = translation_job.atomic_write

    def late(path: Path) -> Any:
        monkeypatch.setattr(translation_job, "atomic_write", whole)
        upper(fast)
        assert fast.join()
        return whole(path)

    monkeypatch.setattr(translation_job, "atomic_write", late)
    with slow.writing(part) as text:
        text.write("too late\n")
    assert slow.join()
    assert "too late" not in slow.target.read_text()


def test_a_process_of_a_killed_command_stops_when_the_file_is_finished(tmp_path: Path, source: Path) -> None:
    """Otherwise it would write parts that nobody deletes."""
    old, new = opened(tmp_path, source), opened(tmp_path, source)
    remaining = old.read(old.missing())
    next(remaining)
    upper(new)
    assert new.join()
    assert list(remaining) == []


def test_compressed_parts_are_joined_as_they_are(tmp_path: Path, source: Path) -> None:
    packed = tmp_path / "in.en.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    file = opened(tmp_path, packed, "in.vi.gz")
    upper(file)
    assert file.join()
    assert gzip.decompress(file.target.read_bytes()).decode() == source.read_text().upper()
    again = opened(tmp_path / "again", packed, "in.vi.gz")
    upper(again)
    assert again.join()
    assert again.target.read_bytes() == file.target.read_bytes()


def test_an_empty_file_becomes_an_empty_file(tmp_path: Path) -> None:
    empty = tmp_path / "empty.en.gz"
    empty.write_bytes(gzip.compress(b""))
    file = opened(tmp_path, empty, "empty.vi.gz")
    upper(file)
    assert file.join()
    assert gzip.decompress(file.target.read_bytes()) == b""
    assert file.target.stat().st_size > 0  # gunzip refuses a file without any bytes


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"weights": "v"}, "whose job was started with different weights: use the same run again"),
        ({"search.beam_size": 5}, "whose job was started with search.beam_size=1, not 5: use the same value again"),
        ({"part_lines": 3}, "whose job was started with shard_lines=4, not 3"),
        ({"verbatim": True}, "whose job was started with verbatim=null, not true"),
        ({"dictionary": "d"}, "whose job was started with a different dictionary: use the same one again"),
        ({"name": "other.vi"}, "whose job translates .*in.en, which is not in input: name the same files again"),
    ],
)
def test_another_job_is_refused(tmp_path: Path, source: Path, changes: dict[str, object], sentence: str) -> None:
    opened(tmp_path, source)
    with pytest.raises(Mistake, match=sentence):
        opened(tmp_path, source, **changes)  # type: ignore[arg-type]


def test_a_file_that_was_added_is_refused(tmp_path: Path, source: Path) -> None:
    opened(tmp_path, source)
    inputs, settings = {"in.vi": source, "b.vi": tmp_path / "b.en"}, {"weights": "w", "search.beam_size": 1}
    with pytest.raises(Mistake, match=r"whose job does not translate .*b\.en: name the same files again"):
        open_job(tmp_path / "out", inputs, settings, 4, documents=False)


def test_an_input_may_be_copied_but_not_changed(tmp_path: Path, source: Path) -> None:
    opened(tmp_path, source)
    source.write_text(source.read_text())  # the same content at another time
    opened(tmp_path, source)
    os.utime(source, (-1e9, -1e9))  # before 1970
    opened(tmp_path, source)
    source.write_text(source.read_text().replace("2", "3"))
    with pytest.raises(Mistake, match=r"in\.en has changed since the job in .*out began: restore it"):
        opened(tmp_path, source)


def test_an_input_that_shrinks_during_the_job_is_a_mistake(tmp_path: Path, source: Path) -> None:
    file = opened(tmp_path, source)
    source.write_text("one line\n")
    with pytest.raises(Mistake, match=r"in\.en has lost lines since the job began: restore it"):
        upper(file)


def test_files_of_the_user_are_not_overwritten(tmp_path: Path, source: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "in.vi").write_text("precious\n")
    with pytest.raises(Mistake, match=r"in\.vi exists already: choose another folder as output, or delete it"):
        opened(tmp_path, source)
    assert (tmp_path / "out" / "in.vi").read_text() == "precious\n"


def test_parts_of_a_job_without_a_record_are_not_used(tmp_path: Path, source: Path) -> None:
    (tmp_path / "out" / "in.vi.parts").mkdir(parents=True)
    with pytest.raises(Mistake, match=r"in\.vi\.parts exists already: choose another folder as output, or delete it"):
        opened(tmp_path, source)


def test_a_job_with_another_search_is_refused_by_the_name_of_the_search(tmp_path: Path, source: Path) -> None:
    inputs, beam = {"in.vi": source}, {"search.beam_size": 1, "search": "beam"}
    sampling = {"search.samples": 3, "search": "sampling"}
    open_job(tmp_path / "out", inputs, beam, 4, documents=False)
    with pytest.raises(Mistake, match="started with search=beam, not search=sampling: use the same search again"):
        open_job(tmp_path / "out", inputs, sampling, 4, documents=False)
    with pytest.raises(Mistake, match=r"started with search\.beam_size=1, not null: use the same value again"):
        open_job(tmp_path / "out", inputs, {"search": "beam"}, 4, documents=False)


def test_an_input_that_is_not_utf8_is_refused_before_anything_is_translated(tmp_path: Path) -> None:
    bad = tmp_path / "bad.en"
    bad.write_bytes(b"one\n\xff\n")
    with pytest.raises(Mistake, match=r"bad\.en, line 2 is not UTF-8"):
        opened(tmp_path, bad)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.en"]
