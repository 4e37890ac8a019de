"""Whether one system's score is better than another's by more than chance."""

from collections.abc import Sequence

from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

from nmt.evaluation.scores import RESAMPLES, References, check_lines


def paired_bootstrap(systems: Sequence[Sequence[str]], references: References, metric: Metric) -> list[float]:
    """p of each system's score against the first one's by sacrebleu's paired bootstrap resampling (Koehn 2004).

    The first one's own is 1. Raises ValueError when the numbers of lines differ or there are none.
    """
    for hypotheses in systems:
        check_lines(hypotheses, references)
    if len(systems) == 1:
        return [1.0]
    named = [(str(number), hypotheses) for number, hypotheses in enumerate(systems)]
    test = PairedTest(named, {"score": metric}, references, test_type="bs", n_samples=RESAMPLES)
    _, found = test()
    return [1.0, *(result.p_value for result in found["score"][1:])]
