"""nmt.serve: an HTTP server for finished runs."""

import errno
import gc
import logging
import math
import os
import socket
from collections.abc import Callable
from pathlib import Path

from nmt.commands.serve_settings import ServeSettings
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.exports.extras import importing
from nmt.paths import existing_file
from nmt.serving.server_processes import check_can_fork, run_workers
from nmt.text.lines import text_lines

logger = logging.getLogger(__name__)

_SHARE_OF_REQUESTS = 0.75
"""Requests in progress may hold this fraction of all connections; the rest is for new ones, such as health checks."""


def serve(job: Job[ServeSettings]) -> None:
    """Prints the server's address and answers requests until it is stopped, then finishes those already begun.

    Raises Mistake if the extra 'serve' is not installed, if the server cannot listen on the address, or if a file of
    API keys is empty.
    """
    settings = job.settings
    if settings.workers == 1:
        _serve(settings, lambda: _listening(settings.host, settings.port), _print_address)
        return
    check_can_fork(settings.workers)
    listening = _listening(settings.host, settings.port)
    run_workers(
        lambda ready: _serve(settings, lambda: listening, lambda _: ready()),
        settings.workers,
        lambda: _print_address(listening),
        _seconds_to_finish(settings.time_limit),
    )


def _serve(
    settings: ServeSettings, listen: Callable[[], socket.socket], ready: Callable[[socket.socket], None]
) -> None:
    """Loads a run, listens, calls `ready`, and answers requests until the process is stopped."""
    with importing("serve"):
        from nmt.serving.application import application
        from nmt.serving.batcher import Batcher
        from nmt.serving.connections import Connections, LimitedServer, Seldom, possible_connections
        from nmt.serving.gallery import Gallery
        from nmt.serving.service import Access, Limits, Service
    keys = frozenset[str]()
    if settings.api_keys is not None:
        file = existing_file("api_keys", settings.api_keys)
        with file.open("rb") as stream:
            keys = frozenset(line.strip() for line in text_lines(stream, str(file)) if line.strip())
        if not keys:
            raise Mistake(f"{file} contains no API keys; write one per line.")
    gallery = Gallery(
        [Path(folder) for folder in settings.run_dirs],
        settings.device,
        settings.precision,
        settings.max_models,
        settings.engine,
        settings.cache_dir,
    )
    gallery.prepare_engines()
    gallery.preload()  # so that an error is reported before the first request
    connections = possible_connections(settings.max_connections)
    limits = Limits(
        characters=settings.max_characters,
        sentences=settings.max_sentences,
        alternatives=settings.max_alternatives,
        body_bytes=settings.max_body_bytes,
        seconds=settings.time_limit,
        requests=math.ceil(_SHARE_OF_REQUESTS * connections),
    )
    listening = listen()
    batcher = Batcher(gallery, settings.batch_tokens, settings.batch_window, settings.max_waiting)
    hosts = {name.lower() for name in (settings.host, socket.gethostname(), *settings.allowed_hosts)}
    access = Access(keys, settings.metrics_token, settings.allow_origins, hosts)
    app = application(Service(gallery, batcher, limits, access))
    for run in gallery.offered.values():
        logger.info("%s translates from %s to %s", run.name, run.direction.source, run.direction.target)
    ready(listening)
    seldom = Seldom()  # clients can cause any number of these warnings
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(seldom)
    # What has been loaded stays. Each full garbage collection would stop all threads for 0.2 s to look at it.
    gc.freeze()
    LimitedServer(app, Connections(connections, limits.seconds), _seconds_to_finish(limits.seconds)).run([listening])


def _print_address(listening: socket.socket) -> None:
    """Prints an address that a browser on this machine can open; logs the one in the network, if there is one."""
    host, port = listening.getsockname()[:2]
    if host == "::":  # it listens on all IPv6 addresses, and cannot be opened itself
        host = "::1"
    elif host == "0.0.0.0":
        host = "127.0.0.1"
        if in_network := _network_address():
            logger.info("Listening on all addresses of this machine, such as http://%s:%d", in_network, port)
    print(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", flush=True)


def _network_address() -> str | None:
    """This machine's IPv4 address in the network through which it reaches others; None if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        try:
            route.connect(("192.0.2.1", 9))  # RFC 5737: nobody's address. Connecting a UDP socket sends nothing.
        except OSError:  # no route
            return None
        address: str = route.getsockname()[0]
    return None if address.startswith("127.") else address


def _seconds_to_finish(time_limit: float) -> int:
    """A request takes at most the time limit to arrive, and as long again to be answered."""
    return 2 * math.ceil(time_limit) + 1


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens on an address.

    Raises Mistake if the host is unknown or not an address of this machine, or if the port cannot be used.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except socket.gaierror as error:
        raise Mistake(
            f"host is {host}, which cannot be resolved ({error.strerror}); use the name or an address of this machine, "
            "or 0.0.0.0 for all of its addresses."
        ) from error
    except UnicodeError as error:  # such as an empty part between two dots
        raise Mistake(
            f"host is {host}, which is not a valid host name; use the name or an address of this machine, or 0.0.0.0 "
            "for all of its addresses."
        ) from error
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise Mistake(
                f"host is {host}, which is no address of this machine; use one of its addresses, or 0.0.0.0 for all."
            ) from error
        raise Mistake(
            # The text of the error repeats the address.
            f"Cannot listen on {host}:{port} ({os.strerror(error.errno) if error.errno else error}); choose another "
            "port, or port=0 for a free one."
        ) from error
