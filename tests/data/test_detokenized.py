"""Plain-text copies of tokenized corpora: line by line, made once; the published file stays as it is."""

import logging

from nmt.data.detokenized import detokenized
from nmt.text.lines import read_lines


def test_a_copy_has_the_detokenized_lines_in_order(write, direction, tmp_path, caplog):
    prefix = write("tokens", ["It 's me .", "", "one , two"], ["Tôi đây .", "", "một , hai"], end="\r\n")
    with caplog.at_level(logging.INFO):
        copy = detokenized(prefix, direction, tmp_path / "cache")
        assert detokenized(prefix, direction, tmp_path / "cache") == copy
    assert [read_lines(tmp_path / f"{copy}.{side}") for side in ("en", "vi")] == [
        ["It's me.", "", "one, two"],
        ["Tôi đây.", "", "một, hai"],
    ]
    assert caplog.text.count("2 of 3 lines changed") == 2
    assert read_lines(tmp_path / "tokens.en")[0] == "It 's me ."


def test_equal_files_share_a_copy(write, direction, tmp_path):
    copies = [detokenized(write(name, ["a ."], ["b ."]), direction, tmp_path / "cache") for name in ("tokens", "moved")]
    assert copies[0] == copies[1]
    assert [read_lines(tmp_path / f"{copies[0]}.{side}") for side in ("en", "vi")] == [["a."], ["b."]]


def test_changed_files_get_a_new_copy(write, direction, tmp_path):
    before = detokenized(write("tokens", ["a ."], ["b ."]), direction, tmp_path / "cache")
    assert detokenized(write("tokens", ["a !"], ["b ."]), direction, tmp_path / "cache") != before
