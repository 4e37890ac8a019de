"""What each key may hold, and the one sentence for each value that it may not."""

from typing import Any

import pytest
from pydantic import ValidationError

from nmt.cli.compose import configuration
from nmt.cli.settings_class import settings_class
from nmt.config.fields import seconds_of
from nmt.config.keys import with_values
from nmt.config.nodes import CONFIGS
from nmt.config.schema import TrainSettings, check_node, validated
from nmt.errors import Mistake

COMMANDS = sorted(file.stem for file in CONFIGS.glob("*.yaml"))
REQUIRED = {
    "train": ["run_dir=run"],
    "translate": ["run_dir=run"],
    "evaluate": ["run_dir=run"],
    "score": ["run_dir=run", "source=a", "target=b"],
    "align": ["run_dir=run"],
    "average": ["run_dir=run"],
    "export_attention": ["run_dir=run", "input=a", "out=b"],
    "draw_attention": ["maps=maps"],
    "ablate_attention": ["run_dir=run"],
    "compare": ["run_dirs=[a,b]"],
    "download": ["what=[envi]"],
    "export": ["run_dir=run", "format=onnx", "out=exported"],
}


@pytest.fixture(scope="module")
def configurations() -> dict[str, dict[str, Any]]:
    return {name: configuration(name, REQUIRED.get(name, [])) for name in COMMANDS}


def test_every_key_of_every_command_is_declared(configurations: dict[str, dict[str, Any]]) -> None:
    """The YAML files have the defaults of the keys that the schema declares, and no others."""
    for name, config in configurations.items():
        settings = validated(settings_class(name), config)
        declared = {field.alias or key for key, field in type(settings).model_fields.items()}
        sites = {"encoder_self", "decoder_self", "cross"}
        sites |= {f"{place}_{level}" for place in ("encoder", "decoder") for level in ("words", "sentences")}
        assert set(config) - sites == declared - sites, name


def test_a_setting_can_be_read_and_not_changed(configurations: dict[str, dict[str, Any]]) -> None:
    settings = validated(TrainSettings, configurations["train"])
    assert str(settings.direction) == "en-vi"
    assert settings.data.tests == {
        "test": "sample:test",
        "test_new": "sample:test_new",
        "phrases_test": "sample:phrases_test",
    }
    with pytest.raises(ValidationError, match="frozen"):
        settings.seed = 2


