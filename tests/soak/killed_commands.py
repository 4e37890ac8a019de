"""Kill commands at random moments, run them again until they finish, and compare all bytes with an uninterrupted run.

    python -m tests.soak.killed_commands --kills 100 --seed 1 --commands train export

A command is killed with SIGKILL, SIGTERM or SIGINT within one of its stages, such as writing a checkpoint: at a moment
that is uniform over the length of that stage. Then the same command is started again, which may be killed too. Once it
has finished, its folder must have the files of an uninterrupted run, byte for byte, and no others. Not compared are:
logs, `cache/files`, which records when files changed, and `previous.ckpt`; in other checkpoints, whatever is not
weights, optimizer, learning rate, tokens or step; in JSON files, times, speeds, memory and commits. The training pairs
are tokenized in two processes and small chunks. All processes of commands are forked from one that has imported
everything, so a kill costs little. The tables show in which stages commands were killed, how many files with finished
work were kept, and what they said. SIGTERM ends the study with these tables.
"""

import argparse
import contextlib
import fcntl
import hashlib
import importlib
import inspect
import io
import json
import multiprocessing
import os
import random
import re
import resource
import runpy
import select
import shutil
import signal
import statistics
import struct
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import wraps
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple

import torch

from nmt.signals import leave_on_interrupt
from tests.tiny import TINY, write_corpora

CONTEXT = multiprocessing.get_context("fork")
EVENT = struct.Struct("<B?d")
CODES = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: 143, signal.SIGINT: 130}
SIGNALS = (*[signal.SIGKILL] * 4, signal.SIGTERM, signal.SIGINT)
ANYWHERE = "anywhere"
PORT = "PORT"

TRAINING = [
    "resume=auto",
    "trainer.max_steps=12",
    "validation.every=4",
    "logger=none",
    "checkpoints.keep=2",
    "checkpoints.recent=2",
    "ema_decay=0.9",
    "cache_dir=cache",
]
PRETRAINING = [
    "data.train=[train.en,train.vi]",
    "data.valid_lines=9",
    "tokenizer.size=293",
    "model.dim=12",
    "model.ffn_dim=19",
    "model.num_heads=2",
    "model.num_layers=1",
    "batching.batch_tokens=101",
    "schedule.warmup=7",
    "trainer.accelerator=cpu",
    "trainer.max_steps=12",
    "validation.every=4",
    "logger=none",
    "resume=auto",
    "run_dir=run",
    "cache_dir=cache",
]


class Command(NamedTuple):
    """A command to kill, in a folder with the corpora, and for some commands with a finished run in `base`."""

    module: str
    arguments: list[str]
    stages: dict[str, str]
    """'module:function' of each stage; a stage may be a function, a method or a context manager."""
    kept: str
    """A pattern of the files that show how much of the work is done."""
    most_kills: int
    """In a row, before it is left alone; a command that starts over each time would otherwise take long."""
    share: int
    """Of all kills, in percent, if all commands are killed."""
    already_done: str | None = None
    """How the command refuses to replace what it had finished before it was killed."""


class Whole(NamedTuple):
    """An uninterrupted command."""

    contents: dict[str, str]
    lengths: dict[int, float]
    """Seconds of each stage."""
    times: Counter[int]
    """How often each stage was entered."""


