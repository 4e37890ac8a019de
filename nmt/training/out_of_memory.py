"""A device whose memory is full: half the tokens a batch and twice the batches a step, once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int

from nmt.config.nodes import Config


class Halved(NamedTuple):
    """A configuration of about the same steps in less memory, and the settings that make it."""

    config: Config
    change: str


class BatchTooLarge(Exception):  # noqa: N818
    """A training ran out of memory; `longest` is the number of tokens of its longest sentence."""

    def __init__(self, config: Config, longest: int) -> None:
        super().__init__("out of memory")
        self.config, self.longest = config, longest

    @property
    def can_be_halved(self) -> bool:
        """Whether the longest sentence fits into half a batch."""
        return bool(self.config["batching"]["batch_tokens"] // 2 >= self.longest)

    def halved(self) -> Halved:
        """Half the tokens a batch, and twice the batches a step."""
        batching, trainer = self.config["batching"], self.config["trainer"]
        tokens, accumulate = batching["batch_tokens"] // 2, trainer["accumulate_grad_batches"] * 2
        config = self.config | {
            "batching": batching | {"batch_tokens": tokens},
            "trainer": trainer | {"accumulate_grad_batches": accumulate},
        }
        return Halved(config, f"batching.batch_tokens={tokens} trainer.accumulate_grad_batches={accumulate}")

    def remedy(self, halved_before: bool = False) -> str:
        """What a person can do where the training cannot begin again by itself."""
        tokens = self.config["batching"]["batch_tokens"]
        full = f"The memory of the device is full with batching.batch_tokens={tokens}"
        if halved_before or not self.can_be_halved:
            return (
                f"{full}, and the longest sentence has {self.longest} tokens: begin again with a smaller model, or "
                "leave out long sentences with filters.max_tokens, and overwrite=true."
            )
        return f"{full}. Begin again with {self.halved().change} overwrite=true, or resume=true on a larger device."


@contextmanager
def told_too_large(config: Config, lengths: Int[np.ndarray, "pairs 2"]) -> Iterator[None]:
    """Turns torch's error of a full device, in any process of a training, into BatchTooLarge."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise BatchTooLarge(config, int(lengths.max())) from error
