"""How the p-values of nmt.compare are distributed when the compared systems are equally good.

  python -m scripts.studies.null_p_values                     1,000 simulations of each case; takes a quarter of an hour
  python -m scripts.studies.null_p_values --simulations 100

Each simulation draws sentences of the embedded corpus. A system's output is the reference with wrong words. In the
cases 'alike', both systems err in the same way; in 'unlike', one has wrong words in every sentence, while some
sentences of the other are almost all wrong, so that both have the same BLEU over all sentences. In 'seeds', two
settings have several runs each, whose rates of wrong words differ. If systems are equally good, p must be below x in a
share x of the simulations. sacrebleu's paired bootstrap, which nmt.compare once used, is shown for comparison.
"""

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from nmt.config.direction import Direction
from nmt.data.corpus import corpus_files
from nmt.errors import Mistake
from nmt.evaluation.scores import RESAMPLES, Bleu
from nmt.evaluation.significance import approximate_randomization, multi_bootstrap
from nmt.tables import Cell, Number, Table
from nmt.text.lines import read_lines
from scripts.mistakes import report_mistakes

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.95)
WRONG_WORDS = 0.15
MOSTLY_WRONG = 0.85
"""The share of wrong words in the bad sentences of an 'unlike' system."""
SEED_DEVIATION = 0.01
"""The standard deviation of the rate of wrong words over the runs of a setting: about two BLEU."""
LINES, RUNS = 2000, 40

Test = Callable[[Sequence[Sequence[str]], Sequence[str]], float]


class Case(NamedTuple):
    """Outputs for all sentences, from which each simulation draws sentences and systems."""

    name: str
    outputs: Sequence[Sequence[str]]
    runs: int
    """The number of runs of each of the two settings."""
    exchangeable: bool
    """Whether the two systems err in the same way, so that each sentence's outputs may change places."""
    sentences: int


class RememberingBleu(Bleu):
    """BLEU that scores each pair of texts once: simulations draw the same sentences, and scoring them takes longest."""

    def corpus_score(self, hypotheses: Sequence[str], references: Any, n_bootstrap: int = 1) -> Any:
        return self._remembered(tuple(hypotheses), tuple(map(tuple, references)))

    @cache  # noqa: B019
    def _remembered(self, hypotheses: tuple[str, ...], references: tuple[tuple[str, ...], ...]) -> Any:
        return super().corpus_score(hypotheses, references)


def with_wrong_words(line: str, share: float, words: Sequence[str], draw: random.Random) -> str:
    """The line with a share of its words replaced by random words."""
    return " ".join(draw.choice(words) if draw.random() < share else word for word in line.split())


def cases(references: Sequence[str], metric: BLEU, sizes: Sequence[int]) -> list[Case]:
    """The cases of the study; the share of bad sentences in 'unlike' is found by bisection."""
    words = [word for line in references for word in line.split()]

    def output(seed: int, share: float, bad: float = 1.0) -> list[str]:
        draw = random.Random(seed)
        return [with_wrong_words(line, share if draw.random() < bad else 0.0, words, draw) for line in references]

    alike = [output(1, WRONG_WORDS), output(2, WRONG_WORDS)]
    goal = metric.corpus_score(alike[0], [references]).score
    low, high = 0.0, 1.0
    for _ in range(12):
        bad = (low + high) / 2
        unlike = output(3, MOSTLY_WRONG, bad)
        low, high = (bad, high) if metric.corpus_score(unlike, [references]).score > goal else (low, bad)
    rates = random.Random(4)
    seeds = [output(5 + run, max(0.0, rates.gauss(WRONG_WORDS, SEED_DEVIATION))) for run in range(RUNS)]
    return [
        *(Case("alike", alike, runs=1, exchangeable=True, sentences=size) for size in sizes),
        *(Case("unlike", [alike[0], unlike], runs=1, exchangeable=False, sentences=size) for size in sizes),
        *(Case(f"{runs} seeds", seeds, runs=runs, exchangeable=True, sentences=sizes[-1]) for runs in (2, 3, 5)),
    ]


def p_values(case: Case, references: Sequence[str], test: Test, simulations: int) -> list[float]:
    """The p-value of each simulation."""
    draws, p_values = np.random.default_rng(0), []
    for _ in range(simulations):
        lines = draws.integers(len(references), size=case.sentences)
        systems = draws.permutation(len(case.outputs))[: 2 * case.runs]
        chosen = [[case.outputs[system][line] for line in lines] for system in systems]
        if case.exchangeable and case.runs == 1:
            swapped = draws.integers(2, size=case.sentences)
            chosen = [[chosen[swap ^ side][place] for place, swap in enumerate(swapped)] for side in (0, 1)]
        p_values.append(test(chosen, [references[line] for line in lines]))
    return p_values


def randomization(metric: BLEU, systems: Sequence[Sequence[str]], references: Sequence[str]) -> float:
    return approximate_randomization(systems, [references], metric, trials=RESAMPLES)[1]


def paired_bootstrap(metric: BLEU, systems: Sequence[Sequence[str]], references: Sequence[str]) -> float:
    named = [(str(number), system) for number, system in enumerate(systems)]
    _, columns = PairedTest(named, {"BLEU": metric}, [references], test_type="bs", n_samples=RESAMPLES)()
    return columns["BLEU"][1].p_value


def bootstrap_of_settings(metric: BLEU, systems: Sequence[Sequence[str]], references: Sequence[str]) -> float:
    half = len(systems) // 2
    return multi_bootstrap([systems[:half], systems[half:]], [references], metric)[1]


def study(simulations: int, sizes: Sequence[int]) -> Table:
    """One row for each case and test: the share of simulations whose p is below each level."""
    _, target = corpus_files("sample:train", Direction.parse("en-vi"))
    references = read_lines(target)[:LINES]
    metric = RememberingBleu(force=True)
    rows: list[list[Cell]] = []
    for case in cases(references, metric, sizes):
        tests: dict[str, Test] = {"multi-bootstrap": partial(bootstrap_of_settings, metric)}
        if case.runs == 1:
            tests = {
                "approximate randomization": partial(randomization, metric),
                "sacrebleu's paired bootstrap": partial(paired_bootstrap, metric),
            }
        for name, test in tests.items():
            values = np.array(p_values(case, references, test, simulations))
            shares = [Number(float((values < level).mean()), ".3f") for level in LEVELS]
            rows.append([case.name, Number(case.sentences, ",d"), name, *shares])
            print(*rows[-1], file=sys.stderr, flush=True)
    return Table(["systems", "sentences", "test", *(f"p < {level}" for level in LEVELS)], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1000, help="of each case (default: %(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[60, 200, 1000], help="numbers of sentences")
    options = parser.parse_args(arguments)
    if options.simulations < 1 or min(options.sizes) < 2:
        raise Mistake("--simulations must be at least 1, and each of --sizes at least 2.")
    print(study(options.simulations, options.sizes).markdown())


if __name__ == "__main__":
    report_mistakes(main, sys.argv[1:])
