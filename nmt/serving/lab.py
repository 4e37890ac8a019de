"""The lab's own interface, under /v1: what a run attends to, and what happens if you change it."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import StreamingResponse

from nmt.errors import Mistake, TemplatedMessage, printable
from nmt.insight.alternatives import alternatives
from nmt.insight.cells import cells
from nmt.insight.description import run_description
from nmt.insight.interventions import intervene
from nmt.insight.known_alignments import agreement, aligned_pairs
from nmt.insight.sentence_pair import decoded_pair
from nmt.maps.attention_map import EOS
from nmt.maps.links import MapSelector
from nmt.runs.load import LoadedRun
from nmt.scoring.test_sets import example_pairs
from nmt.serving.answers import rounded, sentence_pair, shown
from nmt.serving.batcher import Task
from nmt.serving.gallery import Unavailable
from nmt.serving.questions import (
    AlignQuestion,
    AlternativesQuestion,
    AttributeQuestion,
    CellsQuestion,
    InterveneQuestion,
    PairQuestion,
    Question,
    StreamQuestion,
    TranslateQuestion,
)
from nmt.serving.requests import failures, within
from nmt.serving.server_messages import in_language, message_of, request_language
from nmt.serving.service import Service, ThisService
from nmt.serving.streams import attributed, searched, sent_events

logger = logging.getLogger(__name__)

T = TypeVar("T")

router = APIRouter(prefix="/v1", tags=["lab"])
_FAILURES = failures(400, 403, 404, 408, 413, 429, 500, 503, 504)


def _event_stream(name: str) -> dict[int | str, dict[str, Any]]:
    """The API description of an endpoint that sends events of that name until its last one."""
    events = {"description": f"events named {name}, then done or error", "content": {"text/event-stream": {}}}
    return {200: events, **failures(400, 403, 404, 408, 413, 500)}


@router.get("/runs", responses=failures(403))
async def list_runs(request: Request, service: ThisService) -> list[dict[str, Any]]:
    """The runs that this server offers, each with its engine; those that cannot be loaded have an error."""
    service.check_key(request)
    gallery, language = service.gallery, request_language(request)
    runs: list[dict[str, Any]] = []
    for run in gallery.offered.values():
        row = {"name": run.name, "source": run.direction.source, "target": run.direction.target}
        if run.name in gallery.engines:
            row["engine"], _ = gallery.engines[run.name]  # the log has the reason, which may name files of the server
        runs.append(row)
    runs += [{"name": name, "source": None, "target": None} for name in sorted(gallery.broken - gallery.offered.keys())]
    return [
        {**run, "error": in_language(message_of(Unavailable(run["name"])), language)}
        if run["name"] in gallery.broken
        else run
        for run in runs
    ]


@router.get("/runs/{name:path}", responses=failures(403, 404, 429, 500, 503, 504))
async def describe_run(request: Request, service: ThisService, name: str) -> dict[str, Any]:
    """A run: its model, its attention at every site, and its test scores."""

    def action(run: LoadedRun) -> dict[str, Any]:
        try:
            return {**run_description(run), "scores": run.directory.metrics().get("scores", {})}
        except Mistake as error:  # metrics.json was damaged after the run was loaded
            logger.warning("%s cannot be described: %s", name, error)
            raise Unavailable(name) from error

    return await computed(request, service, Question(run=name, text=""), action)


@router.post("/translate", responses=_FAILURES)
async def translate(request: Request, service: ThisService, question: TranslateQuestion) -> dict[str, Any]:
    """The best translations of a sentence, with log-probabilities in nats and the scores that rank them."""
    check(request, service, question)
    limit = service.limits.alternatives + 1
    if question.n_best > limit:
        raise HTTPException(
            400, TemplatedMessage("n_best is {number}; it must be at most {most}.", number=question.n_best, most=limit)
        )
    task = Task(run_name(service, question.run), question.n_best, question.beam_size, question.length_penalty)
    work = service.batcher.translate(task, [question.text], [question.prefix])
    [sentence] = await within(request, service.limits.seconds, work)
    return {
        "translations": [translation._asdict() for translation in sentence.translations[: question.n_best]],
        "unknown_characters": sentence.unknown_characters,
    }


@router.post("/translate/stream", response_class=StreamingResponse, responses=_event_stream("beams"))
async def stream_translation(request: Request, service: ThisService, question: StreamQuestion) -> StreamingResponse:
    """A search as server-sent events: `beams` after each step, then `done` with the translation, or `error`."""
    check(request, service, question)
    work = searched(service, question)
    events = sent_events(service, run_name(service, question.run), work, request_language(request))
    return StreamingResponse(events, media_type="text/event-stream")


@router.post("/attend", responses=_FAILURES)
async def attend(request: Request, service: ThisService, question: PairQuestion) -> dict[str, Any]:
    """The attention at every site, layer and head, for the run's own translation or a given one."""

    def action(run: LoadedRun) -> dict[str, Any]:
        source, target = sentence_pair(run, question, service.batcher.between_steps)
        decoded = decoded_pair(run, source, target)
        return {"source_pieces": run.tokenizers.source.pieces(source), **shown(decoded, maps=True)}

    return await computed(request, service, question, action)


