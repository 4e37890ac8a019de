"""What one training step computes: token-normalised cross entropy, in nats per target token."""

import hashlib
from collections.abc import Callable
from typing import Any

import torch
from lightning import LightningModule
from lightning.pytorch.plugins.precision import MixedPrecision, Precision
from lightning.pytorch.utilities.enums import GradClipAlgorithmType
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from nmt.data.batch import Batch
from nmt.models.base import Seq2Seq
from nmt.training.loss import summed_nll


def batch_seed(seed: int, batch: int, rank: int) -> int:
    """The seed of one batch's dropout: a 63-bit hash, so that neither resuming nor other batches can shift it."""
    digest = hashlib.blake2b(f"{seed}/{batch}/{rank}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


class TranslationTask(LightningModule):
    """Minimises -sum log p(target | source) / tokens over all target tokens (EOS counted) of an optimiser's step.

    The division by the step's tokens happens once, after accumulation and over all processes, before clipping. Label
    smoothing is torch's (over all ids) and acts in training only: `train_loss` is smoothed, `valid_loss` is not.
    """

    def __init__(
        self,
        model: Seq2Seq,
        optimizer: Callable[..., Optimizer],
        schedule: Callable[[Optimizer], LRScheduler],
        *,
        seed: int,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing is {label_smoothing}; it must be at least 0 and below 1.")
        self.model = model
        self.target_tokens = 0
        self._optimizer, self._schedule = optimizer, schedule
        self._seed, self._label_smoothing = seed, label_smoothing
        self._step_tokens = 0
        self._step_nll = torch.zeros(())
        self._valid_nll, self._valid_tokens = torch.zeros(()), 0

    def nll(self, batch: Batch, label_smoothing: float = 0.0) -> Tensor:
        """-sum log p of the batch's target tokens, in nats."""
        features = self.model.decode(batch.target_input, self.model.encode(batch.source, batch.source_mask))
        return summed_nll(features, self.model.output, batch.target_output, label_smoothing)

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        total = self.trainer.fit_loop.epoch_loop.total_batch_idx
        torch.manual_seed(batch_seed(self._seed, total, self.global_rank))

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        loss = self.nll(batch, self._label_smoothing)
        self._step_nll = self._step_nll.to(loss.device) + loss.detach()
        self._step_tokens += batch.tokens
        return loss

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Divides the summed gradients by the step's target tokens; Lightning has divided by batches and processes."""
        total = self._over_processes(float(self._step_tokens))
        parts = self.trainer.accumulate_grad_batches * self.trainer.world_size
        gradients = [parameter.grad for parameter in self.parameters() if parameter.grad is not None]
        torch._foreach_mul_(gradients, parts / total)
        self.log("train_loss", self._step_nll / self._step_tokens)
        self.target_tokens += int(total)
        self._step_nll, self._step_tokens = torch.zeros(()), 0

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Lightning's clipping, which under mixed precision refuses fused optimisers for the sake of a loss scaler's
        hidden factor: bfloat16 has no scaler, and is clipped as float32 is.
        """
        plugin = self.trainer.precision_plugin
        if isinstance(plugin, MixedPrecision) and plugin.scaler is None:
            algorithm = GradClipAlgorithmType(gradient_clip_algorithm or "norm")
            Precision.clip_gradients(plugin, optimizer, gradient_clip_val or 0, algorithm)
        else:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def on_validation_epoch_start(self) -> None:
        self._valid_nll, self._valid_tokens = torch.zeros((), device=self.device), 0

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        nll = self.nll(batch)
        if not nll.isfinite():
            raise FloatingPointError(
                f"The loss on the validation split is {nll.item()} after step {self.trainer.global_step}: the training "
                "has diverged; lower optimizer.lr, raise schedule.warmup, or lower trainer.gradient_clip_val."
            )
        self._valid_nll = self._valid_nll + nll
        self._valid_tokens += batch.tokens

    def on_validation_epoch_end(self) -> None:
        nll, tokens = self._over_processes(self._valid_nll), self._over_processes(float(self._valid_tokens))
        self.log("valid_loss", nll / tokens, prog_bar=True)

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        optimizer = self._optimizer(self.model.parameters())
        schedule = self._schedule(optimizer)
        # Lightning would move a plateau schedule after the checkpoint is written, which a resumed run would miss; to it
        # the training is one epoch, so this leaves the schedule to callbacks.FollowPlateau.
        interval = "epoch" if isinstance(schedule, ReduceLROnPlateau) else "step"
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": interval, "monitor": "valid_loss", "strict": False},
        }

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["target_tokens"] = self.target_tokens

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.target_tokens = checkpoint["target_tokens"]

    def _over_processes(self, value: Tensor | float) -> Tensor:
        tensor = torch.as_tensor(value, dtype=torch.float32, device=self.device)
        return self.trainer.strategy.reduce(tensor, reduce_op="sum")
