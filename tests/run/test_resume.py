"""A run that is killed in the middle of an epoch and resumed ends with the very weights of one that was not."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file

CHANGES = {
    "trainer__max_steps": 42,
    "trainer__accumulate_grad_batches": 2,
    "trainer__log_every_n_steps": 2,
    "validation__every": 14,
    "validation__monitor": "bleu",
    "model__dropout": 0.3,
}


def kill_at(process: subprocess.Popen[str], step: int) -> None:
    """Kills the process as soon as it says that it has made the step."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.startswith(f"step {step}/"):
            process.send_signal(signal.SIGKILL)
            break
    assert process.wait() == -signal.SIGKILL, "".join(seen)


def checkpoint(run_dir: Path) -> dict[str, object]:
    return torch.load(run_dir / "checkpoints" / "last.ckpt", weights_only=True)


def test_a_killed_and_resumed_run_ends_with_identical_weights(
    corpus: Path, start: Callable[..., subprocess.Popen[str]], tiny: Callable[..., list[str]]
) -> None:
    killed = start("train", *tiny(**CHANGES, run_dir="killed"))
    whole = start("train", *tiny(**CHANGES, run_dir="whole"))
    kill_at(killed, 20)
    assert checkpoint(corpus / "killed")["global_step"] == 14
    resumed = start("train", *tiny(**CHANGES, run_dir="killed"), "resume=true")
    output, errors = resumed.communicate()
    assert "resumed from last.ckpt" in errors
    assert output.startswith("killed\ntest BLEU")
    assert whole.communicate()[0].splitlines()[1:] == output.splitlines()[1:]

    one, other = checkpoint(corpus / "whole"), checkpoint(corpus / "killed")
    assert one["global_step"] == other["global_step"] == 42
    for key in ("state_dict", "optimizer_states", "lr_schedulers", "target_tokens"):
        torch.testing.assert_close(one[key], other[key], rtol=0, atol=0)
    best = [load_file(corpus / name / "model.safetensors") for name in ("whole", "killed")]
    torch.testing.assert_close(*best, rtol=0, atol=0)
