"""A training whose disk fills up: a sentence, nothing half written, and the run goes on once there is room.

The disk is a file system of 50 MiB in a mount namespace of its own, filled up to the last KiB by a file.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

CHECKOUT = Path(__file__).resolve().parents[2]
MOUNT = "mount -t tmpfs -o size=50m tmpfs disk"
SCRIPT = f"""
{MOUNT}
export PYTHONPATH={CHECKOUT} OMP_NUM_THREADS=1
head -c $(( (50 * 1024 - $1) * 1024 )) /dev/zero > disk/ballast
shift
again="$1"
shift
{sys.executable} -m nmt.train "$@"
echo "code $?"
echo "files" $(cd disk/run 2>/dev/null && find -type f ! -path "./logs/*" ! -path "./probes/*" | sort)
rm disk/ballast
{sys.executable} -m nmt.train "$@" $again
echo "again $?"
cp -r disk/run found
"""


def namespace(script: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def disk(corpus: Path) -> Path:
    """A folder to mount the disk on."""
    (corpus / "disk").mkdir()
    if not shutil.which("unshare") or namespace(MOUNT, folder=corpus).returncode:
        pytest.skip("this system lets no one mount a file system in a namespace")
    return corpus


OWN = "./config.yaml ./metrics.json ./tokenizer.model"
WHOLE = (
    r"The disk is full .* Free some space\. disk/run/checkpoints/last\.ckpt \(step \d+\) is intact: "
    r"resume=true continues from it\."
)


@pytest.mark.parametrize(
    ("steps", "room", "again", "told", "files"),
    [
        (4, 3, "", r"The disk is full .* There is no checkpoint yet: the same command starts over\.", ""),
        (4, 400, "resume=true", WHOLE, f"./checkpoints/best-step=2.ckpt ./checkpoints/last.ckpt {OWN}"),
        (2, 330, "resume=true", WHOLE, f"./checkpoints/best-step=2.ckpt ./checkpoints/last.ckpt {OWN}"),
    ],
    ids=["its first files", "second checkpoint", "the weights"],
)
def test_a_run_whose_disk_was_full_is_whole_and_goes_on(
    disk: Path,
    start: Callable[..., subprocess.Popen[str]],
    tiny: Callable[..., list[str]],
    steps: int,
    room: int,
    again: str,
    told: str,
    files: str,
) -> None:
    changes = {"trainer__max_steps": steps, "validation__every": 2}
    whole = start("train", *tiny(**changes, run_dir="whole"))
    found = namespace(SCRIPT, str(room), again, *tiny(**changes, run_dir="disk/run"), folder=disk)
    before, after = found.stdout.split("files", 1)
    assert before == "code 1\n"
    assert after.splitlines()[0].strip() == files
    assert after.splitlines()[-1] == "again 0"
    assert re.search(f"^error: {told}$", found.stderr, re.MULTILINE)
    assert "Traceback" not in found.stderr
    assert whole.wait() == 0
    torch.testing.assert_close(
        load_file(disk / "found" / "model.safetensors"), load_file(disk / "whole" / "model.safetensors"), rtol=0, atol=0
    )
