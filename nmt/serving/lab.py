"""The lab's own interface, under /v1: what the runs are, what they attend to, and what happens when that is changed."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from nmt.attention.edits import Change, Given, Off, OfHead, Scaled, Shuffled, Uniform
from nmt.attention.normalizers import Normalizer, Softmax, Sparsemax
from nmt.maps.attention_map import AttentionMap
from nmt.runs.beams import Beam, watched_search
from nmt.runs.cells import alternatives, cells
from nmt.runs.interventions import Decoded, Intervention, forced, intervene
from nmt.runs.load import Trained
from nmt.serving.engine import Full, Task
from nmt.serving.libretranslate import Interface
from nmt.serving.requests import check_key, failures, within
from nmt.text import normalize

T = TypeVar("T")
_DIGITS = 6
_LONGEST = 10_000

Ids = Field(None, description="piece ids without BOS and EOS", max_length=_LONGEST)


class Question(BaseModel):
    """What every question under /v1 has."""

    model_config = ConfigDict(extra="forbid")

    run: str | None = Field(None, description="name of a run, as /v1/runs lists them; the first one by default")
    text: str = Field(description="a sentence in the source language", max_length=_LONGEST)


class Translate(Question):
    prefix: str = Field("", max_length=_LONGEST, description="what the translations begin with")
    n_best: int = Field(1, ge=1)
    beam_size: int | None = Field(None, ge=1, le=100)


class Attend(Question):
    target: str | None = Field(None, max_length=_LONGEST, description="a translation; by default the run's own")
    target_ids: list[int] | None = Ids
    prefix_ids: list[int] | None = Ids


class Alternatives(Attend):
    number: int = Field(5, ge=1, le=100, description="pieces to return for each position")


class Cell(Attend):
    site: Literal["encoder_self", "decoder_self", "cross"] = "cross"
    layer: int = 0
    head: int = 0
    row: int = Field(description="position of the query, from 0")


class Change_(BaseModel):  # noqa: N801
    """A change of attention: new weights (way), or a temperature, a normalizer or a window of the whole layer."""

    model_config = ConfigDict(extra="forbid", title="Change")

    site: Literal["encoder_self", "decoder_self", "cross"] = "cross"
    layer: int | None = Field(None, description="from 0; null for every layer")
    head: int | None = Field(None, description="from 0; null for every head")
    steps: list[int] | None = Field(None, description="positions of the queries, from 0; null for all")
    way: Literal["off", "uniform", "shuffled", "scale", "weights", "head"] | None = None
    columns: list[int] = Field([], description="for scale: the keys")
    factor: float = Field(0.0, ge=0, allow_inf_nan=False, description="for scale: 0 blocks the keys")
    weights: list[float] = Field([], description="for weights: one for each key; they must sum to at most 1")
    other_head: int = Field(0, description="for head: the head whose weights are taken")
    temperature: float | None = Field(None, allow_inf_nan=False)
    normalizer: Literal["softmax", "sparsemax"] | None = None
    half_width: int | None = None

    def intervention(self) -> Intervention:
        """The same for nmt.runs. Raises ValueError for weights that are no distribution."""
        if self.way == "weights" and (min(self.weights, default=-1) < 0 or not sum(self.weights) <= 1 + 1e-3):
            raise ValueError("weights must be numbers of at least 0 that sum to at most 1, one for each key.")
        ways: dict[str, Change] = {
            "off": Off(),
            "uniform": Uniform(),
            "shuffled": Shuffled(),
            "scale": Scaled(self.columns, self.factor),
            "weights": Given(self.weights),
            "head": OfHead(self.other_head),
        }
        normalizers: dict[str, Normalizer] = {"softmax": Softmax(), "sparsemax": Sparsemax()}
        return Intervention(
            change=None if self.way is None else ways[self.way],
            site=self.site,
            layer=self.layer,
            head=self.head,
            steps=self.steps,
            temperature=self.temperature,
            normalizer=None if self.normalizer is None else normalizers[self.normalizer],
            half_width=self.half_width,
        )


class Intervene(Attend):
    changes: list[Change_] = Field(min_length=1, max_length=1000)


def routes(interface: Interface) -> APIRouter:
    """The endpoints under /v1."""

    router = APIRouter(prefix="/v1", tags=["lab"], responses=failures(404))

    def run_name(question: Question) -> str:
        offered = interface.gallery.offered
        if question.run is None:
            return next(iter(offered))
        if question.run not in offered:
            raise HTTPException(404, f"There is no run '{question.run}'; /v1/runs lists them.")
        return question.run

    async def computed(request: Request, question: Question, action: Callable[[Trained], T]) -> T:
        check_key(request, None, interface.keys)
        interface.check_size([question.text])
        work = interface.engine.compute(run_name(question), action)
        return await within(request, interface.limits.seconds, work)

    @router.get("/runs")
    async def runs() -> list[dict[str, Any]]:
        """The runs of this server."""
        return [
            {"name": each.name, "source": each.direction.source, "target": each.direction.target}
            for each in interface.gallery.offered.values()
        ]

    @router.get("/runs/{name:path}")
    async def run(request: Request, name: str) -> dict[str, Any]:
        """What a run is: its model, its attention at every site, and its scores."""
        return await computed(request, Question(run=name, text=""), description)

    @router.post("/translate")
    async def translate(request: Request, question: Translate) -> dict[str, Any]:
        """The best translations of a sentence, with log-probabilities in nats and the scores that rank them."""
        check_key(request, None, interface.keys)
        interface.check_size([question.text])
        if question.n_best > interface.limits.alternatives + 1:
            raise HTTPException(
                400, f"n_best is {question.n_best}; it must be at most {interface.limits.alternatives + 1}."
            )
        settings: dict[str, Any] = {}
        if question.beam_size or question.n_best > 1:
            settings = {"n_best": question.n_best, "beam_size": max(question.beam_size or 5, question.n_best)}
        task = Task(run_name(question), tuple(settings.items()))
        work = interface.engine.translate(task, [question.text], [question.prefix])
        [found] = await within(request, interface.limits.seconds, work)
        return {"translations": [each._asdict() for each in found]}

    @router.post("/translate/stream", response_class=StreamingResponse)
    async def stream(request: Request, question: Attend) -> StreamingResponse:
        """The same as server-sent events: `beams` after each step of the search, then `done`, or `error`."""
        check_key(request, None, interface.keys)
        interface.check_size([question.text])
        name = run_name(question)
        return StreamingResponse(events(interface, name, question), media_type="text/event-stream")

    @router.post("/attend")
    async def attend(request: Request, question: Attend) -> dict[str, Any]:
        """The attention at every site, layer and head, for the run's own translation or a given one."""

        def action(trained: Trained) -> dict[str, Any]:
            source, target, prefix = pair(trained, question)
            found = intervene(trained, source, [], target, prefix) if target is None else None
            decoded = forced(trained, source, target or []) if found is None else found.intact
            return {"source_pieces": trained.tokenizers.source.pieces(source), **shown(decoded, maps=True)}

        return await computed(request, question, action)

    @router.post("/score")
    async def score(request: Request, question: Attend) -> dict[str, Any]:
        """log p of each piece of a given translation, in nats."""

        def action(trained: Trained) -> dict[str, Any]:
            source, target, _ = pair(trained, question)
            if not source or not target:
                raise ValueError("text and target must both be given, and not be empty.")
            return shown(forced(trained, source, target), maps=False)

        return await computed(request, question, action)

    @router.post("/alternatives")
    async def alternative_pieces(request: Request, question: Alternatives) -> dict[str, Any]:
        """The most likely pieces at each position of the run's own translation or a given one."""

        def action(trained: Trained) -> dict[str, Any]:
            source, target, prefix = pair(trained, question)
            if target is None:
                target = intervene(trained, source, [], None, prefix).intact.ids
            found = alternatives(trained, source, target, question.number)
            return {
                "pieces": [*trained.tokenizers.target.pieces(target), "</s>"],
                "alternatives": [[choice._asdict() for choice in place] for place in found],
            }

        return await computed(request, question, action)

    @router.post("/intervene")
    async def intervention(request: Request, question: Intervene) -> dict[str, Any]:
        """The translation, the same pieces under changes of attention, and what is translated under them."""
        changes = [change.intervention() for change in question.changes]

        def action(trained: Trained) -> dict[str, Any]:
            source, target, prefix = pair(trained, question)
            found = intervene(trained, source, changes, target, prefix)
            return {
                "source_pieces": found.source_pieces,
                "intact": shown(found.intact, maps=True),
                "forced": shown(found.forced, maps=True),
                "changed": shown(found.changed, maps=True),
            }

        return await computed(request, question, action)

    @router.post("/explain")
    async def explain(request: Request, question: Cell) -> dict[str, Any]:
        """One row of a map with every number behind it: query, keys, scores, mask, weights, values and context."""

        def action(trained: Trained) -> dict[str, Any]:
            source, target, prefix = pair(trained, question)
            if target is None:
                target = intervene(trained, source, [], None, prefix).intact.ids
            found = cells(trained, source, target, question.site, question.layer, question.head, question.row)
            return {
                key: rounded(value) if isinstance(value, list) and key != "columns" else value
                for key, value in found._asdict().items()
            }

        return await computed(request, question, action)

    return router


