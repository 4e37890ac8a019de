"""Which requests the server refuses because of where they come from: web pages of other sites, and unknown hosts.

Without these checks, a page of any site could use a server that only its user can reach.
"""

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from nmt.errors import TemplatedMessage

_SAFE = {"GET", "HEAD", "OPTIONS"}


def refusal(method: str, headers: Headers, hosts: Collection[str], origins: Collection[str]) -> str | None:
    """Why a request is refused; None if it is not.

    `hosts` are the names of the server besides IP addresses and localhost; '*' allows any. `origins` are the
    origins whose pages may use it.
    """
    host = headers.get("host")
    if host is not None and not _names_this_server(host, hosts):
        return TemplatedMessage("The server does not answer to the host '{host}'; add it to allowed_hosts.", host=host)
    # The algorithm of Go's CrossOriginProtection: browsers send Sec-Fetch-Site, older ones at least Origin; programs
    # send neither.
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if method in _SAFE or origin in origins or site in ("same-origin", "none"):
        return None
    if site is None and (origin is None or origin.partition("://")[2] == host):
        return None
    return TemplatedMessage(
        "Pages of the site '{origin}' may not use this server; add it to allow_origins.", origin=origin or site
    )


def _names_this_server(host: str, hosts: Collection[str]) -> bool:
    """Whether a Host header names this server."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:  # brackets that hold no address
        return False
    if "*" in hosts or name in hosts or name == "localhost" or name.endswith(".localhost"):
        return True
    # A page whose host name now resolves to this server (DNS rebinding) still sends that name.
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
