"""Logs the progress of a long step."""

import logging
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Pace:
    """Logs the progress, rate and remaining time of a long step, at most once every `seconds`.

    `done` says what is counted, such as 'sentences translated'.
    """

    def __init__(self, done: str, seconds: float = 10.0) -> None:
        self.done, self.seconds = done, seconds
        self.number = 0
        self.start = self.last_log = time.monotonic()

    def over(self, items: Iterable[T], total: int) -> Iterator[T]:
        """Yields the items and counts each of them as one of `total`."""
        for item in items:
            yield item
            self(1, total)

    def __call__(self, new: int, total: int) -> None:
        """Counts `new` more items of `total`, and logs the progress if the last message is old enough."""
        self.number += new
        now = time.monotonic()
        if now - self.last_log < self.seconds or self.number >= total:
            return
        self.last_log = now
        rate = self.number / (now - self.start)
        minutes, seconds = divmod(round((total - self.number) / rate), 60)
        left = f"{minutes}:{seconds:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
        logger.info("%d of %d %s, %.1f a second, %s left", self.number, total, self.done, rate, left)