async def events(interface: Interface, run: str, question: Attend) -> AsyncIterator[str]:
    """Server-sent events of a search. It ends when the client leaves."""
    loop = asyncio.get_running_loop()
    steps: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    left = threading.Event()

    def action(trained: Trained) -> dict[str, Any]:
        source, _, prefix = pair(trained, question)
        tokenizer = trained.tokenizers.target

        def watch(beams: list[Beam]) -> None:
            if left.is_set():
                raise Left
            shown = [{"pieces": tokenizer.pieces(ids), "log_prob": round(value, _DIGITS)} for ids, value in beams]
            step = {"text": normalize(tokenizer.decode(beams[0].ids)), "beams": shown}
            loop.call_soon_threadsafe(steps.put_nowait, step)

        best = watched_search(trained, source, watch, prefix)[0]
        return shown(forced(trained, source, best.ids), maps=False)

    work = asyncio.ensure_future(interface.engine.compute(run, action))
    try:
        async with asyncio.timeout(interface.limits.seconds):
            while not (work.done() and steps.empty()):
                step = asyncio.ensure_future(steps.get())
                await asyncio.wait({work, step}, return_when=asyncio.FIRST_COMPLETED)
                if step.done():
                    yield event("beams", step.result())
                else:
                    step.cancel()
        yield event("done", await work)
    except TimeoutError:
        yield event("error", {"error": f"The request took more than {interface.limits.seconds:g} s."})
    except (ValueError, Full) as error:
        yield event("error", {"error": str(error)})
    finally:
        left.set()


