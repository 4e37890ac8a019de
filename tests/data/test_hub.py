"""Datasets of the Hugging Face Hub become aligned files. Here a folder takes the place of the Hub."""

import json
from pathlib import Path

import datasets
import pytest

from nmt.config.direction import Direction
from nmt.data.corpus import read_parallel
from nmt.data.fetch import DownloadFailed
from nmt.data.hub import checked_name, stored_name, write_splits
from nmt.errors import Mistake

LANGUAGES = Direction("en", "vi")
PAIRS = [{"en": "one", "vi": "một"}, {"en": "two\r\nlines", "vi": "hai"}, {"en": "\u2028", "vi": ""}]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))


def a_set(folder: Path, rows: list[dict[str, object]]) -> str:
    folder.mkdir()
    for split in ("train", "validation"):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize("nested", [True, False])
def test_every_split_becomes_aligned_files(tmp_path: Path, nested: bool) -> None:
    rows = [{"translation": pair} if nested else {**pair, "id": 7} for pair in PAIRS]
    written = write_splits(a_set(tmp_path / "set", rows), None, LANGUAGES, tmp_path / "out")
    assert {path.name for path in written} == {"train.en", "train.vi", "valid.en", "valid.vi"}
    assert set((tmp_path / "out").iterdir()) == {*written, tmp_path / "out" / ".origin"}
    for split in ("train", "valid"):
        files = (tmp_path / "out" / f"{split}.{language}" for language in ("en", "vi"))
        assert read_parallel(*files) == (["one", "two lines", "\u2028"], ["một", "hai", ""])


def test_a_dataset_without_the_languages_is_refused(tmp_path: Path) -> None:
    name = a_set(tmp_path / "set", [{"translation": {"en": "one", "de": "eins"}}])
    with pytest.raises(
        Mistake, match=r"has no vi, only de, en; set languages= to two of these, or choose another hub_config"
    ):
        write_splits(name, None, LANGUAGES, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_dataset_is_one_short_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    with pytest.raises(
        DownloadFailed, match=r"^Dataset 'nobody/nothing' could not be loaded\. Check its name and .* connection\. \S"
    ):
        write_splits("nobody/nothing", None, LANGUAGES, tmp_path / "out")


@pytest.mark.parametrize("config", [None, "c"])
def test_a_dataset_with_several_configurations_needs_one_of_them(tmp_path: Path, config: str | None) -> None:
    folder = tmp_path / "set"
    name = a_set(folder, [{"en": "one", "vi": "một"}])
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: a\n  data_files: train.jsonl\n"
        "- config_name: b\n  data_files: validation.jsonl\n---\n"
    )
    with pytest.raises(Mistake, match=r"needs another hub_config: .*\['a', 'b'\]"):
        write_splits(name, config, LANGUAGES, tmp_path / "out")
    assert len(write_splits(name, "a", LANGUAGES, tmp_path / "out")) == 2


def test_other_errors_of_the_library_do_not_blame_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ValueError("Compression type zstd not supported")

    monkeypatch.setattr("datasets.load_dataset", fails)
    with pytest.raises(DownloadFailed, match=r"could not be loaded.* zstd not supported"):
        write_splits(a_set(tmp_path / "set", [{"en": "one", "vi": "một"}]), None, LANGUAGES, tmp_path / "out")


@pytest.mark.parametrize("name", ["", "json", "a/b/c", "a b/c", ".hidden/a", "a/.."])
def test_a_malformed_name_is_refused(name: str) -> None:
    with pytest.raises(Mistake, match="is not the name of a dataset on the Hugging Face Hub; write hub:OWNER/SET"):
        checked_name(name)


@pytest.mark.parametrize("name", ["IWSLT/mt_eng_vietnamese", "Some-Owner/set.v1"])
def test_names_of_datasets(name: str) -> None:
    assert checked_name(name) == name


def test_a_name_hidden_by_a_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "envi").mkdir(parents=True)
    with pytest.raises(
        Mistake, match=r"data/envi is a local path, which hides the dataset of that name: write hub:\./data/envi for"
    ):
        checked_name("data/envi")


def test_existing_files_are_kept_and_an_interruption_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = a_set(tmp_path / "set", [dict(pair) for pair in PAIRS])

    def breaks(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("nmt.data.hub._LINE_END", type("Ends", (), {"sub": breaks}))
        with pytest.raises(KeyboardInterrupt):
            write_splits(name, None, LANGUAGES, tmp_path / "out")
    assert [file.name for file in (tmp_path / "out").iterdir()] == [".origin"]
    write_splits(name, None, LANGUAGES, tmp_path / "out")
    (tmp_path / "out" / "train.en").write_text("mine\n")
    write_splits(name, None, LANGUAGES, tmp_path / "out")
    assert (tmp_path / "out" / "train.en").read_text() == "mine\n"


def test_two_validation_splits_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.data.hub._loaded", lambda *_: {"validation": [], "dev": []})
    with pytest.raises(
        Mistake, match="has two validation splits among validation, dev, but nmt reads only one; choose"
    ):
        write_splits("owner/set", None, LANGUAGES, tmp_path / "out")


@pytest.mark.parametrize("saved", [False, True])
def test_a_folder_is_a_dataset_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: bool) -> None:
    monkeypatch.chdir(tmp_path)
    if saved:
        datasets.Dataset.from_list(PAIRS).save_to_disk("mine")
    else:
        a_set(tmp_path / "mine", [dict(pair) for pair in PAIRS])
    name = checked_name("./mine")
    assert (stored_name(name), stored_name(str(tmp_path / "mine")), stored_name("a/b")) == ("mine", "mine", "a/b")
    write_splits(name, None, LANGUAGES, tmp_path / "out")
    files = (tmp_path / "out" / f"train.{language}" for language in ("en", "vi"))
    assert read_parallel(*files) == (["one", "two lines", "\u2028"], ["một", "hai", ""])


def test_another_folder_of_the_same_name_is_refused(tmp_path: Path) -> None:
    for version, text in (("v1", "one"), ("v2", "two")):
        (tmp_path / version).mkdir()
        a_set(tmp_path / version / "pairs", [{"en": text, "vi": text}])
    write_splits(str(tmp_path / "v1" / "pairs"), None, LANGUAGES, tmp_path / "out")
    with pytest.raises(
        Mistake, match=r"out has the files of .*/v1/pairs, not of .*/v2/pairs: choose .* out=, or delete"
    ):
        write_splits(str(tmp_path / "v2" / "pairs"), None, LANGUAGES, tmp_path / "out")
    assert (tmp_path / "out" / "train.en").read_text() == "one\n"


@pytest.mark.parametrize("name", ["./absent", "../absent", "/absent"])
def test_a_missing_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Mistake, match=rf"There is no folder {name}; check the path, or write hub:OWNER/SET for"):
        checked_name(name)


def test_files_of_several_formats_do_not_blame_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("en,vi\none,hai\n", encoding="utf-8")
    (tmp_path / "validation.json").write_text('{"en": "one", "vi": "hai"}\n', encoding="utf-8")
    with pytest.raises(DownloadFailed, match=r"could not be loaded\. Check the files in the folder\. "):
        write_splits(f"{tmp_path}/", None, LANGUAGES, tmp_path / "out")


def test_a_folder_without_data_does_not_blame_the_network(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match=r"could not be loaded\. Check the files in the folder\."):
        write_splits(f"{tmp_path}/", None, LANGUAGES, tmp_path / "out")
