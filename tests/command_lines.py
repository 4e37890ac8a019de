"""Hostile but plausible command lines of every command, and the law that each of them must keep.

The exit code is 0, 2 for a mistake of the user, or 1 for a failure of the machine; 143 if the command was still
working after a few seconds. No traceback; a mistake is one sentence of a readable length that names what was typed and
says what to do; standard output has results only; nothing outside the output folder changes, and what existed before a
failed command is as it was. tests/test_command_lines.py tries a few, tests/soak/command_lines.py thousands.

They run in this process, through the module that `python -m` runs. A hook of the interpreter stands in for what a
machine would do: files named 'unreadable' cannot be opened, folders outside the world cannot be written to, and there
is no network.
"""

import contextlib
import errno
import gc
import gzip
import logging
import os
import random
import re
import resource
import runpy
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from fuzzing import WORDS
from tiny import TINY, write_corpora

from nmt.cli.arguments import SWEEP
from nmt.cli.compose import configuration
from nmt.config.keys import leaves
from nmt.config.nodes import CONFIGS
from nmt.errors import printable

COMMANDS = sorted(file.stem for file in CONFIGS.glob("*.yaml"))
SECONDS = 8
"""After this much time of the processor, or five times as much of the clock, a command gets SIGTERM."""
MEMORY = 12 * 2**30
TRAINED = [*TINY, "trainer.max_steps=2", "validation.every=1", "logger=none"]
NEW_RUN = [argument for argument in TRAINED if not argument.startswith("run_dir=")]
ENCODER = [
    *("data.train=[train.en,train.vi]", "data.valid=[valid.en]", "tokenizer.size=293", "model.dim=12"),
    *("model.ffn_dim=19", "model.num_heads=2", "model.num_layers=1", "batching.batch_tokens=101", "schedule.warmup=7"),
    *("trainer.accelerator=cpu", "trainer.max_steps=2", "validation.every=1", "logger=none"),
]

# Right command lines of each command, in the folder that World makes.
RIGHT: dict[str, list[list[str]]] = {
    "ablate_attention": [
        ["run_dir=run", "sentences=2", "ways=[off]"],
        ["run_dir=luong", "source=in.en", "reference=in.vi", "out=new", "bleu=false"],
    ],
    "align": [
        ["run_dir=run"],
        ["run_dir=run", "source=test.en", "reference=test.vi", "alignment=test.en-vi.align", "out=new"],
    ],
    "attribute": [["run_dir=run", "input=in.en", "out=new", "formats=[csv]", "method=gradient_x_input"]],
    "average": [["run_dir=run"], ["run_dir=run", "checkpoints=best", "out=new"]],
    "compare": [
        ["run_dirs=[run,luong]"],
        ["outputs=[in.vi,in.vi]", "reference=in.vi"],
        ["run_dirs=[run]", "outputs=[test.vi]"],
    ],
    "download": [["envi"], ["hub:Helsinki-NLP/opus-100"], ["iwslt15", "from=data"], ["https://example.org/a.zip"]],
    "draw_attention": [["maps=maps", "formats=[csv,alignments]"], ["maps=maps", "out=new", "lines=[1]"]],
    "evaluate": [["run_dir=run"], ["run_dir=[run,run2]", "source=in.en", "reference=in.vi", "out=new"]],
    "explain": [["model=luong", "scorer=dot"], ["run_dir=run"], []],
    "export": [["run_dir=run", "format=ctranslate2", "out=new", "source=in.en", "reference=in.vi"]],
    "export_attention": [["run_dir=run", "input=in.en", "out=new", "formats=[csv]"]],
    "prepare": [NEW_RUN, ["split.corpus=train", "split.valid=5", "split.test=5", *NEW_RUN]],
    "pretrain": [[*ENCODER, "run_dir=new"]],
    "score": [["run_dir=run", "source=in.en", "target=in.vi"]],
    "serve": [["run_dirs=[run]", "port=0"], ["run_dirs=[.]", "port=0"]],
    "train": [[*NEW_RUN, "run_dir=new"], [*NEW_RUN, "run_dir=run", "resume=true"], [*NEW_RUN, "run_dir=run"]],
    "translate": [["run_dir=run"], ["run_dir=[run,run2]", "prefixes=in.vi", "format=jsonl"], ["run_dir=luong"]],
}
# How often a command is tried: training takes longest.
WEIGHTS = {"translate": 3, "evaluate": 2, "score": 2, "train": 2}

