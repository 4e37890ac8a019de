"""Bugs planted in the server: status 500 with a sentence for the client, and a traceback in the log."""

import json
import logging
import math
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt.models.base import Seq2Seq
from nmt.serving import batcher, lab, streams

ASKED = {"q": "one two.", "source": "en", "target": "vi"}
DEFECT = "Internal error; the server's log has the details."


def answer(address: str, path: str, fields: dict[str, object]) -> tuple[int, str]:
    request = urllib.request.Request(
        f"{address}{path}", json.dumps(fields).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def zipped(*_: object) -> object:
    return dict(zip([1], [1, 2], strict=True))


def shapes(*_: object, **__: object) -> object:
    return torch.nn.functional.nll_loss(torch.zeros(2, 3), torch.zeros(3, dtype=torch.long))  # torch's own ValueError


def unpacked(*_: object, **__: object) -> object:
    hidden, cell = [1, 2, 3]
    return hidden, cell


STEP = Seq2Seq.step


def nan(*arguments: Any, **settings: Any) -> object:
    log_probs, state = STEP(*arguments, **settings)
    return log_probs.fill_(math.nan), state


@pytest.mark.parametrize(
    ("place", "name", "bug", "path", "kind"),
    [
        (batcher.Batcher, "_translated", zipped, "/translate", "ValueError"),
        (batcher.Batcher, "_translated", lambda *_: [], "/translate", "ValueError"),
        (Seq2Seq, "step", nan, "/translate", "CheckFailed"),
        (lab, "decoded_pair", shapes, "/v1/attend", "ValueError"),
        (lab, "decoded_pair", unpacked, "/v1/attend", "ValueError"),
        (lab, "decoded_pair", lambda *_, **__: {}["maps"], "/v1/attend", "KeyError"),
    ],
    ids=["zip(strict=True)", "a missing answer", "NaN", "tensor shapes", "wrong unpacking", "KeyError"],
)
def test_a_bug_is_500_with_a_traceback_in_the_log(
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    record_property: Callable[[str, object], None],
    place: object,
    name: str,
    bug: Callable[..., object],
    path: str,
    kind: str,
) -> None:
    fields = ASKED if path == "/translate" else {"text": "one two."}
    with monkeypatch.context() as planted, caplog.at_level(logging.WARNING):
        planted.setattr(place, name, bug)
        status, text = answer(address, path, fields)
        # The server logs an error after it has answered.
        until = time.monotonic() + 60
        while not any(record.exc_info for record in caplog.records) and time.monotonic() < until:
            time.sleep(0.01)
    logged = [record for record in caplog.records if record.exc_info]
    record_property("outcome", f"status {status}, {len(logged)} tracebacks logged: {text}")
    assert (status, json.loads(text)) == (500, {"error": DEFECT})
    assert [record.exc_info[0].__name__ for record in logged if record.exc_info and record.exc_info[0]] == [kind]
    assert answer(address, path, fields)[0] == 200


def test_a_bug_in_a_search_ends_its_stream_with_an_error_and_is_logged(
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setattr(streams, "decoded_pair", shapes)
    with caplog.at_level(logging.WARNING):
        _, text = answer(address, "/v1/translate/stream", {"text": "one two."})
    last = text.strip().split("\n\n")[-1]
    logged = [record for record in caplog.records if record.exc_info]
    record_property("outcome", f"stream ends with {last!r}, {len(logged)} tracebacks logged")
    assert last == f"event: error\ndata: {json.dumps({'error': DEFECT, 'status': 500})}"
    assert len(logged) == 1
