"""The place of this process among those of a distributed run."""

import os


def is_alone() -> bool:
    """Whether neither torchrun nor srun has started other processes with the same command."""
    # Not SLURM_NTASKS, which sbatch sets for a script that runs once.
    return all(os.environ.get(name, "1") == "1" for name in ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS"))


def rank() -> int:
    """The rank of this process, as set by torchrun, SLURM or Lightning. Only 0, the rank of the leader, is exact."""
    if os.environ.get("NODE_RANK", "0") != "0" and "RANK" not in os.environ:
        return 1
    # RANK and LOCAL_RANK first: a shell inside SLURM sets SLURM_PROCID, which Lightning's own processes inherit.
    ranks = (os.environ.get(name) for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"))
    return int(next((number for number in ranks if number is not None), "0"))
