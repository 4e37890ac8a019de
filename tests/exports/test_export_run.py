"""nmt.export as a whole, and engine= in every command that translates."""

import errno
import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from grids import SOAK
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

import nmt
from nmt.commands.export import export
from nmt.config.job import Job
from nmt.errors import CheckFailed, Mistake
from nmt.exports import engines, extras, formats, parity
from nmt.exports.damage import DamagedExport
from nmt.exports.engines import load_with_engine
from nmt.exports.export_record import RECORD, check_files, read_record
from nmt.exports.export_run import check_replaceable, comparison_pairs, export_run
from nmt.exports.formats import ENGINES, FORMATS
from nmt.runs.load import LoadedRun, load_run

Command = Callable[..., object]
LINES = "one two three.\n\nfour five\n"


# What an engine exports for itself says the same, see below.
@pytest.mark.parametrize("format", FORMATS if SOAK else [name for name in FORMATS if name not in ENGINES])
def test_an_export_says_how_closely_it_matches(
    run: Path, job: Callable[..., Job], capsys: pytest.CaptureFixture[str], format: str
) -> None:
    export(job("export", run_dir="run", format=format, out="taken"))
    sentence, folder = capsys.readouterr().out.splitlines()
    assert sentence.startswith("Compared on 7 sentences")
    assert sentence.endswith("100.0% of the translations are equal.")
    check_record(json.loads((Path(folder) / RECORD).read_text()))


def check_record(record: dict[str, Any]) -> None:
    assert record["quantization"] == "float32"
    assert record["parity"]["largest_difference"] < parity.BOUNDS["float32"]


def test_an_export_is_replaced_if_told_to(run: Path, command: Command) -> None:
    arguments = "run_dir=run", "format=ctranslate2", "out=taken"
    assert command("export", *arguments).code == 0
    again = command("export", *arguments)
    assert (again.code, again.errors) == (
        2,
        "error: out is taken, which exists: choose another folder, or overwrite=true to replace it.\n",
    )
    assert command("export", *arguments, "overwrite=true").code == 0


def test_only_an_export_is_overwritten(run: Path, tmp_path: Path) -> None:
    trained = load_run(run, "cpu")
    with pytest.raises(Mistake, match=r"out is run, which exists and is not an export: choose another folder"):
        check_replaceable(run, overwrite=True)
    out, link = tmp_path / "out", tmp_path / "link"
    out.mkdir()
    check_replaceable(out, overwrite=False)  # empty
    export_run(trained, "ctranslate2", out, "float32", comparison_pairs(trained))
    with pytest.raises(Mistake, match=r"which exists: choose another folder, or overwrite=true to replace it"):
        check_replaceable(out, overwrite=False)
    check_replaceable(out, overwrite=True)
    (out / "notes").mkdir()
    (out / "notes" / "mine.md").touch()
    with pytest.raises(Mistake, match=r"which contains files besides the export \(notes/mine.md\): move these"):
        check_replaceable(out, overwrite=True)
    (out / RECORD).write_text("{damaged")
    with pytest.raises(Mistake, match=r"which exists and is not an export"):
        check_replaceable(out, overwrite=True)
    link.symlink_to(out)
    with pytest.raises(Mistake, match=r"link, a symbolic link: name the folder itself, .*out\."):
        check_replaceable(link, overwrite=True)


def test_a_folder_of_links_is_not_replaced(tmp_path: Path) -> None:
    """Replacing it would delete the links."""
    out = tmp_path / "out"
    (out / "deep").mkdir(parents=True)
    check_replaceable(out, overwrite=False)
    (out / "deep" / "link").symlink_to(tmp_path)
    with pytest.raises(Mistake, match=r"out is .*out, which exists and is not an export: choose another folder"):
        check_replaceable(out, overwrite=True)
    (out / RECORD).write_text('{"files": {}}', encoding="utf-8")
    with pytest.raises(Mistake, match=r"which contains files besides the export \(deep/link\): move these"):
        check_replaceable(out, overwrite=True)


