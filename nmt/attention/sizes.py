"""Sizes that a user chooses, checked before anything is built of them."""

from collections.abc import Mapping


def require_positive(sizes: Mapping[str, object]) -> None:
    """Raises ValueError for the first size, by its name in the configuration, that is no whole number of at least 1."""
    for name, value in sizes.items():
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 1.")
