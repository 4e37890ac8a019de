"""Ablation of attention heads: how much log-probability and BLEU a run loses without what one head computes."""

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.attention import Attention
from nmt.attention.edits import Change, Edit, FrozenQuery, Off, Shuffled, Uniform, with_parts
from nmt.config.messages import unknown
from nmt.data.documents import check_named, earlier_pairs
from nmt.data.example import TokenizedPair
from nmt.errors import Mistake
from nmt.evaluation.scores import headline_metrics
from nmt.insight.attention_calls import watched_calls
from nmt.maps.attention_map import selected_sites
from nmt.pace import Pace
from nmt.runs.forced_batches import log_probs_of_ids, readable_batches
from nmt.runs.load import LoadedRun
from nmt.runs.search import build_translator
from nmt.text import normalize

MeanQueries = Mapping[Attention, Float[Tensor, "heads query_dim"]]
"""The mean query of each head."""
Ablation = Callable[[Attention, int, MeanQueries], AbstractContextManager[None]]
"""ablation(attention, head, mean queries) returns a context manager inside which the head is ablated."""


class Quality(NamedTuple):
    """How well a model does on some sentence pairs."""

    log_prob: float
    """log P(reference | source) in nats, averaged over the reference pieces and EOS."""
    bleu: float | None
    """BLEU of the translations that the run's own search finds; None if it was not requested."""
    signature: str | None
    """sacrebleu's signature for that BLEU score."""


class AblatedHead(NamedTuple):
    """A head, the way in which it was ablated, and how well the model does without it."""

    site: str
    layer: int
    head: int
    way: str
    quality: Quality


class Ablations(NamedTuple):
    """The quality of the intact model and of the model without each head."""

    intact: Quality
    heads: list[AblatedHead]
    """One for each head and way, the largest loss of log-probability first."""


def _edited(change: Change) -> Ablation:
    return lambda attention, head, _: with_parts(attention, edits=[Edit(change, head)])


def _frozen(attention: Attention, head: int, queries: MeanQueries) -> AbstractContextManager[None]:
    if attention not in queries:  # it was never asked, such as that to earlier sentences where there are none
        return nullcontext()
    return with_parts(attention, scorer=FrozenQuery(attention.scorer, head, queries[attention][head]))


ABLATIONS: dict[str, Ablation] = {
    "off": _edited(Off()),
    "uniform": _edited(Uniform()),
    "shuffled": _edited(Shuffled()),
    "frozen": _frozen,
}
"""off removes what the head computes. uniform and shuffled replace its weights by equal or by shuffled ones. frozen
replaces the queries of its scorer by their mean, so that the scores no longer depend on the query; a local-p window
still moves with it.
"""


