"""nmt.serve: the address that it prints, how it stops, and what it refuses before it listens."""

import errno
import json
import re
import signal
import socket
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from attention_runs import job

from nmt.commands.serve import _network_address, _print_address, serve
from nmt.errors import Mistake


def test_it_prints_its_address_answers_and_stops_when_it_is_told(
    finished: str, corpus: Path, session_corpus: Path, start: Callable
) -> None:
    process = start("serve", f"run_dirs=[{session_corpus / 'run'}]", "port=0")
    address = process.stdout.readline().strip()
    with urllib.request.urlopen(f"{address}/v1/runs") as answer:
        (run,) = json.load(answer)
    assert {"name": "run", "source": "en", "target": "vi"}.items() <= run.items()
    limits = Path(f"/proc/{process.pid}/limits")
    if limits.is_file():  # Linux
        soft, hard = map(int, re.search(r"Max open files +(\d+) +(\d+)", limits.read_text()).groups())
        assert soft >= min(1024, hard), "max_connections, if this user may open so many files"
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as client:
            client.sendall(b"not HTTP\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 400")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    log = process.stderr.read()
    assert "Traceback" not in log
    assert log.count("Invalid HTTP request received.") == 1, "the same warning is logged once a minute"


def test_an_address_that_is_taken_is_refused(here: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Mistake, match=rf"Cannot listen on 127\.0\.0\.1:{port} \(.*\); choose another port"):
            serve(job("serve", run_dirs=["maps_luong"], port=port))


@pytest.mark.parametrize(
    ("host", "message"),
    [
        (
            "nowhere.invalid",
            r"^host is nowhere\.invalid, which cannot be resolved \(.*\); use the name or an address of",
        ),
        (
            "my..host",
            r"^host is my\.\.host, which is not a valid host name; use the name or an address of this machine",
        ),
        (f"{'a' * 64}.org", r"^host is a{64}\.org, which is not a valid host name; use the name or an address of this"),
        ("192.0.2.1", r"^host is 192\.0\.2\.1, which is no address of this machine; use one of its addresses, or 0\.0"),
    ],
)
def test_a_host_that_is_not_this_machine_is_refused(here: Path, host: str, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        serve(job("serve", run_dirs=["maps_luong"], host=host, port=0))


@pytest.fixture
def in_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine in a network, with the address 192.0.2.7."""
    monkeypatch.setattr("nmt.commands.serve._network_address", lambda: "192.0.2.7")


@pytest.mark.skipif(not socket.has_ipv6, reason="this system has no IPv6")
def test_an_ipv6_address_is_printed_in_brackets(
    in_network: None, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket(socket.AF_INET6) as listening, caplog.at_level("INFO"):
        _print_address(listening)
    assert capsys.readouterr().out == "http://[::1]:0\n"
    assert caplog.messages == []  # it does not listen on IPv4 addresses


@pytest.mark.parametrize(("host", "in_log"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_the_printed_address_can_be_opened_on_this_machine(
    host: str, in_log: bool, in_network: None, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server((host, 0)) as listening, caplog.at_level("INFO"):
        port = listening.getsockname()[1]
        _print_address(listening)
        assert capsys.readouterr().out == f"http://127.0.0.1:{port}\n"
        socket.create_connection(("127.0.0.1", port)).close()
    log = f"Listening on all addresses of this machine, such as http://192.0.2.7:{port}"
    assert caplog.messages == ([log] if in_log else [])


@pytest.mark.parametrize(("own", "expected"), [("192.0.2.7", "192.0.2.7"), ("127.0.0.1", None), (None, None)])
def test_a_machine_in_no_network_has_no_address_there(
    own: str | None, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    route = MagicMock()
    route.__enter__.return_value = route
    route.getsockname.return_value = (own, 50000)
    route.connect.side_effect = None if own else OSError(errno.ENETUNREACH, "Network is unreachable")
    monkeypatch.setattr(socket, "socket", lambda *_: route)
    assert _network_address() == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"run_dirs": ["nowhere"]}, "There is no folder nowhere; run_dirs takes run directories"),
        ({"run_dirs": []}, "run_dirs is an empty list; name at least one run directory"),
        ({"allow_origins": ["*"]}, r"allow_origins is '\*', which lets every web page use the server; name the"),
        *(
            (
                {"allow_origins": [origin]},
                rf"allow_origins contains '{re.escape(origin)}', which no browser sends as an",
            )
            for origin in (
                *("my.org", "https://my.org/", "https://My.org", "https://*.my.org", "https://my.org:443", "null", ""),
                *("http://my.org:80", "https://user@my.org", "https://münchen.de"),
            )
        ),
        ({"allowed_hosts": ["https://my.org"]}, "allowed_hosts contains 'https://my.org'; write a name without scheme"),
        ({"allowed_hosts": ["my.org:8000"]}, "allowed_hosts contains 'my.org:8000'; write a name without scheme and p"),
        ({"workers": 0}, "workers is 0; it must be a number of processes from 1 to 1024"),
        ({"port": 70000}, "port is 70000; it must be a port from 1 to 65535, or 0 for a free one"),
        ({"api_keys": "empty"}, "empty contains no API keys; write one per line"),
        ({"api_keys": "latin"}, r"latin, line 1 is not UTF-8 \(.*\); convert the file with iconv"),
        ({"api_keys": "nowhere"}, "api_keys.*nowhere"),
    ],
)
def test_what_cannot_be_served_is_refused(here: Path, changes: dict, message: str) -> None:
    (here / "empty").write_text("\n", encoding="utf-8-sig")
    (here / "latin").write_bytes(b"caf\xe9\n")
    with pytest.raises(Mistake, match=message):
        serve(job("serve", **{"run_dirs": ["maps_luong"], **changes}))


def test_origins_and_hosts_as_they_are_sent_are_taken() -> None:
    origins = ["https://my.org", "http://localhost:3000", "http://[::1]:8000", "moz-extension://1a-2b", "http://a:443"]
    settings = job("serve", run_dirs=["r"], allow_origins=origins, allowed_hosts=["*", "My.org", "a_b"]).settings
    assert settings.allow_origins == origins


def test_a_missing_extra_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "nmt.serving.connections", raising=False)
    with pytest.raises(Mistake, match=r"serve needs the package uvicorn; run pip install .*\[serve\]"):
        serve(job("serve", run_dirs=["maps_luong"]))
