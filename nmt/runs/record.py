"""What metrics.json says about a run, and what a finished run prints."""

import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from nmt.config.direction import Direction
from nmt.config.schema import LoopSettings
from nmt.evaluation.score_record import Score
from nmt.models.base import Attending
from nmt.runs.directory import RunDirectory, tokenizer_hashes
from nmt.text import TokenizerPair

_PRINTED = 2
_PACKAGES = (
    "nmt-attention",
    "torch",
    "lightning",
    "hydra-core",
    "sentencepiece",
    "sacrebleu",
    "sacremoses",
    "datasets",
    "numpy",
)


def versions() -> dict[str, str]:
    """The versions of Python and of the installed packages that results depend on."""
    installed = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed


def git_commit() -> str | None:
    """The commit of the checkout of this package; None without a checkout.

    It ends in '+changes' if tracked files differ, or if the checkout has configurations or Python files, such as a
    scorer of one's own, that are not tracked. It says nothing about code in other folders.
    """
    folder = Path(__file__).resolve().parents[2]
    try:
        # An installed package may be inside a checkout of something else.
        if Path(_git(folder, "rev-parse", "--show-toplevel")).resolve() != folder:
            return None
        commit = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
        added = _git(folder, "ls-files", "--others", "--exclude-standard", "--", "configs", "*.py")
        return commit + ("+changes" if changed or added else "")
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None


def training_record(
    settings: LoopSettings,
    direction: Direction | None,
    tokenizers: TokenizerPair,
    model: Attending,
    processes: int,
    hashes: dict[str, str],
) -> dict[str, Any]:
    """What metrics.json holds before the first step; a pretrained encoder has no direction."""
    return {
        "finished": False,
        "seed": settings.seed,
        "batches_a_step": processes * settings.trainer.accumulate_grad_batches,
        **({} if direction is None else {"direction": str(direction)}),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "corpora": hashes,
        "tokenizers": tokenizer_hashes(tokenizers, direction),
        "versions": versions(),
        "git_commit": git_commit(),
    }


def peak_memory_mib() -> int | None:
    """Peak memory in MiB: of the GPU if this process has used one, else of the process; None if it is unknown."""
    if torch.cuda.is_available() and torch.cuda.max_memory_reserved():
        return round(torch.cuda.max_memory_reserved() / 2**20)
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    return round(most / 2**20 if sys.platform == "darwin" else most / 2**10)


def print_run(run: RunDirectory) -> None:
    """Prints the directory of a finished run and its first two test scores, or the scores of an encoder."""
    scores = run.metrics()["scores"]
    print(run.path)
    for record in scores.get("test", [])[:_PRINTED]:
        print(f"test {Score.of(record)}")
    if run.pretrained:
        print("valid loss {loss:.3f}, accuracy {accuracy:.3f}".format(**scores["valid"]))


def _git(folder: Path, *arguments: str) -> str:
    result = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return result.stdout.strip()
