"""scripts/benchmark.py attention: what it measures is the same score, and its memory is counted."""

import json

import pytest
import torch

import attention_cost
from nmt.attention import kernels


def test_both_ways_are_the_same_score():
    torch.manual_seed(3)
    queries, keys, vector = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 11, 7), torch.randn(3, 7)
    plain, ours = (score(queries, keys, vector) for score in attention_cost.WAYS.values())
    torch.testing.assert_close(plain, ours)


def test_memory_is_what_was_held_at_a_time():
    def work() -> None:
        for _ in range(3):
            torch.ones(1000, 101).add_(torch.ones(1000, 101))

    assert attention_cost.peak_memory(work) == pytest.approx(2 * 1000 * 101 * 4, rel=0.01)


def test_the_record_holds_both_ways(monkeypatch):
    monkeypatch.setitem(kernels.BLOCK, "cpu", 2**10)
    record = attention_cost.measure((2, 3, 37, 41, 13), rounds=3, device=torch.device("cpu"))
    assert record["score_bytes"] == 2 * 3 * 37 * 41 * 4
    assert set(record["seconds"]) == set(record["peak_bytes"]) == set(attention_cost.WAYS)
    assert all(len(found) == 3 for found in record["seconds"].values())
    assert record["peak_in_scores"]["plain formula"] > 13
    assert record["peak_in_scores"]["recomputed in blocks"] < 5
    assert json.loads(json.dumps(record)) == record
    table = attention_cost.table(record)
    assert "batch 2, 3 heads, 37 queries, 41 keys, hidden 13" in table
    assert table.count("\n| ") == 3


def test_a_size_below_one_is_refused():
    parser = attention_cost.argparse.ArgumentParser()
    attention_cost.add_arguments(parser)
    with pytest.raises(ValueError, match="must be at least 1"):
        attention_cost.run(parser.parse_args(["--keys", "0"]))
