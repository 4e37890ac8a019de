"""A corpus is split without overlap: every pair lands in one part, and no line of a held-out pair is anywhere else."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nmt.config.direction import Direction
from nmt.data.corpus import read_aligned
from nmt.data.split import PARTS, assign_parts, split_corpus
from nmt.errors import Mistake
from nmt.text import normalize
from nmt.text.lines import read_lines

Line = tuple[str, str]


def pairs_with_repetitions(number: int = 997) -> list[Line]:
    """Short pairs over few words, of which many share a side, are duplicates or have an empty side."""
    draw = random.Random(3)

    def line(words: str) -> str:
        return " ".join(draw.choices(words.split(), k=draw.choice([0, 1, 2, 5, 7, 9])))

    return [(line("a b c d e é"), line("q r s t u ü")) for _ in range(number)]


def written(folder: Path, direction: Direction) -> dict[str, list[Line]]:
    found = {}
    for part in PARTS:
        if (folder / f"{part}.{direction.source}").exists():
            source, target = read_aligned(str(folder / part), direction)
            found[part] = list(zip(source, target, strict=True))
    return found


def columns(pairs: list[Line]) -> tuple[list[str], list[str]]:
    source, target = zip(*pairs, strict=True)
    return list(source), list(target)


@pytest.fixture
def repetitive(write) -> str:
    return write("all", *columns(pairs_with_repetitions()))


@pytest.mark.parametrize("seed", [1, 2])
def test_no_line_of_a_held_out_pair_is_in_another_part(repetitive, direction, tmp_path, seed):
    counts = split_corpus(repetitive, direction, tmp_path / "out", valid=61, test=53, seed=seed)
    parts = written(tmp_path / "out", direction)
    assert {part: len(pairs) for part, pairs in parts.items()} == {part: counts[part] for part in PARTS}
    assert (counts["valid"], counts["test"]) == (61, 53)
    for part in ("valid", "test"):
        assert all(source and target for source, target in parts[part])
        elsewhere = [pair for other in PARTS if other != part for pair in parts[other]]
        for held_out, others in zip(columns(parts[part]), columns(elsewhere), strict=True):
            assert not set(held_out) & set(others)
            assert len(set(held_out)) == len(held_out)


def test_every_pair_is_in_one_part_or_a_duplicate_of_a_held_out_one(repetitive, direction, tmp_path):
    counts = split_corpus(repetitive, direction, tmp_path / "out", valid=61, test=53, seed=1)
    parts, before = written(tmp_path / "out", direction), pairs_with_repetitions()
    missing = Counter(before) - Counter(pair for pairs in parts.values() for pair in pairs)
    assert sum(missing.values()) == counts["left out"] == len(before) - sum(map(len, parts.values()))
    assert set(missing) <= {*parts["valid"], *parts["test"]}
    for pairs in parts.values():  # in the order of the corpus
        rest = iter(before)
        assert all(pair in rest for pair in pairs)


def test_duplicates_of_held_out_pairs_are_left_out(write, direction, tmp_path):
    pairs = [(f"source {number}", f"target {number}") for number in range(31)] * 3
    counts = split_corpus(write("all", *columns(pairs)), direction, tmp_path / "out", valid=7, test=5, seed=1)
    assert counts == {"train": 3 * 19, "valid": 7, "test": 5, "left out": 2 * 12}


def test_lines_are_compared_after_normalization(write, direction, tmp_path):
    pairs = [("e\u0301 a", "x"), ("é  a", "y"), *((f"{number}", f"n{number}") for number in range(8))]
    split_corpus(write("all", *columns(pairs)), direction, tmp_path / "out", valid=4, test=4, seed=1)
    assert written(tmp_path / "out", direction)["train"] == pairs[:2]
    assert normalize(pairs[0][0]) == normalize(pairs[1][0])


def test_copies_that_differ_in_case_punctuation_or_spaces_count_as_equal(write, direction, tmp_path):
    pairs = [("We met.", "x"), ("“we  met”", "y"), *((f"{number}", f"n{number}") for number in range(8))]
    split_corpus(write("all", *columns(pairs)), direction, tmp_path / "out", valid=4, test=4, seed=1)
    assert written(tmp_path / "out", direction)["train"] == pairs[:2]


def test_the_seed_decides_the_split_and_the_direction_does_not(repetitive, direction, tmp_path):
    for name, way, seed in (("a", "en-vi", 1), ("b", "en-vi", 1), ("back", "vi-en", 1), ("c", "en-vi", 2)):
        split_corpus(repetitive, Direction.parse(way), tmp_path / name, valid=50, test=50, seed=seed)
    first, again, back, other = (written(tmp_path / name, direction) for name in ("a", "b", "back", "c"))
    assert first == again == back
    assert first["test"] != other["test"]


def test_most_held_out_pairs_stay_when_the_corpus_grows(write, direction, tmp_path):
    pairs = [(f"source {number}", f"target {number}") for number in range(1100)]
    for name, some in (("before", pairs[:1000]), ("after", pairs)):
        split_corpus(write(name, *columns(some)), direction, tmp_path / f"{name}_out", valid=0, test=100, seed=1)
    before, after = (set(written(tmp_path / f"{name}_out", direction)["test"]) for name in ("before", "after"))
    assert len(before & after) > 80


def test_shares_count_pairs_of_the_corpus(repetitive, direction, tmp_path):
    counts = split_corpus(repetitive, direction, tmp_path / "out", valid=0.05, test=0.1, seed=1)
    few = split_corpus(repetitive, direction, tmp_path / "few", valid=0.00001, test=0.00001, seed=1)
    assert few["valid"] == few["test"] == 1
    assert (counts["valid"], counts["test"]) == (round(0.05 * 997), round(0.1 * 997))


def test_a_part_of_no_pairs_has_no_files(repetitive, direction, tmp_path):
    split_corpus(repetitive, direction, tmp_path / "out", valid=11, test=0, seed=1)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"train.en", "train.vi", "valid.en", "valid.vi"}


@pytest.mark.parametrize("way", ["en-vi", "vi-en"])
def test_alignments_follow_their_pairs_and_nothing_else_does(write, tmp_path, way):
    pairs = [(f"source {number}", f"target {number}") for number in range(31)]
    prefix = write("a.b", *columns(pairs), end="\r\n")
    (tmp_path / "a.b.en-vi.align").write_text("".join(f"0-{number}\n" for number in range(31)))
    (tmp_path / "a.b.notes").write_text("".join("d\n" for _ in range(31)))
    split_corpus(prefix, Direction.parse(way), tmp_path / "out", valid=5, test=7, seed=1)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        f"{part}.{ending}" for part in PARTS for ending in ("en", "vi", "en-vi.align")
    }
    for part in PARTS:
        numbers = [line.split()[1] for line in read_lines(tmp_path / "out" / f"{part}.en")]
        assert read_lines(tmp_path / "out" / f"{part}.en-vi.align") == [f"0-{number}" for number in numbers]
        assert b"\r" not in (tmp_path / "out" / f"{part}.en").read_bytes()


def test_an_alignment_file_of_another_length_is_refused(repetitive, direction, tmp_path):
    Path(f"{repetitive}.en-vi.align").write_text("0-0\n")
    with pytest.raises(Mistake, match=r"all\.en-vi\.align has 1 lines, but the corpus has 997; fix or remove"):
        split_corpus(repetitive, direction, tmp_path / "out", valid=5, test=5, seed=1)
    assert not (tmp_path / "out").exists()


def test_an_existing_folder_is_not_touched(repetitive, direction, tmp_path):
    with pytest.raises(Mistake, match=r" exists; choose a new folder with split\.out=, or delete it"):
        split_corpus(repetitive, direction, tmp_path, valid=5, test=5, seed=1)


def test_an_interruption_leaves_nothing_behind(repetitive, direction, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = set(tmp_path.iterdir())
    monkeypatch.setattr("nmt.data.split._write_parts", interrupt)
    with pytest.raises(KeyboardInterrupt):
        split_corpus(repetitive, direction, tmp_path / "out", valid=5, test=5, seed=1)
    assert set(tmp_path.iterdir()) == before


def test_too_many_held_out_pairs_are_refused(repetitive, write, direction, tmp_path):
    with pytest.raises(Mistake, match=r"ask for 600 pairs, but only \d+ of 997 pairs share no line with another"):
        split_corpus(repetitive, direction, tmp_path / "out", valid=300, test=300, seed=1)
    pairs = [(f"source {number}", f"target {number}") for number in range(31)]
    with pytest.raises(Mistake, match=r"No pair of .*few is left for training; lower split\.valid and split\.test"):
        split_corpus(write("few", *columns(pairs)), direction, tmp_path / "out", valid=30, test=1, seed=1)
    assert not (tmp_path / "out").exists()


def test_too_many_held_out_documents_are_refused(write, direction, tmp_path):
    prefix = write("few", *columns([(f"source {number}", f"target {number}") for number in range(31)]))
    (tmp_path / "few.doc").write_text("".join(f"{number // 10}\n" for number in range(31)), encoding="utf-8")
    with pytest.raises(Mistake, match=r"ask for 9 documents, but only 4 of 4 documents share no line with another one"):
        split_corpus(prefix, direction, tmp_path / "out", valid=5, test=4, seed=1)


def test_only_hashes_that_occur_once_are_held_out_by_hand():
    #          shared source    duplicate       empty     free     free
    hashes = [[5, 1], [5, 2], [6, 3], [6, 3], [0, 9], [7, 4], [8, 8]]
    parts = assign_parts(np.array(hashes, dtype=np.uint64), valid=2, test=1)
    # In the order of source + target: 9, 11, 16.
    assert parts.tolist() == [0, 0, 2, 3, 0, 1, 1]


def test_documents_are_kept_whole(write, direction, tmp_path):
    lines = [f"line {number} of all" for number in range(60)]
    prefix = write("all", lines, lines)
    names = [f"text {number // 7}" for number in range(60)]
    Path(f"{prefix}.doc").write_text("".join(f"{name}\n" for name in names))
    counts = split_corpus(prefix, direction, tmp_path / "out", valid=2, test=1, seed=1)
    parts = {part: read_lines(tmp_path / "out" / f"{part}.doc") for part in PARTS}
    assert {part: len(set(found)) for part, found in parts.items()} == {"train": 6, "valid": 2, "test": 1}
    assert sum(map(len, parts.values())) == sum(counts.values()) == 60
    for part, found in parts.items():
        assert len(found) == counts[part]
        expected = [line for line, name in zip(lines, names, strict=True) if name in found]
        assert read_lines(tmp_path / "out" / f"{part}.{direction.source}") == expected


def test_training_documents_lose_the_lines_of_held_out_documents(write, direction, tmp_path):
    """All documents share the source of their title; documents 0 and 1, 2 and 3, and so on share their third target."""
    sources = [line for number in range(9) for line in ("Title", f"a {number}", f"b {number}", "")]
    targets = [line for number in range(9) for line in (f"title {number}", f"c {number}", f"end {number // 2}", "")]
    prefix = write("all", sources, targets)
    Path(f"{prefix}.doc").write_text("".join(f"text {number}\n" for number in range(9) for _ in range(4)))
    counts = split_corpus(prefix, direction, tmp_path / "out", valid=2, test=1, seed=2)
    parts = written(tmp_path / "out", direction)
    assert [len(parts[part]) for part in ("valid", "test")] == [8, 4]
    held_out = [*parts["valid"], *parts["test"]]
    for training, others in zip(columns(parts["train"]), columns(held_out), strict=True):
        assert not (set(training) & set(others)) - {""}
    assert len(read_lines(tmp_path / "out" / "train.doc")) == counts["train"] == len(parts["train"])
    assert counts["left out"] == 9 * 4 - sum(map(len, parts.values())) > 6
    assert len([pair for pair in parts["train"] if pair == ("", "")]) == 6
