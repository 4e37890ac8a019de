"""One optimizer step, from its batches to the new weights."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from lightning import LightningModule
from lightning.pytorch.strategies import ParallelStrategy
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.nn.utils import clip_grad_value_, get_total_norm
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from nmt.data.example import Example
from nmt.data.keyed_seed import keyed_seed
from nmt.models.base import Attending
from nmt.training.buildable import built
from nmt.training.not_finite import NotFinite, of_all_processes, skip_or_stop
from nmt.training.recorded_steps import RecordedSteps

Sums = Mapping[str, Tensor]
"""Sums over the tokens to predict, by name; 'loss', in nats, is minimized, and all are logged per token."""


def batch_seed(seed: int, batch: int, rank: int) -> int:
    """The seed of one batch's dropout, the same in a resumed run. It has 63 bits: torch expects a signed integer."""
    return keyed_seed(f"{seed}/{batch}/{rank}") >> 1


class OptimizerStep(LightningModule):
    """Trains a model by whole optimizer steps: what Lightning calls a batch is the list of a step's batches.

    The loss is summed over all batches and processes of the step and divided once by their number of tokens to predict,
    before clipping. A `gradient_clip_val` of None or 0 does not clip.
    """

    def __init__(
        self,
        model: Attending,
        optimizer: Callable[..., Optimizer],
        schedule: Callable[[Optimizer], LRScheduler],
        *,
        seed: int,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str = "norm",
        max_skipped_steps: int = 0,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.model, self.seed, self.max_skipped_steps = model, seed, max_skipped_steps
        self.clip_limit, self.clips_by_value = gradient_clip_val or math.inf, gradient_clip_algorithm == "value"
        self.target_tokens = self.skipped_steps = 0
        self.recorded: RecordedSteps | None = None
        self._optimizer, self._schedule = optimizer, schedule

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        optimizer = built("optimizer", self._optimizer, self.model.parameters())
        schedule = built("schedule", self._schedule, optimizer)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule}}

    @property
    def loss_scaler(self) -> Any:
        """Multiplies the loss in float16, whose small gradients would become 0; None in other precisions."""
        return getattr(self.trainer.precision_plugin, "scaler", None)

    def training_sums(self, batch: Any) -> Sums:
        """What a training batch adds to the sums of its step."""
        raise NotImplementedError

    def examples(self, batch: Any) -> list[Example]:
        """The sentences of a batch, for the report on a step whose loss or gradient is not finite."""
        raise NotImplementedError

    def training_step(self, batches: Sequence[Any], batch_idx: int) -> None:
        """Takes one optimizer step."""
        trainer, scaler = self.trainer, self.loss_scaler
        # Lightning's wrapper of the optimizer, whose `step` counts trainer.global_step.
        optimizer, schedule = cast(Any, self.optimizers()), cast(Any, self.lr_schedulers())
        steps_before = trainer.global_step

        # Forward and backward: each batch adds the gradient of its summed loss to the `grad` of the parameters.
        sums: dict[str, Any] = {}
        for number, batch in enumerate(batches):
            # Keyed, not streamed: the same batch drops the same units, in a resumed run too.
            torch.manual_seed(batch_seed(self.seed, steps_before * len(batches) + number, self.global_rank))
            with self._gradients_wait(number < len(batches) - 1):
                batch_sums = self._forward_and_backward(batch)
            # Sums, not a list, because a recorded step overwrites its values when it is run again.
            sums = {name: sums.get(name, 0) + value for name, value in batch_sums.items()}

        # Divide once by the tokens of all batches and processes. On a GPU, this is the first line that waits for it.
        tokens = float(self._over_processes(sum(batch.token_count for batch in batches)))
        means = {f"train_{name}": self._over_processes(value) / tokens for name, value in sums.items()}
        self.log_dict(means)
        self.target_tokens += int(tokens)
        # DDP has averaged the gradients over the processes, and the loss scaler has multiplied them.
        gradients = [parameter.grad for parameter in self.parameters() if parameter.grad is not None]
        scale = 1.0 if scaler is None else scaler.get_scale()
        factor = trainer.world_size / tokens
        norm = get_total_norm(gradients).item() * factor / scale if scale else math.nan
        loss = means["train_loss"].item()

        # Finite? If only the factor of the loss scaler is too large, the scaler skips the step itself, in
        # `optimizer.step`, and lowers the factor.
        scaler_may_skip = scaler is not None and scale > 1
        if math.isfinite(loss) and (math.isfinite(norm) or scaler_may_skip):
            # Clip. One multiplication divides and clips; the 1e-6 is that of torch.nn.utils.clip_grad_norm_.
            clip = 1.0 if self.clips_by_value else min(1.0, self.clip_limit / (norm + 1e-6))
            torch._foreach_mul_(gradients, factor * clip)
            if self.clips_by_value:
                clip_grad_value_(self.parameters(), self.clip_limit * scale)
        else:
            examples = [example for batch in batches for example in self.examples(batch)]
            examples = of_all_processes(examples, trainer.world_size)
            error = NotFinite(steps_before + 1, loss, norm, examples, self.skipped_steps)
            self.skipped_steps = skip_or_stop(error, self.max_skipped_steps)
            if scaler is None:
                self.zero_grad(set_to_none=True)
            else:  # the loss scaler skips a step only if a gradient is not finite
                torch._foreach_mul_(gradients, math.nan)

        # Update the weights. A skipped step changes nothing, because it has no gradients or because the loss scaler
        # skips it, but it counts as a step.
        with self._without_autocast():
            optimizer.step()
        # A plateau schedule follows the validations instead; see stopping.FollowPlateau.
        if not isinstance(schedule, ReduceLROnPlateau):
            schedule.step()
        # Here rather than before the next step, so that a validation has their memory.
        optimizer.zero_grad()

    def _forward_and_backward(self, batch: Any) -> Sums:
        """Adds the gradients of a batch to those of the parameters; returns its sums.

        The graph of the loss ends with this call: a later batch could not be recorded while the graph keeps
        gradient-accumulation nodes created on Python's CUDA stream.
        """
        recorded = None if self.recorded is None else self.recorded.find(batch)
        if recorded is not None:
            return recorded.run(batch)
        sums = self.training_sums(batch)
        with self._without_autocast():
            self.manual_backward(sums["loss"])
        return {name: value.detach() for name, value in sums.items()}

    def _gradients_wait(self, waits: bool) -> AbstractContextManager:
        """Delays DDP's exchange of gradients, which a step needs only once, during its last backward pass."""
        strategy = self.trainer.strategy
        return strategy.block_backward_sync() if waits and isinstance(strategy, ParallelStrategy) else nullcontext()

    def _without_autocast(self) -> torch.autocast:
        """Lightning calls `training_step` within autocast, which is meant for the forward pass alone."""
        return torch.autocast(self.device.type, enabled=False)

    def _over_processes(self, value: Tensor | float) -> Tensor:
        tensor = torch.as_tensor(value, dtype=torch.float32, device=self.device)
        return self.trainer.strategy.reduce(tensor, reduce_op="sum")
