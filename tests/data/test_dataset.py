import pickle
import socket

import pytest

from nmt.config.direction import Direction
from nmt.data import dataset as module
from nmt.data.corpus import read_pairs
from nmt.data.dataset import encode_pairs, training_dataset
from nmt.data.filters import Filters
from nmt.errors import Mistake


@pytest.fixture
def build(direction, pair, tmp_path):
    def build(prefixes, exclude=(), filters=None, towards=direction):
        return training_dataset(prefixes, towards, pair, filters or Filters(), exclude, tmp_path / "cache")

    return build


def test_decoding_the_dataset_gives_the_corpus_back(build, corpus, direction, pair):
    data, report = build([corpus], filters=Filters(max_ratio=29.0))
    pairs = read_pairs(corpus, direction)
    assert [pair.source.decode(data[i][1]) for i in range(len(data))] == pairs.source
    assert [pair.target.decode(data[i][2]) for i in range(len(data))] == pairs.target
    assert (report.pairs, report.kept, report.dropped) == (211, 211, {})


def test_tone_marks_get_one_style_before_pairs_are_filtered(write, direction, pair, tmp_path):
    train = write("styles", ["peace", "peace", "health", "rest"], ["hoà bình", "hòa bình", "khoẻ", "nghỉ"])
    held_out = write("held", ["well"], ["khỏe"])
    pairs = pair.in_style("old", source=direction.source, target=direction.target)
    data, report = training_dataset([train], direction, pairs, Filters(), [held_out], tmp_path / "cache")
    assert [pair.target.decode(data[i][2]) for i in range(len(data))] == ["hòa bình", "nghỉ"]
    assert report.dropped == {"duplicate": 1, "overlap": 1}
    assert report.changed == {"vi tone marks": 2}
    plain, report = training_dataset([train], direction, pair, Filters(), [held_out], tmp_path / "cache")
    assert (len(plain), report.changed) == (4, {})


@pytest.mark.parametrize(("same", "told"), [(2, False), (3, True)])
def test_a_corpus_of_one_language_given_twice_is_reported(build, write, same, told):
    source = [f"{word} one" for word in ("a", "b", "c", "d", "e", "f", "g", "h", "i", "k")]
    target = [*source[:same], *(f"{line} một" for line in source[same:])]
    _, report = build([write("twice", source, target)])
    assert report.same == same
    assert (f"In {same} pairs both sides are the same text: is one language given twice?" in str(report)) == told


def test_lengths_count_eos_and_match_the_rows(build, corpus):
    data, report = build([corpus])
    assert sum(data.parts) == len(data) == report.kept
    assert data.lengths.tolist() == [[len(source) + 1, len(target) + 1] for _, source, target, _ in data]
    assert data.lengths.sum(axis=0).tolist() == [report.source_tokens, report.target_tokens]


def test_a_batch_has_its_rows_in_the_requested_order(build, corpus):
    data, _ = build([corpus])
    assert data.__getitems__([13, 2, 7]) == [data[13], data[2], data[7]]
    assert [example.number for example in data.__getitems__([13, 2, 7])] == [13, 2, 7]


def test_chunks_make_no_difference(build, corpus, monkeypatch, tmp_path):
    whole, report = build([corpus])
    monkeypatch.setattr(module, "_CHUNK", 17)
    monkeypatch.setattr(module, "_FORMAT", -1)
    chunked, chunked_report = build([corpus])
    assert list(chunked) == list(whole)
    assert chunked_report == report
    assert len(list((tmp_path / "cache" / "datasets").iterdir())) == 2


def test_the_second_call_reads_the_cache(build, corpus, monkeypatch):
    first, report = build([corpus])
    monkeypatch.setattr(module, "_write", lambda *_: pytest.fail("written again"))
    again, again_report = build([corpus])
    assert list(again) == list(first)
    assert again_report == report


@pytest.mark.parametrize(("name", "keep"), [("pairs.arrow", 99), ("pairs.arrow", 0), ("report.json", 0)])
def test_a_damaged_cache_is_made_again(build, corpus, tmp_path, caplog, name, keep):
    data, report = build([str(corpus)])
    rows = data.rows[:]
    [file] = tmp_path.rglob(name)
    file.write_bytes(file.read_bytes()[:keep])
    again, report_again = build([str(corpus)])
    assert (again.rows[:], report_again) == (rows, report)
    assert sum("in the cache is damaged: it is made again" in message for message in caplog.messages) == 1