FITTING = {
    "preparing": "nmt.commands.{}:prepare",
    "training a tokenizer": "nmt.data.vocabulary:cached_folder",
    "storing the run": "nmt.training.preparation:Prepared.store",
    "reading a checkpoint": "nmt.training.checkpoints:WholeFiles.load_checkpoint",
    "a step": "nmt.training.step:OptimizerStep.training_step",
    "validating": "lightning.pytorch.loops.evaluation_loop:_EvaluationLoop.run",
    "writing a checkpoint": "nmt.training.checkpoints:WholeFiles.save_checkpoint",
    "saving the weights": "nmt.training.loop:save_weights",
    "scoring": "nmt.commands.{}:score",
}
EXPORTING = {
    "loading": "nmt.commands.export:load_run",
    "writing": "nmt.exports.export_run:write_format",
    "comparing": "nmt.exports.export_run:compare",
}
COMMANDS = {
    "train": Command(
        "train",
        [*TINY, *TRAINING],
        {
            **{stage: path.format("train") for stage, path in FITTING.items()},
            "tokenizing": "nmt.data.dataset:cached_folder",
            "keeping a chunk": "nmt.data.tokenizing_processes:_keep",
        },
        "run/checkpoints/*.ckpt",
        6,
        25,
    ),
    "pretrain": Command(
        "pretrain",
        PRETRAINING,
        {
            **{stage: path.format("pretrain") for stage, path in FITTING.items()},
            "tokenizing": "nmt.data.monolingual:cached_folder",
        },
        "run/checkpoints/*.ckpt",
        6,
        15,
    ),
    "prepare": Command(
        "prepare",
        [*(item for item in TINY if not item.startswith("run_dir=")), "cache_dir=cache"],
        {
            "training a tokenizer": "nmt.data.vocabulary:cached_folder",
            "tokenizing": "nmt.data.dataset:cached_folder",
            "keeping a chunk": "nmt.data.tokenizing_processes:_keep",
        },
        "cache/datasets/.*.chunks/*",
        4,
        8,
    ),
    "prepare split": Command(
        "prepare",
        ["split.corpus=train", "split.out=parts", "split.valid=20", "split.test=20"],
        {"writing": "nmt.data.split:atomic_folder"},
        "parts/*",
        4,
        6,
        already_done="error: parts exists; choose a new folder with split.out=, or delete it.",
    ),
    "translate": Command(
        "translate",
        ["run_dir=base", "input=[valid.en,test.en.gz]", "output=out", "shard_lines=1"],
        {
            "opening the job": "nmt.commands.translate:open_job",
            "writing a part": "nmt.decoding.translation_job:JobFile.writing",
            "joining the parts": "nmt.decoding.translation_job:JobFile.join",
        },
        "out/*.parts/[0-9]*",
        6,
        15,
    ),
    "export_attention": Command(
        "export_attention",
        ["run_dir=base", "input=valid.en", "out=maps", "formats=[csv,alignments,viewer]", "overwrite=true"],
        {
            "searching and writing the maps": "nmt.commands.export_attention:export_maps",
            "drawing": "nmt.commands.export_attention:draw_formats",
        },
        "maps/**/*",
        4,
        3,
    ),
    "export ctranslate2": Command(
        "export", ["run_dir=base", "format=ctranslate2", "out=exported"], EXPORTING, "exported/*", 4, 6
    ),
    "export run": Command("export", ["run_dir=base", "format=run", "out=exported"], EXPORTING, "exported/*", 4, 6),
    "export page": Command(
        "export",
        ["run_dir=base", "format=page", "out=page.html", "quantization=int8"],
        {"writing": "nmt.commands.export:export_page"},
        "page.html",
        4,
        3,
    ),
    "average": Command(
        "average",
        ["run_dir=base", "out=averaged", "number=2", "overwrite=true"],
        {},
        "averaged/*",
        4,
        3,
    ),
    "download": Command(
        "download",
        [f"what=[tiny,https://localhost:{PORT}/texts.zip]", "out=data"],
        {"receiving": "nmt.data.fetch:_receive", "extracting": "nmt.commands.download:extract"},
        "data/**/*",
        4,
        10,
    ),
}


