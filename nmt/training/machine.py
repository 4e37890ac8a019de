"""Where training runs: the processes and devices, and Lightning's Trainer for them."""

import logging
import os
import warnings
from typing import Any, NamedTuple

import torch
from lightning import Trainer
from lightning.fabric.utilities.exceptions import MisconfigurationException

from nmt.config.schema import TrainerSettings
from nmt.errors import Mistake

logger = logging.getLogger(__name__)

_MOST_PER_CORE = 8


class Machine(NamedTuple):
    """The number of training processes, and the type of their devices, such as cpu or cuda."""

    processes: int
    device: str


def choose_machine(settings: TrainerSettings) -> Machine:
    """The machine that the options under trainer select.

    Warns if there are more CPU processes than cores. Raises Mistake if there are far more, if there are none, or if
    Lightning rejects an option.
    """
    if str(settings.devices) in ("0", "[]"):
        raise Mistake(
            f"trainer.devices is {settings.devices}; set it to the number of devices to use, at least 1, or to auto."
        )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(settings.devices, int) and settings.devices > _MOST_PER_CORE * max(cores, torch.cuda.device_count()):
        raise Mistake(
            f"trainer.devices is {settings.devices}, but this machine has {cores} cores and "
            f"{torch.cuda.device_count()} GPUs: set it to the number of devices to use; each runs one process."
        )
    try:
        trainer = build_trainer(settings, logger=False, enable_checkpointing=False)
    # Nothing but the user's options is at stake here, whatever Lightning raises for one that it does not expect.
    except (MisconfigurationException, ValueError, TypeError, RuntimeError, ImportError) as error:
        refusal = " ".join(str(error).split())
        if settings.accelerator not in ("auto", "cpu"):
            refusal += " trainer.accelerator=auto uses what this machine has."
        raise Mistake(f"Lightning rejects an option under trainer: {refusal}") from error
    device = trainer.strategy.root_device.type
    if device == "cpu" and trainer.num_devices > cores and trainer.is_global_zero:
        logger.warning(
            "trainer.devices is %d, with one process per device, but there are only %d cores: use at most %d. A "
            "single process uses all cores.",
            trainer.num_devices,
            cores,
            cores,
        )
    return Machine(trainer.num_devices * trainer.num_nodes, device)


def build_trainer(settings: TrainerSettings, **ours: Any) -> Trainer:
    """Lightning's Trainer with the user's options, which `choose_machine` has tried, and ours."""
    # To Lightning, the whole run is one long epoch; see nmt.data.module.
    return Trainer(**settings.options, **{"max_epochs": -1, **ours})


def faster_precision(settings: TrainerSettings, device: str) -> str | None:
    """A trainer.precision with which this CPU trains faster and equally well, or None."""
    able = torch.cpu.get_capabilities() if device == "cpu" else {}
    in_float32 = settings.precision.startswith("32")
    return "bf16-mixed" if in_float32 and (able.get("amx_bf16") or able.get("avx512_bf16")) else None


def quiet(leader: bool) -> None:
    """Silences Lightning's remarks and, in all processes except the leader, our own log lines and warnings."""
    if not leader:
        logging.getLogger("nmt").setLevel(logging.ERROR)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    logging.getLogger("lightning.fabric").setLevel(logging.WARNING)
    # This logger reports which process died, before the other processes are terminated.
    logging.getLogger("lightning.fabric.strategies.launchers.subprocess_script").setLevel(logging.INFO)
    warnings.filterwarnings("ignore", message=".*LeafSpec.*", category=FutureWarning)
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    # The logged values are already reduced over all processes.
    warnings.filterwarnings("ignore", message=".*sync_dist=True.*")
    warnings.filterwarnings("ignore", message=".*is smaller than the logging interval.*")
    warnings.filterwarnings("ignore", message="Checkpoint directory .* exists and is not empty.*")
