"""Speed of the server under load, compared with nmt.translate and, optionally, with other servers."""

import argparse
import asyncio
import contextlib
import itertools
import math
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from nmt.cli.command import limit_cached_shapes
from nmt.decoding.translator import Translator
from nmt.errors import Mistake
from nmt.exports.engine_choice import chosen_engine
from nmt.runs.directory import RunDirectory
from nmt.runs.engine import engine_translator
from nmt.runs.included import named_run
from nmt.text.lines import read_lines
from scripts.processes import cpu_seconds
from scripts.server import Connection, Server, server

LEVELS = "1,8,64,256"
CACHE = "runs/cache"
"""The default of nmt.translate and nmt.serve."""


class Elsewhere(NamedTuple):
    """A server with LibreTranslate's interface that already runs here. Its memory and CPU are not measured."""

    port: int
    memory: float = math.nan
    cpu_seconds: float = math.nan


def closed_loop(
    served: Server | Elsewhere, clients: int, lines: list[str], asked: dict[str, str], seconds: float
) -> dict[str, Any]:
    """Each client sends a line, waits for its translation, and sends the next line, until the time is up.

    Raises Mistake if an answer is not a translation.
    """

    async def client(given: Iterator[str], until: float, latencies: list[float]) -> None:
        connection = Connection(served.port)
        while time.perf_counter() < until:
            began = time.perf_counter()
            status, body = await connection.ask("/translate", {"q": next(given), **asked})
            if status != 200:
                raise Mistake(f"The server answered {status}: {body[:200]!r}.")
            latencies.append(time.perf_counter() - began)
        connection.close()

    async def everyone() -> list[float]:
        latencies: list[float] = []
        given, until = itertools.cycle(lines), time.perf_counter() + seconds
        await asyncio.gather(*(client(given, until, latencies) for _ in range(clients)))
        return latencies

    used, served_used, began = time.process_time(), served.cpu_seconds, time.perf_counter()
    latencies = sorted(asyncio.run(everyone()))
    seconds = time.perf_counter() - began  # until the last answer: a batch may take seconds
    return {
        "rate": len(latencies) / seconds,
        "median": statistics.median(latencies),
        "p99": latencies[min(len(latencies) - 1, int(0.99 * len(latencies)))],
        "cpu": (served.cpu_seconds - served_used) / len(latencies),
        "memory": served.memory,
        "client_cpu": (time.process_time() - used) / seconds,
    }


