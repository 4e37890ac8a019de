"""Downloads from a local https server that sends good, interrupted, corrupted, slow and missing files."""

import hashlib
import os
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from nmt.data.fetch import Digest, DownloadFailed, Limits, checked_address, fetch
from nmt.errors import Mistake
from nmt.files import try_lock

CONTENT = bytes(range(256)) * 4099
RIGHT = Digest("sha256", hashlib.sha256(CONTENT).hexdigest())
QUICK = Limits(silence=0.5, tries=3, pause=0.0)

Served = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers /NAME with the function of that name below; `asked` records the Range of every request."""

    asked: list[str | None]
    etag: str
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        type(self).asked.append(self.headers.get("Range"))
        ANSWERS[self.path.strip("/").split("?")[0]](self)
        self.close_connection = True

    @property
    def first(self) -> bool:
        return len(self.asked) == 1

    def log_message(self, format: str, *args: object) -> None:
        pass

    def content(self, body: bytes, upto: int | None = None, wait: Callable[[], None] = lambda: None) -> None:
        """Sends the body from the requested byte on, interrupted before `upto`."""
        start = 0
        wanted = self.headers.get("Range")
        if wanted and self.headers.get("If-Range", self.etag) == self.etag:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(body)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        if self.etag:
            self.send_header("ETag", self.etag)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start:upto])
        self.wfile.flush()
        wait()


def broken_off(handler: Handler) -> None:
    handler.content(CONTENT, upto=500_000 if handler.first else None)


def slow(handler: Handler) -> None:
    pause = threading.Event()
    handler.content(CONTENT, upto=300_000 if handler.first else None, wait=lambda: pause.wait(2 * handler.first))


def changed(handler: Handler) -> None:
    handler.content(CONTENT[::-1] if handler.first else CONTENT, upto=500_000 if handler.first else None)
    type(handler).etag = handler.etag.replace("old", "new")


def of_unknown_length(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(CONTENT)


def redirected(handler: Handler, to: str) -> None:
    handler.send_response(302)
    handler.send_header("Location", to)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def busy(handler: Handler) -> None:
    if handler.first:
        handler.send_error(503)
    else:
        handler.content(CONTENT)


ANSWERS: dict[str, Served] = {
    "right": lambda handler: handler.content(CONTENT),
    "never_whole": lambda handler: handler.content(CONTENT, upto=-1),
    "corrupted": lambda handler: handler.content(CONTENT[:-1] + b"?"),
    "missing": lambda handler: handler.send_error(404),
    "to_right": lambda handler: redirected(handler, "/right"),
    "to_http": lambda handler: redirected(handler, "http://localhost/right"),
    "to_escape": lambda handler: redirected(handler, "http://localhost/\x1b[2J"),
    "nothing": lambda handler: (handler.send_response(204), handler.end_headers()),
    "to_file": lambda handler: redirected(handler, "file:///etc/hostname"),
    **{each.__name__: each for each in (broken_off, slow, changed, of_unknown_length, busy)},
}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def server(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server whose certificate is trusted."""
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    monkeypatch.setattr(Handler, "asked", [], raising=False)
    monkeypatch.setattr(Handler, "etag", '"old"', raising=False)
    with ThreadingHTTPServer(("localhost", 0), Handler) as running:
        running.socket = context.wrap_socket(running.socket, server_side=True)
        running.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"https://localhost:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["right", "broken_off", "slow", "of_unknown_length", "to_right", "busy"])
def test_the_whole_file_arrives(server: str, tmp_path: Path, name: str) -> None:
    assert fetch(f"{server}/{name}", tmp_path / "new" / "file", RIGHT, QUICK)
    assert (tmp_path / "new" / "file").read_bytes() == CONTENT
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]


@pytest.mark.parametrize(("name", "there"), [("broken_off", 500_000), ("slow", 300_000)])
def test_an_interrupted_download_continues_at_the_next_byte(server: str, tmp_path: Path, name: str, there: int) -> None:
    fetch(f"{server}/{name}", tmp_path / "file", RIGHT, QUICK)
    assert Handler.asked == [None, f"bytes={there}-"]


def test_the_next_call_continues_where_the_last_one_gave_up(server: str, tmp_path: Path) -> None:
    with pytest.raises(
        DownloadFailed, match=r"1 of \S+ bytes are missing, after 1,049,343 bytes\. .* the same command to resume, or"
    ):
        fetch(f"{server}/never_whole", tmp_path / "file", RIGHT, QUICK._replace(tries=1))
    assert not (tmp_path / "file").exists()
    assert fetch(f"{server}/right", tmp_path / "file", RIGHT, QUICK)
    assert Handler.asked == [None, f"bytes={len(CONTENT) - 1}-"]
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_complete_part_is_not_downloaded_again(server: str, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT)
    assert fetch(f"{server}/right", tmp_path / "file", RIGHT, QUICK)
    assert Handler.asked == [f"bytes={len(CONTENT)}-"]


def test_a_part_that_is_too_long_is_downloaded_again(server: str, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT + b"more")
    assert fetch(f"{server}/right", tmp_path / "file", RIGHT, QUICK)
    assert Handler.asked == [f"bytes={len(CONTENT) + 4}-", None]


