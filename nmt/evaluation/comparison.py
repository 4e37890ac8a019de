"""Whether one system's score is better than another's by more than chance."""

from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

from nmt.evaluation.scores import RESAMPLES, References, check_lines


def paired_bootstrap(systems: Sequence[Sequence[str]], references: References, metric: Metric) -> list[float]:
    """p of each system's score against the first one's by sacrebleu's paired bootstrap resampling (Koehn 2004).

    That of the first one itself, and of equal hypotheses, is 1. Raises ValueError when the numbers of lines differ or
    there are none.
    """
    for hypotheses in systems:
        check_lines(hypotheses, references)
    # sacrebleu counts the resamples that differ by more than nothing: none of equal outputs do, and p would be 0.001.
    others = [number for number, hypotheses in enumerate(systems) if list(hypotheses) != list(systems[0])]
    found = dict.fromkeys(range(len(systems)), 1.0)
    if others:
        named = [(str(number), systems[number]) for number in (0, *others)]
        test = PairedTest(named, {"score": metric}, references, test_type="bs", n_samples=RESAMPLES)
        # The columns are called 'System' and what sacrebleu calls the metric.
        columns: dict[str, Any] = dict(test()[1])
        [results] = (column for name, column in columns.items() if name != "System")
        found |= {number: result.p_value for number, result in zip(others, results[1:], strict=True)}
    return list(found.values())
