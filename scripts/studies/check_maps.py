"""Check that exported attention maps are valid.

Prints for each site the number of maps and weights, the largest deviation of a row's sum from 1 (with local_p, of the
sum before the Gaussian), the blocked weights that are not 0, and the heads without any weight.

  python -m scripts.studies.check_maps maps

Exits with 1 if a map is invalid.
"""

import argparse
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.maps.attention_map import AttentionMap, SentenceMaps
from nmt.maps.map_files import MapFolder
from scripts.mistakes import report_mistakes

TOLERANCE = 1e-5


class Findings(NamedTuple):
    """What was found in a site's maps over all sentences."""

    maps: int
    weights: int
    row_sum_error: float
    blocked: int
    """Blocked weights that are not 0."""
    empty: int
    """Maps of one head and sentence in which every weight is 0."""

    @property
    def valid(self) -> bool:
        return self.row_sum_error <= TOLERANCE and self.blocked == self.empty == 0


def check(sentences: Iterable[SentenceMaps], renormalized: Collection[str] = ()) -> dict[str, Findings]:
    """The findings of each site. At `renormalized` sites the Gaussian is inside the softmax."""
    findings: dict[str, Findings] = {}
    for sentence in sentences:
        for item in sentence.maps:
            one, before = check_map(item, item.site in renormalized), findings.get(item.site, Findings(0, 0, 0.0, 0, 0))
            # np.maximum propagates NaN, unlike max.
            worst = float(np.maximum(one.row_sum_error, before.row_sum_error))
            sums = (a + b for a, b in zip(one, before, strict=True))
            findings[item.site] = Findings(*sums)._replace(row_sum_error=worst)
    return findings


def check_map(item: AttentionMap, renormalized: bool = False) -> Findings:
    """The findings of one map."""
    weights = item.weights.astype(np.float64)
    allowed = np.broadcast_to(item.visible, weights.shape)
    shares = weights
    if item.local is not None and item.local.prior is not None and not renormalized:
        shares = np.divide(weights, item.local.prior, out=np.zeros_like(weights), where=allowed)
    heads = weights.shape[0] * weights.shape[1]
    sums = np.where(allowed.any(-1), shares.sum(-1), 1)  # an LSTMN's first row sees nothing
    return Findings(
        heads,
        weights.size,
        float(np.abs(sums - 1).max()),
        int((weights[~allowed] != 0).sum()),
        int((weights.max((-2, -1)) == 0).sum()),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder written by nmt.export_attention")
    folder = MapFolder(parser.parse_args().folder)
    windows = {site: facts.get("window", {}) for site, facts in folder.manifest["sites"].items()}
    findings = check(folder.sentences(), [site for site, window in windows.items() if window.get("renormalize")])
    for site, of in findings.items():
        print(
            f"{site}: {of.maps:,} maps, {of.weights:,} weights; rows sum to 1 within {of.row_sum_error:.1e}, "
            f"{of.blocked} non-zero blocked weights, {of.empty} empty maps"
        )
    if not findings:
        print("no maps to check")
    return 0 if findings and all(of.valid for of in findings.values()) else 1


if __name__ == "__main__":
    report_mistakes(main)
