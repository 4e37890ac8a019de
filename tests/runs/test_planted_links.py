"""Symbolic links in a run directory, which anyone may have made: no command writes to their targets or deletes them."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attention_runs import job as composed

import nmt
from nmt.commands.ablate_attention import ablate_attention
from nmt.commands.align import align
from nmt.commands.average import average
from nmt.commands.evaluate import evaluate
from nmt.commands.export import export
from nmt.commands.export_attention import export_attention
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.exports.engines import load_with_engine

pytestmark = pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege on Windows")

RUN = "maps_transformer"
READ = ("config.yaml", "metrics.json", "tokenizer.model", "model.safetensors", "checkpoints/last.ckpt")
"""Files that commands read, so their targets are copies of them."""
PLANTED = (
    *(f"{name}.part" for name in ("config.yaml", "metrics.json", "tokenizer.model", "model.safetensors")),
    "nonfinite.json",
    "checkpoints/last.ckpt.part",
    "checkpoints/previous.ckpt",
    "logs/version_7",
    *(
        f"evaluation/test/{name}"
        for name in (
            "hypotheses.txt",
            "hypotheses.txt.part",
            "sentences.tsv",
            "sentences.jsonl",
            "scores.json.part",
            "alignment.csv",
            "alignment_links.csv",
            "ablation.csv",
            "ablation.json",
        )
    ),
    "probes/viewer.html",
    "probes/viewer.html.part",
    "exports/ctranslate2/model.bin",
    "exports/ctranslate2/export.json.part",
    "drawn/viewer.html",
    "drawn/viewer.html.part",
    "drawn/diagnostics.csv",
    "drawn/manifest.json.part",
    "drawn/csv/00001.csv",
    "drawn/alignments/source.txt",
    "drawn/pictures/00001.cross.layer0.head0.png",
    "drawn/maps/00001.npz",
)


@pytest.fixture
def run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run in a copy of its corpus, entered; it has no results yet."""
    for file in folder.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    shutil.copytree(folder / RUN, tmp_path / RUN)
    shutil.rmtree(tmp_path / RUN / "evaluation")
    monkeypatch.chdir(tmp_path)
    return Path(RUN)


@pytest.fixture
def commands(job: Callable[..., Job]) -> list[Callable[[], Any]]:
    """Everything that writes below a run directory."""
    resumed = {"resume": "true", "run_dir": RUN, "trainer__max_steps": 6}
    maps = {"run_dir": RUN, "device": "cpu", "input": "in.en", "out": f"{RUN}/drawn"}
    drawing = {"formats": ["viewer", "csv", "alignments", "diagnostics", "png"], "layer": 0, "head": 0}
    return [
        lambda: evaluate(composed("evaluate", run_dir=[RUN], device="cpu")),
        lambda: align(composed("align", run_dir=RUN, device="cpu")),
        lambda: ablate_attention(composed("ablate_attention", run_dir=RUN, device="cpu", split="test", bleu=False)),
        lambda: export_attention(composed("export_attention", **maps, **drawing)),
        lambda: load_with_engine([RUN], "cpu", "float32", "ctranslate2"),
        lambda: train(job("train", **resumed)),
        lambda: average(composed("average", run_dir=RUN, device="cpu", out=f"{RUN}/averaged", number=2)),
        lambda: export(
            composed("export", run_dir=RUN, format="ctranslate2", out=f"{RUN}/exports/mine", overwrite=True)
        ),
    ]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_no_link_is_followed_and_no_target_is_deleted(
    run: Path, tmp_path: Path, commands: list[Callable[[], Any]]
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    for number, name in enumerate((*READ, *PLANTED)):
        target, link = precious / str(number), run / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if name in READ:
            shutil.move(link, target)
        else:
            target.write_text("precious")
            link.unlink(missing_ok=True)
        link.symlink_to(target)
    before = contents(precious)
    for command in commands:
        command()
    assert contents(precious) == before
    # Each command has written, so that each link was in its way.
    written = ["config.yaml", "metrics.json", "checkpoints/last.ckpt", "drawn/viewer.html", "probes/viewer.html"]
    written += [name for name in PLANTED if name.startswith(("evaluation", "drawn", "exports")) if "part" not in name]
    assert not [name for name in written if (run / name).is_symlink()]
    assert (run / "logs" / "version_8" / "metrics.csv").is_file()


@pytest.mark.parametrize(
    "name", ["evaluation", "evaluation/test", "checkpoints", "logs", "probes", "exports", "exports/ctranslate2"]
)
def test_a_folder_that_leads_out_of_the_run_is_refused(
    run: Path, tmp_path: Path, commands: list[Callable[[], Any]], name: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "last.ckpt").write_text("precious")
    shutil.rmtree(run / name, ignore_errors=True)
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).symlink_to(outside)
    trains = commands[5]
    # Only training writes in the other folders, which may be on another disk for any other command.
    refused = [*commands, lambda: nmt.load(run)] if name.startswith("e") else [trains]
    if trains is refused[0]:
        nmt.load(run)
    for command in refused:
        with pytest.raises(Mistake, match=rf"^{RUN}/{name} is a symbolic link to {outside}, outside {RUN}, where no"):
            command()
    assert contents(outside) == {"last.ckpt": b"precious"}


@pytest.mark.parametrize("name", ["csv", "pictures", "alignments", "maps"])
def test_a_folder_that_leads_out_of_drawn_maps_is_refused(
    run: Path, tmp_path: Path, commands: list[Callable[[], Any]], name: str
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "00001.csv").write_text("precious")
    out = tmp_path / "drawn"
    out.mkdir()
    (out / name).symlink_to(tmp_path / name)
    formats = ["csv", "alignments", "png"]
    with pytest.raises(Mistake, match=rf"^{out}/{name} is a symbolic link to .*, outside {out}, where no command"):
        export_attention(
            composed("export_attention", run_dir=RUN, device="cpu", input="in.en", out=str(out), formats=formats)
        )
    assert contents(tmp_path / name) == {"00001.csv": b"precious"}


def test_a_run_that_is_replaced_loses_its_links_but_not_their_targets(
    run: Path, tmp_path: Path, job: Callable[..., Job]
) -> None:
    outside = tmp_path / "outside"
    shutil.move(run / "checkpoints", outside)
    (run / "checkpoints").symlink_to(outside)
    before = contents(outside)
    train(job("train", run_dir=RUN, overwrite="true", trainer__max_steps=2, validation__every=2))
    assert contents(outside) == before
    assert not (run / "checkpoints").is_symlink()
