"""How a new run begins: with new weights and tokenizers, or with those of a finished run."""

import copy
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from nmt.config.job import Job
from nmt.config.keys import leaves, value_at, with_values
from nmt.config.messages import written
from nmt.config.nodes import Config, Node
from nmt.config.schema import RunSettings, TrainSettings, validated
from nmt.data.corpus import check_files, corpus_hashes
from nmt.data.vocabulary import learned_tokenizers
from nmt.files import cache_folder, check_unlocked
from nmt.runs.directory import RunDirectory
from nmt.runs.load import Trained
from nmt.runs.record import training_record
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

logger = logging.getLogger(__name__)

# The keys that start_from takes from the finished run, unless the command line sets them.
_ARCHITECTURE = ("model", "scorer", "window", "normalizer", "encoder_self", "decoder_self", "cross")
_CONTEXT = ("context", "encoder_words", "encoder_sentences", "decoder_words", "decoder_sentences")


def begin(job: Job[TrainSettings], run: RunDirectory, changes: Mapping[str, Any]) -> Prepared:
    """A new run with the configuration of the command line, and with `changes` that save memory.

    Raises ValueError, FileNotFoundError and FileExistsError for whatever cannot be used, before anything is written.
    """
    asked = stored_keys(job.config)
    start = finished_run(job.settings, run.path)
    config = with_values(asked if start is None else inherited(asked, job.given, start.run.config()), changes)
    settings = validated(RunSettings, config)
    if start is not None:
        check_same(start, settings)
    if settings.data.name != "sample" and "data" in job.given and "experiment" not in job.given:
        taken = "Schedule" if start else "Vocabulary, schedule"
        logger.warning(
            "%s and length of training are those of experiment=sample, which suits the embedded corpus: choose an "
            "experiment=, or experiment=none for the general defaults.",
            taken,
        )
    check_buildable(settings)
    machine = choose_machine(settings.trainer)
    files = [*settings.data.train, *settings.data.held_out.values()]
    check_files(files, settings.direction)
    check_boundaries(settings)
    # With changes, the run to replace is this command's own first attempt.
    run.require_free(job.settings.overwrite or bool(changes) or rank() != 0)
    if rank() == 0:
        check_unlocked(run.path)
    if faster := faster_precision(settings.trainer, machine.device):
        logger.info("This CPU trains faster, and equally well, with trainer.precision=%s", faster)

    hashes = corpus_hashes(files, settings.direction)
    cache = cache_folder(job.settings.cache_dir)
    corpora = plain_corpora(settings, cache)
    if start is not None:
        logger.info("The tokenizers are those of %s", start.run.path)
        tokenizers = start.tokenizers
    else:
        # A small corpus gets a smaller vocabulary, unless the command line chose its size.
        at_most = not {"tokenizer.size", "experiment"} & set(job.given)
        tokenizers = learned_tokenizers(corpora.train, settings.direction, settings.tokenizer, cache, at_most)
        if settings.tokenizer.size not in (None, tokenizers.source.size):
            config = with_values(config, {"tokenizer.size": tokenizers.source.size})
            settings = validated(RunSettings, config)
    model = initial_model(settings, tokenizers, start)
    data, max_steps = prepare_data(settings, corpora, tokenizers, model, machine.processes, cache)
    record = {
        **training_record(settings, tokenizers, model, machine.processes, hashes),
        **start_weights(start, {}),
        "command": changed_command(job.command, asked, with_values(asked, changes)),
        "asked": {key: value_at(asked, key) for key in ADAPTED},
    }
    return Prepared(
        run, config, settings, tokenizers, model, data, max_steps, None, machine.processes, record, is_new=True
    )


def stored_keys(config: Config) -> Config:
    """The keys of a configuration that a run directory stores."""
    return {key: value for key, value in config.items() if key not in TrainSettings.NOT_STORED}


def inherited(config: Config, given: Sequence[str], start: Config) -> Config:
    """The configuration with the model and the tokenizer settings of the run to start from.

    What the command line chooses as a whole, such as model=luong or an experiment, stays; so do single settings.
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


def without_dropout(node: Node) -> Node:
    """The arguments that decide which weights a model has."""
    return {key: value for key, value in leaves(node).items() if key != "dropout"}


def check_same(start: Trained, settings: RunSettings) -> None:
    """Raises ValueError, which says what to add to the command, if the model or the tokenizers are not the run's."""
    differing: Config = {}
    for part in ("model", "tokenizer"):
        theirs, ours = (leaves(each.model_dump(include={part})) for each in (start.settings, settings))
        differing |= {
            key: theirs.get(key)
            for key in {**theirs, **ours}
            if not key.startswith("model.dropout") and theirs.get(key) != ours.get(key)
        }
    theirs, ours = (each.context.model for each in (start.settings, settings))
    if theirs is not None and without_dropout(theirs) != without_dropout(ours or {}):
        raise ValueError(
            f"start_from={settings.start_from} reads the earlier sentences of a document in another way: leave out "
            "context= and its settings to use those of the run."
        )
    if not differing:
        return
    keys = [f"{key}={written(value)}" for key, value in differing.items() if "_target_" not in key]
    classes = [str(value).rpartition(".")[2] for key, value in differing.items() if "_target_" in key]
    parts = f" Its parts are {', '.join(classes)}." if classes else ""
    add = f", or add its settings: {' '.join(keys)}" if keys else ""
    raise ValueError(
        f"start_from={settings.start_from} has a different model or different tokenizers: leave out "
        f"experiment=, model=, scorer= and tokenizer= to use those of the run{add}.{parts}"
    )
