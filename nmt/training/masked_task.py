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
from nmt.data.example import Example
from nmt.data.masking import MaskedBatch, collate_masked
from nmt.data.plan import plan
from nmt.kernels.vocabulary_loss import summed_nll
from nmt.models import MaskedTransformer
from nmt.text import PAD
from nmt.training.step import Sums
from nmt.training.task import TrainingTask


class MaskedSums(NamedTuple):
    """Sums over the predicted pieces of a batch: -sum log p, in nats, and the number of correct guesses."""

    nll: Tensor
    right: Tensor


def masked_sums(model: MaskedTransformer, batch: MaskedBatch) -> MaskedSums:
    """-sum log p(x_i | x~) over the predicted pieces (Devlin et al. 2019, section 3.1), and the correct guesses."""
    # With FixNorm, this normalizes the embedding table only once.
    with parametrize.cached():
        predicted = batch.predicted != PAD
        states, pieces = model(batch.source, batch.source_mask)[predicted], batch.predicted[predicted]
        # The loss comes first: a table that is cached under no_grad would have no gradient.
        nll = summed_nll(states.unsqueeze(0), model.output, pieces.unsqueeze(0))
        with torch.no_grad():
            right = (model.output(states).argmax(-1) == pieces).sum()
        return MaskedSums(nll, right)


class MaskedTask(TrainingTask):
    """Minimizes -sum log p(x_i | x~) / pieces over the predicted pieces of an optimizer step.

    Also logs the accuracy: the share of predicted pieces to which the model gives the largest probability.
    """

    counted: ClassVar = "predicted pieces"
    model: MaskedTransformer

    def training_sums(self, batch: MaskedBatch) -> Sums:
        nll, right = masked_sums(self.model, batch)
        return {"loss": nll, "accuracy": right}

    def validation_sums(self, batch: MaskedBatch) -> Sums:
        return self.training_sums(batch)

    def examples(self, batch: MaskedBatch) -> list[Example]:
        return batch.examples


def build_masked_task(settings: EncoderSettings, model: MaskedTransformer) -> MaskedTask:
    """The task of masked pretraining, with its optimizer and schedule."""
    return MaskedTask(
        model,
        make(settings.optimizer, Optimizer),
        make(settings.schedule),
        seed=settings.seed,
        gradient_clip_val=settings.trainer.gradient_clip_val,
        gradient_clip_algorithm=settings.trainer.gradient_clip_algorithm,
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
