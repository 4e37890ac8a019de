"""What a training step minimizes: cross entropy, alone or with a term that makes two passes agree.

Each objective is a sum over the target tokens of a batch, in nats. Objectives with two passes run the model twice
and keep the activations of both for the gradients.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from nmt.data.batch import Batch
from nmt.errors import Mistake
from nmt.kernels.vocabulary_loss import Features, summed_agreement, summed_nll
from nmt.models.base import Seq2Seq
from nmt.text import BOS, EOS, PAD, UNK

Objective = Callable[[Seq2Seq, Batch, float], Tensor]
"""objective(model, batch, label_smoothing) returns the sum to minimize."""


class CrossEntropy:
    """-sum log p(target | source)."""

    def __call__(self, model: Seq2Seq, batch: Batch, label_smoothing: float) -> Tensor:
        return summed_nll(_features(model, batch), model.output, batch.target_output, label_smoothing)


class RDrop:
    """Two passes p and q with different dropout: (nll(p) + nll(q)) / 2 + alpha / 2 (KL(p, q) + KL(q, p)) / 2.

    This is half the loss of Liang et al. (2021), equation 3, so that its scale per token is the same as that of cross
    entropy. Without dropout, the two passes are identical.
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = _not_negative("alpha", alpha)

    def __call__(self, model: Seq2Seq, batch: Batch, label_smoothing: float) -> Tensor:
        passes = _features(model, batch), _features(model, batch)
        given = (passes, model.output, batch.target_output, label_smoothing)
        return summed_agreement(*given, nll=(0.5, 0.5), divergence=(self.alpha / 4, self.alpha / 4))


class SimCut:
    """nll(p) + alpha KL(p, q), where q is predicted from sentences with some pieces cut out.

    From Gao et al. (2022). Gradients flow through both passes. The paper sets the embedding of a cut piece to zero;
    here the piece becomes UNK, which has no other use with byte fallback.
    """

    def __init__(self, alpha: float, cut: float) -> None:
        if not 0 <= cut < 1:
            raise Mistake(f"objective.cut is {cut}; it must be at least 0 and below 1.")
        self.alpha, self.cut = _not_negative("alpha", alpha), cut

    def __call__(self, model: Seq2Seq, batch: Batch, label_smoothing: float) -> Tensor:
        passes = _features(model, batch), _features(model, with_words_dropped(batch, self.cut))
        given = (passes, model.output, batch.target_output, label_smoothing)
        return summed_agreement(*given, nll=(1.0, 0.0), divergence=(self.alpha, 0.0))


def with_words_dropped(batch: Batch, probability: float) -> Batch:
    """The batch with UNK in place of some pieces of the source and of the decoder's input (word dropout).

    As in Nguyen & Salazar (2019); Bowman et al. (2016), section 3.1, drop words only in the decoder. The pieces to
    predict, and BOS, EOS and PAD, are unchanged.
    """
    context = batch.context and batch.context._replace(
        source=_with_unknown(batch.context.source, probability),
        target_input=_with_unknown(batch.context.target_input, probability),
    )
    return batch._replace(
        source=_with_unknown(batch.source, probability),
        target_input=_with_unknown(batch.target_input, probability),
        context=context,
    )


def _with_unknown(ids: Int[Tensor, "batch n"], probability: float) -> Int[Tensor, "batch n"]:
    words: Bool[Tensor, "batch n"] = (ids != PAD) & (ids != BOS) & (ids != EOS)
    return ids.masked_fill(words & (torch.rand(ids.shape, device=ids.device) < probability), UNK)


def _features(model: Seq2Seq, batch: Batch) -> Features:
    return model.decode(batch.target_input, model.encode(batch.source, batch.source_mask, context=batch.context))


def _not_negative(name: str, value: float) -> float:
    if not 0 <= value < math.inf:
        raise Mistake(f"objective.{name} is {value}; it must be finite and not negative.")
    return value
