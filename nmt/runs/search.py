"""Builds the search and the translator of a loaded run."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from nmt.config.messages import unknown
from nmt.config.nodes import CONFIGS, Node, make, read_yaml
from nmt.config.schema import RunSettings, check_node
from nmt.decoding import consensus
from nmt.decoding.binding import Algorithm, Search, bind
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.state import Decodable
from nmt.decoding.stepwise import Observe
from nmt.decoding.translator import MAX_SOURCE_TOKENS, Translator
from nmt.errors import Mistake
from nmt.runs.load import LoadedRun


class Engine(NamedTuple):
    """An engine that translates in place of torch: an exported model, and what can be done with it."""

    name: str
    precision: str
    device: str
    """Where it runs: cpu or cuda."""
    max_source: int | None
    """Maximum number of source pieces that it reads, including EOS; None for no limit."""
    max_target: int | None
    """Maximum number of target pieces that it writes, including EOS; None for no limit."""
    bind: Callable[[Algorithm], Search]
    """The algorithm as a search with the exported model. Raises Mistake if the engine does not support it."""
    forced_log_probs: Callable[[Sequence[Sequence[int]], Sequence[Sequence[int]]], list[list[float]]]
    """log p of each target piece and of EOS, in nats, from ids without BOS and EOS."""


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
    verbatim: bool = False,
) -> Translator:
    """The translator of a run, or of several as an ensemble; `engine` replaces the models.

    `search` changes the first run's search, as in `search_config`; `max_source_tokens` defaults to `longest_source`.
    With `minimum_bayes_risk`, the best translation of a line is the one most similar to the others by chrF. `observe`
    receives every step of a search, unless an engine searches. `workers` is the number of processes that search in
    parallel. With `verbatim`, the model reads every line as it is. Raises Mistake for `minimum_bayes_risk` with a
    search that finds only one translation, for a min_length that no source allows, for a search that the engine does
    not support, and for several workers on a GPU or with `observe`.
    """
    first = runs[0]
    settings = search_config(first.settings.search, search or {})
    algorithm: Algorithm = make(settings, Algorithm)
    model: Decodable = first.model if len(runs) == 1 else Ensemble([run.model for run in runs])
    bound = bind(algorithm, model) if engine is None else engine.bind(algorithm)
    if workers > 1 and first.device.type != "cpu":
        raise Mistake(
            f"workers={workers} needs the CPU, but device is {first.device}: add device=cpu, or leave out workers."
        )
    if minimum_bayes_risk and algorithm.n_best == 1:
        raise Mistake(
            "minimum_bayes_risk=true chooses among several translations, but the search finds only 1: add "
            "search.n_best=5, or search=sampling search.samples=32."
        )
    choose = None
    if minimum_bayes_risk:
        from nmt.evaluation.scores import sentence_chrf  # sacrebleu, which nothing else here needs

        choose = partial(consensus.minimum_bayes_risk, utility=sentence_chrf)
    return Translator(
        bound,
        first.tokenizers,
        batch_tokens=batch_tokens,
        max_source_tokens=longest_source(first.settings) if max_source_tokens is None else max_source_tokens,
        choose=choose,
        window=first.window,
        workers=workers,
        observe=observe,
        verbatim=verbatim,
        source_language=first.direction.source,
    )


def longest_source(settings: RunSettings) -> int:
    """Limit on the source pieces of one search, including EOS: the larger of the default and filters.max_tokens."""
    return max(MAX_SOURCE_TOKENS, settings.filters.max_tokens)


def named_search(name: str) -> Node:
    """The search with that name in configs/search, with its defaults. Raises Mistake for an unknown name."""
    nodes = {file.stem: read_yaml(file) for file in (CONFIGS / "search").glob("*.yaml")}
    named = {stem: node for stem, node in nodes.items() if "_target_" in node}
    if name not in named:
        raise Mistake(unknown("search", name, named))
    node: Node = named[name]
    return node


def search_config(stored: Node, asked: Mapping[str, Any], name: str = "search") -> Node:
    """The search that `asked` describes in full, or the stored search updated with the settings in `asked` that are not
    None.

    Raises Mistake for a setting that the stored search does not have, or whose type differs.
    """
    if "_target_" in asked:
        return dict(asked)
    new = dict(stored)
    for key, value in asked.items():
        if value is None:
            continue
        if key not in stored:
            known = [f"{name}.{setting}" for setting in stored]
            raise Mistake(f"{unknown('setting of this search', f'{name}.{key}', known)}")
        if isinstance(value, Mapping) and isinstance(stored[key], Mapping):
            new[key] = search_config(stored[key], value, f"{name}.{key}")
        else:
            check_node(name, {key: value}, {key: stored[key]})
            new[key] = value
    return new
