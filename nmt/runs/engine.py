"""What translates with a run: the engine, the search, and the translator built of them. Imports no torch."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from nmt.config.messages import unknown
from nmt.config.nodes import CONFIGS, Node, read_yaml
from nmt.config.schema import RunSettings, check_node
from nmt.decoding import consensus
from nmt.decoding.id_search import Search
from nmt.decoding.translator import MAX_SOURCE_TOKENS, Translator
from nmt.errors import Mistake
from nmt.runs.reading import StoredRun
from nmt.text.dictionary import NO_DICTIONARY, Dictionary


class Engine(NamedTuple):
    """What computes translations: torch with a run's model, or another library with an exported one."""

    name: str
    precision: str
    device: str
    """Where it runs: cpu or cuda."""
    max_source: int | None
    """Maximum number of source pieces that it reads, including EOS; None for no limit."""
    max_target: int | None
    """Maximum number of target pieces that it writes, including EOS; None for no limit."""
    bind: Callable[[Node], Search]
    """The search that a node describes, with this model. Raises Mistake if the engine does not support it."""
    forced_log_probs: Callable[[Sequence[Sequence[int]], Sequence[Sequence[int]]], list[list[float]]]
    """log p of each target piece and of EOS, in nats, from ids without BOS and EOS."""


def engine_translator(
    run: StoredRun,
    engine: Engine,
    search: Mapping[str, Any] | None = None,
    batch_tokens: int = 4096,
    *,
    max_source_tokens: int | None = None,
    minimum_bayes_risk: bool = False,
    observe: Callable[[Any], None] | None = None,
    workers: int = 1,
    dictionary: Dictionary = NO_DICTIONARY,
    verbatim: bool = False,
) -> Translator:
    """The translator of a run with an engine.

    `search` changes the run's search, as in `search_config`; `max_source_tokens` defaults to `longest_source`.
    With `minimum_bayes_risk`, the best translation of a line is the one most similar to the others by chrF. `observe`
    receives every step of a search, if torch computes it. `workers` is the number of processes that search in
    parallel. `dictionary` is added to the run's own, and takes precedence. With `verbatim`, the model reads every line
    as it is, without a dictionary.

    Raises Mistake for `minimum_bayes_risk` with a search that finds only one translation, for a min_length that is
    too long for every source, for a search that the engine does not support, and for several workers on a GPU or with
    `observe`.
    """
    bound = engine.bind(search_config(run.settings.search, search or {}))
    if workers > 1 and engine.device != "cpu":
        raise Mistake(
            f"workers={workers} needs the CPU, but device is {engine.device}: add device=cpu, or leave out workers."
        )
    if minimum_bayes_risk and bound.algorithm.n_best == 1:
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
        run.tokenizers,
        batch_tokens=batch_tokens,
        max_source_tokens=longest_source(run.settings) if max_source_tokens is None else max_source_tokens,
        choose=choose,
        window=run.context_window,
        workers=workers,
        observe=observe,
        dictionary=run.dictionary_with(dictionary),
        verbatim=verbatim,
        source_language=run.direction.source,
    )


def longest_source(settings: RunSettings) -> int:
    """Limit on the source pieces of one search, including EOS: the larger of the default and filters.max_tokens."""
    return max(MAX_SOURCE_TOKENS, settings.filters.max_tokens)


def named_search(name: str) -> Node:
    """The search with that name in configs/search, with its defaults. Raises Mistake for an unknown name."""
    named = _named_searches()
    if name not in named:
        raise Mistake(unknown("search", name, named))
    return named[name]


@cache
def _named_searches() -> dict[str, Node]:
    nodes = {file.stem: read_yaml(file) for file in (CONFIGS / "search").glob("*.yaml")}
    return {stem: node for stem, node in nodes.items() if "_target_" in node}


def search_config(stored: Node, asked: Mapping[str, Any]) -> Node:
    """The search that `asked` describes in full, or the stored search updated with the settings in `asked` that are not
    None.

    Raises Mistake for a setting that the stored search does not have, or whose type differs.
    """
    # The types are those of the search's own file: a run stores length_penalty=1 as a whole number.
    same_class = (node for node in _named_searches().values() if node["_target_"] == stored.get("_target_"))
    return _updated("search", stored, asked, declared=next(same_class, {}))


def _updated(name: str, stored: Node, asked: Mapping[str, Any], declared: Node) -> Node:
    """A stored node, whose key is `name`, with the settings in `asked` that are not None.

    Types are those of the node `declared`. A setting that is missing or null there has its stored type.
    """
    if "_target_" in asked:
        return dict(asked)
    new = dict(stored)
    for key, value in asked.items():
        if value is None:
            continue
        if key not in stored:
            known = [f"{name}.{setting}" for setting in stored]
            raise Mistake(unknown("setting of this search", f"{name}.{key}", known))
        if isinstance(value, Mapping) and isinstance(stored[key], Mapping):
            new[key] = _updated(f"{name}.{key}", stored[key], value, declared.get(key) or {})
        else:
            default = stored[key] if declared.get(key) is None else declared[key]
            check_node(name, {key: value}, {key: default})
            new[key] = value
    return new
