"""What a new training begins with: fresh weights and tokenizers of its own corpus, or those of a finished run."""

from pathlib import Path

import torch

from nmt.data.corpus import Direction
from nmt.data.vocabulary import tokenizers as trained_tokenizers
from nmt.models import Seq2Seq
from nmt.run.build import build_model, load_run
from nmt.run.compose import Config
from nmt.run.settings import Settings
from nmt.text import TokenizerPair


def start_tokenizers(settings: Settings, cache_dir: Path) -> TokenizerPair:
    """Those of the run that `start_from` names, or learned from the training corpus. Raises as `load_run` does."""
    config, direction = settings.config, settings.direction
    if config["start_from"] is None:
        return trained_tokenizers(settings.splits.train, direction, **config["tokenizer"], cache_dir=cache_dir)
    run = load_run(Path(str(config["start_from"])), "cpu")
    _require_same_direction(run.direction, direction, config)
    return run.tokenizers


def start_model(config: Config, tokenizers: TokenizerPair) -> Seq2Seq:
    """The model with fresh weights, or with those of the run that `start_from` names.

    Raises as `load_run` does, and ValueError when that run's model is another one.
    """
    torch.manual_seed(config["seed"])
    model = build_model(config, tokenizers)
    if config["start_from"] is not None:
        run = load_run(Path(str(config["start_from"])), "cpu")
        try:
            model.load_state_dict(run.model.state_dict())
        except RuntimeError as error:
            raise ValueError(
                f"start_from={config['start_from']} has weights of another model: give the model, its sizes and scorer "
                f"as in {run.run.path / 'config.yaml'}."
            ) from error
    return model


def _require_same_direction(theirs: Direction, ours: Direction, config: Config) -> None:
    if theirs != ours:
        raise ValueError(
            f"start_from={config['start_from']} translates {theirs}, not {ours}: give direction={theirs}, or another "
            "run."
        )
