"""From a configuration to what trains: the task and the trainer; and whether they can be built at all."""

import logging
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from lightning import Trainer
from lightning.fabric.utilities.exceptions import MisconfigurationException
from torch import nn

from nmt.config.nodes import Config, make
from nmt.data.batch import Example
from nmt.data.dataset import TrainingData
from nmt.data.drawn_pairs import DrawnPairs, SubwordSampling
from nmt.data.module import TranslationData
from nmt.data.plan import Mixing, plan_epoch
from nmt.errors import is_mistake
from nmt.kernels.dropout import Dropout
from nmt.models import Seq2Seq, VocabularySizes
from nmt.runs.search import build_search
from nmt.text import TokenizerPair
from nmt.training import TranslationTask
from nmt.training.objectives import Objective, RDrop, SimCut
from nmt.training.progress import NO_LIMIT
from nmt.training.settings import Settings

logger = logging.getLogger(__name__)

# Ours, because Lightning would count epochs and time differently.
_LENGTHS = ("max_steps", "max_epochs", "max_time")
# Any size will do: a model's parts do not depend on it.
_VOCABULARY = VocabularySizes(8, 8, joint=False)


def check_buildable(settings: Settings) -> None:
    """Builds model (without memory), first weights, optimiser, schedule and search once, and drops them.

    So what they refuse is told before the corpora are read. Raises ValueError for the first that refuses its values.
    """
    config = settings.config
    _check_scaling(config)
    try:
        with torch.device("meta"):
            model = make(config["model"])(vocabulary=_VOCABULARY)
            make(config["initializer"])(model)
        build_task(config, model).configure_optimizers()
        _warn_of_equal_passes(make(config["objective"]), model)
    except (ValueError, TypeError, RuntimeError, LookupError, ArithmeticError) as error:
        if is_mistake(error):
            raise
        # torch and Python say what they refuse, but from their own lines, as if it were a failure.
        reason = " ".join(str(error).split())
        raise ValueError(f"The model, the optimizer or the schedule cannot be made: {reason}") from error
    build_search(config["search"], {})


def _check_scaling(config: Config) -> None:
    precision = str(config["trainer"]["precision"])
    if precision in ("16", "16-mixed") and config["trainer"]["gradient_clip_val"] and config["optimizer"].get("fused"):
        raise ValueError(
            f"trainer.precision={precision} scales gradients, and a fused optimizer takes the scale "
            "out after they were clipped: add optimizer.fused=false, or use trainer.precision=bf16-mixed."
        )


def _warn_of_equal_passes(objective: Objective, model: Seq2Seq) -> None:
    name = {RDrop: "r_drop", SimCut: "simcut"}.get(type(objective))
    if name is None or (isinstance(objective, SimCut) and objective.cut > 0):
        return
    rates = [part.p for part in model.modules() if isinstance(part, (Dropout, nn.Dropout))]
    rates += [part.dropout for part in model.modules() if isinstance(part, nn.RNNBase)]
    if not any(rates):
        logger.warning(
            "objective=%s compares two passes that differ by dropout alone, and this model has none, so that it is "
            "cross entropy at twice the cost: add model.dropout=0.1, say.",
            name,
        )


class Machine(NamedTuple):
    """What Lightning trains on: how many processes, and the kind of device, such as cpu or cuda."""

    processes: int
    device: str


def choose_machine(config: Config) -> Machine:
    """The machine that the options under trainer ask for.

    Warns of more processes on a CPU than it has cores. Raises ValueError when Lightning refuses an option.
    """
    trainer = build_trainer(config, logger=False, enable_checkpointing=False)
    device, cores = trainer.strategy.root_device.type, _cores()
    if device == "cpu" and trainer.num_devices > cores and trainer.is_global_zero:
        logger.warning(
            "trainer.devices is %d, a process each, but there are %d cores: give %d at most; one process uses all.",
            trainer.num_devices,
            cores,
            cores,
        )
    return Machine(trainer.num_devices * trainer.num_nodes, device)


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def faster_precision(config: Config, device: str) -> str | None:
    """Another trainer.precision with which this CPU would train faster, or None."""
    able = torch.cpu.get_capabilities() if device == "cpu" else {}
    in_float32 = str(config["trainer"]["precision"]).startswith("32")
    return "bf16-mixed" if in_float32 and (able.get("amx_bf16") or able.get("avx512_bf16")) else None