ODD_NAMES = ["a,b.en", "đường dẫn.en", "it's.en", "[x].en", "x=y.en", "-dash.en", "two\nlines.en", "😀.en", "#a.en"]
FILES: dict[str, bytes] = {
    "empty.en": b"",
    "blank.en": b"\n\n\n",
    "spaces.en": b" \n\t\n\xc2\xa0\n",
    "binary.en": bytes(range(256)) * 20,
    "latin1.en": "thé\nà\nnoël\n".encode("latin-1"),
    "utf16.en": "one\ntwo\nthree\n".encode("utf-16"),
    "bom.en": b"\xef\xbb\xbfone two three.\r\n\r\nthree\r\n",
    "nul.en": b"one\0two\n\nthree\n",
    "no_end.en": b"one two three.\n\nthree",
    "separators.en": "one\u2028two\u0085three\x0bfour\x1c\n\nthree\n".encode(),
    "marks.en": "\u202eone\u202c \u05d0\u0628\ne\u0301\u0323".encode() + "\n😀👩‍👩‍👧\n".encode(),
    "long.en": b"one " * 25_000 + b"\n\nthree\n",
    "word.en": b"x" * 100_000 + b"\n\nthree\n",
    "many.en": b"one two.\n" * 50,
    "one.en": b"one\n",
    "unreadable.en": b"one\n\nthree\n",
    "unreadable/in.en": b"one\n",
    "links.align": b"0-0 1-1\n\n0-0\n",
    "wrong.align": b"9-9\n0-0\nx\n",
    "in.doc": b"a\na\nb\n",
    "wrong.doc": b"a\n",
    "packed.en.gz": gzip.compress(b"one\n"),
    "packed.vi.gz": gzip.compress(b"mot\n"),
    "tabbed.tsv": b"one\tmot\n",
    "zipped.zst": b"(\xb5/\xfd\0X\0\0\0",
    "damaged/config.yaml": b"model: [\n",
    "damaged/metrics.json": b"{",
    "strange/config.yaml": b"\xef\xbb\xbfa: 1\n",
    "strange/metrics.json": b"[]",
    "mismatched.en": b"one\ntwo\n",
    "mismatched.vi": "một\n".encode(),
    "upper.EN": b"one\n",
    "upper.VI": b"mot\n",
    "keys.txt": b"\xef\xbb\xbfabc\r\n",
    **{name: b"one two three.\n\nthree\n" for name in ODD_NAMES},
}
PATHS = [
    *FILES,
    *("in.en", "in.vi", "train", "test", "train.en", "run", "run2", "luong", "started", "encoder", "maps", "packed"),
    *("tabbed", "mismatched", "upper", "sample:train", "sample:nothing", "damaged", "strange", "unreadable", ".", ".."),
    *("/", "/etc/passwd", "/dev/null", "/dev/stdin", "/dev/zero", "/dev/full", "/proc/self/mem", "/opt/x", "fifo"),
    *(
        "broken_link",
        "loop",
        "run/",
        "./run",
        "run//",
        "run/config.yaml",
        "run/model.safetensors",
        "in.en/below",
        "~/x",
    ),
    *("missing", "missing/below", "x" * 300, "a/" * 3000, "[run,run2]", "[run,run]", "[in.en,in.vi]", "run,run2", "[]"),
    *("new", "new/below", "RUN", "run ", " run", "file:///etc/passwd", "https://example.org/x", "nul", "run\\", "%s"),
    "../../x",
]
VALUES = [
    *("", "null", "true", "false", "True", "yes", "off", "0", "1", "2", "-1", "-0", "0.5", "1.0", "1e999", "-1e999"),
    *("nan", "inf", "1e-320", "99999999999", "2147483647", "2147483648", "9223372036854775808", "9" * 60, "9" * 5000),
    *(
        "0x10",
        "1_000",
        "1e3",
        ".5",
        "5.",
        "+1",
        "٣",
        "１２",
        "½",
        "1,2",
        "[1,2]",
        "[1,[2]]",
        "[null]",
        "['']",
        "[]",
        "{}",
    ),
    *("{a:1}", "{_target_:os.getcwd}", "[1", "{a", "???", "'", '"', "'a'", '"a"', "'a\"", "a b", " ", "\t", "\n"),
    *("é😀", "e\u0301\u0323", "\u202eabc", "\u200b", "\u2028", "\x1b[31m", "\udcff", "x" * 5000, "~", "!!int 3"),
    *(
        "*a",
        "&a 1",
        "# x",
        "a#b",
        "a: b",
        "a=b",
        "=",
        "\\",
        "\\n",
        "%s",
        "{0}",
        "${seed}",
        "${oc.env:HOME}",
        "${",
        "$HOME",
    ),
    *(
        "${device}",
        "<<",
        "-",
        "--",
        "all",
        "auto",
        "none",
        "None",
        "cpu",
        "cuda",
        "cuda:9",
        "mps",
        "beam",
        "en-vi",
        "vi",
    ),
    *("90s", "1h", "range(1,3)", "choice(1,2)", "glob(*)", "interval(0,1)", "shuffle(1,2)", "a,b", "a,,b", ",", "1,,2"),
    "range(0,99999999999)",
    *("32-true", "bf16-mixed", "16", "cross", "test", "valid", "train", "png", "[png,png]", "[svg]", "[viewer]"),
]
INPUTS = [
    *("empty.en", "blank.en", "spaces.en", "binary.en", "latin1.en", "utf16.en", "bom.en", "nul.en", "no_end.en"),
    *("separators.en", "marks.en", "long.en", "word.en", "in.en", "in.en", "many.en"),
]
FLAGS = [
    *("--help", "-h", "--version", "-m", "--cfg", "--info", "--resolve", "-p", "--hydra-help", "--run_dir", "-x", "--"),
    *("-", "--cfg=job", "--help=train", "--config-dir=/etc", "--config-name=x", "-cd=x", "--shell-completion", "-e=1"),
]
WORDS_ALONE = [
    *("run", "model", "", " ", "=", "=1", "a b", "\u202e", "{", "[", "'", "+", "~", "~seed", "+=", "é=1", "all", "job"),
    *(
        "hydra.run.dir=.",
        "hydra.job.chdir=true",
        "hydra/launcher=basic",
        "hydra=x",
        "_target_=os.getcwd",
        "seed",
        "1=1",
    ),
    *("run_dir:run", "run_dir", "run_dir =run", "run_dir= run", "RUN_DIR=run", "model.=1", ".model=1", "model..dim=3"),
]
# More processes, or another place for torch's own files, are tried by other tests.
NOT_CHANGED = re.compile(r"trainer\.(devices|num_nodes|strategy|_target_)|hydra|.*workers")
FOLDERS = ("out", "output", "run_dir", "cache_dir", "sweep_dir", "split.out", "split.corpus", "maps", "hydra.run.dir")
REMEDY = re.compile(
    r"\b(write|set|choose|name|use|add|check|leave|give|fix|run|quote|replace|try|wait|install|drop|remove|change|must|"
    r"lower|shorten|move|free|expected|needs?|pass|put|make|download|delete|repeat|take|train|copy|convert|split|resume|"
    r"choices|start|available|translate|known|unpack|did you mean|consists of)\b",
    re.IGNORECASE,
)
# The documented reasons to end with 1: the machine, a check that the user asked for, and training that diverges.
FAILURE = re.compile("memory|network connection|cannot be read|from the expected|lower optimizer.lr")


