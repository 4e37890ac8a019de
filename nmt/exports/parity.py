"""Checks whether an exported model matches its run, by comparing their forced log-probabilities and translations."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from nmt.config.nodes import make
from nmt.data.batch import pad_source
from nmt.decoding.beam import BeamSearch
from nmt.decoding.state import Decodable
from nmt.errors import CheckFailed, Mistake
from nmt.runs.engine import Engine, named_search
from nmt.runs.forced_batches import readable_log_probs
from nmt.runs.load import LoadedRun
from nmt.runs.search import build_translator
from nmt.text import BOS, EOS, normalize

SENTENCES = 200
"""Number of sentence pairs that are compared."""

BOUNDS = {"float32": 1e-3, "float16": 0.01, "bfloat16": 0.05, "int16": 0.1, "int8": 0.1}
"""Largest allowed difference in nats between the two log-probabilities of a piece, by number format.

With float32, only the order of summation differs, so the limit applies to the largest difference. The other formats
round the weights, so it applies to the mean difference. CTranslate2 computes int16 as int8 on processors without
16-bit products.
"""


_RANDOM_SENTENCES, _RANDOM_PIECES = 4, 8


class Exported(NamedTuple):
    """An exported model as its users run it."""

    max_source: int | None
    """Maximum number of source pieces that it reads, including EOS; None for no limit."""
    max_target: int | None
    """Maximum number of target pieces that it writes, including EOS; None for no limit."""
    forced_log_probs: Callable[[Sequence[Sequence[int]], Sequence[Sequence[int]]], list[list[float]]]
    """log p of each target piece and of EOS, in nats, from ids without BOS and EOS."""
    translate: Callable[[Sequence[str]], list[str]]
    """The best translation of each line, found with the settings of `comparison_search`."""


class Differs(CheckFailed):
    """The export does not compute what the run computes."""


class Parity(NamedTuple):
    """How closely an exported model matches its run."""

    sentences: int
    pieces: int
    """Target pieces, including EOS."""
    largest_difference: float
    """Largest difference between the two log-probabilities of a reference piece, in nats."""
    mean_difference: float
    equal_translations: float
    """The fraction of sentences whose best translations are the same."""

    def __str__(self) -> str:
        return (
            f"Compared on {self.sentences} sentences ({self.pieces:,} pieces): log-probabilities differ by at most "
            f"{self.largest_difference:.2g} nats, {self.mean_difference:.2g} on average; "
            f"{100 * self.equal_translations:.1f}% of the translations are equal."
        )

    def check(self, quantization: str) -> None:
        """Raises Differs if the difference is larger than the number format explains."""
        bound = BOUNDS[quantization]
        if not math.isfinite(self.largest_difference):
            raise Differs("The exported model or the run computes NaN or infinity. Nothing was written.")
        which, difference = (
            ("largest", self.largest_difference) if quantization == "float32" else ("mean", self.mean_difference)
        )
        if difference > bound:
            raise Differs(
                f"The exported model does not match the run: the {which} difference in log-probability is "
                f"{difference:.3g} nats, but {quantization} allows at most {bound:g}. Nothing was written."
            )


def comparison_search(run: LoadedRun) -> Mapping[str, Any]:
    """The search that finds the translations to compare, in the form that `build_translator` takes.

    It is the run's beam search without a coverage penalty, which not every format supports. For a run that samples, it
    is the default beam search with the run's constraints.
    """
    stored = run.settings.search
    if isinstance(make(stored), BeamSearch):
        return {"coverage_penalty": 0.0}
    beam = named_search("beam")
    return {**beam, "constraints": stored.get("constraints", beam["constraints"])}


def compare(run: LoadedRun, exported: Exported, sources: Sequence[str], references: Sequence[str]) -> Parity:
    """Compares the run and its export on sentence pairs, leaving out pairs that are too long for either.

    Raises Mistake if no pair is left.
    """
    lines = [run.tokenizers.source.respelled(normalize(line)) for line in sources]
    source_ids, target_ids = (
        tokenizer.encode_all([normalize(line) for line in side])
        for tokenizer, side in zip(run.tokenizers, (sources, references), strict=True)
    )
    differences = log_prob_differences(run, exported, source_ids, target_ids)
    if not differences:
        raise Mistake("There is no sentence pair to compare the exported model on; give source=FILE reference=FILE.")
    chosen = [lines[index] for index in differences]
    translations = build_translator([run], comparison_search(run), verbatim=True).translate(chosen)
    pairs = zip(translations, exported.translate(chosen), strict=True)
    every = torch.tensor([difference for row in differences.values() for difference in row], dtype=torch.float64)
    return Parity(
        sentences=len(differences),
        pieces=len(every),
        largest_difference=float(every.max()),  # NaN if one of them is
        mean_difference=float(every.mean()),
        equal_translations=sum(a == b for a, b in pairs) / len(differences),
    )


def log_prob_differences(
    run: LoadedRun, exported: Exported, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> dict[int, list[float]]:
    """The absolute difference in log p of each target piece and of EOS, in nats, by the index of the pair.

    The ids contain neither BOS nor EOS. Pairs that are too long for one of the models are left out.
    """
    limits = (exported.max_source or math.inf, exported.max_target or math.inf)
    kept = [
        index
        for index, pair in enumerate(zip(sources, targets, strict=True))
        if all(len(ids) + 1 <= limit for ids, limit in zip(pair, limits, strict=True))
    ]
    kept_sources, kept_targets = ([side[index] for index in kept] for side in (sources, targets))
    ours = {kept[position]: row for position, row in readable_log_probs([run], kept_sources, kept_targets).items()}
    if not ours:
        return {}
    theirs = exported.forced_log_probs([sources[index] for index in ours], [targets[index] for index in ours])
    return {
        index: [abs(a - b) for a, b in zip(mine, other, strict=True)]
        for (index, mine), other in zip(ours.items(), theirs, strict=True)
    }


def computes_alike(run: LoadedRun, engine: Engine, bound: float) -> bool:
    """Whether an engine gives a few random pieces the log-probabilities that the run gives them, on average.

    Another model differs by a nat or more, even on pieces that mean nothing. Three times `bound` is allowed, because a
    GPU may multiply at lower precision, and because rounded weights change improbable pieces more than probable ones.
    """
    draw = random.Random(0)
    sources, targets = (
        [draw.choices(range(EOS + 1, tokenizer.size), k=_RANDOM_PIECES) for _ in range(_RANDOM_SENTENCES)]
        for tokenizer in run.tokenizers
    )
    exported = Exported(engine.max_source, engine.max_target, engine.forced_log_probs, translate=list)
    rows = log_prob_differences(run, exported, sources, targets).values()
    differences = [difference for row in rows for difference in row]
    return not differences or sum(differences) / len(differences) <= 3 * bound


@torch.inference_mode()
def stepwise_log_probs(
    model: Decodable, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[list[float]]:
    """log p of each target piece and of EOS, in nats, computed step by step as in a search."""
    rows: list[list[float]] = []
    for source, target in zip(sources, targets, strict=True):
        memory: Any = model.encode(*pad_source([source]))
        state, row = model.start(memory, 1), []
        for read, expected in zip([BOS, *target], [*target, EOS], strict=True):
            log_probs, state = model.step(torch.tensor([[read]]), state, memory)
            row.append(float(log_probs[0, 0, expected]))
        rows.append(row)
    return rows
