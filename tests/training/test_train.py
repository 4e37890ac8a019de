"""A training from its configuration to its run directory, and the commands that need nothing but that."""

import contextlib
import io
import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

import nmt
from nmt.commands.evaluate import evaluate
from nmt.commands.export_attention import export_attention
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.errors import CheckFailed, Mistake
from nmt.text import Tokenizer


def test_a_run_directory_is_complete(trained: Path, finished: str) -> None:
    names = {path.name for path in trained.iterdir()}
    files = {"config.yaml", "tokenizer.model", "model.safetensors", "metrics.json", "source_words.txt"}
    assert names == files | {"logs", "checkpoints", "evaluation", "probes"}
    output = finished.splitlines()
    assert output[0] == "run"
    assert [line.split()[:2] for line in output[1:]] == [["test", "BLEU"], ["test", "chrF2"]]
    metrics = json.loads((trained / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["finished"] is True
    assert metrics["command"] == "python -m nmt.train THE COMMAND"
    assert (metrics["steps"], metrics["seed"], metrics["direction"]) == (9, 1, "en-vi")
    assert metrics["scores"]["test"][0]["signature"].startswith("nrefs:1|")
    assert set(metrics["corpora"]) == {f"{name}.{side}" for name in ("train", "valid", "test") for side in ("en", "vi")}
    assert metrics["parameters"] > 0
    assert metrics["target_tokens_per_second"] > 0
    assert metrics["wall_time_seconds"] > 0
    assert "torch" in metrics["versions"]


def test_training_ends_with_a_validation_and_the_best_weights(trained: Path) -> None:
    """9 steps are no multiple of 4: the last validation is at step 9."""
    checkpoints = {path.name for path in (trained / "checkpoints").iterdir()}
    assert checkpoints == {"best-step=4.ckpt", "best-step=8.ckpt", "best-step=9.ckpt", "last.ckpt", "previous.ckpt"}
    best = json.loads((trained / "metrics.json").read_text(encoding="utf-8"))["best"]
    stored = torch.load(trained / "checkpoints" / f"best-step={best['step']}.ckpt", weights_only=True)["state_dict"]
    for name, value in load_file(trained / "model.safetensors").items():
        torch.testing.assert_close(value, stored[f"model.{name}"], rtol=0, atol=0)


def test_a_moved_run_directory_translates_alone(trained: Path, tmp_path: Path) -> None:
    lines = ["one two.", "", "seven"]
    before = nmt.load(trained, device="cpu").translate(lines)
    elsewhere = tmp_path / "elsewhere" / "copy"
    shutil.copytree(trained, elsewhere, ignore=shutil.ignore_patterns("checkpoints", "evaluation", "logs"))
    shutil.rmtree(trained)
    assert nmt.load(elsewhere, device="cpu").translate(lines) == before
    assert before[1] == ""
    assert len(before) == 3


def test_a_longer_training_equals_one_that_was_long_from_the_start(
    job: Callable[..., Job], trained: Path, corpus_copy: Path
) -> None:
    """And the folder has been moved in between, and its best checkpoints are still known."""
    trained.rename(corpus_copy / "moved")
    train(job("train", run_dir="moved", trainer__max_steps=13, resume="true"))
    train(job("train", run_dir="long", trainer__max_steps=13, validation__every=4))
    moved, long = (
        torch.load(corpus_copy / name / "checkpoints" / "last.ckpt", weights_only=True) for name in ("moved", "long")
    )
    torch.testing.assert_close(moved["state_dict"], long["state_dict"], rtol=0, atol=0)
    assert len(list((corpus_copy / "moved" / "checkpoints").glob("best-*.ckpt"))) == 3
    assert moved["target_tokens"] == long["target_tokens"]
    metrics = json.loads((corpus_copy / "moved" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["command"] == "python -m nmt.train THE COMMAND trainer.max_steps=13"


def test_a_longer_training_keeps_its_schedule_and_says_so(
    job: Callable[..., Job], trained: Path, corpus_copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train(job("train", run_dir="cosine", schedule="cosine", schedule__warmup=1, trainer__max_steps=3))
    train(job("train", run_dir="cosine", resume="true", trainer__max_steps=4))
    assert "trainer.max_steps is now 4, but the learning rate still decays over 3 steps" in caplog.text
    assert yaml.safe_load((corpus_copy / "cosine" / "config.yaml").read_text())["schedule"]["steps"] == 3
    caplog.clear()
    # A run that was stopped before it was scored does not repeat the warning.
    metrics = corpus_copy / "cosine" / "metrics.json"
    metrics.write_text(metrics.read_text(encoding="utf-8").replace('"finished": true', '"finished": false'), "utf-8")
    train(job("train", run_dir="cosine", resume="true", trainer__max_time="00:00:10:00"))
    assert "the learning rate decays" not in caplog.text


def test_a_name_in_detokenize_that_is_nothing_is_warned_of(
    job: Callable[..., Job], corpus_copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train(job("train", run_dir="new", data__detokenize="[trian]", trainer__max_steps=2))
    assert "data.detokenize contains 'trian', which is neither a corpus of this run nor a file" in caplog.text


def test_a_step_that_is_not_finite_is_told_with_the_sentences_that_it_has_read(
    job: Callable[..., Job], corpus_copy: Path
) -> None:
    """Of a joined pair too, which is no pair of the corpus."""
    changes = {"optimizer__lr": 1e30, "trainer__gradient_clip_val": "null"}
    changes |= {"data__concat_prob": 1.0, "batching__batch_tokens": 2000}
    with pytest.raises(
        CheckFailed,
        match=r"^At step \d+ the loss is .*\. Start over with a lower optimizer\.lr .* are in new/nonfinite",
    ):
        train(job("train", run_dir="new", **changes))
    record = json.loads((corpus_copy / "new" / "nonfinite.json").read_text(encoding="utf-8"))
    lines = set((corpus_copy / "train.en").read_text(encoding="utf-8").splitlines())
    sources = {sentence["source"] for sentence in record["sentences"]}
    joined = {f"{line} {other}" for line in lines for other in lines}
    assert sources <= lines | joined
    assert sources & joined


def test_a_validation_without_bleu_shows_none(
    job: Callable[..., Job], corpus_copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changes = {"validation__monitor": "loss", "validation__max_time_fraction": 1e-9, "validation__every": 1}
    with caplog.at_level(logging.INFO):
        train(job("train", run_dir="new", trainer__max_steps=3, **changes))
    lines = [text for text in caplog.messages if "valid_loss" in text and text.startswith("step")]
    assert ["valid_bleu" in line for line in lines] == [True, False, True]


RECIPE = {
    "subword_sampling": 0.4,
    "word_dropout": 0.2,
    "objective": "simcut",
    "objective__cut": 0.3,
    "data__concat_prob": 0.3,
    "data__sampling_temperature": 3,
    "data__train": "[train,valid]",
    "validation__every": 4,
    "data__test": "null",
}


TWO_STEPS = {"trainer__max_steps": 2, "data__train": "[train,valid]", "data__test": "null"}


@pytest.fixture(scope="session")
def without_recipe(job: Callable[..., Job], session_corpus: Path) -> dict[str, torch.Tensor]:
    """The weights after two steps without any part of the recipe."""
    with contextlib.chdir(session_corpus), contextlib.redirect_stdout(io.StringIO()):
        train(job("train", run_dir="without_recipe", **TWO_STEPS))
    return load_file(session_corpus / "without_recipe" / "model.safetensors")


@pytest.mark.parametrize(
    "part", ["subword_sampling", "word_dropout", "objective", "data__concat_prob", "data__sampling_temperature"]
)
def test_every_part_of_the_recipe_changes_the_training(
    job: Callable[..., Job], corpus_copy: Path, without_recipe: dict[str, torch.Tensor], part: str
) -> None:
    train(job("train", run_dir="with", **TWO_STEPS, **{part: RECIPE[part]}))
    after = load_file(corpus_copy / "with" / "model.safetensors")
    assert any(not value.equal(after[name]) for name, value in without_recipe.items())


def test_with_the_whole_recipe_a_resumed_run_is_the_uninterrupted_one(
    job: Callable[..., Job], corpus_copy: Path
) -> None:
    train(job("train", **RECIPE, run_dir="resumed", trainer__max_steps=9))
    train(job("train", **RECIPE, run_dir="resumed", trainer__max_steps=13, resume="true"))
    train(job("train", **RECIPE, run_dir="whole", trainer__max_steps=13))
    resumed, whole = (
        torch.load(corpus_copy / name / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
        for name in ("resumed", "whole")
    )
    torch.testing.assert_close(resumed, whole, rtol=0, atol=0)


def test_tokens_become_plain_text_before_training_and_in_the_sources_of_a_test(
    job: Callable[..., Job], corpus_copy: Path
) -> None:
    for split in ("train", "valid", "test"):
        for side in ("en", "vi"):
            file = corpus_copy / f"{split}.{side}"
            file.write_text(file.read_text(encoding="utf-8").replace(".", " . &quot;"), encoding="utf-8")
    changes = {"data__detokenize": "[train,valid,test]", "data__tokenized": "false", "trainer__max_steps": 2}
    train(job("train", run_dir="plain", **changes))
    rows = (corpus_copy / "plain" / "evaluation" / "test" / "sentences.jsonl").read_text(encoding="utf-8").splitlines()
    scores = json.loads((corpus_copy / "plain" / "evaluation" / "test" / "scores.json").read_text(encoding="utf-8"))
    for row in map(json.loads, rows):
        assert "&quot;" not in row["source"]
        assert row["references"][0].endswith(" . &quot;")
    assert "|tok:13a|" in scores["scores"][0]["signature"]
    assert "BLEU detokenized" in [score["name"] for score in scores["scores"]], "the references look like tokens"
    tokenizer = Tokenizer.load(corpus_copy / "plain" / "tokenizer.model")
    assert not any("quot" in piece for piece in tokenizer.pieces(range(tokenizer.size)))
    train(job("train", run_dir="tokens", trainer__max_steps=2, data__tokenized="true"))
    scores = json.loads((corpus_copy / "tokens" / "evaluation" / "test" / "scores.json").read_text(encoding="utf-8"))
    found = {score["name"]: score["signature"] for score in scores["scores"]}
    assert "|tok:none|" in found["BLEU"]
    assert found["BLEU detokenized"].endswith("|detok:sacremoses-0.1.1")


def test_a_moving_average_of_the_weights_is_kept_scored_and_resumed_exactly(
    job: Callable[..., Job], corpus_copy: Path
) -> None:
    shared = {"ema_decay": 0.5, "validation__every": 4}
    train(job("train", **shared, run_dir="resumed", trainer__max_steps=9))
    train(job("train", **shared, run_dir="resumed", trainer__max_steps=13, resume="true"))
    train(job("train", **shared, run_dir="whole", trainer__max_steps=13))
    resumed, whole = (
        torch.load(corpus_copy / name / "checkpoints" / "last.ckpt", weights_only=True) for name in ("resumed", "whole")
    )
    for part in ("state_dict", "current_model_state"):
        torch.testing.assert_close(resumed[part], whole[part], rtol=0, atol=0)
    name = "model.encoder.0.feed_forward.inner.weight"
    assert not whole["state_dict"][name].equal(whole["current_model_state"][name])
    kept = load_file(corpus_copy / "whole" / "model.safetensors")[name.removeprefix("model.")]
    best = [
        torch.load(file, weights_only=True)["state_dict"] for file in corpus_copy.glob("whole/checkpoints/best-*.ckpt")
    ]
    assert any(state[name].equal(kept) for state in best)


def test_a_resumed_run_reads_its_own_tokenizers(
    job: Callable[..., Job], trained: Path, corpus_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trains(*_: object, **__: object) -> None:
        raise RuntimeError("trains tokenizers again")

    monkeypatch.setattr("nmt.training.translation.learned_tokenizers", trains)
    before = (trained / "tokenizer.model").read_bytes()
    train(job("train", trainer__max_steps=10, resume="true"))
    assert (trained / "tokenizer.model").read_bytes() == before


def test_a_corpus_that_has_changed_is_not_resumed(job: Callable[..., Job], trained: Path, corpus_copy: Path) -> None:
    for side in ("en", "vi"):
        with (corpus_copy / f"valid.{side}").open("a", encoding="utf-8") as file:
            file.write("two.\n")
    with pytest.raises(Mistake, match=r"valid\.en has changed since the run was started"):
        train(job("train", trainer__max_steps=13, resume="true"))


def test_evaluation_of_a_split_and_of_files(
    job: Callable[..., Job], trained: Path, corpus_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, lines in (("valid", 7), ("test", 1)):
        (corpus_copy / f"{name}.en-vi.align").write_text("0-0\n" * lines)
    capsys.readouterr()
    evaluate(job("evaluate", run_dir="run"))
    split = capsys.readouterr().out.splitlines()
    names = ["BLEU ", "BLEU none", "BLEU uncased", "chrF2 ", "chrF2++", "TER", "Perplexity", "AER"]
    assert all(any(line.startswith(name) for line in split) for name in names)
    assert sum("sources whose rarest word" in line for line in split) == 1
    assert sum("chosen on the validation split" in line for line in split) == 1
    evaluate(job("evaluate", run_dir="run", source="test.en", reference="test.vi", alignment="test.en-vi.align"))
    assert capsys.readouterr().out.splitlines() == split
    folder = trained / "evaluation" / "files" / "test"
    assert (trained / "evaluation" / "test" / "scores.json").is_file()
    assert len((folder / "hypotheses.txt").read_text(encoding="utf-8").splitlines()) == 1
    assert len((folder / "sentences.tsv").read_text(encoding="utf-8").splitlines()) == 2
    sentence = json.loads((folder / "sentences.jsonl").read_text(encoding="utf-8"))
    assert set(sentence) == {"line", "chrF2", "source", "hypothesis", "references"}
    assert sentence["references"] == (corpus_copy / "test.vi").read_text(encoding="utf-8").splitlines()
    record = json.loads((folder / "scores.json").read_text())
    names = {"scores", "by_length", "by_rarest_word", "perplexity", "sentences_per_second", "workers", "aer"}
    assert set(record) == names | {
        "runs",
        "command",
        "test_set",
        "search",
        "search_revision",
        "minimum_bayes_risk",
        "verbatim",
        "batch_tokens",
        "device",
        "precision",
        "max_source_tokens",
        "made_with",
        "weights_sha256",
    }
    assert record["perplexity"]["piece"] > record["perplexity"]["character"] > 1


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "evaluate",
            {"split": "tst"},
            "Unknown split 'tst'. Did you mean 'test'.* source=FILE",
        ),
        ("evaluate", {"source": "test.en"}, "source is given without reference"),
        ("evaluate", {"reference": "test.vi"}, "reference is given without source"),
        ("evaluate", {"alignment": "x"}, "alignment is only for your own files"),
        ("evaluate", {"source": "test.en", "reference": "valid.vi"}, r"test\.en has 1 lines but valid\.vi has 7"),
        ("evaluate", {"search__beam_size": "abc"}, "search.beam_size must be a whole number, not 'abc'"),
        ("evaluate", {"device": "gpu"}, "Unknown device 'gpu'"),
        ("evaluate", {"precision": "int4"}, "Unknown precision 'int4'"),
        ("evaluate", {"precision": "16"}, "Unknown precision '16'"),
        ("export_attention", {"input": "absent", "out": "m"}, "input is absent, which does not exist"),
        (
            "export_attention",
            {"input": "test.en", "out": "m", "layer": 4},
            "layer is 4; cross has only layer 0",
        ),
        ("export_attention", {"input": "test.en", "target": "valid.vi", "out": "m"}, "has 1 lines but valid.vi has 7"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(
    job: Callable[..., Job], trained: Path, name: str, changes: dict[str, Any], message: str
) -> None:
    run = {"evaluate": evaluate, "export_attention": export_attention}[name]
    with pytest.raises(Mistake, match=message):
        run(job(name, run_dir="run", **changes))


@pytest.mark.parametrize("target", ["os.system", "nmt.files.os.system", "nmt.runs.directory.RunDirectory", "nmt.no"])
def test_a_foreign_class_in_a_run_directory_is_not_loaded(trained: Path, target: str) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    config["search"]["_target_"] = target
    (trained / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(Mistake, match=rf"names '{target}' at search, where only nmt\.decoding\.beam\.BeamSearch,"):
        nmt.load(trained)


def test_an_interpolation_in_a_run_directory_is_not_loaded(trained: Path) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    config["search"]["beam_size"] = "${oc.create:{_target_: os.system}}"
    (trained / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(Mistake, match="which is an unresolved interpolation or a missing value; it is not loaded"):
        nmt.load(trained)


def test_weights_of_another_model_are_refused(trained: Path) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    config["model"]["ffn_dim"] = 23
    (trained / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(Mistake, match="does not hold the weights of the model"):
        nmt.load(trained)


@pytest.mark.parametrize("part", ["model", "search"])
def test_a_configuration_of_another_version_is_refused(trained: Path, part: str) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    config[part]["formerly"] = 23
    (trained / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(Mistake, match=rf"cannot be used: Unknown key '{part}\.formerly'"):
        nmt.load(trained)


def test_a_finished_run_without_its_last_checkpoint_is_not_trained_anew(job: Callable[..., Job], trained: Path) -> None:
    before = {path.name: path.read_bytes() for path in trained.iterdir() if path.is_file()}
    for name in ("last.ckpt", "previous.ckpt"):
        (trained / "checkpoints" / name).unlink(missing_ok=True)
    with pytest.raises(
        Mistake, match=r"is finished, and .*checkpoints has no last\.ckpt to resume from: start a new run"
    ):
        train(job("train", trainer__max_steps=12, resume="true"))
    assert {path.name: path.read_bytes() for path in trained.iterdir() if path.is_file()} == before
