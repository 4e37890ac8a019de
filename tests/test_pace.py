import logging

import pytest

from nmt import pace
from nmt.pace import Pace


def test_it_logs_rate_and_remaining_time_but_not_too_often(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: now[0])
    told = Pace("sentences translated", seconds=10.0)
    with caplog.at_level(logging.INFO):
        for seconds, new in ((4, 7), (10, 13), (15, 3), (21, 19), (30, 58)):
            now[0] = seconds
            told(new, 100)
        now[0] = 50
        told(0, 15_100)
    assert [record.getMessage() for record in caplog.records] == [
        "20 of 100 sentences translated, 2.0 a second, 0:40 left",
        "42 of 100 sentences translated, 2.0 a second, 0:29 left",
        "100 of 15100 sentences translated, 2.0 a second, 2:05:00 left",
    ]


def test_items_are_counted_as_they_pass(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: now[0])
    found = []
    with caplog.at_level(logging.INFO):
        for item in Pace("maps made", seconds=10.0).over("abcd", 4):
            found.append(item)
            now[0] += 8
    assert found == list("abcd")
    assert [record.getMessage() for record in caplog.records] == ["2 of 4 maps made, 0.1 a second, 0:16 left"]
