"""How far a long step is, in the log."""

import logging
import time

logger = logging.getLogger(__name__)


class Pace:
    """Logs how much of a long step is done, how fast it goes and the time left, at most once every `seconds`.

    `done` names what is counted, such as 'sentences translated'.
    """

    def __init__(self, done: str, seconds: float = 10.0) -> None:
        self.done, self.seconds = done, seconds
        self.number = 0
        self.start = self.told = time.monotonic()

    def __call__(self, new: int, total: int) -> None:
        """Takes note of `new` more of `total`."""
        self.number += new
        now = time.monotonic()
        if now - self.told < self.seconds or self.number >= total:
            return
        self.told = now
        rate = self.number / (now - self.start)
        left = round((total - self.number) / rate)
        logger.info("%d of %d %s, %.1f a second, %d:%02d left", self.number, total, self.done, rate, *divmod(left, 60))