class CommandLine(NamedTuple):
    """A command, its arguments, and the file that is its standard input, or 'closed'."""

    name: str
    arguments: tuple[str, ...]
    stdin: str

    def __str__(self) -> str:
        typed = [argument if len(argument) < 200 else f"{argument[:200]}..." for argument in self.arguments]
        return f"{shlex.join(['python', '-m', f'nmt.{self.name}', *typed])!a} < {self.stdin}"


class Ended(NamedTuple):
    """What a command line did; `created` and `changed` are paths relative to `folder`, `outside` are absolute."""

    code: int
    output: str
    errors: str
    created: frozenset[str]
    changed: frozenset[str]
    outside: frozenset[str]
    folder: str = os.sep
    """The world: the folder in which it ran."""


class Stopped(BaseException):
    """The command wanted to start another Python, which no hook would watch."""


# Which lines are tried.


def command_lines(number: int, seed: int = 1, commands: Sequence[str] = COMMANDS) -> Iterator[CommandLine]:
    """The right command lines of the commands, and then others made from them."""
    generator = random.Random(f"command lines {seed}")
    keys = {name: sorted(leaves(configuration(name, []))) for name in commands}
    weights = [WEIGHTS.get(name, 1) for name in commands]
    right = [CommandLine(name, tuple(line), "in.en") for name in commands for line in RIGHT[name]]
    yield from right[:number]
    for _ in range(number - len(right)):
        name = generator.choices(list(commands), weights)[0]
        line = list(generator.choice(RIGHT[name]))
        for _ in range(generator.choice((0, 1, 1, 1, 1, 2, 3))):
            change(line, keys[name], generator)
        stdin = generator.choice([*INPUTS, "closed"]) if name == "translate" else "empty.en"
        yield CommandLine(name, tuple(line), stdin)


