"""What a new run takes over from the finished run that start_from names: its settings, tokenizers and weights."""

import copy
import logging
from collections.abc import Sequence
from pathlib import Path

from nmt.config.direction import Direction
from nmt.config.keys import leaves, value_at, with_values
from nmt.config.messages import written
from nmt.config.nodes import Config, choice_names, default_node
from nmt.config.schema import RunSettings
from nmt.data.cache import file_digest
from nmt.errors import Mistake
from nmt.models import DocumentModel, Seq2Seq
from nmt.paths import real_path
from nmt.runs.directory import RunDirectory
from nmt.runs.encoder import LoadedEncoder, build_encoder, load_encoder
from nmt.runs.included import named_run
from nmt.runs.load import LoadedRun, load_run
from nmt.runs.weights import copy_weights
from nmt.sites import DOCUMENT_SITES, SENTENCE_SITES
from nmt.text import TokenizerPair
from nmt.training.origin import PretrainedRun

logger = logging.getLogger(__name__)

_WITH_ENCODER = "nmt.models.Transformer"
# The keys that start_from takes from the finished run, unless the command line sets them.
_ARCHITECTURE = ("model", "scorer", "window", "normalizer", *SENTENCE_SITES)
_CONTEXT = ("context", *DOCUMENT_SITES)


def pretrained_run(settings: RunSettings, run_dir: Path) -> PretrainedRun | None:
    """The run that start_from names, for a run in the folder `run_dir`: a translation model or a pretrained encoder.

    Raises Mistake if it is not a finished run with the same direction.
    """
    name = settings.start_from
    if name is None:
        return None
    path = named_run(name)
    if real_path(path) == real_path(run_dir):
        raise Mistake(f"start_from={name} is also the run_dir, which would be overwritten: choose another run_dir.")
    if not path.is_dir():
        raise Mistake(f"start_from={name}: there is no such folder; use the run_dir of a finished run.")
    try:
        if RunDirectory(path).pretrained:
            return load_encoder(path, "cpu")
        run = load_run(path, "cpu")
    except Mistake as error:
        raise Mistake(f"start_from={name}: {error}") from error
    if run.direction != settings.direction:
        raise Mistake(
            f"start_from={name} translates {run.direction}, not {settings.direction}: set "
            f"direction={run.direction}, or choose another run."
        )
    return run


def inherited(config: Config, given: Sequence[str], start: PretrainedRun) -> Config:
    """The configuration with the model and tokenizer settings of `start`, except those that the command line gives."""
    inherit = _with_encoder if isinstance(start, LoadedEncoder) else _with_model
    new = inherit(config, given, start.directory.config())
    # The paper's schedule and the small initializer depend on the width of the model, which may have changed.
    width = new["model"].get("dim", new["model"].get("decoder_dim"))
    dims = [f"{group}.dim" for group in ("schedule", "initializer") if "dim" in new.get(group, {})]
    return with_values(new, {key: width for key in dims if key not in given})


def _with_model(config: Config, given: Sequence[str], start: Config) -> Config:
    """The configuration, with its model and tokenizer settings replaced by those of the run to start from.

    Parts that the command line chooses as a whole, such as model=luong or an experiment, are kept, and so are single
    settings that it gives.
    """
    new = copy.deepcopy(config)
    chosen = {key for key in given if "." not in key}
    for bundle in (_ARCHITECTURE, _CONTEXT, ("tokenizer",)):
        if chosen & {*bundle, "experiment"}:
            continue
        for group in bundle:
            new.pop(group, None)
            if group in start:
                new[group] = copy.deepcopy(start[group])
        single = [key for key in given if key.split(".")[0] in bundle]
        new = with_values(new, {key: value_at(config, key) for key in single})
    return new


