"""What a command line becomes, and the one sentence for each that cannot be read."""

import logging
import os
import re
import shlex
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from omegaconf import OmegaConf

import nmt.cli.sweep
from nmt.cli.command import command
from nmt.cli.compose import choices_and_values
from nmt.cli.help import help_text
from nmt.cli.overrides import parsed
from nmt.config.job import Job, JobRecord
from nmt.config.nodes import CONFIGS
from nmt.errors import CheckFailed

Compose = Callable[..., tuple[int, list[Job]]]


@pytest.fixture
def compose(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Compose]:
    """Runs a command whose work is to keep its jobs; the exit code and the jobs."""
    jobs: list[Job] = []
    recorder = ModuleType("recorder")
    recorder.run = jobs.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "recorder", recorder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")

    def run(name: str, *overrides: str, words: str | None = None, **sweep: str) -> tuple[int, list[Job]]:
        monkeypatch.setattr(sys, "argv", [f"nmt.{name}", *overrides])
        with pytest.raises(SystemExit) as stopped:
            command(name, "What it does.", "recorder:run", words=words, **sweep)
        return int(stopped.value.code or 0), jobs

    # --hydra-help makes Hydra log to the present standard output, which later tests no longer have.
    root, nmt = logging.getLogger(), logging.getLogger("nmt")
    handlers, levels = root.handlers[:], (root.level, nmt.level)
    yield run
    root.handlers = handlers
    for logger, level in zip((root, nmt), levels, strict=True):
        logger.setLevel(level)


def test_a_configuration_is_plain_and_resolved(compose: Compose) -> None:
    code, [job] = compose("train", "model=luong", "scorer=general", "seed=7", "direction=vi-en")
    assert code == 0
    assert job.config["run_dir"] == "runs/sample_vi-en/luong_general_global_softmax/seed7"
    assert type(job.config["data"]["train"]) is list
    assert "hydra" not in job.config
    assert job.given == ("model", "scorer", "seed", "direction")
    assert job.command == "python -m nmt.train model=luong scorer=general seed=7 direction=vi-en"
    assert job.sweep_dir is None


def test_the_command_line_beats_a_model_s_own_scorer(compose: Compose) -> None:
    _, [own] = compose("train", "model=transformer")
    assert own.config["scorer"]["_target_"].endswith("ScaledDot")
    _, [_, given] = compose("train", "model=transformer", "scorer=dot")
    assert given.config["scorer"]["_target_"].endswith(".Dot")


def test_the_configuration_is_hydra_s() -> None:
    """Values are set without Hydra, which would read all files again; the result is the same."""
    overrides = [
        "seed=2",
        "model=transformer",
        "optimizer={lr: 0.5}",
        "data.train=[a,b]",
        "scorer@cross=general",
        "+data.news=c",
        "++trainer.max_epochs=3",
        "seed=${model.dim}",
        "hydra.job.name=x",
        "schedule=noam",
        "schedule.warmup=7",
    ]
    choices, values = choices_and_values("train", parsed("train", overrides))
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        composed = hydra_compose("train", overrides, return_hydra_config=True)
    assert choices.items() <= composed.hydra.runtime.choices.items()
    theirs = OmegaConf.to_container(composed, resolve=False)
    assert isinstance(theirs, dict)
    for each in (values, theirs):
        del each["hydra"]["overrides"], each["hydra"]["job"]["override_dirname"]  # arguments as typed
    assert values == theirs


def test_one_site_takes_a_scorer_of_its_own(compose: Compose) -> None:
    _, [job] = compose("train", "model=transformer", "scorer@cross=additive", "cross.scorer.hidden_dim=3")
    scorer = job.config["model"]["cross"]["scorer"]
    assert scorer["_target_"].endswith("Additive")
    assert scorer["hidden_dim"] == 3
    assert job.config["model"]["encoder_self"]["scorer"]["_target_"].endswith("ScaledDot")


@pytest.mark.parametrize("limit", ["trainer.max_epochs=2", "trainer.max_time=4h"])
def test_a_run_need_not_be_limited_by_steps(compose: Compose, limit: str) -> None:
    """Also if a schedule has the steps of the trainer."""
    code, [job] = compose("train", "trainer.max_steps=null", limit)
    assert code == 0
    assert job.config["schedule"]["steps"] is None


@pytest.mark.parametrize("written", ["1e3", "abc"])
def test_steps_that_are_no_number_are_refused_by_the_key_that_was_typed(
    compose: Compose, capsys: pytest.CaptureFixture[str], written: str
) -> None:
    assert compose("train", f"trainer.max_steps={written}") == (2, [])
    shown = "1000.0" if written == "1e3" else written
    expected = f"error: trainer.max_steps is {shown}; it must be a whole number of at least 1, or null for no limit."
    assert expected in capsys.readouterr().err


def test_a_value_in_a_node_does_not_change_what_that_node_takes(
    compose: Compose, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compose("train", "model.dim=16.0") == (2, [])
    assert "error: model.dim must be a whole number, not '16.0'." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("dropout=null", "context.model.dropout must be a number"),
        ("dropout=high", "context.model.dropout must be a number, not 'high'."),
        ("ffn_dim=16.0", "context.model.ffn_dim must be a whole number, not '16.0'."),
        ("encoder=x", "context.model.encoder must be"),
    ],
)
def test_a_value_in_the_model_of_the_context_has_the_type_of_its_default(
    compose: Compose, capsys: pytest.CaptureFixture[str], argument: str, sentence: str
) -> None:
    assert compose("train", "context=hierarchical", f"context.model.{argument}") == (2, [])
    assert f"error: {sentence}" in capsys.readouterr().err