@pytest.mark.parametrize("etag", ['"old"', 'W/"old"', ""])
def test_bytes_of_two_versions_are_never_joined(
    server: str, tmp_path: Path, etag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handler, "etag", etag)
    assert fetch(f"{server}/changed", tmp_path / "file", None, QUICK)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_without_a_digest_an_old_part_is_not_continued(server: str, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(b"something else")
    assert fetch(f"{server}/right", tmp_path / "file", None, QUICK)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_without_a_digest_no_part_is_left_behind(server: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match=r"are missing.* run the same command to try again\."):
        fetch(f"{server}/never_whole", tmp_path / "file", None, QUICK._replace(tries=1))
    assert [path.name for path in tmp_path.iterdir()] == ["ca.pem"]


@pytest.mark.skipif(os.name == "nt", reason="no file locks on Windows")
def test_without_a_digest_the_part_of_a_killed_process_is_deleted(server: str, tmp_path: Path) -> None:
    (tmp_path / ".file.0123.part").write_bytes(b"half")
    fetch(f"{server}/right", tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir() if path.name != "ca.pem"] == ["file"]


def test_two_processes_do_not_write_the_same_file(server: str, tmp_path: Path) -> None:
    with (tmp_path / "file.part").open("ab") as part:
        assert try_lock(part)
        with pytest.raises(DownloadFailed, match="Another process is downloading"):
            fetch(f"{server}/right", tmp_path / "file", RIGHT, QUICK)
        assert (tmp_path / "file.part").exists()  # it is still empty, and belongs to the other process
    assert fetch(f"{server}/right", tmp_path / "file", RIGHT, QUICK)


def test_a_corrupted_file_is_refused_and_deleted(server: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match=f"the published file has {RIGHT.value}.*/corrupted was deleted"):
        fetch(f"{server}/corrupted", tmp_path / "file", RIGHT, QUICK)
    assert [path.name for path in tmp_path.iterdir()] == ["ca.pem"]


def test_an_existing_file_is_verified_and_kept(server: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    assert not fetch(f"{server}/right", tmp_path / "file", RIGHT, QUICK)
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(Mistake, match="Delete it, or choose another folder with out="):
        fetch(f"{server}/right", tmp_path / "file", RIGHT, QUICK)
    assert not fetch(f"{server}/right", tmp_path / "file", None, QUICK)
    assert (tmp_path / "file").read_bytes() == b"mine"
    assert Handler.asked == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("missing", "could not be downloaded: HTTP 404 Not Found"),
        ("to_http", "redirects to http://localhost/right, which is not an https:// URL"),
        ("to_file", "302 .*file:///etc/hostname"),
        ("never_whole", r"are missing, after"),
        ("nothing", r"/nothing could not be downloaded: HTTP 204\. Check the URL"),
        ("to_escape", r"redirects to http://localhost/%1B\[2J, which is not an https"),
    ],
)
def test_the_reason_of_a_failure_is_reported(server: str, tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(DownloadFailed, match=told):
        fetch(f"{server}/{name}", tmp_path / "file", RIGHT, QUICK._replace(tries=2))
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize("name", ["right", "of_unknown_length"])
def test_a_file_that_is_too_large_is_refused(server: str, tmp_path: Path, name: str) -> None:
    with pytest.raises(DownloadFailed, match=r"the limit is 700,000; raise max_gib"):
        fetch(f"{server}/{name}", tmp_path / "file", RIGHT, QUICK._replace(most_bytes=700_000))
    assert [path.name for path in tmp_path.iterdir()] == ["ca.pem"]


def test_an_untrusted_certificate_is_refused(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(DownloadFailed, match="The certificate of localhost is invalid"):
        fetch(f"{server}/right", tmp_path / "file", RIGHT, QUICK)


def test_an_unreachable_host_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match=r"refused, after 0 bytes\. Check the network connection"):
        fetch("https://localhost:1/file", tmp_path / "file", RIGHT, QUICK)


@pytest.mark.parametrize(
    "url", ["http://localhost/file", "file:///etc/hostname", "ftp://a/b", "https:///a", "https://me:word@a/b"]
)
def test_only_https_is_used(tmp_path: Path, url: str) -> None:
    with pytest.raises(Mistake, match="is not an https:// URL; downloads use https only"):
        fetch(url, tmp_path / "file")


@pytest.mark.parametrize("url", ["https://a..b/x", "https://[::1/a.zip", "https://a:b/c", f"https://{'a' * 70}/b"])
def test_a_malformed_url_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(Mistake, match="is not a URL"):
        fetch(url, tmp_path / "file")


def test_non_ascii_letters_of_a_url_are_encoded() -> None:
    assert (
        checked_address("https://báo.vn:8/tập 1.zip?q=ă&r=%20")
        == "https://xn--bo-mia.vn:8/t%E1%BA%ADp%201.zip?q=%C4%83&r=%20"
    )


def test_the_digest_of_a_git_blob(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"hello\n")
    # What `git hash-object` prints for it.
    assert Digest("git_sha1", "ce013625030ba8dba906f756967f9e9ca394464a").objection(tmp_path / "file") == ""


def test_progress_never_decreases_and_ends_at_the_total(server: str, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    fetch(f"{server}/broken_off", tmp_path / "file", RIGHT, QUICK, lambda size, total: told.append((size, total)))
    assert [size for size, _ in told] == sorted(size for size, _ in told)
    assert told[0] == (0, len(CONTENT))
    assert told[-1] == (len(CONTENT), len(CONTENT))
