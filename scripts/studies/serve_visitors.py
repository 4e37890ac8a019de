"""Measure how long visitors of the lab's page wait while one of them computes integrated gradients over and over.

    python -m scripts.studies.serve_visitors en-vi

Starts nmt.serve with a run that translates from English. Each visitor translates one short sentence after another, with
a pause to look at it: half of them as the page does, with a streamed search and the maps of its translation, and half
through /v1/translate. Prints one row for each kind, first without the attributions, then beside them: the seconds that
the answers take, and the seconds of CPU that the server uses meanwhile, which depend less on what else the machine
does. Requests may take an hour, so that long waits are measured and do not end in errors. Linux only; takes five
minutes.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.mistakes import report_mistakes
from scripts.server import Connection, Server, server

SENTENCES = (
    "How old is Mai?",
    "I like tea.",
    "Where is the station?",
    "She bought a red car.",
    "The river is cold today.",
    "Can you help me?",
)
ATTRIBUTED = "The city opened a new bridge over the river on Monday."
Times = dict[str, list[tuple[float, float]]]
"""The seconds, and the server's seconds of CPU, that each answer took, by kind of request."""


async def answered(port: int, path: str, fields: object) -> bytes:
    """The body of the answer to one request. Raises RuntimeError if it is an error."""
    connection = Connection(port)
    try:
        reader, writer = await connection.open()
        request = Connection.request(path, fields, "connection: close\r\n")
        writer.write(request)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        connection.close()
    if not head.startswith(b"HTTP/1.1 200") or b"event: error" in body:
        raise RuntimeError(f"{path}: {head[:40]!r} {body[-200:]!r}")
    return body


async def as_the_page(port: int, text: str) -> None:
    """What the page asks for: the search, step by step with its map, then all maps of the translation."""
    await answered(port, "/v1/translate/stream", {"text": text, "site": "cross"})
    await answered(port, "/v1/attend", {"text": text})


async def as_a_program(port: int, text: str) -> None:
    await answered(port, "/v1/translate", {"text": text})


KINDS: dict[str, Callable[[int, str], Awaitable[None]]] = {"page": as_the_page, "/v1/translate": as_a_program}


async def visit(started: Server, number: int, pause: float, until: float, times: Times) -> None:
    """One visitor: a sentence, a pause, the next sentence, until it is time to leave."""
    chance = random.Random(number)
    kind = list(KINDS)[number % len(KINDS)]
    while True:
        await asyncio.sleep(chance.uniform(0.5, 1.5) * pause)
        if time.monotonic() > until:
            return
        began, cpu = time.monotonic(), started.cpu_seconds
        await KINDS[kind](started.port, chance.choice(SENTENCES))
        times[kind].append((time.monotonic() - began, started.cpu_seconds - cpu))


async def attribute(port: int, seconds: list[float]) -> None:
    """Computes one attribution after another."""
    while True:
        began = time.monotonic()
        await answered(port, "/v1/attribute", {"text": ATTRIBUTED, "method": "integrated_gradients"})
        seconds.append(time.monotonic() - began)


async def measured(started: Server, options: argparse.Namespace, *, attributing: bool) -> tuple[Times, list[float]]:
    """The seconds of all answers to the visitors, and of the attributions."""
    times: Times = {kind: [] for kind in KINDS}
    attributions: list[float] = []
    until = time.monotonic() + options.seconds
    visitors = [visit(started, number, options.pause, until, times) for number in range(options.visitors)]
    beside = asyncio.ensure_future(attribute(started.port, attributions)) if attributing else None
    await asyncio.gather(*visitors)
    if beside is not None:
        if beside.done():
            beside.result()  # an error, or it would go on
        beside.cancel()
    return times, attributions


def numbers(seconds: list[float]) -> str:
    """The median, the 99th percentile and the largest."""
    ordered = sorted(seconds)
    places = (len(ordered) // 2, -(-99 * len(ordered) // 100) - 1, -1)
    return ", ".join(f"{ordered[place]:.2f}" for place in places) + " s"


async def table(started: Server, options: argparse.Namespace) -> list[str]:
    rows = [
        "| visitors | beside them | answers | median, 99th percentile, slowest | the same in CPU seconds |",
        "|---|---|---|---|---|",
    ]
    for text in SENTENCES:  # the first answers take longer
        await as_the_page(started.port, text)
        await as_a_program(started.port, text)
    for attributing in (False, True):
        times, attributions = await measured(started, options, attributing=attributing)
        done = f"attributions, {len(attributions)} done, the slowest in {max(attributions, default=0):.1f} s"
        beside = done if attributing else "nothing"
        for kind, answers in [*times.items(), ("all", [answer for of_kind in times.values() for answer in of_kind])]:
            shown = [numbers(list(seconds)) for seconds in zip(*answers, strict=True)]
            rows.append(f"| {kind} | {beside} | {len(answers)} | {' | '.join(shown)} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run that translates from English")
    parser.add_argument("--visitors", type=int, default=20, help="how many visitors translate (default 20)")
    parser.add_argument("--pause", type=float, default=10.0, help="their mean pause in seconds (default 10)")
    parser.add_argument("--seconds", type=float, default=140.0, help="seconds for each half of the table (default 140)")
    options = parser.parse_args()
    with TemporaryDirectory() as name, server(options.run, Path(name) / "log", "time_limit=3600") as started:
        print("\n".join(asyncio.run(table(started, options))))


if __name__ == "__main__":
    report_mistakes(main)
