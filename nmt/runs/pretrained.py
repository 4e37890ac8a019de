"""A finished run in Python: text in, text, numbers and arrays out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.decoding.translator import Translation, Translator
from nmt.maps.attention_map import AttentionMap
from nmt.runs.forced_maps import first_ranked, forced_maps
from nmt.runs.forced_scores import Perplexity, log_probs, perplexity
from nmt.runs.load import load_runs
from nmt.runs.search import build_translator, named_search, search_config
from nmt.text import normalize


class Pretrained:
    """What nmt.load returns: a finished run, or several of them as an ensemble."""

    def __init__(self, run_dir: str | Path | Sequence[str | Path], device: str, precision: str) -> None:
        paths = [run_dir] if isinstance(run_dir, (str, Path)) else list(run_dir)
        self.runs = load_runs(paths, device, precision)

    def translate(
        self,
        lines: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        search: str | None = None,
        minimum_bayes_risk: bool = False,
        **settings: Any,
    ) -> list[str]:
        """The best translation of each line, which begins with its prefix; an empty line gives an empty one.

        By the search that the run was trained with, or by 'beam' or 'sampling' with their defaults; further arguments
        replace settings of it, such as beam_size=1 or samples=32. With `minimum_bayes_risk` the best is the one that is
        most like the others by chrF. Raises ValueError for what cannot be used.
        """
        return self._translator(search, settings, minimum_bayes_risk).translate(lines, prefixes)

    def n_best(
        self,
        lines: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        search: str | None = None,
        **settings: Any,
    ) -> list[list[Translation]]:
        """Several translations of each line with their log_prob and score, best first: n_best=5, for example."""
        return self._translator(search, settings).n_best(lines, prefixes)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """log P(target | source) of each pair of lines, in nats; NaN for one that is longer than the model can read."""
        _check_lines(sources, targets)
        return log_probs(self.runs, sources, targets)

    def perplexity(self, sources: Sequence[str], targets: Sequence[str]) -> Perplexity:
        """The perplexity of the targets per piece, word and character, over the lines that the model can read."""
        return perplexity(self.score(sources, targets), self.runs[0], targets)

    def attend(self, sources: Sequence[str], targets: Sequence[str] | None = None) -> list[list[AttentionMap]]:
        """What the run attends to at every site in each pair, as arrays (layers, heads, rows, columns) with labels.

        Without targets in the best translation. A pair with a side that is empty, or too long for the model, has no
        maps. Raises ValueError for an ensemble.
        """
        if len(self.runs) > 1:
            raise ValueError(f"{len(self.runs)} runs have {len(self.runs)} different attentions: load one of them.")
        _check_lines(sources, sources if targets is None else targets)
        run = self.runs[0]
        source_ids = run.tokenizers.source.encode_all([normalize(line) for line in sources])
        if targets is None:
            found = self._translator(None, {}).search_ids(source_ids)
            target_ids = [hypotheses[0].ids if hypotheses else [] for hypotheses in found]
        else:
            target_ids = run.tokenizers.target.encode_all([normalize(line) for line in targets])
        maps: list[list[AttentionMap]] = [[] for _ in sources]
        for sentence in forced_maps(run, first_ranked(source_ids, target_ids), batch_tokens=4096):
            maps[sentence.line - 1] = sentence.maps
        return maps

    def _translator(
        self, search: str | None, settings: Mapping[str, Any], minimum_bayes_risk: bool = False
    ) -> Translator:
        asked = search_config(named_search(search), settings) if search else settings
        return build_translator(self.runs, asked, minimum_bayes_risk=minimum_bayes_risk)


def _check_lines(sources: Sequence[str], targets: Sequence[str]) -> None:
    for lines in (sources, targets):
        if isinstance(lines, str):
            raise ValueError(f"Give lists of lines, not the string {lines!r}, whose letters would be taken for lines.")
    if len(sources) != len(targets):
        raise ValueError(f"{len(sources)} sources but {len(targets)} targets: give a target for each source.")
