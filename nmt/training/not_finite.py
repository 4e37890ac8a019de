"""A step whose loss or gradient is not finite: skip it or stop, with a report on its sentences."""

import logging

import torch

from nmt.data.example import Example
from nmt.errors import CheckFailed

logger = logging.getLogger(__name__)


class NotFinite(CheckFailed):
    """The loss or the gradient norm of a step is infinite or NaN.

    examples: the step's sentence pairs, before word dropout; skipped: how many such steps were skipped before it.
    """

    def __init__(self, step: int, loss: float, norm: float, examples: list[Example], skipped: int) -> None:
        super().__init__(f"At step {step} the loss is {loss:.4g} and the norm of its gradient is {norm:.4g}.")
        self.step, self.loss, self.norm, self.examples, self.skipped = step, loss, norm, examples, skipped

    def remedy(self) -> str:
        """How to continue training."""
        return (
            "Start over with a lower optimizer.lr or a longer schedule.warmup and overwrite=true, or continue with "
            f"resume=true max_skipped_steps={self.skipped + 3}, which skips up to three more such steps."
        )


def skip_or_stop(error: NotFinite, max_skipped_steps: int) -> int:
    """The number of skipped steps, including this one. Raises the error if it would be above the limit."""
    if error.skipped >= max_skipped_steps:
        raise error
    logger.warning("Step %d is skipped (%d of %d): %s", error.step, error.skipped + 1, max_skipped_steps, error)
    return error.skipped + 1


def of_all_processes(examples: list[Example], processes: int) -> list[Example]:
    """The examples of all training processes, in the order of their ranks."""
    if processes == 1:
        return examples
    gathered: list[list[Example]] = [[]] * processes
    torch.distributed.all_gather_object(gathered, examples)
    return [example for part in gathered for example in part]