def _with_encoder(config: Config, given: Sequence[str], start: Config) -> Config:
    """The configuration, with its encoder, embedding and tokenizer settings replaced by those of a pretrained encoder.

    The decoder and its attention come from the command line. If the command line chooses a model, encoder_self or
    tokenizer as a whole, that choice is kept, and so are single settings that it gives.
    """
    new = copy.deepcopy(config)
    chosen = {key for key in given if "." not in key}
    if not chosen & {"model", "experiment"} and new["model"]["_target_"] == _WITH_ENCODER:
        encoder = {key: value for key, value in start["model"].items() if key != "_target_"}
        if "encoder_self" in chosen:
            del encoder["encoder_self"]
        else:
            new["encoder_self"] = {part: encoder["encoder_self"][part] for part in ("scorer", "normalizer")}
        new["model"].update(copy.deepcopy(encoder))
    if not chosen & {"tokenizer", "experiment"}:
        new["tokenizer"] = copy.deepcopy(start["tokenizer"])
        if not _is_vietnamese(Direction.parse(str(config["direction"]))):
            new["tokenizer"]["tone_marks"] = None  # the encoder may have read Vietnamese, but this run does not
    single = [key for key in given if key.split(".")[0] in ("model", "tokenizer") and "." in key]
    return with_values(new, {key: value_at(config, key) for key in single})


def check_same(start: PretrainedRun, settings: RunSettings, given: Sequence[str]) -> None:
    """Raises Mistake if the model or the tokenizers differ from those of `start`; the message says what to change.

    `given` are the keys that the command line sets. If `start` is a pretrained encoder, only the encoder's own settings
    are compared.
    """
    if isinstance(start, LoadedEncoder):
        _check_same_encoder(start, settings)
    else:
        _check_same_model(start, settings, given)


def _check_same_encoder(start: LoadedEncoder, settings: RunSettings) -> None:
    if settings.model["_target_"] != _WITH_ENCODER:
        raise Mistake(
            f"start_from={settings.start_from} is the encoder of a Transformer: add model=transformer to the command."
        )
    theirs, ours = start.settings.model_dump(), settings.model_dump()
    theirs["model"]["_target_"] = _WITH_ENCODER
    if not _is_vietnamese(settings.direction):
        del theirs["tokenizer"]["tone_marks"]
    values = _compared_values(ours)
    # Only their keys: the settings of the decoder and of its attention are ours alone.
    differing = {key: value for key, value in _compared_values(theirs).items() if value != values.get(key)}
    if differing:
        site = "encoder_self"
        added = _node_settings("model", "model", theirs["model"], ours["model"])
        for part in ("scorer", "normalizer"):
            our_part = (ours.get(site) or {}).get(part) or ours[part]
            added += _node_settings(f"{part}@{site}", f"{site}.{part}", theirs["model"][site][part], our_part)
        raise _different(settings, [*added, *_tokenizer_settings(differing)])


def _check_same_model(start: LoadedRun, settings: RunSettings, given: Sequence[str]) -> None:
    theirs, ours = start.settings.model_dump(), settings.model_dump()
    context = start.settings.context.model
    # Dropout adds no weights, so it may differ.
    if context is not None and leaves({**context, "dropout": 0}) != leaves(
        {**(settings.context.model or {}), "dropout": 0}
    ):
        raise Mistake(
            f"start_from={settings.start_from} was trained with different context settings: leave out context= and its "
            "settings to use those of the run."
        )
    of_theirs, of_ours = _compared_values(theirs), _compared_values(ours)
    differing = {key: of_theirs.get(key) for key in {**of_theirs, **of_ours} if of_theirs.get(key) != of_ours.get(key)}
    if not differing:
        return
    if "experiment" in given and "model._target_" in differing:
        raise _different(settings, [])  # an experiment's model settings do not fit another model
    parts = ("model", "scorer", "window", "normalizer")
    added = [setting for part in parts for setting in _node_settings(part, part, theirs[part], ours[part])]
    for site in SENTENCE_SITES:
        for part in ("scorer", "normalizer"):
            # Once the settings above are added, a site without a part of its own has that of the run.
            their_part, our_part = ((config.get(site) or {}).get(part) or theirs[part] for config in (theirs, ours))
            added += _node_settings(f"{part}@{site}", f"{site}.{part}", their_part, our_part)
    raise _different(settings, [*added, *_tokenizer_settings(differing)])


