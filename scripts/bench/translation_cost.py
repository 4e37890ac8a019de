"""Speed and memory of whole translation commands, ours and others', in alternating rounds, start-up included."""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import sentencepiece

from nmt.data.corpus import read_lines


class Run(NamedTuple):
    """One round of one command."""

    seconds: float
    peak_bytes: int
    """Peak memory of its largest process (Linux)."""
    lines: list[str]


def translate(command: str, source: Path) -> Run:
    """Runs a shell command on the file. Raises ValueError if it fails or its number of output lines is wrong."""
    with tempfile.TemporaryDirectory() as folder, source.open("rb") as given:
        out, log = Path(folder) / "out", Path(folder) / "log"
        start = time.perf_counter()
        with out.open("wb") as to, log.open("wb") as errors:
            process = subprocess.Popen(["bash", "-c", command], stdin=given, stdout=to, stderr=errors)
            _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        lines = read_lines(out) if out.stat().st_size else []
        if process.returncode:
            raise ValueError(
                f"'{command}' failed with exit code {process.returncode}: {log.read_text()[-300:].strip()}"
            )
    sentences = len(read_lines(source))
    if len(lines) != sentences:
        raise ValueError(
            f"'{command}' wrote {len(lines)} lines for {sentences} sentences; it must write one line per sentence."
        )
    return Run(seconds, used.ru_maxrss * 1024, lines)


def measure(systems: dict[str, str], source: Path, rounds: int, tokenizer: Path) -> dict[str, Any]:
    """Runs all rounds. The output of every system is counted in pieces of the same tokenizer."""
    try:
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer))
    except RuntimeError as error:
        raise ValueError(f"--tokenizer is {tokenizer}, which is not a SentencePiece model.") from error
    found: dict[str, list[Run]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name, command in systems.items():
            found[name].append(translate(command, source))
    return {
        "sentences": len(read_lines(source)),
        "systems": {
            name: {
                "command": systems[name],
                "seconds": [round(run.seconds, 2) for run in runs],
                "peak_bytes": max(run.peak_bytes for run in runs),
                "pieces": sum(map(len, pieces.encode(runs[-1].lines))),
            }
            for name, runs in found.items()
        },
    }


def table(record: dict[str, Any]) -> str:
    """The measurements as a Markdown table. Time ratios are medians over rounds."""
    systems = record["systems"]
    first = next(iter(systems.values()))["seconds"]
    lines = [
        f"{record['sentences']} sentences, {len(first)} alternating rounds, start-up included",
        "",
        "| system | sentences/s, median | slowest to fastest | output pieces/s | time / first system's | peak memory |",
        "|---|---|---|---|---|---|",
    ]
    for name, each in systems.items():
        seconds = each["seconds"]
        rates = [record["sentences"] / value for value in seconds]
        ratio = statistics.median(own / other for own, other in zip(seconds, first, strict=True))
        lines.append(
            f"| {name} | {statistics.median(rates):.2f} | {min(rates):.2f} to {max(rates):.2f} "
            f"| {each['pieces'] / statistics.median(seconds):,.0f} | {ratio:.2f} "
            f"| {each['peak_bytes'] / 2**20:,.0f} MiB |"
        )
    return "\n".join(lines)


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
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds (default: %(default)s)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures what the options ask for. Raises ValueError or FileNotFoundError if they are not usable."""
    systems = dict(system.partition("=")[::2] for system in options.system)
    for name, command in systems.items():
        if not name or not command:
            raise ValueError(f"--system '{name}' has no command; write NAME=COMMAND.")
    for file in (options.source, options.tokenizer):
        if not file.is_file():
            raise FileNotFoundError(f"File not found: {file}.")
    if options.rounds < 1:
        raise ValueError(f"--rounds is {options.rounds}; it must be at least 1.")
    return measure(systems, options.source, options.rounds, options.tokenizer)
