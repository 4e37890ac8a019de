"""Starts the real server as a process of its own, for scripts that measure or try it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Server(NamedTuple):
    """A server that is running."""

    process: subprocess.Popen[str]
    address: str
    log: Path
    """Its standard error."""

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def memory(self) -> float:
        """Resident memory in MiB (Linux)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) / 1024


@contextmanager
def server(run: Path, log: Path, *overrides: str) -> Iterator[Server]:
    """nmt.serve with a run, on a free port, until the end of the block. Raises ValueError if it does not start."""
    command = [sys.executable, "-m", "nmt.serve", f"run_dirs=[{run}]", "port=0", *overrides]
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    with process.stdout:
        address = process.stdout.readline().strip()
        try:
            if not address:
                raise ValueError(f"The server did not start: {log.read_text(encoding='utf-8')[-500:].strip()}")
            yield Server(process, address, log)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait()
