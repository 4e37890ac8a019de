"""From a configuration or a run directory to objects: model, search, translator."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError

from nmt.data.corpus import Direction
from nmt.decoding.beam import BeamSearch
from nmt.decoding.translator import Translator
from nmt.models import Seq2Seq, VocabularySizes
from nmt.run.compose import Config, make, module_of
from nmt.run.refusals import check_type
from nmt.run.rundir import RunDirectory
from nmt.text import TokenizerPair

DEVICES = ("auto", "cpu", "cuda")
# A run directory may name classes of these packages and no others.
_LOADED = ("nmt.models.", "nmt.attention.", "nmt.decoding.")


class Trained(NamedTuple):
    """A finished run, loaded: the model is in evaluation mode on `device`."""

    run: RunDirectory
    config: Config
    direction: Direction
    tokenizers: TokenizerPair
    model: Seq2Seq
    device: torch.device


def build_model(config: Config, tokenizers: TokenizerPair) -> Seq2Seq:
    """The model with fresh weights, its vocabularies as large as the tokenizers'."""
    sizes = VocabularySizes(tokenizers.source.size, tokenizers.target.size, tokenizers.joint)
    return make(config["model"])(vocabulary=sizes)


def load_run(path: Path, device: str) -> Trained:
    """The finished run in a folder. Raises FileNotFoundError or ValueError when it is none or its files do not fit."""
    run = RunDirectory(path)
    run.require_finished()
    config = run.config()
    _only_ours([config["model"], config["search"]], path)
    direction = Direction.parse(config["direction"])
    tokenizers = run.tokenizers(direction)
    place = choose_device(device)
    try:
        model = build_model(config, tokenizers)
    except TypeError as error:
        raise ValueError(
            f"{path / 'config.yaml'} does not describe a model of this version of nmt ({error}): train it again."
        ) from error
    try:
        safetensors.torch.load_model(model, run.weights)
    except (RuntimeError, SafetensorError) as error:
        raise ValueError(f"{run.weights} does not hold the weights of the model in {path / 'config.yaml'}.") from error
    return Trained(run, config, direction, tokenizers, model.eval().to(place), place)


def build_translator(
    trained: Trained, search: Mapping[str, Any] | None = None, batch_tokens: int = 4096, max_source_tokens: int = 256
) -> Translator:
    """The translator of a run; `search` replaces settings of the stored search, None keeps them."""
    beam = build_search(trained.config["search"], search or {})
    return Translator(trained.model, trained.tokenizers, beam, batch_tokens, max_source_tokens, trained.device)


def build_search(stored: Config, changes: Mapping[str, Any]) -> BeamSearch:
    """The search of a run's configuration, with the changes that are not None."""
    given = {key: value for key, value in changes.items() if value is not None}
    for key, value in given.items():
        check_type(f"search.{key}", stored[key], value)
    return make({**stored, **given})


def choose_device(name: str) -> torch.device:
    """'auto' is the GPU if there is one. Raises ValueError for an unknown device and for a GPU that is not there."""
    if name not in DEVICES:
        raise ValueError(f"device is '{name}'; it must be one of {', '.join(DEVICES)}.")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ValueError("device=cuda needs a GPU, and torch sees none here; use device=cpu.")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def _only_ours(node: Any, path: Path) -> None:
    """A run directory may come from elsewhere: its configuration must name nothing but classes of a model or search."""
    if isinstance(node, dict):
        if "_target_" in node and not (module_of(str(node["_target_"])) or "").startswith(_LOADED):
            raise ValueError(
                f"{path / 'config.yaml'} names '{node['_target_']}', which is no model, attention or search of nmt; "
                "it is not loaded."
            )
        for part in node.values():
            _only_ours(part, path)
    elif isinstance(node, list):
        for part in node:
            _only_ours(part, path)
    elif isinstance(node, str) and "${" in node:
        # A resolver could make a node of it that nobody has looked at.
        raise ValueError(f"{path / 'config.yaml'} holds '{node}', which is not resolved; it is not loaded.")
