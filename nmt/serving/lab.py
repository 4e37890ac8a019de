"""The lab's own interface, under /v1: what a run attends to, and what happens if you change it."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import StreamingResponse

from nmt.decoding.stepwise import Observe
from nmt.decoding.translatable import unknown_characters
from nmt.errors import Mistake, TemplatedMessage
from nmt.insight.alternatives import alternatives
from nmt.insight.attribution_maps import attribution_maps, chosen_method
from nmt.insight.beams import Beam, watched_search
from nmt.insight.cells import cells
from nmt.insight.forced_maps import IdPair
from nmt.insight.interventions import Decoded, forced, intervene
from nmt.insight.known_alignments import agreement, aligned_pairs
from nmt.insight.provenance import described_model
from nmt.insight.sentence_pair import best_translation, check_index, check_length, check_site
from nmt.insight.unknown_words import unknown_words
from nmt.maps.attention_map import EOS, AttentionMap, selected
from nmt.maps.links import MapSelector
from nmt.runs.load import LoadedRun
from nmt.scoring.test_sets import example_pairs
from nmt.serving.batcher import QueueFull, Task
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
from nmt.serving.requests import DEFECT, failures, too_slow, within
from nmt.serving.server_messages import in_language, message_of, request_language
from nmt.serving.service import Service, ThisService
from nmt.sites import SITES
from nmt.text import EOS as EOS_ID
from nmt.text import PAD, normalize

logger = logging.getLogger(__name__)

T = TypeVar("T")
_DIGITS = 6
_MOST_PIECES = 200
"""Maximum number of pieces per side. The size of a response with all maps grows with the product of both lengths."""
_PASS_TOKENS = 128
"""Maximum number of tokens in a pass over variants of a sentence. Others can go first only between passes."""

_UNREAD_STREAMS = 16_000_000
"""Maximum number of characters that all streams together may keep for clients that read slowly."""

router = APIRouter(prefix="/v1", tags=["lab"])
_FAILURES = failures(400, 403, 404, 408, 413, 429, 500, 503, 504)


@router.get("/runs", responses=failures(403))
async def list_runs(request: Request, service: ThisService) -> list[dict[str, Any]]:
    """The runs that this server offers, and what translates; those that cannot be loaded have an error."""
    service.check_key(request)
    gallery, language = service.gallery, request_language(request)
    runs: list[dict[str, Any]] = []
    for run in gallery.offered.values():
        row = {"name": run.name, "source": run.direction.source, "target": run.direction.target}
        if run.name in gallery.engines:
            row["engine"], row["engine_reason"] = gallery.engines[run.name]
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
            return description(run)
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
    task = Task(run_name(service, question.run), question.n_best, question.beam_size)
    work = service.batcher.translate(task, [question.text], [question.prefix])
    [sentence] = await within(request, service.limits.seconds, work)
    return {
        "translations": [translation._asdict() for translation in sentence.translations],
        "unknown_characters": sentence.unknown_characters,
    }


_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "events named beams, then done or error", "content": {"text/event-stream": {}}},
    **failures(400, 403, 404, 408, 413, 500),
}


@router.post("/translate/stream", response_class=StreamingResponse, responses=_EVENTS)
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
        decoded = forced(run, source, target)
        return {"source_pieces": run.tokenizers.source.pieces(source), **shown(decoded, maps=True)}

    return await computed(request, service, question, action)


@router.post("/score", responses=_FAILURES)
async def score(request: Request, service: ThisService, question: PairQuestion) -> dict[str, Any]:
    """The log-probability of each piece of a translation, in nats."""

    def action(run: LoadedRun) -> dict[str, Any]:
        return shown(forced(run, *sentence_pair(run, question, service.batcher.between_steps)), maps=False)

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


_PROGRESS: dict[int | str, dict[str, Any]] = {
    200: {"description": "events named progress, then done or error", "content": {"text/event-stream": {}}},
    **failures(400, 403, 404, 408, 413, 500),
}


@router.post("/attribute/stream", response_class=StreamingResponse, responses=_PROGRESS)
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
    """Sentences to try a run on: those that it stores, unless it was trained on the embedded corpus, and some of that
    corpus's pairs, whose alignments are known (`aligned`), if the run has the same languages.
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
        printable = name.encode(errors="backslashreplace").decode()  # JSON may contain unpaired surrogates
        text = TemplatedMessage("There is no run '{name}'; use one listed at /v1/runs.", name=printable)
        raise HTTPException(404, text)
    return name


