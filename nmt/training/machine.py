"""Where training runs: the processes and devices, and Lightning's Trainer for them."""

import logging
import math
import os
import warnings
from typing import Any, NamedTuple

import torch
from lightning import Trainer
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException

from nmt.config.schema import TrainerSettings
from nmt.cores import usable_cores
from nmt.errors import Mistake

logger = logging.getLogger(__name__)

_MOST_PER_CORE = 8


class Machine(NamedTuple):
    """The number of training processes, and the type of their devices, such as cpu or cuda."""

    processes: int
    device: str


def choose_machine(settings: TrainerSettings) -> Machine:
    """The machine that the options under trainer select.

    Warns if there are more CPU processes than cores. Raises Mistake if there are far more, if there are none, if
    torchrun or SLURM has started a different number of processes, or if Lightning rejects an option.
    """
    if str(settings.devices) in ("0", "[]"):
        raise Mistake(
            f"trainer.devices is {settings.devices}; set it to the number of devices to use, at least 1, or to auto."
        )
    cores = usable_cores()
    if isinstance(settings.devices, int) and settings.devices > _MOST_PER_CORE * max(cores, torch.cuda.device_count()):
        raise Mistake(
            f"trainer.devices is {settings.devices}, but this machine has {cores} cores and "
            f"{torch.cuda.device_count()} GPUs: set it to the number of devices to use; each runs one process."
        )
    _check_tasks_per_node()
    try:
        trainer = build_trainer(settings, logger=False, enable_checkpointing=False)
    # Only the user's options can fail here, and Lightning has no single class for what it does not expect.
    except (MisconfigurationException, ValueError, TypeError, RuntimeError, ImportError) as error:
        refusal = " ".join(str(error).split())
        if settings.accelerator not in ("auto", "cpu"):
            refusal += " trainer.accelerator=auto uses what this machine has."
        raise Mistake(f"Lightning rejects an option under trainer: {refusal}") from error
    _check_started(trainer.num_devices, trainer.num_nodes)
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


def _check_tasks_per_node() -> None:
    """Raises Mistake for a SLURM job from which Lightning cannot learn how many tasks a node has."""
    if SLURMEnvironment.detect() and "SLURM_NTASKS_PER_NODE" not in os.environ:
        tasks, nodes = int(os.environ["SLURM_NTASKS"]), int(os.environ.get("SLURM_NNODES", "1"))
        if tasks > 1 and "TORCHELASTIC_RUN_ID" not in os.environ:
            raise Mistake(
                f"The SLURM job has --ntasks={tasks}, which leaves open how many tasks a node has: use "
                f"--ntasks-per-node={math.ceil(tasks / nodes)}."
            )


def _check_started(devices: int, nodes: int) -> None:
    """Raises Mistake unless there is, or will be, one process for each device on each of the nodes.

    Otherwise each process would train a copy of the run, or wait for others that never come.
    """
    environment = os.environ
    if "TORCHELASTIC_RUN_ID" in environment:  # first, because torchrun may run inside SLURM
        launcher, tasks = "torchrun", int(environment["WORLD_SIZE"])
        machines = tasks // int(environment["LOCAL_WORLD_SIZE"])
    elif SLURMEnvironment.detect():
        launcher, tasks, machines = "SLURM", int(environment["SLURM_NTASKS"]), int(environment.get("SLURM_NNODES", "1"))
        if tasks > 1 and "SLURM_STEP_ID" not in environment:
            raise Mistake(
                f"The SLURM job has {tasks} tasks, but this is the batch script itself, which would wait for the "
                "others: write srun in front of the command."
            )
    else:
        # Other launchers set one of these variables.
        if nodes > 1 and not environment.keys() & {"NODE_RANK", "GROUP_RANK", "MASTER_ADDR"}:
            raise Mistake(
                f"trainer.num_nodes is {nodes}, but nothing tells this process about the other machines, for which it "
                "would wait: start the command with torchrun or srun, or add trainer.num_nodes=1 to train on this "
                "machine alone."
            )
        return
    if (tasks, machines) == (devices * nodes, nodes):
        return
    has = f"{launcher} has started {tasks} process{'es' * (tasks > 1)} on {machines} machine{'s' * (machines > 1)}"
    if devices * nodes == 1:
        raise Mistake(
            f"{has}, each of which would train a copy of the run: add trainer=ddp trainer.devices={tasks // machines} "
            f"trainer.num_nodes={machines}, or start only one."
        )
    raise Mistake(
        f"{has}, but trainer.devices={devices} and trainer.num_nodes={nodes} need {devices} on each of {nodes}: set "
        f"trainer.devices={tasks // machines} trainer.num_nodes={machines}, or start as many as that."
    )


def build_trainer(settings: TrainerSettings, **ours: Any) -> Trainer:
    """Lightning's Trainer with the user's options, which `choose_machine` has tried, and ours."""
    # To Lightning, the whole run is one long epoch; see nmt.data.module.
    return Trainer(**settings.options, **{"max_epochs": -1, **ours})


_LARGE_ENOUGH = 5_000_000  # parameters


def faster_precision(settings: TrainerSettings, device: str, parameters: int) -> str | None:
    """A trainer.precision with which this CPU trains a model of this size faster and equally well, or None."""
    able = torch.cpu.get_capabilities() if device == "cpu" else {}
    in_float32 = settings.precision.startswith("32")
    # Small matrices gain less than the conversions cost: a model of 7.6 million parameters trains faster in bfloat16,
    # one of a million trains slower.
    worthwhile = in_float32 and parameters >= _LARGE_ENOUGH
    return "bf16-mixed" if worthwhile and (able.get("amx_bf16") or able.get("avx512_bf16")) else None


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
    # On the login node of a cluster, srun is there but need not be used.
    warnings.filterwarnings("ignore", message="The `srun` command is available.*")
    # The logged values are already reduced over all processes.
    warnings.filterwarnings("ignore", message=".*sync_dist=True.*")
    warnings.filterwarnings("ignore", message=".*is smaller than the logging interval.*")
    # In float16, the loss scaler skips the first steps until its factor fits.
    warnings.filterwarnings("ignore", message="Detected call of .lr_scheduler.step")
    warnings.filterwarnings("ignore", message="Checkpoint directory .* exists and is not empty.*")