@router.post("/score", responses=_FAILURES)
async def score(request: Request, service: ThisService, question: PairQuestion) -> dict[str, Any]:
    """The log-probability of each piece of a translation, in nats."""

    def action(run: LoadedRun) -> dict[str, Any]:
        return shown(decoded_pair(run, *sentence_pair(run, question, service.batcher.between_steps)), maps=False)

    return await computed(request, service, question, action)


@router.post("/alternatives", responses=_FAILURES)
async def list_alternatives(request: Request, service: ThisService, question: AlternativesQuestion) -> dict[str, Any]:
    """The most likely pieces at each position of the run's own translation or a given one."""

    def action(run: LoadedRun) -> dict[str, Any]:
        source, target = sentence_pair(run, question, service.batcher.between_steps)
        choices = alternatives(run, source, target, question.number)
        return {
            "pieces": [*run.tokenizers.target.pieces(target), EOS],
            "alternatives": [[choice._asdict() for choice in position] for position in choices],
        }

    return await computed(request, service, question, action)


@router.post("/intervene", responses=_FAILURES)
async def compare_intervention(request: Request, service: ThisService, question: InterveneQuestion) -> dict[str, Any]:
    """The translation, its pieces scored with changed attention, and what the search finds with changed attention."""
    changes = [change.intervention() for change in question.changes]

    def action(run: LoadedRun) -> dict[str, Any]:
        source, target = sentence_pair(run, question, service.batcher.between_steps)
        prefix, stop = question.prefix_ids or [], service.batcher.between_steps
        effect = intervene(run, source, changes, target, prefix, question.search, observe=stop)
        return {
            "source_pieces": effect.source_pieces,
            "intact": shown(effect.intact, maps=True),
            "forced": shown(effect.forced, maps=True),
            "changed": shown(effect.changed, maps=True),
        }

    return await computed(request, service, question, action)


@router.post("/explain", responses=_FAILURES)
async def explain_row(request: Request, service: ThisService, question: CellsQuestion) -> dict[str, Any]:
    """One row of a map with every number behind it: query, keys, scores, mask, weights, values and context."""

    def action(run: LoadedRun) -> dict[str, Any]:
        source, target = sentence_pair(run, question, service.batcher.between_steps)
        row = cells(run, source, target, question.site, question.layer, question.head, question.row)
        return {key: rounded(value) if isinstance(value, list) else value for key, value in row._asdict().items()}

    return await computed(request, service, question, action)


