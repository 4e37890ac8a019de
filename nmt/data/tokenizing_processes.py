"""Tokenizes chunks in several processes, and keeps the finished ones until the whole corpus is done.

    python -m nmt.data.tokenizing_processes   one of the processes: reads chunks from standard input

A process is a new interpreter, not a fork: this process has threads of torch and Arrow, perhaps a GPU, and a fork of it
can hang. multiprocessing's spawn would import the command's modules again, torch among them; these processes do not
import torch and start within half a second of CPU time. A process ends when its standard input does, so it does not
outlive this one, however that ends.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from hashlib import blake2b
from pathlib import Path
from typing import IO

import nmt
from nmt.cores import threads_of_process, usable_cores
from nmt.data.chunks import Chunk, TokenizedChunk, Tokenizing
from nmt.errors import CheckFailed, process_ended, sendable
from nmt.files import PART

_FEW = 50_000
"""Fewer pairs take less CPU time than it takes to start processes and to keep chunks."""
_MOST_PROCESSES = 16  # the reading process hands out no more work than this
_AHEAD = 2  # chunks per process that wait for it or for the chunks before them
_DIGEST = 16  # bytes
_SIZE = 8  # bytes


def number_of_processes() -> int:
    """The cores that this process and those that wait for it may use, at most 16: OMP_NUM_THREADS for each, or all."""
    cores = usable_cores()
    if os.environ.get("OMP_NUM_THREADS"):
        cores = min(cores, threads_of_process() * int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    return min(cores, _MOST_PROCESSES)


def tokenized_chunks(
    chunks: Iterable[Chunk], tokenizing: Tokenizing, folder: Path, processes: int
) -> Generator[tuple[Chunk, TokenizedChunk]]:
    """Yields each chunk with the tokenized one, in order.

    Unless there are few pairs, they are tokenized in `processes` processes, and each is kept in a file in `folder`,
    whole or not at all, so that an interrupted command does not tokenize it again. Raises ProcessEnded if a process
    ends or cannot be started, and whatever tokenizing raises.
    """
    chunks = iter(chunks)
    first, pairs = list[Chunk](), 0
    while pairs < _FEW and (chunk := next(chunks, None)) is not None:
        first.append(chunk)
        pairs += chunk.sources.count("\n") + 1
    if pairs < _FEW:
        yield from ((chunk, tokenizing(chunk)) for chunk in first)
        return
    folder.mkdir(parents=True, exist_ok=True)
    for part in folder.glob(f"*{PART}"):
        part.unlink(missing_ok=True)

    def all_chunks() -> Iterator[Chunk]:
        while first:
            yield first.pop(0)
        yield from chunks

    if processes == 1:
        for chunk in all_chunks():
            yield chunk, TokenizedChunk.unpacked(_stored_or(folder, chunk, lambda chunk: tokenizing(chunk).packed()))
        return
    with closing(_Processes(processes, tokenizing)) as pool:
        waiting = deque[tuple[Chunk, Future[bytes]]]()
        for chunk in all_chunks():
            waiting.append((chunk, pool.threads.submit(_stored_or, folder, chunk, pool.packed)))
            if len(waiting) >= _AHEAD * processes:
                earliest, future = waiting.popleft()
                yield earliest, TokenizedChunk.unpacked(future.result())
        for earliest, future in waiting:
            yield earliest, TokenizedChunk.unpacked(future.result())


class ProcessEnded(CheckFailed):
    """A process that tokenizes has ended or could not be started. The finished chunks are kept."""


class _Processes:
    """Processes that tokenize chunks, each with a thread of this process that waits for it."""

    def __init__(self, number: int, tokenizing: Tokenizing) -> None:
        self._setup = pickle.dumps(tokenizing)
        self._of_thread = threading.local()
        self._started = list[subprocess.Popen[bytes]]()
        self._closed = False
        self.threads = ThreadPoolExecutor(number, "tokenizing")

    def packed(self, chunk: Chunk) -> bytes:
        """The tokenized chunk, by the process of this thread, which is started when there is work for it."""
        process: subprocess.Popen[bytes] | None = getattr(self._of_thread, "process", None)
        messages = [pickle.dumps(chunk)]
        if process is None:
            process = self._of_thread.process = self._start()
            messages.insert(0, self._setup)
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a process was started without pipes")
        try:
            for message in messages:
                _send(process.stdin, message)
            answer = _receive(process.stdout)
        except (OSError, EOFError, ValueError) as error:  # errors.report takes a broken pipe for a closed output
            raise ProcessEnded(
                process_ended(
                    "A process that tokenizes",
                    process.wait(),
                    if_killed="run the command again to continue; OMP_NUM_THREADS=1 uses less memory",
                    otherwise="run the command again with OMP_NUM_THREADS=1 to find out why",
                )
            ) from error
        content, failure = pickle.loads(answer)
        if failure is not None:
            raise failure
        return content

    def close(self) -> None:
        """Ends the processes at once."""
        self._closed = True
        self.threads.shutdown(wait=False, cancel_futures=True)
        for process in self._started:
            process.kill()
        self.threads.shutdown()  # the threads read the end of the pipes
        for process in self._started:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # unsent bytes
                    if pipe is not None:
                        pipe.close()

    def _start(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise EOFError("closed")
        package = str(Path(nmt.__file__).resolve().parents[1])
        paths = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
        try:
            process = subprocess.Popen(
                # -P: a file in the working folder must not hide a module.
                [sys.executable, "-P", "-m", __spec__.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": paths},
                process_group=0,  # Ctrl-C in a terminal reaches only the command, which then ends its processes
            )
        except OSError as error:
            raise ProcessEnded(
                f"A process that tokenizes could not be started ({error.strerror}): run the command again with "
                "OMP_NUM_THREADS=1, which starts none."
            ) from error
        self._started.append(process)
        if self._closed:  # meanwhile
            process.kill()
        return process


def _file(folder: Path, chunk: Chunk) -> Path:
    return folder / chunk.digest


def _stored_or(folder: Path, chunk: Chunk, tokenize: Callable[[Chunk], bytes]) -> bytes:
    """The tokenized chunk from its file in `folder`, or made and stored there."""
    content = _stored(folder, chunk)
    if content is None:
        content = tokenize(chunk)
        _store(folder, chunk, content)
    return content


def _stored(folder: Path, chunk: Chunk) -> bytes | None:
    """A chunk that an interrupted command has already tokenized. None if it was not reached, or its file is damaged."""
    try:
        content = _file(folder, chunk).read_bytes()
    except FileNotFoundError:
        return None
    mark, content = content[:_DIGEST], content[_DIGEST:]
    return content if blake2b(content, digest_size=_DIGEST).digest() == mark else None


def _store(folder: Path, chunk: Chunk, content: bytes) -> None:
    # The digest shows whether the file is whole after a power cut, so no chunk has to wait for the disk.
    file = _file(folder, chunk)
    part = file.with_suffix(PART)
    # Without locks, another command may have finished the same corpus, and deleted the folder.
    with suppress(FileNotFoundError):
        part.write_bytes(blake2b(content, digest_size=_DIGEST).digest() + content)
        os.replace(part, file)


def _send(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(len(content).to_bytes(_SIZE, "little"))
    pipe.write(content)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes:
    """What `_send` has sent. Raises EOFError if the other process has ended."""
    size = pipe.read(_SIZE)
    length = int.from_bytes(size, "little")
    content = pipe.read(length)
    if len(size) < _SIZE or len(content) < length:
        raise EOFError
    return content


def serve(source: IO[bytes], results: IO[bytes]) -> None:
    """The main loop of a process: receives a Tokenizing, then chunks, and sends back a result or an error for each."""
    with suppress(EOFError, BrokenPipeError):  # the command has ended
        tokenizing: Tokenizing = pickle.loads(_receive(source))
        answer: tuple[bytes | None, Exception | None]
        while True:
            chunk = pickle.loads(_receive(source))
            try:
                answer = tokenizing(chunk).packed(), None
            except Exception as error:
                answer = None, sendable(error)
            _send(results, pickle.dumps(answer))


if __name__ == "__main__":
    # Whatever a library prints must not come between the results.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, output)
    os._exit(0)  # without flushing what nobody reads
