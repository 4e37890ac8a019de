"""Which runs a server finds."""

import logging
import math
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from served_runs import LIMITS

import nmt.serving.gallery
from nmt.errors import Mistake
from nmt.runs.engine import Engine
from nmt.serving.application import application
from nmt.serving.batcher import Batcher
from nmt.serving.gallery import Gallery, Unavailable
from nmt.serving.service import Access, Service


def gallery(*folders: Path) -> Gallery:
    return Gallery(folders, "cpu", "float32", 2)


def test_every_finished_run_below_a_folder_is_found(folder: Path, tmp_path: Path) -> None:
    for place in ("a/one", "b/one", "b/two"):
        shutil.copytree(folder / "maps_luong", tmp_path / place)
    (tmp_path / "b/two/model.safetensors").unlink()
    found = gallery(tmp_path)
    assert set(found.offered) == {"a/one", "b/one"}
    assert str(found.offered["a/one"].direction) == "en-vi"
    assert found.for_direction("en", "vi") == found.offered["a/one"]
    assert found.for_direction("vi", "en") is None
    assert set(gallery(tmp_path / "a" / "one").offered) == {"one"}


def test_a_run_that_two_folders_lead_to_is_offered_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        shutil.copytree(folder / "maps_luong", tmp_path / "runs" / name)
    (tmp_path / "best").symlink_to(tmp_path / "runs" / "b")
    monkeypatch.chdir(tmp_path)
    assert list(gallery(Path("best"), Path("runs"), tmp_path / "runs" / "a").offered) == ["best", "a"]


