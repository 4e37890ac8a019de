"""A score as it is printed and stored."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from nmt.config.stored import Number, Stored


class ScoreRecord(Stored):
    """A score as files store it."""

    name: str
    value: Number
    interval: Annotated[list[Number], Field(min_length=2, max_length=2)]
    signature: str


class Score(NamedTuple):
    """A corpus-level score, from 0 to 100; TER may exceed 100."""

    name: str
    value: float
    low: float
    """Lower end of the 95 % interval from bootstrap resampling (Koehn 2004)."""
    high: float
    signature: str
    """Only scores with equal signatures are comparable. A signature includes the seed and the number of resamples."""

    def record(self) -> dict[str, Any]:
        """The score as plain values, rounded to the two decimals that are printed."""
        value, low, high = (round(number, 2) + 0.0 for number in (self.value, self.low, self.high))  # no -0.0
        return {"name": self.name, "value": value, "interval": [low, high], "signature": self.signature}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Score":
        """The score of a record, to two decimals."""
        low, high = record["interval"]
        return cls(record["name"], record["value"], low, high, record["signature"])

    def figures(self) -> str:
        """The value and its interval."""
        value, low, high = (round(number, 2) + 0.0 for number in (self.value, self.low, self.high))
        return f"{value:.2f} [{low:.2f}, {high:.2f}]"

    def __str__(self) -> str:
        return f"{self.name} {self.figures()} {self.signature}"