class Left(Exception):  # noqa: N818
    """The client of a stream has left."""


def event(name: str, content: dict[str, Any]) -> str:
    """A server-sent event."""
    return f"event: {name}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n"


def description(trained: Trained) -> dict[str, Any]:
    """A run: its model, and the scorer, window and normalizer of each site."""
    record = trained.run.metrics()
    return {
        "path": trained.run.path.name,
        "source": trained.direction.source,
        "target": trained.direction.target,
        "model": type(trained.model).__name__,
        "parameters": sum(each.numel() for each in trained.model.parameters()),
        "sites": {
            site: {
                "layers": len(layers),
                "heads": layers[0].num_heads,
                "scorer": type(layers[0].scorer).__name__,
                "window": type(layers[0].window).__name__,
                "normalizer": type(layers[0].normalizer).__name__,
                "queries": trained.model.queries[site],
            }
            for site, layers in trained.model.sites.items()
        },
        "test": record.get("test"),
    }


def pair(trained: Trained, question: Attend) -> tuple[list[int], list[int] | None, list[int]]:
    """The ids of the source, of the target if one is given, and of the prefix.

    Raises ValueError for an empty text, and for ids that the vocabulary does not have.
    """
    source = trained.tokenizers.source.encode(normalize(question.text))
    target = question.target_ids
    if target is None and question.target is not None:
        target = trained.tokenizers.target.encode(normalize(question.target))
    prefix = question.prefix_ids or []
    size = trained.tokenizers.target.size
    for name, ids in (("target_ids", target or []), ("prefix_ids", prefix)):
        if any(not 4 <= index < size for index in ids):
            raise ValueError(f"{name} must be from 4 to {size - 1}; smaller ones are PAD, UNK, BOS and EOS.")
    return source, target, prefix


def shown(decoded: Decoded, *, maps: bool) -> dict[str, Any]:
    """A translation as JSON."""
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
    """Nested lists of numbers with few digits; lists of others as they are."""
    array = np.asarray(numbers)
    return np.round(array.astype(np.float64), _DIGITS).tolist() if array.dtype.kind == "f" else array.tolist()
