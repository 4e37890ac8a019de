"""scripts/studies/page_file.py and scripts/browsers.py: a page is measured, and its faults are named."""

import shutil
from pathlib import Path

import pytest

from nmt.errors import Mistake
from scripts.browsers import BROWSERS, chromium
from scripts.studies.page_file import main

pytestmark = pytest.mark.skipif(
    shutil.which("chromium") is None or shutil.which("node") is None, reason="Chromium or Node.js is not installed."
)


@pytest.mark.soak
def test_a_page_is_measured_in_a_browser(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["maps_transformer", "test", "--sentences", "1", "--pictures", "pictures"])
    quality, costs = (part.splitlines() for part in capsys.readouterr().out.split("\n\n"))
    assert [line.split("|")[1].strip() for line in quality[2:]] == ["run", "page, float32", "page, int8"]
    assert quality[3].split("|")[4].strip() == "1 of 1"
    [row] = costs[2:]
    browser, *seconds, memory, faults, _ = [cell.strip() for cell in row.strip("|").split("|")] + [""]
    assert browser.startswith("Chromium ")
    assert len(seconds) == 4
    for each in seconds:
        elapsed, cpu = (float(part.split()[0]) for part in each.split(", "))
        assert 0 < elapsed < 60
        assert 0 <= cpu < 60
    assert float(memory.removesuffix(" MiB")) > 50
    assert faults == "none"
    assert Path("pictures/chromium.png").read_bytes().startswith(b"\x89PNG")


def test_faults_of_a_page_are_found(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("<script>console.log('said'); fetch('http://127.0.0.1:1/asked'); throw Error('thrown')</script>")
    with chromium() as browser:
        browser.open(file.as_uri())
        assert browser.run("return given[0] + given[1]", 2, 3) == 5
        assert {"said", "thrown"} <= {*browser.faults()}
        assert any("asked" in fault for fault in browser.faults())


def test_a_browser_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    for name, start in BROWSERS.items():
        with pytest.raises(Mistake, match=f"This study needs one of .*{name}"), start():
            pass
