"""Each schedule against its formula at a few steps."""

import sys
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch.optim import Optimizer

from nmt.errors import Mistake
from nmt.training.schedules import constant, cosine, inverse_sqrt, late_halving, noam, plateau, step_halving

# At most 8 operations in Python's float64, each rounded once on both sides.
close = partial(pytest.approx, rel=8 * sys.float_info.epsilon, abs=0)


def optimizer(lr: float) -> Optimizer:
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)


def rates(make: Callable[[Optimizer], torch.optim.lr_scheduler.LRScheduler], lr: float, steps: int) -> list[float]:
    """The rate of steps 1, 2, ..."""
    adam = optimizer(lr)
    schedule = make(adam)
    found = []
    for _ in range(steps):
        found.append(adam.param_groups[0]["lr"])
        adam.step()
        schedule.step()
    return found


def test_inverse_sqrt_rises_to_the_rate_and_falls_with_the_root() -> None:
    found = rates(lambda o: inverse_sqrt(o, warmup=5), 0.3, 20)
    assert found[:5] == close([0.06, 0.12, 0.18, 0.24, 0.3])
    assert found[19] == close(0.3 * (5 / 20) ** 0.5)
    assert max(found) == found[4]


def test_constant_rises_to_the_rate_and_stays() -> None:
    assert rates(lambda o: constant(o, warmup=4), 0.4, 7) == close([0.1, 0.2, 0.3, 0.4, 0.4, 0.4, 0.4])


def test_noam_is_the_paper_s_equation_3() -> None:
    found = rates(lambda o: noam(o, dim=7, warmup=3), 1.0, 11)
    assert found == close([7**-0.5 * min(n**-0.5, n * 3**-1.5) for n in range(1, 12)])


def test_step_halving_warms_up_and_then_halves_every_few_steps() -> None:
    assert rates(lambda o: step_halving(o, warmup=2, start=3, every=2), 1.0, 8) == [
        0.5,
        1,
        1,
        0.5,
        0.5,
        0.25,
        0.25,
        0.125,
    ]


def test_late_halving_counts_in_shares_of_the_training() -> None:
    found = rates(lambda o: late_halving(o, warmup=2, start=0.5, every=0.25, steps=8), 1.0, 8)
    assert found == [0.5, 1, 1, 1, 0.5, 0.5, 0.25, 0.25]


def test_cosine_rises_to_the_rate_and_falls_to_its_floor_at_the_last_step() -> None:
    found = rates(lambda o: cosine(o, warmup=2, steps=6, floor=0.25), 0.4, 7)
    slope = 2**-0.5
    assert found == close([0.2, 0.4, 0.1 + 0.15 * (1 + slope), 0.25, 0.1 + 0.15 * (1 - slope), 0.1, 0.1])


@pytest.mark.parametrize("sign", [1, -1])
def test_plateau_waits_for_its_patience(sign: int) -> None:
    """Values that are losses (positive) or minus scores (negative): less is better for both."""
    adam = optimizer(1.0)
    schedule = plateau(adam, factor=0.5, patience=1, min_lr=0.2)
    values = [30.0, 20.0, 25.0, 20.0, 10.0] if sign > 0 else [-10.0, -20.0, -15.0, -20.0, -30.0]
    found = []
    for value in values:
        schedule.step(value)
        found.append(adam.param_groups[0]["lr"])
    assert found == [1.0, 1.0, 1.0, 0.5, 0.5]
    for _ in range(8):
        schedule.step(values[-1])
    assert adam.param_groups[0]["lr"] == 0.2, "min_lr"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda o: inverse_sqrt(o, warmup=0), "schedule.warmup is 0"),
        (lambda o: noam(o, dim=0, warmup=1), "schedule.dim is 0"),
        (lambda o: noam(o, dim=None, warmup=1), "schedule.dim is null; set it to the width of the model, or choose"),
        (lambda o: step_halving(o, warmup=1, start=1, every=0), "schedule.every is 0"),
        (lambda o: step_halving(o, warmup=1, start=-1, every=1), "schedule.start is -1"),
        (lambda o: cosine(o, warmup=1, steps=None, floor=0.0), "schedule=cosine ends at trainer.max_steps"),
        (lambda o: cosine(o, warmup=7, steps=7, floor=0.0), "schedule.warmup is 7, but training has 7 steps"),
        (
            lambda o: late_halving(o, warmup=1, start=1.5, every=0.1, steps=7),
            "schedule.start is 1.5",
        ),
        (
            lambda o: late_halving(o, warmup=1, start=0.5, every=0.1, steps=None),
            "is defined in terms of trainer.max_steps",
        ),
        (
            lambda o: late_halving(o, warmup=1, start=0.5, every=0.1, steps=-1),
            "is defined in terms of trainer.max_steps",
        ),
        (
            lambda o: plateau(o, factor=1.0, patience=1, min_lr=0.0),
            "schedule.factor is 1.0; it must be above 0 and",
        ),
        (lambda o: plateau(o, factor=0.5, patience=-1, min_lr=0.0), "schedule.patience is -1; it must be at least 0"),
    ],
)
def test_a_value_out_of_range_is_refused(make: Callable[[Optimizer], object], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        make(optimizer(1.0))
