"""A checkpoint is whole or not there; a damaged last one gives way to the one before it."""

import errno
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn

from nmt.errors import Mistake
from nmt.training.checkpoints import (
    DAMAGED,
    LAST,
    PREVIOUS,
    BestCheckpoints,
    WholeFiles,
    moved_here,
    newest_whole,
    tidy,
)


def save(folder: Path, value: int, name: str = LAST) -> Path:
    WholeFiles().save_checkpoint({"value": torch.full((997,), value)}, folder / name)
    return folder / name


def value(path: Path) -> int:
    return int(torch.load(path, weights_only=True)["value"][0])


def test_the_last_but_one_stays_beside_the_last(tmp_path: Path) -> None:
    for number in (3, 5, 7):
        save(tmp_path, number)
    assert {path.name: value(path) for path in tmp_path.iterdir()} == {LAST: 7, PREVIOUS: 5}


def test_another_checkpoint_is_replaced_without_a_copy(tmp_path: Path) -> None:
    save(tmp_path, 3, "best-step=9.ckpt")
    save(tmp_path, 5, "best-step=9.ckpt")
    assert {path.name: value(path) for path in tmp_path.iterdir()} == {"best-step=9.ckpt": 5}


@pytest.mark.parametrize(
    ("scores", "mode", "kept", "best"),
    [
        ([0.0, 0.0, 0.0], "max", [20, 30], 30),
        ([0.0, 5.0, 0.0, 5.0, 3.0], "max", [20, 40], 40),
        ([7.0, 5.0, 6.0], "min", [20, 30], 20),
    ],
)
def test_of_equal_checkpoints_the_later_is_the_better(
    tmp_path: Path, scores: list[float], mode: str, kept: list[int], best: int
) -> None:
    callback = BestCheckpoints(tmp_path, "score", mode, keep=2)
    trainer = Mock(
        spec=Trainer,
        current_epoch=0,
        loggers=[],
        ckpt_path=None,
        sanity_checking=False,
        fast_dev_run=False,
        is_global_zero=True,
    )
    trainer.state = Mock(fn=TrainerFn.FITTING)
    trainer.strategy = Mock(
        broadcast=lambda value: value,
        reduce_boolean_decision=lambda decision: decision,
        remove_checkpoint=lambda path: Path(path).unlink(),
    )
    trainer.save_checkpoint = lambda path, _: save(tmp_path, 1, Path(path).name)
    for step, score in zip(range(10, 99, 10), scores, strict=False):
        trainer.global_step, trainer.callback_metrics = step, {"score": torch.tensor(score)}
        callback.on_validation_end(trainer, Mock(spec=LightningModule))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"best-step={step}.ckpt" for step in kept]
    assert Path(callback.best_model_path).name == f"best-step={best}.ckpt"


@pytest.mark.parametrize("damage", ["truncated", "empty", "one bit", "other bytes"])
def test_a_damaged_last_one_gives_way_to_the_one_before(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    save(tmp_path, 3)
    last = save(tmp_path, 5)
    content = bytearray(last.read_bytes())
    content[content.index(torch.full((2,), 5).numpy().tobytes())] ^= 1 if damage == "one bit" else 0
    broken = {"truncated": content[:-101], "empty": b"", "one bit": content, "other bytes": b"no checkpoint" * 99}
    last.write_bytes(broken[damage])
    found = newest_whole(tmp_path)
    assert found == tmp_path / PREVIOUS
    assert value(found) == 3
    tidy(tmp_path, found)
    assert "last.ckpt is damaged and was renamed to last.damaged.ckpt; resuming from the previous one" in caplog.text
    assert sorted(path.name for path in tmp_path.iterdir()) == [DAMAGED, PREVIOUS]


def test_where_none_is_whole_it_is_said(tmp_path: Path) -> None:
    for path in (save(tmp_path, 3), save(tmp_path, 5), tmp_path / PREVIOUS):
        path.write_bytes(path.read_bytes()[:99])
    with pytest.raises(
        Mistake,
        match=r"last\.ckpt and previous\.ckpt in .* cannot be read, and .* Nothing in the folder was changed",
    ):
        newest_whole(tmp_path)


def test_what_a_kill_left_half_written_is_removed(tmp_path: Path) -> None:
    last = save(tmp_path, 3)
    (tmp_path / ".last.ckpt.1234.part").write_bytes(b"half")
    assert newest_whole(tmp_path) == last
    tidy(tmp_path, last)
    assert list(tmp_path.iterdir()) == [last]
    assert newest_whole(tmp_path / "absent") is None


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last = save(tmp_path, 3)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("nmt.files.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(tmp_path, 5)
    assert list(tmp_path.iterdir()) == [last]
    assert value(last) == 3


def test_a_state_names_no_file_that_is_not_there_or_not_its_own(tmp_path: Path) -> None:
    for name in ("best-step=3.ckpt", "other.ckpt"):
        save(tmp_path, 1, name)
    paths = ["/x/best-step=3.ckpt", "/x/best-step=5.ckpt", "/x/other.ckpt", "/x/..", "/x/."]
    state = {"best_model_path": paths[1], "kth_best_model_path": paths[0], "best_k_models": dict.fromkeys(paths, 0.5)}
    moved = moved_here(state, tmp_path)
    there = str(tmp_path / "best-step=3.ckpt")
    assert moved["best_k_models"] == {there: 0.5}
    assert (moved["best_model_path"], moved["kth_best_model_path"]) == ("", there)
