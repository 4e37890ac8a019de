"""A run directory is recognized and protected, and reads back what was written."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config.direction import Direction
from nmt.errors import Mistake
from nmt.runs.directory import RunDirectory, tokenizer_hashes
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


def test_files_that_an_editor_gave_a_byte_order_mark_read_back(run: RunDirectory) -> None:
    run.write_config(CONFIG)
    run.write_metrics({"finished": False})
    for name in ("config.yaml", "metrics.json"):
        (run.path / name).write_bytes(b"\xef\xbb\xbf" + (run.path / name).read_bytes())
    assert run.config() == CONFIG
    assert run.metrics() == {"finished": False}


@pytest.mark.parametrize("joint", [True, False])
def test_tokenizers_read_back(run: RunDirectory, joint: bool) -> None:
    models = [
        Tokenizer(train_tokenizer([text] * 3, kind="bpe", size=267, character_coverage=1.0))
        for text in ("one two", "hai ba")
    ]
    pair = TokenizerPair(models[0], models[0] if joint else models[1])
    run.write_config(CONFIG)
    run.write_tokenizers(pair, EN_VI)
    read = run.tokenizers(EN_VI, run.metrics())
    assert read.joint is joint
    assert [side.model for side in read] == [side.model for side in pair]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_text(""), r"^.*run is a file; name the folder that training printed"),
        (lambda path: path.symlink_to("absent"), r"^.*run is a broken symbolic link; name the folder"),
        (
            lambda path: path.symlink_to(path.name),
            r"^.*run is a symbolic link that leads back to itself; name the folder",
        ),
    ],
    ids=["file", "dangling link", "link to itself"],
)
def test_what_is_no_folder_is_named(run: RunDirectory, make: Callable[[Path], object], message: str) -> None:
    make(run.path)
    with pytest.raises(Mistake, match=message):
        run.require_finished()


def test_missing_weights_of_a_finished_run_are_named(run: RunDirectory) -> None:
    finish(run)
    run.weights.unlink()
    with pytest.raises(Mistake, match=r"weights of the finished run in .*run are missing: copy model\.safet"):
        run.require_finished()


def test_a_prefix_reads_back_as_the_list_of_only_it(run: RunDirectory) -> None:
    run.write_config({**CONFIG, "data": {"train": "a"}})
    assert run.config()["data"] == {"train": ["a"]}


def test_a_missing_record_of_a_copied_run_is_named(run: RunDirectory) -> None:
    run.write_config(CONFIG)
    run.weights.write_bytes(b"weights")
    with pytest.raises(Mistake, match=r"run has no metrics\.json: copy it from the original run"):
        run.require_finished()


def test_a_file_with_holes_is_not_read(run: RunDirectory) -> None:
    finish(run)
    os.truncate(run.path / "metrics.json", 2**40)
    with pytest.raises(
        Mistake, match=r"metrics\.json has 1,099,511,627,776 bytes, but such a file never has more than"
    ):
        run.require_finished()
    (run.path / "tokenizer.model").touch()
    os.truncate(run.path / "tokenizer.model", 2**40)
    with pytest.raises(Mistake, match=r"tokenizer\.model has 1,099,511,627,776 bytes, but such a file never has more"):
        run.tokenizers(EN_VI, {"tokenizers": {"tokenizer.model": "0"}})


def test_links_of_a_logger_may_lead_anywhere(run: RunDirectory) -> None:
    finish(run)
    log = run.logs / "version_0" / "wandb"
    log.mkdir(parents=True)
    (log / "debug-core.log").symlink_to("/home/somebody/.cache/wandb/core-debug.log")
    run.check_links()


@pytest.mark.parametrize("joint", [True, False])
def test_a_tokenizer_is_the_one_of_the_run(run: RunDirectory, joint: bool) -> None:
    models = [
        Tokenizer(train_tokenizer([text] * 3, kind="bpe", size=267, character_coverage=1.0))
        for text in ("one two", "hai ba")
    ]
    run.write_config(CONFIG)
    pair = TokenizerPair(models[0], models[0] if joint else models[1])
    run.write_tokenizers(pair, EN_VI)
    run.write_metrics({"finished": True, "tokenizers": tokenizer_hashes(pair, EN_VI)})
    name = "tokenizer.model" if joint else "tokenizer.en.model"
    (run.path / name).write_bytes(models[1].model)
    with pytest.raises(Mistake, match=rf"{name} is not the tokenizer of this run \(its SHA-256 is not the one in met"):
        run.tokenizers(EN_VI, run.metrics())
    (run.path / name).unlink()
    with pytest.raises(Mistake, match=rf"run has no {name}: copy it back, or train the run again"):
        run.tokenizers(EN_VI, run.metrics())


def test_what_is_no_run_directory_is_refused(run: RunDirectory) -> None:
    with pytest.raises(Mistake, match=r"There is no folder .*run; name the folder"):
        run.require_finished()
    run.path.mkdir()
    with pytest.raises(Mistake, match=r"is not a run directory: it has no config\.yaml"):
        run.require_finished()
    run.write_config(CONFIG)
    with pytest.raises(Mistake, match=r"is not finished; resume it with 'python -m nmt.train run_dir=.* resume=true'"):
        run.require_finished()
    finish(run)
    run.require_finished()


def test_a_run_is_not_overwritten_unless_that_is_asked_for(run: RunDirectory) -> None:
    run.require_free(overwrite=False)
    run.write_config(CONFIG)
    with pytest.raises(Mistake, match="holds an unfinished run"):
        run.require_free(overwrite=False)
    finish(run)
    with pytest.raises(Mistake, match="holds a finished run; choose another run_dir, or set overwrite=true"):
        run.require_free(overwrite=False)
    run.require_free(overwrite=True)
    with pytest.raises(Mistake, match="holds a finished run; choose another out, or set overwrite=true"):
        run.require_free(overwrite=False, key="out")


def test_a_folder_of_other_things_is_never_taken(run: RunDirectory) -> None:
    run.path.mkdir()
    run.require_free(overwrite=False)
    (run.path / "thesis.tex").write_text("years")
    with pytest.raises(Mistake, match="exists but is not a run directory"):
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
        ("", r"config\.yaml is not the configuration of a run: it lacks model, search, direction, data"),
        ("- model", "it lacks model, search, direction, data"),
        ("model: {depth: 18}\ndata: {path: x}", "it lacks search, direction; name the folder that training"),
    ],
)
def test_a_configuration_that_is_none_is_named(run: RunDirectory, text: str, message: str) -> None:
    finish(run)
    (run.path / "config.yaml").write_text(text)
    with pytest.raises(Mistake, match=message):
        run.config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"metrics\.json is damaged: it is not JSON"),
        ("[" * 100_000, r"metrics\.json is damaged: it is not JSON"),
        ('{"finished": true, "steps": ' + "9" * 5000 + "}", r"metrics\.json is damaged: it is not JSON"),
        ("[1]", r"metrics\.json is damaged or no file of nmt: it is not a JSON object. Copy the original file back\.$"),
        *(
            (text, rf"metrics\.json is damaged or no file of nmt: {reason}\. Copy the original file back\.$")
            for text, reason in {
                '{"accuracy": 0.9}': "finished is missing",
                '{"finished": 1}': "finished must be true or false",
                '{"finished": true, "steps": "9"}': "steps must be a whole number",
                '{"finished": true, "steps": ' + "9" * 4000 + "}": "steps is out of range",
                '{"finished": true, "wall_time_seconds": ' + "9" * 4000 + "}": "wall_time_seconds must be a number",
                '{"finished": true, "wall_time_seconds": NaN}': "wall_time_seconds is out of range",
                '{"finished": true, "wall_time_seconds": 1e99}': "wall_time_seconds is out of range",
                '{"finished": true, "batches_a_step": 0}': "batches_a_step is out of range",
                '{"finished": true, "corpora": []}': "corpora must be an object",
                '{"finished": true, "tokenizers": {"a": 5}}': r"tokenizers\.a must be text",
                '{"finished": true, "command": ["x"]}': "command must be text",
                '{"finished": true, "scores": {"test": [{"name": "BLEU"}]}}': r"scores\.test\.0\.value is missing",
                '{"finished": true, "scores": {"test": "99"}}': r"scores\.test must be a list",
                '{"finished": true, "scores": []}': "scores must be an object",
                '{"finished": true, "scores": {"valid": {"loss": "x"}}}': r"scores\.valid\.loss must be a number",
                '{"finished": true, "scores": {"valid": {}, "x": 1}}': r"scores\.x: Extra inputs are not permitted",
                '{"finished": true, "scores": {"test": [{"name": "BLEU", "value": 1, "interval": [1]}]}}': (
                    r"scores\.test\.0\.interval: List should have at least 2 items .*"
                ),
            }.items()
        ),
    ],
)
def test_a_record_that_is_none_is_named(run: RunDirectory, text: str, message: str) -> None:
    finish(run)
    (run.path / "metrics.json").write_text(text)
    with pytest.raises(Mistake, match=message):
        run.require_finished()
    run.require_free(overwrite=True)
