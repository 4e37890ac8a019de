"""What scripts/studies/pretraining.py trains, how long, and what it prints."""

from pathlib import Path

import pytest

from nmt.cli.arguments import for_hydra
from nmt.cli.compose import configuration
from nmt.cli.settings_class import settings_class
from nmt.config.schema import validated
from nmt.errors import Mistake
from nmt.runs.directory import EncoderDirectory, RunDirectory
from scripts.studies import pretraining as study
from scripts.studies.sweep import circumstances

FILES = ["a.en", "a.vi"]


def finish(run: RunDirectory, **metrics: object) -> None:
    run.path.mkdir(parents=True)
    run.write_config({})
    run.write_metrics({"finished": True, **metrics})
    run.weights.touch()


@pytest.fixture
def options(tmp_path: Path):
    out = str(tmp_path / "out")
    return study.parse(["corpus", "--out", out, "--seeds", "1,2", "--steps", "50", "--pretrain-steps", "100"])


def test_every_command_is_one_that_the_program_reads(options) -> None:
    commands = [("pretrain", study.pretraining(options, steps, "1", FILES)) for steps in (100, 1)]
    commands += [("train", study.training(options, arm, "2", 50)) for arm in study.ARMS]
    for kind, arguments in commands:
        read = for_hydra(arguments, settings_class(kind))
        validated(settings_class(kind), configuration(kind, read))


def test_arms_differ_in_what_they_start_from_alone(options) -> None:
    random, own = (study.training(options, arm, "1,2", 50) for arm in ("random", "pretrained"))
    differing = {word.split("=")[0] for word in set(random) ^ set(own)}
    assert differing == {"start_from"}


def test_the_longer_run_gets_the_steps_of_the_same_time(options) -> None:
    finish(EncoderDirectory(options.out / "pretrained_encoder"), wall_time_seconds=90.0)
    finish(RunDirectory(options.out / "pretrained_1"), wall_time_seconds=30.0, steps=50)
    finish(RunDirectory(options.out / "random_1"), wall_time_seconds=20.0, steps=50)
    assert study.longer_steps(options, 1) == 50 * (90 + 30) / 20


def test_a_rerun_that_trains_nothing_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["corpus", "--out", str(tmp_path), "--seeds", "1"]

    def make_runs(options, threads: int) -> None:
        for run in study.own_runs(options):
            if not run.finished:
                finish(run)

    monkeypatch.setattr(study, "make_runs", make_runs)
    monkeypatch.setattr(study, "report", lambda _: "the table")
    study.main(arguments)
    study.main([*arguments, "--jobs", "2"])
    assert [made["jobs"] for made in circumstances(tmp_path)] == [1]


def test_the_table_has_intervals_means_and_the_time_of_pretraining(options) -> None:
    finish(EncoderDirectory(options.out / "pretrained_encoder"), wall_time_seconds=90.0)
    for seed, bleu in ((1, 10.0), (2, 12.0)):
        scores = [
            {"name": name, "value": bleu, "interval": [bleu - 1, bleu + 1], "signature": "v"}
            for name in ("BLEU", "chrF2")
        ]
        finish(
            RunDirectory(options.out / f"pretrained_{seed}"),
            wall_time_seconds=30.0,
            steps=50,
            best={"value": 3.0},
            scores={"test": scores},
        )
    first, _, mean = study.rows(options)
    assert first == ["pretrained", "1", "50", "120", "3.000", "10.00 [9.00, 11.00]", "10.00"]
    assert mean[5] == "11.00 ± 1.41"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["corpus", "--seeds", "1,x"], "--seeds is '1,x'; write whole numbers with commas"),
        (["corpus", "--steps", "0"], "--steps and --pretrain-steps must be at least 1"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        study.parse(arguments)


def test_a_table_without_an_encoder_says_why(options) -> None:
    with pytest.raises(Mistake, match="pretrained_encoder is not finished: not started"):
        study.report(options)


def test_runs_start_after_those_that_they_need(options, monkeypatch) -> None:
    made: list[str] = []

    def make(command: str, out: Path, name: str, overrides: list[str], threads: int, jobs: int) -> None:
        seeds = next(word.partition("=")[2] for word in overrides if word.startswith("seed="))
        needed = [word.partition("=")[2] for word in overrides if word.startswith("start_from=")]
        for seed in seeds.split(","):
            assert {Path(start.replace("${seed}", seed)).name for start in needed} <= set(made)
            made.append(name.replace("${seed}", seed))
            finish(RunDirectory(out / made[-1]), wall_time_seconds=10.0, steps=50)

    monkeypatch.setattr(study, "sweep", make)
    monkeypatch.setattr(study, "plain_files", lambda *_: FILES)
    study.make_runs(options, threads=1)
    assert len(made) == 1 + 2 + 3 * 2


def test_the_length_of_the_longer_run_needs_finished_runs(options) -> None:
    with pytest.raises(Mistake, match="pretrained_encoder is not finished: not started"):
        study.longer_steps(options, 1)