@pytest.mark.parametrize(
    ("command", "key", "value", "sentence"),
    [
        ("train", "seed", "abc", "seed is abc; it must be a whole number of at least 0."),
        ("train", "seed", True, "seed is true; it must be a whole number of at least 0."),
        ("train", "seed", 10**20, "seed is 100000000000000000000; it must be a whole number of at least 0."),
        ("train", "resume", 1, "resume is 1; it must be true, false or auto."),
        ("train", "validation", 3, "validation must be a group of settings, not '3'; --help shows how to choose"),
        ("train", "model", "x", "model must be a group of settings, not 'x'; --help shows how to choose another."),
        ("train", "trainer.max_steps", -1, "trainer.max_steps is -1; .* at least 1, or null for no limit."),
        ("train", "trainer.max_time", "10x", "trainer.max_time is 10x; it must be a duration such as 90s, 30m, 4h or"),
        ("train", "trainer.max_time", "0h0s", "trainer.max_time is 0h0s; it must be a duration such as 90s, 30m, 4h"),
        ("train", "trainer.max_time", [1], "trainer.max_time is .1.; it must be a duration such as 90s, 30m, 4h or"),
        ("train", "trainer.max_time", {"a": 1}, "trainer.max_time is .*; it must be a duration such as 90s, 30m, 4h"),
        ("train", "trainer.max_time", "9" * 30 + "d", "trainer.max_time is 9+d; it must be a duration such as"),
        ("train", "trainer.max_time", "9" * 5000 + "d", r"trainer.max_time is 9{200}\.\.\.; it must be a duration"),
        ("train", "trainer.devices", {"a": 1}, "trainer.devices is .*; it must be a number of devices, a list such as"),
        ("train", "trainer.devices", float("nan"), "trainer.devices is nan; it must be a number of devices, a list su"),
        ("train", "trainer.benchmark", float("nan"), "Unknown key 'trainer.benchmark'. Available: trainer.accelerator"),
        ("train", "trainer.detect_anomaly", 0.5, "Unknown key 'trainer.detect_anomaly'. Available: trainer.accelerat"),
        ("train", "trainer.profiler", 3, "Unknown key 'trainer.profiler'. Available: trainer.accelerator"),
        ("train", "batching.workers", 10**6, "batching.workers is 1000000; it must be a number of processes from 0 to"),
        ("train", "tokenizer.size", 2**31 - 1, "tokenizer.size is 2147483647; it must be a whole number from 1 to 1,"),
        ("translate", "workers", 10**6, "workers is 1000000; it must be a number of processes from 1 to 1024"),
        ("train", "trainer.precision", "fp8", "Unknown trainer.precision 'fp8'. Available: 16, 16-mixed, .*32-true"),
        ("train", "trainer.gradient_clip_val", -1, "trainer.gradient_clip_val is -1; it must be a number of at least"),
        ("train", "trainer.strategy", "fsdp", "trainer.strategy=fsdp splits a model .*: use trainer=ddp"),
        ("train", "trainer.strategy", "ddp_spawn", "trainer.strategy=ddp_spawn trains in copies .*: use trainer=ddp"),
        ("train", "trainer.strategy", "ddp_fork", "trainer.strategy=ddp_fork trains in copies .*: use trainer=ddp"),
        ("train", "trainer.strategy", "ddp_notebook_find_unused_parameters_true", "trainer.strategy=ddp_notebook_"),
        ("translate", "engine", "pytorch", "Unknown engine 'pytorch'. Did you mean 'torch'?"),
        (
            "translate",
            "precision",
            "float16",
            "Unknown precision 'float16'.* Available: auto, bfloat16, float32, int8.",
        ),
        ("train", "data.train", [], "data.train is empty; name at least one PREFIX"),
        ("train", "data.my/split", "my/corpus", "data has the test split 'my/split': use letters, digits, '_', '-'"),
        ("train", "data.test", ["x"], "data.test is .*; it must be the PREFIX of aligned files, or null."),
        ("train", "data.talks", ["x"], "data.talks is .*; it must be the PREFIX of aligned files, or null."),
        ("train", "data.tokenized", "perhaps", "data.tokenized is perhaps; it must be true, false or null."),
        ("train", "data.concat_prob", 2, "data.concat_prob is 2; it must be a probability from 0 to 1."),
        ("train", "data.sampling_temperature", 0, "data.sampling_temperature is 0; it must be a number above 0"),
        ("train", "validation.monitor", "bleus", "Unknown validation.monitor 'bleus'. Did you mean 'bleu'?"),
        ("train", "validation.max_time_fraction", 2, "validation.max_time_fraction is 2; it must be above 0 and at"),
        ("train", "batching.tokens", 1, "Unknown key 'batching.tokens'. Did you mean 'batching.batch_tokens'?"),
        ("train", "label_smoothing", 1, "label_smoothing is 1; it must be at least 0 and below 1."),
        ("train", "ema_decay", 1.5, "ema_decay is 1.5; it must be a number between 0 and 1, such as 0.999, or null."),
        ("train", "optimizer.lr", float("inf"), "optimizer.lr is inf; it must be a number above 0, such as 0.001."),
        ("train", "direction", 12, "Unknown direction '12'; write two different language codes"),
        ("train", "filters.max_ratio", 0.5, "filters.max_ratio is 0.5; it must be a number of at least 1"),
        ("translate", "format", "csv", "Unknown format 'csv'. Did you mean 'tsv'?"),
        ("translate", "max_source_tokens", 1, "max_source_tokens is 1; it must be a whole number of at least 2, or"),
        ("translate", "device", "tpu", "Unknown device 'tpu'."),
        ("evaluate", "reference", "a", "reference is given without source; set both to use your own files."),
        ("evaluate", "alignment", "a", "alignment is only for your own files; set source and reference too."),
        ("evaluate", "band", -1, "band is -1; it must be a finite number of at least 0."),
        ("evaluate", "expect", "high", "expect is high; it must be a score such as 26.1, or null."),
        ("compare", "run_dirs", [], "Set 'run_dirs=.A,B.' to compare runs, 'outputs=.a.vi,b.vi.' and reference=FILE"),
        ("align", "threshold", 0, "threshold is 0; it must be above 0 and at most 1, such as 0.2."),
        ("average", "number", 1, "number is 1; it must be a whole number of at least 2, or null for all."),
        ("export_attention", "layer", "abc", "layer is abc; it must be a whole number of at least 0, all, or null"),
        ("export_attention", "width", 0, "width is 0; it must be from 1 to 100 inches, such as 3.3, or null."),
        ("draw_attention", "row", 1, "Unknown row '1'. Available: predicts, reads."),
        ("draw_attention", "lines", [0], "lines is .0.; it must be a list of line numbers, counted from 1, as"),
        (
            "ablate_attention",
            "sentences",
            0,
            "sentences is 0; it must be a whole number of at least 1, or null for all",
        ),
        ("explain", "vocabulary", 4, "vocabulary is 4; it must be a whole number of at least 5; 4 pieces are special"),
        ("download", "max_gib", 0, "max_gib is 0; it must be a number above 0"),
    ],
)
def test_a_value_that_cannot_be_used_is_one_sentence(
    configurations: dict[str, dict[str, Any]], command: str, key: str, value: Any, sentence: str
) -> None:
    with pytest.raises(Mistake, match=f"^{sentence}") as error:
        validated(settings_class(command), with_values(configurations[command], {key: value}))
    assert "\n" not in str(error.value)


