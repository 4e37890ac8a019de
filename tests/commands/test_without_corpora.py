"""A run directory that was copied alone: what commands do when the corpora of the run are gone."""

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.cli.arguments import for_hydra
from nmt.cli.settings_class import settings_class
from nmt.commands.compare import compare
from nmt.commands.evaluate import evaluate
from nmt.config.job import Job
from nmt.errors import MissingFile, Mistake
from nmt.exports import export_run
from nmt.exports.export_run import comparison_pairs
from nmt.runs.load import load_run
from nmt.scoring.run_scores import score_test_split
from nmt.scoring.test_sets import example_pairs, split_test_set, stored_pairs

WARNING = "The files of split test (test) are missing"


@pytest.fixture
def alone(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two copies of a finished run, in a folder with nothing else, entered; the first has a comma in its name."""
    folder = tmp_path / "alone"
    for name in ("a,b", "c"):
        shutil.copytree(trained, folder / name)
    monkeypatch.chdir(folder)
    return folder


def test_runs_are_compared_with_their_stored_references(
    alone: Path,
    trained: Path,
    job: Callable[..., Job],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with caplog.at_level(logging.INFO):
        compare(job("compare", run_dirs="['a,b',c]", device="cpu", out="table"))
    assert caplog.text.count(WARNING) == 2
    assert "Evaluating" not in caplog.text
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| a,b"))
    monkeypatch.chdir(trained.parent)
    compare(job("compare", run_dirs="[run]", device="cpu", out="table"))
    assert row.split("|")[2].strip() in capsys.readouterr().out


def test_scores_of_other_weights_are_not_believed(
    alone: Path, job: Callable[..., Job], caplog: pytest.LogCaptureFixture
) -> None:
    file = alone / "c" / "evaluation" / "test" / "scores.json"
    record = json.loads(file.read_text()) | {"weights_sha256": ["0"]}
    file.write_text(json.dumps(record))
    with caplog.at_level(logging.INFO):
        compare(job("compare", run_dirs="[c]", device="cpu", out="table"))
    assert "Evaluating c" in caplog.text


def test_scores_of_another_search_are_not_believed(
    alone: Path, job: Callable[..., Job], caplog: pytest.LogCaptureFixture
) -> None:
    evaluate(job("evaluate", search__beam_size=1, run_dir="[c]", device="cpu"))
    with caplog.at_level(logging.INFO):
        compare(job("compare", run_dirs="[c]", device="cpu", out="table"))
    assert "Evaluating c" in caplog.text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("search_revision", 0),
        ("minimum_bayes_risk", True),
        ("verbatim", True),
        ("max_source_tokens", 7),
        ("precision", "bfloat16"),
        ("engine", "ctranslate2"),
    ],
)
def test_scores_of_other_conditions_are_not_believed(
    alone: Path, job: Callable[..., Job], caplog: pytest.LogCaptureFixture, key: str, value: object
) -> None:
    file = alone / "c" / "evaluation" / "test" / "scores.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    with caplog.at_level(logging.INFO):
        compare(job("compare", run_dirs="[c]", device="cpu", out="table"))
    assert "Evaluating c" in caplog.text


def test_a_stored_split_is_evaluated_as_the_files_are(
    alone: Path, job: Callable[..., Job], caplog: pytest.LogCaptureFixture
) -> None:
    before = json.loads((alone / "c" / "evaluation" / "test" / "scores.json").read_text())["scores"]
    with caplog.at_level(logging.INFO):
        evaluate(job("evaluate", run_dir="[c]", device="cpu", out="scores"))
    assert WARNING in caplog.text
    assert "No scores by rarest word: the training corpus of c is missing" in caplog.text
    assert json.loads((alone / "scores" / "scores.json").read_text())["scores"] == before


def test_an_export_is_compared_on_stored_sentences(
    alone: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = load_run(Path("c"), "cpu")
    with caplog.at_level(logging.WARNING):
        evaluated = comparison_pairs(run)
    assert "The validation corpus valid is missing" in caplog.text
    assert "c/evaluation/test/sentences.jsonl" in caplog.text
    assert evaluated == (split_test_set(run, "test").sources, split_test_set(run, "test").references[0])
    caplog.clear()
    monkeypatch.setattr(export_run, "included_name", lambda folder: "c")
    assert comparison_pairs(run) == evaluated
    assert not caplog.messages, "an included model always comes without its corpora"
    shutil.rmtree("c/evaluation")
    probes = comparison_pairs(run)
    assert [len(side) for side in probes] == [3, 3]
    assert all(line.endswith(".") for side in probes for line in side)
    shutil.rmtree("c/probes")
    with pytest.raises(MissingFile, match=r"which is missing .* stores no sentence\. Give pairs of your own: source="):
        comparison_pairs(run)


def test_the_examples_are_never_sentences_of_files_that_the_user_scored(alone: Path) -> None:
    run = load_run(Path("c"), "cpu")
    of_split = example_pairs(run)
    shutil.copytree("c/evaluation/test", "c/evaluation/files/a")
    own = Path("c/evaluation/files/a/sentences.jsonl")
    own.write_text('{"source": "secret", "references": ["mật"]}\n', encoding="utf-8")
    assert of_split
    assert example_pairs(run) == of_split
    shutil.rmtree("c/evaluation/test")
    assert 1 <= len(example_pairs(run)) <= 3, "those of a probe"
    shutil.rmtree("c/probes")
    assert example_pairs(run) == []
    assert stored_pairs(run.stored) == (own, (["secret"], ["mật"]))


def test_the_examples_of_an_included_model_are_those_that_come_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = load_run("en-vi", "cpu")
    built_in = example_pairs(run)
    for name in ("files/a", "valid"):
        folder = tmp_path / "runs/included/en-vi/evaluation" / name
        folder.mkdir(parents=True)
        (folder / "sentences.jsonl").write_text('{"source": "secret", "references": ["mật"]}\n', encoding="utf-8")
    assert len(built_in) > 1
    assert example_pairs(run) == built_in


def test_a_split_that_was_never_evaluated_is_refused_and_skipped_by_average(
    alone: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree("c/evaluation")
    run = load_run(Path("c"), "cpu")
    with pytest.raises(MissingFile, match=r"^There is no file test\.en .* PREFIX\.vi\. Use your own files\.$"):
        split_test_set(run, "test", remedy=" Use your own files.")
    assert score_test_split(run) == []
    assert "c is not scored on its test split. There is no file test.en" in caplog.text


def test_a_run_without_the_split_is_compared_by_its_translations(alone: Path, job: Callable[..., Job]) -> None:
    shutil.rmtree("c/evaluation")
    with pytest.raises(
        MissingFile, match=r"^There is no file test\.en .* Translate the same file with both runs.* reference=FILE\.$"
    ):
        compare(job("compare", run_dirs="['a,b',c]", device="cpu", out="table"))


def test_an_included_model_says_that_it_is_distributed_without_its_test_sets(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree("c/evaluation")
    monkeypatch.setattr("nmt.runs.included.included_models", lambda: {"en-xx": Path("c")})
    with pytest.raises(
        MissingFile, match=r"en-xx is distributed without its test sets; models/README\.md lists them\.$"
    ):
        split_test_set(load_run(Path("c"), "cpu"), "test")


@pytest.mark.parametrize("content", ["{", '{"source": "a", "references": []}', '{"source": 1, "references": ["a"]}'])
def test_damaged_sentences_are_refused(alone: Path, content: str) -> None:
    file = alone / "c" / "evaluation" / "test" / "sentences.jsonl"
    file.write_text(f"{content}\n")
    with pytest.raises(Mistake, match=r"evaluation/test/sentences\.jsonl .* copy it from the original run"):
        split_test_set(load_run(Path("c"), "cpu"), "test")


@pytest.mark.parametrize("command", ["translate", "evaluate", "score", "align", "export", "train"])
def test_a_comma_in_the_name_of_a_run_is_typed_in_the_same_way_for_every_command(alone: Path, command: str) -> None:
    assert for_hydra(["run_dir=a,b"], settings_class(command)) == ["run_dir='a,b'"]


def test_a_key_that_a_stored_run_lacks_is_not_one_to_add_to_the_command(alone: Path) -> None:
    file = alone / "c" / "config.yaml"
    file.write_text(file.read_text().replace("label_smoothing:", "former_smoothing:"))
    with pytest.raises(
        Mistake, match=r"label_smoothing is missing\. Another version of nmt wrote it: train the run again\.$"
    ):
        load_run(Path("c"), "cpu")
