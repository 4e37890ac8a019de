"""What a step of masked pretraining computes: the cross entropy per predicted piece, in nats, and the accuracy."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import parametrize
from torch.optim import Optimizer

from nmt.config.nodes import make
from nmt.config.schema import EncoderSettings
from nmt.data.batch import Example
from nmt.data.masking import MaskedBatch, collate_masked
from nmt.data.plan import plan
from nmt.kernels.vocabulary_loss import summed_nll
from nmt.models import MaskedTransformer
from nmt.text import PAD
from nmt.training.task import TrainingTask


class Sums(NamedTuple):
    """Sums over the predicted pieces of a batch: -sum log p, in nats, and the number of correct guesses."""

    nll: Tensor
    right: Tensor


def masked_sums(model: MaskedTransformer, batch: MaskedBatch) -> Sums:
    """-sum log p(x_i | x~) over the predicted pieces (Devlin et al. 2019, section 3.1), and the correct guesses."""
    # With FixNorm, this normalizes the embedding table only once.
    with parametrize.cached():
        predicted = batch.predicted != PAD
        states, pieces = model(batch.source, batch.source_mask)[predicted], batch.predicted[predicted]
        # The loss comes first: a table that is cached under no_grad would have no gradient.
        nll = summed_nll(states.unsqueeze(0), model.output, pieces.unsqueeze(0))
        with torch.no_grad():
            right = (model.output(states).argmax(-1) == pieces).sum()
        return Sums(nll, right)


class MaskedTask(TrainingTask):
    """Minimizes -sum log p(x_i | x~) / pieces over the predicted pieces of an optimizer step.

    Also logs the accuracy: the share of predicted pieces to which the model gives the largest probability.
    """

    counted: ClassVar = "predicted pieces"
    model: MaskedTransformer
    # Correct guesses since the last optimizer step, or in the current validation: validations come between steps.
    _right: Tensor | float = 0.0

    def nll(self, batch: MaskedBatch) -> Tensor:
        nll, right = masked_sums(self.model, batch)
        self._right = self._right + right
        return nll

    def loss(self, batch: MaskedBatch) -> Tensor:
        return self.nll(batch)

    def examples(self, batch: MaskedBatch) -> list[Example]:
        return batch.examples

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        accuracy = self._over_processes(self._right) / self._over_processes(float(self._step_tokens))
        super().on_before_optimizer_step(optimizer)
        self.log("train_accuracy", accuracy)
        self._right = 0.0

    def on_validation_epoch_end(self) -> None:
        super().on_validation_epoch_end()
        accuracy = self._over_processes(self._right) / self._over_processes(float(self._valid_tokens))
        self.log("valid_accuracy", accuracy, prog_bar=True)
        self._right = 0.0


def build_masked_task(settings: EncoderSettings, model: MaskedTransformer) -> MaskedTask:
    """The task of masked pretraining, with its optimizer and schedule."""
    return MaskedTask(
        model,
        make(settings.optimizer),
        make(settings.schedule),
        seed=settings.seed,
        max_skipped_steps=settings.max_skipped_steps,
    )


@torch.inference_mode()
def masked_score(model: MaskedTransformer, examples: Sequence[Example], batch_tokens: int) -> dict[str, float]:
    """A model's loss per predicted piece, in nats, and its accuracy, on sentences with masked pieces."""
    lengths = np.array([[len(example.source) + 1, len(example.target) + 1] for example in examples])
    nll = right = number = 0.0
    for [[chosen]] in plan(0, 0, lengths, max(batch_tokens, int(lengths.max()))):
        batch = collate_masked([examples[index] for index in chosen.tolist()])
        on_device = batch._replace(
            **{name: getattr(batch, name).to(model.device) for name in ("source", "source_mask", "predicted")}
        )
        sums = masked_sums(model, on_device)
        nll, right, number = nll + sums.nll.item(), right + sums.right.item(), number + batch.tokens
    return {"loss": nll / number, "accuracy": right / number}
