"""What scripts/studies/results.py starts, resumes, keeps, and prints."""

import json
import os
from pathlib import Path

import pytest

from nmt.errors import Mistake
from scripts.studies import results
from scripts.studies import results_report as report

METRICS = {
    "finished": True,
    "seed": 3,
    "direction": "en-vi",
    "parameters": 1234567,
    "target_tokens": 660000,
    "target_tokens_per_second": 1100,
    "command": "python -m nmt.train model=luong scorer=dot",
    "versions": {"python": "3.11.7", "torch": "2.13.0"},
    "git_commit": "abc123",
}
MADE = {
    "command": "python -m scripts.studies.results --jobs 7",
    "cpu": "one of them",
    "cores": 3,
    "jobs": 7,
    "threads": 5,
}
MADE["date"] = "2026-01-02"
DATA = {"name": "sample", "valid": "sample:valid", **{split: f"sample:{split}" for split in results.SPLITS}}
CONFIG = {"model": {"dim": 5}, "search": {"beam_size": 3}, "direction": "en-vi", "data": DATA}


def scores(bleu: float, aer: float | None = None) -> dict:
    found = [("BLEU", bleu), ("chrF2", bleu + 11)]
    rows = [{"name": name, "value": value, "signature": f"{name}|sig"} for name, value in found]
    return {"scores": rows, **({"aer": {"value": aer, "note": "(row that reads)"}} if aer is not None else {})}


@pytest.fixture
def pair(tmp_path):
    return results.pairs(["luong"], ["dot"], ["3"], tmp_path / "out")[0]


@pytest.fixture
def finished(pair):
    pair.run.write_config(CONFIG)
    pair.run.write_metrics(METRICS)
    pair.run.weights.touch()
    for number, split in enumerate(results.SPLITS):
        pair.scores(split).parent.mkdir(parents=True)
        pair.scores(split).write_text(json.dumps(scores(17.0 + number, 0.23 if split == "test" else None)))
    return pair


def test_every_scorer_in_every_model_by_default():
    rows = results.pairs(results.MODELS, results.SCORERS, ["1"], Path("out"))
    found = {(row.model, row.scorer) for row in rows}
    assert found >= {("luong", "none"), ("bahdanau", "dot"), ("transformer", "concat")}
    assert len({row.run.path for row in rows}) == len(rows) == 3 * len(results.SCORERS)


def test_the_runs_of_all_pairs_are_one_sweep(finished, monkeypatch):
    """A finished run whose scores are up to date is not scored again."""
    swept, evaluated = [], []
    monkeypatch.setattr(results, "sweep", lambda *arguments: swept.append(arguments))
    monkeypatch.setattr("subprocess.run", lambda command, stdout: evaluated.append(command))
    out = finished.run.path.parent
    results.main(
        ["--models", "luong", "--scorers", "dot,none", "--seeds", "3", "--out", str(out), "a=7", "--jobs", "1"]
    )
    [(command, folder, name, overrides, _, jobs)] = swept
    assert (command, folder, jobs) == ("nmt.train", out, 1)
    assert overrides == ["model=luong", "scorer=dot,none", "seed=3", "a=7"]
    choices = {"${hydra:runtime.choices.model}": "luong", "${hydra:runtime.choices.scorer}": "dot", "${seed}": "3"}
    for key, choice in choices.items():
        name = name.replace(key, choice)
    assert (name, evaluated) == (finished.run.path.name, [])


def test_only_splits_of_the_run_are_scored(finished):
    for split in results.SPLITS:
        finished.scores(split).unlink()
    finished.run.write_config({**CONFIG, "data": {**DATA, "test_new": None}})
    assert finished.not_scored() == ["test", "phrases_test"]


def test_scores_of_older_weights_are_made_again_and_not_shown(finished):
    later = finished.scores("test").stat().st_mtime + 7
    os.utime(finished.run.weights, (later, later))
    assert len(finished.not_scored()) == 3
    assert results.record(finished, [MADE])["scores"] == {}


