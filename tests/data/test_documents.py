import re

import numpy as np
import pytest

from nmt.config.direction import Direction
from nmt.data.corpus import read_pairs
from nmt.data.dataset import encode_pairs, training_dataset
from nmt.data.documents import (
    ContextWindow,
    check_documents,
    document_file,
    documents_of_file,
    earlier_pairs,
    read_documents,
)
from nmt.data.drawn_pairs import Draw, DrawnPairs, SubwordSampling, lengths_in_context
from nmt.data.example import Example
from nmt.data.filters import Filters
from nmt.errors import Mistake
from nmt.text import EOS

NAMES = ["a", "a", "a", "b", "c", "c"]


@pytest.fixture
def documents(tmp_path):
    """Writes a corpus with boundaries and returns its prefix."""

    def write(name, lines, names):
        for side in ("en", "vi"):
            (tmp_path / f"{name}.{side}").write_text("".join(f"{line} {side}\n" for line in lines), encoding="utf-8")
        (tmp_path / f"{name}.doc").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        return str(tmp_path / name)

    return write


LINES = ["one red cat", "two dogs", "two", "red", "a bird", "one"]


def test_the_pairs_before_a_line_are_those_of_its_document():
    pairs = [([number], [10 + number]) for number in range(6)]
    found = earlier_pairs(NAMES, pairs, ContextWindow(2))
    assert [[source for [source], _ in each] for each in found] == [[], [0], [0, 1], [], [], [4]]
    assert earlier_pairs(NAMES, pairs, ContextWindow(1))[2] == [pairs[1]]
    assert earlier_pairs(NAMES, pairs, ContextWindow()) == [[]] * 6


def test_empty_lines_are_not_read_before_others():
    pairs = [([1], [2]), ([], []), ([3], [4])]
    assert earlier_pairs(["a"] * 3, pairs, ContextWindow(1))[2] == [pairs[0]]


def test_joined_sources_end_in_eos():
    example = Example(4, [7], [8], [([1, 2], [3]), ([4], [5])])
    assert ContextWindow(2, joined=True)(example) == Example(4, [1, 2, EOS, 4, EOS, 7], [8])
    assert ContextWindow(2)(example) == example


def test_lengths_in_context_by_loops():
    rng = np.random.default_rng(1)
    lengths, numbers = rng.integers(1, 30, (40, 2)), np.sort(rng.integers(0, 9, 40))
    for window in (ContextWindow(3), ContextWindow(1), ContextWindow(2, translations=True)):
        expected = lengths.copy()
        for line in range(40):
            for back in range(1, window.sentences + 1):
                if back <= line and numbers[line - back] == numbers[line]:
                    expected[line, 0] += lengths[line - back, 0]
                    expected[line, 1] += lengths[line - back, 1] * window.translations
        assert (lengths_in_context(lengths, numbers, window) == expected).all()


@pytest.mark.parametrize("joined", [False, True])
def test_drawn_pairs_have_the_pairs_before_them(documents, pair, direction, tmp_path, joined):
    prefix, window = documents("train", LINES, NAMES), ContextWindow(2, joined)
    rows, report = training_dataset(
        [prefix], direction, pair, Filters(max_ratio=9.0), [], tmp_path / "cache", documents=True
    )
    assert report.kept == 6
    drawn = DrawnPairs(rows, window=window)
    pairs = read_pairs(prefix, direction)
    expected = encode_pairs(pairs, pair, window, read_documents(prefix, direction))
    order = [5, 2, 0, 4, 1, 3]
    assert drawn.__getitems__([Draw(0, number) for number in order]) == [expected[number] for number in order]
    if joined:
        assert drawn.lengths[:, 0].tolist() == [len(example.source) + 1 for example in expected]


def test_sampling_gives_earlier_pairs_the_segmentation_that_they_have_themselves(documents, pair, direction, tmp_path):
    prefix = documents("train", LINES, NAMES)
    rows, _ = training_dataset([prefix], direction, pair, Filters(max_ratio=9.0), [], tmp_path / "c", documents=True)
    drawn = DrawnPairs(rows, [SubwordSampling(pair, 0.5, seed=3, longest=(99, 99))], window=ContextWindow(1))
    before, after = drawn.__getitems__([Draw(2, 0), Draw(2, 1)])
    assert after.earlier == [(before.source, before.target)]


def test_documents_are_dropped_whole(documents, pair, direction, tmp_path):
    """A document that is repeated or held out is dropped; lines that documents share are not."""
    train = documents("train", ["x y", "z", "x y", "w", "x y", "z", "q"], ["1", "1", "2", "2", "3", "3", "4"])
    valid = documents("valid", ["x y", "w"], ["5", "5"])
    (tmp_path / "test.en").write_text("q en\n")
    (tmp_path / "test.vi").write_text("u vi\n")
    held_out = [valid, str(tmp_path / "test")]
    _, report = training_dataset([train], direction, pair, Filters(), held_out, tmp_path / "cache", documents=True)
    assert (report.kept, report.dropped) == (2, {"overlap": 3, "duplicate": 2})
    _, alone = training_dataset([train], direction, pair, Filters(), held_out, tmp_path / "cache")
    assert (alone.kept, alone.dropped) == (1, {"overlap": 3, "duplicate": 3})


def test_a_line_without_boundaries_may_not_repeat_one_of_a_held_out_document(
    documents, write, pair, direction, tmp_path
):
    valid = documents("valid", ["x y", "w"], ["5", "5"])
    plain = write("plain", ["x y en", "r en"], ["s vi", "t vi"])
    _, report = training_dataset([plain], direction, pair, Filters(), [valid], tmp_path / "cache", documents=True)
    assert (report.kept, report.dropped) == (1, {"overlap": 1})


def test_other_boundaries_are_another_cached_dataset(documents, pair, direction, tmp_path):
    prefix = documents("train", LINES, NAMES)
    build = lambda: training_dataset(  # noqa: E731
        [prefix], direction, pair, Filters(max_ratio=9.0), [], tmp_path / "cache", documents=True
    )[0].documents.tolist()
    before = build()
    assert len(set(before)) == 3
    (tmp_path / "train.doc").write_text("".join(f"{n}\n" for n in range(6)))
    assert len(set(build())) == 6


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "a"], "train.doc has 2 lines but the text has 6; line n must name the document that line n of the text"),
        (["a", "", "a", "b", "b", "b"], "train.doc, line 2 is empty; it must name the document that line 2"),
        (
            ["a", "b", "a", "a", "a", "a"],
            "line 3: document 'a' appears again; its first lines start at line 1",
        ),
    ],
)
def test_boundaries_that_do_not_fit(documents, direction, names, message):
    with pytest.raises(Mistake, match=re.escape(message)):
        check_documents(documents("train", LINES, names), direction)


def test_a_corpus_without_boundaries(tmp_path):
    for side in ("en", "vi"):
        (tmp_path / f"plain.{side}").write_text("one\n")
    direction = Direction("en", "vi")
    assert document_file(str(tmp_path / "plain"), direction) is None
    assert not check_documents(str(tmp_path / "plain"), direction)
    assert read_documents(str(tmp_path / "plain"), direction) is None


def test_both_directions_have_the_same_boundaries(documents):
    prefix = documents("train", LINES, NAMES)
    assert read_documents(prefix, Direction("vi", "en")) == read_documents(prefix, Direction("en", "vi"))
    path = document_file(prefix, Direction("en", "vi"))
    assert path is not None
    assert documents_of_file(path, 6) == [0, 0, 0, 1, 2, 2]
