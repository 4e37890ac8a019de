"""A corpus is the same however many processes tokenize it, and however often they are interrupted."""

import operator
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nmt.config.direction import Direction
from nmt.data import dataset, tokenizing_processes
from nmt.data.chunks import Chunk, TextFilters, TokenizedChunk, Tokenizing
from nmt.data.filters import Filters, TextFilter
from nmt.data.tokenizing_processes import ProcessEnded, number_of_processes, tokenized_chunks
from nmt.errors import CheckFailed, Mistake
from nmt.files import locked
from nmt.paths import existing_file
from nmt.text import TokenizerPair


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "_CHUNK", 17)
    monkeypatch.setattr(tokenizing_processes, "_FEW", 34)


@pytest.fixture
def prefixes(write: Callable[..., str], corpus: str, tmp_path: Path) -> list[str]:
    """Corpora with duplicates across chunks and corpora, empty and long lines, and documents."""
    english = Path(f"{corpus}.en").read_text().splitlines()
    vietnamese = Path(f"{corpus}.vi").read_text(encoding="utf-8").splitlines()
    again = write("again", [*english[50:150], "", "e\u0301", "a b c d"], [*vietnamese[50:150], "x", "y", "z"])
    texts = write("texts", english[100:160] * 2, vietnamese[100:160] * 2)
    (tmp_path / "texts.doc").write_text("".join(f"{line // 9}\n" for line in range(120)))
    return [corpus, again, texts]


def built(prefixes: list[str], pair: TokenizerPair, cache: Path, documents: bool = False) -> tuple[bytes, str]:
    filters = Filters(max_tokens=30, max_ratio=2.5)
    _, report = dataset.training_dataset(prefixes, Direction("en", "vi"), pair, filters, [], cache, documents=documents)
    [file] = cache.rglob("pairs.arrow")
    assert not [*cache.rglob("*.chunks")]
    return file.read_bytes(), str(report)


@pytest.mark.parametrize("documents", [False, True])
def test_two_processes_write_the_bytes_of_one_and_of_none(
    prefixes: list[str],
    pair: TokenizerPair,
    tmp_path: Path,
    documents: bool,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    found = []
    for number, few in ((1, 10**6), (1, 34), (1 if documents else 2, 34)):
        monkeypatch.setattr(tokenizing_processes, "_FEW", few)
        monkeypatch.setattr(dataset, "number_of_processes", lambda number=number: number)
        found.append(built(prefixes, pair, tmp_path / f"cache{len(found)}", documents))
    assert found[0] == found[1] == found[2]
    assert "duplicate" in found[0][1]
    assert "empty" in found[0][1]
    assert capfd.readouterr().err == ""


def test_finished_chunks_are_not_tokenized_again(
    prefixes: list[str], pair: TokenizerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "number_of_processes", lambda: 1)
    whole = built(prefixes, pair, tmp_path / "whole")
    calls, tokenize = [], Tokenizing.__call__

    def stops(self: Tokenizing, chunk: Chunk) -> TokenizedChunk:
        if len(calls) == 7:
            raise KeyboardInterrupt
        calls.append(chunk)
        return tokenize(self, chunk)

    monkeypatch.setattr(Tokenizing, "__call__", stops)
    with pytest.raises(KeyboardInterrupt):
        built(prefixes, pair, tmp_path / "cache")
    [kept] = (tmp_path / "cache" / "datasets").iterdir()
    files = sorted(kept.iterdir())
    assert len(files) == 7
    # A chunk is whole or does not count.
    files[0].write_bytes(files[0].read_bytes()[:-1])
    (kept / "torn.part").touch()
    monkeypatch.setattr(Tokenizing, "__call__", lambda self, chunk: calls.append(chunk) or tokenize(self, chunk))
    assert built(prefixes, pair, tmp_path / "cache") == whole
    assert len(calls) - len({chunk.digest for chunk in calls}) == 1


@pytest.mark.parametrize(("error", "kept"), [(CheckFailed("The disk cannot be read."), 7), (Mistake("No."), 0)])
def test_only_a_mistake_deletes_the_finished_chunks(
    prefixes: list[str],
    pair: TokenizerPair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    kept: int,
) -> None:
    """The same command would fail again; but another try may read the disk."""
    calls, tokenize = [], Tokenizing.__call__

    def fails(self: Tokenizing, chunk: Chunk) -> TokenizedChunk:
        if len(calls) == 7:
            raise error
        calls.append(chunk)
        return tokenize(self, chunk)

    monkeypatch.setattr(dataset, "number_of_processes", lambda: 1)
    monkeypatch.setattr(Tokenizing, "__call__", fails)
    with pytest.raises(type(error)):
        built(prefixes, pair, tmp_path / "cache")
    assert len([file for file in tmp_path.glob("cache/datasets/.*.chunks/*") if file.is_file()]) == kept


def test_chunks_of_another_corpus_are_deleted_after_a_week(
    prefixes: list[str], pair: TokenizerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "number_of_processes", lambda: 1)
    folder = tmp_path / "cache" / "datasets"
    for name, days in (("old", 8), ("busy", 8), ("new", 1)):
        parts = folder / f".{name}.chunks"
        parts.mkdir(parents=True)
        os.utime(parts, (time.time() - days * 86400,) * 2)
    with locked(folder / ".busy.lock"):
        dataset.training_dataset(prefixes, Direction("en", "vi"), pair, Filters(), [], tmp_path / "cache")
    assert {path.name for path in folder.glob(".*")} == {".busy.chunks", ".busy.lock", ".new.chunks"}


def tokenizing(pair: TokenizerPair) -> Tokenizing:
    text_filter = Filters().text_filter([], Direction("en", "vi"))
    return Tokenizing(Direction("en", "vi"), pair, Filters(), TextFilters(text_filter, text_filter, text_filter))


def test_a_process_that_is_killed_is_reported(
    pair: TokenizerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = list[subprocess.Popen[bytes]]()
    start = tokenizing_processes._Processes._start

    def recorded(processes: Any) -> subprocess.Popen[bytes]:
        process = start(processes)
        started.append(process)
        return process

    monkeypatch.setattr(tokenizing_processes._Processes, "_start", recorded)
    with closing(tokenized_chunks(chunks_of(99), tokenizing(pair), tmp_path / "parts", 2)) as tokenized:
        next(tokenized)
        for process in started:
            process.kill()
        with pytest.raises(
            ProcessEnded, match=r"^A process that tokenizes was killed, probably .* to continue; OMP_NUM"
        ):
            list(tokenized)
    assert len([*(tmp_path / "parts").iterdir()]) >= 1
    assert None not in [process.poll() for process in started]
    # Nor do the processes of an iterator that is abandoned live on.
    started.clear()
    with closing(tokenized_chunks(chunks_of(99), tokenizing(pair), tmp_path / "others", 2)) as tokenized:
        next(tokenized)
        assert started
    assert None not in [process.poll() for process in started]


def chunks_of(number: int) -> list[Chunk]:
    return [Chunk(0, f"one {line}", f"một {line}", None) for line in range(number)]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "#!/bin/sh\nexit 3\n",
            r"^A process that tokenizes ended with exit code 3: run .* OMP_NUM_THREADS=1 to find out",
        ),
        ("#!/bin/sh\nkill -15 $$\n", r"^A process that tokenizes was ended by signal 15: run the command again with"),
        (
            None,
            r"^A process that tokenizes could not be started \(No such file.*\): .* OMP_NUM_THREADS=1, which starts",
        ),
    ],
)
def test_a_process_that_dies_while_it_starts_is_reported(
    pair: TokenizerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, message: str
) -> None:
    """A broken pipe would be taken for a closed standard output."""
    executable = tmp_path / "python"
    if script is not None:
        executable.write_text(script)
        executable.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(executable))
    large = Chunk(0, "\n".join(["one"] * 99_999), "\n".join(["một"] * 99_999), None)  # more than a pipe holds
    with pytest.raises(ProcessEnded, match=message):
        list(tokenized_chunks([large] * 9, tokenizing(pair), tmp_path / "parts", 2))