def test_the_model_of_the_context_may_lack_a_side(compose: Compose) -> None:
    code, [job] = compose("train", "context=hierarchical", "context.model.decoder=null", "context.sentences=2")
    assert (code, job.config["context"]["model"]["decoder"]) == (0, None)


def test_a_norm_is_chosen_by_a_word_where_there_is_one(compose: Compose, capsys: pytest.CaptureFixture[str]) -> None:
    _, [job] = compose("train", "model=transformer", "norm@model=scale_norm")
    assert job.config["model"]["norm"]["_target_"] == "nmt.models.norms.ScaleNorm"
    compose("train", "--help")
    assert "\nnorm@model=\n  * layer_norm " in capsys.readouterr().out


def test_a_set_of_the_hub_is_read_from_the_folder_of_its_name(compose: Compose) -> None:
    code, [job] = compose("train", "data=hub", "data.name=some/set")
    assert code == 0
    assert job.config["data"]["train"] == ["data/hub/some/set/train"]


def test_splits_may_be_added_to_the_data(compose: Compose) -> None:
    code, [job] = compose("train", "data=files", "data.train=A", "data.valid=B", "+data.news=C")
    assert code == 0
    assert job.config["data"]["news"] == "C"


def test_a_sweep_runs_every_combination(compose: Compose) -> None:
    code, jobs = compose("score", "-m", "run_dir=run", "source=a,b", "target=y,z")
    assert code == 0
    found = [(job.config["source"], job.config["target"]) for job in jobs]
    assert found == [("a", "y"), ("a", "z"), ("b", "y"), ("b", "z")]