def ablate(
    run: LoadedRun,
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    site: str = "all",
    ways: Sequence[str] = tuple(ABLATIONS),
    bleu: bool = True,
    tokenized: bool = False,
    documents: Sequence[Hashable] | None = None,
    lines: Sequence[int] | None = None,
    batch_tokens: int = 4096,
) -> Ablations:
    """The quality of a run with each head of a site (or of all sites) ablated in each way, one head at a time.

    `lines` are the indices of the pairs that are measured, in ascending order; None for all. The others are only read
    as context, if `documents` says which document each line belongs to.

    Log-probabilities are those of the first references; BLEU is computed against all references, which are `tokenized`
    or plain text. Raises Mistake for a site that the model lacks and for an unknown way.
    """
    sites = selected_sites(site, run.model.sites)
    for way in ways:
        if way not in ABLATIONS:
            raise Mistake(unknown("way", way, ABLATIONS))
    measured: Sequence[int] = range(len(sources)) if lines is None else lines
    if documents is None:
        sources = [sources[line] for line in measured]
        references = [[texts[line] for line in measured] for texts in references]
        measured = range(len(sources))
    else:
        check_named(documents, len(sources))
        # A document is read up to the last measured pair, whose context may contain pairs that are not measured.
        end = max(measured) + 1
        sources, documents = sources[:end], documents[:end]
        references = [texts[:end] for texts in references]
    pairs = list(
        zip(
            run.tokenizers.source.encode_all([run.source_text(line) for line in sources]),
            run.tokenizers.target.encode_all([normalize(line) for line in references[0]]),
            strict=True,
        )
    )
    earlier = None if documents is None else earlier_pairs(documents, pairs, run.context_window, measured)
    source_ids, target_ids = ([pairs[line][side] for line in measured] for side in (0, 1))
    measured_references = [[texts[line] for line in measured] for texts in references]

    def quality() -> Quality:
        log_probs = log_probs_of_ids([run], source_ids, target_ids, batch_tokens, earlier)
        # With its context, a pair may be too long for the model; its value is NaN.
        read = [index for index, value in enumerate(log_probs) if not math.isnan(value)]
        pieces = sum(len(target_ids[index]) + 1 for index in read)
        log_prob = sum(log_probs[index] for index in read) / pieces if read else math.nan
        if not bleu:
            return Quality(log_prob, None, None)
        translations = build_translator([run], batch_tokens=batch_tokens).translate(sources, documents=documents)
        metric = headline_metrics(tokenized)["BLEU"]
        score = metric.corpus_score([translations[line] for line in measured], measured_references).score
        return Quality(log_prob, score, str(metric.get_signature()))

    intact = quality()
    queries = mean_queries(run, source_ids, target_ids, earlier) if "frozen" in ways else {}
    heads = [
        (attention, name, layer, head)
        for name in sites
        for layer, attention in enumerate(run.model.sites[name])
        for head in range(attention.num_heads)
    ]
    pace = Pace("ablations measured")
    ablated: list[AblatedHead] = []
    for attention, name, layer, head in heads:
        for way in ways:
            with ABLATIONS[way](attention, head, queries):
                ablated.append(AblatedHead(name, layer, head, way, quality()))
            pace(1, len(heads) * len(ways))
    return Ablations(intact, sorted(ablated, key=lambda item: item.quality.log_prob))


def readable_pairs(
    run: LoadedRun, sources: Sequence[str], targets: Sequence[str], most: int | None = None
) -> list[int]:
    """The indices of the first `most` pairs (all if None) that the model can read: neither side is empty or too long.

    Raises Mistake if there are none.
    """
    limits = run.model.max_source, run.model.max_target

    def readable(pair: tuple[str, str]) -> bool:
        texts = run.source_text(pair[0]), normalize(pair[1])
        lengths = [len(tokenizer.encode(text)) for tokenizer, text in zip(run.tokenizers, texts, strict=True)]
        return all(0 < length < (limit or math.inf) for length, limit in zip(lengths, limits, strict=True))

    pairs = enumerate(zip(sources, targets, strict=True))
    # Lazy, so that a large corpus is read only as far as it is needed.
    indices = list(itertools.islice((index for index, pair in pairs if readable(pair)), most))
    if not indices:
        raise Mistake(
            "The model cannot read any of the sentence pairs, because each has a side that is empty or too long; use "
            "different sentences."
        )
    return indices


def mean_queries(
    run: LoadedRun,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    earlier: Sequence[Sequence[TokenizedPair]] | None = None,
) -> MeanQueries:
    """The mean query of each head over all query positions of these pairs of ids, read after their `earlier` pairs.

    The earlier pairs themselves do not count. An attention without any query, such as that to earlier sentences where
    there are none, has no mean.
    """
    sums: dict[Attention, Any] = {}
    counts: dict[Attention, int] = {}

    def add(attention: Attention, arguments: Mapping[str, Any]) -> None:
        # A DocumentModel also passes the earlier sentences through the same attentions, padded to equal lengths and
        # unwatched: these queries would count padding, and each sentence once for every sentence that follows it.
        if arguments["watch"] is None:
            return
        queries = arguments["queries"]
        sums[attention] = sums.get(attention, 0) + queries.double().sum(dim=(0, 2))
        counts[attention] = counts.get(attention, 0) + queries.shape[0] * queries.shape[2]

    attentions = [attention for layers in run.model.sites.values() for attention in layers]
    with watched_calls(attentions, add), torch.inference_mode():
        # One sentence at a time, so that the mean does not include padding.
        for _, batch in readable_batches([run], sources, targets, 1, earlier):
            on_device = batch.to(run.device)
            inputs = on_device.source, on_device.source_mask, on_device.target_input
            run.model(*inputs, watch=lambda *_: None, context=on_device.context)
    return {attention: (total / counts[attention]).float() for attention, total in sums.items()}