class Stages:
    """Tells another process when this one enters and leaves the stages of a command."""

    def __init__(self) -> None:
        self.names = [ANYWHERE]
        self.pipe: int | None = None

    def tell(self, stage: int, enters: bool) -> None:
        if self.pipe is not None:
            os.write(self.pipe, EVENT.pack(stage, enters, time.monotonic()))

    @contextlib.contextmanager
    def within(self, stage: int) -> Iterator[None]:
        self.tell(stage, True)
        try:
            yield
        finally:
            self.tell(stage, False)

    def watch(self, name: str, path: str) -> None:
        """Makes a function tell when it is called and when it returns."""
        if name not in self.names:
            self.names.append(name)
        stage = self.names.index(name)
        module, _, function_path = path.partition(":")
        owner: Any = importlib.import_module(module)
        *parents, attribute = function_path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        function = getattr(owner, attribute)
        if hasattr(function, "watched"):
            return

        @wraps(function)
        def called(*given: Any, **options: Any) -> Any:
            with self.within(stage):
                return function(*given, **options)

        @contextlib.contextmanager
        def entered(*given: Any, **options: Any) -> Iterator[Any]:
            with self.within(stage), function(*given, **options) as value:
                yield value

        @wraps(function)
        def yielded(*given: Any, **options: Any) -> Any:
            with self.within(stage):
                yield from function(*given, **options)

        watched: Any = called
        if inspect.isgeneratorfunction(function):
            watched = yielded
        elif inspect.isgeneratorfunction(inspect.unwrap(function)):
            watched = entered
        watched.watched = True
        setattr(owner, attribute, watched)


class Plan(NamedTuple):
    """A kill: within a stage entered for the `number`th time, after a share of its usual length."""

    stage: int
    number: int
    share: float
    signal: signal.Signals


class Ended(NamedTuple):
    """A process that has ended: its exit code, in which stages the signal came (None: no signal), and what it said."""

    code: int
    stages: list[int] | None
    errors: str
    events: list[tuple[int, bool, float]]


def run(stages: Stages, command: Command, folder: Path, plan: Plan | None, lengths: Mapping[int, float]) -> Ended:
    """Runs a command in a folder, and sends it a signal at the planned moment, if it comes."""
    events_pipe, errors_file = os.pipe(), folder.parent / "errors"
    process = CONTEXT.Process(target=child, args=(stages, command, folder, errors_file, events_pipe))
    process.start()
    os.close(events_pipe[1])
    fcntl.fcntl(events_pipe[0], fcntl.F_SETFL, os.O_NONBLOCK)
    events, rest = list[tuple[int, bool, float]](), b""
    moment, sent, open_, entered = None, None, True, 0
    while open_:
        left = None if moment is None else max(0.0, moment - time.monotonic())
        readable = select.select([events_pipe[0]], [], [], left)[0]
        if readable:
            new = os.read(events_pipe[0], 2**16)
            open_, rest = bool(new), rest + new
            whole = len(rest) // EVENT.size * EVENT.size
            new_events, rest = list(EVENT.iter_unpack(rest[:whole])), rest[whole:]
            events += new_events
            for stage, enters, _ in new_events:
                entered += plan is not None and enters and stage == plan.stage
            if plan is not None and sent is None and moment is None and entered >= plan.number:
                moment = time.monotonic() + plan.share * lengths.get(plan.stage, 0.0)
        if plan is not None and moment is not None and sent is None and time.monotonic() >= moment:
            sent, moment = time.monotonic(), None
            assert process.pid is not None
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, plan.signal)
    os.close(events_pipe[0])
    process.join()
    assert process.exitcode is not None
    inside: list[int] | None = None
    if sent is not None:
        inside = []
        for stage, enters, when in events:
            if when <= sent:
                if enters:
                    inside.append(stage)
                else:
                    inside.remove(stage)
    return Ended(process.exitcode, inside, errors_file.read_text(encoding="utf-8", errors="replace"), events)


def child(stages: Stages, command: Command, folder: Path, errors: Path, pipe: tuple[int, int]) -> None:
    """Becomes the command."""
    os.close(pipe[0])
    null = os.open(os.devnull, os.O_RDWR)
    said = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    for stream, number in ((null, 0), (null, 1), (said, 2)):
        os.dup2(stream, number)
    sys.stdin, sys.stdout = io.TextIOWrapper(io.FileIO(0)), io.TextIOWrapper(io.FileIO(1, "w"))
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w"), line_buffering=True)
    # As nmt.cli does when a command starts.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    leave_on_interrupt()
    os.chdir(folder)
    sys.argv = [f"nmt.{command.module}", *command.arguments]
    stages.pipe = pipe[1]
    with stages.within(0):
        try:
            runpy.run_module(f"nmt.{command.module}", run_name="__main__", alter_sys=True)
        finally:
            # The command has ended; what follows belongs to this study.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)