def test_a_sweep_finds_choices_by_a_pattern(compose: Compose) -> None:
    code, jobs = compose("train", "-m", "scorer=glob(gaussian*)")
    assert code == 0
    assert [job.config["scorer"]["_target_"].rpartition(".")[2] for job in jobs] == ["Gaussian", "GaussianLearned"]
    assert [job.sweep_dir.name for job in jobs if job.sweep_dir] == ["0", "1"]


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["scorer=dott"], "Unknown scorer 'dott'. Did you mean 'dot'?"),
        (["scorer=1"], "Unknown scorer '1'."),
        (["initializer=null"], "Unknown initializer 'null'."),
        (["direction=1e3"], "Unknown direction '1e3'; write two different language codes, such as en-vi or vi-en."),
        (["model=transfomer"], "Unknown model 'transfomer'. Did you mean 'transformer'?"),
        (["hydra/launcher=nope"], "Unknown hydra/launcher 'nope'."),
        (["modle=luong"], "Unknown key 'modle'. Did you mean 'model'?"),
        (["max_steps=30"], "Unknown key 'max_steps'. Did you mean 'trainer.max_steps'?"),
        (["lr=0.1"], "Unknown key 'lr'. Did you mean 'optimizer.lr'?"),
        (["steps=300"], "Unknown key 'steps'. Did you mean 'trainer.max_steps'?"),
        (["batch_size=64"], "Unknown key 'batch_size'. Did you mean 'batching.batch_tokens'?"),
        (["model.dimm=4"], "Unknown key 'model.dimm'. Did you mean 'model.dim'?"),
        (["++model.dimm=4"], "Unknown key 'model.dimm'. Did you mean 'model.dim'?"),
        (["+scorre=dot"], "Unknown key 'scorre'. Did you mean 'scorer'?"),
        (["+typo=1"], "Unknown key 'typo'."),
        (["+model.nrom.eps=3"], "Unknown key 'model.nrom'. Did you mean 'model.norm'?"),
        (["+modle.dim=3"], "Unknown key 'modle'. Did you mean 'model'?"),
        (["data.test2=a"], " To add a test split, write +data.test2=PREFIX."),
        (["trainer.max_step=5"], "Unknown key 'trainer.max_step'. Did you mean 'trainer.max_steps'?"),
        (
            ["objective.alpha=5"],
            "Unknown key 'objective.alpha'. objective has no further keys; --help lists its choices.",
        ),
        (["seed.x=5"], "Unknown key 'seed.x'"),
        (["data.train.x=a"], "data.train is a list. Set the whole list, as in 'data.train=[A,B]'."),
        (["data.train.b.c=1"], "data.train is a list. Set the whole list, as in 'data.train=[A,B]'."),
        (["data.train.7=a"], "data.train is a list. Set the whole list, as in 'data.train=[A,B]'."),
        (["data.train.0.x=a"], "data.train is a list. Set the whole list, as in 'data.train=[A,B]'."),
        (["+seed=3"], "'+seed=3' adds a key that already exists. Write it without +."),
        (["+scorer=dot"], "'+scorer=dot' adds a choice. To replace the current one, write scorer=CHOICE without +."),
        (["~seed"], "'~seed' removes a key that the command needs. Set seed to another value instead."),
        (["~search"], "'~search' removes a key that the command needs. Set search to another value instead."),
        (["seed"], "Cannot read 'seed'. Write key=value."),
        (["runs/seed1"], "Cannot read 'runs/seed1'. Write key=value."),
        (["=3"], "'=3' has no key. Write key=value."),
        (["seed=é"], "Cannot read 'seed=é'. Quote the value, as in 'key=\"a, b\"'."),
        (["sead=é"], "Unknown key 'sead'. Did you mean 'seed'?"),
        (["data.train.x=(é"], "data.train is a list. Set the whole list, as in 'data.train=[A,B]'."),
        (["scorer=é"], "Cannot read 'scorer=é'. Quote the value, as in 'key=\"a, b\"'."),
        (["seed =3"], "Cannot read 'seed =3'. Write key=value."),
        (["run_dir="], "'run_dir=' has no value. Write run_dir=VALUE."),
        (['run_dir=""'], "'run_dir=\"\"' has an empty text. Write a value, or leave the key out."),
        (["data.train=['']"], "'data.train=['']' has an empty text. Write a value, or leave the key out."),
        (["--seed", "3"], "Unknown option '--seed'. Write key=value without dashes: seed=VALUE."),
        (["-x"], "Unknown option '-x'."),
        (["seed=abc"], "seed is abc; it must be a whole number of at least 0."),
        (["optimizer.lr=fast"], "optimizer.lr is fast; it must be a number above 0, such as 0.001."),
        (["search.beam_size=99999999999999999999"], "search.beam_size is 99999999999999999999; it must be between"),
        (
            ["model=luong", "model.encoder=lstmn"],
            "'model.encoder=lstmn' chooses a part of model. Write encoder@model=lstmn.",
        ),
        (
            ["model.scorer=dot"],
            "'model.scorer=dot' is a choice in the wrong place. Write scorer=dot, or scorer@SITE=dot for one site.",
        ),
        (
            ["trainer.schedule=constant"],
            "'trainer.schedule=constant' is a choice in the wrong place. Write schedule=constant.",
        ),
        (
            ["trainer.norm=scale_norm"],
            "'trainer.norm=scale_norm' is a choice in the wrong place. Write norm@model=scale_norm.",
        ),
        (["data.train=[???]", "data=files", "data.valid=A"], "data.train is missing. Add data.train=VALUE to the"),
        (["model.norm=scale_norm"], "'model.norm=scale_norm' chooses a part of model. Write norm@model=scale_norm."),
        (["data=files", "data.valid=A"], "data.train is missing. Add data.train=VALUE to the command."),
        (
            ["data=files", "data.train=A"],
            "data.valid is missing. Add data.valid=VALUE to the command. To split a corpus, run python -m nmt.prepare "
            "split.corpus=PREFIX.",
        ),
        (["data=my/corpus"], "For files of your own, write data=files 'data.train=[my/corpus]' data.valid=PREFIX"),
        (
            ["data=files"],
            "data.train and data.valid are missing. Add data.train=VALUE data.valid=VALUE to the command.",
        ),
        (["data=files", "start_from=run", "model.dim=${nothing}"], "data.train and data.valid are missing."),
        (
            ["model.dim=${nothing}"],
            "model.dim cannot be resolved: Interpolation key 'nothing' not found. Write the value itself, or name a "
            "key of this command.",
        ),
        (["run_dir=${"], "run_dir cannot be resolved: "),
        (["seed=" + "9" * 5000], "seed has a number of more than 4300 digits. Write a smaller one."),
        (
            ["optimizer.lr@cross=1"],
            "'optimizer.lr@cross=1' has an @, which only a choice takes, as in scorer@cross=dot. Write optimizer.lr=1.",
        ),
        (
            ["-m", "seed=1,choice(2,3)"],
            "'seed=1,choice(2,3)' has a sweep within a value. Write all values as seed=A,B,C.",
        ),
        (["-m", "seed=1,[range(1,3)]"], "'seed=1,[range(1,3)]' has a sweep within a value. Write all values as"),
        (["seed=[choice(1,2)]"], "'seed=[choice(1,2)]' has a sweep within a value. Write all values as seed=A,B,C."),
        (["--cfg", "seed=3"], "--cfg shows the configuration: write --cfg job, --cfg hydra or --cfg all."),
        (["--cfg"], "--cfg shows the configuration: write --cfg job, --cfg hydra or --cfg all."),
        (["-c=x"], "-c shows the configuration: write -c job, -c hydra or -c all."),
        (["--info=x"], "--info shows how the configuration is put together: write --info all, --info config,"),
        (["-p", "model"], "-p and --resolve change what --cfg shows: add --cfg job."),
        (["-p", "--cfg", "job"], "-p shows a part of the configuration: write -p KEY, as in -p model."),
        (["--resolve", "seed=3"], "-p and --resolve change what --cfg shows: add --cfg job."),
        (["--cfg", "job", "--package"], "--package shows a part of the configuration: write --package KEY"),
        (["--cfg", "job", "-m", "seed=1,2"], "Choose one of --cfg and -m."),
        (["--cfg", "job", "--info"], "Choose one of --cfg and --info."),
        (["--cfg", "job", "sead=3"], "Unknown key 'sead'. Did you mean 'seed'?"),
        (["--cfg", "job", "word"], "Cannot read 'word'. Write key=value."),
        (["data.train=a,b"], "'data.train=a,b' has commas. Write a list as 'data.train=[a,b]', or add -m"),
        (["seed=1,2"], "'seed=1,2' has several values. Choose one, or add -m to run a job for each."),
        (
            ["scorer=dot,general"],
            "'scorer=dot,general' has several values. Choose one, or add -m to run a job for each.",
        ),
        (["scorer=[dot,general]"], "'scorer=[dot,general]' has several choices. Choose one, or use -m scorer=A,B"),
        (["-m"], "-m runs one job per value, but no key has more than one value. Write key=A,B or drop -m."),
        (["-m", "seed=1", "run_dir='a,b'"], "-m runs one job per value, but no key has more than one value."),
        (["-m", "seed=1,2", "scorer=dot,dott"], "Unknown scorer 'dott'. Did you mean 'dot'?"),
        (
            ["-m", "seed=1,2", "hydra.job.num=1,2"],
            "'hydra.job.num=1,2' has several values, but a sweep has one value of each of Hydra's settings.",
        ),
        (
            ["-m", "seed=interval(0,1)"],
            "'seed=interval(0,1)' names no single values. Write those to try, as in seed=A,B,C.",
        ),
        (["-m", "scorer=interval(0,1)"], "'scorer=interval(0,1)' names no single values. Write those to try, as in"),
        (["-m", "seed=tag(a,interval(0,1))", "run_dir=x"], "' names no single values. Write those to try, as in seed="),
        (["-m", "scorer=range(1,3)"], "'scorer=range(1,3)' has numbers, but scorer takes names. Available: additive"),
        (
            ["-m", "scorer=range(0,99999999999)"],
            "'scorer=range(0,99999999999)' has numbers, but scorer takes names. Available: additive",
        ),
        (
            ["-m", "seed=range(0,99999999999)"],
            "'seed=range(0,99999999999)' makes more than 10,000 jobs, the most that a sweep may have. Write fewer",
        ),
        (["-m", "optimizer.lr=range(1e308,-1e308,-1e-320)"], "1e-320)' makes more than 10,000 jobs, the most that a"),
        (["-m", f"seed=range(0,1{'0' * 400})"], "; it must be between -9223372036854775807 and 9223372036854775807."),
        ([f"seed=-{'9' * 20}"], "; it must be between -9223372036854775807 and 9223372036854775807."),
        (
            ["-m", "seed=range(0,200)", "optimizer.lr=range(0,1,0.01)", "scorer=dot,none"],
            "'seed=range(0,200) optimizer.lr=range(0,1,0.01) scorer=dot,none' makes more than 10,000",
        ),
        (["-m", "seed=glob(*)"], "'seed=glob(*)' has a glob, which finds only the names of choices. Write seed=A,B,C."),
        (["-m", "scorer=glob(z*)"], "'scorer=glob(z*)' matches no scorer. Available: additive, concat, dot, "),
        (["-m", "seed=range(3,1)"], "'seed=range(3,1)' has no values. Write those to try, as in seed=A,B,C."),
        (["-m", "seed=range(1,3,0)"], "'seed=range(1,3,0)' has no values. Write those to try, as in seed=A,B,C."),
        (["hydra=x"], "'hydra=x' replaces several of Hydra's settings. Set a single one; --cfg"),
        (["hydra={}"], "'hydra={}' replaces several of Hydra's settings. Set a single one; --cfg"),
        (["+hydra=null"], "'+hydra=null' replaces several of Hydra's settings. Set a single one; --cfg"),
        (["-m", "seed=1,2", "hydra=x"], "'hydra=x' replaces several of Hydra's settings."),
        (["-m", "hydra=1,2"], "'hydra=1,2' replaces several of Hydra's settings."),
        (["--cfg", "job", "hydra=x"], "'hydra=x' replaces several of Hydra's settings."),
        (["hydra.launcher=3"], "'hydra.launcher=3' replaces several of Hydra's settings. Set a single one; --cfg"),
        (
            ["hydra.mode=x"],
            "'hydra.mode=x' does not fit Hydra's settings: Invalid value 'x', expected one of [RUN, MULTIRUN]. Add "
            "--cfg hydra to see them.",
        ),
        (["hydra.searchpath=3"], "'hydra.searchpath=3' does not fit Hydra's settings: "),
        (["hydra/zz=basic"], "Available: hydra/callbacks, hydra/env, "),
        (
            ["+hydra/launcher=basic"],
            "'+hydra/launcher=basic' adds a choice. To replace the current one, write hydra/launcher=CHOICE without +.",
        ),
        (
            ["hydra/launcher=1"],
            "'hydra/launcher=1' is not a choice. Write hydra/launcher=NAME, as in hydra/launcher=",
        ),
        (
            ["hydra/launcher@x=basic"],
            "'hydra/launcher@x=basic' has an @, which no setting of Hydra takes. Write ",
        ),
        (["~hydra.run"], "'~hydra.run' removes a key that the command needs. Set hydra.run to another value instead."),
        (["foo@cross=dot"], "Unknown group 'foo'."),
        (["scorer@crosss=dot"], "Unknown group 'scorer@crosss'. Did you mean 'scorer@cross'?"),
        (["norm=scale_norm"], "'norm=scale_norm' does not say where to use it. Write norm@model=scale_norm."),
        (["norm=scale_norm", "model=luong"], "Write norm@model=scale_norm with model=transformer."),
        (
            ["encoder=lstmn", "model=luong"],
            "'encoder=lstmn' does not say where to use it. Write encoder@model=lstmn.",
        ),
        (
            ["encoder=sru"],
            "Unknown encoder 'sru'. Available: bidirectional, lstmn, reversed. Write encoder@model=CHOICE with "
            "model=bahdanau or model=luong.",
        ),
        (
            ["encoder@model=reversed", "seed=2"],
            "model=transformer has no encoder@model. Leave out 'encoder@model=reversed', or choose model=bahdanau or "
            "model=luong.",
        ),
        (["decoder@model=lstmn", "model=bahdanau"], "model=bahdanau has no decoder@model. Leave out"),
        (["scorer@encoder_words=dot"], "context=none has no scorer@encoder_words. Leave out"),
        (
            ["seed=2", "model=luong", "scorer@cross=dot"],
            "model=luong has no scorer@cross. For its cross attention, write 'scorer=dot', or choose model=transformer"
            ". Available: scorer, scorer@decoder_self, scorer@encoder_self.",
        ),
        (
            ["model=luong", "scorer@cross=dot", "encoder@model=lstmn"],  # the second choice is right
            "model=luong has no scorer@cross. For its cross attention, write 'scorer=dot', or choose model=transformer"
            ". Available: scorer, scorer@decoder_self, scorer@encoder_self.",
        ),
        (
            ["experiment=iwslt15_best", "model=luong"],
            "In 'experiment/iwslt15_best': Could not override 'norm@model'. No match in the defaults list. Run the "
            "command with the other choices and --help",
        ),
        (
            ["-m", "model=transformer,luong", "scorer@cross=dot"],
            "model=luong has no scorer@cross. For its cross attention, write 'scorer=dot', or choose model=transformer",
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    compose: Compose, capsys: pytest.CaptureFixture[str], overrides: list[str], sentence: str
) -> None:
    code, jobs = compose("train", *overrides)
    output, errors = capsys.readouterr()
    assert (code, jobs, output) == (2, [], "")
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert sentence in errors


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("in.en", "'in.en' is a file, but nmt.translate reads standard input. Write < in.en."),
        *(
            (
                text,
                f"Cannot read '{text}'. Write key=value; to translate a text, write echo TEXT | python -m "
                "nmt.translate run_dir=RUN.",
            )
            for text in ("absent.en", " ".join(["a long sentence"] * 20))
        ),
        ("-", "Unknown option '-'. Leave it out: write key=value."),
        (
            "out=out.vi",
            "nmt.translate has no key out: write < in.en > out.vi for one file, or input=FILES output=FOLDER for many.",
        ),
    ],
)
def test_a_file_given_to_a_filter_is_a_mistake(
    compose: Compose, capsys: pytest.CaptureFixture[str], argument: str, sentence: str
) -> None:
    Path("in.en").write_text("one\n")
    assert compose("translate", "run_dir=run", argument) == (2, [])
    assert capsys.readouterr().err == f"error: {sentence}\n"


