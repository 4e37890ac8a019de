"""A run directory is recognised, protected, and reads back what was written."""

from pathlib import Path

import pytest

from nmt.config.direction import Direction
from nmt.runs.directory import RunDirectory
from nmt.text import Tokenizer, TokenizerPair, train_tokenizer

CONFIG = {
    "direction": "en-vi",
    "optimizer": {"lr": 1e-05},
    "data": {"train": ["á", "b"]},
    "cross": None,
    "model": {"dim": 3},
    "search": {"beam_size": 2},
}
EN_VI = Direction("en", "vi")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


def finish(run: RunDirectory) -> None:
    run.write_config(CONFIG)
    run.weights.write_bytes(b"weights")
    run.write_metrics({"finished": True})


def test_configuration_and_metrics_read_back(run: RunDirectory) -> None:
    assert not run.started
    run.write_config(CONFIG)
    run.write_metrics({"finished": False, "name": "tiếng"})
    assert run.config() == CONFIG
    assert run.metrics() == {"finished": False, "name": "tiếng"}
    assert run.started
    assert not run.finished


@pytest.mark.parametrize("joint", [True, False])
def test_tokenizers_read_back(run: RunDirectory, joint: bool) -> None:
    models = [Tokenizer(train_tokenizer([text] * 3, kind="bpe", size=267)) for text in ("one two", "hai ba")]
    pair = TokenizerPair(models[0], models[0] if joint else models[1])
    run.write_config(CONFIG)
    run.write_tokenizers(pair, EN_VI)
    read = run.tokenizers(EN_VI)
    assert read.joint is joint
    assert [side.model for side in read] == [side.model for side in pair]


def test_what_is_no_run_directory_is_refused(run: RunDirectory) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*run; run_dir is the folder"):
        run.require_finished()
    run.path.mkdir()
    with pytest.raises(FileNotFoundError, match=r"is not a run directory: it has no config\.yaml"):
        run.require_finished()
    run.write_config(CONFIG)
    with pytest.raises(ValueError, match=r"has not ended; end it with 'python -m nmt.train run_dir=.* resume=true'"):
        run.require_finished()
    finish(run)
    run.require_finished()


def test_a_run_is_not_overwritten_unless_that_is_asked_for(run: RunDirectory) -> None:
    run.require_free(overwrite=False)
    run.write_config(CONFIG)
    with pytest.raises(FileExistsError, match="holds a run that has not ended"):
        run.require_free(overwrite=False)
    finish(run)
    with pytest.raises(FileExistsError, match="holds a finished run; choose another run_dir, or overwrite=true"):
        run.require_free(overwrite=False)
    run.require_free(overwrite=True)


def test_a_folder_of_other_things_is_never_taken(run: RunDirectory) -> None:
    run.path.mkdir()
    run.require_free(overwrite=False)
    (run.path / "thesis.tex").write_text("years")
    with pytest.raises(FileExistsError, match="exists and is not a run directory"):
        run.require_free(overwrite=True)


def test_clearing_deletes_a_run_and_nothing_else(run: RunDirectory) -> None:
    finish(run)
    run.checkpoints.mkdir()
    (run.path / "tokenizer.en.model").write_bytes(b"")
    (run.path / "notes.txt").write_text("keep")
    run.clear()
    assert [path.name for path in run.path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", r"config\.yaml is damaged: it is not YAML"),
        ("", r"config\.yaml is not the configuration of a training: it lacks model, search, direction, data"),
        ("- model", "it lacks model, search, direction, data"),
        ("model: {depth: 18}\ndata: {path: x}", "it lacks search, direction; run_dir is the folder that nmt.train"),
    ],
)
def test_a_configuration_that_is_none_is_named(run: RunDirectory, text: str, message: str) -> None:
    finish(run)
    (run.path / "config.yaml").write_text(text)
    with pytest.raises(ValueError, match=message):
        run.config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"metrics\.json is damaged: it is not JSON"),
        ('{"accuracy": 0.9}', r"metrics\.json is not the record of a training"),
        ("[1]", r"metrics\.json is not the record of a training"),
    ],
)
def test_a_record_that_is_none_is_named(run: RunDirectory, text: str, message: str) -> None:
    finish(run)
    (run.path / "metrics.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        run.require_finished()
    run.require_free(overwrite=True)
