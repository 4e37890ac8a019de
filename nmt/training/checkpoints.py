"""Checkpoints: the best few by the monitored metric, the most recent few, and the last, from which a run resumes."""

import io
import logging
import os
import pickle
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import torch
from lightning import LightningModule, Trainer
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.pytorch.callbacks import ModelCheckpoint

from nmt.errors import CheckFailed, Mistake
from nmt.files import atomic_write, remove_parts
from nmt.training.stopping import measured

logger = logging.getLogger(__name__)

LAST, PREVIOUS = "last.ckpt", "previous.ckpt"
DAMAGED = "last.damaged.ckpt"
_NAME = re.compile(r"(best|recent)-step=\d+\.ckpt")
_STATES = {"the optimizer": "optimizer_states", "the schedule": "lr_schedulers"}
"""What a user may choose, by its name in a message, and its key in a checkpoint."""


class BestCheckpoints(ModelCheckpoint):
    """Keeps the `keep` best checkpoints, written only at the end of validations, in a folder that may be moved.

    Ties go to the later checkpoint, because BLEU is 0 for a while at the beginning.
    """

    def __init__(self, folder: Path, monitor: str, mode: str, keep: int) -> None:
        super().__init__(
            dirpath=folder,
            filename="best-{step}",
            monitor=monitor,
            mode=mode,
            save_top_k=keep,
            save_on_train_epoch_end=False,
            enable_version_counter=False,
        )

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self.monitor is not None and measured(trainer, self.monitor):
            super().on_validation_end(trainer, pl_module)
            equal = [path for path, score in self.best_k_models.items() if score == self.best_model_score]
            self.best_model_path = equal[-1] if equal else self.best_model_path

    def check_monitor_top_k(self, trainer: Trainer, current: torch.Tensor | None = None) -> bool:
        worst = self.best_k_models.get(self.kth_best_model_path)
        # Every process makes the same decision, because the metric is reduced over all of them.
        equal = current is not None and worst is not None and bool(current == worst)
        return equal or super().check_monitor_top_k(trainer, current)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(moved_here(state_dict, Path(str(self.dirpath))))


class LastCheckpoint(ModelCheckpoint):
    """Overwrites last.ckpt at the end of every validation, when no step is in progress, so that resuming is exact."""

    def __init__(self, folder: Path) -> None:
        super().__init__(dirpath=folder, filename="last", save_on_train_epoch_end=False, enable_version_counter=False)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict | {"dirpath": self.dirpath, "best_model_path": ""})


class RecentCheckpoints(ModelCheckpoint):
    """Keeps the last `keep` checkpoints, each written at the end of a validation, in a folder that may be moved."""

    def __init__(self, folder: Path, keep: int) -> None:
        super().__init__(
            dirpath=folder,
            filename="recent-{step}",
            monitor="step",
            mode="max",
            save_top_k=keep,
            save_on_train_epoch_end=False,
            enable_version_counter=False,
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(moved_here(state_dict, Path(str(self.dirpath))))


def moved_here(state: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The state of a ModelCheckpoint whose files are now in `folder`; files that do not exist there are dropped.

    The state may be older than the files: a better checkpoint may have replaced one that the state names.
    """

    def moved(path: str) -> str:
        file = folder / Path(path).name
        return str(file) if _NAME.fullmatch(file.name) and file.is_file() else ""

    paths = {key: moved(state[key]) for key in ("best_model_path", "kth_best_model_path")}
    best = {moved(path): score for path, score in state["best_k_models"].items() if moved(path)}
    return state | paths | {"best_k_models": best, "dirpath": str(folder)}


class WholeFiles(TorchCheckpointIO):
    """Writes checkpoints atomically, even if the process is killed or the disk is full; keeps the former last.ckpt.

    Lightning's own writer moves the file from the system's temporary folder, which is not atomic if that folder is on
    another disk.
    """

    _was_read = False

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Write to memory first, because torch's writer hides why a file cannot be written.
        content = io.BytesIO()
        torch.save(checkpoint, content)
        if not self._was_read:
            check_readable(content, checkpoint)
            self._was_read = True
        former = path.with_name(PREVIOUS) if path.name == LAST else None
        with atomic_write(path, former) as part, part.open("wb") as file:
            file.write(content.getbuffer())


def check_readable(content: io.BytesIO, checkpoint: dict[str, Any]) -> None:
    """Raises CheckFailed if a checkpoint could not be read again without running code that it contains.

    The states of a user's callbacks, optimizer or schedule may hold anything, and nothing could resume from the file.
    """
    content.seek(0)
    try:
        torch.load(content, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        states = [(f"the callback {name}", state) for name, state in checkpoint.get("callbacks", {}).items()]
        states += [(name, checkpoint.get(key)) for name, key in _STATES.items()]
        for name, state in states:
            if not _is_readable(state):
                raise CheckFailed(
                    f"The state of {name} contains more than tensors, numbers, text, lists and dictionaries, so no "
                    "checkpoint could be read again. Make its state_dict() return only those, and start over with "
                    "overwrite=true."
                ) from error
        raise


def _is_readable(state: Any) -> bool:
    content = io.BytesIO()
    torch.save(state, content)
    content.seek(0)
    try:
        torch.load(content, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        return False
    return True


def newest_whole(folder: Path) -> Path | None:
    """The last checkpoint, or the previous one if the last is missing or damaged; None if neither exists.

    Raises Mistake if those that exist are all damaged.
    """
    files = [path for path in (folder / LAST, folder / PREVIOUS) if path.is_file()]
    whole = next((path for path in files if is_whole(path)), None)
    if files and whole is None:
        raise Mistake(
            f"{' and '.join(path.name for path in files)} in {folder} cannot be read, and a run can "
            "resume only from these: start a new run in another run_dir. Nothing in the folder was changed."
        )
    return whole


def tidy(folder: Path, whole: Path | None) -> None:
    """Removes half-written files, and renames a damaged last checkpoint if `whole` is the previous one."""
    remove_parts(folder)
    if whole is not None and whole.name == PREVIOUS and (last := folder / LAST).is_file():
        os.replace(last, folder / DAMAGED)
        logger.warning("%s is damaged and was renamed to %s; resuming from the previous one.", last, DAMAGED)


def load_checkpoint(file: Path) -> dict[str, Any]:
    """The contents of a checkpoint, memory-mapped. Raises Mistake if it is damaged or not a checkpoint."""
    damaged = f"{file} is damaged, or is not a checkpoint of a training run: delete it, or train again."
    if not is_whole(file):
        raise Mistake(damaged)
    try:
        checkpoint = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise Mistake(damaged) from error
    weights = checkpoint.get("state_dict") if isinstance(checkpoint, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in weights.values()):
        raise Mistake(f"{file} has no weights: train again.")
    return checkpoint


def is_whole(path: Path) -> bool:
    """Whether a checkpoint is complete and each of its parts matches its stored CRC-32."""
    try:
        with zipfile.ZipFile(path) as file:
            return file.testzip() is None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error):
        return False