def test_a_group_in_place_of_a_list_is_a_mistake(compose: Compose, capsys: pytest.CaptureFixture[str]) -> None:
    assert compose("draw_attention", "maps=m", "formats={}") == (2, [])
    expected = "error: 'formats={}' does not fit the configuration. Run the command with --help to see the form of"
    assert capsys.readouterr().err.startswith(expected)


def test_the_folder_for_temporary_files_may_have_any_name(
    compose: Compose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hydra, which writes there in a sweep, reads its path as it reads a value on the command line."""
    temporary = tmp_path / "thư #1 'a' ~b!"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    code, jobs = compose("score", "-m", "run_dir=run", "source=a,b", "target=y")
    assert (code, len(jobs)) == (0, 2), capsys.readouterr().err


def test_a_refused_job_of_a_sweep_does_not_stop_the_others(
    compose: Compose, capsys: pytest.CaptureFixture[str]
) -> None:
    code, jobs = compose("train", "-m", "seed=abc,3")
    assert code == 2
    assert [job.config["seed"] for job in jobs] == [3]
    assert "error in seed=abc: seed is abc; it must be a whole number of at least 0.\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "sentence"),
    [(KeyError("dim"), "KeyError: 'dim'"), (AssertionError(), "AssertionError"), (CheckFailed("Failed."), "Failed.")],
)
def test_a_job_that_crashed_is_recorded_with_the_type_of_its_error(
    compose: Compose, monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str
) -> None:
    errors: list[str] = []

    def run(job: Job) -> None:
        raise error

    def report(jobs: list[JobRecord], *_: object) -> None:
        errors.extend(job.error for job in jobs)

    monkeypatch.setattr("recorder.run", run)
    monkeypatch.setattr("recorder.report", report, raising=False)
    code, _ = compose("score", "-m", "run_dir=run", "source=a,a", "target=y", after_sweep="recorder:report")
    assert (code, errors) == (1, [sentence] * 2)


def test_a_signal_that_a_library_turns_into_an_error_ends_a_sweep(
    compose: Compose, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    def run(job: Job) -> None:
        begun.append(job)
        raise ValueError("made of KeyboardInterrupt")

    monkeypatch.setattr("recorder.run", run)
    monkeypatch.setattr("nmt.cli.sweep.received_signal", lambda: signal.SIGINT)
    code, _ = compose("train", "-m", "seed=2,3")
    assert (code, len(begun)) == (130, 1)
    assert "made of KeyboardInterrupt" not in capsys.readouterr().err.split("interrupted")[0]


def test_a_single_job_keeps_no_records(compose: Compose, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.cli.sweep.TemporaryDirectory", None)
    assert compose("train", "seed=2")[0] == 0
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize("path", ["runs/thử", "run#1", "a=b", "it's", "with space", "1.10", "null"])
def test_a_run_directory_is_called_what_was_typed(compose: Compose, path: str) -> None:
    code, [job] = compose("train", f"run_dir={path}")
    assert (code, job.settings.run_dir, job.config["run_dir"]) == (0, path, path)
    assert shlex.split(job.command) == ["python", "-m", "nmt.train", f"run_dir={path}"]


def test_a_sweep_over_paths_keeps_what_was_typed(compose: Compose) -> None:
    code, jobs = compose("score", "-m", "run_dir=run", "source=thử,1.10,b", "target=y")
    assert (code, [job.settings.source for job in jobs]) == (0, ["thử", "1.10", "b"])


def test_flags_may_stand_between_overrides(compose: Compose) -> None:
    code, jobs = compose("score", "run_dir=run", "-m", "source=a,b", "target=y")
    assert (code, [job.settings.source for job in jobs]) == (0, ["a", "b"])


def test_no_experiment_gives_the_general_defaults(compose: Compose) -> None:
    _, [job] = compose("train", "experiment=none")
    assert job.settings.schedule["_target_"].endswith("inverse_sqrt")
    _, [_, swept] = compose("train", "-m", "experiment=none", "hydra.sweep.subdir=x")
    assert swept.settings.schedule["_target_"].endswith("inverse_sqrt")


def test_the_configuration_can_be_printed(compose: Compose, capsys: pytest.CaptureFixture[str]) -> None:
    code, jobs = compose("train", "model=luong", "run_dir=thử", "--cfg", "job")
    assert (code, jobs) == (0, [])
    assert yaml.safe_load(capsys.readouterr().out)["run_dir"] == "thử"


@pytest.mark.parametrize(
    "arguments",
    [["--cfg=job", "seed=3", "model=luong"], ["seed=3", "-c", "job", "model=luong"], ["-c=job", "--resolve", "seed=3"]],
)
def test_flags_that_show_the_configuration_may_stand_anywhere(
    compose: Compose, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    code, jobs = compose("train", *arguments)
    assert (code, jobs) == (0, [])
    assert yaml.safe_load(capsys.readouterr().out)["seed"] == 3


def test_hydra_s_own_help_ignores_other_arguments(compose: Compose, capsys: pytest.CaptureFixture[str]) -> None:
    assert compose("train", "experiment=none", "--hydra-help") == (0, [])
    assert "Hydra" in capsys.readouterr().out


def test_the_configuration_of_a_command_with_words_can_be_printed(
    compose: Compose, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = compose("download", "envi", "--cfg", "job", words="what")
    assert code == 0
    assert yaml.safe_load(capsys.readouterr().out)["what"] == ["envi"]


@pytest.mark.parametrize("name", ["train", "evaluate", "translate", "export_attention", "explain"])
def test_help_shows_every_choice_with_a_line_and_every_key(
    compose: Compose, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code, _ = compose(name, "--help")
    text = capsys.readouterr().out
    assert code == 0
    assert text.startswith("What it does.")
    assert "hydra" not in text.replace("hydra:runtime", "")
    if name == "train":
        compose(name, "model=luong", "--help")  # encoders and decoders are listed for the models that have them
        text += capsys.readouterr().out
        for file in CONFIGS.glob("*/*.yaml"):
            line = next(
                line
                for line in text.splitlines()
                if line.split()[:1] == [file.stem] or line.split()[:2] == ["*", file.stem]
            )
            assert len(line.split(maxsplit=2)) == 3, f"{file} has no comment that says what it is"


@pytest.mark.parametrize("indent", ["", "  "], ids=["the formatter removed it", "kept"])
def test_the_examples_of_every_help_are_indented_alike(indent: str) -> None:
    description = f"What it does.\n\n{indent}python -m nmt.score a  b\n{indent}             c\n"
    text = help_text(CONFIGS, "score", description, choices={}, config={})
    assert "What it does.\n\n  python -m nmt.score a  b\n               c\n" in text


def test_in_a_narrow_terminal_what_is_said_about_examples_goes_below_them(monkeypatch: pytest.MonkeyPatch) -> None:
    description = (
        "What it does, in words that\ncontinue.\n\n  python -m nmt.score a=1  all\n  python -m nmt.score 'a=[1,2]'\n"
        "                           two of the three\n\nThe end."
    )
    monkeypatch.setenv("COLUMNS", "35")
    assert help_text(CONFIGS, "score", description, choices={}, config={}).startswith(
        "What it does, in words that\ncontinue.\n\n  python -m nmt.score a=1\n      all\n"
        "  python -m nmt.score 'a=[1,2]'\n      two of the three\n\nThe end.\n"
    )
    monkeypatch.setenv("COLUMNS", "60")
    assert help_text(CONFIGS, "score", description, choices={}, config={}).startswith(
        "What it does, in words that continue.\n\n  python -m nmt.score a=1  all\n"
    )


def test_a_comment_of_several_lines_is_wrapped_as_a_whole(
    compose: Compose, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    compose("train", "--help")
    text = capsys.readouterr().out
    assert "same place on both sides of a pair, in training only; the model learns to\n" in text


def test_help_shows_the_whole_description_of_a_choice(
    compose: Compose, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of several lines at the head of a file, but not the block below them."""
    monkeypatch.setenv("COLUMNS", "80")
    compose("train", "--help")
    text = capsys.readouterr().out
    shown = " ".join(text.split())
    for name in ("optimizer/adadelta", "schedule/noam", "data/sample"):
        head = (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8").split("\n_target_")[0].splitlines()
        lines = [line.strip("# ") for line in head if line.startswith("#") and "@package" not in line]
        assert " ".join(lines) in shown, name
    assert "expected " not in text.split("\nexperiment=")[1].split("\nlogger=")[0]
    choices = text.split("Choices, ")[1].split("\nKeys, ")[0]
    assert max(map(len, choices.splitlines())) <= 80


@pytest.mark.parametrize(
    "arguments",
    [[], ["model=luong", "data=envi"], ["experiment=iwslt15_best"], ["experiment=envi_luong", "model.num_layers=2"]],
    ids=" ".join,
)
def test_help_shows_the_keys_and_values_that_a_run_has(
    compose: Compose, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # no value is wrapped
    compose("train", *arguments, "--help")
    text = capsys.readouterr().out
    above, below = text.split("\nKeys, ")[1].split("\nKeys of the choices")
    shown = dict(line.split("=", 1) for line in below.splitlines() if "=" in line)
    _, [job] = compose("train", *arguments)
    for group in ("tokenizer", "optimizer", "schedule", "trainer", "data", "model", "search", "scorer", "initializer"):
        for key, value in job.config[group].items():
            if not isinstance(value, dict) and key[0] != "_":
                written = yaml.safe_load(shown[f"  {group}.{key}"])
                assert str(written) == str(value) or str(written).startswith("${"), key
    plain = yaml.safe_load(textwrap.dedent(above.split("\n\n", 1)[1]))
    for group in ("batching", "filters", "validation", "checkpoints"):
        for key, value in job.config[group].items():
            changed = shown.get(f"  {group}.{key}")
            assert value == (plain[group][key] if changed is None else yaml.safe_load(changed)), key


def test_help_marks_what_the_arguments_choose_and_bring(compose: Compose, capsys: pytest.CaptureFixture[str]) -> None:
    compose("train", "--help")
    assert "\n  * late_halving  linear warm-up" in capsys.readouterr().out
    compose("train", "experiment=iwslt15_best", "scorer@cross=additive", "seed=2", "--help")
    text = capsys.readouterr().out
    assert all(f"\n  * {each} " in text for each in ("iwslt15_best", "cosine", "scale_norm", "small", "r_drop"))
    assert text.count("layer_norm ") == 1
    assert "\nscorer@cross=\n  * additive" in text
    compose("train", "experiment=iwslt15_best", "norm@model=layer_norm", "--help")
    assert "\nnorm@model=\n  * layer_norm" in capsys.readouterr().out
    compose("train", "-m", "experiment=envi_luong", "scorer=dot", "seed=1,2", "--help")
    text = capsys.readouterr().out
    assert "\n  * dot  " in text
    assert "\nnorm@model=" not in text


@pytest.mark.parametrize("width", [80, 200])
def test_help_fits_the_terminal_and_its_keys_remain_yaml(
    compose: Compose, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    def keys(columns: int) -> object:
        monkeypatch.setenv("COLUMNS", str(columns))
        compose("train", "--help")
        text = capsys.readouterr().out
        # What cannot be broken, such as the default of run_dir, is alone on its line.
        assert all(len(line.split()) <= 2 for line in text.split("\n") if len(line) > columns)
        return yaml.safe_load(text.split("\nKeys, ")[1].split("\nKeys of the choices")[0].split("\n\n", 1)[1])

    assert keys(width) == keys(1000)


def test_help_shows_one_group_with_its_choices_and_keys(compose: Compose, capsys: pytest.CaptureFixture[str]) -> None:
    assert compose("train", "--help", "scorer", "scorer=additive")[0] == 0
    text = capsys.readouterr().out
    assert "\n  * additive " in text
    assert "\n    scaled_dot " in text
    assert "\n  scorer.hidden_dim=" in text
    assert "model=" not in text
    compose("train", "trainer", "--help")
    assert "\n  trainer.max_steps=1800  # optimizer steps\n" in capsys.readouterr().out
    compose("train", "--help", "validation")
    assert "\n  validation.every=400  # optimizer steps between validations\n" in capsys.readouterr().out
    compose("train", "--help", "norm@model")
    assert "\n  * layer_norm " in capsys.readouterr().out


def test_help_for_a_group_that_does_not_exist_names_those_that_do(
    compose: Compose, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compose("train", "--help", "scorr")[0] == 2
    assert "error: Unknown group 'scorr'. Did you mean 'scorer'?" in capsys.readouterr().err


def test_the_version_is_that_of_this_package(compose: Compose, capsys: pytest.CaptureFixture[str]) -> None:
    assert compose("train", "--version")[0] == 0
    first, second, *_ = capsys.readouterr().out.split("\n")
    assert first == f"nmt {version('nmt-attention')}"
    assert second == f"torch {version('torch')}"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["model=lung"], "Unknown model 'lung'. Did you mean 'luong'?"),
        (["initializer=null"], "Unknown initializer 'null'."),
        (["experiment=iwslt15_best", "model=luong"], "In 'experiment/iwslt15_best': Could not override 'norm@model'."),
    ],
)
def test_help_with_a_mistake_shows_the_defaults_and_the_mistake(
    compose: Compose, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert compose("train", *arguments, "--help")[0] == 2
    printed = capsys.readouterr()
    assert "\n  * transformer " in printed.out
    assert sentence in printed.err


def test_an_unknown_key_is_answered_with_those_of_the_command_alone(
    compose: Compose, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compose("score", "typo=1")[0] == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: Unknown key 'typo'. Available: ")
    assert "run_dir" in line
    assert "hydra" not in line


@pytest.mark.parametrize("name", ["evaluate", "translate"])
def test_a_missing_run_dir_is_asked_for(compose: Compose, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert compose(name)[0] == 2
    assert capsys.readouterr().err == (
        "error: run_dir is missing. Add run_dir=VALUE to the command. A run is the folder that training printed, or an "
        "included model: en-vi or vi-en.\n"
    )


@pytest.mark.parametrize(
    ("variable", "limit"), [("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64"), ("LRU_CACHE_CAPACITY", "8")]
)
@pytest.mark.parametrize("given", [None, "7"])
def test_a_command_limits_what_onednn_caches_unless_the_user_does(
    variable: str, limit: str, given: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        monkeypatch.setenv(each, "")  # so that it is restored after the test
        monkeypatch.delenv(each)
    if given:
        monkeypatch.setenv(variable, given)
    monkeypatch.setattr(sys, "argv", ["nmt.train", "--help"])
    with pytest.raises(SystemExit):
        command("train", None, "nmt.commands.train:train")
    assert os.environ[variable] == (given or limit)


@pytest.mark.parametrize("file", sorted(CONFIGS.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_key_of_a_command_has_a_comment(file: Path) -> None:
    """--help shows it; a group of settings may do without."""
    lines = file.read_text(encoding="utf-8").partition("\n\n")[2].partition("\nhydra:")[0].splitlines()
    for above, line in zip(["", *lines], lines, strict=False):
        assert not re.match(r"\w+: ", line) or "#" in line or above.startswith("#"), line


def test_a_job_of_a_sweep_that_leaves_no_record_is_named_and_fails(
    compose: Compose, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As if the machine of the second job had another folder of that name."""
    own = nmt.cli.sweep.write_json

    def write(path: Path, content: dict[str, Any]) -> None:
        if content["number"] != 1:
            own(path, content)

    monkeypatch.setattr(nmt.cli.sweep, "write_json", write)
    code, jobs = compose("train", "-m", "seed=range(1,2)", "scorer=dot,general")
    assert (code, len(jobs)) == (1, 2)
    [sentence] = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert re.match(r"Job 1 \(seed=1 scorer=general\) left no record in /.*: see the logs of the launcher", sentence)


class Directory:
    """A folder for runs, of which none is there."""

    started = finished = False
    best_value = 0.0

    def __init__(self, path: Path) -> None:
        pass


@pytest.mark.parametrize(
    ("arguments", "folders"),
    [
        (["sweep_dir=s"], ["s/scorer=dot,seed=1", "s/scorer=dot,seed=2"]),
        (["sweep_dir=s", "hydra.sweep.subdir=${hydra:job.num}_${seed}"], ["s/0_1", "s/1_2"]),
        pytest.param(["hydra.sweep.dir=s"], ["s/0", "s/1"], marks=pytest.mark.soak),
        (["hydra.sweep.dir='s_${scorer.name}'", "+scorer.name=x"], ["s_x/0", "s_x/1"]),
        ([], ["runs/sweeps/TIME/0", "runs/sweeps/TIME/1"]),
    ],
)
def test_a_job_without_a_record_has_the_folder_in_which_it_would_be(
    compose: Compose, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], folders: list[str]
) -> None:
    records: list[JobRecord] = []

    def report(jobs: list[JobRecord], *_: object) -> None:
        records.extend(jobs)

    monkeypatch.setattr(sys.modules["recorder"], "report", report, raising=False)
    monkeypatch.setattr(sys.modules["recorder"], "Directory", Directory, raising=False)
    own = nmt.cli.sweep.write_json
    monkeypatch.setattr(
        nmt.cli.sweep, "write_json", lambda path, content: content["number"] != 1 and own(path, content)
    )
    more = {"after_sweep": "recorder:report", "run_directory": "recorder:Directory"}
    assert compose("train", "-m", "seed=1,2", "scorer=dot", *arguments, **more)[0] == 1
    found = [str(Path(record.folder).relative_to(tmp_path)) for record in records]
    assert [re.sub(r"/[0-9_-]{19}/", "/TIME/", folder) for folder in found] == folders


def test_a_damaged_record_is_a_mistake_of_its_job_alone(
    compose: Compose, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.modules["recorder"], "Directory", Directory, raising=False)
    damaged = Path("s/jobs/seed=1/record.json")
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{")
    code, jobs = compose("train", "-m", "sweep_dir=s", "seed=1,2", run_directory="recorder:Directory")
    assert (code, [job.config["seed"] for job in jobs]) == (2, [2])
    assert "record.json is damaged: it is not JSON. Delete it: the job is then resumed.\n" in capsys.readouterr().err
    assert damaged.read_text() == "{"


def test_jobs_in_nested_folders_have_records_of_their_own(
    compose: Compose, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same scorer in the folders of two models, and a folder outside that of the sweep."""
    folders: list[Path | None] = []

    def report(jobs: list[JobRecord], folder: Path | None, command: str) -> None:
        folders.append(folder)

    monkeypatch.setattr(sys.modules["recorder"], "report", report, raising=False)
    monkeypatch.setattr(sys.modules["recorder"], "Directory", Directory, raising=False)
    nested = "hydra.sweep.subdir=${hydra:runtime.choices.model}/${hydra:runtime.choices.scorer}"
    more = {"after_sweep": "recorder:report", "run_directory": "recorder:Directory"}
    models = "model=luong,transformer"
    assert compose("train", "-m", "sweep_dir=s", nested, models, "scorer=dot", **more)[0] == 0
    Path("a").mkdir()
    assert compose("train", "-m", "sweep_dir=a/../t", "hydra.sweep.subdir=../x/${seed}", "seed=1", **more)[0] == 0
    assert folders == [tmp_path / "s", tmp_path / "a" / ".." / "t"]
    records = sorted(str(file.parent) for file in Path().rglob("record.json"))
    assert records == ["s/jobs/luong/dot", "s/jobs/transformer/dot", f"t/jobs{tmp_path}/x/1"]


def test_the_folder_of_a_sweep_may_have_any_name(compose: Compose, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hydra reads it as it reads a value on the command line."""
    monkeypatch.setattr(sys.modules["recorder"], "Directory", Directory, raising=False)
    name = "it's #1, a=b \\ 1.10"
    code, jobs = compose("train", "-m", f'sweep_dir="{name}"', "seed=1", run_directory="recorder:Directory")
    assert (code, [job.sweep_dir for job in jobs]) == (0, [Path.cwd() / name / "seed=1"])
    assert [*Path.cwd().iterdir()] == [Path.cwd() / name]
