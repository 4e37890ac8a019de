"""Runs the shares of a job on Ray: on this machine, or on the machines of a cluster that is running already.

Ray only starts the processes, and starts one again if it dies. They share nothing but the folder of the job.
"""

import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

from nmt.cores import threads_of_process, usable_cores
from nmt.errors import CheckFailed, Mistake

logger = logging.getLogger(__name__)

_MOST_RETRIES = 20
_THIS_MACHINE = "local"
"""The address with which Ray starts a cluster of its own. Without one, it would join any cluster on this machine."""


def run_on_ray(share: Callable[[int, int], None], processes: int | None, address: str | None, *, gpu: bool) -> None:
    """Calls share(1, N), share(2, N), ... share(N, N) in N processes, each on OMP_NUM_THREADS cores, by default one.

    processes=None: as many as fit. address=None: the cluster in RAY_ADDRESS, or a new one that ends with this process.
    With `gpu`, each process gets a GPU, if the cluster has any. Raises Mistake if Ray is not installed, the cluster
    cannot be joined, or none of its machines has enough cores; CheckFailed if Ray cannot run the processes; and the
    Mistake or CheckFailed of a share. Any other error of a share is Ray's RayTaskError, which shows its traceback.
    """
    # Otherwise Ray gives its processes the lowest priority, and reports their use. It reads both when it is imported.
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        raise Mistake(
            f"cluster=ray needs {error.name}, which is not installed; run pip install -c constraints.txt -e '.[ray]' "
            "in the checkout first."
        ) from error
    threads = threads_of_process()
    _join_cluster(address, threads * (processes or 1))
    try:
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        with_gpus = [machine for machine in machines if machine.get("GPU", 0) >= 1] if gpu else []
        room = sum(_processes_that_fit(machine, threads, bool(with_gpus)) for machine in with_gpus or machines)
        if not room:  # Ray would wait forever
            most = int(max((machine.get("CPU", 0) for machine in with_gpus or machines), default=0))
            raise Mistake(
                f"Each process needs {threads} core{'s' * (threads > 1)} (OMP_NUM_THREADS), but the largest machine "
                f"{'with a GPU ' * bool(with_gpus)}of the cluster has {most}: lower OMP_NUM_THREADS, or add a larger "
                "machine."
            )
        processes = processes or room
        logger.info("Ray runs %d process%s", processes, "es" * (processes > 1))

        remote = ray.remote(num_cpus=threads, num_gpus=int(bool(with_gpus)), max_retries=_MOST_RETRIES)(_call)
        ray.get([remote.remote(share, number, processes) for number in range(1, processes + 1)])
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Mistake | CheckFailed):
            raise error.cause from None
        raise
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
        raise CheckFailed(
            f"A process died again and again ({type(error).__name__}). Check its memory; the same command resumes."
        ) from error
    except ray.exceptions.RayError as error:
        raise CheckFailed(
            f"Ray cannot run the processes ({type(error).__name__}: {_on_one_line(error)}). Check the cluster; the "
            "same command resumes."
        ) from error
    finally:
        ray.shutdown()


def _join_cluster(address: str | None, cores: int) -> None:
    """Joins the cluster at the address, by default that of RAY_ADDRESS, or starts one with at least this many cores."""
    import ray

    # ray.init replaces this handler with one that exits with the signal's number.
    handler = signal.getsignal(signal.SIGTERM)
    setting = "cluster_address" if address else "RAY_ADDRESS"
    address = address or os.environ.get("RAY_ADDRESS") or _THIS_MACHINE
    if address == _THIS_MACHINE:
        ray.init(address, num_cpus=max(usable_cores(), cores), include_dashboard=False)
    else:
        try:
            ray.init(address)
        # ValueError: not an address. RpcError: no answer. RuntimeError: another version of Ray or Python.
        except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            reason = _on_one_line(error.__cause__ or error)
            raise Mistake(
                f"{setting} is {address}, but this process cannot join a cluster of Ray there ({reason}): check the "
                "address and the versions of Ray and Python, or leave it out to use this machine."
            ) from error
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _processes_that_fit(machine: Mapping[str, Any], threads: int, gpu: bool) -> int:
    """How many processes a machine with these resources runs at a time."""
    by_cores = int(machine.get("CPU", 0)) // threads
    return min(by_cores, int(machine["GPU"])) if gpu else by_cores


def _on_one_line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _call(share: Callable[[int, int], None], number: int, of: int) -> None:
    """Calls the share; Ray accepts only plain functions."""
    share(number, of)
