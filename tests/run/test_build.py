"""From a configuration to objects."""

from collections.abc import Callable

import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from nmt.run.build import build_model, build_search, choose_device
from nmt.run.compose import CONFIGS
from nmt.text import Tokenizer, TokenizerPair, train_tokenizer


@pytest.fixture(scope="module")
def tokenizers() -> TokenizerPair:
    return TokenizerPair(
        *(Tokenizer(train_tokenizer([text] * 3, kind="bpe", size=267)) for text in ("one two", "hai ba"))
    )


@pytest.fixture
def config(tiny: Callable[..., list[str]]) -> dict[str, object]:
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        return OmegaConf.to_container(compose("train", tiny()), resolve=True)  # type: ignore[return-value]


def test_a_seed_determines_the_weights(config: dict[str, object], tokenizers: TokenizerPair) -> None:
    """In every process: an initialisation in the order of addresses in memory changes from one to the next."""
    built = []
    for _ in range(11):
        torch.manual_seed(7)
        built.append(build_model(config, tokenizers))
    for model in built[1:]:
        torch.testing.assert_close(dict(model.state_dict()), dict(built[0].state_dict()), rtol=0, atol=0)


def test_changes_that_are_none_keep_the_stored_search(config: dict[str, object]) -> None:
    stored = config["search"]
    assert isinstance(stored, dict)
    assert build_search(stored, {"beam_size": None}).beam_size == 2
    assert build_search(stored, {"beam_size": 3}).beam_size == 3
    with pytest.raises(ValueError, match=r"search\.beam_size must be a whole number, not 'x'"):
        build_search(stored, {"beam_size": "x"})


def test_a_device_that_is_not_there_is_refused() -> None:
    assert choose_device("cpu").type == "cpu"
    with pytest.raises(ValueError, match="device is 'tpu'; it must be one of auto, cpu, cuda"):
        choose_device("tpu")