def _compared_values(config: Config) -> Config:
    """The values of the model and the tokenizers by key, without dropout, which has no weights and may differ."""
    values = leaves({part: config[part] for part in ("model", "tokenizer")})
    return {key: value for key, value in values.items() if not key.startswith("model.dropout")}


def _tokenizer_settings(differing: Config) -> list[str]:
    return [f"{key}={written(value)}" for key, value in differing.items() if key.startswith("tokenizer.")]


def _different(settings: RunSettings, added: Sequence[str]) -> Mistake:
    """The error for different models or tokenizers; `added` are the settings that make them equal, if any do."""
    use = f", or use its settings: {' '.join(added)}" if added else ""
    return Mistake(
        f"start_from={settings.start_from} has a different model or different tokenizers: leave out experiment=, "
        f"model=, scorer=, window=, normalizer= and tokenizer= to use those of the run{use}."
    )


def _node_settings(choice: str, key: str, theirs: Config, ours: Config) -> list[str]:
    """The settings that turn our node under `key` into theirs: a choice of its group if the class differs, and values.

    Dropout may differ, and so may the attentions inside a model, which are set by their sites.
    """
    settings, defaults = [], ours
    if theirs["_target_"] != ours["_target_"]:
        name = choice_names().get(theirs["_target_"])
        if name is None:  # a class of the user's own, without a YAML file
            return []
        settings.append(f"{choice}={name}")
        defaults = default_node(choice.partition("@")[0], name)
    for name, value in theirs.items():
        # Both, because an experiment or the command line may set ours for any class.
        if name.startswith(("_", "dropout")) or value == defaults.get(name) == ours.get(name, value):
            continue
        if not isinstance(value, dict):
            settings.append(f"{key}.{name}={written(value)}")
        elif value.get("_target_") in choice_names():
            settings += _node_settings(f"{name}@{key}", f"{key}.{name}", value, ours.get(name) or defaults[name])
    return settings


def inherited_tokenizers(start: PretrainedRun, direction: Direction | None) -> TokenizerPair:
    """The tokenizers of `start` for a run with this direction, which a pretrained encoder does not have."""
    if direction is None:
        return start.tokenizers
    style = start.settings.tokenizer.tone_marks
    return start.tokenizers.in_style(style, source=direction.source, target=direction.target)


def _is_vietnamese(direction: Direction) -> bool:
    return "vi" in (direction.source, direction.target)


def take_weights(start: PretrainedRun, model: Seq2Seq) -> None:
    """Copies the weights of `start` into a model. A pretrained encoder sets only its own part of the model."""
    target = model
    if isinstance(model, DocumentModel) and not isinstance(start.model, DocumentModel):
        target = model.sentence  # a document model may start from a sentence model
    if not isinstance(start, LoadedEncoder):
        logger.info("The weights come from %s; initializer has no effect", start.directory.path)
        copy_weights(start.directory.weights, target)
        return
    logger.info("The encoder and the embeddings come from %s; initializer sets the other weights", start.directory.path)
    # From the file, because load_encoder has already replaced FixNorm's parameters by plain weights.
    encoder = build_encoder(start.settings.model, start.tokenizers)
    copy_weights(start.directory.weights, encoder)
    # Not strict, because the file contains only the encoder's weights; they have the same names in the model.
    unexpected = target.load_state_dict(encoder.state_dict(), strict=False).unexpected_keys
    if unexpected:
        raise Mistake(
            f"{start.directory.weights} has weights that the model lacks, such as {unexpected[0]}: copy "
            "the run's own files back, or pretrain again."
        )


def weights_record(start: PretrainedRun | None, recorded: Config) -> Config:
    """The SHA-256 of the weights that a run starts from, or the one recorded in its metrics, if any."""
    if start is not None:
        return {"start_weights": file_digest(start.directory.weights)}
    return {key: value for key, value in recorded.items() if key == "start_weights"}
