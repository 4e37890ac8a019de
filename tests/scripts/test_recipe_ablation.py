"""What scripts/studies/ablation.py trains, keeps, and prints."""

import json
from functools import cache
from pathlib import Path

import pytest

from nmt.cli.compose import configuration
from nmt.config.nodes import Config
from nmt.errors import Mistake
from nmt.evaluation.scores import corpus_scores, headline_metrics
from nmt.files import write_json
from nmt.scoring.score_table import System
from scripts.studies import ablation

REFERENCES = [[f"câu số {number} có vài từ đây" for number in range(20)]]
WORSE = [line.replace("vài", "ít") for line in REFERENCES[0]]


RECORDED = {
    "target_tokens_per_second": 1100,
    "seed": 7,
    "direction": "en-vi",
    "versions": {"torch": "2"},
    "git_commit": "abc",
}
MADE = {"command": "X", "cpu": "one of them", "cores": 3, "jobs": 1, "threads": 3, "date": "2026-01-02"}


@cache
def composed(*overrides: str) -> Config:
    return configuration("train", ["experiment=envi_transformer_small", *overrides, "run_dir=unused"])


def finish(out: Path, name: str) -> None:
    run = ablation.RunDirectory(out / name)
    run.path.mkdir(parents=True)
    run.write_config({})
    run.write_metrics({"finished": True, "command": "python -m nmt.train", **RECORDED})
    run.weights.touch()


@pytest.fixture
def systems(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What each run translates; the scores are sacrebleu's."""
    lines: dict[str, list[str]] = {}

    def run_system(path, device, split, settings, references):
        scores = [each.record() for each in corpus_scores(lines[path.name], REFERENCES, headline_metrics(False))]
        metrics = json.loads((path / "metrics.json").read_text())
        return System(settings, lines[path.name], {"scores": scores}, metrics), REFERENCES

    monkeypatch.setattr(ablation, "run_system", run_system)
    return lines


@pytest.mark.parametrize("name", ablation.PARTS)
def test_every_part_changes_the_configuration(name: str) -> None:
    # The experiment already has FixNorm.
    base = ["model.fix_norm=false"] if name == "fix_norm" else []
    assert composed(*base) != composed(*base, *ablation.PARTS[name])


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_base_and_each_part_are_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: str) -> None:
    begun: dict[str, list[str]] = {}
    monkeypatch.setattr(
        ablation, "sweep", lambda command, out, name, overrides, threads: begun.update({name: overrides})
    )
    with pytest.raises(Mistake, match="base is not finished: not started"):
        ablation.main(
            ["--parts", "bpe,ema", "--jobs", jobs, "--out", str(tmp_path), "experiment=envi_transformer_small"]
        )
    experiment = "experiment=envi_transformer_small"
    assert begun == {name: [experiment, *ablation.PARTS.get(name, [])] for name in ("base", "bpe", "ema")}


def test_the_table_has_the_best_first_and_gains_over_the_base(tmp_path: Path, systems: dict[str, list[str]]) -> None:
    for name in ("base", "bpe", "ema"):
        finish(tmp_path, name)
    systems |= {"base": WORSE, "bpe": WORSE[:10] + REFERENCES[0][10:], "ema": [line[:8] for line in WORSE]}
    write_json(tmp_path / "jobs" / "seed" / "record.json", {"error": "the disk is full"})
    write_json(tmp_path / "made.json", [MADE])
    table, facts = ablation.report(
        ["base", "bpe", "dropout", "ema", "seed"], tmp_path, {"dropout": "already in the base"}
    )
    assert [row[:3] for row in table.rows[3:]] == [
        ["dropout", "`model.dropout=0.1`", "already in the base"],
        ["seed", "`seed=2`", "not finished: the disk is full"],
    ]
    table.rows[3:] = []
    assert [row[0] for row in table.rows] == ["bpe", "base", "ema"]
    base = next(row for row in table.rows if row[0] == "base")
    assert base[3:5] == ["", ""]
    for row in table.rows:
        if row[0] != "base":
            assert float(row[3]) == pytest.approx(float(row[2]) - float(base[2]), abs=0.011)
            assert float(row[4].lstrip("<")) < 0.05
    assert table.rows[0][1] == "`tokenizer=bpe`"
    assert (facts["Hardware"], facts["Date"], facts["Seed"]) == ("one of them, 3 cores", "2026-01-02", "7")
    assert facts["Signatures"].startswith("BLEU `nrefs:1|")


def test_parts_that_the_base_has_or_cannot_have_are_not_trained() -> None:
    found = ablation.refused(["bpe", "fix_norm", "post_norm", "ema"], ["experiment=envi_luong"])
    assert found["fix_norm"] == "already in the base"
    assert "norm_first" in found["post_norm"]
    assert set(found) == {"fix_norm", "post_norm"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--parts", "bep"], "Unknown part 'bep' in --parts; available: seed, dropout"),
        (["--table-only", "--parts", "ema"], "base is not finished: not started"),
        (["--jobs", "0"], "--jobs is 0; it must be at least 1"),
        (["data.test=null"], "data.test is not set: an ablation needs a test split"),
    ],
)
def test_mistakes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.setattr("scripts.studies.sweep.usable_cores", lambda: 2)
    with pytest.raises(Mistake, match=message):
        ablation.main([*arguments, "--out", str(tmp_path)])


def test_an_existing_file_as_out_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(Mistake, match="--out"):
        ablation.main(["--parts", "bpe", "--out", str(tmp_path / "out")])