@pytest.mark.parametrize("name", [".", "..", "new/..", "../here"])
def test_the_folder_in_which_the_command_runs_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "here" / "new").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(Mistake, match=rf"^out is {name}, which contains the working folder: choose another folder\.$"):
        check_replaceable(Path(name), overwrite=True)


def test_a_folder_with_dots_is_named_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "other" / "new").mkdir(parents=True)
    with pytest.raises(Mistake, match=r"^out is .*new/\.\., which has no name of its own: write .*/other\.$"):
        check_replaceable(tmp_path / "other" / "new" / "..", overwrite=True)


def test_an_export_that_differs_is_not_kept(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = load_run(run, "cpu")
    monkeypatch.setitem(parity.BOUNDS, "float32", -1.0)
    with pytest.raises(CheckFailed, match="Nothing was written"):
        export_run(trained, "ctranslate2", Path("new"), "float32", comparison_pairs(trained))
    assert not [path for path in Path().iterdir() if "new" in path.name]
    Path("new").mkdir()
    Path("new/former").touch()
    with pytest.raises(CheckFailed):
        export_run(trained, "ctranslate2", Path("new"), "float32", comparison_pairs(trained))
    assert [path.name for path in Path("new").iterdir()] == ["former"]


def test_an_export_that_cannot_be_opened_is_a_bug_of_its_writer(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FORMATS["ctranslate2"]

    def write(trained: LoadedRun, folder: Path, quantization: str) -> None:
        whole.write(trained, folder, quantization)
        (folder / "model.bin").write_bytes(b"")

    trained = load_run(run, "cpu")
    monkeypatch.setitem(FORMATS, "ctranslate2", whole._replace(write=write))
    with pytest.raises(RuntimeError, match=r"^The export that was just written as ctranslate2 cannot be opened\.$"):
        export_run(trained, "ctranslate2", run / "broken", "float32", comparison_pairs(trained))
    assert not (run / "broken").exists()


def test_a_full_disk_is_one_sentence_that_names_the_folder(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(PreTrainedModel, "save_pretrained", full)
    trained = load_run(run, "cpu")
    with pytest.raises(OSError, match="No space left on device") as failed:
        export_run(trained, "hugging_face", Path("new"), "float32", comparison_pairs(trained))
    assert (failed.value.errno, failed.value.filename) == (errno.ENOSPC, "new")
    assert not [path for path in Path().iterdir() if "new" in path.name]


def test_other_pairs_replace_a_missing_validation_corpus(run: Path) -> None:
    trained = load_run(run, "cpu")
    for language in ("en", "vi"):
        Path(f"valid.{language}").rename(f"mine.{language}")
    for stored in ("evaluation", "probes"):
        shutil.rmtree(run / stored)
    with pytest.raises(Mistake, match=r"compared with the run on its validation corpus.*source=FILE"):
        comparison_pairs(trained)
    with pytest.raises(Mistake, match=r"corpus is missing .*: python -m nmt\.export run_dir=run format=ct"):
        load_with_engine([run], "cpu", "float32", "ctranslate2")
    assert len(comparison_pairs(trained, "mine.en", "mine.vi").source) == 7


@pytest.mark.parametrize("engine", [pytest.param("onnx", marks=pytest.mark.soak), "ctranslate2"])
def test_an_engine_translates_as_torch_does(run: Path, command: Command, corpus: Path, engine: str) -> None:
    """Exported at its first use, and again when a file of the export is damaged."""
    expected = command("translate", "run_dir=run", "engine=torch", text=LINES)
    first = command("translate", "run_dir=run", f"engine={engine}", text=LINES)
    second = command("translate", "run_dir=run", f"engine={engine}", text=LINES)
    assert first.output == second.output == expected.output
    assert f"Exporting run to run/exports/{engine}" in first.errors
    assert "Compared on 7 sentences" in first.errors
    assert "100.0% of the translations are equal." in first.errors
    check_record(json.loads((corpus / "run" / "exports" / engine / RECORD).read_text()))
    assert "Exporting" not in second.errors
    largest_file(run / "exports" / engine).write_bytes(b"damaged")
    third = command("translate", "run_dir=run", f"engine={engine}", text=LINES)
    assert third.output == expected.output
    assert f"Exporting run to run/exports/{engine}: the old export is damaged" in third.errors


def test_a_changed_run_is_exported_again(run: Path) -> None:
    load_with_engine([run], "cpu", "float32", "ctranslate2")
    record = run / "exports" / "ctranslate2" / RECORD
    former = json.loads(record.read_text())
    others = [{**former, key: "other"} for key in ("weights_sha256", "tokenizers", "quantization", "exporter")]
    for content in (*map(json.dumps, others), "{damaged"):
        record.write_text(content)
        load_with_engine([run], "cpu", "float32", "ctranslate2")
        assert json.loads(record.read_text()) == former


def largest_file(folder: Path) -> Path:
    return max(folder.iterdir(), key=lambda file: file.stat().st_size)


def test_an_export_with_a_changed_byte_is_made_again(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    """CTranslate2 reads it without an error."""
    load_with_engine([run], "cpu", "float32", "ctranslate2")
    largest = largest_file(run / "exports" / "ctranslate2")
    whole = largest.read_bytes()
    largest.write_bytes(whole[:-9] + b"\x55" + whole[-8:])
    caplog.set_level("INFO")
    load_with_engine([run], "cpu", "float32", "ctranslate2")
    assert f"Exporting {run} to {largest.parent}: the old export is damaged" in caplog.text
    assert largest.read_bytes() == whole


@pytest.mark.parametrize(
    ("engine", "precision"), [("ctranslate2", "float32"), *([("onnx", "int8")] if SOAK else [])]
)  # ONNX takes three exports of seconds
def test_an_export_of_another_model_is_made_again(
    run: Path, caplog: pytest.LogCaptureFixture, engine: str, precision: str
) -> None:
    """Whoever replaces the model can also write a record with the digests of the run and of all files."""
    other = shutil.copytree(run, Path("other"))
    weights = load_file(run / "model.safetensors")
    generator = torch.Generator().manual_seed(0)
    save_file(
        {name: tensor + 0.1 * torch.randn(tensor.shape, generator=generator) for name, tensor in weights.items()},
        other / "model.safetensors",
    )
    name = engine if precision == "float32" else f"{engine}_{precision}"
    for path in (run, other):
        load_with_engine([path], "cpu", precision, engine)
    theirs, ours = (json.loads((path / "exports" / name / RECORD).read_text()) for path in (other, run))
    shutil.rmtree(run / "exports" / name)
    shutil.copytree(other / "exports" / name, run / "exports" / name)
    (run / "exports" / name / RECORD).write_text(json.dumps({**ours, "files": theirs["files"]}))
    caplog.set_level("INFO")
    load_with_engine([run], "cpu", precision, engine)
    assert f"Exporting run to run/exports/{name}: the old export does not compute what the run computes" in caplog.text
    assert json.loads((run / "exports" / name / RECORD).read_text())["files"] == ours["files"]
    caplog.clear()
    load_with_engine([run], "cpu", precision, engine)
    assert "Exporting" not in caplog.text


@pytest.mark.parametrize(
    "record", ["", "[]", "[" * 100_000, '{"files": 5}', '{"files": ["model.bin"]}', '{"files": {"model.bin": 5}}']
)
def test_a_damaged_record_is_no_record(tmp_path: Path, record: str) -> None:
    (tmp_path / RECORD).write_text(record)
    assert read_record(tmp_path) == {}
    with pytest.raises(Mistake, match="which exists and is not an export: choose another folder"):
        check_replaceable(tmp_path, overwrite=True)


def test_a_file_that_was_added_to_an_export_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "model.bin").touch()
    check_files(tmp_path, {"files": {"model.bin": hashlib.sha256().hexdigest()}})
    with pytest.raises(DamagedExport, match=r"model\.bin is missing, has changed or was added: export the run again"):
        check_files(tmp_path, {"files": {}})


def test_an_export_of_a_read_only_run_is_used(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(key: str, value: object) -> None:
        raise Mistake(f"{key} is {value}, but it cannot be written to; choose another folder.")

    load_with_engine([run], "cpu", "float32", "ctranslate2")
    monkeypatch.setattr(engines, "check_writable", read_only)
    monkeypatch.setattr(engines, "locked", read_only)
    assert load_with_engine([run], "cpu", "float32", "ctranslate2")[1] is not None
    with pytest.raises(Mistake, match=r"has to export the run to .*exports first, but cannot write there: copy"):
        load_with_engine([run], "cpu", "int8", "ctranslate2")


def test_two_processes_do_not_export_at_the_same_time(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that holds the lock has exported the run by the time this one gets it."""
    exports: list[Path] = []

    @contextmanager
    def other_process(folder: Path, wait: bool = False, task: str | None = None) -> Iterator[None]:
        assert wait
        assert task == f"exporting {run}"
        exports.append(folder)
        trained = load_run(run, "cpu")
        export_run(trained, "ctranslate2", folder / "ctranslate2", "float32", comparison_pairs(trained))
        monkeypatch.setattr(engines, "export_run", None)
        yield

    monkeypatch.setattr(engines, "locked", other_process)
    _, engine = load_with_engine([run], "cpu", "float32", "ctranslate2")
    assert engine is not None
    assert exports == [run / "exports"]


def test_a_run_that_cannot_be_exported_names_the_engine(run: Path) -> None:
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("normalizers.Softmax", "normalizers.Sparsemax"))
    with pytest.raises(Mistake, match=r"^ctranslate2 does not support normalizer=sparsemax.* use engine=torch\."):
        load_with_engine([run], "cpu", "float32", "ctranslate2")


def test_an_engine_keeps_each_precision(run: Path) -> None:
    [trained], engine = load_with_engine([run], "cpu", "int8", "ctranslate2")
    assert engine is not None
    assert (engine.name, engine.precision, trained.precision) == ("ctranslate2", "int8", "float32")
    assert (run / "exports" / "ctranslate2_int8" / RECORD).is_file()


def test_scores_say_which_engine_translated(run: Path, command: Command, corpus: Path) -> None:
    found = command("evaluate", "run_dir=run", "engine=ctranslate2", "out=scores")
    assert found.code == 0, found.errors
    scores = json.loads((corpus / "scores" / "scores.json").read_text())
    assert "'engine': 'ctranslate2'" in str(scores)


# test_onnx.py writes and opens the engine onnx with graphs that it has exported.
@pytest.mark.parametrize("engine", [pytest.param("onnx", marks=pytest.mark.soak), *sorted({*ENGINES} - {"onnx"})])
def test_python_has_the_same_engines(run: Path, caplog: pytest.LogCaptureFixture, engine: str) -> None:
    caplog.set_level("INFO")
    lines = LINES.splitlines()
    expected = nmt.load(run, "cpu").translate(lines)
    assert nmt.load(run, "cpu", engine=engine).translate(lines) == expected
    assert f"Exporting run to run/exports/{engine}" in caplog.text
    assert "Compared on 7 sentences" in caplog.text
    assert "100.0% of the translations are equal." in caplog.text
    check_record(json.loads((run / "exports" / engine / RECORD).read_text()))
    caplog.clear()
    assert nmt.load(run, "cpu", engine=engine).translate(lines) == expected
    assert "Exporting" not in caplog.text


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["run_dir=[run,run]"], "engine=ctranslate2 translates with one run, not with 2: use engine=torch."),
        (
            ["precision=bfloat16"],
            "engine=ctranslate2 supports precision=float32 and int8, not bfloat16: use one of them, or engine=torch.",
        ),
        (
            ["search=sampling"],
            "engine=ctranslate2 supports only beam search, not search=sampling: use engine=torch or onnx.",
        ),
    ],
)
def test_what_an_engine_lacks_is_one_sentence(run: Path, command: Command, overrides: list[str], message: str) -> None:
    found = command("translate", "run_dir=run", "engine=ctranslate2", *overrides, text=LINES)
    assert found.code == 2
    assert found.errors.splitlines()[-1] == f"error: {message}"


def test_a_missing_or_newer_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"ctranslate2": "5.1.0"}
    monkeypatch.setattr(extras.metadata, "version", versions.__getitem__)
    with pytest.raises(
        Mistake, match=r"ctranslate2 needs the package ctranslate2.*>=4.8,<4.9, but 5.1.0 is installed; run pip"
    ):
        extras.check_extra("ctranslate2")

    def missing(name: str) -> str:
        raise extras.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(extras.metadata, "version", missing)
    with pytest.raises(
        Mistake,
        match=r"needs the package ctranslate2, which is not installed; run pip install .*'\.\[ctranslate2\]'",
    ):
        extras.check_extra("ctranslate2")
    monkeypatch.setattr(extras, "CONFIGS", Path("site-packages/nmt/_configs"))
    assert extras.install_command("hugging_face") == "pip install 'nmt-attention[hugging-face]'"


@pytest.mark.parametrize("format", ["ctranslate2", "hugging_face", "argos"])
def test_a_model_is_refused_before_a_missing_package(run: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    trained = load_run(run, "cpu")
    recurrent = trained._replace(model=torch.nn.Identity())

    def missing(name: str) -> str:
        raise extras.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(extras.metadata, "version", missing)
    with pytest.raises(
        Mistake, match=f"{format} supports only Transformers, but the model of .* is of the class Identity: use onnx"
    ):
        formats.write_format(recurrent, format, run, "float32")


@pytest.mark.parametrize(
    ("format", "package"),
    [
        ("ctranslate2", "ctranslate2"),
        ("onnx", "onnxruntime"),
        ("hugging_face", "transformers"),
        ("argos", "ctranslate2"),
    ],
)
def test_a_package_that_cannot_be_imported_is_one_sentence(
    run: Path, monkeypatch: pytest.MonkeyPatch, format: str, package: str
) -> None:
    trained = load_run(run, "cpu")
    monkeypatch.setitem(sys.modules, package, None)
    modules = ("argos", "ctranslate2", "ctranslate2_model", "hugging_face", "onnx", "onnx_model")
    for module in modules:
        monkeypatch.delitem(sys.modules, f"nmt.exports.{module}", raising=False)
    extra = format.replace("_", "-")
    message = rf"{format} needs the package {package}; run pip install .*'\.\[{extra}\]' first\."
    with pytest.raises(Mistake, match=message):
        formats.open_exported(trained, format, run, "float32")
    if format in ENGINES:
        with pytest.raises(Mistake, match=message):
            formats.open_engine(trained, format, run, "float32")
    if format != "onnx":  # written without onnxruntime
        with pytest.raises(Mistake, match=message):
            formats.write_format(trained, format, run, "float32")


def test_a_broken_package_is_one_sentence_and_an_import_error_of_our_own_none() -> None:
    message = r"A package that onnx needs cannot be imported \(no libfoo.so\): reinstall it, or run .*'\.\[onnx\]' in a"
    with pytest.raises(Mistake, match=message), extras.importing("onnx"):
        raise ImportError("no libfoo.so")
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'nmt"), extras.importing("onnx"):
        from nmt.exports.parity import nothing  # type: ignore[attr-defined]  # noqa: F401


def test_unknown_formats_are_refused(run: Path) -> None:
    trained = load_run(run, "cpu")
    for format, quantization, known in (("hugging_face", "int8", "float32"), ("onnx", "int16", "float32 or int8")):
        message = f"quantization is {quantization}, but with format={format} it must be {known}"
        with pytest.raises(Mistake, match=message):
            formats.write_format(trained, format, Path(), quantization)
    with pytest.raises(Mistake, match=r"marian.*ctranslate2"):
        nmt.load(run, "cpu", engine="marian")
    with pytest.raises(Mistake, match="engine=onnx supports precision=float32 and int8, not float16: use one of them"):
        nmt.load(run, "cpu", precision="float16", engine="onnx")
    with pytest.raises(Mistake, match="engine=onnx runs on the CPU, but device is cuda"):
        nmt.load(run, "cuda", engine="onnx")
