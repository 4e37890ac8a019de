"""Runs the shares of a job on Ray: on this machine, or on the machines of a cluster that is running already.

Ray only starts the processes, and starts one again if it dies. They share nothing but the folder of the job.
"""

import logging
import os
from collections.abc import Callable

from nmt.errors import CheckFailed, Mistake

logger = logging.getLogger(__name__)

_MOST_RETRIES = 20


def run_on_ray(share: Callable[[int, int], None], processes: int | None, address: str | None, *, gpu: bool) -> None:
    """Calls share(1, N), share(2, N), ... share(N, N) in N processes, each on OMP_NUM_THREADS cores, by default one.

    None stands for as many processes as there is room for, and for a cluster on this machine that ends with this
    process, unless RAY_ADDRESS names another one. With `gpu`, each process gets a GPU, if the cluster has any. Raises
    Mistake if Ray is not installed or cannot be reached, whatever a share raises, and CheckFailed if a process dies
    again and again.
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
    threads = int(os.environ.get("OMP_NUM_THREADS") or 1)
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        if address is None:
            cores = max(len(os.sched_getaffinity(0)), threads * (processes or 1))
            ray.init(num_cpus=cores, include_dashboard=False)
        else:
            ray.init(address=address)
    except ConnectionError as error:
        raise Mistake(f"cluster_address is {address}, where no cluster of Ray answers ({error}).") from error
    try:
        resources = ray.cluster_resources()
        gpus = int(resources.get("GPU", 0)) if gpu else 0
        processes = processes or gpus or max(1, int(resources["CPU"]) // threads)
        logger.info("Ray runs %d process%s", processes, "es" * (processes > 1))

        remote = ray.remote(num_cpus=threads, num_gpus=min(gpus, 1), max_retries=_MOST_RETRIES)(_call)
        ray.get([remote.remote(share, number, processes) for number in range(1, processes + 1)])
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
        raise CheckFailed(
            f"A process died {_MOST_RETRIES + 1} times ({type(error).__name__}): check its memory. The same command "
            "continues."
        ) from error
    finally:
        ray.shutdown()


def _call(share: Callable[[int, int], None], number: int, of: int) -> None:
    """What Ray runs, because it takes functions alone, and a share may be anything that can be called."""
    share(number, of)
