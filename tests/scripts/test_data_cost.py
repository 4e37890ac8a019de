"""scripts/bench/data_cost.py, on a corpus of a few lines."""

import os
from argparse import Namespace
from pathlib import Path

import pytest

from nmt.data import corpus, known_files
from nmt.errors import Mistake
from scripts.bench import data_cost
from scripts.bench.data_cost import made_up, run, start, table


def test_a_made_up_corpus_is_parallel_and_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        made_up(tmp_path / name, 1000)
    texts = [(tmp_path / name / f"train.{side}").read_text() for side in ("en", "vi") for name in ("one", "other")]
    assert texts[0] == texts[1] != texts[2] == texts[3]
    assert [len(text.splitlines()) for text in texts] == [1000] * 4
    assert 14 < sum(len(text.split()) for text in texts) / 4000 < 18


def test_a_later_start_reads_no_line_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As nmt.train does, it remembers in the cache that all lines can be read, and the digests of their files."""
    made_up(tmp_path, 100)
    for side in ("en", "vi"):
        os.utime(tmp_path / f"train.{side}", (1e9, 1e9))
    monkeypatch.setattr(known_files, "_SETTLED", 0)
    monkeypatch.setattr(data_cost, "learned_tokenizers", lambda *_: pytest.fail("all files are known"))
    with pytest.raises(pytest.fail.Exception, match="all files are known"):
        start(tmp_path, 5)
    monkeypatch.setattr(known_files, "iter_lines", lambda *_: pytest.fail("a file is read"))
    monkeypatch.setattr(corpus, "file_digest", lambda *_: pytest.fail("a file is read"))
    with pytest.raises(pytest.fail.Exception, match="all files are known"):
        start(tmp_path, 5)


@pytest.mark.soak
def test_a_start_gives_batches(tmp_path: Path) -> None:
    made_up(tmp_path, 2000)
    first, later = start(tmp_path, 5), start(tmp_path, 5)
    assert first["pairs"] == later["pairs"] > 1000
    assert min(first.values()) > 0


def test_the_table_counts_bytes_beyond_the_smallest_corpus() -> None:
    def cost(pairs: int, own: int) -> dict[str, float]:
        keys = ("seconds_to_first_batch", "batches_per_second", "target_tokens_per_second", "peak_bytes")
        return {"pairs": pairs, "own_bytes": own, **dict.fromkeys(keys, 2**20)}

    sizes = [
        {"lines": 1000, "first": cost(900, 0), "later": cost(900, 10**6)},
        {"lines": 2000, "first": cost(1900, 0), "later": cost(1900, 10**6 + 16_000)},
    ]
    small, large = table({"sizes": sizes}).splitlines()[2:]
    assert small.split(" | ")[5] == ""
    assert large.split(" | ")[5] == "16.0"


@pytest.mark.parametrize("lines", ["9999", "10000,x", "20000,10000", "10000,10000", ""])
def test_sizes_must_be_ascending(lines: str) -> None:
    with pytest.raises(Mistake, match=f"--lines is '{lines}'; use ascending numbers of at least 10000"):
        run(Namespace(lines=lines, batches=5, rounds=1))


def test_too_little_to_measure_is_refused() -> None:
    with pytest.raises(Mistake, match="--batches 1 must be at least 2, --rounds 1 at least 1"):
        run(Namespace(lines="10000", batches=1, rounds=1))
