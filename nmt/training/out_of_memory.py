"""On out-of-memory: halve the batch and double the accumulation, once."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from nmt.config.schema import LoopSettings


class BatchTooLarge(Exception):  # noqa: N818
    """Training ran out of device memory; `longest` is the length of the longest sentence in tokens."""

    def __init__(self, settings: LoopSettings, longest: int) -> None:
        super().__init__("out of memory")
        self.batch_tokens, self.accumulate = settings.batching.batch_tokens, settings.trainer.accumulate_grad_batches
        self.longest = longest

    @property
    def can_be_halved(self) -> bool:
        """Whether the longest sentence fits into half a batch."""
        return self.batch_tokens // 2 >= self.longest

    @property
    def halved(self) -> dict[str, int]:
        """The settings, by key, that give steps of about the same size with less memory."""
        return {
            "batching.batch_tokens": self.batch_tokens // 2,
            "trainer.accumulate_grad_batches": self.accumulate * 2,
        }

    def remedy(self, halved_before: bool = False) -> str:
        """Message: what to change if training cannot restart by itself."""
        full = f"Out of memory with batching.batch_tokens={self.batch_tokens}"
        if halved_before or not self.can_be_halved:
            return (
                f"{full}, and the longest sentence has {self.longest} tokens: start over with overwrite=true and a "
                "smaller model, or with a lower filters.max_tokens to leave out long sentences."
            )
        smaller = " ".join(f"{key}={value}" for key, value in self.halved.items())
        return f"{full}. Start over with {smaller} overwrite=true, or resume=true on a larger device."


@contextmanager
def batch_too_large(settings: LoopSettings, longest: int) -> Iterator[None]:
    """Turns torch's out-of-memory error, in any training process, into BatchTooLarge."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise BatchTooLarge(settings, longest) from error
