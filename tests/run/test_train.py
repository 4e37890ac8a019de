"""A training from its configuration to its run directory, and the commands that need nothing but that."""

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

import nmt
from nmt.data.dataset import TrainingData
from nmt.data.plan import plan
from nmt.run.build_training import check_buildable, choose_machine, faster_precision, steps_of_training
from nmt.run.compose import Job
from nmt.run.evaluate import evaluate
from nmt.run.exits import CheckFailed
from nmt.run.export_attention import export_attention
from nmt.run.settings import Settings
from nmt.run.train import train
from nmt.text import Tokenizer


def test_a_run_directory_is_complete(trained: Path, finished: str) -> None:
    names = {path.name for path in trained.iterdir()}
    files = {"config.yaml", "tokenizer.model", "model.safetensors", "metrics.json"}
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


NEW = {
    "": ["objective", "word_dropout", "subword_sampling", "start_from", "nonfinite_steps"],
    "batching": ["temperature", "concatenate"],
    "data": ["tokenized", "detokenize"],
    "model": ["norm"],
}


def test_a_longer_training_keeps_its_schedule_and_says_so(
    job: Callable[..., Job], trained: Path, corpus_copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train(job("train", run_dir="cosine", schedule="cosine", schedule__warmup=1, trainer__max_steps=3))
    train(job("train", run_dir="cosine", resume="true", trainer__max_steps=4))
    assert "trainer.max_steps is 4 now, but the learning rate falls along 3 steps, as the run began" in caplog.text
    assert yaml.safe_load((corpus_copy / "cosine" / "config.yaml").read_text())["schedule"]["steps"] == 3
    caplog.clear()
    # What is not changed is not told again.
    train(job("train", run_dir="cosine", resume="true", trainer__max_time="00:00:10:00"))
    assert "the learning rate falls" not in caplog.text


def test_a_name_in_detokenize_that_is_nothing_is_warned_of(
    job: Callable[..., Job], corpus_copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train(job("train", run_dir="new", data__detokenize="[trian]", trainer__max_steps=2))
    assert "data.detokenize has 'trian', which is no corpus of this training and no file" in caplog.text


def test_a_step_that_is_not_finite_is_told_with_the_sentences_that_it_has_read(
    job: Callable[..., Job], corpus_copy: Path
) -> None:
    """Of a joined pair too, which is no pair of the corpus."""
    changes = {"optimizer__lr": 1e30, "trainer__gradient_clip_val": "null"}
    changes |= {"batching__concatenate": 1.0, "batching__batch_tokens": 2000}
    with pytest.raises(
        CheckFailed,
        match=r"^At step \d+ the loss is .*\. Begin again with a lower optimizer\.lr .* are in new/nonfinite",
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
    changes = {"validation__monitor": "loss", "validation__time_share": 1e-9, "validation__every": 1}
    with caplog.at_level(logging.INFO):
        train(job("train", run_dir="new", trainer__max_steps=3, **changes))
    lines = [text for text in caplog.messages if "valid_loss" in text and text.startswith("step")]
    assert ["valid_bleu" in line for line in lines] == [True, False, True]


def test_a_run_of_an_older_version_is_resumed_by_its_own_command(
    job: Callable[..., Job], trained: Path, corpus_copy: Path
) -> None:
    """Its stored configuration lacks what has come since."""
    train(job("train", run_dir="whole", trainer__max_steps=13, validation__every=4))
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    for section, keys in NEW.items():
        for key in keys:
            del (config[section] if section else config)[key]
    (trained / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    train(job("train", trainer__max_steps=13, resume="true"))
    for name, value in load_file(trained / "model.safetensors").items():
        torch.testing.assert_close(value, load_file(corpus_copy / "whole" / "model.safetensors")[name], rtol=0, atol=0)


RECIPE = {
    "subword_sampling": 0.4,
    "word_dropout": 0.2,
    "objective": "simcut",
    "objective__cut": 0.3,
    "batching__concatenate": 0.3,
    "batching__temperature": 3,
    "data__train": "[train,valid]",
    "validation__every": 4,
}


@pytest.mark.parametrize(
    "part", ["subword_sampling", "word_dropout", "objective", "batching__concatenate", "batching__temperature"]
)
def test_every_part_of_the_recipe_changes_the_training(job: Callable[..., Job], corpus_copy: Path, part: str) -> None:
    for name, more in {"plain": {}, "with": {part: RECIPE[part]}}.items():
        train(job("train", run_dir=name, trainer__max_steps=2, data__train="[train,valid]", **more))
    before, after = (load_file(corpus_copy / name / "model.safetensors") for name in ("plain", "with"))
    assert any(not value.equal(after[name]) for name, value in before.items())


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resume": "true", "overwrite": "true"}, "overwrite=true deletes it: give one of them"),
        ({"resume": "true"}, "is finished; give a larger trainer.max_steps"),
        (
            {"resume": "true", "trainer__max_steps": 5},
            "trainer.max_steps is 5, but the run has done 9 steps; give a larger",
        ),
        ({"resume": "true", "scorer": "additive"}, r"^scorer\._target_ is .*Additive, but .*ScaledDot in the run that"),
        (
            {"resume": "true", "schedule": "constant"},
            r"^schedule\._target_ is .*constant, but .*inverse_sqrt in the run that is.*; .*: leave out schedule=, or",
        ),
        ({"resume": "true", "optimizer__lr": 0.5}, r"optimizer.lr is 0.5, but 0.01 in the run that is resumed; only"),
        ({"resume": "true", "run_dir": "none"}, "There is no run to resume in none"),
        ({}, "run holds a finished run; choose another run_dir, or overwrite=true"),
        ({"run_dir": "new", "data__valid": "absent"}, "No file absent.en"),
        (
            {"run_dir": "new", "trainer__accelerator": "tpu"},
            "Lightning refuses .*accelerator=auto takes what this mach",
        ),
        ({"run_dir": "new", "data__train": "[]"}, "data.train is empty"),
        ({"run_dir": "new", "data__test": "[test]"}, "data.test must be the PREFIX of aligned files"),
        ({"run_dir": "new", "direction": "en"}, "Unknown direction 'en'"),
        ({"run_dir": "new", "validation__monitor": "bleus"}, "Unknown validation.monitor 'bleus'. Did you mean 'bleu'"),
        ({"run_dir": "new", "validation__every": 0}, "validation.every is 0; it must be a whole number of at least 1"),
        ({"run_dir": "new", "trainer__max_time": "10m"}, "trainer.max_time is '10m'; write days:hours:minutes:seconds"),
        ({"run_dir": "new", "trainer__max_steps": "null"}, "Training would never end"),
        ({"run_dir": "new", "trainer__max_steps": -1}, "trainer.max_steps is -1; .* at least 1, or null for no limit"),
        ({"run_dir": "new", "trainer__max_epochs": -1}, "trainer.max_epochs is -1; .* or null for no limit"),
        ({"run_dir": "new", "trainer__limit_val_batches": 0}, "limit_val_batches is 0, but a training keeps the weigh"),
        ({"run_dir": "new", "validation__time_share": 2}, "validation.time_share is 2; it must be above 0 and at most"),
        ({"run_dir": "train.en/run"}, "run_dir is train.en/run, but train.en is a file; give another folder"),
        ({"run_dir": "new", "cache_dir": "train.en"}, "cache_dir is train.en, but train.en is a file"),
        ({"run_dir": "new", "tokenizer__size": 0}, "tokenizer.size is 0; it must be a whole number of at least 1"),
        ({"run_dir": "new", "tokenizer__size": 3}, "Vocabulary size 3 has no room for PAD, UNK, BOS and EOS; set"),
        ({"run_dir": "new", "trainer__precision": "foo"}, "Lightning refuses an option under trainer: Precision 'foo'"),
        (
            {"run_dir": "new", "trainer__precision": "16-mixed", "optimizer__fused": "true"},
            "trainer.precision=16-mixed scales gradients, .*add optimizer.fused=false, or use trainer.precision=bf16",
        ),
        ({"run_dir": "new", "trainer__precision": 16, "optimizer__fused": "true"}, "trainer.precision=16 scales gradi"),
        ({"run_dir": "new", "optimizer__lr": -1}, "optimizer.lr is -1; it must be a number of at least 0"),
        ({"run_dir": "new", "seed": -1}, "seed is -1; it must be a whole number of at least 0"),
        ({"run_dir": "new", "batching__workers": -1}, "batching.workers is -1; it must be a whole number of at least"),
        ({"run_dir": "new", "model__num_heads": 0}, "num_heads is 0; it must be a whole number of at least 1"),
        ({"run_dir": "new", "model__num_layers": 0}, "num_layers is 0; it must be a whole number of at least 1"),
        ({"run_dir": "new", "model__dim": -4}, "^dim is -4; it must be a whole number of at least 1"),
        ({"run_dir": "new", "scorer": "additive", "scorer__hidden_dim": 0}, "scorer.hidden_dim is 0; it must"),
        (
            {"run_dir": "new", "scorer": "location", "scorer__max_length": 7},
            r"The longest source of the training data has \d+ pieces with EOS, but scorer=location has weights for 7: ",
        ),
        ({"run_dir": "new", "optimizer__betas": "[0.9]"}, "The model, the optimizer or the schedule cannot be made: "),
        ({"run_dir": "new", "schedule__warmup": 0}, "schedule.warmup is 0"),
        ({"run_dir": "new", "ema_decay": 1.5}, "ema_decay is 1.5; it must be a number between 0 and 1, such as 0.999"),
        ({"run_dir": "new", "checkpoints__recent": -1}, "checkpoints.recent is -1; it must be a whole number"),
        ({"run_dir": "new", "label_smoothing": 1.5}, "label_smoothing is 1.5"),
        ({"run_dir": "new", "word_dropout": 1.5}, "word_dropout is 1.5; it must be at least 0 and below 1"),
        (
            {"run_dir": "new", "subword_sampling": 2},
            "subword_sampling is 2; .* at most 1, such as 0.2, or null for none",
        ),
        ({"run_dir": "new", "subword_sampling": "x"}, "subword_sampling is x; it must be above 0"),
        ({"run_dir": "new", "objective": "r_drop", "objective__alpha": -1.5}, "objective.alpha is -1.5; it must not"),
        ({"run_dir": "new", "batching__temperature": 0}, "batching.temperature is 0; it must be a number above 0"),
        ({"run_dir": "new", "batching__concatenate": 2}, "batching.concatenate is 2; .*such as 0.2, or 0 for none"),
        ({"run_dir": "new", "data__detokenize": "train"}, "data.detokenize is train; it must be a list"),
        ({"run_dir": "new", "data__detokenize": "[7]"}, "data.detokenize has 7; it must be PREFIXES of corpora"),
        ({"run_dir": "new", "optimizer__lr": "inf"}, "optimizer.lr is inf; it must be a number of at least 0"),
        ({"run_dir": "new", "data__tokenized": "true", "data__detokenize": "[a]"}, "data.tokenized=true scores tokens"),
        ({"run_dir": "new", "data__tokenized": "perhaps"}, "data.tokenized is perhaps; it must be true, false or null"),
        ({"run_dir": "new", "search__beam_size": 0}, "beam_size is 0; "),
        ({"run_dir": "new", "batching__batch_tokens": 3}, "batch_tokens=3 is less than the longest sentence"),
        ({"run_dir": "new", "tokenizer__size": 9999}, "Vocabulary size 9999 is too large for this text"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_a_run_directory_is_made(
    job: Callable[..., Job], corpus_copy: Path, changes: dict[str, Any], message: str
) -> None:
    (corpus_copy / "run").mkdir(exist_ok=True)
    (corpus_copy / "run" / "config.yaml").write_text(yaml.safe_dump({**job("train").config, "resume": None}))
    (corpus_copy / "run" / "model.safetensors").write_bytes(b"")
    (corpus_copy / "run" / "metrics.json").write_text('{"finished": true, "steps": 9}')
    with pytest.raises((ValueError, OSError), match=message):
        train(job("train", **changes))
    assert not (corpus_copy / "new").exists()


def test_a_resumed_run_reads_its_own_tokenizers(
    job: Callable[..., Job], trained: Path, corpus_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trains(*_: object, **__: object) -> None:
        raise RuntimeError("trains tokenizers again")

    monkeypatch.setattr("nmt.run.start.trained_tokenizers", trains)
    before = (trained / "tokenizer.model").read_bytes()
    train(job("train", trainer__max_steps=10, resume="true"))
    assert (trained / "tokenizer.model").read_bytes() == before


@pytest.mark.parametrize("processes", [1, 2])
def test_an_epoch_of_several_processes_has_as_many_steps_as_its_plan(job: Callable[..., Job], processes: int) -> None:
    changes = {"trainer": "ddp", "trainer__devices": processes} if processes > 1 else {}
    settings = Settings(job("train", trainer__max_epochs=3, trainer__max_steps="null", **changes).config)
    assert choose_machine(settings.config).processes == processes
    rows = TrainingData.__new__(TrainingData)
    rows.lengths, rows.parts = np.full((101, 2), 7), [101]
    steps = [len(plan(1, epoch, rows.lengths, 101, 1, processes)) for epoch in range(3)]
    assert steps_of_training(settings, rows, processes) == sum(steps)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"objective": "r_drop"}, True),
        ({"objective": "simcut", "objective__cut": 0.0}, True),
        ({"objective": "simcut"}, False),
        ({"objective": "r_drop", "model__dropout_at__ffn": 0.1}, False),
        ({}, False),
    ],
)
def test_two_passes_that_would_be_the_same_are_told(
    job: Callable[..., Job], changes: dict[str, Any], told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    check_buildable(Settings(job("train", model__dropout=0.0, **changes).config))
    assert ("compares two passes that differ by dropout alone, and this model has none" in caplog.text) == told


def test_a_learning_rate_that_will_not_fall_to_the_end_is_told(
    job: Callable[..., Job], caplog: pytest.LogCaptureFixture
) -> None:
    rows = TrainingData.__new__(TrainingData)
    rows.lengths, rows.parts = np.full((101, 2), 7), [101]
    settings = Settings(job("train", trainer__max_epochs=1, trainer__max_steps=50, schedule="cosine").config)
    steps = steps_of_training(settings, rows, 1)
    assert (
        f"ends at step {steps} of the 50 along which the learning rate falls; trainer.max_steps={steps}" in caplog.text
    )
    caplog.clear()
    for own in ({"trainer__max_steps": steps, "schedule": "cosine"}, {"trainer__max_steps": 50}):
        steps_of_training(Settings(job("train", trainer__max_epochs=1, **own).config), rows, 1)
    assert "learning rate" not in caplog.text


@pytest.mark.parametrize(
    ("able", "precision", "device", "expected"),
    [
        ({"avx512_bf16": True}, "32-true", "cpu", "bf16-mixed"),
        ({"amx_bf16": True, "avx512_bf16": False}, 32, "cpu", "bf16-mixed"),
        ({"amx_bf16": False, "avx512_bf16": False}, "32-true", "cpu", None),
        ({}, "32-true", "cpu", None),
        ({"amx_bf16": True}, "bf16-mixed", "cpu", None),
        ({"amx_bf16": True}, "32-true", "cuda", None),
    ],
)
def test_a_cpu_that_is_fast_in_bfloat16_is_named(able, precision, device, expected, monkeypatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able)
    assert faster_precision({"trainer": {"precision": precision}}, device) == expected


def test_a_corpus_that_has_changed_is_not_resumed(job: Callable[..., Job], trained: Path, corpus_copy: Path) -> None:
    for side in ("en", "vi"):
        with (corpus_copy / f"valid.{side}").open("a", encoding="utf-8") as file:
            file.write("two.\n")
    with pytest.raises(ValueError, match=r"valid\.en has changed since the run was started"):
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
    assert "chosen on the validation split" in split[-1]
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
    names = {"scores", "by_length", "by_rarest_word", "perplexity", "sentences_per_second", "aer"}
    assert set(record) == names | {
        "runs",
        "search",
        "minimum_bayes_risk",
        "batch_tokens",
        "device",
        "precision",
        "max_source_tokens",
        "made_with",
    }
    assert record["perplexity"]["piece"] > record["perplexity"]["character"] > 1


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("evaluate", {"split": "tst"}, "Unknown split 'tst'. Did you mean 'test'"),
        ("evaluate", {"source": "test.en"}, "source is given without reference"),
        ("evaluate", {"reference": "test.vi"}, "reference is given without source"),
        ("evaluate", {"alignment": "x"}, "alignment belongs to files of your own"),
        ("evaluate", {"source": "test.en", "reference": "valid.vi"}, r"test\.en has 1 lines but valid\.vi has 7"),
        ("evaluate", {"search__beam_size": "abc"}, "search.beam_size must be a whole number, not 'abc'"),
        ("evaluate", {"device": "gpu"}, "device is 'gpu'; it must be one of auto, cpu, cuda"),
        ("evaluate", {"precision": "int4"}, "Unknown precision 'int4'"),
        ("evaluate", {"precision": "16"}, "Unknown precision '16'"),
        ("export_attention", {"input": "absent", "out": "m"}, "input is absent, and there is no such file"),
        (
            "export_attention",
            {"input": "test.en", "out": "m", "layer": 4},
            "layer is 4; cross has one layer, 0",
        ),
        ("export_attention", {"input": "test.en", "target": "valid.vi", "out": "m"}, "has 1 lines but valid.vi has 7"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(
    job: Callable[..., Job], trained: Path, name: str, changes: dict[str, Any], message: str
) -> None:
    run = {"evaluate": evaluate, "export_attention": export_attention}[name]
    with pytest.raises((ValueError, OSError), match=message):
        run(job(name, run_dir="run", **changes))


@pytest.mark.parametrize("target", ["os.system", "nmt.run.rundir.os.system", "nmt.run.rundir.RunDirectory", "nmt.no"])
def test_a_foreign_class_in_a_run_directory_is_not_loaded(trained: Path, target: str) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    config["search"]["_target_"] = target
    (trained / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(ValueError, match=rf"names '{target}', which is no part of nmt.models, nmt.attention"):
        nmt.load(trained)


def test_an_interpolation_in_a_run_directory_is_not_loaded(trained: Path) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    config["search"]["beam_size"] = "${oc.create:{_target_: os.system}}"
    (trained / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(ValueError, match="which is not resolved; it is not loaded"):
        nmt.load(trained)


def test_weights_of_another_model_are_refused(trained: Path) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    config["model"]["ffn_dim"] = 23
    (trained / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(ValueError, match="does not hold the weights of the model"):
        nmt.load(trained)


@pytest.mark.parametrize("part", ["model", "search"])
def test_a_configuration_of_another_version_is_refused(trained: Path, part: str) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    config[part]["formerly"] = 23
    (trained / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(ValueError, match=r"does not describe a model and a search of this version of nmt \(.*formerly"):
        nmt.load(trained)


def test_a_finished_run_without_its_last_checkpoint_is_not_trained_anew(job: Callable[..., Job], trained: Path) -> None:
    before = {path.name: path.read_bytes() for path in trained.iterdir() if path.is_file()}
    for name in ("last.ckpt", "previous.ckpt"):
        (trained / "checkpoints" / name).unlink(missing_ok=True)
    with pytest.raises(
        ValueError, match=r"is finished, and .*checkpoints has no last\.ckpt to go on from: train another"
    ):
        train(job("train", trainer__max_steps=12, resume="true"))
    assert {path.name: path.read_bytes() for path in trained.iterdir() if path.is_file()} == before
