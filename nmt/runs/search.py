"""From a loaded run to its search and its translator."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import yaml

from nmt.config.messages import check_type, unknown
from nmt.config.nodes import CONFIGS, Config, make
from nmt.decoding import consensus
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.state import Search
from nmt.decoding.translator import MAX_SOURCE_TOKENS, Translator
from nmt.evaluation.scores import sentence_chrf
from nmt.runs.load import Trained


def build_translator(
    runs: Sequence[Trained],
    search: Mapping[str, Any] | None = None,
    batch_tokens: int = 4096,
    max_source_tokens: int | None = None,
    minimum_bayes_risk: bool = False,
) -> Translator:
    """The translator of a run, or of several as an ensemble, with the first one's search or `search`.

    See `build_search` and `longest_source` for what is not given. With `minimum_bayes_risk` the best of a line's
    translations is the one that is most like the others by chrF. Raises ValueError where the search finds one alone.
    """
    first = runs[0]
    model = first.model if len(runs) == 1 else Ensemble([run.model for run in runs])
    found = build_search(first.config["search"], search or {})
    if minimum_bayes_risk and found.n_best == 1:
        raise ValueError(
            "minimum_bayes_risk=true chooses between several translations, and the search finds 1; add "
            "search.n_best=5, or search=sampling search.samples=32."
        )
    choose = partial(consensus.minimum_bayes_risk, utility=sentence_chrf) if minimum_bayes_risk else None
    longest = longest_source(first.config) if max_source_tokens is None else max_source_tokens
    return Translator(model, first.tokenizers, found, batch_tokens, longest, choose)


def longest_source(config: Config) -> int:
    """The pieces of a source that one search reads, EOS counted: the usual ones, or as many as training has read."""
    return max(MAX_SOURCE_TOKENS, config["filters"]["max_tokens"])


def build_search(stored: Config, asked: Mapping[str, Any]) -> Search:
    """The search that `search_config` describes."""
    search: Search = make(search_config(stored, asked))
    return search


def named_search(name: str) -> Config:
    """The search that configs/search has under a name, with its defaults. Raises ValueError for an unknown one."""
    nodes = {
        file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in (CONFIGS / "search").glob("*.yaml")
    }
    named = {stem: node for stem, node in nodes.items() if "_target_" in node}
    if name not in named:
        raise ValueError(unknown("search", name, named))
    found: Config = named[name]
    return found


def search_config(stored: Config, asked: Mapping[str, Any], name: str = "search") -> Config:
    """What `asked` describes; where it names no search, the stored one with those of its changes that are not None.

    Raises ValueError for a setting that the stored search does not have or that is of another type.
    """
    if "_target_" in asked:
        return dict(asked)
    new = dict(stored)
    for key, value in asked.items():
        if isinstance(value, Mapping):
            new[key] = search_config(stored.get(key, {}), value, f"{name}.{key}")
        elif value is not None:
            if key not in stored:
                known = [f"{name}.{setting}" for setting in stored]
                raise ValueError(f"{unknown('setting of this search', f'{name}.{key}', known)}")
            check_type(f"{name}.{key}", stored[key], value)
            new[key] = value
    return new
