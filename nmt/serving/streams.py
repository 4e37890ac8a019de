"""Searches and attributions of the lab that are sent step by step, as server-sent events."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np

from nmt.decoding.translatable import unknown_characters
from nmt.errors import Mistake, TemplatedMessage
from nmt.insight.attribution_maps import attribution_maps, chosen_method
from nmt.insight.beams import Beam, watched_search
from nmt.insight.forced_maps import IdPair
from nmt.insight.sentence_pair import check_index, check_length, check_site, decoded_pair
from nmt.insight.unknown_words import unknown_words
from nmt.maps.attention_map import selected
from nmt.runs.load import LoadedRun
from nmt.serving.answers import DIGITS, check_found, check_question, rounded, sentence_pair, shown, source_ids
from nmt.serving.batcher import QueueFull
from nmt.serving.gallery import Unavailable
from nmt.serving.questions import AttributeQuestion, StreamQuestion
from nmt.serving.requests import DEFECT, too_slow
from nmt.serving.server_messages import in_language, message_of
from nmt.serving.service import Service
from nmt.sites import SITES
from nmt.text import normalize

logger = logging.getLogger(__name__)

_PASS_TOKENS = 128
"""Maximum number of tokens in a pass over variants of a sentence. Others can go first only between passes."""
_UNREAD_STREAMS = 16_000_000
"""Maximum number of characters that all streams together may keep for clients that read slowly."""


class _ReadTooSlowly(Mistake):
    """A client leaves too much of its stream unread."""


Tell = Callable[[str, dict[str, Any]], None]
"""tell(name, content) sends an event."""
Streamed = Callable[[LoadedRun, Tell], dict[str, Any]]
"""action(run, tell) returns the content of the last event."""


def searched(service: Service, question: StreamQuestion) -> Streamed:
    """The search that a question asks for; it sends an event after each step."""

    def action(run: LoadedRun, tell: Tell) -> dict[str, Any]:
        source, tokenizer = source_ids(run, question), run.tokenizers.target
        check_question(run, question)

        def watch(beams: list[Beam]) -> None:
            service.batcher.between_steps()
            hypotheses = [{"pieces": tokenizer.pieces(ids), "log_prob": round(value, DIGITS)} for ids, value in beams]
            step: dict[str, Any] = {"text": normalize(tokenizer.decode(beams[0].ids)), "beams": hypotheses}
            if question.site is not None:
                step["map"] = unfinished_map(run, source, beams[0].ids, question)
            tell("beams", step)

        best = watched_search(run, source, watch, question.prefix_ids or [], question.search)[0]
        check_found(best.ids)
        return {
            **shown(decoded_pair(run, source, best.ids), maps=False),
            "score": round(best.score, DIGITS),
            "unknown_characters": unknown_characters(run.source_text(question.text), run.tokenizers.source),
            "unknown_words": unknown_words(run, question.text),
            "dictionary_words": run.dictionary.found(run.tokenizers.source.respelled(normalize(question.text))),
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
            raise _ReadTooSlowly(
                TemplatedMessage("The stream is read too slowly; read it faster, or use the request without /stream.")
            )
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
        yield _error(504, too_slow(service.limits.seconds), language)
    except _ReadTooSlowly as error:
        yield _error(408, message_of(error), language)
    except Mistake as error:
        yield _error(400, message_of(error), language)
    except QueueFull as error:
        yield _error(429, message_of(error), language, retry_after=error.retry_after)
    except Unavailable as error:
        yield _error(503, message_of(error), language)
    except Exception:
        logger.exception("A streamed computation failed.")
        yield _error(500, DEFECT, language)
    finally:
        work.cancel()
        service.streams -= 1


def unfinished_map(run: LoadedRun, source: list[int], target: list[int], question: StreamQuestion) -> dict[str, Any]:
    """The requested map for an unfinished translation, without the row that predicts EOS."""
    maps = {item.site: item for item in decoded_pair(run, source, target).maps}
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


def _error(status: int, message: str, language: str, **more: int) -> str:
    """The event of an error, with the status that a request without /stream would have."""
    return _event("error", {"error": in_language(message, language), "status": status, **more})


def _event(name: str, content: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n"
