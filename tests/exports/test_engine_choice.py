"""engine=auto: what it chooses, what it keeps in the cache, and what it does not import."""

import contextlib
import errno
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jobs import job_of

from nmt.cli.compose import configuration
from nmt.commands.translate import translate
from nmt.errors import CheckFailed, Mistake
from nmt.exports import engine_choice, engine_options, engines, export_record, export_run
from nmt.exports.damage import DamagedExport, UnreadableExport
from nmt.exports.engine_choice import (
    Chosen,
    chosen_engine,
    ctranslate2_or_why_not,
    why_not_ctranslate2,
)
from nmt.exports.engine_options import VERDICT
from nmt.exports.export_record import file_digests
from nmt.exports.parity import Parity
from nmt.files import read_json
from nmt.runs.engine import engine_translator
from nmt.runs.load import choose_device, load_run
from nmt.runs.reading import read_run
from nmt.runs.search import build_translator

ctranslate2 = pytest.importorskip("ctranslate2")
ctranslate2_model = pytest.importorskip("nmt.exports.ctranslate2_model")

LINES = ["one two three.", "", "four five", "seven"]
CHECKED = "engine=auto: using CTranslate2, whose translations matched torch's"


def chosen(run: Path, engine: str = "auto", precision: str = "float32", **settings: Any) -> Chosen:
    return chosen_engine([str(run)], "cpu", precision, engine, **{"search": {}, "cache_dir": "cache", **settings})