def source_ids(run: LoadedRun, question: Question) -> list[int]:
    """The piece ids of the text. Raises Mistake if it is empty or too long."""
    source = run.tokenizers.source.encode(normalize(question.text))
    check_length("source", source, _MOST_PIECES)
    return source


def sentence_pair(run: LoadedRun, question: PairQuestion, observe: Observe) -> tuple[list[int], list[int]]:
    """The piece ids of the text, and those of the given translation or the run's own.

    Raises Mistake if a side is empty or too long, or if an id is not that of a piece in the vocabulary.
    """
    source, target = source_ids(run, question), question.target_ids
    check_ids(run, question)
    if target is None and question.target is not None:
        target = run.tokenizers.target.encode(normalize(question.target))
        check_length("target", target, _MOST_PIECES)
    if target is None:
        target = best_translation(run, source, question.prefix_ids or [], question.search, observe=observe)
    return source, target


def check_ids(run: LoadedRun, question: PairQuestion) -> None:
    """Raises Mistake if an id is not that of a piece in the target vocabulary, or if there are too many ids."""
    first, size = EOS_ID + 1, run.tokenizers.target.size
    for name, ids in (("target", question.target_ids or []), ("prefix", question.prefix_ids or [])):
        # A prefix may leave positions free.
        if any(not first <= index < size and not (name == "prefix" and index == PAD) for index in ids):
            raise Mistake(
                TemplatedMessage(
                    "{name}_ids must be from {first} to {last}; smaller ids are PAD, UNK, BOS and EOS.",
                    name=name,
                    first=first,
                    last=size - 1,
                )
            )
        check_length(name, ids, _MOST_PIECES, least=0)


Tell = Callable[[str, dict[str, Any]], None]
"""tell(name, content) sends an event."""
Streamed = Callable[[LoadedRun, Tell], dict[str, Any]]
"""action(run, tell) returns the content of the last event."""


def searched(service: Service, question: StreamQuestion) -> Streamed:
    """The search that a question asks for; it sends an event after each step."""

    def action(run: LoadedRun, tell: Tell) -> dict[str, Any]:
        source, tokenizer = source_ids(run, question), run.tokenizers.target
        check_ids(run, question)

        def watch(beams: list[Beam]) -> None:
            service.batcher.between_steps()
            hypotheses = [{"pieces": tokenizer.pieces(ids), "log_prob": round(value, _DIGITS)} for ids, value in beams]
            step: dict[str, Any] = {"text": normalize(tokenizer.decode(beams[0].ids)), "beams": hypotheses}
            if question.site is not None:
                step["map"] = unfinished_map(run, source, beams[0].ids, question)
            tell("beams", step)

        best = watched_search(run, source, watch, question.prefix_ids or [], question.search)[0]
        return {
            **shown(forced(run, source, best.ids), maps=False),
            "score": round(best.score, _DIGITS),
            "unknown_characters": unknown_characters(normalize(question.text), run.tokenizers.source),
            "unknown_words": unknown_words(run, question.text),
        }

    return action


def attributed(service: Service, question: AttributeQuestion) -> Streamed:
    """The attribution that a question asks for; it sends an event for each percent."""

    def action(run: LoadedRun, tell: Tell) -> dict[str, Any]:
        last = -1

        def before_pass(done: float) -> None:
            nonlocal last
            service.batcher.between_steps()
            if int(100 * done) > last:
                last = int(100 * done)
                tell("progress", {"percent": last})

        method = chosen_method(run, question.method, question.contrast, before_pass=before_pass)
        source, target = sentence_pair(run, question, service.batcher.between_steps)
        check_length("source", source, run.model.max_source)
        check_length("target", target, run.model.max_target)
        pass_tokens = min(service.batcher.batch_tokens, _PASS_TOKENS)
        [sentence] = attribution_maps(run, [IdPair(1, 1, source, target)], pass_tokens, method)
        [item] = sentence.maps
        # An attribution has one layer and head.
        attribution, weights = (np.asarray(numbers)[0, 0] for numbers in (item.attribution, item.weights))
        return {
            "inputs": item.inputs,
            "outputs": item.outputs,
            "columns": item.columns,
            "attribution": rounded(attribution),
            "weights": rounded(weights),
        }

    return action


