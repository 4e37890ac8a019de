"""Training tasks: validation, counters and recorded steps for every kind of training, and the loss of translation."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from lightning.pytorch.strategies import SingleDeviceStrategy
from torch import Tensor
from torch.nn.utils import parametrize
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from nmt.config.nodes import make
from nmt.config.schema import RunSettings
from nmt.data.batch import Batch, separated
from nmt.data.example import Example
from nmt.errors import CheckFailed, Mistake
from nmt.models.base import Seq2Seq
from nmt.training.objectives import CrossEntropy, Objective, with_words_dropped
from nmt.training.recorded_steps import CudaRecorder, RecordedSteps
from nmt.training.step import OptimizerStep, Sums


class TrainingTask(OptimizerStep):
    """An OptimizerStep with validation, CUDA graphs, and the counters stored in checkpoints."""

    counted: ClassVar = "target tokens"
    """What progress messages call the tokens to predict."""

    def validation_sums(self, batch: Any) -> Sums:
        """What a validation batch adds to the sums of its validation."""
        raise NotImplementedError

    def on_train_start(self) -> None:
        """Has training steps recorded if one process trains a recordable model on one GPU.

        A loss scaler would have to act between the passes of a recorded step, and anomaly detection cannot see them.
        """
        single = isinstance(self.trainer.strategy, SingleDeviceStrategy) and self.device.type == "cuda"
        if single and self.model.recordable and self.loss_scaler is None and not torch.is_anomaly_enabled():
            self.recorded = RecordedSteps(self.training_sums, self.parameters(), CudaRecorder())

    def on_train_end(self) -> None:
        # Before Lightning empties torch's cache of the GPU's memory.
        self.forget_recorded_steps()

    def forget_recorded_steps(self) -> None:
        """Frees the memory of the recorded steps."""
        self.recorded = None

    def on_validation_epoch_start(self) -> None:
        self._validation: dict[str, Any] = {}

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        sums = self.validation_sums(batch)
        if not sums["loss"].isfinite():
            raise CheckFailed(
                f"The loss on the validation split is {sums['loss'].item()} after step {self.trainer.global_step}, so "
                "training has diverged: lower optimizer.lr, raise schedule.warmup, or lower trainer.gradient_clip_val."
            )
        for name, value in {**sums, "tokens": batch.token_count}.items():
            self._validation[name] = self._validation.get(name, 0) + value

    def on_validation_epoch_end(self) -> None:
        totals = {name: self._over_processes(value) for name, value in self._validation.items()}
        tokens = totals.pop("tokens")
        self.log_dict({f"valid_{name}": value / tokens for name, value in totals.items()})

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["target_tokens"], checkpoint["skipped_steps"] = self.target_tokens, self.skipped_steps

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.target_tokens, self.skipped_steps = checkpoint["target_tokens"], checkpoint["skipped_steps"]


class TranslationTask(TrainingTask):
    """Minimizes -sum log p(target | source) / tokens over all target tokens (including EOS) of an optimizer step.

    Label smoothing (torch's, over all ids), `word_dropout` (the probability that a piece is hidden from the model) and
    the `objective` act in training only: `valid_loss` is the plain cross entropy.
    """

    model: Seq2Seq

    def __init__(
        self,
        model: Seq2Seq,
        optimizer: Callable[..., Optimizer],
        schedule: Callable[[Optimizer], LRScheduler],
        objective: Objective | None = None,
        *,
        seed: int,
        label_smoothing: float = 0.0,
        word_dropout: float = 0.0,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str = "norm",
        max_skipped_steps: int = 0,
    ) -> None:
        super().__init__(
            model,
            optimizer,
            schedule,
            seed=seed,
            gradient_clip_val=gradient_clip_val,
            gradient_clip_algorithm=gradient_clip_algorithm,
            max_skipped_steps=max_skipped_steps,
        )
        if not 0 <= label_smoothing < 1:
            raise Mistake(f"label_smoothing is {label_smoothing}; it must be at least 0 and below 1.")
        if not 0 <= word_dropout < 1:
            raise Mistake(f"word_dropout is {word_dropout}; it must be at least 0 and below 1.")
        self._objective, self._cross_entropy = objective or CrossEntropy(), CrossEntropy()
        self._label_smoothing, self._word_dropout = label_smoothing, word_dropout

    def nll(self, batch: Batch, label_smoothing: float = 0.0) -> Tensor:
        """-sum log p of the batch's target tokens, in nats."""
        with parametrize.cached():
            return self._cross_entropy(self.model, batch, label_smoothing)

    def loss(self, batch: Batch) -> Tensor:
        """The loss that training minimizes: the objective's sum over the batch's target tokens, in nats."""
        seen = with_words_dropped(batch, self._word_dropout) if self._word_dropout else batch
        # With FixNorm, each table is normalized once, however many passes read it.
        with parametrize.cached():
            return self._objective(self.model, seen, self._label_smoothing)

    def training_sums(self, batch: Batch) -> Sums:
        return {"loss": self.loss(batch)}

    def validation_sums(self, batch: Batch) -> Sums:
        return {"loss": self.nll(batch)}

    def examples(self, batch: Batch) -> list[Example]:
        return separated(batch)


def build_task(settings: RunSettings, model: Seq2Seq) -> TranslationTask:
    """The task of training a translation model, with its optimizer, schedule and objective."""
    return TranslationTask(
        model,
        make(settings.optimizer, Optimizer),
        make(settings.schedule),
        make(settings.objective),
        seed=settings.seed,
        label_smoothing=settings.label_smoothing,
        word_dropout=settings.word_dropout,
        gradient_clip_val=settings.trainer.gradient_clip_val,
        gradient_clip_algorithm=settings.trainer.gradient_clip_algorithm,
        max_skipped_steps=settings.max_skipped_steps,
    )
