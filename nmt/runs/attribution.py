"""Attributions: how much each source piece matters for each target piece, beside what the model attends to.

Each method explains f_t = log p(y_t | y_<t, x), in nats, of a given target, or with a contrast
f_t = log p(y_t | y_<t, x) - log p(contrast | y_<t, x) (Yin & Neubig 2022). The baseline of the methods that change the
input is the zero embedding; positions stay. UNK would be no baseline: the tokenizer has a piece for every byte, so
training never sees UNK and its embedding keeps its random initial values.

All methods return (batch, target, source), exactly 0 at padding. They compute many variants of each sentence, at most
`rows` in one pass, and all sentences of the batch in one.
"""

import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from nmt.attention.edits import Edit, Zeroed, with_parts
from nmt.data.batch import Batch
from nmt.models import Seq2Seq
from nmt.text import PAD

logger = logging.getLogger(__name__)

Attributions = Float[Tensor, "batch target source"]
Method = Callable[[Seq2Seq, Batch, int], Attributions]
"""method(model, batch, rows), with the batch on the model's device."""

STEPS = 8
_TOLERANCE = 0.01
# An interval may use its share of the tolerance by width, or this share, because few intervals are near their limit.
_SHARE = 1 / 8
# A narrower interval is not halved: f jumps in it, as at the edge of a local window.
_NARROWEST = 2**-8


def gradient_x_input(model: Seq2Seq, batch: Batch, rows: int, contrast: int | None = None) -> Attributions:
    """a_tj = e_j . df_t / de_j for the embedding e_j of source piece j (Shrikumar et al. 2017, section 2)."""
    sentences = torch.arange(len(batch.source), device=batch.source.device)
    found = [_slopes(model, batch, some, torch.ones_like(some), contrast) for some in sentences.split(rows)]
    return _without_padding(torch.cat(found), batch)


class _Interval(NamedTuple):
    """The points alpha e of a sentence's embeddings e with alpha from `start` to `start + width`."""

    sentence: int
    start: float
    width: float


