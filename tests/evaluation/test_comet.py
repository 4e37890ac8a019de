"""COMET, with a stand-in for its package, which is not installed."""

import sys
from pathlib import Path

import pytest

import nmt.evaluation.comet
from nmt.errors import Mistake
from nmt.evaluation.comet import Comet

PACKAGE = """
class Model:
    def predict(self, samples, gpus, progress_bar):
        assert not progress_bar
        return {"scores": [len(sample["mt"]) / 10 + (sample["src"] == sample["ref"]) + gpus for sample in samples]}

def download_model(name):
    if name == "absent":
        raise KeyError("Model 'absent' not supported by COMET.")
    return "/models/" + name

def load_from_checkpoint(path):
    if not str(path).startswith("/models/"):
        raise Exception(f"hparams.yaml file is missing from {path}!")
    return Model()
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "comet").mkdir()
    (tmp_path / "comet" / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "comet", raising=False)
    monkeypatch.setattr(nmt.evaluation.comet, "version", lambda _: "2.2.7")


@pytest.mark.usefixtures("package")
def test_the_score_is_the_mean_times_100_inside_its_interval() -> None:
    found = Comet("da")(["a", "b", "c"], ["one", "two two", "three"], ["a", "x", "x"])
    assert found.value == pytest.approx(100 * (0.3 + 1 + 0.7 + 0.5) / 3)
    assert 50 <= found.low < found.value < found.high <= 130
    assert found.signature == "model:da|bs:1000|seed:12345|version:2.2.7"
    assert Comet("da", gpu=True)(["a"], ["one"], ["x"]).value == pytest.approx(130)


@pytest.mark.usefixtures("package")
def test_different_numbers_of_lines_are_refused() -> None:
    with pytest.raises(Mistake, match="1 hypotheses but 2 sources"):
        Comet("da")(["a", "b"], ["one"], ["x"])


@pytest.mark.usefixtures("package")
def test_a_missing_model_gives_an_error_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"comet=absent cannot be loaded \(.*not supported.* such as Unbabel/"):
        Comet("absent")
    file = tmp_path / "model.ckpt"
    file.touch()
    with pytest.raises(Mistake, match=r"model\.ckpt cannot be loaded \(hparams\.yaml file is missing"):
        Comet(str(file))


@pytest.mark.usefixtures("package")
def test_a_bug_is_not_called_a_missing_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(_: str) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr("comet.load_from_checkpoint", bug)
    with pytest.raises(TypeError, match="a bug"):
        Comet("da")


def test_a_missing_package_gives_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(Mistake, match=r"comet=da needs the package unbabel-comet.*pip install '\.\[comet\]'"):
        Comet("da")
