"""Tiny runs of each model for the tests of attention maps, and the commands that export their maps."""

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jobs import job_of

from nmt.cli.compose import configuration
from nmt.commands.export_attention import export_attention
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.maps.map_files import MapFolder

RUNS: dict[str, list[str]] = {
    "bahdanau": ["model=bahdanau", "window=local_m", "window.half_width=1"],
    "luong": ["model=luong", "model.num_heads=2", "window=local_p", "window.half_width=2"],
    "transformer": ["model=transformer", "model.num_layers=2"],
}
SMALL = ["model.embedding_dim=6", "model.encoder_dim=8", "model.decoder_dim=8", "trainer.max_steps=4"]


def train_all(folder: Path, tiny: Callable[..., list[str]]) -> None:
    """Adds a run of each model, a file to translate and alignments of two splits to a folder with a corpus."""
    torch.set_num_threads(1)
    for split in ("valid", "test"):
        lines = (folder / f"{split}.en").read_text().splitlines()
        diagonals = [" ".join(f"{i}-{i}" for i in range(len(line.split()))) for line in lines]
        (folder / f"{split}.en-vi.align").write_text("".join(f"{line}\n" for line in diagonals))
    (folder / "in.en").write_text("one two three.\n\nthree\n")
    (folder / "in.vi").write_text("một hai ba.\nba\nba\n", encoding="utf-8")
    common = [o for o in tiny(validation__every=2, validation__probes=3) if not o.startswith(("model", "run_dir"))]
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        averaged = [*RUNS["luong"], "ema_decay=0.5"]
        for name, own in {**RUNS, "averaged": averaged}.items():
            sizes = ["model.dim=12", "model.ffn_dim=19", "model.num_heads=2"] if name == "transformer" else SMALL[:3]
            extra = ["model.maxout_dim=6"] if name == "bahdanau" else []
            overrides = [*common, *own, *sizes, *extra, SMALL[3], f"run_dir=maps_{name}"]
            train(job_of("train", configuration("train", overrides), command="python -m nmt.train THE COMMAND"))


def job(name: str, **changes: Any) -> Job:
    """A command's job: its default configuration with changes."""
    return job_of(name, {**configuration(name, []), **changes})


def export(run: str, out: Path, **changes: Any) -> MapFolder:
    """Exports the maps of the file to translate, or of another input."""
    given = {"run_dir": run, "device": "cpu", "input": "in.en", "out": str(out), **changes}
    export_attention(job("export_attention", **given))
    return MapFolder(out)


def first_weights(folder: MapFolder) -> np.ndarray:
    """The cross attention weights of the first sentence."""
    return next(folder.sentences()).site("cross").weights
