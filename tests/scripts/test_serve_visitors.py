"""scripts/studies/serve_visitors.py: a row for each kind of visitor, alone and beside attributions."""

import argparse
import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from served_runs import address, gallery

from scripts.server import Server
from scripts.studies import serve_visitors as script

__all__ = ["address", "gallery"]


@pytest.mark.unchecked
def test_the_table_has_a_row_for_each_kind_of_visitor(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "SENTENCES", ("one two.",))
    monkeypatch.setattr(script, "ATTRIBUTED", "one.")
    started = Server(SimpleNamespace(pid=os.getpid()), address, Path("log"))  # type: ignore[arg-type]
    options = argparse.Namespace(visitors=2, pause=0.05, seconds=0.5)
    _, _, *rows = asyncio.run(script.table(started, options))
    assert [row.split(" | ")[0] for row in rows] == ["| page", "| /v1/translate", "| all"] * 2
    assert ["nothing" in row for row in rows] == [True] * 3 + [False] * 3
    assert script.numbers([float(second) for second in range(200, 0, -1)]) == "101.00, 198.00, 200.00 s"
    with pytest.raises(RuntimeError, match=r"/v1/attend: .*400.*The source is empty"):
        asyncio.run(script.answered(started.port, "/v1/attend", {"text": ""}))
