"""Validates the sizes that a user chooses."""

from collections.abc import Mapping

from nmt.errors import Mistake


def require_positive(sizes: Mapping[str, object]) -> None:
    """Raises Mistake for the first size that is not a whole number of at least 1; `sizes` maps names to values."""
    for name, value in sizes.items():
        if not isinstance(value, int) or value < 1:
            raise Mistake(f"{name} is {value!r}; it must be a whole number of at least 1.")
