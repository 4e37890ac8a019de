"""nmt.translate: standard input to standard output, a line for a line."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from nmt.run.build import build_translator, load_run
from nmt.run.compose import Job


def translate(job: Job) -> None:
    """Translates every line of standard input; an empty line stays empty, and each line comes out as soon as it can.

    Raises ValueError for a line that is not UTF-8, after the translations of those before it.
    """
    config = job.config
    trained = load_run(Path(str(config["run_dir"])), config["device"])
    translator = build_translator(trained, config["search"], config["batch_tokens"], config["max_source_tokens"])
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    # A person waits for the translation of a line before writing the next.
    read_ahead = 1 if sys.stdin.isatty() else config["read_ahead"]
    for line in translator.stream(input_lines(sys.stdin.buffer), read_ahead):
        print(line, flush=True)


def input_lines(stream: Iterable[bytes]) -> Iterator[str]:
    """The lines of a UTF-8 stream without their LF or CRLF. Raises ValueError naming the one that is not UTF-8."""
    for number, raw in enumerate(stream, start=1):
        try:
            yield raw.rstrip(b"\r\n").decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"Standard input, line {number}: not UTF-8 ({error.reason}); convert it.") from error
