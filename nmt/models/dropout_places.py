"""Dropout probabilities of a model: a default that can be overridden at each place."""

from collections.abc import Mapping, Sequence
from typing import Any

from nmt.errors import Mistake


def dropout_rates(places: Sequence[str], dropout: Any, at: Mapping[str, Any] | None) -> dict[str, float]:
    """The dropout probability at each place: its entry in `at` if that is set, else `dropout`.

    Raises Mistake for an unknown place, and for a value that is not a number in [0, 1).
    """
    for name in at or ():
        if name not in places:
            raise Mistake(f"model.dropout_at has no place '{name}'; choose from {', '.join(places)}.")
    overrides = {place: rate for place, rate in (at or {}).items() if rate is not None}
    require_rate("model.dropout", dropout)
    for place, rate in overrides.items():
        require_rate(f"model.dropout_at.{place}", rate)
    return {place: overrides.get(place, dropout) for place in places}


def require_rate(key: str, rate: object) -> None:
    """Raises Mistake for a dropout that is not a number in [0, 1)."""
    if not isinstance(rate, (int, float)) or isinstance(rate, bool) or not 0 <= rate < 1:
        raise Mistake(f"{key} is {rate}; it must be a number of at least 0 and below 1, such as 0.1.")
