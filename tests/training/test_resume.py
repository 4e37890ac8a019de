"""A run that is killed in the middle of an epoch and resumed ends with the very weights of one that was not."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
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


def checkpoint(run_dir: Path) -> dict[str, object]:
    return torch.load(run_dir / "checkpoints" / "last.ckpt", weights_only=True)


def test_a_killed_and_resumed_run_ends_with_identical_weights(
    corpus: Path, start: Callable[..., subprocess.Popen[str]], tiny: Callable[..., list[str]]
) -> None:
    killed = start("train", *tiny(**CHANGES, run_dir="killed"), sent=(signal.SIGKILL, 20))
    whole = start("train", *tiny(**CHANGES, run_dir="whole"))
    said = killed.communicate()[1]
    assert killed.returncode == -signal.SIGKILL, said
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


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGUSR1, 143)])
def test_a_run_that_is_asked_to_stop_saves_at_once_and_goes_on_from_there(
    corpus: Path, start: Callable[..., subprocess.Popen[str]], tiny: Callable[..., list[str]], sent: int, code: int
) -> None:
    changes = {**CHANGES, "trainer__max_steps": 25, "validation__every": 20, "ema_decay": 0.9}
    whole = start("train", *tiny(**changes, run_dir="whole"))
    stopped = start("train", *tiny(**changes, run_dir="stopped"), sent=(sent, 5))
    errors = stopped.communicate()[1]
    assert stopped.returncode == code, errors
    step = checkpoint(corpus / "stopped")["global_step"]
    assert step in (5, 6)
    assert f"Stopped at step {step}, and saved; resume=true continues from there." in errors
    resumed = start("train", *tiny(**changes, run_dir="stopped"), "resume=true")
    assert whole.communicate()[0].splitlines()[1:] == resumed.communicate()[0].splitlines()[1:]
    one, other = checkpoint(corpus / "whole"), checkpoint(corpus / "stopped")
    for key in ("state_dict", "optimizer_states", "lr_schedulers", "target_tokens", "global_step"):
        torch.testing.assert_close(one[key], other[key], rtol=0, atol=0)
    best = [load_file(corpus / name / "model.safetensors") for name in ("whole", "stopped")]
    torch.testing.assert_close(*best, rtol=0, atol=0)
    kept = [sorted(path.name for path in (corpus / name / "checkpoints").iterdir()) for name in ("whole", "stopped")]
    assert kept[0] == kept[1]


def test_a_truncated_last_checkpoint_falls_back_to_the_one_before(
    corpus: Path, start: Callable[..., subprocess.Popen[str]], tiny: Callable[..., list[str]]
) -> None:
    whole = start("train", *tiny(**CHANGES, run_dir="whole"))
    killed = start("train", *tiny(**CHANGES, run_dir="killed"), sent=(signal.SIGKILL, 32))
    said = killed.communicate()[1]
    assert killed.returncode == -signal.SIGKILL, said
    last = corpus / "killed" / "checkpoints" / "last.ckpt"
    last.write_bytes(last.read_bytes()[:1009])
    resumed = start("train", *tiny(**CHANGES, run_dir="killed"), "resume=true")
    errors = resumed.communicate()[1]
    assert "last.ckpt is damaged and is now called last.damaged.ckpt; continuing from the one before it." in errors
    assert "resumed from previous.ckpt" in errors
    whole.communicate()
    best = [load_file(corpus / name / "model.safetensors") for name in ("whole", "killed")]
    torch.testing.assert_close(*best, rtol=0, atol=0)
