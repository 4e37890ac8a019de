"""Finished runs in Python: text goes in; text, numbers and arrays come out."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from nmt.decoding.translator import Translation, Translator
from nmt.errors import Mistake
from nmt.insight.ablation import ABLATIONS, Ablations, ablate, readable_pairs
from nmt.insight.attribution_maps import attribution_maps, chosen_method
from nmt.insight.forced_maps import IdPair, first_ranked, forced_maps
from nmt.insight.interventions import Intervention, InterventionEffect, intervene
from nmt.maps.attention_map import AttentionMap, SentenceMaps
from nmt.maps.notebook import LineMaps
from nmt.runs.engine import Engine, named_search, search_config
from nmt.runs.load import LoadedRun
from nmt.runs.search import build_translator
from nmt.scoring.forced_scores import Perplexity, log_probs, perplexity
from nmt.text import normalize


class Run:
    """What nmt.load returns: a finished run, or several of them as an ensemble."""

    def __init__(self, runs: Sequence[LoadedRun], engine: Engine | None = None) -> None:
        self.runs, self.engine = list(runs), engine

    def __repr__(self) -> str:
        described = [
            f"Run(run_dir='{run.directory.path}', direction={run.direction}, model={type(run.model).__name__}, "
            f"scorer={type(run.model.sites['cross'][0].scorer).__name__}, device={run.device}, "
            f"precision={run.precision})"
            for run in self.runs
        ]
        return described[0] if len(described) == 1 else f"Ensemble({', '.join(described)})"

    def translate(
        self,
        lines: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        documents: Sequence[Hashable] | None = None,
        search: str | None = None,
        minimum_bayes_risk: bool = False,
        verbatim: bool = False,
        **settings: Any,
    ) -> list[str]:
        """The best translation of each line, beginning with the line's prefix; '' for an empty line.

        `documents` says which document each line belongs to: a run with context also reads the earlier lines of the
        same document. `search` is 'beam' or 'sampling', each with its default settings; without it, the run's stored
        search is used. `settings` override settings of the search, such as beam_size=1 or samples=32. With
        `minimum_bayes_risk`, the best translation is the one most similar to the others by chrF. With `verbatim`, the
        model reads every line as it is; otherwise the words of the run's dictionary are replaced, numbers, addresses,
        list markers and emoji are copied, and a line in capitals is translated in sentence case and put in capitals
        again. Raises Mistake for an argument that cannot be used.
        """
        begins = None if prefixes is None else _strings("prefixes", prefixes)
        if documents is not None:
            self.runs[0].require_context("documents")
        translator = self._translator(search, settings, minimum_bayes_risk, verbatim)
        return translator.translate(_strings("lines", lines), begins, documents=documents)

    def n_best(
        self,
        lines: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        documents: Sequence[Hashable] | None = None,
        search: str | None = None,
        verbatim: bool = False,
        **settings: Any,
    ) -> list[list[Translation]]:
        """Several translations of each line, such as five with n_best=5, and their log_prob and score, best first.

        A line that is only copied has one translation, whose log_prob and score are 0.
        """
        begins = None if prefixes is None else _strings("prefixes", prefixes)
        if documents is not None:
            self.runs[0].require_context("documents")
        translator = self._translator(search, settings, verbatim=verbatim)
        return translator.n_best(_strings("lines", lines), begins, documents=documents)

    def unknown_characters(
        self, lines: Sequence[str], *, prefixes: Sequence[str] | None = None, verbatim: bool = False
    ) -> list[str]:
        """The characters of each line that the model has to translate, but that its vocabulary does not contain.

        They depend on what the model reads, and so on `prefixes` and `verbatim`, as in `translate`.
        """
        translator, texts = self._translator(None, {}, verbatim=verbatim), _strings("lines", lines)
        begins = [""] * len(texts) if prefixes is None else _strings("prefixes", prefixes)
        if len(begins) != len(texts):
            raise Mistake(f"There are {len(texts)} lines but {len(begins)} prefixes: pass one for each line.")
        return [translator.unknown_characters(*pair) for pair in zip(texts, begins, strict=True)]

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, documents: Sequence[Hashable] | None = None
    ) -> list[float]:
        """log P(target | source) of each pair of lines, in nats; NaN for a pair too long for the model.

        If `documents` says which document each line belongs to, a run with context also reads the earlier pairs of the
        same document.
        """
        if documents is not None:
            self.runs[0].require_context("documents")
        return log_probs(self.runs, *_pairs(sources, targets), documents=documents)

    def perplexity(
        self, sources: Sequence[str], targets: Sequence[str], *, documents: Sequence[Hashable] | None = None
    ) -> Perplexity:
        """The perplexity of the targets per piece, word and character; pairs too long for the model are left out."""
        sources, targets = _pairs(sources, targets)
        return perplexity(self.score(sources, targets, documents=documents), self.runs[0], targets)

    def attend(self, sources: Sequence[str], targets: Sequence[str] | None = None) -> LineMaps:
        """The attention maps of each pair at every site: arrays (layers, heads, rows, columns) with labels.

        `maps[0]["cross"]` is a map of the first pair: draw it with `plot`, or make a table with `to_frame`. A notebook
        displays all of them. Without `targets` the maps are those of the best translation. A pair has no maps if
        one side is empty or too long for the model. Raises Mistake for an ensemble.
        """
        run = self._single()
        pairs = self._id_pairs(run, sources, targets)
        return _by_line(forced_maps(run, pairs, batch_tokens=4096), len(pairs))

    def attribute(
        self,
        sources: Sequence[str],
        targets: Sequence[str] | None = None,
        *,
        method: str = "integrated_gradients",
        contrast: str | None = None,
        steps: int | None = None,
    ) -> LineMaps:
        """How much each source piece matters for each target piece: one map per pair, with one layer and head.

        `attribution` holds signed values of shape (1, 1, target + 1, source + 1), EOS included, and `weights` holds
        their absolute values divided by the sum of each row. `method` is gradient_x_input, integrated_gradients,
        occlusion or value_zeroing (see nmt.insight.attribution). All but value_zeroing, which compares vectors,
        explain log p of each target piece, in nats. With `contrast`, one piece of the target vocabulary, they explain
        log p of the target piece minus log p of the contrast. `steps` is for integrated_gradients. `targets` and pairs
        without a map are handled as in `attend`. Raises Mistake for an argument that cannot be used and for an
        ensemble.
        """
        run = self._single()
        chosen = chosen_method(run, method, contrast, steps)
        pairs = self._id_pairs(run, sources, targets)
        return _by_line(attribution_maps(run, pairs, 4096, chosen), len(pairs))

    def intervene(
        self,
        line: str,
        interventions: Sequence[Intervention],
        *,
        target: str | None = None,
        prefix: str = "",
        **settings: Any,
    ) -> InterventionEffect:
        """The translation of a line, its log-probabilities and maps, with and without changes to the attention.

        `target` replaces the translation without the changes; both translations begin with `prefix`. `settings`
        override some of the search's settings. Raises Mistake for a change that the model cannot make, and for an
        ensemble.
        """
        run = self._single()
        source, begin = (
            run.tokenizers.source.encode(run.source_text(line)),
            run.tokenizers.target.encode(normalize(prefix)),
        )
        given = None if target is None else run.tokenizers.target.encode(normalize(target))
        return intervene(run, source, interventions, given, begin, settings)

    def ablate(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        site: str = "all",
        ways: Sequence[str] = tuple(ABLATIONS),
        bleu: bool = False,
        documents: Sequence[Hashable] | None = None,
    ) -> Ablations:
        """How well the run does on pairs of lines without each attention head, in log-probability and, if asked, BLEU.

        `ways` are among off, uniform, shuffled and frozen (see nmt.insight.ablation.ABLATIONS). Pairs with an empty
        side or too long for the model are only read as context. Raises Mistake for an argument that cannot be used, if
        no pair is left, and for an ensemble.
        """
        run = self._single()
        sources, targets = _pairs(sources, targets)
        if documents is not None:
            run.require_context("documents")
        return ablate(
            run,
            [normalize(line) for line in sources],
            [targets],
            site=site,
            ways=ways,
            bleu=bleu,
            documents=documents,
            lines=readable_pairs(run, sources, targets),
        )

    def _id_pairs(self, run: LoadedRun, sources: Sequence[str], targets: Sequence[str] | None) -> list[IdPair]:
        """The pairs of lines as ids; without targets, each line is paired with its best translation."""
        sources = _strings("sources", sources)
        sources, given = _pairs(sources, sources if targets is None else targets)
        source_ids = run.tokenizers.source.encode_all([run.source_text(line) for line in sources])
        if targets is None:
            translations = self._translator(None, {}).search_ids(source_ids)
            target_ids = [hypotheses[0].ids if hypotheses else [] for hypotheses in translations]
        else:
            target_ids = run.tokenizers.target.encode_all([normalize(line) for line in given])
        return first_ranked(source_ids, target_ids)

    def _single(self) -> LoadedRun:
        if len(self.runs) > 1:
            raise Mistake(f"Each of the {len(self.runs)} runs has its own attention; load only one of them.")
        return self.runs[0]

    def _translator(
        self,
        search: str | None,
        settings: Mapping[str, Any],
        minimum_bayes_risk: bool = False,
        verbatim: bool = False,
    ) -> Translator:
        asked = search_config(named_search(search), settings) if search else settings
        return build_translator(
            self.runs, asked, minimum_bayes_risk=minimum_bayes_risk, engine=self.engine, verbatim=verbatim
        )


def _by_line(sentences: Iterable[SentenceMaps], lines: int) -> LineMaps:
    maps: list[list[AttentionMap]] = [[] for _ in range(lines)]
    for sentence in sentences:
        maps[sentence.line - 1] = sentence.maps
    return LineMaps(maps)


def _pairs(sources: Any, targets: Any) -> tuple[list[str], list[str]]:
    lines = _strings("sources", sources), _strings("targets", targets)
    if len(lines[0]) != len(lines[1]):
        raise Mistake(f"{len(lines[0])} sources but {len(lines[1])} targets: each source needs one target.")
    return lines


def _strings(name: str, lines: Any) -> list[str]:
    """The lines as a list. Raises Mistake for a single string, and for anything that does not consist of strings."""
    if isinstance(lines, str) or not isinstance(lines, Iterable):
        raise Mistake(f"{name} must be a list of strings, not {lines!r}.")
    strings = list(lines)
    for number, line in enumerate(strings):
        if not isinstance(line, str):
            raise Mistake(f"{name} must be a list of strings, but {name}[{number}] is {line!r}.")
        if any("\ud800" <= character <= "\udfff" for character in line):
            raise Mistake(f"{name}[{number}] contains an unpaired surrogate; pass valid Unicode.")
    return strings
