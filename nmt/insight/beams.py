"""A beam search watched step by step."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from nmt.decoding.beam import BeamSearch
from nmt.decoding.id_search import Hypothesis
from nmt.decoding.stepwise import Step
from nmt.errors import Mistake, TemplatedMessage
from nmt.insight.sentence_pair import check_length
from nmt.runs.load import LoadedRun
from nmt.runs.search import build_translator


class Beam(NamedTuple):
    """An unfinished hypothesis."""

    ids: list[int]
    log_prob: float
    """The log-probability of its pieces, in nats."""


OnStep = Callable[[list[Beam]], None]
"""on_step(beams) receives the unfinished hypotheses after each step, best first; an exception ends the search."""


def watched_search(
    run: LoadedRun,
    source: list[int],
    on_step: OnStep,
    prefix: Sequence[int] = (),
    settings: Mapping[str, Any] | None = None,
) -> list[Hypothesis]:
    """The hypotheses for a source, best first. Source, prefix and hypotheses are ids without BOS and EOS.

    `settings` override some of the search's settings. Raises Mistake if the source is empty or too long, or if the
    run's search is not a beam search.
    """
    histories: list[list[int]] = []

    def observe(step: Step) -> None:
        nonlocal histories
        log_probs, parents = step.log_probs[0].tolist(), step.parents[0].tolist()
        histories = histories or [[]] * len(parents)
        pairs = zip(parents, step.tokens[0].tolist(), strict=True)
        histories = [[*histories[parent], token] for parent, token in pairs]
        beams = [Beam(ids, value) for ids, value in zip(histories, log_probs, strict=True) if value > -torch.inf]
        if beams:  # every hypothesis may have ended
            on_step(sorted(beams, key=lambda beam: -beam.log_prob))

    translator = build_translator([run], settings, observe=observe)
    if not isinstance(translator.search.algorithm, BeamSearch):
        raise Mistake(
            TemplatedMessage("Only a beam search has steps to watch, but this run samples; use a run with search=beam.")
        )
    check_length("source", source, translator.max_source_tokens)
    check_length("source", source, run.model.max_source)
    return translator.search_ids([source], [prefix])[0]