async def sent_events(
    service: Service, name: str, action: Streamed, language: str, *, long: bool = False
) -> AsyncIterator[str]:
    """The server-sent events of an action, which ends when the client disconnects. Errors are in `language`."""
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[str | None] = asyncio.Queue()
    made, sent = 0, 0  # characters; each is changed by one thread alone

    def tell(event_name: str, content: dict[str, Any]) -> None:
        nonlocal made
        # The computation does not wait for the client, because all other clients would wait too.
        if made - sent > _UNREAD_STREAMS / service.streams:
            raise Mistake(TemplatedMessage("The stream is read too slowly; choose a smaller beam_size."))
        event = _event(event_name, content)
        made += len(event)
        loop.call_soon_threadsafe(events.put_nowait, event)

    service.streams += 1
    work = asyncio.ensure_future(service.batcher.compute(name, lambda run: action(run, tell), long=long))
    work.add_done_callback(lambda _: events.put_nowait(None))  # marks the end
    deadline = loop.time() + service.limits.seconds
    try:
        while (event := await asyncio.wait_for(events.get(), deadline - loop.time())) is not None:
            sent += len(event)
            yield event
        yield _event("done", await work)
    except TimeoutError:
        yield _event("error", {"error": in_language(too_slow(service.limits.seconds), language)})
    except (Mistake, QueueFull, Unavailable) as error:
        yield _event("error", {"error": in_language(message_of(error), language)})
    except Exception:
        logger.exception("A streamed computation failed.")
        yield _event("error", {"error": in_language(DEFECT, language)})
    finally:
        work.cancel()
        service.streams -= 1


def unfinished_map(run: LoadedRun, source: list[int], target: list[int], question: StreamQuestion) -> dict[str, Any]:
    """The requested map for an unfinished translation, without the row that predicts EOS."""
    maps = {item.site: item for item in forced(run, source, target).maps}
    site = str(question.site)
    check_site(site, maps)
    item = maps[site]
    layers, heads = item.weights.shape[:2]
    check_index("layer", question.layer, layers, item.site)
    check_index("head", question.head, heads, item.site)
    rows = len(item.outputs) - (SITES[item.site].rows == "target")
    weights = selected(item.weights, question.layer, question.head)[None, None, :rows]
    return {
        "inputs": item.inputs[:rows],
        "outputs": item.outputs[:rows],
        "columns": item.columns,
        "weights": rounded(weights),
    }


def _event(name: str, content: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n"


def description(run: LoadedRun) -> dict[str, Any]:
    """A run: its model, the parts of its attention at every site, and its scores."""
    return {
        **described_model(run),
        "sites": {
            site: {
                "layers": len(layers),
                "heads": layers[0].num_heads,
                "scorer": type(layers[0].scorer).__name__,
                "window": type(layers[0].window).__name__,
                "normalizer": type(layers[0].normalizer).__name__,
                "queries": run.model.queries[site],
            }
            for site, layers in run.model.sentence_sites.items()
        },
        "search": {key: run.settings.search.get(key) for key in ("beam_size", "length_penalty")},
        "scores": run.directory.metrics().get("scores", {}),
    }


def shown(decoded: Decoded, *, maps: bool) -> dict[str, Any]:
    """The fields of a translation for a JSON response, with its attention maps if `maps` is true."""
    fields: dict[str, Any] = {
        "text": decoded.text,
        "ids": decoded.ids,
        "pieces": decoded.pieces,
        "log_probs": rounded(decoded.log_probs),
        "log_prob": round(decoded.log_prob, _DIGITS),
    }
    if maps:
        fields["maps"] = {item.site: _map(item) for item in decoded.maps}
    return fields


def _map(item: AttentionMap) -> dict[str, Any]:
    return {
        "inputs": item.inputs,
        "outputs": item.outputs,
        "columns": item.columns,
        "weights": rounded(item.weights),
        "center": None if item.local is None else rounded(item.local.center),
    }


def rounded(numbers: Sequence[Any] | np.ndarray) -> Any:
    """Nested lists of numbers, rounded; lists of anything else are left unchanged."""
    array = np.asarray(numbers)
    return np.round(array.astype(np.float64), _DIGITS).tolist() if array.dtype.kind == "f" else array.tolist()
