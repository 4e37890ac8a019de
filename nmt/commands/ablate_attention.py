"""nmt.ablate_attention: how much log-probability and BLEU a run loses when one attention head is ablated."""

import itertools
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor

from nmt.attention import Attention
from nmt.attention.edits import Change, Edit, FrozenQuery, Off, Shuffled, Uniform, with_parts
from nmt.commands.ablate_attention_settings import AblateAttentionSettings
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.evaluation.scores import headline_metrics
from nmt.files import folder_to_write, write_json
from nmt.maps.attention_map import selected_sites
from nmt.pace import Pace
from nmt.runs.load import LoadedRun, load_run
from nmt.runs.search import build_translator
from nmt.scoring.forced_scores import log_probs, mean_log_prob
from nmt.scoring.run_scores import conditions
from nmt.scoring.test_sets import TestSet, chosen_test_set
from nmt.tables import Table
from nmt.text import normalize

MeanQueries = Mapping[Attention, Float[Tensor, "heads query_dim"]]
"""The mean query of each head."""
Ablation = Callable[[Attention, int, MeanQueries], AbstractContextManager[None]]
"""ablation(attention, head, mean queries) returns a context manager inside which the head is ablated."""
HEADER = ["site", "layer", "head", "way", "change in log-probability per piece", "change in BLEU"]


class Quality(NamedTuple):
    """How well a model does on some sentence pairs."""

    log_prob: float
    """log P(reference | source) in nats, averaged over the reference pieces and EOS."""
    bleu: float | None
    """BLEU of the translations that the run's own search finds; None if it was not requested."""
    signature: str | None
    """sacrebleu's signature for that BLEU score."""


def ablate_attention(job: Job[AblateAttentionSettings]) -> None:
    """Prints and saves the change in log-probability and BLEU for each head and way of ablation, largest loss first.

    Raises Mistake for a site that the model lacks, and if no sentence pair can be measured.
    """
    settings = job.settings
    run = load_run(Path(settings.run_dir), settings.device)
    sites = selected_sites(settings.site, run.model.sites)
    chosen = chosen_test_set(run, settings.split, settings.source, settings.reference, None, settings.out)
    out = folder_to_write("out", chosen.out)
    test_set = measurable(run, chosen, settings.sentences)

    measure = partial(quality, run, test_set, bleu=settings.bleu, batch_tokens=settings.batch_tokens)
    intact = measure()
    queries = mean_queries(run, test_set) if "frozen" in settings.ways else {}
    heads = [
        (attention, site, layer, head)
        for site in sites
        for layer, attention in enumerate(run.model.sites[site])
        for head in range(attention.num_heads)
    ]
    pace = Pace("ablations measured")
    ablated: list[tuple[list[str], Quality]] = []
    for attention, site, layer, head in heads:
        for way in settings.ways:
            with ABLATIONS[way](attention, head, queries):
                ablated.append(([site, str(layer), str(head), way], measure()))
            pace(1, len(heads) * len(settings.ways))

    rows = []
    for cells, found in sorted(ablated, key=lambda each: each[1].log_prob):
        bleu = "" if found.bleu is None or intact.bleu is None else f"{found.bleu - intact.bleu:+.2f}"
        rows.append([*cells, f"{found.log_prob - intact.log_prob:+.4f}", bleu])
    table = Table(HEADER, rows)
    (out / "ablation.csv").write_text(table.csv(), encoding="utf-8")
    record = {"command": job.command, "sentences": len(test_set.sources), "intact": intact._asdict()}
    record |= conditions([run], test_set, batch_tokens=settings.batch_tokens)
    write_json(out / "ablation.json", record)
    bleu = "" if intact.bleu is None else f", BLEU {intact.bleu:.2f} ({intact.signature})"
    print(f"Intact: {intact.log_prob:.4f} nats per piece{bleu}, {len(test_set.sources)} sentences")
    print(table.markdown())
    print(out / "ablation.csv")
    print(out / "ablation.json")


def quality(run: LoadedRun, test_set: TestSet, *, bleu: bool, batch_tokens: int) -> Quality:
    """The log-probability of the first references, and BLEU against all references."""
    references = test_set.references[0]
    found = log_probs([run], test_set.sources, references, batch_tokens, test_set.documents)
    log_prob = mean_log_prob(found, run, references)
    if not bleu:
        return Quality(log_prob, None, None)
    hypotheses = build_translator([run], batch_tokens=batch_tokens).translate(
        test_set.sources, documents=test_set.documents
    )
    metric = headline_metrics(test_set.tokenized)["BLEU"]
    score = metric.corpus_score(hypotheses, test_set.references).score
    return Quality(log_prob, score, str(metric.get_signature()))


def measurable(run: LoadedRun, test_set: TestSet, sentences: int | None) -> TestSet:
    """The first `sentences` pairs (all if None) that the model can read, with neither side empty or too long."""
    limits = run.model.max_source, run.model.max_target

    def can_be_read(pair: tuple[str, str]) -> bool:
        lengths = [len(one.encode(normalize(line))) for one, line in zip(run.tokenizers, pair, strict=True)]
        return all(0 < length < (limit or math.inf) for length, limit in zip(lengths, limits, strict=True))

    pairs = enumerate(zip(test_set.sources, test_set.references[0], strict=True))
    kept = list(itertools.islice((i for i, pair in pairs if can_be_read(pair)), sentences))
    if not kept:
        raise Mistake(
            "The model cannot read any of the sentence pairs, because each has a side that is empty or too long; use "
            "different sentences."
        )
    references = [[lines[i] for i in kept] for lines in test_set.references]
    return replace(
        test_set,
        sources=[test_set.sources[i] for i in kept],
        references=references,
        gold=None,
        valid_gold=None,
        documents=test_set.documents and [test_set.documents[i] for i in kept],
    )


def mean_queries(run: LoadedRun, test_set: TestSet) -> MeanQueries:
    """The mean query of each head over all query positions of the sources and first references."""
    sums: dict[Attention, Any] = {}
    counts: dict[Attention, int] = {}

    def add(attention: Any, arguments: tuple[Any, ...]) -> None:
        queries = arguments[0]
        sums[attention] = sums.get(attention, 0) + queries.double().sum(dim=(0, 2))
        counts[attention] = counts.get(attention, 0) + queries.shape[0] * queries.shape[2]

    attentions = [attention for layers in run.model.sites.values() for attention in layers]
    hooks = [attention.register_forward_pre_hook(add) for attention in attentions]
    # One sentence at a time, so that the mean does not include padding.
    log_probs([run], test_set.sources, test_set.references[0], 1, test_set.documents)
    for hook in hooks:
        hook.remove()
    return {attention: (sums[attention] / counts[attention]).float() for attention in attentions}


def _edited(change: Change) -> Ablation:
    return lambda attention, head, _: with_parts(attention, edits=[Edit(change, head)])


def _frozen(attention: Attention, head: int, queries: MeanQueries) -> AbstractContextManager[None]:
    return with_parts(attention, scorer=FrozenQuery(attention.scorer, head, queries[attention][head]))


ABLATIONS: dict[str, Ablation] = {
    "off": _edited(Off()),
    "uniform": _edited(Uniform()),
    "shuffled": _edited(Shuffled()),
    "frozen": _frozen,
}
