"""scripts/studies/pictures.py: one command for every picture of the documents."""

from pathlib import Path

import pytest

from nmt.cli.compose import configuration
from nmt.errors import Mistake
from scripts.studies import pictures
from scripts.studies.diagrams import IMAGES


def test_every_picture_of_the_documents_has_a_command() -> None:
    drawn = {file.stem for file in IMAGES.glob("*.png")}
    assert drawn == set(pictures.PICTURES) - {"diagrams"}


def test_missing_runs_are_trained_before_a_picture_is_drawn(tmp_path, monkeypatch) -> None:
    commands = []
    monkeypatch.setattr(pictures.Maker, "command", lambda _, *words: commands.append(words))
    pictures.main(["windows", "--out", str(tmp_path), "--runs", "runs/none"])
    *trained, (drawn, *options) = commands
    assert [words[-2:] for words in trained] == [
        (f"run_dir=runs/none/{name}", "resume=auto") for name in ("general", "local_m", "local_p", "sparsemax")
    ]
    assert drawn == "scripts.studies.map_gallery"
    assert options[-1] == "sparsemax=runs/none/sparsemax"


def test_the_run_of_documents_starts_from_one_of_sentences(tmp_path, monkeypatch) -> None:
    commands = []
    monkeypatch.setattr(pictures.Maker, "command", lambda _, *words: commands.append(words))
    pictures.Maker(tmp_path, tmp_path).run("documents")
    assert [words[0] for words in commands] == ["nmt.train", "nmt.train"]
    assert f"start_from={tmp_path / 'sentences'}" in commands[1]


def test_every_nmt_command_composes(tmp_path, monkeypatch) -> None:
    read = []

    def command(_, module: str, *words: str) -> None:
        if module.startswith("nmt."):
            read.append((module, configuration(module.removeprefix("nmt."), words)))
        for folder in (Path(word.removeprefix("out=")) for word in words if word.startswith("out=")):
            (folder / "pictures").mkdir(parents=True)
            for line in (1, 4):
                (folder / "pictures" / f"{line:05}.site.png").write_bytes(b"")

    monkeypatch.setattr(pictures.Maker, "command", command)
    names = [name for name in pictures.PICTURES if name != "lab"]  # lab needs a browser and runs no command
    pictures.main([*names, "--out", str(tmp_path / "out"), "--runs", str(tmp_path / "runs")])
    assert [module for module, _ in read].count("nmt.export_attention") == 3
    assert {Path(config["run_dir"]).name for module, config in read if module == "nmt.train"} == {*pictures.MODELS}


def test_an_unknown_picture_is_refused(tmp_path) -> None:
    with pytest.raises(Mistake, match=r"There is no picture cat: choose from diagrams, .*, scorers\."):
        pictures.main(["cat", "--out", str(tmp_path)])