def change(line: list[str], keys: Sequence[str], generator: random.Random) -> None:
    """Changes a line in one way."""
    at = generator.randrange(len(line)) if line else 0
    match generator.randrange(14):
        case 0 | 1 | 2 | 3 if line:  # another value
            key, equals, _ = line[at].partition("=")
            if equals and not NOT_CHANGED.match(key):
                line[at] = f"{key}={value(key, generator)}"
        case 4 | 5 | 6 | 7:  # another key
            key = generator.choice(keys)
            if not NOT_CHANGED.match(key):
                line.append(f"{key}={value(key, generator)}")
        case 8 if line:
            del line[at]
        case 9 if line:  # the same key once more
            key, _, former = line[at].partition("=")
            line.append(f"{key}={generator.choice([former, value(key, generator)])}")
        case 10 if line:  # a misspelled key
            key, _, former = line[at].partition("=")
            cut = generator.randrange(len(key) + 1)
            misspelled = generator.choice(
                (key[:cut] + key[cut + 1 :], key.upper(), f"+{key}", f"++{key}", f"~{key}", f"{key}@cross", f"{key}.x",
                 f"{key} ", f" {key}", f"--{key}", key[:cut] + "é" + key[cut:], key.replace("_", "-"))
            )  # fmt: skip
            line[at] = f"{misspelled}={former}"
        case 11:
            line.insert(at, generator.choice(FLAGS))
        case 12:
            line.insert(at, generator.choice(WORDS_ALONE))
        case 13:  # a sweep
            key = generator.choice([*keys, *(argument.partition("=")[0] for argument in line)])
            if not NOT_CHANGED.match(key):
                values = [value(key, generator) for _ in range(generator.choice((1, 2)))]
                line += ["-m", f"{key}={','.join(values)}"]
                if generator.random() < 0.5:
                    line.append(f"sweep_dir={generator.choice(('new', *PATHS))}")


def value(key: str, generator: random.Random) -> str:
    """A value that a user could type for a key by mistake."""
    group = CONFIGS / key.partition("@")[0]
    if group.is_dir() and generator.random() < 0.5:
        return generator.choice([file.stem for file in sorted(group.glob("*.yaml"))])
    of_path = re.search(
        r"dir|file|input|source|target|reference|out|data|maps|prefix|document|align|from|corpus|keys", key
    )
    return generator.choice(PATHS if generator.random() < (0.8 if of_path else 0.1) else VALUES)


# Where they run.


