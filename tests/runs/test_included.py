"""Models that come with the package, by name."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import nmt
from nmt.commands.compare import compare
from nmt.commands.evaluate import evaluate
from nmt.commands.export_attention import export_attention
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.runs.directory import RunDirectory
from nmt.runs.included import included_models
from nmt.serving.gallery import Gallery


@pytest.fixture
def included(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run directory of an included model called numbers; the corpus is in the current folder."""
    monkeypatch.setattr("nmt.runs.included._FOLDERS", (tmp_path / "missing", tmp_path / "models"))
    for file in folder.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(folder / "maps_transformer", tmp_path / "models" / "numbers"))


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_commands_find_it_and_write_nothing_into_it(
    included: Path, job: Callable[..., Job], capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(included)
    assert included_models() == {"numbers": included}
    assert nmt.load("numbers").runs[0].directory.path == included
    Path("in.en").write_text("one two\n", encoding="utf-8")
    export_attention(job("export_attention", run_dir="numbers", input="in.en", out="maps", formats="[csv]"))
    evaluate(job("evaluate", run_dir="numbers"))
    compare(job("compare", run_dirs="[numbers]", out="table"))
    assert Path("runs/included/numbers/evaluation/test/scores.json").is_file()
    gallery = Gallery([Path("numbers")], "cpu", "float32", max_models=1)
    assert list(gallery.offered) == ["numbers"]
    assert files(included) == before


def test_a_run_of_the_users_own_with_that_name_is_left_alone(included: Path, job: Callable[..., Job]) -> None:
    own = Path(shutil.copytree(included, "runs/numbers"))
    before = files(own)
    evaluate(job("evaluate", run_dir="numbers"))
    assert files(own) == before


def test_its_folder_may_be_written_as_a_relative_path(included: Path, job: Callable[..., Job]) -> None:
    before = files(included)
    evaluate(job("evaluate", run_dir="models/numbers"))
    assert files(included) == before


@pytest.mark.parametrize("place", ["models/numbers/evaluation/..", "link", "models/numbers/"])
def test_its_results_have_its_name_whatever_its_folder_is_called(included: Path, place: str) -> None:
    (included / "evaluation").mkdir(exist_ok=True)
    Path("link").symlink_to(included)
    assert RunDirectory(Path(place)).results == Path("runs/included/numbers")


def test_its_results_have_its_name_inside_its_folder(included: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(included)
    assert RunDirectory(Path()).results == Path("runs/included/numbers")


def test_a_folder_of_the_same_name_comes_first(included: Path) -> None:
    Path("numbers").mkdir()
    with pytest.raises(Mistake, match="numbers is not a run directory"):
        nmt.load("numbers")


def test_an_unknown_name_is_answered_with_those_that_there_are(included: Path) -> None:
    with pytest.raises(Mistake, match=r"There is no folder letters; .* or a model that comes with nmt: numbers"):
        nmt.load("letters")
    with pytest.raises(Mistake, match=r"There is no folder letters; .* the names of included models \(numbers\)"):
        Gallery([Path("letters")], "cpu", "float32", max_models=1)
