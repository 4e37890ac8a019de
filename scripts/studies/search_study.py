"""Compare beam search with exhaustive search, on random models of three words and at most six pieces.

  python -m scripts.studies.search_study                1,000 random models, all penalties; takes minutes
  python -m scripts.studies.search_study --models 100

A model's next piece depends on the whole prefix through a random table. For each pair of penalties the table shows how
often a beam wide enough for every prefix (3^6) finds the best sentence, which must be always, and how often beams of 2
to 5 score lower than greedy search. The latter is not an error: a wider beam does not guarantee a better score.
"""

import argparse
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.decoding.beam import BeamSearch
from nmt.decoding.constraints import Constraints
from nmt.errors import Mistake
from nmt.text import BOS, EOS, PAD, UNK
from scripts.mistakes import report_mistakes

WORDS = (4, 5, 6)
WORDS_AT_MOST = 6
VOCABULARY = 7
SOURCE_PIECES = 3  # including EOS
LENGTH_PENALTIES = (-1.0, 0.0, 0.6, 1.0)
COVERAGE_PENALTIES = (0.0, 0.4)
NARROW = (2, 3, 4, 5)


class State(NamedTuple):
    """The prefix of each row as a number in base 4; the words are the digits 1, 2 and 3."""

    prefix: Tensor


class Table:
    """Random log p(next piece) and attention for each prefix of up to six words."""

    device = torch.device("cpu")
    max_source = max_target = None
    training = False

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        prefixes = 4**WORDS_AT_MOST
        scores = 2 * torch.randn(prefixes, VOCABULARY, generator=generator, dtype=torch.double)
        scores[:, [PAD, UNK, BOS]] = -math.inf
        self.log_probs = scores.log_softmax(dim=-1)
        self.weights = torch.randn(prefixes, SOURCE_PIECES, generator=generator, dtype=torch.double).softmax(dim=-1)

    def train(self, mode: bool = True) -> "Table":
        return self

    def encode(self, source: Tensor, source_mask: Tensor, *, context: None = None) -> tuple[Tensor]:
        return (source,)

    def start(self, memory: tuple[Tensor], beams: int) -> State:
        return State(torch.zeros(len(memory[0]) * beams, dtype=torch.long))

    def step(self, tokens: Tensor, state: State, memory: tuple[Tensor]) -> tuple[Tensor, State]:
        prefix = self._next(tokens, state)
        return self.log_probs[prefix].view(*tokens.shape, VOCABULARY), State(prefix)

    def attending_step(self, tokens: Tensor, state: State, memory: tuple[Tensor]) -> tuple[Tensor, Tensor, State]:
        log_probs, state = self.step(tokens, state, memory)
        return log_probs, self.weights[state.prefix].view(*tokens.shape, SOURCE_PIECES), state

    def _next(self, tokens: Tensor, state: State) -> Tensor:
        words = (tokens.flatten() - WORDS[0] + 1).clamp(min=0)  # BOS is 0
        return (state.prefix * 4 + words) % len(self.log_probs)


def every_sentence() -> Iterator[tuple[int, ...]]:
    for length in range(WORDS_AT_MOST + 1):
        yield from itertools.product(WORDS, repeat=length)


def tried(model: Table, sentences: Sequence[tuple[int, ...]]) -> tuple[Tensor, Tensor, Tensor]:
    """The log probability, coverage and length (including EOS) of each sentence, summed over its steps."""
    totals, coverages = [], []
    for words in sentences:
        prefix, total, sums = 0, torch.zeros((), dtype=torch.double), torch.zeros(SOURCE_PIECES, dtype=torch.double)
        for piece in (*words, EOS):
            total, sums = total + model.log_probs[prefix, piece], sums + model.weights[prefix]
            prefix = prefix * 4 + piece - WORDS[0] + 1
        totals.append(total)
        coverages.append(sums[:-1].clamp(1e-3, 1).log().sum())
    return torch.stack(totals), torch.stack(coverages), torch.tensor([len(words) + 1 for words in sentences])


def study(models: int) -> list[list[str]]:
    """One row per pair of penalties: how often the widest beam is best, and narrow beams score below greedy."""
    sentences = list(every_sentence())
    source = torch.tensor([[4, 5, EOS]])
    mask = torch.ones_like(source, dtype=torch.bool)
    pairs = list(itertools.product(LENGTH_PENALTIES, COVERAGE_PENALTIES))
    best = dict.fromkeys(pairs, 0)
    below = {(pair, beam): 0 for pair in pairs for beam in NARROW}
    for seed in range(models):
        model = Table(seed)
        totals, coverages, lengths = tried(model, sentences)
        for alpha, beta in pairs:
            scores = totals / ((5 + lengths) / 6) ** alpha + beta * coverages

            def found(beam: int, alpha: float = alpha, beta: float = beta, model: Table = model) -> float:
                constraints = Constraints(max_length=WORDS_AT_MOST + 1)
                search = BeamSearch(beam, alpha, beta, constraints=constraints)
                return search(model, source, mask)[0][0].score

            best[alpha, beta] += math.isclose(found(len(WORDS) ** WORDS_AT_MOST), float(scores.max()), rel_tol=1e-6)
            greedy = found(1)
            for beam in NARROW:
                below[(alpha, beta), beam] += found(beam) < greedy - 1e-6
    return [
        [f"{alpha}", f"{beta}", f"{best[alpha, beta]} of {models}", *(str(below[(alpha, beta), b]) for b in NARROW)]
        for alpha, beta in pairs
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=1000, help="random models (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.models < 1:
        raise Mistake(f"--models is {options.models}; it must be at least 1.")
    rows = study(options.models)
    header = ["length_penalty", "coverage_penalty", "beam 729 is best", *(f"beam {b} below greedy" for b in NARROW)]
    for row in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    report_mistakes(main)
