"""nmt.download; tests/data/test_fetch.py has the tests of the network."""

import hashlib
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jobs import job_of

from nmt.cli.compose import configuration
from nmt.commands import download as module
from nmt.commands.download import download
from nmt.config.direction import Direction
from nmt.config.nodes import CONFIGS
from nmt.config.schema import TrainSettings, validated
from nmt.data.fetch import Limits
from nmt.errors import CheckFailed, Mistake

CORPUS = {"a.en": b"one\n", "a.vi": "một\n".encode()}


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the only known corpus, one of them under its path at the source."""
    (tmp_path / "corpus").mkdir()
    files = {name: {"sha256": hashlib.sha256(content).hexdigest()} for name, content in CORPUS.items()}
    facts = {"license": "CC0", "citation": "Nobody", "url": "https://localhost:1/", "files": files}
    facts["files"]["a.vi"]["path"] = "deep/data.vi"
    (tmp_path / "corpus" / "tiny.yaml").write_text(yaml.safe_dump(facts), encoding="utf-8")
    monkeypatch.setattr(module, "CONFIGS", tmp_path)
    monkeypatch.setattr(module, "Limits", lambda most: Limits(most, silence=0.5, tries=1))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "copies" / "deep").mkdir(parents=True)
    (tmp_path / "copies" / "a.en").write_bytes(CORPUS["a.en"])
    (tmp_path / "copies" / "deep" / "data.vi").write_bytes(CORPUS["a.vi"])
    return tmp_path


def run(*overrides: str) -> None:
    config = configuration("download", overrides)
    download(job_of("download", config))


def test_files_are_copied_from_a_folder(
    known: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        run("what=tiny", "from=copies")
    assert capsys.readouterr().out.splitlines() == ["data/tiny/a.en", "data/tiny/a.vi"]
    assert {name: (known / "data" / "tiny" / name).read_bytes() for name in CORPUS} == CORPUS
    assert "tiny. License: CC0. Cite: Nobody." in caplog.text
    # Complete files need no network.
    run("what=[tiny]")


def test_complete_files_may_be_in_a_read_only_folder(
    known: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("what=tiny", "from=copies", "out=shared")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    capsys.readouterr()
    run("what=tiny", "out=shared")
    assert capsys.readouterr().out.splitlines() == ["shared/tiny/a.en", "shared/tiny/a.vi"]
    # An archive that exists but is not extracted yet.
    (known / "shared" / "b.zip").write_bytes(b"")
    with pytest.raises(Mistake, match=r"^out is shared, but shared cannot be written to"):
        run("what=https://localhost:1/b.zip", "out=shared")
    (known / "shared" / "tiny" / "a.vi").unlink()
    with pytest.raises(
        Mistake,
        match=r"^out is shared, but shared cannot be written to \(Permission denied\); choose another folder",
    ):
        run("what=tiny", "out=shared")


def test_datasets_of_the_hub_go_to_folders_of_their_own(
    known: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def write_splits(*given: object) -> list[Path]:
        asked.append(given)
        return [Path("a"), Path("b")]

    monkeypatch.setattr(module, "write_splits", write_splits)
    run("what=hub:some/set", "hub_config=de-en", "languages=de-en")
    run("what=[hub:some/set]")
    assert asked == [
        ("some/set", "de-en", Direction("de", "en"), Path("data/hub/some/set/de-en")),
        ("some/set", None, Direction("en", "vi"), Path("data/hub/some/set")),
    ]
    assert capsys.readouterr().out.splitlines() == ["a", "b"] * 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["what=hub:json"], "'json' is not the name of a dataset on the Hugging Face Hub"),
        (["what=hub:a/b", "languages=en"], "Unknown direction 'en'"),
        (["what=hub:a/b", "from=copies"], "from=copies works only for tiny, not for a/b; leave it out"),
    ],
)
def test_an_impossible_dataset_is_refused(known: Path, given: list[str], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        run(*given)


def test_a_different_file_is_refused_and_none_is_overwritten(known: Path) -> None:
    (known / "copies" / "a.en").write_bytes(b"two\n")
    with pytest.raises(Mistake, match=r"copies/a\.en has sha256 .* Choose another folder\."):
        run("what=tiny", "from=copies")
    (known / "data" / "tiny").mkdir(parents=True)
    (known / "data" / "tiny" / "a.en").write_bytes(b"mine\n")
    (known / "copies" / "a.en").write_bytes(CORPUS["a.en"])
    with pytest.raises(Mistake, match=r"data/tiny/a\.en has sha256 .* Delete it first\."):
        run("what=tiny", "from=copies")
    with pytest.raises(Mistake, match=r"data/tiny/a\.en has sha256 .* Delete it, or choose another folder"):
        run("what=tiny")
    assert (known / "data" / "tiny" / "a.en").read_bytes() == b"mine\n"


@pytest.mark.parametrize(
    ("overrides", "error", "told"),
    [
        (["what=tinny"], ValueError, r"Unknown corpus 'tinny'\. Did you mean 'tiny'\?"),
        (["what=[]"], ValueError, "Nothing to download; name tiny, hub:OWNER/SET, or an https:// address"),
        (["what='http://localhost/a.txt'"], ValueError, "is not an https:// URL"),
        (["what='https://localhost/'"], ValueError, "does not end with the name of a file"),
        (["what='https://localhost/a%1b[2J'"], ValueError, "does not end with the name of a file that can be printed"),
        (["what='https://localhost/a%0d'"], ValueError, "does not end with the name of a file that can be printed"),
        (["what='https://localhost/%e2%80%aea'"], ValueError, "does not end with the name of a file that can be"),
        (["what='https://localhost/..'"], ValueError, "does not end with the name of a file"),
        (["what='https://localhost/%2e%2e%2fa'"], ValueError, "does not end with the name of a file"),
        (
            ["what='https://localhost/a.zip'", "from=copies"],
            ValueError,
            r"from=copies works only for tiny, not for https",
        ),
        (["what=tiny", "max_gib=0"], ValueError, "max_gib is 0"),
        (["what=tiny", "max_gib=inf"], ValueError, "max_gib is inf"),
        (["what=tiny", "out=copies/a.en"], ValueError, r"out is copies/a\.en, but copies/a\.en is a file"),
        (["what=['https://a/x.zip','http://b/y.zip']"], ValueError, "'http://b/y.zip' is not an https:// URL"),
        (["what=['https://a/x.zip','https://b/x.tgz']"], ValueError, "would both be written to data/x"),
        (["what=tiny", "from=nowhere"], Mistake, "from is nowhere, which is not a folder"),
        (["what=tiny", "from=corpus"], Mistake, r"corpus has no a\.en; name the folder that contains"),
        (["what=tiny"], CheckFailed, r"https://localhost:1/a\.en could not be downloaded: .* add from=FOLDER to copy"),
    ],
)
def test_mistakes_and_failures_are_reported(
    known: Path, overrides: list[str], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        run(*overrides)
    assert not (known / "data" / "tiny" / "a.en").exists()


def test_an_archive_is_extracted_beside_it(
    known: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fetched(url: str, path: Path, *_: object) -> bool:
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("deep/b.en", "two\n")
        return True

    monkeypatch.setattr(module, "fetch", fetched)
    run("what='https://localhost/x/en-vi.txt.zip?a=b'")
    assert capsys.readouterr().out == "data/en-vi.txt/deep/b.en\n"
    assert (known / "data" / "en-vi.txt" / "deep" / "b.en").read_text() == "two\n"
    # Extracted files are kept.
    monkeypatch.setattr(module, "fetch", None)
    run("what='https://localhost/x/en-vi.txt.zip?a=b'")
    assert capsys.readouterr().out == "data/en-vi.txt/deep/b.en\n"


def test_the_rate_counts_from_the_first_report_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    tell = module._progress("a.zip")
    with caplog.at_level("INFO"):
        for seconds, size in ((106, 2_000_000), (108, 3_000_000), (112, 5_000_000), (120, 9_000_000)):
            now[0] = seconds
            tell(size, 9_000_000)
    assert [record.getMessage() for record in caplog.records] == [
        "a.zip: 2.0 of 9.0 MB, 0.00 MB a second",
        "a.zip: 5.0 of 9.0 MB, 0.50 MB a second, 8 s left",
    ]


def test_help_names_every_corpus() -> None:
    text = (Path(module.__file__).parents[1] / "download.py").read_text(encoding="utf-8")
    [names] = re.findall(r"known by name: (.*);", text)
    assert names.split(", ") == sorted(path.stem for path in (CONFIGS / "corpus").glob("*.yaml"))


def test_words_without_a_key_name_the_corpora(command: Callable[..., Any], corpus: Path) -> None:
    ended = command("download", "iwslt16", "out=x", "https://localhost/a?b=c")
    assert (ended.code, ended.output) == (2, "")
    assert ended.errors.startswith("error: Unknown corpus 'iwslt16'. Did you mean 'iwslt15'?")


@pytest.mark.parametrize("name", sorted(file.stem for file in CONFIGS.glob("corpus/*.yaml")))
def test_a_corpus_is_written_where_its_configuration_reads_it(name: str) -> None:
    facts = yaml.safe_load((CONFIGS / "corpus" / f"{name}.yaml").read_text(encoding="utf-8"))
    data = validated(TrainSettings, configuration("train", ["run_dir=none", f"data={name}"])).data
    prefixes = [*data.train, *data.held_out.values()]
    direction = Direction.parse("en-vi")
    assert set(data.detokenize) <= set(prefixes)
    wanted = {f"{prefix}.{language}" for prefix in prefixes for language in (direction.source, direction.target)}
    assert {f"data/{name}/{file}" for file in facts["files"]} == wanted
    assert all(len(facts["files"][file].get("sha256", "0" * 64)) == 64 for file in facts["files"])
