"""One dropout for a whole model, and others for some of its places."""

from collections.abc import Mapping, Sequence


def dropout_rates(places: Sequence[str], dropout: float, at: Mapping[str, float | None] | None) -> dict[str, float]:
    """The probability of each place: its own in `at`, where that has one, else `dropout`.

    Raises ValueError for a place that is none of `places`.
    """
    for name in at or ():
        if name not in places:
            raise ValueError(f"model.dropout_at names '{name}'; there are: {', '.join(places)}.")
    own = {place: rate for place, rate in (at or {}).items() if rate is not None}
    return {place: own.get(place, dropout) for place in places}