class World:
    """A folder with a corpus, runs, maps and hostile files, which is as new before every command."""

    def __init__(self, folder: Path) -> None:
        self.original, self.path = folder / "original", folder / "world"
        self.temporary = folder / "temporary"
        self.original.mkdir(parents=True)
        self.temporary.mkdir()
        write_corpora(self.original)
        for name, content in FILES.items():
            (self.original / name).parent.mkdir(exist_ok=True)
            (self.original / name).write_bytes(content)
        (self.original / "in.en").write_text("one two three.\n\nthree\n")
        (self.original / "in.vi").write_text("một hai ba.\n\nba\n", encoding="utf-8")
        tokens = len((self.original / "test.en").read_text().split())
        (self.original / "test.en-vi.align").write_text(" ".join(f"{i}-{i}" for i in range(tokens)) + "\n")
        (self.original / "broken_link").symlink_to("nowhere")
        (self.original / "loop").symlink_to("loop")
        os.mkfifo(self.original / "fifo")
        self.streams = [tempfile.TemporaryFile(dir=folder) for _ in range(3)]  # noqa: SIM115
        self.state: dict[str, tuple[int, ...]] = {}
        self.path = self.original
        small = ["model.embedding_dim=6", "model.encoder_dim=8", "model.decoder_dim=8", "model.num_layers=1"]
        recurrent = [argument for argument in NEW_RUN if not argument.startswith("model")]
        for name, arguments in {
            "run": [*NEW_RUN, "run_dir=run"],
            "run2": [*NEW_RUN, "run_dir=run2", "seed=2"],
            "luong": [*recurrent, "model=luong", *small, "run_dir=luong"],
            "encoder": [*ENCODER, "run_dir=encoder"],
        }.items():
            self._prepare("pretrain" if name == "encoder" else "train", arguments)
        self._prepare("export_attention", ["run_dir=run", "input=in.en", "out=maps", "formats=[csv]"])
        shutil.copytree(self.original / "run", self.original / "started")
        for name in ("metrics.json", "model.safetensors"):
            (self.original / "started" / name).unlink()
        self.path = folder / "world"

    def close(self) -> None:
        for stream in self.streams:
            stream.close()

    def _prepare(self, name: str, arguments: Sequence[str]) -> None:
        ended = self.run(CommandLine(name, tuple(arguments), "empty.en"), seconds=100)
        if ended.code:
            raise AssertionError(f"{name} {arguments}: {ended.errors}")

    def renew(self) -> dict[str, tuple[int, ...]]:
        """Makes the world again if something has changed."""
        if not self.state:
            shutil.rmtree(self.path, ignore_errors=True)
            shutil.copytree(self.original, self.path, symlinks=True, ignore=shutil.ignore_patterns("fifo"))
            os.mkfifo(self.path / "fifo")
            self.state = self._state()
        return self.state

    def _state(self) -> dict[str, tuple[int, ...]]:
        """Every path below the world, with what shows that a file was written to."""
        state = {}
        for folder, _, names in os.walk(self.path):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                found = os.lstat(path)
                times = () if os.path.isdir(path) else (found.st_size, found.st_mtime_ns, found.st_ino)
                state[os.path.relpath(path, self.path)] = (found.st_mode, *times)
        return state

    def run(self, line: CommandLine, seconds: float = SECONDS) -> Ended:
        """Runs a command line in the world, as `python -m` would."""
        before = self._state() if self.path == self.original else self.renew()
        outside = set[str]()
        with (
            contextlib.chdir(self.path),
            self._streams(line.stdin),
            _guarded((self.path, self.temporary), outside),
            _restored(seconds, self.temporary),
        ):
            code = _exit_code(line)
        texts = []
        for stream in self.streams[1:]:
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
        after = self._state()
        if after != before:
            self.state = {}
        return Ended(
            code,
            *texts,
            frozenset(path for path in after if path not in before),
            frozenset(path for path, state in before.items() if after.get(path) != state),
            frozenset(outside),
            str(self.path),
        )

    @contextlib.contextmanager
    def _streams(self, stdin: str) -> Iterator[None]:
        """The standard streams of the process are files, so that what libraries print is seen too."""
        for stream in self.streams:
            stream.seek(0)
            stream.truncate()
        if stdin != "closed":
            self.streams[0].write((self.original / stdin).read_bytes())
            self.streams[0].seek(0)
        former = sys.stdin, sys.stdout, sys.stderr
        for stream in former[1:]:
            stream.flush()
        copies = [os.dup(number) for number in range(3)]
        try:
            for number, stream in enumerate(self.streams):
                os.dup2(stream.fileno(), number)
            sys.stdin = None if stdin == "closed" else open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", encoding="utf-8", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
            yield
            sys.stdout.flush()
        finally:
            sys.stdin, sys.stdout, sys.stderr = former
            for number, copy in enumerate(copies):
                os.dup2(copy, number)
                os.close(copy)


def _exit_code(line: CommandLine) -> int:
    sys.argv = [f"nmt.{line.name}", *line.arguments]
    try:
        # The hook that checks annotations compiles modules in its own way, and runpy would file them as the usual ones.
        sys.dont_write_bytecode = True
        runpy.run_module(f"nmt.{line.name}", run_name="__main__", alter_sys=True)
    except SystemExit as error:
        if isinstance(error.code, int):
            return error.code
        print(error.code, file=sys.stderr)
        return 1
    except Stopped:
        return 143
    return 0