def test_a_folder_that_vanishes_during_the_search_is_skipped(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder / "maps_luong", tmp_path / "run")
    (tmp_path / "gone").mkdir()
    listed = os.scandir

    def scandir(path: Any) -> Any:
        return listed(tmp_path / "nothing" if Path(path).name == "gone" else path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert list(gallery(tmp_path).offered) == ["run"]


def test_a_run_that_is_replaced_is_loaded_again(folder: Path, tmp_path: Path) -> None:
    run = shutil.copytree(folder / "maps_luong", tmp_path / "run")
    found = gallery(run)
    first = found.load("run")
    shutil.rmtree(run)
    shutil.copytree(folder / "maps_transformer", run)
    assert type(found.load("run").model) is not type(first.model)


def test_a_run_whose_weights_alone_are_replaced_is_loaded_again(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = shutil.copytree(folder / "maps_luong", tmp_path / "run")
    served = gallery(run)
    first = served.load("run")
    assert served.load("run") is first
    weights = load_file(run / "model.safetensors")
    save_file({name: tensor + 1 for name, tensor in weights.items()}, run / "new.safetensors")
    (run / "new.safetensors").replace(run / "model.safetensors")
    with caplog.at_level("INFO"):
        assert served.load("run") is not first
    assert "run: its folder has changed, so it has been loaded again" in caplog.messages


@pytest.mark.parametrize("loaded", [True, False])
def test_a_run_that_comes_to_translate_in_another_direction_is_not_loaded(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, loaded: bool
) -> None:
    """Requests choose runs by the direction in which they were offered."""
    run = shutil.copytree(folder / "maps_luong", tmp_path / "run")
    found = gallery(run)
    former = found.load("run") if loaded else None
    config = run / "config.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace("en-vi", "vi-en"), encoding="utf-8")
    if former is not None:
        assert found.load("run") is former
    else:
        with pytest.raises(Unavailable):
            found.load("run")
    assert f"{run} translates vi-en now, but is offered for en-vi: restart the server to offer it" in caplog.text


def test_memory_is_returned_after_a_run_has_taken_the_place_of_another(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading takes several times the size of a model, and a run may be replaced any number of times."""
    returned: list[None] = []
    monkeypatch.setattr("nmt.serving.gallery.return_memory", lambda: returned.append(None))
    for name in ("a", "b"):
        shutil.copytree(folder / "maps_luong", tmp_path / name)
    gallery = Gallery([tmp_path], "cpu", "float32", max_models=1)
    for name, times in (("a", 0), ("a", 0), ("b", 1), ("a", 2)):
        gallery.load(name)
        assert len(returned) == times, name
    metrics = tmp_path / "a" / "metrics.json"
    metrics.write_text(metrics.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    gallery.load("a")
    gallery.load("a")
    assert len(returned) == 3


def test_a_run_that_the_engine_does_not_support_stops_the_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    found = Gallery([folder / "maps_luong"], "cpu", "float32", 1, "ctranslate2")
    with pytest.raises(
        Mistake,
        match=r"^ctranslate2 supports only Transf.*use onnx\. To translate without an export, use engine=torch\.$",
    ):
        found.prepare_engines()


def test_every_run_that_is_served_is_exported_first(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        shutil.copytree(folder / "maps_luong", tmp_path / name)
    asked: list[Any] = []
    monkeypatch.setattr(nmt.serving.gallery, "load_with_engine", lambda *given: asked.append(given))
    Gallery([tmp_path], "cpu", "int8", 1, "onnx").prepare_engines()
    assert asked == [([tmp_path / name], "cpu", "int8", "onnx") for name in ("a", "b")]
    asked.clear()
    gallery(tmp_path).prepare_engines()
    assert asked == []


def test_the_engine_is_chosen_for_each_run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it chose and why is in /v1/runs; CTranslate2 gets only short texts with one translation and no prefix."""
    shutil.copytree(folder / "maps_luong", tmp_path / "a")
    monkeypatch.setattr(nmt.serving.gallery, "ctranslate2_or_why_not", lambda *_: "reason")
    monkeypatch.setattr(nmt.serving.gallery, "why_not_ctranslate2", lambda *_: "reason")
    found = Gallery([tmp_path], "cpu", "float32", 1, "auto")
    found.prepare_engines()
    assert found.engines == {"a": ("torch", "reason")}
    found.load("a")
    assert found.engines == {"a": ("torch", "reason")}
    assert found.engine_of("a") is None
    engine: Any = Engine("ctranslate2", "float32", "cpu", None, None, bind=print, forced_log_probs=print)  # type: ignore[arg-type]
    monkeypatch.setattr(nmt.serving.gallery, "ctranslate2_or_why_not", lambda *_: engine)
    monkeypatch.setattr(nmt.serving.gallery, "why_not_ctranslate2", lambda *_: None)
    found = Gallery([tmp_path], "cpu", "float32", 1, "auto")
    found.prepare_engines()
    assert found.engines["a"][0] == "ctranslate2"
    found.load("a")
    assert found.engines == {"a": ("ctranslate2", "its translations matched torch's")}
    assert (found.engine_of("a"), found.engine_of("a", usual=False)) == (engine, None)


def test_a_broken_run_is_skipped_and_named(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a_nan", "b_no_metrics", "c_other_tool", "d_good"):
        shutil.copytree(folder / "maps_luong", tmp_path / name)
    weights = load_file(tmp_path / "a_nan/model.safetensors")
    with safe_open(tmp_path / "a_nan/model.safetensors", "pt") as opened:
        metadata = opened.metadata()
    next(iter(weights.values())).view(-1)[0] = math.nan
    save_file(weights, tmp_path / "a_nan/model.safetensors", metadata)
    (tmp_path / "b_no_metrics/metrics.json").write_text("")
    (tmp_path / "c_other_tool/config.yaml").write_text("model: bert\n")
    (tmp_path / "c_other_tool/metrics.json").write_text('{"finished": true}')
    with caplog.at_level(logging.WARNING, "nmt"):
        found = gallery(tmp_path)
        assert found.first == "a_nan", "its weights are not read yet"
        found.preload()
    for text in (
        f"{tmp_path}/b_no_metrics is left out: {tmp_path}/b_no_metrics/metrics.json is damaged: it is not JSON.",
        f"{tmp_path}/c_other_tool is left out: {tmp_path}/c_other_tool/config.yaml is not the configuration of",
        f"a_nan cannot be loaded: {tmp_path}/a_nan/model.safetensors",
    ):
        assert text in caplog.text
    assert (found.first, list(found.offered)) == ("d_good", ["a_nan", "d_good"])
    assert found.for_direction("en", "vi") == found.offered["d_good"]
    service = Service(found, Batcher(found, 400, 0.0, 100), LIMITS, Access(frozenset(), None, ()))
    with TestClient(application(service), base_url="http://localhost") as client:
        broken = "The run {} cannot be loaded now; see the server's log for the reason."
        runs = {run["name"]: run for run in client.get("/v1/runs").json()}
        assert runs.pop("d_good") == {"name": "d_good", "source": "en", "target": "vi"}
        names = ["a_nan", "b_no_metrics", "c_other_tool"]
        assert {name: run["error"] for name, run in runs.items()} == {name: broken.format(name) for name in names}
        for name in names:
            answer = client.post("/v1/attend", json={"text": "one", "run": name})
            assert (answer.status_code, answer.json()) == (503, {"error": broken.format(name)})
        assert client.post("/v1/attend", json={"text": "one"}).status_code == 200
        assert client.post("/translate", json={"q": "one", "source": "en", "target": "vi"}).status_code == 200


def test_without_any_usable_run_the_first_error_is_reported(folder: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(folder / "maps_luong", tmp_path / name)
        (tmp_path / name / "model.safetensors").write_bytes(b"x")
    with pytest.raises(Mistake, match=r"a/model\.safetensors"):
        gallery(tmp_path).preload()
    for name in ("a", "b"):
        (tmp_path / name / "metrics.json").write_text("")
    with pytest.raises(Mistake, match=r"a/metrics\.json is damaged: it is not JSON"):
        gallery(tmp_path)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"There is no folder .*x; run_dirs takes run directories"):
        gallery(tmp_path / "x")
    with pytest.raises(Mistake, match="contains no finished run; train one with"):
        gallery(tmp_path)
