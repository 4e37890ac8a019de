"""From a configuration to objects."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from jobs import run_settings
from safetensors import safe_open
from safetensors.torch import load_file

from nmt.cli.compose import configuration
from nmt.config.nodes import CONFIGS, make
from nmt.decoding.sampling import Sampling
from nmt.errors import Mistake
from nmt.runs.engine import longest_source, search_config
from nmt.runs.load import build_model, choose_device, save_weights
from nmt.text import Tokenizer, TokenizerPair, train_tokenizer


@pytest.fixture(scope="module")
def tokenizers() -> TokenizerPair:
    return TokenizerPair(
        *(
            Tokenizer(train_tokenizer([text] * 3, kind="bpe", size=267, character_coverage=1.0))
            for text in ("one two", "hai ba")
        )
    )


@pytest.fixture
def config(tiny: Callable[..., list[str]]) -> dict[str, Any]:
    return configuration("train", tiny())


@pytest.mark.parametrize("schedule", sorted(file.stem for file in CONFIGS.glob("schedule/*.yaml")))
def test_every_schedule_goes_with_the_sample_corpus(schedule: str) -> None:
    config = configuration("train", ["data=sample", f"schedule={schedule}", "run_dir=run"])
    optimizer = make(config["optimizer"])([torch.nn.Parameter(torch.zeros(3))])
    assert make(config["schedule"])(optimizer).optimizer is optimizer


def test_the_sample_corpus_brings_a_schedule_as_short_as_its_training() -> None:
    for steps in (2000, 77):
        config = configuration("train", ["run_dir=run", f"trainer.max_steps={steps}"])
        assert config["schedule"]["_target_"].endswith("late_halving")
        assert config["schedule"]["steps"] == steps


@pytest.mark.parametrize(("change", "width"), [("model.dim=12", 12), ("model=luong", 128)])
def test_noam_takes_the_width_of_the_model(change: str, width: int) -> None:
    config = configuration("train", [change, "schedule=noam", "run_dir=run"])
    assert (config["schedule"]["dim"], config["optimizer"]["lr"]) == (width, 1.0)


def test_equal_weights_are_saved_as_equal_bytes(
    config: dict[str, Any], tokenizers: TokenizerPair, tmp_path: Path
) -> None:
    """safetensors writes the names of shared tensors in another order each time."""
    model = build_model(config["model"], TokenizerPair(tokenizers.source, tokenizers.source))
    files = [tmp_path / f"{number}.safetensors" for number in range(9)]
    for file in files:
        save_weights(model, file)
    assert len({file.read_bytes() for file in files}) == 1
    with safe_open(files[0], "pt") as opened:
        assert len(opened.metadata()) > 1
    torch.testing.assert_close(load_file(files[0]), {k: model.state_dict()[k] for k in load_file(files[0])})


def test_a_seed_determines_the_weights(config: dict[str, Any], tokenizers: TokenizerPair) -> None:
    """In every process: an initialisation in the order of addresses in memory changes from one to the next."""
    built = []
    for _ in range(11):
        torch.manual_seed(7)
        built.append(build_model(config["model"], tokenizers))
    for model in built[1:]:
        torch.testing.assert_close(dict(model.state_dict()), dict(built[0].state_dict()), rtol=0, atol=0)


def test_whoever_may_read_the_run_may_read_its_weights(
    config: dict[str, Any], tokenizers: TokenizerPair, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").touch()
    save_weights(build_model(config["model"], tokenizers), tmp_path / "model.safetensors")
    modes = {path.name: path.stat().st_mode for path in tmp_path.iterdir()}
    assert modes["model.safetensors"] == modes["config.yaml"]
    assert len(modes) == 2


def test_a_process_that_is_killed_while_it_saves_leaves_nothing_for_the_next_one(
    config: dict[str, Any], tokenizers: TokenizerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: torch.nn.Module, path: str) -> None:
        Path(path).with_name(".tmp123456").touch()  # as safetensors does
        os.kill(os.getpid(), signal.SIGKILL)

    model, file = build_model(config["model"], tokenizers), tmp_path / "model.safetensors"
    if (process := os.fork()) == 0:
        try:
            monkeypatch.setattr("safetensors.torch.save_model", killed)
            save_weights(model, file)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    assert not file.exists()
    save_weights(model, file)
    assert list(tmp_path.rglob("*")) == [file]


def test_changes_that_are_none_keep_the_stored_search(config: dict[str, Any]) -> None:
    stored = config["search"]
    assert isinstance(stored, dict)
    assert make(search_config(stored, {"beam_size": None})).beam_size == 2
    assert make(search_config(stored, {"beam_size": 3})).beam_size == 3
    changed = make(search_config(stored, {"constraints": {"max_length": 7, "min_length": None}}))
    assert (changed.constraints.max_length, changed.constraints.min_length) == (7, 1)
    assert isinstance(make(search_config(stored, configuration("translate", ["search=sampling"])["search"])), Sampling)
    with pytest.raises(Mistake, match=r"Unknown setting of this search 'search\.top_p'. Available: search\.beam"):
        make(search_config(stored, {"top_p": 0.5}))
    with pytest.raises(Mistake, match=r"search\.beam_size must be a whole number, not 'x'"):
        make(search_config(stored, {"beam_size": "x"}))


def test_a_whole_number_that_a_run_stores_can_be_replaced_by_any_number(config: dict[str, Any]) -> None:
    stored = {**config["search"], "length_penalty": 1, "coverage_penalty": 0}
    stored["constraints"] = {**stored["constraints"], "max_length_ratio": 2, "max_length": 9}
    asked = {"length_penalty": 0.6, "coverage_penalty": 0.0, "constraints": {"max_length_ratio": 1.5}}
    changed = make(search_config(stored, asked))
    assert (changed.length_penalty, changed.constraints.max_length_ratio) == (0.6, 1.5)
    for wrong in ({"beam_size": 2.5}, {"constraints": {"max_length": 2.5}}):
        with pytest.raises(Mistake, match=r"must be a whole number, not '2\.5'"):
            make(search_config(stored, wrong))


def test_a_search_reads_as_much_as_training_has_read() -> None:
    assert [longest_source(run_settings(f"filters.max_tokens={most}")) for most in (60, 400)] == [256, 400]


def test_a_device_that_is_not_there_is_refused() -> None:
    assert choose_device("cpu").type == "cpu"
    with pytest.raises(Mistake, match="device is 'tpu'; it must be one of auto, cpu, cuda"):
        choose_device("tpu")
