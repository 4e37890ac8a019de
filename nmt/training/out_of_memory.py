"""On out-of-memory: halve the batch and double the accumulation, once."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from nmt.errors import CheckFailed
from nmt.runs.memory import on_out_of_memory
from nmt.training.preparation import Prepared

logger = logging.getLogger(__name__)


class BatchTooLarge(Exception):  # noqa: N818
    """Training ran out of memory; `changes` are the settings, by key, to start over with."""

    def __init__(self, changes: Mapping[str, int]) -> None:
        super().__init__("out of memory")
        self.changes = changes


def halving_batches(attempt: Callable[[Mapping[str, int]], None]) -> None:
    """Calls `attempt` without changes of the settings and, if it raises BatchTooLarge, once more with its changes."""
    try:
        attempt({})
        return
    except BatchTooLarge as error:
        changes = error.changes
    # Outside the except block: until it ends, the frames of the error hold the device's memory.
    attempt(changes)


@contextmanager
def batch_too_large(prepared: Prepared) -> Iterator[None]:
    """Turns an out-of-memory error, in any training process, into BatchTooLarge.

    Its changes give steps of about the same size with less memory. Raises CheckFailed, which names a remedy, if they
    cannot be tried: half a batch is shorter than a sentence, the batches have been halved already, steps would be lost,
    or other processes are training too.
    """
    with on_out_of_memory(lambda: _remedy(prepared)):
        yield


def _remedy(prepared: Prepared) -> Exception:
    """The error to raise: BatchTooLarge, or CheckFailed if only the user can help."""
    batch_tokens = prepared.settings.batching.batch_tokens
    changes = {
        "batching.batch_tokens": batch_tokens // 2,
        "trainer.accumulate_grad_batches": prepared.settings.trainer.accumulate_grad_batches * 2,
    }
    settings = " ".join(f"{key}={value}" for key, value in changes.items())
    message = f"Out of memory with batching.batch_tokens={batch_tokens}"
    longest = int(prepared.data.pairs.lengths.max())  # with the earlier sentences that the model reads
    if batch_tokens // 2 < longest:
        return CheckFailed(
            f"{message}, and the longest sentence has {longest} tokens: start over with overwrite=true and a "
            "smaller model, or with a lower filters.max_tokens to leave out long sentences."
        )
    if prepared.changes or prepared.processes > 1 or list(prepared.run.checkpoints.glob("*.ckpt")):
        return CheckFailed(f"{message}. Start over with {settings} overwrite=true, or resume=true with more memory.")
    logger.warning("Out of memory: starting over with %s.", settings)
    return BatchTooLarge(changes)
