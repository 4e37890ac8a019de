"""Whether an exported model computes the same as the run: forced log-probabilities and translations of both."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch

from nmt.data.batch import pad_source
from nmt.decoding.state import Decodable
from nmt.errors import CheckFailed
from nmt.runs.forced_scores import piece_log_probs, readable_batches
from nmt.runs.load import Trained
from nmt.runs.search import build_translator
from nmt.text import BOS, EOS, normalize

SENTENCES = 200
"""How many pairs are compared."""

BOUNDS = {"float32": 1e-3, "float16": 0.01, "bfloat16": 0.05, "int16": 0.1, "int8": 0.1}
"""How far, in nats, the log-probability of a piece may be from the run's, by number format.

float32 adds in another order only, so this bounds the largest difference; the others round the weights, so it bounds
the mean difference. CTranslate2 computes int16 as int8 on processors without 16-bit products.
"""

IdPairs = tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]


@runtime_checkable
class Exported(Protocol):
    """An exported model as its users run it."""

    def forced_log_probs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """log p of each target piece and of EOS, in nats; ids without BOS and EOS."""
        ...

    def translate(self, lines: Sequence[str]) -> list[str]:
        """The best translation of each line, with the search settings of the run."""
        ...


class Parity(NamedTuple):
    """What two forms of a model have in common."""

    sentences: int
    pieces: int
    """Target pieces, including EOS."""
    largest_difference: float
    """Of the log-probabilities of a reference's piece, in nats."""
    mean_difference: float
    equal_translations: float
    """The share of sentences whose best translations are the same."""

    def __str__(self) -> str:
        return (
            f"Compared on {self.sentences} sentences ({self.pieces:,} pieces): log-probabilities differ by at most "
            f"{self.largest_difference:.2g} nats, {self.mean_difference:.2g} on average; "
            f"{100 * self.equal_translations:.1f}% of the translations are equal."
        )

    def check(self, quantization: str) -> None:
        """Raises CheckFailed if the difference is larger than the number format explains."""
        bound = BOUNDS[quantization]
        which, found = (
            ("largest", self.largest_difference) if quantization == "float32" else ("mean", self.mean_difference)
        )
        if not found <= bound:  # also if it is NaN
            raise CheckFailed(
                f"The exported model is not the run's: the {which} difference of a log-probability is {found:.3g} "
                f"nats, and quantization={quantization} allows {bound:g}. Nothing was written."
            )


def compare(trained: Trained, exported: Exported, sources: Sequence[str], references: Sequence[str]) -> Parity:
    """Compares the two on sentence pairs; those too long for the model are left out.

    Raises ValueError if none is left.
    """
    lines = [normalize(line) for line in sources]
    source_ids, target_ids = (
        tokenizer.encode_all([normalize(line) for line in side])
        for tokenizer, side in zip(trained.tokenizers, (sources, references), strict=True)
    )
    ours: dict[int, list[float]] = {}
    for indices, batch in readable_batches([trained], source_ids, target_ids, batch_tokens=4096):
        lengths = (len(target_ids[index]) + 1 for index in indices)
        for index, row, length in zip(indices, piece_log_probs([trained], batch).tolist(), lengths, strict=True):
            ours[index] = row[:length]
    if not ours:
        raise ValueError("There is no sentence pair to compare the exported model on; give source=FILE reference=FILE.")
    theirs = exported.forced_log_probs([source_ids[index] for index in ours], [target_ids[index] for index in ours])
    differences = [
        abs(a - b) for mine, other in zip(ours.values(), theirs, strict=True) for a, b in zip(mine, other, strict=True)
    ]
    chosen = [lines[index] for index in ours]
    pairs = zip(build_translator([trained]).translate(chosen), exported.translate(chosen), strict=True)
    return Parity(
        sentences=len(ours),
        pieces=len(differences),
        largest_difference=max(differences),
        mean_difference=sum(differences) / len(differences),
        equal_translations=sum(a == b for a, b in pairs) / len(ours),
    )


@torch.inference_mode()
def stepwise_log_probs(
    model: Decodable, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[list[float]]:
    """log p of each target piece and of EOS, in nats, computed by the steps of a search."""
    found: list[list[float]] = []
    for source, target in zip(sources, targets, strict=True):
        memory: Any = model.encode(*pad_source([source]))
        state, row = model.start(memory, 1), []
        for read, expected in zip([BOS, *target], [*target, EOS], strict=True):
            log_probs, state = model.step(torch.tensor([[read]]), state, memory)
            row.append(float(log_probs[0, 0, expected]))
        found.append(row)
    return found
