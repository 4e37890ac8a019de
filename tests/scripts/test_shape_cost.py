"""scripts/bench/shape_cost.py, with a tiny model; nothing here depends on the clock."""

import json
import os
import random
from argparse import ArgumentParser, Namespace
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nmt.data.batch import collate
from nmt.data.example import Example
from nmt.errors import Mistake
from scripts.bench import shape_cost

# Lightning's remarks on a trainer.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec")

TINY = [
    "model.dim=12",
    "model.ffn_dim=19",
    "model.num_heads=2",
    "model.num_layers=1",
]
LIMITS = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")


class SameProcess(ThreadPoolExecutor):
    """Saves starting a process for each measurement."""

    def __init__(self, workers: int, context: Any, initializer: Any, arguments: Any) -> None:
        super().__init__(workers, initializer=initializer, initargs=arguments)


def options(*given: str) -> Namespace:
    parser = ArgumentParser()
    shape_cost.add_arguments(parser)
    return parser.parse_args(given)


def test_batches_of_distinct_shapes_are_the_first_of_their_shapes() -> None:
    lengths = [(3, 4), (3, 5), (3, 4), (2, 5), (3, 5)]
    batches = [collate([Example(number, [5] * s, [5] * t)]) for number, (s, t) in enumerate(lengths)]
    assert [int(batch.indices) for batch in shape_cost.distinct_shapes(batches)] == [0, 1, 3]


def test_every_size_is_measured_with_every_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, limits = random.Random(3), []
    for language in ("en", "vi"):
        lines = [" ".join(draw.choices(["one", "two"], k=draw.randint(2, 11))) + f" {n}" for n in range(211)]
        (tmp_path / f"train.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    measure = shape_cost.measure

    def noting(*given: Any) -> dict[str, Any]:
        limits.append([os.environ[variable] for variable in LIMITS])
        return measure(*given)

    for variable in LIMITS:
        monkeypatch.setenv(variable, "64")
    monkeypatch.setattr(shape_cost, "measure", noting)
    monkeypatch.setattr(shape_cost, "ProcessPoolExecutor", SameProcess)
    sizes = ["--tokens", "60,101", "--cached", "7,9", "--interface-cached", "5", "--batches", "3"]
    given = ["--data", str(tmp_path / "train"), *sizes, "--precision", "32-true", "tokenizer.size=280", *TINY]
    record = shape_cost.run(options(*given, f"cache_dir={tmp_path / 'cache'}"))
    assert json.loads(json.dumps(record)) == record
    assert limits == [["7", "5"], ["9", "5"]] * 2
    assert [(each["tokens"], each["cached"]) for each in record["shapes"]] == [(60, 7), (60, 9), (101, 7), (101, 9)]
    for each in record["shapes"]:
        assert all(len(each[f"{name}_seconds"]) == 3 for name in ("new", "again", "later"))
        assert 0 <= each["padding"] < 1
    assert len(shape_cost.table(record).splitlines()) == 6


def test_the_table_shows_medians_of_times_and_of_ratios() -> None:
    times = {"new_seconds": [0.3, 0.4, 0.9], "again_seconds": [0.2, 0.4, 0.3], "later_seconds": [0.2, 0.4, 0.6]}
    record = {"shapes": [{"tokens": 2048, "cached": 64, **times, "padding": 0.0221, "peak_memory_bytes": 3 * 2**20}]}
    row = shape_cost.table(record).splitlines()[-1]
    assert row == "| 2,048 | 64 | 400 ms | 300 ms | 400 ms | 1.500 | 1.000 | 2.2% | 3 MiB |"


def test_too_few_shapes_are_refused(tmp_path: Path) -> None:
    for language in ("en", "vi"):
        (tmp_path / f"train.{language}").write_text("one two three 45678\n" * 99, encoding="utf-8")
    given = [f"data.train=[{tmp_path / 'train'}]", f"cache_dir={tmp_path / 'cache'}", "filters.drop_duplicates=false"]
    with pytest.raises(Mistake, match="training batches differ in shape, but --batches 7 needs 8"):
        shape_cost.measure([*given, "tokenizer.size=274", *TINY, "batching.batch_tokens=101"], 7)


def test_a_number_of_batches_below_one_is_refused() -> None:
    with pytest.raises(Mistake, match="--batches 0 must be at least 1"):
        shape_cost.run(options("--data", "x", "--batches", "0"))