def test_a_change_of_content_filters_direction_or_exclusion_is_never_stale(build, write):
    prefix = write("a", ["one", "two", "two"], ["một", "hai", "hai"])
    held_out = write("b", ["one"], ["một"])
    assert build([prefix])[1].kept == 2
    assert build([prefix], filters=Filters(drop_duplicates=False))[1].kept == 3
    assert build([prefix], exclude=[held_out])[1].kept == 1
    assert build([prefix], towards=Direction("vi", "en"))[0][0][1] == build([prefix])[0][0][2]
    write("a", ["one", "two", "six"], ["một", "hai", "sáu"])
    assert build([prefix])[1].kept == 3


def test_the_same_files_in_another_language_are_another_dataset(build, write, tmp_path):
    """Pairs whose languages are swapped are known by their Vietnamese side."""
    prefix = write("a", ["một hai ba này là đúng", "two"], ["this is the one that was swapped", "hai"])
    (tmp_path / "a.fr").write_bytes((tmp_path / "a.vi").read_bytes())
    assert build([prefix], towards=Direction("en", "fr"))[1].kept == 2
    assert build([prefix])[1].kept == 1


def test_the_report_counts_every_reason(build, write):
    long, uneven = " ".join(["cat"] * 31), " ".join(["chó"] * 13)
    first = write("a", ["i see", "i see", "", "e\u0301\t", long], ["tôi", "tôi", "bạn", "a", "a"])
    second = write("b", ["cat", "you"], [uneven, "bạn\u00a0ta"])
    held_out = write("c", ["you", "never"], ["không", "bao giờ"])
    _, report = build([first, second], [held_out], Filters(max_tokens=29, max_ratio=5.0))
    assert (report.pairs, report.kept) == (7, 2)
    assert report.dropped == {"duplicate": 1, "empty": 1, "overlap": 1, "too long": 1, "ratio": 1}
    assert report.changed == {"en nfc": 1, "en control": 1, "vi spaces": 1}
    assert report.parts == [2, 0]
    assert str(report) == (
        f"7 pairs, 2 kept ({report.source_tokens} source and {report.target_tokens} target tokens); dropped: "
        "1 duplicate, 1 empty, 1 overlap, 1 too long, 1 ratio; lines normalized: 1 en control, 1 en nfc, 1 vi spaces"
    )


def test_the_pairs_of_each_corpus_are_counted_across_chunks(build, write, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 3)
    first = write("a", ["i see", "", "you see", "we see", "i see"], ["tôi", "bạn", "bạn", "chúng", "tôi"])
    second = write("b", ["cat", "you see", "dog", "house"], ["mèo", "bạn", "chó", "nhà"])
    data, report = build([first, second])
    assert report.parts == data.parts == [3, 3]


def test_building_is_silent_and_offline(build, corpus, capfd, monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", None)
    build([corpus])
    build([corpus])
    assert capfd.readouterr() == ("", "")


def test_the_data_can_be_pickled_for_workers(build, corpus):
    data, _ = build([corpus])
    assert list(pickle.loads(pickle.dumps(data))) == list(data)


def test_every_held_out_pair_is_encoded(write, direction, pair):
    pairs = read_pairs(write("t", ["", "i see", "i see"], ["tôi", "", ""]), direction)
    examples = encode_pairs(pairs, pair)
    assert [example.number for example in examples] == [0, 1, 2]
    assert [pair.source.decode(example.source) for example in examples] == pairs.source
    assert [pair.target.decode(example.target) for example in examples] == pairs.target


def test_an_empty_result_is_refused_and_not_cached(build, corpus, tmp_path):
    with pytest.raises(Mistake, match=r"No training pair is left: 211 pairs, 0 kept .* 211 overlap"):
        build([corpus], [corpus])
    assert list((tmp_path / "cache" / "datasets").iterdir()) == []


def test_unequal_line_counts_are_refused_and_not_cached(build, corpus, write, tmp_path):
    with pytest.raises(Mistake, match=r"short\.en has 2 lines but .*short\.vi has 1"):
        build([corpus, write("short", ["one", "two"], ["một"])])
    assert list((tmp_path / "cache" / "datasets").iterdir()) == []


def test_a_missing_corpus_is_a_mistake_of_the_user(build, corpus, tmp_path):
    with pytest.raises(Mistake, match=r"^There is no file .*absent\.en; a corpus PREFIX consists of"):
        build([corpus], [str(tmp_path / "absent")])
