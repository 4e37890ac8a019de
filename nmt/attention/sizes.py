"""Validates the sizes that a user chooses."""

import math
from collections.abc import Mapping

from nmt.errors import Mistake

LARGEST_WIDTH = 2**20
MOST_LAYERS = 1000
"""A sanity limit: building a deeper model takes many seconds, even on the meta device."""


def require_positive(sizes: Mapping[str, object], most: int = LARGEST_WIDTH) -> None:
    """Raises Mistake for the first size that is not a whole number from 1 to `most`; `sizes` maps names to values."""
    for name, value in sizes.items():
        if not isinstance(value, int) or value < 1:
            raise Mistake(f"{name} is {value!r}; it must be a whole number of at least 1.")
        if value > most:
            raise Mistake(f"{name} is {value}; it must be at most {most:,}.")


def require_heads(key: str, num_heads: int, widths: Mapping[str, int]) -> None:
    """Raises Mistake if the number of heads, which `key` sets, is below 1 or does not divide a width."""
    require_positive({key: num_heads})
    for name, width in widths.items():
        if width % num_heads:
            common = math.gcd(*widths.values())
            divisors = (number for number in range(1, common + 1) if common % number == 0)
            nearest = min(divisors, key=lambda number: abs(number - num_heads))
            raise Mistake(
                f"{key}={num_heads} does not divide the {name} width {width}: choose a divisor, such as {nearest}."
            )
