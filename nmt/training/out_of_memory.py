"""On out-of-memory: halve the batch and double the accumulation, once."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from nmt.config.schema import LoopSettings
from nmt.errors import CheckFailed
from nmt.training.preparation import Prepared

logger = logging.getLogger(__name__)


class BatchTooLarge(Exception):  # noqa: N818
    """Training ran out of device memory; `longest` is the length of the longest sentence in tokens."""

    def __init__(self, settings: LoopSettings, longest: int) -> None:
        super().__init__("out of memory")
        self.batch_tokens, self.accumulate = settings.batching.batch_tokens, settings.trainer.accumulate_grad_batches
        self.longest = longest

    def halved(self, prepared: Prepared) -> dict[str, int]:
        """The settings, by key, that give steps of about the same size with less memory.

        Logs them, because training starts over with them. Raises CheckFailed, which names a remedy, if it cannot: half
        a batch has been tried or is shorter than a sentence, steps would be lost, or other processes are training too.
        """
        changes = {
            "batching.batch_tokens": self.batch_tokens // 2,
            "trainer.accumulate_grad_batches": self.accumulate * 2,
        }
        settings = " ".join(f"{key}={value}" for key, value in changes.items())
        message = f"Out of memory with batching.batch_tokens={self.batch_tokens}"
        if prepared.changes or self.batch_tokens // 2 < self.longest:
            raise CheckFailed(
                f"{message}, and the longest sentence has {self.longest} tokens: start over with overwrite=true and a "
                "smaller model, or with a lower filters.max_tokens to leave out long sentences."
            ) from self
        if prepared.processes > 1 or list(prepared.run.checkpoints.glob("*.ckpt")):
            raise CheckFailed(
                f"{message}. Start over with {settings} overwrite=true, or resume=true on a larger device."
            ) from self
        logger.warning("Out of memory: starting over with %s.", settings)
        return changes


@contextmanager
def batch_too_large(settings: LoopSettings, longest: int) -> Iterator[None]:
    """Turns torch's out-of-memory error, in any training process, into BatchTooLarge."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise BatchTooLarge(settings, longest) from error