def build_task(config: Config, model: Seq2Seq) -> TranslationTask:
    """The training of a model with the optimiser and the schedule of a configuration."""
    return TranslationTask(
        model,
        make(config["optimizer"]),
        make(config["schedule"]),
        make(config["objective"]),
        seed=config["seed"],
        label_smoothing=config["label_smoothing"],
        word_dropout=config["word_dropout"],
        max_skipped_steps=config["max_skipped_steps"],
    )


def build_data(
    config: Config, tokenizers: TokenizerPair, rows: TrainingData, valid: Sequence[Example], max_steps: int
) -> TranslationData:
    """The batches of a configuration: of training pairs as a stream of `max_steps` steps, and of validation pairs."""
    sampling, alpha = None, config["subword_sampling"]
    if alpha is not None:
        longest = rows.lengths.max(axis=0).tolist()
        sampling = SubwordSampling(tokenizers, alpha, seed=config["seed"], longest=longest)
    return TranslationData(
        DrawnPairs(rows, sampling, _mixing(config, rows)),
        valid,
        seed=config["seed"],
        batch_tokens=config["batching"]["batch_tokens"],
        max_steps=max_steps,
        accumulate=config["trainer"]["accumulate_grad_batches"],
        workers=config["batching"]["workers"],
    )


def _mixing(config: Config, rows: TrainingData) -> Mixing:
    """How the training corpora come together in an epoch."""
    data = config["data"]
    return Mixing(tuple(rows.parts), float(data["sampling_temperature"]), float(data["concat_prob"]))


def steps_of_training(settings: Settings, rows: TrainingData, processes: int) -> int:
    """The nearer of trainer.max_steps and the steps of trainer.max_epochs; plans the first epoch in any case.

    Raises ValueError when the sentences cannot be put into batches.
    """
    config, limit = settings.config, settings.max_steps or NO_LIMIT
    budget, accumulate = config["batching"]["batch_tokens"], config["trainer"]["accumulate_grad_batches"]
    mixing = _mixing(config, rows)
    steps = 0
    for epoch in range(settings.max_epochs or 1):
        steps += len(plan_epoch(config["seed"], epoch, rows.lengths, budget, accumulate, processes, mixing).steps)
        if epoch == 0:
            logger.info("An epoch has %d steps", steps)
    length = limit if settings.max_epochs is None else min(steps, limit)
    if (falls := config["schedule"].get("steps")) and length < falls:
        logger.warning(
            "The training ends at step %d of the %d along which the learning rate falls; in a new one with "
            "schedule.steps=%d it falls to the end.",
            length,
            falls,
            length,
        )
    return length


def build_trainer(config: Config, **ours: Any) -> Trainer:
    """Lightning's Trainer with the user's options and ours. Raises ValueError when Lightning refuses an option."""
    options = {key: value for key, value in config["trainer"].items() if value is not None and key not in _LENGTHS}
    try:
        # To Lightning the training is one long epoch: see nmt.data.module.
        return Trainer(**options, **{"max_epochs": -1, **ours})
    except (MisconfigurationException, ValueError, TypeError, ImportError) as error:
        refusal = " ".join(str(error).split())
        if config["trainer"]["accelerator"] not in ("auto", "cpu"):
            refusal += " trainer.accelerator=auto takes what this machine has."
        raise ValueError(f"Lightning refuses an option under trainer: {refusal}") from error
