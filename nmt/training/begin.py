"""What a new training begins with: fresh weights and tokenizers of its own corpus, or those of a finished run."""

import logging
from collections.abc import Sequence
from pathlib import Path

import safetensors.torch
import torch

from nmt.config.keys import leaves
from nmt.config.nodes import Config, make
from nmt.data.cache import file_digest
from nmt.data.corpus import file_pair
from nmt.data.detokenized import detokenized
from nmt.data.vocabulary import tokenizers as trained_tokenizers
from nmt.models import Seq2Seq
from nmt.runs.load import Trained, build_model, load_run
from nmt.text import TokenizerPair
from nmt.training.settings import Settings, becomes_plain

logger = logging.getLogger(__name__)


def warn_of_detokenize(settings: Settings) -> None:
    """Warns of names in data.detokenize that are neither a corpus of this training nor a file."""
    for prefix in settings.splits.detokenize:
        known = (*settings.splits.train, *settings.splits.held_out)
        if prefix not in known and not any(path.is_file() for path in file_pair(prefix, settings.direction)):
            logger.warning(
                "data.detokenize has '%s', which is no corpus of this training and no file, and does nothing; name "
                "some of %s.",
                prefix,
                ", ".join(known),
            )


def in_plain_text(prefix: str, settings: Settings, cache_dir: Path) -> str:
    """The prefix of a corpus, or of its copy in plain text if data.detokenize names it."""
    return (
        detokenized(prefix, settings.direction, cache_dir) if becomes_plain(settings.config["data"], prefix) else prefix
    )


def training_corpora(settings: Settings, cache_dir: Path) -> list[str]:
    """The prefixes of the training corpora, those of data.detokenize in plain text; warns of other names there."""
    warn_of_detokenize(settings)
    return [in_plain_text(prefix, settings, cache_dir) for prefix in settings.splits.train]


def excluded_corpora(settings: Settings, cache_dir: Path) -> list[str]:
    """What no training pair may hold: validation and test corpora as they are, and in plain text."""
    held_out = settings.splits.held_out
    return list(dict.fromkeys([*held_out, *(in_plain_text(prefix, settings, cache_dir) for prefix in held_out)]))


def start_run(settings: Settings, own: Path) -> Trained | None:
    """The finished run that `start_from` names, if it does, for a training that writes to the folder `own`.

    Raises ValueError and FileNotFoundError where it is none, or one of another direction, model or tokenizer.
    """
    config = settings.config
    name = config["start_from"]
    if name is None:
        return None
    path = Path(str(name))
    if path.resolve() == own.resolve():
        raise ValueError(f"start_from={name} is the run_dir of this training too, which overwrites it: give another.")
    if not path.is_dir():
        raise FileNotFoundError(f"start_from={name}: there is no such folder; give the run_dir of a finished run.")
    try:
        run = load_run(path, "cpu")
    except (ValueError, FileNotFoundError) as error:
        raise type(error)(f"start_from={name}: {error}") from error
    if run.direction != settings.direction:
        raise ValueError(
            f"start_from={name} translates {run.direction}, not {settings.direction}: give "
            f"direction={run.direction}, or another run."
        )
    _check_same("model", run.config, config, "another model", "only dropout may differ")
    _check_same("tokenizer", run.config, config, "other tokenizers", "they are taken over, so give their settings")
    return run


def _check_same(part: str, there: Config, here: Config, other: str, remedy: str) -> None:
    """Raises ValueError for the first setting of a part, dropout aside, that the run to start from has otherwise."""
    theirs, ours = (leaves(each[part], part) for each in (there, here))
    for key, value in ours.items():
        # A key of only one side came with another version, which did the same without.
        if not key.startswith("model.dropout") and theirs.get(key, value) != value:
            raise ValueError(
                f"start_from={here['start_from']} has {other}: there {key} is {theirs[key]}, here {value}; {remedy}."
            )


def start_record(start: Trained | None, recorded: Config) -> Config:
    """SHA-256 of the weights that a training begins with; of one that goes on, what its metrics have of them."""
    if start is not None:
        return {"start_weights": file_digest(start.run.weights)}
    return {key: value for key, value in recorded.items() if key == "start_weights"}


def start_tokenizers(
    start: Trained | None, settings: Settings, corpora: Sequence[str], cache_dir: Path
) -> TokenizerPair:
    """Those of the run to start from, or learned from the training corpora. Raises as `tokenizers` does."""
    if start is not None:
        logger.info("The tokenizers are those of %s", start.run.path)
        return start.tokenizers
    return trained_tokenizers(corpora, settings.direction, **settings.config["tokenizer"], cache_dir=cache_dir)


def start_model(start: Trained | None, config: Config, tokenizers: TokenizerPair) -> Seq2Seq:
    """The model with fresh weights, or with those of the run to start from.

    Raises ValueError where that run, of an older version of nmt, has weights that do not fit.
    """
    torch.manual_seed(config["seed"])
    model = build_model(config, tokenizers)
    if start is None:
        make(config["initializer"])(model)
        return model
    logger.info("The weights are those of %s, and initializer has nothing to do", start.run.path)
    try:
        safetensors.torch.load_model(model, start.run.weights)
    except RuntimeError as error:
        raise ValueError(
            f"start_from={start.run.path} has other weights than this model: leave out the settings under model that "
            f"its config.yaml does not have, or give what they were, such as model.fix_norm=false "
            f"({' '.join(str(error).split())})"
        ) from error
    return model
