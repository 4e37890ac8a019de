"""What one training step computes: the cross entropy per target token, in nats."""

import hashlib
import logging
import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from lightning import LightningModule
from lightning.pytorch.plugins.precision import FSDPPrecision
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.nn.utils import clip_grad_value_, get_total_norm, parametrize
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from nmt.config.nodes import make
from nmt.config.schema import RunSettings
from nmt.data.batch import Batch, Example, separated
from nmt.data.masking import MaskedBatch
from nmt.errors import CheckFailed, Mistake
from nmt.models.base import Attending, Seq2Seq
from nmt.training.checkpoints import with_batches_a_step
from nmt.training.objectives import CrossEntropy, Objective, with_words_dropped
from nmt.training.recorded_steps import CudaRecorder, RecordedStep, RecordedSteps

logger = logging.getLogger(__name__)


def batch_seed(seed: int, batch: int, rank: int) -> int:
    """The seed of one batch's dropout: a 63-bit hash, so that neither resuming nor other batches affect it."""
    digest = hashlib.blake2b(f"{seed}/{batch}/{rank}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


class NotFinite(CheckFailed):
    """The loss or the gradient norm of a step is infinite or NaN.

    examples: the step's sentence pairs, before word dropout; skipped: how many such steps were skipped before it.
    """

    def __init__(self, step: int, loss: float, norm: float, examples: list[Example], skipped: int) -> None:
        super().__init__(f"At step {step} the loss is {loss:.4g} and the norm of its gradient is {norm:.4g}.")
        self.step, self.loss, self.norm, self.examples, self.skipped = step, loss, norm, examples, skipped

    def remedy(self) -> str:
        """How to continue training."""
        return (
            "Start over with a lower optimizer.lr or a longer schedule.warmup and overwrite=true, or continue with "
            f"resume=true max_skipped_steps={self.skipped + 3}, which skips up to three more such steps."
        )


class TrainingTask(LightningModule):
    """Minimizes, in each optimizer step, the loss per token to predict.

    The loss is summed over all batches and processes of the step and divided once by their number of tokens, before
    clipping. `valid_loss` is the plain cross entropy per token.
    """

    counted: ClassVar = "target tokens"
    """What progress messages call the tokens to predict."""

    def __init__(
        self,
        model: Attending,
        optimizer: Callable[..., Optimizer],
        schedule: Callable[[Optimizer], LRScheduler],
        *,
        seed: int,
        max_skipped_steps: int = 0,
    ) -> None:
        super().__init__()
        self.model = model
        self.target_tokens = 0
        self._optimizer, self._schedule, self._seed = optimizer, schedule, seed
        self._step_tokens = torch.zeros((), dtype=torch.long)
        self._step_nll = torch.zeros(())
        self._step_batches: list[Any] = []
        self._step_loss, self._gradient_scale = torch.zeros(()), 1.0
        self._max_skipped_steps, self._skipped = max_skipped_steps, 0
        self._valid_nll, self._valid_tokens = torch.zeros(()), 0
        self._recorded: RecordedSteps | None = None
        self._step: RecordedStep | None = None

    @abstractmethod
    def nll(self, batch: Any) -> Tensor:
        """-sum log p of the batch's tokens to predict, in nats."""
        raise NotImplementedError

    @abstractmethod
    def loss(self, batch: Any) -> Tensor:
        """The loss that training minimizes: a sum over the batch's tokens to predict, in nats."""
        raise NotImplementedError

    @abstractmethod
    def examples(self, batch: Any) -> list[Example]:
        """The sentences of a batch, for the report on a step whose loss or gradient is not finite."""
        raise NotImplementedError

    def on_train_start(self) -> None:
        """Has training steps recorded if one process trains a recordable model on one GPU.

        A loss scaler would have to act between the passes of a recorded step, and anomaly detection cannot see them.
        """
        single = isinstance(self.trainer.strategy, SingleDeviceStrategy) and self.device.type == "cuda"
        scaled = getattr(self.trainer.precision_plugin, "scaler", None) is not None
        if single and self.model.recordable and not scaled and not torch.is_anomaly_enabled():
            accumulate = self.trainer.accumulate_grad_batches
            self._recorded = RecordedSteps(self.loss, self.parameters(), accumulate, CudaRecorder())

    def on_train_end(self) -> None:
        # Before Lightning empties torch's cache of the GPU's memory.
        self.forget_recorded_steps()

    def forget_recorded_steps(self) -> None:
        """Frees the memory of the recorded steps."""
        self._recorded = self._step = None

    def on_train_batch_start(self, batch: Batch | MaskedBatch, batch_idx: int) -> None:
        total = self.trainer.fit_loop.epoch_loop.total_batch_idx
        torch.manual_seed(batch_seed(self._seed, total, self.global_rank))

    def training_step(self, batch: Batch | MaskedBatch, batch_idx: int) -> Tensor:
        loss = self._recorded_loss(batch)
        if loss is None:
            loss = self.loss(batch)
        self._step_nll = self._step_nll.to(loss.device) + loss.detach()
        self._step_tokens = self._step_tokens.to(loss.device) + batch.token_count
        self._step_batches.append(batch)
        return loss

    def _recorded_loss(self, batch: Batch | MaskedBatch) -> Tensor | None:
        """The loss computed by the recorded step, if the step of this batch is recorded."""
        self._step = None
        if self._recorded is None or isinstance(batch, MaskedBatch):
            return None
        self._step = self._recorded.find(batch)
        return None if self._step is None else self._step.forward(batch)

    def backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        if self._step is None:
            super().backward(loss, *args, **kwargs)
        else:
            self._step.backward()

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Computes the factor that turns the gradients, which Lightning averages, into those of the loss per token."""
        total = float(self._over_processes(float(self._step_tokens)))
        self._gradient_scale = self.trainer.accumulate_grad_batches * self.trainer.world_size / total
        self._step_loss = self._over_processes(self._step_nll) / total
        self.log("train_loss", self._step_loss)
        self.target_tokens += int(total)
        self._step_nll, self._step_tokens = torch.zeros_like(self._step_nll), torch.zeros_like(self._step_tokens)

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Divides the gradients by the step's number of tokens to predict and clips their norm, in one multiplication.

        A step with an infinite or NaN gradient is skipped, or ends training. Lightning's own clipping is used if the
        gradients carry the factor of a loss scaler, which skips such steps itself, or if they are sharded over devices.
        It is not used with bfloat16, which has no scaler, because it would reject fused optimizers.
        """
        plugin, batches, self._step_batches = self.trainer.precision_plugin, self._step_batches, []
        gradients = [parameter.grad for parameter in self.parameters() if parameter.grad is not None]
        if getattr(plugin, "scaler", None) is not None or isinstance(plugin, FSDPPrecision):
            torch._foreach_mul_(gradients, self._gradient_scale)
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)
            return
        norm = get_total_norm(gradients).item() * self._gradient_scale
        if not math.isfinite(norm):
            examples = self._of_all_processes([example for batch in batches for example in self.examples(batch)])
            self._skip(NotFinite(self.global_step + 1, self._step_loss.item(), norm, examples, self._skipped))
            return
        limit = gradient_clip_val if gradient_clip_val and gradient_clip_val > 0 else math.inf
        by_norm = gradient_clip_algorithm != "value"
        # As in torch.nn.utils.clip_grad_norm_.
        torch._foreach_mul_(gradients, self._gradient_scale * (min(1.0, limit / (norm + 1e-6)) if by_norm else 1.0))
        if not by_norm:
            clip_grad_value_(self.parameters(), limit)

    def _skip(self, found: NotFinite) -> None:
        """Drops the gradients of a step, so that no weight changes; the schedule and the weight averages still advance.

        Raises the error instead if too many steps have been skipped already.
        """
        if self._skipped >= self._max_skipped_steps:
            raise found
        self._skipped += 1
        logger.warning("Step %d is skipped (%d of %d): %s", found.step, self._skipped, self._max_skipped_steps, found)
        self.zero_grad(set_to_none=True)

    def on_validation_epoch_start(self) -> None:
        self._valid_nll, self._valid_tokens = torch.zeros((), device=self.device), 0

    def validation_step(self, batch: Batch | MaskedBatch, batch_idx: int) -> None:
        nll = self.nll(batch)
        if not nll.isfinite():
            raise CheckFailed(
                f"The loss on the validation split is {nll.item()} after step {self.trainer.global_step}, so "
                "training has diverged: lower optimizer.lr, raise schedule.warmup, or lower trainer.gradient_clip_val."
            )
        self._valid_nll = self._valid_nll + nll
        self._valid_tokens += batch.tokens

    def on_validation_epoch_end(self) -> None:
        nll, tokens = self._over_processes(self._valid_nll), self._over_processes(float(self._valid_tokens))
        self.log("valid_loss", nll / tokens, prog_bar=True)

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        optimizer = _built("optimizer", self._optimizer, self.model.parameters())
        schedule = _built("schedule", self._schedule, optimizer)
        # Lightning would step a plateau schedule after writing the checkpoint, so a resumed run would miss it. To
        # Lightning, training is one epoch, so "epoch" leaves the schedule to stopping.FollowPlateau.
        interval = "epoch" if isinstance(schedule, ReduceLROnPlateau) else "step"
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": interval, "monitor": "valid_loss", "strict": False},
        }

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["target_tokens"] = self.target_tokens
        checkpoint["skipped_steps"] = self._skipped
        checkpoint["batches_a_step"] = self.trainer.accumulate_grad_batches

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.target_tokens = checkpoint["target_tokens"]
        self._skipped = checkpoint.get("skipped_steps", 0)
        now = self.trainer.accumulate_grad_batches
        if (before := checkpoint.get("batches_a_step", now)) != now:
            with_batches_a_step(checkpoint, before, now)

    def _of_all_processes(self, examples: list[Example]) -> list[Example]:
        if self.trainer.world_size == 1:
            return examples
        gathered: list[list[Example]] = [[]] * self.trainer.world_size
        torch.distributed.all_gather_object(gathered, examples)
        return [example for each in gathered for example in each]

    def _over_processes(self, value: Tensor | float) -> Tensor:
        tensor = torch.as_tensor(value, dtype=torch.float32, device=self.device)
        return self.trainer.strategy.reduce(tensor, reduce_op="sum")


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
        max_skipped_steps: int = 0,
    ) -> None:
        super().__init__(model, optimizer, schedule, seed=seed, max_skipped_steps=max_skipped_steps)
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

    def examples(self, batch: Batch) -> list[Example]:
        return separated(batch)


def _built(key: str, part: Callable[..., Any], subject: Any) -> Any:
    """The optimizer or schedule of `subject`. Raises Mistake if torch rejects a value of the node under `key`."""
    try:
        return part(subject)
    except (ValueError, TypeError, LookupError, RuntimeError) as error:
        # torch checks some values and stumbles over others, such as betas=[0.9]. Only a class of torch, which gets
        # nothing but the user's values, is spared its traceback: in any other class the error may be a bug.
        target = getattr(part, "func", part)
        if isinstance(error, Mistake) or not target.__module__.startswith("torch."):
            raise
        reason = " ".join(str(error).split()).rstrip(".")
        raise Mistake(f"The {key} cannot be built: {target.__name__} rejects a value of it ({reason}).") from error


def build_task(settings: RunSettings, model: Seq2Seq) -> TranslationTask:
    """The task of training a translation model, with its optimizer, schedule and objective."""
    return TranslationTask(
        model,
        make(settings.optimizer),
        make(settings.schedule),
        make(settings.objective),
        seed=settings.seed,
        label_smoothing=settings.label_smoothing,
        word_dropout=settings.word_dropout,
        max_skipped_steps=settings.max_skipped_steps,
    )
