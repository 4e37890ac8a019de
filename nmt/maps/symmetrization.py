"""Symmetrization: one alignment from the links of two directions (Och & Ney 2003; Koehn et al. 2003, section 3)."""

from collections.abc import Callable, Iterable

import numpy as np
from jaxtyping import Float

from nmt.maps.links import Link, argmax_links, threshold_links

_NEIGHBORS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def intersection(forward: frozenset[Link], backward: frozenset[Link]) -> frozenset[Link]:
    """The links found in both directions: few, but precise."""
    return forward & backward


def union(forward: frozenset[Link], backward: frozenset[Link]) -> frozenset[Link]:
    """The links found in either direction: many, but less precise."""
    return forward | backward


def grow_diag_final_and(forward: frozenset[Link], backward: frozenset[Link]) -> frozenset[Link]:
    """Grows the intersection (Koehn et al. 2003, section 3; `final-and` as in Moses).

    grow-diag repeatedly adds links of the union that touch an accepted link, even diagonally, and whose source or
    target word has no link yet. final-and then adds the links of the forward direction, and after them those of the
    backward direction, whose source and target words both have no link yet.
    """
    grown = set(forward & backward)
    candidates = sorted(forward | backward, key=_by_target)
    while True:
        before = len(grown)
        # Evaluated lazily: a link that is added on the way is grown from in the same round, as in Moses.
        for i, j in (link for link in candidates if link in grown):
            neighbors = [(i + down, j + right) for down, right in _NEIGHBORS]
            for link in neighbors:
                if link in forward | backward and link not in grown and any(_unlinked(link, grown)):
                    grown.add(link)
        if len(grown) == before:
            break
    for direction in (forward, backward):
        for link in sorted(direction, key=_by_target):
            if all(_unlinked(link, grown)):
                grown.add(link)
    return frozenset(grown)


SYMMETRIZATIONS: dict[str, Callable[[frozenset[Link], frozenset[Link]], frozenset[Link]]] = {
    "intersection": intersection,
    "union": union,
    "grow-diag-final-and": grow_diag_final_and,
}


def all_links(weights: Float[np.ndarray, "target_words source_words"], threshold: float) -> dict[str, frozenset[Link]]:
    """The links of a word map, keyed by the names in LINKS: argmax both ways, threshold, and the symmetrizations."""
    forward = argmax_links(weights)
    backward = frozenset((source, target) for target, source in argmax_links(weights.T))
    symmetrized = {name: symmetrize(forward, backward) for name, symmetrize in SYMMETRIZATIONS.items()}
    one_way = {"argmax": forward, "argmax-of-source": backward, "threshold": threshold_links(weights, threshold)}
    return one_way | symmetrized


LINKS = ("argmax", "argmax-of-source", "threshold", *SYMMETRIZATIONS)
"""The names of `all_links`."""


def pharaoh(links: Iterable[Link]) -> str:
    """One line of a Pharaoh file: 'i-j' for each link, source word first, from 0."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def _by_target(link: Link) -> Link:
    return link[1], link[0]


def _unlinked(link: Link, links: set[Link]) -> tuple[bool, bool]:
    """Whether the link's source word still has no link, and whether its target word still has none."""
    return all(i != link[0] for i, _ in links), all(j != link[1] for _, j in links)
