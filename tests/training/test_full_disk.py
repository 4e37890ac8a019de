"""A training whose disk fills up: a sentence, nothing half written, and the run goes on once there is room.

The disk is a file system of 50 MiB in a mount namespace of its own, filled up to the last KiB by a file.
"""

import contextlib
import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from forked import Forked, module
from safetensors.torch import load_file

KIB = 1024
SIZE = 50 * KIB
NOT_ALLOWED = 77


def with_a_small_disk(room: int, overrides: list[str], again: list[str]) -> None:
    """Trains on a disk with `room` KiB free, prints which files are left, frees the disk and trains again.

    Exits with NOT_ALLOWED if this user may not mount a file system.
    """
    try:
        enter_namespace()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}k", "tmpfs", "disk"], check=True)
    except (OSError, subprocess.CalledProcessError):
        sys.exit(NOT_ALLOWED)
    disk = Path("disk")
    (disk / "ballast").write_bytes(bytes((SIZE - room) * KIB))
    print("code", trained(overrides), flush=True)
    left = [path.relative_to(disk / "run") for path in (disk / "run").rglob("*") if path.is_file()]
    print("files", *sorted(str(path) for path in left if path.parts[0] not in ("logs", "probes")), flush=True)
    (disk / "ballast").unlink()
    print("again", trained([*overrides, *again]), flush=True)
    shutil.copytree(disk / "run", "found")


def enter_namespace() -> None:
    """Moves this process into a namespace of its own for users and mounts, where it may mount (man 2 unshare)."""
    user, group = os.getuid(), os.getgid()
    new_mounts, new_users = 0x00020000, 0x10000000
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(new_mounts | new_users):
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def trained(overrides: list[str]) -> int:
    """The exit code of nmt.train."""
    child = os.fork()
    if not child:
        sys.argv = ["nmt.train", *overrides]
        module("nmt.train")
        sys.exit()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


OWN = "config.yaml metrics.json tokenizer.model"
WHOLE = (
    r"The disk is full .* Free some space\. disk/run/checkpoints/last\.ckpt \(step \d+\) is intact: "
    r"resume=true continues from it\."
)


@pytest.mark.parametrize(
    ("steps", "room", "again", "told", "files"),
    [
        (4, 3, [], r"The disk is full .* There is no checkpoint yet: the same command starts over\.", ""),
        pytest.param(
            *(4, 400, ["resume=true"], WHOLE, f"checkpoints/best-step=2.ckpt checkpoints/last.ckpt {OWN}"),
            marks=pytest.mark.soak,
        ),
        (2, 305, ["resume=true"], WHOLE, f"checkpoints/best-step=2.ckpt checkpoints/last.ckpt {OWN}"),
    ],
    ids=["its first files", "second checkpoint", "the weights"],
)
def test_a_run_whose_disk_was_full_is_whole_and_goes_on(
    corpus: Path,
    start: Callable[..., Forked],
    tiny: Callable[..., list[str]],
    steps: int,
    room: int,
    again: list[str],
    told: str,
    files: str,
) -> None:
    changes = {"trainer__max_steps": steps, "validation__every": 2, "validation__probes": 0}  # pictures take space
    (corpus / "disk").mkdir()
    whole = start("train", *tiny(**changes, run_dir="whole"))
    program = partial(with_a_small_disk, room, tiny(**changes, run_dir="disk/run"), again)
    with contextlib.closing(Forked(program, ["nmt.train"], corpus, None)) as process:
        output, errors = process.communicate()
        if process.returncode == NOT_ALLOWED:
            pytest.skip("this system lets no one mount a file system in a namespace")
        assert process.returncode == 0, errors
    before, after = output.split("files", 1)
    assert before == "code 1\n"
    assert after.splitlines()[0].strip() == files
    assert after.splitlines()[-1] == "again 0"
    assert re.search(f"^error: {told}$", errors, re.MULTILINE)
    assert "Traceback" not in errors
    assert whole.wait() == 0
    torch.testing.assert_close(
        load_file(corpus / "found" / "model.safetensors"),
        load_file(corpus / "whole" / "model.safetensors"),
        rtol=0,
        atol=0,
    )