def test_an_error_in_a_process_is_raised_here(pair: TokenizerPair, tmp_path: Path) -> None:
    checks: list[tuple[Any, type[Exception], str]] = [
        (operator.truediv, TypeError, r"^unsupported operand"),
        (existing_file, Mistake, r"^one 0 is một 0, which does not exist; check the path\."),
    ]
    for check, error, message in checks:
        text_filter = TextFilter(set(), set(), check)
        failing = Tokenizing(Direction("en", "vi"), pair, Filters(), TextFilters(*[text_filter] * 3))
        with pytest.raises(error, match=message) as raised:
            list(tokenized_chunks(chunks_of(99), failing, tmp_path / "parts", 2))
        assert "chunks.py" in raised.value.__notes__[0]


def test_many_small_files_with_few_pairs_start_no_process(pair: TokenizerPair, tmp_path: Path) -> None:
    assert len(list(tokenized_chunks(chunks_of(33), tokenizing(pair), tmp_path / "parts", 2))) == 33
    assert not (tmp_path / "parts").exists()


PARENT = """
import pickle
from pathlib import Path
from nmt.data.chunks import Chunk
from nmt.data.tokenizing_processes import tokenized_chunks
tokenizing = pickle.loads(Path("tokenizing").read_bytes())
chunks = (Chunk(0, f"one {number}", f"{number}", None) for number in range(10**6))
for chunk, _ in tokenized_chunks(chunks, tokenizing, Path("parts"), 2):
    print(chunk.digest, flush=True)
"""


def test_the_processes_end_with_the_command(pair: TokenizerPair, tmp_path: Path) -> None:
    (tmp_path / "tokenizing").write_bytes(pickle.dumps(tokenizing(pair)))
    package = str(Path(dataset.__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": package},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,  # the processes have it too, so it ends when the last of them does
    ) as parent:
        assert parent.stdout is not None
        for _ in range(100):  # both have started
            parent.stdout.readline()
        parent.kill()
        _, errors = parent.communicate(timeout=60)
    assert errors == b""


@pytest.mark.parametrize(
    ("environment", "number"),
    [
        ({}, 6),
        ({"OMP_NUM_THREADS": ""}, 6),
        ({"OMP_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "1", "LOCAL_WORLD_SIZE": "4"}, 4),
    ],
)
def test_the_processes_use_the_cores_of_the_command(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], number: int
) -> None:
    monkeypatch.setattr(tokenizing_processes, "usable_cores", lambda: 6)
    for name in ("OMP_NUM_THREADS", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert number_of_processes() == number


def test_the_processes_do_not_import_torch(pair: TokenizerPair, tmp_path: Path) -> None:
    """Nor does what they unpickle."""
    (tmp_path / "tokenizing").write_bytes(pickle.dumps(tokenizing(pair)))
    script = (
        "import pathlib, pickle, sys, nmt.data.tokenizing_processes;"
        "pickle.loads(pathlib.Path(sys.argv[1]).read_bytes());"
        "print({'torch', 'datasets', 'lightning'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "tokenizing")]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "set()\n"
