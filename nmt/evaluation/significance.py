"""Whether one system's score is better than another's by more than chance."""

from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

from nmt.evaluation.scores import RESAMPLES, References, check_lines


def paired_bootstrap(systems: Sequence[Sequence[str]], references: References, metric: Metric) -> list[float]:
    """p of each system's score against the first one's by sacrebleu's paired bootstrap resampling (Koehn 2004).

    It is 1 for the first one itself, and where resampling shows no variation: of systems that score the same in every
    resample, and of a single line. Raises ValueError when the numbers of lines differ or there are none.
    """
    for hypotheses in systems:
        check_lines(hypotheses, references)
    if len(systems) == 1 or len(systems[0]) == 1:
        return [1.0] * len(systems)
    named = [(str(number), hypotheses) for number, hypotheses in enumerate(systems)]
    test = PairedTest(named, {"score": metric}, references, test_type="bs", n_samples=RESAMPLES)
    # The columns are called 'System' and what sacrebleu calls the metric.
    columns: dict[str, Any] = dict(test()[1])
    [results] = (column for name, column in columns.items() if name != "System")
    first, *others = results
    # sacrebleu counts the resamples that differ from their mean by more than the scores do: where none differs at all,
    # of equal scores too, it counts none.
    return [1.0, *(1.0 if other.score == first.score else other.p_value for other in others)]
