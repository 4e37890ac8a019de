"""scripts/studies/document_models.py: which runs are trained, and the table of those that are finished."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.text.lines import read_lines
from scripts.studies import document_models as script


def test_shuffled_documents_have_the_same_pairs_and_boundaries(tmp_path: Path) -> None:
    prefix = Path(script.shuffled(tmp_path))
    original = Path(__file__).resolve().parents[2] / "data" / "sample" / "documents_train"
    found, expected = (
        list(zip(*(read_lines(each.with_suffix(f".{side}")) for side in ("en", "vi")), strict=True))
        for each in (prefix, original)
    )
    assert sorted(found) == sorted(expected)
    assert found != expected
    assert read_lines(prefix.with_suffix(".doc")) == read_lines(original.with_suffix(".doc"))
    assert script.shuffled(tmp_path) == str(prefix)


def test_every_model_continues_from_the_sentence_model_of_its_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, list[str]] = {}
    monkeypatch.setattr(script, "sweep", lambda command, out, name, overrides, *_: made.update({name: overrides}))
    options = SimpleNamespace(out=tmp_path, seeds="4,5", steps=30, more=20, jobs=1)
    script.make_runs(options, threads=1)
    assert list(made) == [f"{name}_${{seed}}" for name in ("sentence", *script.SETTINGS)]
    assert "trainer.max_steps=30" in made.pop("sentence_${seed}")
    for overrides in made.values():
        assert {f"start_from={tmp_path}/sentence_${{seed}}", "trainer.max_steps=20", "seed=4,5"} <= set(overrides)
    assert any(word.startswith("data.train=[sample:train,") for word in made["shuffled_${seed}"])


def test_the_table_has_means_and_deviations_of_the_finished_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, bleu in (("none_1", 90.0), ("none_2", 92.0), ("both_1", 95.0)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.yaml").write_text("model: {}\n")
        (folder / "model.safetensors").write_bytes(b"")
        values = {"chrF2": 1.0, "BLEU": bleu}
        scores = {
            "test": [
                {"name": name, "value": value, "interval": [0.0, 100.0], "signature": "v"}
                for name, value in values.items()
            ]
        }
        (folder / "metrics.json").write_text(json.dumps({"finished": True, "scores": scores}))
    right = {"none_1": [True, False], "none_2": [True, True], "both_1": [True, True]}

    def load(path: Path, device: str) -> Any:
        return SimpleNamespace(name=path.name, context_window=SimpleNamespace(sentences=0))

    monkeypatch.setattr(script, "load_run", load)
    monkeypatch.setattr(script, "is_right", lambda trained, cases, in_context: right[trained.name])
    rows = script.table(tmp_path, [1, 2]).rows
    assert rows == [["none", "2", "91.0 ± 1.4", "75.0 ± 35.4"], ["both", "1", "95.0", "100.0"]]
