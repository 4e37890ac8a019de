"""How long training lasts: the limits of the configuration, and how much of them a run has used."""

import logging

import numpy as np
from jaxtyping import Int

from nmt.config.nodes import Config
from nmt.config.schema import LoopSettings
from nmt.data.plan import Mixing, plan_epoch

logger = logging.getLogger(__name__)

NO_LIMIT = 10**9
"""The length of the stream of batches, in steps, for a run that limits neither steps nor epochs."""
LIMITS = ("trainer.max_steps", "trainer.max_epochs", "trainer.max_time", "validation.patience")


def steps_of_training(
    settings: LoopSettings, lengths: Int[np.ndarray, "pairs 2"], mixing: Mixing, processes: int
) -> int:
    """The smaller of trainer.max_steps and the number of steps in trainer.max_epochs; NO_LIMIT if neither is set.

    Plans the first epoch in any case. Raises Mistake if the sentences cannot be put into batches.
    """
    trainer = settings.trainer
    limit = trainer.max_steps or NO_LIMIT
    budget, accumulate = settings.batching.batch_tokens, trainer.accumulate_grad_batches
    steps = 0
    for epoch in range(trainer.max_epochs or 1):
        steps += len(plan_epoch(settings.seed, epoch, lengths, budget, accumulate, processes, mixing).steps)
        if epoch == 0:
            logger.info("An epoch has %d steps", steps)
        if steps >= limit:
            break
    length = limit if trainer.max_epochs is None else min(steps, limit)
    if (decay := settings.schedule.get("steps")) and length < decay:
        logger.warning(
            "Training ends at step %d, but the learning rate decays over %d steps; to let it decay fully, start a new "
            "run with schedule.steps=%d.",
            length,
            decay,
            length,
        )
    return length


def reached_limits(settings: LoopSettings, record: Config) -> list[str]:
    """The limits that a run has reached, except epochs, and the amounts used; `record` has the keys of metrics.json."""
    trainer, patience = settings.trainer, settings.validation.patience
    steps, seconds, validations = (
        record.get(key, 0) for key in ("steps", "wall_time_seconds", "validations_since_best")
    )
    reached = []
    if trainer.max_steps is not None and steps >= trainer.max_steps:
        reached.append(f"trainer.max_steps={trainer.max_steps} ({steps} steps)")
    if trainer.max_seconds is not None and seconds >= trainer.max_seconds:
        reached.append(f"trainer.max_time={trainer.max_time} ({seconds:.0f} seconds)")
    if validations >= patience:
        reached.append(f"validation.patience={patience} ({validations} validations since the best)")
    return reached
