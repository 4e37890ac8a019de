"""nmt.ablate_attention: what a run loses when one head of its attention is made useless."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor

from nmt.attention import Attention
from nmt.attention.ablation import FrozenQuery, Off, Shuffled, Uniform, replaced
from nmt.evaluation.scores import headline_metrics
from nmt.evaluation.tables import Table
from nmt.run.build import Trained, build_translator, load_run
from nmt.run.compose import Job
from nmt.run.evaluate import check_files_given, chosen_task
from nmt.run.evaluation import Task
from nmt.run.forced import log_probs
from nmt.run.pace import Pace
from nmt.run.refusals import unknown

FROZEN = "frozen"
WAYS = {"off": Off, "uniform": Uniform, "shuffled": Shuffled}


class Place(NamedTuple):
    """A head of a model."""

    site: str
    layer: int
    head: int


class Quality(NamedTuple):
    """How well a run does on some sentence pairs."""

    log_prob: float
    """log P(reference | source) in nats, the mean over the reference pieces, EOS counted."""
    bleu: float | None
    """Of the translations; None where they are not asked for."""


class Loss(NamedTuple):
    """What an ablation changes: below 0 where the head was of use."""

    place: Place
    way: str
    log_prob: float
    bleu: float | None


def ablate_attention(job: Job) -> None:
    """Prints and saves the change of log-probability and BLEU for each head and way, the greatest loss first.

    Raises ValueError for an unknown way or site.
    """
    config = job.config
    check_files_given(config)
    _check(config["ways"], config["sentences"])
    trained = load_run(Path(str(config["run_dir"])), config["device"])
    sites = _sites(trained, str(config["site"]))
    task = _first(chosen_task(trained, config), config["sentences"])
    out = Path(str(config["out"])) if config["out"] else trained.run.path / "evaluation" / "ablation"
    measure = partial(quality, trained, task, bleu=config["bleu"], batch_tokens=config["batch_tokens"])
    intact = measure()
    losses = list(_losses(trained, task, sites, config["ways"], measure, intact))
    found = _table(sorted(losses, key=lambda loss: loss.log_prob))
    out.mkdir(parents=True, exist_ok=True)
    (out / "ablation.csv").write_text(found.csv(), encoding="utf-8")
    intact_bleu = "" if intact.bleu is None else f", {_bleu_name(task)} {intact.bleu:.2f}"
    print(f"Intact: {intact.log_prob:.4f} nats per piece{intact_bleu} ({len(task.sources)} sentences)")
    print(found.markdown())
    print(out / "ablation.csv")


def quality(trained: Trained, task: Task, *, bleu: bool, batch_tokens: int) -> Quality:
    """The log-probability of the first references, and BLEU of translations by the run's own search."""
    references = task.references[0]
    found = log_probs([trained], task.sources, references, batch_tokens)
    pieces = sum(len(ids) + 1 for ids in trained.tokenizers.target.encode_all(references))
    if not bleu:
        return Quality(sum(found) / pieces, None)
    hypotheses = build_translator([trained], batch_tokens=batch_tokens).translate(task.sources)
    metric = headline_metrics(task.tokenized)["BLEU"]
    return Quality(sum(found) / pieces, metric.corpus_score(hypotheses, task.references).score)


def ablated(
    attention: Attention, way: str, head: int, mean_query: Float[Tensor, " query_dim"]
) -> AbstractContextManager[None]:
    """`attention` with a head that is off, uniform, shuffled, or asks the same `mean_query` always."""
    if way == FROZEN:
        return replaced(attention, scorer=FrozenQuery(attention.scorer, head, mean_query))
    return replaced(attention, normalizer=WAYS[way](attention.normalizer, head))


def mean_queries(trained: Trained, task: Task) -> dict[Attention, Float[Tensor, "heads query_dim"]]:
    """The mean of what each head asks, over all positions of the task's sources and first references."""
    sums: dict[Attention, Any] = {}
    counts: dict[Attention, int] = {}

    def add(attention: Any, arguments: tuple[Any, ...]) -> None:
        queries = arguments[0]
        sums[attention] = sums.get(attention, 0) + queries.double().sum(dim=(0, 2))
        counts[attention] = counts.get(attention, 0) + queries.shape[0] * queries.shape[2]

    attentions = [attention for layers in trained.model.sites.values() for attention in layers]
    hooks = [attention.register_forward_pre_hook(add) for attention in attentions]
    # One sentence at a time: padding asks nothing then.
    log_probs([trained], task.sources, task.references[0], batch_tokens=1)
    for hook in hooks:
        hook.remove()
    return {attention: (sums[attention] / counts[attention]).float() for attention in attentions}


def _losses(
    trained: Trained,
    task: Task,
    sites: Sequence[str],
    ways: Sequence[str],
    measure: Callable[[], Quality],
    intact: Quality,
) -> Iterator[Loss]:
    queries = mean_queries(trained, task)
    places = [
        (Place(site, layer, head), attention)
        for site in sites
        for layer, attention in enumerate(trained.model.sites[site])
        for head in range(attention.num_heads)
    ]
    pace = Pace("ablations measured")
    for place, attention in places:
        for way in ways:
            with ablated(attention, way, place.head, queries[attention][place.head]):
                found = measure()
            bleu = None if found.bleu is None or intact.bleu is None else found.bleu - intact.bleu
            yield Loss(place, way, found.log_prob - intact.log_prob, bleu)
            pace(1, len(places) * len(ways))


def _table(losses: Sequence[Loss]) -> Table:
    rows = [
        [
            loss.place.site,
            str(loss.place.layer),
            str(loss.place.head),
            loss.way,
            f"{loss.log_prob:+.4f}",
            "" if loss.bleu is None else f"{loss.bleu:+.2f}",
        ]
        for loss in losses
    ]
    return Table(["site", "layer", "head", "way", "log-probability per piece", "BLEU"], rows)


def _check(ways: Any, sentences: Any) -> None:
    for way in ways:
        if way not in (*WAYS, FROZEN):
            raise ValueError(unknown("way", str(way), [*WAYS, FROZEN]))
    if sentences is not None and (not isinstance(sentences, int) or sentences < 1):
        raise ValueError(f"sentences is {sentences}; it must be a whole number of at least 1, or null for all.")


def _sites(trained: Trained, site: str) -> list[str]:
    known = list(trained.model.sites)
    if site not in (*known, "all"):
        raise ValueError(unknown("site", site, [*known, "all"]))
    return known if site == "all" else [site]


def _first(task: Task, sentences: int | None) -> Task:
    """The first sentences that both sides have text for."""
    kept = [i for i, source in enumerate(task.sources) if source and task.references[0][i].strip()][:sentences]
    if not kept:
        raise ValueError("There is no sentence pair with text on both sides to measure; give others.")
    references = [[lines[i] for i in kept] for lines in task.references]
    return Task([task.sources[i] for i in kept], references, None, None, task.out)


def _bleu_name(task: Task) -> str:
    return "BLEU of the references' own tokens" if task.tokenized else "BLEU"
