"""From a configuration or a run directory to objects: model, search, translator."""

import errno
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
import yaml
from safetensors import SafetensorError

from nmt.config.messages import check_type, unknown
from nmt.config.nodes import CONFIGS, Config, make
from nmt.config.trusted import LOADED, check_targets
from nmt.data.corpus import Direction
from nmt.decoding import consensus
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.state import Search
from nmt.decoding.translator import MAX_SOURCE_TOKENS, Translator
from nmt.evaluation.scores import sentence_chrf
from nmt.files import atomic_write
from nmt.models import Seq2Seq, VocabularySizes
from nmt.models.embeddings import with_plain_weights
from nmt.runs.directory import RunDirectory
from nmt.runs.precision import check_precision, with_precision
from nmt.text import TokenizerPair

DEVICES = ("auto", "cpu", "cuda")


class Trained(NamedTuple):
    """A finished run, loaded: the model is in evaluation mode on `device`, with numbers of that `precision`."""

    run: RunDirectory
    config: Config
    direction: Direction
    tokenizers: TokenizerPair
    model: Seq2Seq
    device: torch.device
    precision: str = "float32"


def build_model(config: Config, tokenizers: TokenizerPair) -> Seq2Seq:
    """The model with fresh weights, its vocabularies as large as the tokenizers'."""
    sizes = VocabularySizes(tokenizers.source.size, tokenizers.target.size, tokenizers.joint)
    return make(config["model"])(vocabulary=sizes)


def load_run(path: Path, device: str, precision: str = "float32") -> Trained:
    """The finished run in a folder. Raises FileNotFoundError or ValueError when it is none or its files do not fit.

    And for a device or a precision that cannot be used.
    """
    place = choose_device(device)
    check_precision(precision, place)
    run = RunDirectory(path)
    run.require_finished()
    config = run.config()
    check_targets([config["model"], config["search"]], path / "config.yaml", LOADED)
    direction = Direction.parse(config["direction"])
    tokenizers = run.tokenizers(direction)
    try:
        model = build_model(config, tokenizers)
        build_search(config["search"], {})
    except TypeError as error:
        raise ValueError(
            f"{path / 'config.yaml'} does not describe a model and a search of this version of nmt ({error}): "
            "train it again."
        ) from error
    try:
        safetensors.torch.load_model(model, run.weights)
    except (RuntimeError, SafetensorError) as error:
        raise ValueError(f"{run.weights} does not hold the weights of the model in {path / 'config.yaml'}.") from error
    with_plain_weights(model)
    model = with_precision(model.eval(), precision, place)
    return Trained(run, config, direction, tokenizers, model, place, precision)


def save_weights(model: Seq2Seq, path: Path) -> None:
    """Writes a model's weights, whole or not at all. Raises OSError when the disk is full."""
    try:
        with atomic_write(path) as part:
            safetensors.torch.save_model(model, str(part))
    except SafetensorError as error:
        # It tells the system's error number in its text alone.
        number = re.search(r"os error (\d+)", str(error))
        raise OSError(int(number[1]) if number else errno.EIO, str(error), str(path)) from error


def load_runs(paths: Any, device: str, precision: str = "float32") -> list[Trained]:
    """The finished run of a folder, or those of a list of folders that shall decide together.

    Raises as `load_run`, and ValueError where their directions or vocabularies differ.
    """
    named = paths if isinstance(paths, list) else [paths]
    runs = [load_run(Path(str(path)), device, precision) for path in named]
    if not runs:
        raise ValueError("run_dir is an empty list; name at least one folder.")
    first = runs[0]
    for other in runs[1:]:
        if (other.direction, *_vocabularies(other)) != (first.direction, *_vocabularies(first)):
            differ = (
                f"one translates {other.direction}, the other {first.direction}: give runs of one direction."
                if other.direction != first.direction
                else "their tokenizers differ; train them on the same corpus with the same tokenizer settings."
            )
            raise ValueError(f"{other.run.path} and {first.run.path} cannot translate together: {differ}")
    return runs


def build_translator(
    runs: Sequence[Trained],
    search: Mapping[str, Any] | None = None,
    batch_tokens: int = 4096,
    max_source_tokens: int | None = None,
    minimum_bayes_risk: bool = False,
) -> Translator:
    """The translator of a run, or of several as an ensemble, with the first one's search or `search`.

    See `build_search` and `longest_source` for what is not given. With `minimum_bayes_risk` the best of a line's
    translations is the one that is most like the others by chrF. Raises ValueError where the search finds one alone.
    """
    first = runs[0]
    model = first.model if len(runs) == 1 else Ensemble([run.model for run in runs])
    found = build_search(first.config["search"], search or {})
    if minimum_bayes_risk and found.n_best == 1:
        raise ValueError(
            "minimum_bayes_risk=true chooses between several translations, and the search finds 1; add "
            "search.n_best=5, or search=sampling search.samples=32."
        )
    choose = partial(consensus.minimum_bayes_risk, utility=sentence_chrf) if minimum_bayes_risk else None
    longest = longest_source(first.config) if max_source_tokens is None else max_source_tokens
    return Translator(model, first.tokenizers, found, batch_tokens, longest, first.device, choose)


def longest_source(config: Config) -> int:
    """The pieces of a source that one search reads, EOS counted: the usual ones, or as many as training has read."""
    return max(MAX_SOURCE_TOKENS, config["filters"]["max_tokens"])


def build_search(stored: Config, asked: Mapping[str, Any]) -> Search:
    """The search that `search_config` describes."""
    search: Search = make(search_config(stored, asked))
    return search


def named_search(name: str) -> Config:
    """The search that configs/search has under a name, with its defaults. Raises ValueError for an unknown one."""
    nodes = {
        file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in (CONFIGS / "search").glob("*.yaml")
    }
    named = {stem: node for stem, node in nodes.items() if "_target_" in node}
    if name not in named:
        raise ValueError(unknown("search", name, named))
    found: Config = named[name]
    return found


def search_config(stored: Config, asked: Mapping[str, Any], name: str = "search") -> Config:
    """What `asked` describes; where it names no search, the stored one with those of its changes that are not None.

    Raises ValueError for a setting that the stored search does not have or that is of another type.
    """
    if "_target_" in asked:
        return dict(asked)
    new = dict(stored)
    for key, value in asked.items():
        if isinstance(value, Mapping):
            new[key] = search_config(stored.get(key, {}), value, f"{name}.{key}")
        elif value is not None:
            if key not in stored:
                known = [f"{name}.{setting}" for setting in stored]
                raise ValueError(f"{unknown('setting of this search', f'{name}.{key}', known)}")
            check_type(f"{name}.{key}", stored[key], value)
            new[key] = value
    return new


def choose_device(name: str) -> torch.device:
    """'auto' is the GPU if there is one. Raises ValueError for an unknown device and for a GPU that is not there."""
    if name not in DEVICES:
        raise ValueError(f"device is '{name}'; it must be one of {', '.join(DEVICES)}.")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ValueError("device=cuda needs a GPU, and torch sees none here; use device=cpu.")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def _vocabularies(trained: Trained) -> tuple[bytes, bytes]:
    return trained.tokenizers.source.model, trained.tokenizers.target.model
