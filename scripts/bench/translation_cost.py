"""Speed, memory and quality of whole translation commands, ours and others', in alternating rounds.

Each round also translates the first sentence alone. That time counts as start-up and is excluded from the sentences per
second. Before the first round, every command translates it once, so no round includes one-time work such as an export.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import sentencepiece

from nmt.errors import Mistake
from nmt.evaluation.scores import corpus_scores, headline_metrics
from nmt.tables import Cell, Table
from nmt.text.lines import read_lines

# Linux counts the memory of a process from before it starts a program, so a command that this process starts itself
# would seem to need as much memory as this process does. This program is small.
_START = """
import os, resource, sys, time
command, report = sys.argv[1:]
began = time.perf_counter()
code = os.spawnvp(os.P_WAIT, "bash", ["bash", "-c", command])
seconds = time.perf_counter() - began
with open(report, "w") as file:
    print(code, seconds, 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=file)
"""


class CommandRun(NamedTuple):
    """One round of one command."""

    seconds: float
    peak_bytes: int
    """Peak memory of its largest process (Linux)."""
    lines: list[str]


def translate(command: str, source: Path) -> CommandRun:
    """Runs a shell command on the file. Raises Mistake if it fails or its number of output lines is wrong."""
    with tempfile.TemporaryDirectory() as folder, source.open("rb") as given:
        out, log, report = (Path(folder) / name for name in ("out", "log", "report"))
        with out.open("wb") as to, log.open("wb") as errors:
            starter = [sys.executable, "-I", "-S", "-c", _START, command, str(report)]
            subprocess.run(starter, stdin=given, stdout=to, stderr=errors, check=True)
        code, seconds, peak_bytes = report.read_text().split()
        lines = read_lines(out) if out.stat().st_size else []
        if code != "0":
            raise Mistake(f"'{command}' failed with exit code {code}: {log.read_text()[-300:].strip()}")
    sentences = len(read_lines(source))
    if len(lines) != sentences:
        raise Mistake(
            f"'{command}' wrote {len(lines)} lines for {sentences} sentences; it must write one line per sentence."
        )
    return CommandRun(float(seconds), int(peak_bytes), lines)


def measure(
    systems: dict[str, str], source: Path, rounds: int, tokenizer: Path, reference: Path | None
) -> dict[str, Any]:
    """Runs all rounds. The output of every system is counted in pieces of the same tokenizer, and compared with the
    first system's.
    """
    try:
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer))
    except RuntimeError as error:
        raise Mistake(f"--tokenizer is {tokenizer}, which is not a SentencePiece model.") from error
    runs_of: dict[str, list[CommandRun]] = {name: [] for name in systems}
    first: dict[str, list[float]] = {name: [] for name in systems}
    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder) / "one"
        one.write_text(f"{read_lines(source)[0]}\n", encoding="utf-8")
        for command in systems.values():
            translate(command, one)
        for _ in range(rounds):
            for name, command in systems.items():
                first[name].append(translate(command, one).seconds)
                runs_of[name].append(translate(command, source))
    ours = next(iter(runs_of.values()))[-1].lines
    references = None if reference is None else [read_lines(reference)]
    record: dict[str, Any] = {"sentences": len(ours), "systems": {}}
    for name, runs in runs_of.items():
        lines = runs[-1].lines
        record["systems"][name] = {
            "command": systems[name],
            "first_seconds": [round(seconds, 2) for seconds in first[name]],
            "seconds": [round(run.seconds, 2) for run in runs],
            "peak_bytes": max(run.peak_bytes for run in runs),
            "pieces": sum(map(len, pieces.encode(lines))),
            "equal": sum(a == b for a, b in zip(lines, ours, strict=True)) / len(ours),
            "bleu": None if references is None else str(corpus_scores(lines, references, headline_metrics(False))[0]),
        }
    return record


def table(record: dict[str, Any]) -> str:
    """The measurements as a Markdown table. Ratios of speeds are medians over rounds."""
    systems, others = record["systems"], record["sentences"] - 1
    seconds = {
        name: [whole - first for whole, first in zip(system["seconds"], system["first_seconds"], strict=True)]
        for name, system in systems.items()
    }
    short = [name for name, values in seconds.items() if min(values) <= 0]
    if short or others < 1:
        raise Mistake(f"There are too few sentences to time {', '.join(short or systems)}: use a longer file.")
    reference = next(iter(seconds.values()))
    rows: list[list[Cell]] = []
    for name, system in systems.items():
        rates = [others / value for value in seconds[name]]
        ratio = statistics.median(base / taken for taken, base in zip(seconds[name], reference, strict=True))
        rows.append(
            [
                name,
                f"{statistics.median(system['first_seconds']):.1f}",
                f"{statistics.median(rates):.2f}",
                f"{min(rates):.2f} to {max(rates):.2f}",
                f"{ratio:.2f}",
                f"{system['pieces'] / statistics.median(seconds[name]):,.0f}",
                f"{system['peak_bytes'] / 2**20:,.0f} MiB",
                f"{100 * system['equal']:.1f}%",
                *([system["bleu"]] if system["bleu"] else []),
            ]
        )
    header = ["system", "first sentence with start-up, s", "sentences/s after it, median", "slowest to fastest"]
    header += ["speed / first system's", "output pieces/s after it", "peak memory", "translations equal to the first's"]
    header += ["BLEU"] if len(rows[0]) > len(header) else []
    rounds = len(reference)
    return f"{record['sentences']} sentences, {rounds} alternating rounds\n\n{Table(header, rows).markdown()}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark translate`."""
    parser.add_argument("source", type=Path, help="file of sentences; each command reads it from standard input")
    parser.add_argument(
        "--system",
        action="append",
        required=True,
        metavar="NAME=COMMAND",
        help="shell command that writes one line per input line to standard output; repeat for each system, ours first",
    )
    parser.add_argument("--tokenizer", type=Path, required=True, help="SentencePiece model used to count output pieces")
    parser.add_argument("--reference", type=Path, help="file of reference translations, for BLEU")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds (default: %(default)s)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures what the options ask for. Raises Mistake if they are not usable."""
    systems = dict(system.partition("=")[::2] for system in options.system)
    for name, command in systems.items():
        if not name or not command:
            raise Mistake(f"--system '{name}' has no command; write NAME=COMMAND.")
    for file in (options.source, options.tokenizer, options.reference):
        if file is not None and not file.is_file():
            raise Mistake(f"File not found: {file}.")
    if options.rounds < 1:
        raise Mistake(f"--rounds is {options.rounds}; it must be at least 1.")
    return measure(systems, options.source, options.rounds, options.tokenizer, options.reference)
