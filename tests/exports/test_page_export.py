"""The page that is one file: it translates and changes attention in a browser, from disk and without a request."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import nmt
from nmt.commands.export import export
from nmt.config.job import Job
from nmt.config.schema import ContextSettings
from nmt.errors import Mistake
from nmt.exports import page_file
from nmt.exports.page_export import page_text
from nmt.exports.page_file import PageRun, page_data
from nmt.runs.load import load_run

TEXT = "one two three."


@pytest.fixture
def opened(run: Path, browser: Any, tmp_path: Path) -> Iterator[Any]:
    """The page of the run, opened from disk; at the end there was no message and no request."""
    file = tmp_path / "lab.html"
    file.write_text(page_text(page_data([PageRun("numbers", load_run(run, "cpu"))], "float32")), encoding="utf-8")
    faults: list[str] = []
    context = browser.new_context(offline=True)
    context.set_default_timeout(30_000)
    page = context.new_page()
    own = (file.as_uri(), "data:", "blob:")
    page.on("request", lambda request: request.url.startswith(own) or faults.append(request.url))
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(file.as_uri())
    yield page
    context.close()
    assert faults == []


def test_it_translates_and_changes_attention_from_disk(opened: Any, run: Path) -> None:
    opened.locator("#text").fill(TEXT)
    opened.locator("#ask button[type='submit']").click()
    opened.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
    [expected] = nmt.load(run).translate([TEXT])
    assert opened.locator("#intact .translation").text_content().strip() == expected
    opened.locator("#intact .cell[data-row='0'][data-column='1']").click()
    opened.get_by_role("button", name="Block at every step").first.click()
    opened.locator("#changed .cell").first.wait_for()
    titles = opened.locator("#changed .cell[data-column='1'] title").all_text_contents()
    assert titles
    assert all(title.endswith(": 0.000") for title in titles)


def test_the_command_writes_a_page_and_compares_it(
    run: Path, job: Callable[..., Job], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed to compare a page in.")
    export(job("export", run_dir=str(run), format="page", out="lab.html", quantization="int8"))
    printed = capsys.readouterr().out
    assert re.match(r"Compared on 7 sentences \(\d+ pieces\): .* The page is 0\.\d MB\.\nlab\.html\n$", printed)
    with pytest.raises(Mistake, match=r"^out is lab.html, which exists: choose another file, or overwrite=true"):
        export(job("export", run_dir=str(run), format="page", out="lab.html"))


def test_without_node_the_page_is_written_with_a_warning(
    run: Path,
    job: Callable[..., Job],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    export(job("export", run_dir=str(run), format="page", out="lab.html"))
    assert "it was not compared with the run.\nlab.html\n" in capsys.readouterr().out
    assert "Node.js 18 or newer is not installed, so the page was not compared with the run" in caplog.text


def test_a_node_that_is_too_old_is_not_asked(
    run: Path,
    job: Callable[..., Job],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    old = tmp_path / "old" / "node"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho v12.22.9\n", encoding="utf-8")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent), prepend=os.pathsep)
    export(job("export", run_dir=str(run), format="page", out="lab.html"))
    assert "it was not compared with the run.\nlab.html\n" in capsys.readouterr().out


def test_what_a_page_cannot_hold_is_refused(
    run: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(message: str, **settings: Any) -> None:
        with pytest.raises(Mistake, match=message):
            export(job("export", run_dir=str(run), format="page", **settings))

    refused(r"^out is lab, but format=page writes one file: name it, such as lab.html.$", out="lab")
    refused(
        r"^quantization is int16, but with format=page it must be float32 or int8.$", out="a.html", quantization="int16"
    )
    Path("folder.html").mkdir()
    for folder in ("folder.html", "."):
        refused(
            rf"^out is {re.escape(folder)}, which is a folder or a link, but format=page writes one file", out=folder
        )
    Path("own.html").write_text("<!doctype html>", encoding="utf-8")
    refused("^out is own.html, which exists and is not an exported page", out="own.html", overwrite=True)
    assert Path("own.html").read_text(encoding="utf-8") == "<!doctype html>"
    loaded = load_run(run, "cpu")
    joined = loaded.settings.model_copy(update={"context": ContextSettings(sentences=2)})
    with pytest.raises(Mistake, match=r"^page does not support models that read documents .* use python -m nmt.serve"):
        page_data([PageRun("documents", loaded._replace(settings=joined))], "int8")
    monkeypatch.setattr(page_file, "MOST_PARAMETERS", 1000)
    refused(
        r"^run has [\d,]+ parameters, but a page holds at most 1,000, because .*; use python -m nmt.serve", out="a.html"
    )
