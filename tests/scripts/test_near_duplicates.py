import re
from pathlib import Path

import pytest

from nmt.errors import Mistake
from scripts.sample_corpus import near_duplicates

SOURCES = ["a b c d e", "A b C d x y z w", "a b c", "q r s t"]
TRAINING = ["z a b c d e f", "d x y z", "c d x y z"]


def test_the_overlap_is_the_largest_over_single_training_sentences():
    # Of "a b c d", "b c d x", "c d x y", "d x y z", "x y z w" the last training sentence has two, all three have three.
    assert near_duplicates.overlaps(SOURCES, TRAINING) == [1.0, 0.4, 0.0, 0.0]


def test_every_line_is_in_one_range_which_has_its_own_bleu():
    lines = ["one two three four five", "x y z w v u", "k l m n o p", "r s t u v w"]
    wrong = [*lines[:3], "r s t u w v"]
    rows = near_duplicates.rows([1.0, 0.25, 0.5, 0.0], wrong, lines)
    assert [row[:2] for row in rows] == [["0% to 25%", "1"], ["25% to 50%", "1"], ["50% to 100%", "2"]]
    assert rows[0][2] != "100.00"
    assert [row[2] for row in rows[1:]] == ["100.00", "100.00"]


def test_a_range_without_lines_has_no_bleu():
    assert near_duplicates.rows([0.0], ["a b c d"], ["a b c d"])[1:] == [
        ["25% to 50%", "0", ""],
        ["50% to 100%", "0", ""],
    ]


def test_prints_the_table_with_its_signature(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    files = {name: tmp_path / name for name in ("source", "reference", "hypotheses", "training")}
    for name, lines in zip(files, (SOURCES, SOURCES, SOURCES, TRAINING), strict=True):
        files[name].write_text("\n".join(lines) + "\n")
    options = [f"--{name}={files[name]}" for name in ("source", "reference", "hypotheses")]
    near_duplicates.main([*options, str(files["training"])])
    printed = capsys.readouterr().out
    assert re.search(r"\| 50% to 100% +\| +1 +\| +100\.00 +\|", printed)
    assert "BLEU nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" in printed


def test_unequal_numbers_of_lines_are_refused(tmp_path: Path):
    (tmp_path / "two").write_text("a\nb\n")
    (tmp_path / "one").write_text("a\n")
    two, one = str(tmp_path / "two"), str(tmp_path / "one")
    with pytest.raises(Mistake, match="1 hypotheses but 2 references"):
        near_duplicates.main(["--source", two, "--reference", two, "--hypotheses", one, two])
