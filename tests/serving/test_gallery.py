"""Which runs a server finds."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import nmt.serving.gallery
from nmt.errors import Mistake
from nmt.serving.gallery import Gallery


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


def test_a_run_that_is_replaced_is_loaded_again(folder: Path, tmp_path: Path) -> None:
    run = shutil.copytree(folder / "maps_luong", tmp_path / "run")
    found = gallery(run)
    first = found.load("run")
    shutil.rmtree(run)
    shutil.copytree(folder / "maps_transformer", run)
    assert type(found.load("run").model) is not type(first.model)


def test_a_run_that_the_engine_does_not_support_stops_the_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    found = Gallery([folder / "maps_luong"], "cpu", "float32", 1, "ctranslate2")
    with pytest.raises(Mistake, match=r"^ctranslate2 supports only Transformers.*use onnx\. Or use engine=torch\.$"):
        found.export_all()


def test_every_run_that_is_served_is_exported_first(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        shutil.copytree(folder / "maps_luong", tmp_path / name)
    asked: list[Any] = []
    monkeypatch.setattr(nmt.serving.gallery, "load_with_engine", lambda *given: asked.append(given))
    Gallery([tmp_path], "cpu", "int8", 1, "onnx").export_all()
    assert asked == [([tmp_path / name], "cpu", "int8", "onnx") for name in ("a", "b")]
    asked.clear()
    gallery(tmp_path).export_all()
    assert asked == []


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"There is no folder .*x; run_dirs takes run directories"):
        gallery(tmp_path / "x")
    with pytest.raises(Mistake, match="contains no finished run; train one with"):
        gallery(tmp_path)