@pytest.fixture(scope="module")
def cache_of_run(learned: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache after engine=auto has compared CTranslate2 with the run."""
    folder = shutil.copytree(learned, tmp_path_factory.mktemp("compared") / "corpus")
    with contextlib.chdir(folder):
        assert chosen(Path("run")).engine.name == "ctranslate2"
    return folder / "cache"


@pytest.fixture
def compared(run: Path, cache_of_run: Path) -> Path:
    """The run with that cache."""
    shutil.copytree(cache_of_run, "cache")
    return run


@contextmanager
def broken(extra: str) -> Iterator[None]:
    """In place of `importing`: a package cannot be imported."""
    with pytest.raises(ImportError):
        yield
    raise Mistake("it is broken.")


def cached() -> list[Path]:
    return [path for path in Path("cache/engines").iterdir() if path.is_dir()]


def test_the_first_use_compares_and_later_ones_need_neither_torch_nor_the_corpus(
    run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "nmt")
    runs, engine = chosen(run)
    assert engine.name == "ctranslate2"
    assert [record.getMessage() for record in caplog.records] == [
        "Checking once whether CTranslate2 translates like torch with run",
        CHECKED,
    ]
    [folder] = cached()
    assert read_json(folder / VERDICT)["parity"]["sentences"] == 7, "all pairs of the corpus"
    assert engine_translator(runs[0], engine).translate(LINES) == build_translator([load_run(run, "cpu")]).translate(
        LINES
    )
    assert not (run / "exports").exists(), "the run may be read-only"
    Path("valid.en").unlink()
    monkeypatch.setattr(engines, "load_run", None)
    monkeypatch.setattr(engines, "load_runs", None)
    assert chosen(run).engine.name == chosen(run, "ctranslate2").engine.name == "ctranslate2"


def test_one_line_imports_neither_torch_nor_lightning(compared: Path) -> None:
    """Counted in a process of its own, with the engine chosen automatically and by name."""
    (compared / "exports").mkdir()
    script = (
        "import sys\n"
        "from nmt.cli.command import command\n"
        "try:\n"
        "    command('translate', '', 'nmt.commands.translate:translate')\n"
        "except SystemExit as ended:\n"
        "    print({'torch', 'lightning', 'numpy', 'jaxtyping', 'sacrebleu'} & set(sys.modules), ended.code)\n"
    )
    for name in ("auto", "ctranslate2"):
        ended = subprocess.run(
            [sys.executable, "-c", script, "run_dir=run", f"engine={name}", "cache_dir=cache"],
            input="one two three.\n",
            capture_output=True,
            text=True,
        )
        expected = build_translator([load_run(compared, "cpu")]).translate(["one two three."])
        assert ended.stdout.split("\n") == [*expected, "set() 0", ""], ended.stderr


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"search": {"n_best": 2}}, "search.n_best=2"),
        ({"search": {"coverage_penalty": 0.2}}, "search.coverage_penalty=0.2"),
        ({"search": {"constraints": {"min_length": 2}}}, "search.constraints.min_length=2"),
        ({"search": {"constraints": {"no_repeat_ngram": 3}}}, "search.constraints.no_repeat_ngram=3"),
        ({"search": {"beam_size": 3}}, "the two were compared with another search.beam_size"),
        ({"search": {"length_penalty": 1.0}}, "the two were compared with another search.length_penalty"),
        (
            {"search": {"constraints": {"max_length_ratio": 1.5}}},
            "the two were compared with another search.constraints.max_length_ratio",
        ),
        ({"needs_torch": "prefixes"}, "prefixes"),
        ({"precision": "int8"}, "precision=int8"),
    ],
)
def test_what_ctranslate2_does_otherwise_is_left_to_torch(
    run: Path, caplog: pytest.LogCaptureFixture, changes: dict[str, Any], reason: str
) -> None:
    caplog.set_level(logging.INFO, "nmt")
    assert chosen(run, **changes).engine.name == "torch"
    assert [record.getMessage() for record in caplog.records] == [f"engine=auto: using torch: {reason}"]
    assert not Path("cache").exists()


def test_a_search_of_another_kind_and_several_runs_are_left_to_torch(
    run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "nmt")
    sampling = {"_target_": "nmt.decoding.sampling.Sampling", "samples": 2}
    stored = read_run(run)
    of_user = {"_target_": "my.BeamSearch", "beam_size": 2}
    assert why_not_ctranslate2(stored, "cpu", "float32", of_user, "cache") == "the search is not a beam search"
    assert chosen(run, search=sampling).engine.name == "torch"
    two = chosen_engine([str(run), str(run)], "cpu", "float32", "auto", search={}, cache_dir="cache")
    assert (two.engine.name, len(two.runs)) == ("torch", 2)
    assert "the search is not a beam search" in caplog.messages[0]
    assert "2 runs translate together" in caplog.messages[1]


def test_without_ctranslate2_torch_translates(
    run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(extra: str) -> None:
        raise Mistake(f"{extra} needs the package ctranslate2, which is not installed; install it first.")

    caplog.set_level(logging.INFO, "nmt")
    monkeypatch.setattr(engine_options, "check_extra", missing)
    with monkeypatch.context() as uninstalled:
        uninstalled.setattr(engine_choice, "find_spec", lambda _: None)
        assert chosen(run).engine.name == "torch"
        reason = "is not installed (pip install -c constraints.txt -e '.[ctranslate2]' adds it)"
        assert caplog.messages == [f"engine=auto: using torch: CTranslate2, which is often faster, {reason}"]
        # A GPU would not use it.
        uninstalled.setattr(engine_choice, "has_gpu_file", lambda: True)
        assert why_not_ctranslate2(read_run(run), "auto", "float32", {}, "cache") == "there is a GPU"
        assert why_not_ctranslate2(read_run(run), "cuda", "float32", {}, "cache") == "device=cuda"
    caplog.clear()
    monkeypatch.setattr(engine_choice, "check_extra", missing)
    assert chosen(run).engine.name == "torch"
    assert caplog.messages == [
        "engine=auto: using torch: ctranslate2 needs the package ctranslate2, which is not installed; install it first"
    ]
    with pytest.raises(Mistake, match=r"which is not installed; install it first, or use engine=torch\.$"):
        chosen(run, "ctranslate2")


def test_an_export_that_translates_differently_is_refused_once(
    run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []

    def differing(*_: Any) -> Parity:
        calls.append(1)
        return Parity(20, 100, 1e-5, 1e-6, 0.95)

    caplog.set_level(logging.INFO, "nmt")
    monkeypatch.setattr(export_run, "compare", differing)
    for _ in range(2):
        assert chosen(run).engine.name == "torch"
    [folder] = cached()
    refused = f"they translate 1 of 20 sentences differently; delete {folder} to compare them again"
    assert f"engine=auto: using torch: {refused}" in caplog.messages
    assert len(calls) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["sha256.json", VERDICT], "the model is not kept"


def test_nothing_is_kept_of_an_export_that_fails(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "cache")

    with monkeypatch.context() as failing:
        failing.setattr(engines, "write_compared", full)
        assert chosen(run).engine.name == "torch"
    assert cached() == []
    assert chosen(run).engine.name == "ctranslate2"


@pytest.mark.parametrize(
    "error", [Mistake("ctranslate2 needs the package x."), UnreadableExport("It cannot be opened.")]
)
def test_a_failure_that_says_nothing_about_the_model_is_not_kept(
    run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    caplog.set_level(logging.INFO, "nmt")

    def failing(*_: Any) -> None:
        raise error

    with monkeypatch.context() as failure:
        failure.setattr(engines, "write_compared", failing)
        assert chosen(run).engine.name == "torch"
    assert f"engine=auto: using torch: {str(error)[:-1]}" in caplog.messages
    assert cached() == []
    assert chosen(run).engine.name == "ctranslate2"


def test_a_broken_disk_is_neither_hidden_nor_kept(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, raised in (
        (CheckFailed("valid.en cannot be read."), CheckFailed),
        (OSError(errno.EIO, os.strerror(errno.EIO), "valid.en"), OSError),
    ):

        def failing(*_: Any, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(engines, "comparison_pairs", failing)
        with pytest.raises(raised):
            chosen(run)
    assert not Path("cache/engines").exists()


def test_a_model_that_cannot_be_exported_is_refused_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("normalizers.Softmax", "normalizers.Sparsemax"))
    stored = read_run(run)
    refused = ctranslate2_or_why_not(stored, "cpu", "float32", {}, "cache")
    [folder] = cached()
    assert refused == "CTranslate2 does not support normalizer=sparsemax"
    assert sorted(path.name for path in folder.iterdir()) == ["sha256.json", VERDICT], "the model is not kept"
    monkeypatch.setattr(engines, "load_run", None)
    assert why_not_ctranslate2(stored, "cpu", "float32", {}, "cache") == refused


def test_the_reason_against_another_class_of_model_names_no_run_and_no_remedy(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "nmt")
    reason = "engine=auto: using torch: CTranslate2 supports only Transformers"
    cache = str(tmp_path / "cache")
    assert chosen(here / "maps_luong", cache_dir=cache).engine.name == "torch"
    assert caplog.messages[-1] == reason
    copied = shutil.copytree(here / "maps_luong", tmp_path / "copied")
    monkeypatch.setattr(engines, "export_checked", None)
    assert chosen(copied, cache_dir=cache).engine.name == "torch"
    assert caplog.messages[-1] == reason


def test_an_export_of_the_cache_that_cannot_be_loaded_is_made_again_once(
    compared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, made, own = read_run(compared), list[Path](), ctranslate2_model.ctranslate2_engine
    made_again = engines.export_checked
    monkeypatch.setattr(engines, "export_checked", lambda of, folder: made.append(folder) or made_again(of, folder))

    def damaged(*_: Any) -> None:
        raise DamagedExport("It cannot be loaded.")

    with monkeypatch.context() as damage:
        damage.setattr(ctranslate2_model, "ctranslate2_engine", lambda *given: own(*given) if made else damaged())
        assert chosen(compared).engine.name == "ctranslate2"
        assert made == cached()
        damage.setattr(ctranslate2_model, "ctranslate2_engine", damaged)
        damage.setattr(engines, "export_checked", lambda _, folder: shutil.copytree("kept", folder))
        shutil.copytree(made[0], "kept")
        refused = ctranslate2_or_why_not(stored, "cpu", "float32", {}, "cache")
        assert refused == f"CTranslate2 cannot load {made[0]}"


def test_a_broken_ctranslate2_leaves_the_work_to_torch(compared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nmt.exports.ctranslate2_model", None)
    monkeypatch.setattr(engine_choice, "importing", broken)
    assert ctranslate2_or_why_not(read_run(compared), "cpu", "float32", {}, "cache") == "it is broken"


def test_a_cache_that_cannot_be_written_is_found_before_torch_is_loaded(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("cache").write_text("")
    monkeypatch.setattr(engines, "load_run", None)
    refused = ctranslate2_or_why_not(read_run(run), "cpu", "float32", {}, "cache")
    assert refused == "cache_dir/engines is cache/engines, but cache is a file; choose another folder"


@pytest.mark.parametrize("seen_by", ["ctranslate2", "files"])
def test_torch_decides_whether_it_uses_a_gpu(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, seen_by: str
) -> None:
    caplog.set_level(logging.INFO, "nmt")
    monkeypatch.setattr(engine_choice, "_GPU_FILES", [str(tmp_path)] if seen_by == "files" else [])
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: int(seen_by == "ctranslate2"))
    engine = chosen_engine([str(run)], "auto", "float32", "auto", search={}, cache_dir="cache").engine
    assert (engine.name, engine.device) == ("torch", choose_device("auto").type)
    assert caplog.messages == ["engine=auto: using torch: there is a GPU"]


def test_if_the_export_of_a_run_is_damaged_that_of_the_cache_is_used(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen(run, "ctranslate2")
    chosen(run)
    (run / "exports/ctranslate2/model.bin").write_bytes(b"damaged")
    monkeypatch.setattr(engines, "load_runs", None)
    assert chosen(run, "ctranslate2").engine.name == "ctranslate2"


def test_another_version_of_ctranslate2_is_compared_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen(run, "ctranslate2")
    stored = read_run(run)
    assert engine_choice._known_export(stored, "float32", Path("cache")) is not None
    monkeypatch.setattr(engine_choice, "version", lambda _: "another")
    assert engine_choice._known_export(stored, "float32", Path("cache")) is None


def test_a_run_that_has_changed_and_an_export_with_a_changed_byte_are_compared_again(compared: Path) -> None:
    [first] = cached()
    content = (first / "model.bin").read_bytes()
    (first / "model.bin").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert chosen(compared).engine.name == "ctranslate2"
    assert (first / "model.bin").read_bytes() == content
    config = (compared / "config.yaml").read_text()
    (compared / "config.yaml").write_text(config.replace("num_heads: 2", "num_heads: 1"))
    assert (compared / "config.yaml").read_text() != config
    chosen(compared)
    assert len(cached()) == 2


def test_a_node_without_a_class_inside_a_search_stays_as_it_is() -> None:
    node = {"_target_": "nmt.decoding.beam.BeamSearch", "extra": {"a": {"b": 1}}}
    kept = ctranslate2_model._without_tensors(node)
    assert kept == {**node, "_target_": "nmt.decoding.search_settings.BeamSettings"}


def test_the_weights_are_hashed_once(compared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    own = export_record.file_digest
    monkeypatch.setattr(export_record, "file_digest", lambda path: hashed.append(path.name) or own(path))
    for engine in ("auto", "ctranslate2"):
        hashed.clear()
        chosen(compared, engine)
        assert hashed == ["model.safetensors"]


def test_a_verdict_holds_only_for_the_search_that_was_compared(compared: Path) -> None:
    stored = chosen(compared).runs[0].settings.search
    assert chosen(compared, search={"beam_size": stored["beam_size"]}).engine.name == "ctranslate2"
    assert chosen(compared, search={"_target_": stored["_target_"]}).engine.name == "torch", (
        "the defaults are not the run's"
    )
    config = (compared / "config.yaml").read_text()
    (compared / "config.yaml").write_text(config.replace(f"beam_size: {stored['beam_size']}", "beam_size: 7"))
    assert (compared / "config.yaml").read_text() != config
    assert chosen(compared).engine.name == "ctranslate2"
    assert len(cached()) == 2, "the run's own search is another one now"


def test_the_export_of_a_run_is_compared_with_it_before_it_is_trusted(run: Path, tmp_path: Path) -> None:
    """Who made the run made the export beside it, too; the record says what its maker likes."""
    chosen(run, "ctranslate2")
    assert engine_choice._known_export(chosen(run, "torch").runs[0], "float32", Path("cache")) is not None
    planted = tmp_path / "planted"
    shutil.copytree(run, planted)
    (file,) = (planted / "exports" / "ctranslate2").glob("shared_vocabulary.json")
    pieces = json.loads(file.read_text())
    file.write_text(json.dumps([*pieces[:10], *reversed(pieces[10:])]))
    record = read_json(planted / "exports" / "ctranslate2" / "export.json")
    record["files"][file.name] = file_digests(file.parent)[file.name]
    (file.parent / "export.json").write_text(json.dumps(record))
    run_of_planted = chosen(planted, "torch").runs[0]
    assert engine_choice._known_export(run_of_planted, "float32", Path("cache")) is None


def test_a_job_goes_on_with_the_engine_that_began_it(run: Path) -> None:
    settings = {"run_dir": "run", "input": "test.en", "output": "out", "device": "cpu", "cache_dir": "cache"}

    def translated(**changes: Any) -> None:
        translate(job_of("translate", {**configuration("translate", ["run_dir=run"]), **settings, **changes}))

    translated(engine="torch")
    assert read_json(Path("out/job.json"))["made_with"]["engine"] == "torch"
    translated(engine="auto")
    with pytest.raises(Mistake, match="whose job was started with engine=torch, not ctranslate2: use the same value"):
        translated(engine="ctranslate2")
    translated(engine="auto", output="other")
    assert read_json(Path("other/job.json"))["made_with"]["engine"] == "ctranslate2"
    assert Path("other/test.vi").read_text() == Path("out/test.vi").read_text()
    with pytest.raises(Mistake, match="whose job was started with engine=ctranslate2, not torch: use the same value"):
        translated(engine="torch", output="other")
    translated(engine="auto", output="other", cluster="ray")
    shutil.rmtree("cache")
    shutil.rmtree(run / "exports")
    translated(engine="auto", output="other")
    assert not (run / "exports").exists(), "engine=auto keeps its export in the cache, also of a job that goes on"


def test_without_pairs_to_compare_on_torch_translates(
    run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Path("valid.en").unlink()
    monkeypatch.setattr(export_run, "stored_pairs", lambda _: None)
    caplog.set_level(logging.INFO, "nmt")
    assert chosen(run).engine.name == "torch"
    assert (
        "engine=auto: using torch: CTranslate2 has to be compared with torch first, but the validation corpus is "
        "missing (" in caplog.text
    )
    assert (
        "Score sentence pairs of your own once, and they are used instead: python -m nmt.evaluate "
        f"run_dir={run} source=FILE reference=FILE" in caplog.text
    )
