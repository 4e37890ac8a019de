"""Plain copies of tokenised corpora: line by line, made once, and never the published file itself."""

import logging

from nmt.data.corpus import read_lines
from nmt.data.detokenized import detokenized


def test_a_copy_has_plain_lines_in_their_order(write, direction, tmp_path, caplog):
    prefix = write("tokens", ["It 's me .", "", "one , two"], ["Tôi đây .", "", "một , hai"], end="\r\n")
    with caplog.at_level(logging.INFO):
        copy = detokenized(prefix, direction, tmp_path / "cache")
        assert detokenized(prefix, direction, tmp_path / "cache") == copy
    assert [read_lines(tmp_path / f"{copy}.{side}") for side in ("en", "vi")] == [
        ["It's me.", "", "one, two"],
        ["Tôi đây.", "", "một, hai"],
    ]
    assert caplog.text.count("in plain text: 2 of 3 lines differ") == 2
    assert read_lines(tmp_path / "tokens.en")[0] == "It 's me ."


def test_equal_files_under_two_names_have_copies_under_both(write, direction, tmp_path):
    for name in ("tokens", "moved"):
        copy = detokenized(write(name, ["a ."], ["b ."]), direction, tmp_path / "cache")
        assert [read_lines(tmp_path / f"{copy}.{side}") for side in ("en", "vi")] == [["a."], ["b."]]


def test_other_content_is_another_copy(write, direction, tmp_path):
    before = detokenized(write("tokens", ["a ."], ["b ."]), direction, tmp_path / "cache")
    assert detokenized(write("tokens", ["a !"], ["b ."]), direction, tmp_path / "cache") != before
