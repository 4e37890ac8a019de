"""A model of a few lines, so that search is tested without the real models."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from nmt.text.tokenizer import BOS, UNK

STATES = 101


class Memory(NamedTuple):
    key: Tensor
    mask: Tensor


class Position(NamedTuple):
    steps: Tensor


class State(NamedTuple):
    key: Tensor
    nested: tuple[Position]


class Markov:
    """Random log-probabilities that depend on the whole source and the whole prefix, through hashes of both."""

    def __init__(self, vocab: int, seed: int, *, sharpness: float = 1.0, max_target: int | None = None) -> None:
        self.device, self.max_source, self.max_target = torch.device("cpu"), None, max_target
        scores = sharpness * torch.randn(STATES, vocab, generator=torch.Generator().manual_seed(seed)).double()
        scores[:, UNK] = -torch.inf
        self.table = scores.log_softmax(-1)
        self.training = True
        self.calls: list[tuple[int, int]] = []
        self._starts: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[Memory, State]] = {}

    def train(self, mode: bool = True) -> "Markov":
        self.training = mode
        return self

    def encode(self, source: Tensor, source_mask: Tensor, *, context: None = None) -> Memory:
        weights = torch.arange(1, source.shape[1] + 1)
        return Memory((source * weights * source_mask).sum(1) % STATES, source_mask)

    def start(self, memory: Memory, beams: int) -> State:
        rows = len(memory.key) * beams
        return State(torch.zeros(rows, dtype=torch.long), (Position(torch.zeros(rows, dtype=torch.long)),))

    def step(self, tokens: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        self.calls.append((len(memory.key), len(state.key)))
        steps = state.nested[0].steps + 1
        key = (state.key * 31 + tokens.flatten() * 7 + steps) % STATES
        rows = (key.view(tokens.shape) + memory.key[:, None]) % STATES
        return self.table[rows], State(key, (Position(steps),))

    def attending_step(self, tokens: Tensor, state: State, memory: Memory) -> tuple[Tensor, Tensor, State]:
        """Attends mostly to a source position that depends on the prefix."""
        log_probs, state = self.step(tokens, state, memory)
        lengths = memory.mask.sum(1, keepdim=True)
        chosen = torch.nn.functional.one_hot(state.key.view(tokens.shape) % lengths, memory.mask.shape[1])
        return log_probs, (chosen * 0.7 + 0.3 / lengths[:, None]) * memory.mask[:, None], state

    def next_weights(self, source: list[int], prefix: list[int]) -> Tensor:
        """The attention weights of the step after `prefix`."""
        return self._after(source, prefix)[1]

    def next_log_probs(self, source: list[int], prefix: list[int]) -> Tensor:
        """The log-probabilities of the token after `prefix`, computed from the beginning."""
        return self._after(source, prefix)[0]

    def _after(self, source: list[int], prefix: list[int]) -> tuple[Tensor, Tensor]:
        memory, state = self._before(tuple(source), tuple(prefix))
        log_probs, weights, _ = self.attending_step(torch.tensor([[[BOS, *prefix][-1]]]), state, memory)
        return log_probs[0, 0], weights[0, 0]

    def _before(self, source: tuple[int, ...], prefix: tuple[int, ...]) -> tuple[Memory, State]:
        """Memory, and the state before the last token of BOS and `prefix`; each is computed once."""
        if (source, prefix) not in self._starts:
            if prefix:
                memory, state = self._before(source, prefix[:-1])
                _, state = self.step(torch.tensor([[[BOS, *prefix][-2]]]), state, memory)
            else:
                memory = self.encode(torch.tensor([source]), torch.ones(1, len(source), dtype=torch.bool))
                state = self.start(memory, 1)
            self._starts[source, prefix] = memory, state
        return self._starts[source, prefix]


@pytest.fixture
def markov() -> type[Markov]:
    return Markov