def test_the_row_of_a_finished_run(finished):
    row = dict(zip(report.COLUMNS, report.cells([results.record(finished, [MADE])]), strict=True))
    assert row == {
        "model": "luong",
        "scorer": "dot",
        "BLEU test": "17.00",
        "BLEU test_new": "18.00",
        "BLEU phrases_test": "19.00",
        "chrF test": "28.00",
        "AER test": "0.230",
        "parameters": "1,234,567",
        "threads": "5",
        "target tokens/s": "1,100",
        "minutes": "10.0",
    }


def test_a_missing_score_is_an_empty_cell_with_its_reason_below(finished):
    finished.scores("test_new").unlink()
    row = results.record(finished, [MADE])
    assert dict(zip(report.COLUMNS, report.cells([row]), strict=True))["BLEU test_new"] == ""
    assert "luong dot seed 3: not scored on test_new" in report.report([row])


def test_the_report_says_how_to_reproduce_it(finished):
    text = report.report([results.record(finished, [MADE])])
    for part in (
        "python -m scripts.studies.results --jobs 7",
        "Seed: 3",
        "torch 2.13.0",
        "`BLEU|sig`",
        "7 runs of 5 threads",
        "abc123",
    ):
        assert part in text
    assert MADE["cpu"]


def test_an_unknown_model_is_refused(tmp_path, capfd):
    with pytest.raises(Mistake, match=r"nmt\.train refused the overrides, see above\."):
        results.main(["--models", "lung", "--scorers", "dot", "--out", str(tmp_path / "out"), "--jobs", "1"])
    assert "error: Unknown model 'lung'. Did you mean 'luong'?" in capfd.readouterr().err


def test_table_only_starts_nothing_and_keeps_where_the_runs_were_made(finished, capsys):
    out = finished.run.path.parent
    (out / "made.json").write_text(json.dumps([MADE]))
    results.main(["--models", "luong", "--scorers", "dot,general", "--seeds", "3", "--out", str(out), "--table-only"])
    table = capsys.readouterr().out
    assert "| luong | general | not finished: not started |" in table
    assert "7 runs of 5 threads" in table
    assert json.loads((out / "results.json").read_text(encoding="utf-8"))[0]["metrics"] == METRICS


def test_seeds_are_pooled_into_mean_and_deviation(finished):
    one = results.record(finished, [MADE])
    other = {**one, "seed": "5", "scores": {"test": scores(23.0, 0.31)}}
    [pair] = report.rows([one, other])
    row = dict(zip(report.COLUMNS, report.cells(pair), strict=True))
    assert row["BLEU test"] == "20.00 ± 4.24"
    assert row["AER test"] == "0.270 ± 0.057"
    assert row["BLEU test_new"] == "18.00"
    assert row["minutes"] == "10.0"
    assert "mean ± standard deviation" in report.report([one, other])


def test_scores_by_length_have_their_own_table(finished):
    run = results.record(finished, [MADE])
    assert report.by_length([run]) == []
    run["scores"]["test"]["by_length"] = [{"words": [0, 7], "value": 31.0}, {"words": [8, None], "value": 13.0}]
    assert report.by_length([run]) == [
        ["model", "scorer", "0 to 7 words", "over 7"],
        ["luong", "dot", "31.00", "13.00"],
    ]
    assert "| luong | dot | 31.00 | 13.00 |" in report.report([run])


def test_a_failed_seed_is_reported_below_the_others(finished):
    one = results.record(finished, [MADE])
    failed = {"model": "luong", "scorer": "dot", "seed": "5", "problem": "not finished: killed"}
    text = report.report([one, failed])
    assert "| luong | dot | 17.00 |" in text
    assert "luong dot seed 5: not finished: killed" in text


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (["seed=7"], "'seed=7' cannot be an override; use --models, --scorers, --seeds or --out"),
        (["--seeds", "1,2,1"], "--seeds 1,2,1 repeats a seed"),
    ],
)
def test_options_that_would_mislabel_runs_are_refused(tmp_path, line, sentence):
    with pytest.raises(Mistake, match=sentence):
        results.main(["--out", str(tmp_path), *line])


def test_an_existing_file_as_out_is_refused_before_training(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(Mistake, match="--out"):
        results.main(["--models", "luong", "--scorers", "dot", "--out", str(tmp_path / "out")])
