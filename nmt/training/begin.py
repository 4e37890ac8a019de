"""How a new run begins: with new weights and tokenizers, or with those of a finished run."""

import copy
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from nmt.config.job import Job
from nmt.config.keys import leaves, value_at, with_values
from nmt.config.messages import written
from nmt.config.nodes import Config, Node
from nmt.config.schema import NOT_STORED, RunSettings, TrainSettings, validated
from nmt.data.corpus import check_files, corpus_hashes
from nmt.data.vocabulary import learned_tokenizers
from nmt.errors import Mistake
from nmt.files import cache_folder, check_unlocked
from nmt.models import Seq2Seq
from nmt.runs.directory import RunDirectory
from nmt.runs.encoder import LoadedEncoder
from nmt.runs.load import LoadedRun
from nmt.runs.record import training_record
from nmt.sites import DOCUMENT_SITES, SENTENCE_SITES
from nmt.training.buildable import check_buildable
from nmt.training.machine import choose_machine, faster_precision, rank
from nmt.training.prepared import (
    ADAPTED,
    Prepared,
    changed_command,
    check_boundaries,
    finished_run,
    initial_model,
    plain_corpora,
    prepare_data,
    start_weights,
)
from nmt.training.task import build_task
from nmt.training.validation import translation_validations

logger = logging.getLogger(__name__)

_WITH_ENCODER = "nmt.models.Transformer"
# The keys that start_from takes from the finished run, unless the command line sets them.
_ARCHITECTURE = ("model", "scorer", "window", "normalizer", *SENTENCE_SITES)
_CONTEXT = ("context", *DOCUMENT_SITES)


def begin(job: Job[TrainSettings], run: RunDirectory, changes: Mapping[str, Any]) -> Prepared[RunSettings, Seq2Seq]:
    """Prepares a new run with the configuration given on the command line and with `changes`, which save memory.

    Raises Mistake for invalid input, before the run directory is changed.
    """
    asked = stored_keys(job.config)
    start = finished_run(job.settings, run.path)
    if start is None:
        config = asked
    else:
        inherit = with_encoder if isinstance(start, LoadedEncoder) else inherited
        config = inherit(asked, job.given, start.directory.config())
    config = with_values(config, changes)
    settings = validated(RunSettings, config)
    if start is not None:
        check_same(start, settings)
    if settings.data.name not in ("sample", "documents") and "data" in job.given and "experiment" not in job.given:
        taken = "schedule" if start else "vocabulary, schedule"
        logger.warning(
            "The %s and length of training come from experiment=sample, which is meant for the embedded corpus: choose "
            "another experiment=, or set experiment=none to get the general defaults.",
            taken,
        )
    check_buildable(settings)
    machine = choose_machine(settings.trainer)
    files = [*settings.data.train, *settings.data.held_out.values()]
    check_files(files, settings.direction)
    check_boundaries(settings)
    # If there are changes, the run to replace is this command's own first attempt.
    run.require_free(job.settings.overwrite or bool(changes) or rank() != 0)
    if rank() == 0:
        check_unlocked(run.path)
    if faster := faster_precision(settings.trainer, machine.device):
        logger.info("This CPU trains faster, and equally well, with trainer.precision=%s", faster)

    hashes = corpus_hashes(files, settings.direction)
    cache = cache_folder(job.settings.cache_dir)
    corpora = plain_corpora(settings, cache)
    if start is not None:
        logger.info("The tokenizers come from %s", start.directory.path)
        tokenizers = start.tokenizers
    else:
        # A small corpus gets a smaller vocabulary, unless the command line sets the size.
        at_most = not {"tokenizer.size", "experiment"} & set(job.given)
        tokenizers = learned_tokenizers(corpora.train, settings.direction, settings.tokenizer, cache, at_most)
        if settings.tokenizer.size not in (None, tokenizers.source.size):
            config = with_values(config, {"tokenizer.size": tokenizers.source.size})
            settings = validated(RunSettings, config)
    model = initial_model(settings, tokenizers, start)
    data, max_steps = prepare_data(settings, corpora, tokenizers, model, machine.processes, cache)
    record = {
        **training_record(settings, settings.direction, tokenizers, model, machine.processes, hashes),
        **start_weights(start, {}),
        "command": changed_command(job.command, asked, with_values(asked, changes)),
        "asked": {key: value_at(asked, key) for key in ADAPTED},
    }
    return Prepared(
        run,
        config,
        settings,
        settings.direction,
        tokenizers,
        model,
        build_task(settings, model),
        translation_validations(LoadedRun(run, settings, tokenizers, model, model.device), data.validation),
        data,
        max_steps,
        None,
        machine.processes,
        record,
        is_new=True,
    )


def stored_keys(config: Config) -> Config:
    """The part of a configuration that is stored in a run directory."""
    return {key: value for key, value in config.items() if key not in NOT_STORED}


def inherited(config: Config, given: Sequence[str], start: Config) -> Config:
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
    return with_width(new, given)


def without_dropout(node: Node) -> Node:
    """The node's values by dotted key, without `dropout`, which adds no weights."""
    return {key: value for key, value in leaves(node).items() if key != "dropout"}


def with_encoder(config: Config, given: Sequence[str], start: Config) -> Config:
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
    single = [key for key in given if key.split(".")[0] in ("model", "tokenizer") and "." in key]
    return with_width(with_values(new, {key: value_at(config, key) for key in single}), given)


def with_width(config: Config, given: Sequence[str]) -> Config:
    """The configuration, with any schedule.dim and initializer.dim that are not given set to the model's width."""
    model = config["model"]
    width = model.get("dim", model.get("decoder_dim"))
    dims = [f"{group}.dim" for group in ("schedule", "initializer") if "dim" in config.get(group, {})]
    return with_values(config, {key: width for key in dims if key not in given})


def check_same(start: LoadedRun | LoadedEncoder, settings: RunSettings) -> None:
    """Raises Mistake if the model or the tokenizers differ from those of `start`; the message says what to change.

    If `start` is a pretrained encoder, only the encoder's own settings are compared.
    """
    if isinstance(start, LoadedEncoder) and settings.model["_target_"] != _WITH_ENCODER:
        raise Mistake(
            f"start_from={settings.start_from} is the encoder of a Transformer: add model=transformer to the command."
        )
    differing: Config = {}
    for part in ("model", "tokenizer"):
        theirs, ours = (leaves(each.model_dump(include={part})) for each in (start.settings, settings))
        if isinstance(start, LoadedEncoder):
            theirs.pop("model._target_", None)
            ours = {key: value for key, value in ours.items() if key in theirs}
        differing |= {
            key: theirs.get(key)
            for key in {**theirs, **ours}
            if not key.startswith("model.dropout") and theirs.get(key) != ours.get(key)
        }
    context = start.settings.context.model if isinstance(start.settings, RunSettings) else None
    if context is not None and without_dropout(context) != without_dropout(settings.context.model or {}):
        raise Mistake(
            f"start_from={settings.start_from} was trained with different context settings: leave out context= and its "
            "settings to use those of the run."
        )
    if not differing:
        return
    keys = [f"{key}={written(value)}" for key, value in differing.items() if "_target_" not in key]
    classes = [str(value).rpartition(".")[2] for key, value in differing.items() if "_target_" in key]
    parts = f" Its parts are {', '.join(classes)}." if classes else ""
    add = f", or add its settings: {' '.join(keys)}" if keys else ""
    raise Mistake(
        f"start_from={settings.start_from} has a different model or different tokenizers: leave out "
        f"experiment=, model=, scorer= and tokenizer= to use those of the run{add}.{parts}"
    )
