"""What cannot be trained is refused in one sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.commands.train import train
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.training.origin import stored_keys


@pytest.fixture(scope="module")
def stored_yaml(job: Callable[..., Job]) -> str:
    """The config.yaml of a run."""
    return yaml.safe_dump(stored_keys(job("train").config))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resume": "true", "overwrite": "true"}, "overwrite=true deletes it: use only one of them"),
        (
            {"resume": "true", "trainer__max_steps": 5},
            r"finished and has reached trainer.max_steps=5 \(9 steps\): raise every limit",
        ),
        (
            {"resume": "true", "scorer": "additive"},
            r"^scorer\._target_ is .*Additive, but .*ScaledDot in the run to resume",
        ),
        (
            {"resume": "true", "schedule": "constant"},
            r"^schedule\._target_ is .*constant, but .*inverse_sqrt in the run to resume; .*: leave out schedule=, or",
        ),
        ({"resume": "true", "optimizer__lr": 0.5}, r"optimizer.lr is 0.5, but 0.01 in the run to resume; only"),
        ({"resume": "true", "run_dir": "none"}, "There is no run to resume in none"),
        ({}, "run holds a finished run; choose another run_dir, or set overwrite=true"),
        ({"run_dir": "new", "data__valid": "absent"}, "There is no file absent.en"),
        (
            {"run_dir": "new", "trainer__accelerator": "tpu"},
            "Lightning rejects .*accelerator=auto uses what this mach",
        ),
        ({"run_dir": "new", "data__train": "[]"}, "data.train is empty"),
        ({"run_dir": "new", "data__test": "[test]"}, "data.test is .*; it must be the PREFIX of aligned files"),
        ({"run_dir": "new", "direction": "en"}, "Unknown direction 'en'"),
        ({"run_dir": "new", "validation__monitor": "bleus"}, "Unknown validation.monitor 'bleus'. Did you mean 'bleu'"),
        ({"run_dir": "new", "validation__every": 0}, "validation.every is 0; it must be a whole number of at least 1"),
        ({"run_dir": "new", "trainer__max_time": "10x"}, "trainer.max_time is 10x; it must be a duration such as 90s"),
        ({"run_dir": "new", "trainer__max_steps": "null"}, "Training would never end"),
        ({"run_dir": "new", "trainer__max_steps": -1}, "trainer.max_steps is -1; .* at least 1, or null for no limit"),
        ({"run_dir": "new", "trainer__max_epochs": -1}, "trainer.max_epochs is -1; .* or null for no limit"),
        (
            {"run_dir": "new", "validation__max_time_fraction": 2},
            "validation.max_time_fraction is 2; it must be above 0",
        ),
        ({"run_dir": "train.en/run"}, "run_dir is train.en/run, but train.en is a file; choose another folder"),
        ({"run_dir": "new", "cache_dir": "train.en"}, "cache_dir is train.en, but train.en is a file"),
        ({"run_dir": "new", "tokenizer__size": 0}, "tokenizer.size is 0; it must be a whole number from 1"),
        ({"run_dir": "new", "tokenizer__size": 3}, "Vocabulary size 3 leaves no room for PAD, UNK, BOS and EOS; set"),
        ({"run_dir": "new", "trainer__precision": "foo"}, "Unknown trainer.precision 'foo'"),
        ({"run_dir": "new", "optimizer__lr": -1}, "optimizer.lr is -1; it must be a number above 0"),
        ({"run_dir": "new", "seed": -1}, "seed is -1; it must be a whole number of at least 0"),
        ({"run_dir": "new", "batching__workers": -1}, "batching.workers is -1; it must be a number of processes from"),
        ({"run_dir": "new", "model__num_heads": 0}, "model.num_heads is 0; it must be a whole number of at least 1"),
        ({"run_dir": "new", "model__num_layers": 0}, "num_layers is 0; it must be a whole number of at least 1"),
        (
            {"run_dir": "new", "model__decoder_layers": 0},
            "decoder_layers is 0; it must be a whole number of at least 1",
        ),
        ({"run_dir": "new", "model__num_layers": 10**6}, "num_layers is 1000000; it must be at most 1,000"),
        (
            {"run_dir": "new", "model__dim": 1_000_000},
            "The model has .* parameters, which need",
        ),
        ({"run_dir": "new", "model__dim": -4}, "^dim is -4; it must be a whole number of at least 1"),
        ({"run_dir": "new", "scorer": "additive", "scorer__hidden_dim": 0}, "scorer.hidden_dim is 0; it must"),
        (
            {"run_dir": "new", "scorer": "location", "scorer__max_length": 7},
            r"The longest source sentence of the training data has \d+ pieces including EOS, but scorer=location has "
            r"weights for only 7: ",
        ),
        (
            {"run_dir": "new", "optimizer__betas": "[0.9]"},
            r"The optimizer cannot be built: AdamW rejects a value of \(lr=.*, betas=\[0\.9\], .*\)\. Run the command "
            r"with --help optimizer to see the usual values\.$",
        ),
        (
            {"run_dir": "new", "optimizer__betas": "[]"},
            r"rejects a value of \(lr=.*, betas=\[\], .*\)\. Run the command with --help optimizer",
        ),
        (
            {"run_dir": "new", "optimizer__betas": "[0.9,1.5]"},
            r"AdamW rejects a value of \(lr=.*\): Invalid beta parameter at index 1: 1\.5\. Run the command with",
        ),
        ({"run_dir": "new", "schedule__warmup": 0}, "schedule.warmup is 0"),
        ({"run_dir": "new", "ema_decay": 1.5}, "ema_decay is 1.5; it must be a number between 0 and 1, such as 0.999"),
        ({"run_dir": "new", "checkpoints__recent": -1}, "checkpoints.recent is -1; it must be a whole number"),
        ({"run_dir": "new", "label_smoothing": 1.5}, "label_smoothing is 1.5"),
        # Before the word that there is a run already.
        ({"run_dir": "run", "optimizer__lr": -1}, "optimizer.lr is -1; it must be a number above 0"),
        ({"run_dir": "new", "word_dropout": 1.5}, "word_dropout is 1.5; it must be at least 0 and below 1"),
        (
            {"run_dir": "new", "subword_sampling": 2},
            "subword_sampling is 2; .* at most 1, such as 0.1, or null for none",
        ),
        ({"run_dir": "new", "subword_sampling": "x"}, "subword_sampling is x; it must be above 0"),
        ({"run_dir": "new", "objective": "r_drop", "objective__alpha": -1.5}, "objective.alpha is -1.5; it must be f"),
        (
            {"run_dir": "new", "data__sampling_temperature": 0},
            "data.sampling_temperature is 0; it must be a number abo",
        ),
        ({"run_dir": "new", "data__concat_prob": 2}, "data.concat_prob is 2; it must be a probability from 0 to 1"),
        ({"run_dir": "new", "data__detokenize": "train"}, "data.detokenize is train; it must be a list of PREFIXES"),
        ({"run_dir": "new", "data__detokenize": "[[7]]"}, "data.detokenize is .*; it must be a list of PREFIXES"),
        ({"run_dir": "new", "optimizer__lr": "inf"}, "optimizer.lr is inf; it must be a number above 0"),
        (
            {"run_dir": "new", "data__tokenized": "true", "data__detokenize": "[a]"},
            "data.tokenized=true scores tokenized text",
        ),
        ({"run_dir": "new", "data__tokenized": "perhaps"}, "data.tokenized is perhaps; it must be true, false or null"),
        ({"run_dir": "new", "search__beam_size": 0}, "beam_size is 0; "),
        (
            {"run_dir": "new", "batching__batch_tokens": 3},
            "batch_tokens=3 is less than the length of the longest sentence",
        ),
        ({"run_dir": "new", "tokenizer__size": 9999}, "Vocabulary size 9999 is too large for this text"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_a_run_directory_is_made(
    job: Callable[..., Job], corpus_copy: Path, stored_yaml: str, changes: dict[str, Any], message: str
) -> None:
    (corpus_copy / "run").mkdir()
    (corpus_copy / "run" / "config.yaml").write_text(stored_yaml)
    (corpus_copy / "run" / "model.safetensors").write_bytes(b"")
    (corpus_copy / "run" / "metrics.json").write_text('{"finished": true, "steps": 9}')
    with pytest.raises(Mistake, match=message):
        train(job("train", **changes))
    assert not (corpus_copy / "new").exists()


def test_a_stored_direction_that_is_none_is_named_with_its_file(job: Callable[..., Job], corpus_copy: Path) -> None:
    (corpus_copy / "run").mkdir()
    stored = {**stored_keys(job("train").config), "direction": 12}
    (corpus_copy / "run" / "config.yaml").write_text(yaml.safe_dump(stored))
    with pytest.raises(Mistake, match=r"^run/config\.yaml cannot be used: Unknown direction '12'"):
        train(job("train", resume="true"))


def test_a_table_for_validation_is_refused_before_a_vocabulary_is_learned(
    job: Callable[..., Job], corpus_copy: Path
) -> None:
    (corpus_copy / "dev.tsv").write_text("one\tmột\ntwo\thai\n", encoding="utf-8")
    with pytest.raises(Mistake, match=r"only data\.train can name a \.tsv; split it with: cut -f1 dev\.tsv > dev\."):
        train(job("train", run_dir="new", data__valid="dev.tsv", cache_dir="empty"))
    assert not Path("empty/tokenizers").exists()