_guards: list[tuple[tuple[Path, ...], set[str]]] = []
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CHANGES = {
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rmdir": 1,
    "os.rename": 2,
    "os.symlink": 2,
    "os.link": 2,
    "os.truncate": 1,
}
_ALLOWED = ("/dev/null", "/dev/shm", "/dev/full", "/proc/self")


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _guards:
        return
    folders, outside = _guards[-1]
    if event == "subprocess.Popen" and os.fsdecode(arguments[0]) == sys.executable:
        raise Stopped
    if event == "socket.connect" or (event == "socket.getaddrinfo" and arguments[0] not in ("127.0.0.1", None)):
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    if event == "open":
        path, mode, options = arguments
        if isinstance(path, int):
            return
        writes = bool(options & _WRITES) or (isinstance(mode, str) and bool(set(mode) & set("wax+")))
        if "unreadable" in os.fsdecode(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fsdecode(path))
        paths = [path] if writes else []
    elif event in _CHANGES:
        paths = [path for path in arguments[: _CHANGES[event]] if not isinstance(path, int)]
    else:
        return
    for path in paths:
        place = os.path.abspath(os.fsdecode(path))
        if any(_is_in(place, str(top)) for top in (*folders, *_ALLOWED)) or "__pycache__" in place:
            continue
        outside.add(place)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fsdecode(path))


@contextlib.contextmanager
def _guarded(folders: tuple[Path, ...], outside: set[str]) -> Iterator[None]:
    if not hasattr(_guarded, "hooked"):
        sys.addaudithook(_audit)
        _guarded.hooked = True  # type: ignore[attr-defined]
    _guards.append((folders, outside))
    try:
        yield
    finally:
        _guards.pop()


@contextlib.contextmanager
def _restored(seconds: float, temporary: Path) -> Iterator[None]:
    """What a command leaves behind in its process is put back, and a command that works on and on is stopped."""
    from nmt.commands import serve  # noqa: F401  its module must exist before its server is replaced
    from nmt.serving import connections

    argv, environment, handlers = (
        sys.argv[:],
        dict(os.environ),
        {n: signal.getsignal(n) for n in (1, 2, 10, 12, 14, 15)},
    )
    limits, run = resource.getrlimit(resource.RLIMIT_AS), connections.LimitedServer.run
    sleep, tempdir = time.sleep, tempfile.tempdir
    tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
    loggers = logging.getLogger(), logging.getLogger("nmt")
    levels, root = [logger.level for logger in loggers], loggers[0].handlers[:]

    began = time.process_time(), time.monotonic()

    def stop(number: int, frame: FrameType | None) -> None:
        if time.process_time() - began[0] >= seconds or time.monotonic() - began[1] >= 5 * seconds:
            os.kill(os.getpid(), signal.SIGTERM)

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(143)

    connections.LimitedServer.run = lambda self, sockets: [listening.close() for listening in sockets]  # type: ignore
    time.sleep = lambda seconds: sleep(min(seconds, 0.01))  # before another try of a download
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, limits[1]))
    signal.signal(signal.SIGTERM, end)  # a command that has no handler yet must not take this process with it
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds / 4, seconds / 4)
    logging.getLogger().handlers = []
    try:
        with warnings.catch_warnings():
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        connections.LimitedServer.run = run  # type: ignore[method-assign]
        loggers[0].handlers = root
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        time.sleep, tempfile.tempdir = sleep, tempdir
        sys.argv = argv
        os.environ.clear()
        os.environ.update(environment)
        gc.unfreeze()


# The law.


