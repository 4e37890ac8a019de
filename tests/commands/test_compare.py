"""nmt.compare with translations of other systems."""

import csv
import json
import logging
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from jobs import job_of

from nmt.cli.compose import configuration
from nmt.commands.compare import compare
from nmt.config.job import Job
from nmt.errors import Mistake

REFERENCES = [f"Câu số {n} rất hay và rất dài." for n in range(30)]


def job(tmp_path: Path, **changes: Any) -> Job:
    return job_of("compare", {**configuration("compare", []), "out": str(tmp_path / "out"), **changes})


def write(folder: Path, **files: list[str]) -> None:
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def test_outputs_of_other_systems_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "nmt")
    write(tmp_path, ref=REFERENCES, a=REFERENCES, b=["sai"] * 9 + REFERENCES[9:])
    files = [str(tmp_path / "a"), str(tmp_path / "b")]
    compared = job(tmp_path, outputs=files, reference=str(tmp_path / "ref"))
    compare(compared)
    assert caplog.messages[-1] == f"Written to {tmp_path / 'out'}"
    record = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    assert record["command"] == compared.command
    assert record["test_set"] == {"split": None, "references": [str(tmp_path / "ref")]}
    rows = [line.split("|")[1:3] for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert [row[0].strip() for row in rows[2:]] == files
    assert rows[2][1].strip() == "100.00 [100.00, 100.00]"
    with (tmp_path / "out" / "sentences.csv").open(encoding="utf-8", newline="") as file:
        sentences = list(csv.DictReader(file))
    assert len(sentences) == 30
    assert (sentences[0]["line"], sentences[0][f"chrF2 of {files[0]}"]) == ("1", "100.0")


def test_outputs_with_another_number_of_lines_are_refused(tmp_path: Path) -> None:
    write(tmp_path, ref=REFERENCES, c=["one"])
    with pytest.raises(Mistake, match=r"c has 1 lines but .*ref has 30; line n of both must belong"):
        compare(job(tmp_path, outputs=[str(tmp_path / "c")], reference=str(tmp_path / "ref")))


def test_a_refused_comparison_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="There is no folder nope; run_dirs takes run directories"):
        compare(job(tmp_path, run_dirs=["nope"]))
    assert not (tmp_path / "out").exists()


def test_suspicious_outputs_cause_warnings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(
        tmp_path,
        ref=REFERENCES,
        nfd=[unicodedata.normalize("NFD", line) for line in REFERENCES],
        empty=["<unk>", *[""] * 29],
    )
    with caplog.at_level(logging.WARNING):
        outputs = [str(tmp_path / "nfd"), str(tmp_path / "empty")]
        compare(job(tmp_path, outputs=outputs, reference=str(tmp_path / "ref")))
    assert "nfd: Normalization would change 30 of 30 lines (nfc 30)" in caplog.text
    assert "empty: 1 of 30 lines of the translations" in caplog.text
    assert "empty: 29 of 30 lines of the translations are empty" in caplog.text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, r"Set 'run_dirs=\[A,B\]' to compare runs, 'outputs="),
        (
            {"run_dirs": ["a"], "outputs": ["b"], "reference": "c"},
            "reference is for outputs alone; with run_dirs, the references are those of split: leave out reference=. "
            "To compare runs on your own test set, translate it with nmt.translate, set outputs= and reference=, and "
            r"leave out run_dirs=\.$",
        ),
        ({"run_dirs": ["a", "b", "x/../a"]}, r"^run_dirs names a twice; name each run once\.$"),
        ({"outputs": ["b"]}, "outputs need a reference: set reference=FILE"),
        ({"outputs": ["b"], "reference": []}, "outputs need a reference: set reference=FILE"),
    ],
)
def test_outputs_alone_need_references_and_runs_have_their_own(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(Mistake, match=message):
        compare(job(tmp_path, **changes))


def test_a_terminal_gets_another_form_than_files_and_pipes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, ref=REFERENCES, a=REFERENCES)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    compare(job(tmp_path, outputs=[str(tmp_path / "a")], reference=str(tmp_path / "ref")))
    printed = capsys.readouterr().out
    assert "|:--" not in printed
    assert str(tmp_path / "a") in printed
    assert "|:--" in (tmp_path / "out" / "comparison.md").read_text(encoding="utf-8")


def test_a_folder_means_the_finished_runs_in_it_and_each_run_is_compared_once(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b", "unfinished"):
        shutil.copytree(trained, f"study/{name}/seed1")
    Path("study/unfinished/seed1/model.safetensors").unlink()
    capsys.readouterr()
    compare(job(tmp_path, run_dirs=["study/b/seed1", "study"], device="cpu"))
    rows = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert rows[2:] == ["study/b/seed1", "study/a/seed1"]