@router.post("/attribute", responses=_FAILURES)
async def attribute(request: Request, service: ThisService, question: AttributeQuestion) -> dict[str, Any]:
    """How much each source piece matters for each piece of the run's own translation or a given one.

    Values are in nats, except for value zeroing, where they are the cosine distances by which the decoder's output
    moves.
    """

    work = attributed(service, question)
    return await computed(request, service, question, lambda run: work(run, lambda name, content: None), long=True)


@router.post("/attribute/stream", response_class=StreamingResponse, responses=_event_stream("progress"))
async def stream_attribution(request: Request, service: ThisService, question: AttributeQuestion) -> StreamingResponse:
    """An attribution as server-sent events: `progress` with the percentage that is done, then `done` with what
    /v1/attribute answers, or `error`. It ends when the client disconnects.
    """
    check(request, service, question)
    work = attributed(service, question)
    events = sent_events(service, run_name(service, question.run), work, request_language(request), long=True)
    return StreamingResponse(events, media_type="text/event-stream")


@router.get("/examples", responses=failures(400, 403, 404, 429, 500, 503, 504))
async def list_examples(request: Request, service: ThisService, run: str | None = None) -> list[dict[str, Any]]:
    """Sentences to try a run on: those of its own splits that it stores, unless it was trained on the embedded corpus,
    and some of that corpus's pairs, whose alignments are known (`aligned`), if the run has the same languages.
    """

    def action(run: LoadedRun) -> list[dict[str, Any]]:
        return [
            *({"source": source, "target": target, "aligned": False} for source, target in example_pairs(run)),
            *({"source": pair.source, "target": pair.target, "aligned": True} for pair in aligned_pairs(run.direction)),
        ]

    return await computed(request, service, Question(run=run, text=""), action)


@router.post("/align", responses=_FAILURES)
async def align(request: Request, service: ThisService, question: AlignQuestion) -> dict[str, Any]:
    """The gold alignment of an example, plus the links of the run, the diagonal and a guess with their error rates."""

    def action(run: LoadedRun) -> dict[str, Any]:
        pairs = aligned_pairs(run.direction)
        pair = next((pair for pair in pairs if pair.source == question.text), None)
        if pair is None:
            raise Mistake(
                TemplatedMessage("The alignment of this sentence is not known; use a sentence from /v1/examples.")
            )
        comparison = agreement(run, pair, MapSelector("predicts", question.layer, question.head), question.guess)
        return {
            "source_words": comparison.source_words,
            "target_words": comparison.target_words,
            "weights": rounded(comparison.weights),
            "sure": sorted(comparison.gold.sure),
            "possible": sorted(comparison.gold.possible - comparison.gold.sure),
            "links": {name: sorted(links) for name, links in comparison.links.items()},
            "rates": {name: rate._asdict() for name, rate in comparison.rates.items()},
            "error_rates": comparison.error_rates,
        }

    return await computed(request, service, question, action)


def check(request: Request, service: Service, question: Question) -> None:
    """Raises HTTPException for a missing or unknown API key, and for a text that is too long."""
    service.check_key(request)
    service.check_texts([question.text])


async def computed(
    request: Request, service: Service, question: Question, action: Callable[[LoadedRun], T], *, long: bool = False
) -> T:
    """The result of an action on the run that a question names, within the limits of the service.

    A long action lets others go first; see Batcher.compute.
    """
    check(request, service, question)
    work = service.batcher.compute(run_name(service, question.run), action, long=long)
    return await within(request, service.limits.seconds, work)


def run_name(service: Service, given: str | None) -> str:
    """The name of the requested run, by default the first one.

    Raises HTTPException 404 if it is unknown, and Unavailable if it could not be read when the server started.
    """
    name = given or service.gallery.first
    if name not in service.gallery.offered:
        if name in service.gallery.broken:
            raise Unavailable(name)
        text = TemplatedMessage("There is no run '{name}'; use one listed at /v1/runs.", name=printable(name))
        raise HTTPException(404, text)
    return name