def integrated_gradients(
    model: Seq2Seq, batch: Batch, rows: int, contrast: int | None = None, steps: int = STEPS
) -> Attributions:
    """a_tj = e_j . integral of df_t / de_j at alpha e over alpha in [0, 1] (Sundararajan et al. 2017, equation 1).

    The sum over j is f_t(e) - f_t(0), and over an interval of alpha the difference of f_t at its ends. Where the
    Gauss-Legendre rule with `steps` nodes misses that, the interval is halved, so that the sums of the result are off
    by at most 1 % of the difference, or of 1 nat if the difference is smaller. Logs a warning if they are not: no rule
    can integrate over a jump of f. One pass has at least `steps` rows.
    """
    roots, weights = (torch.from_numpy(each).to(batch.source.device) for each in np.polynomial.legendre.leggauss(steps))
    ends = torch.tensor([[0.0], [1.0]], device=batch.source.device)
    sentences = torch.arange(len(batch.source), device=batch.source.device)
    nothing, whole = (_explained_at(model, batch, sentences, end.expand(len(sentences), 1), contrast) for end in ends)
    tolerated = _TOLERANCE * (whole - nothing).abs().clamp(min=1)
    found = torch.zeros(*nothing.shape, batch.source.shape[1], dtype=nothing.dtype, device=nothing.device)
    intervals = [_Interval(sentence, 0.0, 1.0) for sentence in range(len(batch.source))]
    while intervals:
        some, intervals = intervals[: max(1, rows // steps)], intervals[max(1, rows // steps) :]
        chosen = torch.tensor([each.sentence for each in some], device=batch.source.device)
        start, width = torch.tensor([each[1:] for each in some], dtype=roots.dtype, device=roots.device).T
        nodes = start[:, None] + width[:, None] * (roots + 1) / 2
        slopes = _slopes(model, batch, chosen.repeat_interleave(steps), nodes.flatten(), contrast)
        shares = width[:, None] * weights / 2
        parts = torch.einsum("ints,in->its", slopes.unflatten(0, (-1, steps)), shares.to(slopes))
        at_start, at_end = (
            _explained_at(model, batch, chosen, point[:, None], contrast) for point in (start, start + width)
        )
        error = (parts.sum(dim=-1) - (at_end - at_start)).abs().masked_fill(batch.target_output[chosen] == PAD, 0)
        close = error <= width.clamp(min=_SHARE)[:, None] * tolerated[chosen]
        final = close.all(dim=-1) | (width <= _NARROWEST)
        found.index_add_(0, chosen[final], parts[final])
        for (sentence, low, size), done in zip(some, final.tolist(), strict=True):
            if not done:
                intervals += [_Interval(sentence, low + half, size / 2) for half in (0.0, size / 2)]
    found = _without_padding(found, batch)
    missed = (found.sum(dim=-1) - (whole - nothing)).abs().masked_fill(batch.target_output == PAD, 0)
    if (missed > tolerated).any():
        logger.warning(
            "Integrated gradients miss the log-probabilities that they sum to by up to %.2f nats, because the model's "
            "output jumps, as at the edge of a local window; use method=occlusion, which has no such limit.",
            float(missed.max()),
        )
    return found


def occlusion(model: Seq2Seq, batch: Batch, rows: int, contrast: int | None = None) -> Attributions:
    """a_tj = f_t(x) - f_t(x with e_j = 0) (Zeiler & Fergus 2014, section 2.1, for pieces instead of patches)."""
    size = batch.source.shape[1]
    sentences = torch.arange(len(batch.source), device=batch.source.device)
    intact = _explained_at(model, batch, sentences, torch.ones(len(sentences), 1, device=sentences.device), contrast)
    found = torch.zeros(*intact.shape, size, dtype=intact.dtype, device=intact.device)
    for some in batch.source_mask.nonzero().split(rows):
        chosen, column = some.unbind(dim=1)
        found[chosen, :, column] = intact[chosen] - _explained_at(
            model, batch, chosen, 1 - one_hot(column, size), contrast
        )
    return _without_padding(found, batch)


@torch.no_grad()
def value_zeroing(model: Seq2Seq, batch: Batch, rows: int) -> Attributions:
    """a_tj = 1 - cos(o_t, o_t with v_j = 0), from 0 to 2, for the input o_t of the output layer.

    Value zeroing (Mohebbi et al. 2023, section 3) for cross attention: the values v_j of source position j are zeroed
    in every decoder layer, at every step. What else the decoder receives, such as its first state, stays.
    """
    size = batch.source.shape[1]

    def features(sentences: Int[Tensor, " rows"], zeroed: Int[Tensor, "rows source"]) -> Float[Tensor, "rows target _"]:
        some = _rows(batch, sentences)
        with ExitStack() as stack:
            for attention in model.sites["cross"]:
                stack.enter_context(with_parts(attention, edits=[Edit(Zeroed(zeroed.bool()))]))
            found = model.decode(some.target_input, model.encode(some.source, some.source_mask))
        return normalize(found.double(), dim=-1)

    # The intact features are computed in the same way, with no key zeroed.
    intact = features(torch.arange(len(batch.source), device=batch.source.device), torch.zeros_like(batch.source))
    found = torch.zeros(*intact.shape[:2], size, dtype=intact.dtype, device=intact.device)
    for some in batch.source_mask.nonzero().split(rows):
        chosen, column = some.unbind(dim=1)
        # Half the squared distance of unit vectors is 1 - cos, without cancellation.
        distance = (features(chosen, one_hot(column, size)) - intact[chosen]).square().sum(dim=-1) / 2
        found[chosen, :, column] = distance
    return _without_padding(found, batch)


def _slopes(
    model: Seq2Seq, batch: Batch, sentences: Int[Tensor, " rows"], alphas: Float[Tensor, " rows"], contrast: int | None
) -> Float[Tensor, "rows target source"]:
    """e_j . df_t / de_j at alpha e, for the chosen sentences of the batch."""
    some = _rows(batch, sentences)
    embedded = model.source_embedding(some.source).detach()
    # cuDNN has gradients of recurrent networks in training mode only.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        points = (embedded * alphas.to(embedded)[:, None, None]).requires_grad_()
        features = model.decode(some.target_input, model.encode_embedded(points, some.source_mask))
        slopes = []
        for step, target in zip(features.unbind(dim=1), some.target_output.unbind(dim=1), strict=True):
            explained = _explained(model, step, target, contrast).sum()  # each sentence's depends on its own row alone
            [gradient] = torch.autograd.grad(explained, points, retain_graph=True)
            slopes.append((gradient * embedded).sum(dim=-1))
    return torch.stack(slopes, dim=1)


@torch.no_grad()
def _explained_at(
    model: Seq2Seq,
    batch: Batch,
    sentences: Int[Tensor, " rows"],
    factors: Float[Tensor, "rows #source"],
    contrast: int | None,
) -> Float[Tensor, "rows target"]:
    """f_t of the chosen sentences of the batch, with their embeddings multiplied by `factors`."""
    some = _rows(batch, sentences)
    embedded = model.source_embedding(some.source)
    embedded = embedded * factors.to(embedded).unsqueeze(-1)
    features = model.decode(some.target_input, model.encode_embedded(embedded, some.source_mask))
    return _explained(model, features, some.target_output, contrast)


def _explained(
    model: Seq2Seq, features: Float[Tensor, "*rows width"], target: Int[Tensor, "*rows"], contrast: int | None
) -> Float[Tensor, "*rows"]:
    """f_t of the features that `decode` returned."""
    logits = model.output(features)
    log_probs = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=-1)
    found: Tensor = log_probs.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    return found if contrast is None else found - log_probs[..., contrast]


def _rows(batch: Batch, sentences: Int[Tensor, " rows"]) -> Batch:
    return Batch(*(part[sentences] for part in batch))


def _without_padding(found: Attributions, batch: Batch) -> Attributions:
    return torch.where((batch.target_output != PAD)[:, :, None] & batch.source_mask[:, None], found, 0)
