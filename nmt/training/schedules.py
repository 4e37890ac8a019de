"""Learning-rate schedules: each function makes a torch scheduler for an optimizer; lr is the optimizer's rate."""

import math

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau

from nmt.errors import Mistake


def inverse_sqrt(optimizer: Optimizer, warmup: int) -> LambdaLR:
    """lr(n) = lr min(n / warmup, sqrt(warmup / n)) at step n = 1, 2, ...: a linear rise to lr, then decay (fairseq)."""
    _at_least_one(warmup, "schedule.warmup")
    return LambdaLR(optimizer, lambda done: min((done + 1) / warmup, (warmup / (done + 1)) ** 0.5))


def noam(optimizer: Optimizer, dim: int | None, warmup: int) -> LambdaLR:
    """lr(n) = lr dim^-0.5 min(n^-0.5, n warmup^-1.5) (Vaswani et al. 2017, eq. 3, where lr is 1)."""
    _at_least_one(warmup, "schedule.warmup")
    if dim is None:
        raise Mistake("schedule.dim is null; set it to the width of the model, or choose another schedule.")
    _at_least_one(dim, "schedule.dim")
    return LambdaLR(optimizer, lambda done: dim**-0.5 * min((done + 1) ** -0.5, (done + 1) * warmup**-1.5))


def constant(optimizer: Optimizer, warmup: int) -> LambdaLR:
    """lr min(n / warmup, 1) at step n: for optimizers that adapt the rate themselves."""
    _at_least_one(warmup, "schedule.warmup")
    return LambdaLR(optimizer, lambda done: min((done + 1) / warmup, 1.0))


def step_halving(optimizer: Optimizer, warmup: int, start: int, every: int) -> LambdaLR:
    """lr min(n / warmup, 1) up to step `start`, then halved every `every` steps (Luong et al. 2015, section 4.1)."""
    _at_least_one(warmup, "schedule.warmup")
    _at_least_one(every, "schedule.every")
    if start < 0:
        raise Mistake(f"schedule.start is {start}; it must be at least 0.")
    return LambdaLR(optimizer, lambda done: min((done + 1) / warmup, 1.0) * 0.5 ** max(0, (done - start) // every + 1))


def late_halving(optimizer: Optimizer, warmup: int, start: float, every: float, steps: int | None) -> LambdaLR:
    """`step_halving` with `start` and `every` as fractions of `steps`: constant at first, then decaying."""
    if steps is None or steps < 1:
        raise Mistake(
            "schedule=late_halving is defined in terms of trainer.max_steps: set it, or choose another schedule."
        )
    if not (0 < start <= 1 and 0 < every <= 1):
        raise Mistake(f"schedule.start is {start} and schedule.every is {every}; both must be above 0 and at most 1.")
    return step_halving(optimizer, warmup, round(start * steps), max(1, round(every * steps)))


def cosine(optimizer: Optimizer, warmup: int, steps: int | None, floor: float) -> LambdaLR:
    """lr n / warmup, then lr (floor + (1 - floor) (1 + cos(pi t)) / 2), t from 0 to 1 over the rest of the `steps`.

    Loshchilov & Hutter (2017), equation 5, without restarts; after `steps` the rate stays at lr x floor.
    """
    if steps is None or steps < 1:
        raise Mistake("schedule=cosine ends at trainer.max_steps: set it, or choose another schedule.")
    if not 0 <= floor <= 1:
        raise Mistake(f"schedule.floor is {floor}; it must be from 0 to 1.")
    _at_least_one(warmup, "schedule.warmup")
    if warmup >= steps:
        raise Mistake(f"schedule.warmup is {warmup}, but training has {steps} steps: use a shorter warm-up.")

    def factor(done: int) -> float:
        progress = min(max(0, done + 1 - warmup) / (steps - warmup), 1.0)
        return min((done + 1) / warmup, floor + (1 - floor) * (1 + math.cos(math.pi * progress)) / 2)

    return LambdaLR(optimizer, factor)


def plateau(optimizer: Optimizer, factor: float, patience: int, min_lr: float) -> ReduceLROnPlateau:
    """Multiplies lr by `factor` whenever validation.monitor has not improved for more than `patience` validations.

    The scheduler is given a value to minimize (a loss, or a negated score).
    """
    if not 0 < factor < 1:
        raise Mistake(f"schedule.factor is {factor}; it must be above 0 and below 1, such as 0.5.")
    if patience < 0:
        raise Mistake(f"schedule.patience is {patience}; it must be at least 0.")
    return ReduceLROnPlateau(optimizer, factor=factor, patience=patience, min_lr=min_lr, threshold_mode="abs")


def _at_least_one(value: int, name: str) -> None:
    if value < 1:
        raise Mistake(f"{name} is {value}; it must be at least 1.")