def test_a_style_of_tone_marks_needs_vietnamese_text(configurations: dict[str, dict[str, Any]]) -> None:
    for direction in ("en-vi", "vi-en"):
        with_style = {"tokenizer.tone_marks": "old", "direction": direction}
        assert validated(TrainSettings, with_values(configurations["train"], with_style)).tokenizer.tone_marks == "old"
    with_style = {"tokenizer.tone_marks": "old", "direction": "en-fr"}
    for command in ("train", "prepare"):
        with pytest.raises(
            Mistake,
            match=r"^tokenizer\.tone_marks=old is a style of Vietnamese, but direction=en-fr has no side in Vietnamese "
            r"\(vi\): set tokenizer\.tone_marks=null\.$",
        ):
            validated(settings_class(command), with_values(configurations[command], with_style))


def test_limits_that_never_end_training_are_refused(configurations: dict[str, dict[str, Any]]) -> None:
    endless = {"trainer.max_steps": None, "trainer.max_epochs": None, "trainer.max_time": None}
    with pytest.raises(Mistake, match=r"^Training would never end: set trainer\.max_steps"):
        validated(TrainSettings, with_values(configurations["train"], endless))
    with pytest.raises(Mistake, match=r"^resume=true continues a run and overwrite=true deletes it: use only one"):
        validated(TrainSettings, with_values(configurations["train"], {"resume": True, "overwrite": True}))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"dimm": 4}, "Unknown key 'model.dimm'. Did you mean 'model.dim'?"),
        ({"dim": "x"}, "model.dim must be a whole number, not 'x'."),
        ({"dim": 1.5}, "model.dim must be a whole number, not '1.5'."),
        ({"dropout": "much"}, "model.dropout must be a number, not 'much'."),
        ({"norm_first": 1}, "model.norm_first must be true or false, not '1'."),
        ({"norm": "scale_norm"}, "model.norm must be a group of settings, not 'scale_norm'; --help shows"),
    ],
)
def test_an_argument_of_a_node_has_the_type_of_its_default(
    configurations: dict[str, dict[str, Any]], changes: dict[str, Any], sentence: str
) -> None:
    default = configurations["train"]["model"]
    check_node("model", {**default, "dim": 3, "dropout": 0}, default)
    with pytest.raises(Mistake, match=f"^{sentence}"):
        check_node("model", {**default, **changes}, default)


@pytest.mark.parametrize(
    ("default", "value"),
    [
        (1, 2),
        (1.5, 2),
        (1.5, 2.5),
        (True, False),
        ("a", "b"),
        ("a", 2024),
        (None, [1]),
        ("???", 3),
        ([1], ["a"]),
        ({"a": 1}, {"a": 2}),
    ],
)
def test_a_node_takes_values_of_the_type_of_their_default(default: Any, value: Any) -> None:
    check_node("node", {"key": value}, {"key": default})


@pytest.mark.parametrize(
    ("default", "value", "message"),
    [
        (1, "abc", "node.key must be a whole number, not 'abc'."),
        (1, 1.5, "node.key must be a whole number, not '1.5'."),
        (1, True, "node.key must be a whole number, not 'true'."),
        (1, None, "node.key must be a whole number, not 'null'."),
        (1.5, "fast", "node.key must be a number, not 'fast'."),
        (True, 1, "node.key must be true or false, not '1'."),
        ("a", ["b"], r"node.key must be text, not '\['b'\]'."),
        ([1], "a", r"node.key must be a list, as in 'node.key=\[A,B\]', not 'a'."),
        ({"lr": 1.0}, {"lr": "x"}, "node.key.lr must be a number, not 'x'."),
        ({"lr": 1.0}, {"lr": 1.0, "rl": 1.0}, "Unknown key 'node.key.rl'. Did you mean 'node.key.lr'?"),
    ],
)
def test_a_node_refuses_values_of_another_type(default: Any, value: Any, message: str) -> None:
    with pytest.raises(Mistake, match=message.replace("?", r"\?")):
        check_node("node", {"key": value}, {"key": default})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("4h", 14400),
        ("1h30m", 5400),
        ("2d", 172800),
        ("00:01:30:00", 5400),
        ("01:00:00:01", 86401),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "h", "1:30", "4hours", "-1s", "00:1:30:00"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(Mistake, match="is not a duration such as 90s, 30m, 4h"):
        seconds_of(text)
