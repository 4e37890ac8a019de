"""Searches with the models of loaded runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from nmt.config.nodes import Node, make
from nmt.decoding.beam import BeamSearch
from nmt.decoding.binding import Algorithm, bind
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.id_search import Hypothesis, IdBatch, Search
from nmt.decoding.state import Decodable
from nmt.decoding.stepwise import Observe
from nmt.decoding.translator import Translator
from nmt.runs.engine import Engine, engine_translator
from nmt.runs.forced_batches import forced_log_probs
from nmt.runs.load import LoadedRun
from nmt.runs.memory import OutOfMemory, on_out_of_memory
from nmt.text.dictionary import NO_DICTIONARY, Dictionary


def torch_engine(runs: Sequence[LoadedRun]) -> Engine:
    """Torch, with the model of a run, or of several as an ensemble."""
    first = runs[0]
    model: Decodable = first.model if len(runs) == 1 else Ensemble([run.model for run in runs])
    return Engine(
        name="torch",
        precision=first.precision,
        device=str(first.device),
        max_source=model.max_source,
        max_target=model.max_target,
        bind=partial(model_search, model),
        forced_log_probs=partial(forced_log_probs, runs),
    )


def model_search(model: Decodable, node: Node) -> Search:
    """The search that a node describes, with a model. It raises OutOfMemory if the memory is full."""
    search = bind(make(node, Algorithm), model)

    def find(batch: IdBatch, observe: Observe | None) -> list[list[Hypothesis]]:
        longest = max(map(len, batch.sources))
        explained = partial(
            OutOfMemory,
            f"Out of memory while translating {len(batch.sources):,} sentences of up to {longest:,} pieces: lower "
            "batch_tokens, or the search's beam_size or samples.",
        )
        with on_out_of_memory(explained):
            return search.find(batch, observe)

    return replace(search, find=find)


def beam_settings(run: LoadedRun) -> dict[str, Any]:
    """The run's beam search, or the default one for a run that samples: its settings by their names in configs."""
    search = make(run.settings.search)
    beam = search if isinstance(search, BeamSearch) else BeamSearch(constraints=search.constraints)
    limits = beam.constraints
    return {
        **{name: getattr(beam, name) for name in ("beam_size", "length_penalty", "coverage_penalty")},
        **{name: getattr(limits, name) for name in ("min_length", "max_length", "max_length_ratio")},
        **{name: getattr(limits, name) for name in ("max_length_offset", "no_repeat_ngram")},
    }


def build_translator(
    runs: Sequence[LoadedRun],
    search: Mapping[str, Any] | None = None,
    batch_tokens: int = 4096,
    *,
    max_source_tokens: int | None = None,
    minimum_bayes_risk: bool = False,
    observe: Observe | None = None,
    engine: Engine | None = None,
    workers: int = 1,
    dictionary: Dictionary = NO_DICTIONARY,
    verbatim: bool = False,
) -> Translator:
    """The translator of a run, or of several as an ensemble; see `engine_translator`. `engine` replaces the models."""
    return engine_translator(
        runs[0].stored,
        torch_engine(runs) if engine is None else engine,
        search,
        batch_tokens,
        max_source_tokens=max_source_tokens,
        minimum_bayes_risk=minimum_bayes_risk,
        observe=observe,
        workers=workers,
        dictionary=dictionary,
        verbatim=verbatim,
    )