def faults(line: CommandLine, ended: Ended) -> list[str]:
    """How the end of a command breaks the law; none if it keeps it."""
    found = []
    last = ended.errors.rstrip("\n").rpartition("\n")[2]
    helped = bool(
        {"--help", "-h", "--version", "--cfg", "-c", "--info", "-i", "--hydra-help"}
        & {a.partition("=")[0] for a in line.arguments}
    )
    sweep = bool(SWEEP & set(line.arguments))
    if ended.code not in (0, 1, 2, 143):
        found.append(f"exit code {ended.code}")
    if "Traceback (most recent" in ended.errors + ended.output:
        found.append("a traceback")
    if ended.code in (1, 2):
        message = last if not sweep else next((row for row in reversed(ended.errors.split("\n")) if "error" in row), "")
        if not re.match(r"error( in .*)?: ", message):
            found.append("no message")
        else:
            found += _faults_of_message(line, message.partition(": ")[2])
        if ended.output and not (helped or sweep or line.name in ("translate", "score")):
            found.append("results of a command that failed")
    if ended.code == 1 and not FAILURE.search(ended.errors):
        found.append("a failure")
    if re.search(r"\.py:\d+|Warning:|\bDEBUG\b", ended.errors) and "a traceback" not in found:
        found.append("a library's words")
    if re.search(r"^(error|warning|Traceback)\b", ended.output, re.MULTILINE) and not helped:
        found.append("messages among the results")
    if not helped and re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", ended.errors.replace("\r", "")):
        found.append("control characters")
    allowed = _allowed(line)
    new = ended.created if "." in allowed else set()  # of the world itself, only what was not there before
    for path in sorted((ended.created | ended.changed) - new):
        if not any(_is_in(path, top) or _is_in(top, path) for top in allowed):
            found.append("a change outside of the output")
    typed = [os.path.normpath(os.path.join(ended.folder, top)) for top in allowed if top.startswith(("/", ".."))]
    for path in ended.outside:  # a command may try whether it can write to the folder in which it makes another
        if not any(_is_in(path, top) or _is_in(top, path) for top in typed):
            found.append("a write outside of the world")
    resumes = any(argument.startswith(("resume=", "overwrite=")) for argument in line.arguments)
    if ended.code in (1, 2) and ended.changed - {"."} and not (resumes or sweep):
        found.append("an output changed by a command that failed")
    if any(path.endswith(".part") for path in ended.created):
        found.append("a part of a file")
    return sorted(set(found))


def _faults_of_message(line: CommandLine, message: str) -> Iterator[str]:
    if not 15 <= len(message) <= 2100:
        yield "a message of unreadable length"
    if word := WORDS.search(message):
        yield f"words of the interpreter: {word[0]}"
    if message != printable(message):
        yield "an unprintable message"
    typed = [
        part
        for argument in line.arguments
        for part in (
            argument,
            argument.partition("=")[2],
            argument.partition("=")[2].rstrip("/"),
            *re.split(r"[=,:\[\]{}@+~.'\"]+", argument),
        )
    ]
    named = {line.name, "run_dir", "input", "out", "format", "maps", "source", "target", "tandard", "what"}
    shown = [printable(part)[:40] for part in typed if part] or ["''"]
    if "" in line.arguments:
        shown.append("''")
    resolved = any("${" in argument for argument in line.arguments)  # the message names the resolved value
    if not resolved and not any(part in message for part in [*shown, *named]):
        yield "a message that names nothing"
    if not REMEDY.search(message):
        yield "a message without a remedy"


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _allowed(line: CommandLine) -> list[str]:
    """The paths that a command line may create or change, with all below them."""
    tops = {
        "train": ["runs"],
        "prepare": ["runs"],
        "pretrain": ["runs"],
        "compare": ["comparison"],
        "download": ["data"],
    }
    paths = tops.get(line.name, [])
    # engine=auto is the default.
    if line.name in ("translate", "serve") and not any("engine=" in argument for argument in line.arguments):
        paths.append("runs/cache")
    for argument in line.arguments:
        key, _, typed = argument.lstrip("+").partition("=")
        parts = [typed, *typed.split(","), *re.split(r"[\[\],]", typed)]
        parts += [part.strip("'\"") for part in parts]  # with quotes that Hydra keeps, and without
        if SWEEP & set(line.arguments):
            parts += [part.strip() for part in parts]  # around the values of a sweep, spaces mean nothing
        for part in dict.fromkeys(parts):
            part = os.path.normpath(part) if part else ""
            if part and key in FOLDERS:
                paths.append("." if "${" in part else part)  # the value of another key, whatever that is
            if not part or part == ".":
                continue
            if key == "run_dir" and line.name == "average":
                paths.append(f"{part}_average")
            if key == "split.corpus":
                paths.append(f"{part}_split")
            if key in ("run_dir", "run_dirs"):
                paths += [f"{part}/evaluation", f"{part}/exports"]
    if line.name == "serve":
        paths += [f"{run}/exports" for run in ("run", "run2", "luong", "started")]
    return paths
