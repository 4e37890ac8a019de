"""scripts/bench/translation_cost.py, with commands that need no model."""

from argparse import Namespace
from pathlib import Path

import pytest

from nmt.errors import Mistake
from nmt.text.tokenizer import train_tokenizer
from scripts.bench import translation_cost
from scripts.bench.translation_cost import run, table


@pytest.fixture
def options(tmp_path: Path) -> Namespace:
    lines = ["một hai ba bốn năm", "bốn năm", "sáu"] * 7
    tokenizer = tmp_path / "tokenizer.model"
    tokenizer.write_bytes(train_tokenizer(lines, kind="bpe", size=280, character_coverage=1.0))
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Namespace(
        source=tmp_path / "in", system=["a=cat", "b=sed s/một/hai/"], tokenizer=tokenizer, rounds=3, reference=None
    )


def test_each_command_runs_in_each_round(options: Namespace) -> None:
    record = run(options)
    assert record["sentences"] == 21
    assert [len(system["seconds"]) for system in record["systems"].values()] == [3, 3]
    assert record["systems"]["a"]["pieces"] > 21
    assert all(system["peak_bytes"] > 100_000 for system in record["systems"].values())


def test_the_memory_of_this_process_does_not_count(options: Namespace) -> None:
    kept = bytearray(b"x") * 200_000_000
    assert max(system["peak_bytes"] for system in run(options)["systems"].values()) < len(kept) / 4


def test_a_first_use_is_outside_of_the_rounds(options: Namespace, tmp_path: Path) -> None:
    """Each command translates a sentence before the first round, then a sentence and the file in each."""
    calls = tmp_path / "calls"
    options.system, options.rounds = [f"a=echo a >> {calls}; cat", f"b=echo b >> {calls}; cat"], 2
    assert [len(system["seconds"]) for system in run(options)["systems"].values()] == [2, 2]
    assert calls.read_text().split() == ["a", "b", *"aabb" * 2]


def test_outputs_are_compared_with_the_first_systems_and_with_references(options: Namespace, tmp_path: Path) -> None:
    (tmp_path / "reference").write_text((tmp_path / "in").read_text())
    options.reference = tmp_path / "reference"
    systems = run(options)["systems"]
    assert [each["equal"] for each in systems.values()] == [1.0, pytest.approx(2 / 3)]
    assert systems["a"]["bleu"].startswith("BLEU 100.00")
    assert not systems["b"]["bleu"].startswith("BLEU 100.00")


def test_the_table_has_medians_and_ratios_within_rounds() -> None:
    same = {"command": "x", "pieces": 50, "peak_bytes": 3 * 2**20, "equal": 0.5, "bleu": None}
    systems = {
        "ours": {**same, "first_seconds": [1.0, 1.0, 1.0], "seconds": [3.0, 5.0, 2.0]},
        "other": {**same, "first_seconds": [0.0, 2.0, 1.0], "seconds": [6.0, 10.0, 6.0]},
    }
    rows = table({"sentences": 11, "systems": systems}).splitlines()
    assert [cell.strip() for cell in rows[-2].strip("|").split("|")] == [
        "ours",
        "1.0",
        "5.00",
        "2.50 to 10.00",
        "1.00",
        "25",
        "3 MiB",
        "50.0%",
    ]
    assert [cell.strip() for cell in rows[-1].strip("|").split("|")] == [
        "other",
        "1.0",
        "1.67",
        "1.25 to 2.00",
        "0.33",
        "8",
        "3 MiB",
        "50.0%",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"system": ["a"]}, "--system 'a' has no command; write NAME=COMMAND"),
        ({"system": ["a=echo no >&2; exit 3"]}, "failed with exit code 3: no"),
        ({"system": ["a=head -n 2"]}, "wrote 2 lines for 21"),
        ({"system": ["a=kill -9 $$"]}, "failed with exit code -9"),
        ({"rounds": 0}, "--rounds is 0"),
    ],
)
def test_mistakes_are_refused(options: Namespace, change: dict[str, object], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        run(Namespace(**{**vars(options), **change}))


def test_a_missing_file_is_refused(options: Namespace) -> None:
    options.tokenizer = Path("absent")
    with pytest.raises(Mistake, match="File not found: absent"):
        translation_cost.run(options)


def test_too_few_sentences_are_not_timed() -> None:
    system = {"seconds": [1.0], "first_seconds": [1.5]}
    with pytest.raises(Mistake, match="too few sentences to time ours: use a longer file"):
        table({"sentences": 2, "systems": {"ours": system}})
