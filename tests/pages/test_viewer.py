"""The viewer's page as a file: its contents, and which runs it refuses."""

import base64
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from viewed_sentences import EVIL_SOURCE, cross, sentence, written

from nmt.errors import Mistake
from nmt.maps.attention_map import EOS, SentenceMaps
from nmt.maps.map_files import write_maps
from nmt.pages.viewer import ViewedRun, viewed_runs, write_viewer


def index_of(page: str) -> dict[str, Any]:
    found = re.findall(r'<script type="application/json" id="index">(.*?)</script>', page, re.DOTALL)
    assert len(found) == 1
    return json.loads(found[0])


def weights_of(page: str, name: str) -> np.ndarray:
    found = re.findall(rf'<script type="application/octet-stream" id="{name}">([A-Za-z0-9+/=]*)</script>', page)
    assert len(found) == 1
    return np.frombuffer(zlib.decompress(base64.b64decode(found[0]), wbits=-15), dtype=np.uint8)


def test_a_large_page_has_its_sentences_in_scripts_and_a_small_one_removes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.pages.viewer._MOST_IN_PAGE", 4)
    monkeypatch.setattr("nmt.pages.viewer._IN_SCRIPT", 2)
    page, scripts = tmp_path / "viewer.html", tmp_path / "viewer_sentences"
    write_viewer(page, [ViewedRun("a run", [sentence(line) for line in range(1, 6)], 5)])
    assert sorted(file.name for file in scripts.iterdir()) == ["0-0.js", "0-1.js", "0-2.js"]
    large = page.read_text(encoding="utf-8")
    assert "weights-0" not in large
    assert all(f'"line":{line},"rank":1,"score":null,"text":"These cats ' in large for line in range(1, 6))
    assert (scripts / "0-1.js").read_text(encoding="utf-8").startswith('addSentences(0,2,"')
    (scripts / "mine.txt").touch()
    with pytest.raises(
        Mistake, match=r"viewer_sentences contains mine\.txt, but the page .*: move that file elsewhere"
    ):
        write_viewer(page, [ViewedRun("a run", [sentence(line) for line in range(1, 6)], 5)])
    assert page.read_text(encoding="utf-8") == large
    assert len([*scripts.iterdir()]) == 4
    write_viewer(page, [ViewedRun("a run", [sentence(1)], 1)])
    assert [file.name for file in scripts.iterdir()] == ["mine.txt"]


def test_every_weight_is_in_the_page_to_two_thousandths_and_zero_is_zero(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = rng.dirichlet([0.1] * 7, (2, 3, 5)).astype(np.float32)
    weights[weights < 0.05] = 0
    page = written(tmp_path / "a.html", cross(weights))
    stored = weights_of(page, "weights-0-0-cross").reshape(weights.shape) / 255
    np.testing.assert_allclose(stored, weights, rtol=0, atol=0.5 / 255 + 1e-6)
    assert (stored[weights == 0] == 0).all()
    assert stored.max() > 0.5


def test_text_of_a_sentence_cannot_leave_the_index(tmp_path: Path) -> None:
    clean = written(tmp_path / "clean.html", sentence(1, ["▁a"] * len(EVIL_SOURCE)))
    page = written(tmp_path / "evil.html", sentence(1, EVIL_SOURCE))
    for tag in ("<script", "</script", "<!--", "<img"):
        assert page.count(tag) == clean.count(tag)
    assert "\u2028" not in page
    assert index_of(page)["runs"][0]["sentences"][0]["sequences"][0] == [*EVIL_SOURCE, EOS]


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    page = written(tmp_path / "a.html", sentence(1))
    assert "default-src 'none'" in page
    addresses = set(re.findall(r"https?://[^\s\"']+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}
    for way in ("src=", "href=", "@import", "url(", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "fetch("):
        assert way not in page


def test_sentences_are_written_one_at_a_time_and_compressed(tmp_path: Path) -> None:
    """The page grows while the sentences are read, and random peaky maps need less than half a byte per weight."""
    rng = np.random.default_rng(0)
    sizes = []

    def sentences() -> Iterator[SentenceMaps]:
        for line in range(1, 5):
            sizes.append(next(tmp_path.glob(".a.html.*.part")).stat().st_size)
            yield SentenceMaps(line, 1, ["▁0"] * 40, ["▁0"] * 40, cross(rng.dirichlet([0.05] * 41, (6, 8, 41))).maps)

    write_viewer(tmp_path / "a.html", [ViewedRun("a run", sentences())])
    template = len(written(tmp_path / "small.html", cross(np.ones((1, 1, 1, 1)))))
    assert sizes[-1] > sizes[0] + 50_000
    assert (tmp_path / "a.html").stat().st_size - template < 0.5 * 4 * 6 * 8 * 41 * 41


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "There are no runs to view; pass at least one"),
        ([ViewedRun("a run", iter([]))], "Run 'a run' has no sentences; pass at least one"),
        ([ViewedRun("a run", [SentenceMaps(2, 1, [], [], [])])], "Line 2 of run 'a run' has no maps"),
        (
            [ViewedRun("a run", [cross(np.full((1, 1, 2, 2), 7.5))])],
            r"line 1 of run 'a run' at cross range from 0 to 7\.5",
        ),
        (
            [ViewedRun("a run", [cross(np.full((1, 1, 2, 2), -0.5))])],
            r"range from -0\.5 to 0; .* pass normalized weights",
        ),
        ([ViewedRun("a run", [cross(np.full((1, 1, 2, 2), np.nan))])], "range from nan to nan"),
    ],
)
def test_invalid_runs_are_refused_and_leave_no_file(tmp_path: Path, runs: Any, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        write_viewer(tmp_path / "a.html", runs)
    assert list(tmp_path.iterdir()) == []


def test_a_sentence_that_comes_twice_is_a_bug_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^Run 'a run' has line 1, rank 1 twice") as raised:
        write_viewer(tmp_path / "a.html", [ViewedRun("a run", [sentence(1), sentence(1)])])
    assert not isinstance(raised.value, Mistake)
    assert not list(tmp_path.iterdir())


def test_a_sentence_without_spaces_has_a_label_too(tmp_path: Path) -> None:
    pieces = [f"▁{'我们' * 20}", "昨天" * 20]
    page = written(tmp_path / "viewer.html", sentence(1, pieces))
    [label] = [item["text"] for run in index_of(page)["runs"] for item in run["sentences"]]
    assert label.startswith("我们")
    assert label.endswith(" …")
    assert len(label) <= 60


def test_the_same_text_in_different_pieces_is_no_difference(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = {"layers": 2, "heads": 3, "rows": "target", "columns": "source"}
    folders = [
        write_maps(tmp_path / name, [sentence(1, pieces)], {"cross": site}, {"run_dir": name, "lines": 1})
        for name, pieces in {"a": ["▁café"], "b": ["▁caf", "<0xC3>", "<0xA9>"]}.items()
    ]
    viewed_runs(folders)
    assert caplog.text == ""
