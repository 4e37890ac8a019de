"""Which runs a server finds."""

import shutil
from pathlib import Path

import pytest

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
    with pytest.raises(ValueError, match=r"engine=ctranslate2 .*needs an export.* Transformers only.*engine=torch\.$"):
        found.export_all()


def test_an_engine_translates_for_every_run_that_is_served(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for name in ("a", "b"):
        shutil.copytree(folder / "maps_luong", tmp_path / name)
    found = Gallery([tmp_path], "cpu", "float32", 1, "onnx")
    found.export_all()
    assert all((tmp_path / name / "exports" / "onnx" / "step.onnx").is_file() for name in ("a", "b"))
    found.load("b")
    engine = found.engine_of("b")
    assert engine is not None
    assert engine.name == "onnx"


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*x; run_dirs takes run directories"):
        gallery(tmp_path / "x")
    with pytest.raises(FileNotFoundError, match="holds no finished run; train one with"):
        gallery(tmp_path)