def lengths_of(ended: Ended) -> dict[int, float]:
    """The usual length of each stage in seconds; of the whole command, from its start to its end."""
    begun, lengths = dict[int, float](), dict[int, list[float]]()
    for stage, enters, when in ended.events:
        if enters:
            begun[stage] = when
        else:
            lengths.setdefault(stage, []).append(when - begun[stage])
    return {stage: statistics.median(seconds) for stage, seconds in lengths.items()}


# What two folders must have in common.

# Of metrics.json and other records: times, speeds, memory, and commits.
TIMES = ("seconds", "per_second", "memory", "git_commit", "inode", "changed", "modified")


def contents(folder: Path) -> dict[str, str]:
    """A digest of each file, and the name of each folder; without the times in them, and without logs."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        # A signal makes a run write last.ckpt, so the one before it is of another step.
        if "logs" in path.relative_to(folder).parts or name.startswith("cache/files") or path.name == "previous.ckpt":
            continue
        digests[name] = "folder" if path.is_dir() else digest(path)
    return digests


def digest(path: Path) -> str:
    if path.suffix == ".ckpt":
        checkpoint = torch.load(path, weights_only=True)
        keys = ("state_dict", "optimizer_states", "lr_schedulers", "target_tokens", "global_step")
        content = io.BytesIO()
        torch.save({key: checkpoint.get(key) for key in keys}, content)
        with zipfile.ZipFile(content) as file:  # without the name of the archive
            parts = [file.read(name) for name in sorted(file.namelist()) if not name.endswith(".data/serialization_id")]
        return hashlib.sha256(b"".join(parts)).hexdigest()
    if path.suffix == ".json":
        try:
            return hashlib.sha256(repr(without_times(json.loads(path.read_bytes()))).encode()).hexdigest()
        except ValueError:
            return "no JSON"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if not any(part in key for part in TIMES)}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def differences(whole: Mapping[str, str], killed: Mapping[str, str]) -> list[str]:
    """In which files two folders differ."""
    return sorted(
        f"{name} {'is left over' if name not in whole else 'is missing' if name not in killed else 'differs'}"
        for name in {**whole, **killed}
        if whole.get(name) != killed.get(name)
    )


# The study.


class Study:
    """Kills commands and counts."""

    def __init__(self, folder: Path, stages: Stages, chance: random.Random) -> None:
        self.folder, self.stages, self.chance = folder, stages, chance
        self.kills, self.places = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        self.kept, self.said = dict[str, list[int]](), Counter[tuple[str, int, str]]()
        self.findings, self.jobs = list[str](), Counter[str]()

    def run(self, names: list[str], kills: int) -> None:
        """Kills commands this many times in all, by turns."""
        wholes = {name: self._whole(name) for name in names}
        while (left := kills - self.kills.total()) > 0:
            name = min(names, key=lambda name: self._kills_of(name) / COMMANDS[name].share)
            begun = time.monotonic()
            done = self._job(name, wholes[name], left)
            seconds = time.monotonic() - begun
            print(f"{self.kills.total()}/{kills}: {name}, {done} in {seconds:.0f} s", file=sys.stderr, flush=True)

    def _kills_of(self, name: str) -> int:
        return sum(count for (other, _), count in self.kills.items() if other == name)

    def _whole(self, name: str) -> Whole:
        command, folder = COMMANDS[name], self.folder / "whole"
        self._fresh(folder)
        ended = run(self.stages, command, folder, None, {})
        if ended.code:
            sys.exit(f"The uninterrupted command ended with {ended.code}:\n{ended.errors}")
        lengths = lengths_of(ended)
        shown = ", ".join(f"{self.stages.names[stage]} {seconds:.3f}" for stage, seconds in lengths.items())
        print(f"{name}: seconds {shown}", file=sys.stderr, flush=True)
        times = Counter(stage for stage, enters, _ in ended.events if enters)
        return Whole(contents(folder), lengths, times)

    def _fresh(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder / "start", folder)

    def _job(self, name: str, whole: Whole, kills: int) -> int:
        """Kills a command a few times, and compares what it has made once it is finished; how often it was killed."""
        command, folder, done = COMMANDS[name], self.folder / "killed", 0
        wanted = min(kills, self.chance.randint(1, command.most_kills))
        self._fresh(folder)
        self.jobs[name] += 1
        history = list[str]()
        for _ in range(20 * wanted):
            plan = None
            if done < wanted:
                stage = self.chance.choice(list(whole.lengths))
                number = self.chance.randint(1, whole.times[stage])
                plan = Plan(stage, number, self.chance.random(), self.chance.choice(SIGNALS))
            ended = run(self.stages, command, folder, plan, whole.lengths)
            last = ended.errors.strip().rpartition("\n")[2]
            if history and ended.code == 2 and last == command.already_done:
                break
            expected_codes = {0}
            if plan is not None and ended.stages is not None:
                expected_codes.add(CODES[plan.signal])
                if not ended.stages[1:]:
                    # Perhaps the command had no handler yet. In a shell, its exit code is the same.
                    expected_codes.add(-plan.signal)
            if ended.code not in expected_codes or "Traceback" in ended.errors or "Exception" in ended.errors:
                self._add_finding(name, f"exit code {ended.code} after {plan} {history}:\n{ended.errors}")
                return done
            if plan is not None and ended.stages is not None and ended.code != 0:
                done += 1
                stages = " in ".join(self.stages.names[stage] for stage in reversed(ended.stages[1:])) or "elsewhere"
                history.append(f"{plan.signal.name} {stages}")
                self.kills[name, plan.signal.name] += 1
                self.places[name, stages] += 1
                self.kept.setdefault(name, []).append(len(list(folder.glob(command.kept))))
                self.said[name, ended.code, "" if ended.code < 0 else re.sub(r"\d+", "N", last)[:150]] += 1
            if ended.code == 0:
                break
        different = differences(whole.contents, contents(folder))
        if different:
            self._add_finding(name, f"{'; '.join(different[:9])} after {history}")
        return done

    def _add_finding(self, name: str, what: str) -> None:
        self.findings.append(f"{name}: {what}")
        print(self.findings[-1], flush=True)

    def report(self) -> None:
        """Prints the tables."""
        print(
            "\n| command | jobs | SIGKILL | SIGTERM | SIGINT | files kept | findings |\n|---|---|---|---|---|---|---|"
        )
        for name in self.jobs:
            counts = [self.kills[name, sent] for sent in ("SIGKILL", "SIGTERM", "SIGINT")]
            kept = statistics.mean(self.kept.get(name, [0]))
            findings = sum(finding.startswith(f"{name}: ") for finding in self.findings)
            print(f"| {name} | {self.jobs[name]} | {' | '.join(map(str, counts))} | {kept:.1f} | {findings} |")
        print("\n| command | killed in | times |\n|---|---|---|")
        for (name, stages), count in sorted(self.places.items(), key=lambda item: (item[0][0], -item[1])):
            print(f"| {name} | {stages} | {count} |")
        print("\n| command | exit code | last words | times |\n|---|---|---|---|")
        for (name, code, words), count in sorted(self.said.items()):
            print(f"| {name} | {137 if code == -signal.SIGKILL else code} | {words} | {count} |")


# A server for downloads.

TEXTS = {"train.en": b"one two three.\n" * 20_000, "train.vi": "một hai ba.\n".encode() * 20_000}


def archive() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name, text in TEXTS.items():
            file.writestr(zipfile.ZipInfo(f"texts/{name}"), text)
    return content.getvalue()


class Slow(BaseHTTPRequestHandler):
    """Sends files in small pieces, and the rest of a file that was interrupted."""

    protocol_version = "HTTP/1.1"
    files: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        content = self.files[self.path.rpartition("/")[2]]
        start = int(re.sub(r"\D", "", self.headers.get("Range", "0")))
        self.send_response(206 if start else 200)
        self.send_header("ETag", '"one"')
        self.send_header("Content-Length", str(len(content) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        with contextlib.suppress(OSError):  # the client was killed
            for begin in range(start, len(content), 20_000):
                self.wfile.write(content[begin : begin + 20_000])
                time.sleep(0.002)

    def log_message(self, format: str, *given: object) -> None:
        pass


def serve(certificate: Path, answer: Any) -> None:
    import ssl

    Slow.files = {**TEXTS, "texts.zip": archive()}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = ThreadingHTTPServer(("localhost", 0), Slow)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    answer.send(server.server_port)
    server.serve_forever()


@contextlib.contextmanager
def download_server(folder: Path) -> Iterator[int]:
    """A server in a process of its own, whose files are the corpus `tiny`; its port."""
    import trustme
    import yaml

    from nmt.commands import download

    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    os.environ |= {"SSL_CERT_FILE": str(folder / "authority.pem"), "NO_PROXY": "localhost", "no_proxy": "localhost"}
    here, there = CONTEXT.Pipe()
    process = CONTEXT.Process(target=serve, args=(folder / "server.pem", there), daemon=True)
    process.start()
    port = here.recv()
    files = {name: {"sha256": hashlib.sha256(text).hexdigest()} for name, text in TEXTS.items()}
    facts = {"license": "CC0", "citation": "nobody", "url": f"https://localhost:{port}/", "files": files}
    (folder / "configs" / "corpus").mkdir(parents=True)
    (folder / "configs" / "corpus" / "tiny.yaml").write_text(yaml.safe_dump(facts), encoding="utf-8")
    download.CONFIGS = folder / "configs"
    try:
        yield port
    finally:
        process.kill()
        process.join()


def prepare(folder: Path, stages: Stages) -> None:
    """What every job begins with: corpora, and a finished run."""
    import gzip

    start = folder / "start"
    start.mkdir()
    write_corpora(start)
    (start / "test.en.gz").write_bytes(gzip.compress((start / "valid.en").read_bytes(), mtime=0))
    os.utime(start / "test.en.gz", (1e9, 1e9))
    base = Command("train", [*TINY, *TRAINING, "run_dir=base", "cache_dir=../base_cache"], {}, "", 0, 0)
    ended = run(stages, base, start, None, {})
    if ended.code:
        sys.exit(f"The first run ended with {ended.code}:\n{ended.errors}")


def preload() -> None:
    """Imports what the commands import, and composes their configurations."""
    from nmt.cli.compose import configuration

    for command in COMMANDS.values():
        arguments = [item.replace(PORT, "1") for item in command.arguments]
        configuration(command.module, arguments)
        importlib.import_module(f"nmt.commands.{command.module}")
    for name in ("nmt.cli.command", "nmt.cli.sweep", "ctranslate2", "matplotlib.pyplot", "tensorboard"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def tokenize_small_chunks() -> None:
    """Makes commands tokenize in two processes, and keep chunks, although the corpora are tiny."""
    from nmt.data import dataset, tokenizing_processes

    dataset._CHUNK, tokenizing_processes._FEW = 17, 34
    dataset.number_of_processes = lambda: 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60, help="kills of all commands (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments (default: %(default)s)")
    parser.add_argument("--commands", nargs="*", default=list(COMMANDS), choices=COMMANDS)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    preload()
    tokenize_small_chunks()
    stages = Stages()
    for name in options.commands:
        for stage, path in COMMANDS[name].stages.items():
            stages.watch(stage, path)
    with TemporaryDirectory() as name:
        folder = Path(name)
        with download_server(folder) as port:
            prepare(folder, stages)
            study = Study(folder, stages, random.Random(options.seed))
            COMMANDS["download"].arguments[0] = COMMANDS["download"].arguments[0].replace(PORT, str(port))
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            with contextlib.suppress(KeyboardInterrupt):
                study.run(options.commands, options.kills)
    study.report()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    print(
        f"\n{sum(study.kills.values())} kills, {sum(study.jobs.values())} jobs, {len(study.findings)} findings;", end=""
    )
    print(f" {sum(usage.ru_utime + usage.ru_stime for usage in used):.0f} CPU seconds; seed {options.seed}")
    sys.exit(bool(study.findings))


if __name__ == "__main__":
    main()