@contextlib.contextmanager
def child(mode: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Runs this module in a separate process, which is stopped after the block."""
    command = [sys.executable, "-m", "scripts.bench.serving", mode, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)


def sentences(source: Path) -> list[str]:
    """The lines of a file that are not blank."""
    return [line for line in read_lines(source) if line.strip()]


def load(run: str, engine: str, precision: str) -> Translator:
    """The translator of a run with an engine, on the CPU, as nmt.translate has it."""
    chosen = chosen_engine([run], "cpu", precision, engine, search={}, cache_dir=CACHE)
    return engine_translator(chosen.runs[0], chosen.engine)


def direct(source: str, *loaded: str) -> None:
    """Translates the file as nmt.translate does after start-up, repeatedly until the time is up, and at least once.

    Reads the time in seconds from standard input. Prints the sentences per second, and the number of sentences.
    """
    translator, lines = load(*loaded), sentences(Path(source))
    for line in sys.stdin.buffer:
        began, translated = time.perf_counter(), 0
        while time.perf_counter() - began < float(line):
            translated += sum(1 for _ in translator.stream((line, "") for line in lines))
        print(translated / (time.perf_counter() - began), translated, flush=True)


def plain(*loaded: str) -> None:
    """The simplest possible application: every request is translated separately, in its own thread."""
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Body(BaseModel):
        q: str

    app, translator = FastAPI(), load(*loaded)

    @app.post("/translate")
    def translate(body: Body) -> dict[str, str]:
        return {"translatedText": translator.translate([body.q])[0]}

    config = uvicorn.Config(app, port=0, log_level="error")
    listening = config.bind_socket()
    listening.listen(2048)  # before the address is printed
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run([listening])


def measure(
    run: Path,
    source: Path,
    *,
    levels: list[int],
    seconds: float,
    rounds: int,
    overrides: list[str],
    with_plain: bool,
    beside: dict[str, int],
) -> dict[str, Any]:
    """Measures nmt.translate, the server, the plain application and those on the ports `beside`, round by round."""
    lines = sentences(source)
    names = str(RunDirectory(run).config()["direction"]).split("-")
    asked = {"source": names[0], "target": names[1]}
    given = dict(override.split("=", 1) for override in overrides)
    loaded = [str(run), given.get("engine", "auto"), given.get("precision", "float32")]
    measurements: dict[str, dict[int, list[dict[str, Any]]]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ours = stack.enter_context(server(run, folder / "log", "device=cpu", *overrides))
        base = stack.enter_context(child("direct", str(source), *loaded))
        systems: dict[str, Server | Elsewhere] = {"nmt.serve": ours}
        if with_plain:
            process = stack.enter_context(child("plain", *loaded))
            systems["plain FastAPI"] = Server(process, _line(process), folder / "log")
        systems |= {name: Elsewhere(port) for name, port in beside.items()}

        def translate(seconds: float) -> dict[str, Any]:
            assert base.stdin is not None
            base.stdin.write(f"{seconds}\n")
            base.stdin.flush()
            used, (rate, number) = cpu_seconds(base.pid), map(float, _line(base).split())
            return {"rate": rate, "cpu": (cpu_seconds(base.pid) - used) / number}

        actions: dict[str, Callable[[int, float], dict[str, Any]]] = {
            "nmt.translate": lambda _, length: translate(length)
        }
        for name, system in systems.items():
            actions[name] = lambda clients, length, system=system: closed_loop(system, clients, lines, asked, length)
        for action in actions.values():
            action(1, min(3.0, seconds))  # warm
        for _, clients in itertools.product(range(rounds), levels):
            for name, action in actions.items():
                measurements.setdefault(name, {}).setdefault(clients, []).append(action(clients, seconds))
    return {"sentences": len(lines), "seconds": seconds, "rounds": rounds, "systems": measurements}


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise Mistake("A measured process has ended unexpectedly; its messages are above.")
    return line


def table(record: dict[str, Any]) -> str:
    """The measurements as a Markdown table of medians over rounds. Shares are computed within each round."""
    systems = record["systems"]
    base = systems["nmt.translate"]
    lines = [
        f"{record['rounds']} alternating rounds of {record['seconds']:g} s; {record['sentences']} sentences, one per "
        "request. All clients run in one process; its CPU use is in percent of a core.",
        "",
        "| system | clients | sentences/s | share of nmt.translate | CPU/sentence | median latency | 99th percentile "
        "| memory | CPU of the clients |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rate, cpu = (statistics.median(row[key] for level in base.values() for row in level) for key in ("rate", "cpu"))
    lines.append(f"| nmt.translate | | {rate:.1f} | 100% | {cpu * 1000:.1f} ms | | | | |")
    for name, levels in systems.items():
        for clients, rounds in levels.items():
            if name == "nmt.translate":
                continue
            middle = {key: statistics.median(row[key] for row in rounds) for key in rounds[0]}
            share = statistics.median(
                row["rate"] / base_row["rate"] for row, base_row in zip(rounds, base[clients], strict=True)
            )
            lines.append(
                f"| {name} | {clients} | {middle['rate']:.1f} | {share:.0%} "
                f"| {known(middle['cpu'] * 1000, '.1f', ' ms')} "
                f"| {middle['median'] * 1000:,.0f} ms | {middle['p99'] * 1000:,.0f} ms "
                f"| {known(middle['memory'], ',.0f', ' MiB')} | {middle['client_cpu']:.0%} |"
            )
    return "\n".join(lines)


def known(value: float, form: str, unit: str) -> str:
    """A number with its unit; '' if it was not measured."""
    return "" if math.isnan(value) else f"{value:{form}}{unit}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark serve`."""
    parser.add_argument("run", type=Path, help="a finished run")
    parser.add_argument("source", type=Path, help="file of sentences in its source language")
    parser.add_argument("--levels", default=LEVELS, help="numbers of clients (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each measurement (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds (default: %(default)s)")
    parser.add_argument("--plain", action="store_true", help="also measure a plain FastAPI application")
    parser.add_argument(
        "--beside",
        action="append",
        default=[],
        metavar="NAME=PORT",
        help="also measure a server with LibreTranslate's interface that runs on this machine; repeatable",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="setting of nmt.serve; repeatable"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures what the options ask for. Raises Mistake if they are not usable."""
    if not options.source.is_file():
        raise Mistake(f"File not found: {options.source}.")
    levels = [int(level) for level in options.levels.split(",") if level.isdecimal()]
    if not levels or min(levels) < 1 or len(levels) != len(options.levels.split(",")):
        raise Mistake(f"--levels is {options.levels}; it must be numbers of clients, such as {LEVELS}.")
    if options.rounds < 1 or not options.seconds > 0:
        raise Mistake(f"--rounds is {options.rounds}, --seconds {options.seconds}; both must be above 0.")
    beside = dict(option.split("=", 1) for option in options.beside if "=" in option)
    if len(beside) < len(options.beside) or not all(port.isdecimal() for port in beside.values()):
        raise Mistake(f"--beside is {', '.join(options.beside)}; write NAME=PORT, such as LibreTranslate=5000.")
    if malformed := [setting for setting in options.set if "=" not in setting]:
        raise Mistake(f"--set is {', '.join(malformed)}; write KEY=VALUE, such as engine=torch.")
    run_dir = named_run(options.run)
    RunDirectory(run_dir).require_finished()
    return measure(
        run_dir,
        options.source,
        levels=levels,
        seconds=options.seconds,
        rounds=options.rounds,
        overrides=options.set,
        with_plain=options.plain,
        beside={name: int(port) for name, port in beside.items()},
    )


if __name__ == "__main__":
    limit_cached_shapes()  # as nmt's commands do
    {"direct": direct, "plain": plain}[sys.argv[1]](*sys.argv[2:])
