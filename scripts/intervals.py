"""Confidence intervals of the studies."""

import math


def wilson(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a probability (Wilson 1927)."""
    p, extra = successes / trials, z * z / trials
    half = z * math.sqrt(p * (1 - p) / trials + extra / (4 * trials))
    return (p + extra / 2 - half) / (1 + extra), (p + extra / 2 + half) / (1 + extra)
