"""Attributions: how much each source piece matters for each target piece, for comparison with attention.

Every method except value zeroing explains f_t = log p(y_t | y_<t, x) of a given target, in nats. With a contrast, it
explains f_t = log p(y_t | y_<t, x) - log p(contrast | y_<t, x) (Yin & Neubig 2022). Methods that change the input use
the zero embedding as their baseline; positions are kept. UNK would not be a suitable baseline: the tokenizer has a
piece for every byte, so training sees UNK only if word dropout, SimCut or masked pretraining hides pieces. Otherwise
the embedding of UNK keeps its random initial values.

All methods return an array (batch, target, source) that is exactly 0 at padding. One pass through the model processes
at most `rows` variants of sentences, or the unchanged sentences of the batch.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
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
BeforePass = Callable[[float], None]
"""Receives, before each pass through the model, the fraction of this batch's passes that are done, from 0 to 1.
Integrated gradients estimate it, because they find out on the way how many passes they need; it never decreases within
a batch. An exception that it raises ends the computation. When it is called, the model is as it was trained."""
Method = Callable[[Seq2Seq, Batch, int], Attributions]
"""method(model, batch, rows) expects the batch on the model's device."""

STEPS = 8
_TOLERANCE = 0.01
# An interval this narrow is not halved again: f jumps inside it, for example at the edge of a local window.
_NARROWEST = 2**-10


def _go_on(done: float) -> None:
    pass


class _Passes:
    """Counts the passes of a computation and reports the fraction that is done. `expected` may change on the way."""

    def __init__(self, before_pass: BeforePass, expected: int) -> None:
        self.before_pass, self.expected = before_pass, expected
        self.done, self._reported = 0, 0.0

    def begin(self) -> None:
        """Must be called before each pass."""
        self._reported = max(self._reported, min(self.done / self.expected, 1.0))
        self.before_pass(self._reported)
        self.done += 1


class _Question(NamedTuple):
    """The f_t that a method explains, for each sentence of a batch."""

    model: Seq2Seq
    batch: Batch
    contrast: int | None
    passes: _Passes

    @property
    def sentences(self) -> Int[Tensor, " batch"]:
        """The indices of the sentences."""
        return torch.arange(len(self.batch.source), device=self.batch.source.device)


def gradient_x_input(
    model: Seq2Seq, batch: Batch, rows: int, contrast: int | None = None, before_pass: BeforePass = _go_on
) -> Attributions:
    """a_tj = e_j . df_t / de_j for the embedding e_j of source piece j (Shrikumar et al. 2017, section 2)."""
    groups = torch.arange(len(batch.source), device=batch.source.device).split(rows)
    passes = _Passes(before_pass, len(groups) * batch.target_output.shape[1])
    question = _Question(model, batch, contrast, passes)
    slopes = [_slopes(question, group, torch.ones_like(group, dtype=torch.float32)) for group in groups]
    return _without_padding(torch.cat(slopes), batch)


class _Interval(NamedTuple):
    """The points alpha e for a sentence's embeddings e, with alpha running from `start` to `start + width`."""

    sentence: int
    start: float
    width: float


class _Integrated(NamedTuple):
    """An interval, the integral over it, and how far the sum over source pieces is from the difference of f_t."""

    interval: _Interval
    integral: Float[Tensor, "target source"]
    error: Float[Tensor, " target"]


def integrated_gradients(
    model: Seq2Seq,
    batch: Batch,
    rows: int,
    contrast: int | None = None,
    steps: int = STEPS,
    before_pass: BeforePass = _go_on,
) -> Attributions:
    """a_tj = e_j . integral of df_t / de_j at alpha e over alpha in [0, 1] (Sundararajan et al. 2017, equation 1).

    The sum over j is f_t(e) - f_t(0); for an interval of alpha, it is the difference of f_t between the ends of the
    interval. Each interval is integrated by a Gauss-Legendre rule with `steps` nodes. As long as the errors of a target
    piece sum to more than 1 % of f_t(e) - f_t(0) and to more than 0.01 nats, the intervals with the largest errors are
    halved. Logs a warning if f jumps, because no rule can integrate across a jump. One pass through the model has at
    least `steps` rows.
    """
    passes = _Passes(before_pass, 1)
    question = _Question(model, batch, contrast, passes)
    sentences = question.sentences
    at_once = max(1, rows // steps)

    def needed(intervals: int) -> int:
        """The passes for so many intervals: a gradient for each target piece, and f_t at both ends."""
        return -(-intervals // at_once) * (batch.target_output.shape[1] + 2)

    passes.expected = 2 + 2 * needed(len(sentences))
    nothing, whole = (_f_at(question, sentences, _constant(sentences, a)) for a in (0.0, 1.0))
    tolerated = _TOLERANCE * (whole - nothing).abs().clamp(min=1)
    done: list[list[_Integrated]] = [[] for _ in sentences]
    waiting = [_Interval(sentence, 0.0, 1.0) for sentence in range(len(batch.source))]
    while waiting:
        # Some intervals will be halved; on average, about as many passes follow as those that are known to be needed.
        passes.expected = passes.done + 2 * needed(len(waiting))
        for first in range(0, len(waiting), at_once):
            for part in _integrals(question, waiting[first : first + at_once], steps):
                done[part.interval.sentence].append(part)
        waiting = []
        for sentence, parts in enumerate(done):
            errors = torch.stack([part.error for part in parts])
            excessive = errors.sum(dim=0) > tolerated[sentence]
            worst = (excessive & (errors >= errors.amax(dim=0) / 2)).any(dim=1).tolist()
            halved = [part.interval for part, bad in zip(parts, worst, strict=True) if bad]
            halved = [interval for interval in halved if interval.width > _NARROWEST]
            done[sentence] = [part for part in parts if part.interval not in halved]
            for _, start, width in halved:
                waiting += [_Interval(sentence, low, width / 2) for low in (start, start + width / 2)]
    integrals = torch.stack([torch.stack([part.integral for part in parts]).sum(dim=0) for parts in done])
    attributions = _without_padding(integrals, batch)
    missed = (attributions.sum(dim=-1) - (whole - nothing)).abs().masked_fill(batch.target_output == PAD, 0)
    if (missed > tolerated).any():
        logger.warning(
            "Integrated gradients should sum to differences of log-probabilities but miss them by up to %.2f nats, "
            "because the model's output jumps, for example at the edge of a local window; use method=occlusion, which "
            "is not affected.",
            float(missed.max()),
        )
    return attributions


def _integrals(question: _Question, intervals: Sequence[_Interval], steps: int) -> Iterator[_Integrated]:
    """Applies the Gauss-Legendre rule to each interval."""
    batch = question.batch
    device = batch.source.device
    roots, weights = (torch.from_numpy(array).to(device) / 2 for array in np.polynomial.legendre.leggauss(steps))
    sentences = torch.tensor([interval.sentence for interval in intervals], device=device)
    start, width = torch.tensor([interval[1:] for interval in intervals], dtype=roots.dtype, device=device).T
    nodes = start[:, None] + width[:, None] * (roots + 0.5)
    slopes = _slopes(question, sentences.repeat_interleave(steps), nodes.flatten())
    shares = (width[:, None] * weights).to(slopes)
    integrals = torch.einsum("ints,in->its", slopes.unflatten(0, (-1, steps)), shares)
    low, high = (_f_at(question, sentences, end[:, None]) for end in (start, start + width))
    errors = (integrals.sum(dim=-1) - (high - low)).abs().masked_fill(batch.target_output[sentences] == PAD, 0)
    yield from map(_Integrated, intervals, integrals, errors)


def occlusion(
    model: Seq2Seq, batch: Batch, rows: int, contrast: int | None = None, before_pass: BeforePass = _go_on
) -> Attributions:
    """a_tj = f_t(x) - f_t(x with e_j = 0) (Zeiler & Fergus 2014, section 4.2, for pieces instead of patches)."""
    size = batch.source.shape[1]
    groups = batch.source_mask.nonzero().split(rows)
    question = _Question(model, batch, contrast, _Passes(before_pass, 1 + len(groups)))
    intact = _f_at(question, question.sentences, _constant(question.sentences, 1.0))
    differences = torch.zeros(*intact.shape, size, dtype=intact.dtype, device=intact.device)
    for group in groups:
        chosen, column = group.unbind(dim=1)
        differences[chosen, :, column] = intact[chosen] - _f_at(question, chosen, 1.0 - one_hot(column, size))
    return _without_padding(differences, batch)


@torch.no_grad()
def value_zeroing(model: Seq2Seq, batch: Batch, rows: int, before_pass: BeforePass = _go_on) -> Attributions:
    """a_tj = 1 - cos(o_t, o_t with v_j = 0), from 0 to 2, where o_t is the input to the output layer.

    Value zeroing (Mohebbi et al. 2023, section 3) for cross attention: the values v_j of source position j are zeroed
    in every decoder layer, at every step. Everything else that the decoder receives, such as its initial state, stays
    the same.
    """
    size = batch.source.shape[1]
    groups = batch.source_mask.nonzero().split(rows)
    passes = _Passes(before_pass, 1 + len(groups))

    def features(sentences: Int[Tensor, " rows"], zeroed: Int[Tensor, "rows source"]) -> Float[Tensor, "rows target _"]:
        passes.begin()
        variants = _rows(batch, sentences)
        with ExitStack() as stack:
            for attention in model.sites["cross"]:
                stack.enter_context(with_parts(attention, edits=[Edit(Zeroed(zeroed.bool()))]))
            decoded = model.decode(variants.target_input, model.encode(variants.source, variants.source_mask))
        return normalize(decoded.double(), dim=-1)

    # The intact features are computed in the same way, with no key zeroed.
    intact = features(torch.arange(len(batch.source), device=batch.source.device), torch.zeros_like(batch.source))
    distances = torch.zeros(*intact.shape[:2], size, dtype=intact.dtype, device=intact.device)
    for group in groups:
        chosen, column = group.unbind(dim=1)
        # Half the squared distance between unit vectors is 1 - cos, computed without cancellation.
        half_squares = (features(chosen, one_hot(column, size)) - intact[chosen]).square().sum(dim=-1) / 2
        distances[chosen, :, column] = half_squares
    return _without_padding(distances, batch)


def _slopes(
    question: _Question, sentences: Int[Tensor, " rows"], alphas: Float[Tensor, " rows"]
) -> Float[Tensor, "rows target source"]:
    """e_j . df_t / de_j at alpha e, for the chosen sentences of the batch."""
    model, batch, contrast, passes = question
    variants = _rows(batch, sentences)
    embedded = model.source_embedding(variants.source).detach()
    # cuDNN computes gradients of recurrent networks only in training mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        points = (embedded * alphas.to(embedded)[:, None, None]).requires_grad_()
        features = model.decode(variants.target_input, model.encode_embedded(points, variants.source_mask))
        slopes = []
        for step, target in zip(features.unbind(dim=1), variants.target_output.unbind(dim=1), strict=True):
            passes.begin()
            total = _f(model, step, target, contrast).sum()  # each sentence's f_t depends on its own row alone
            [gradient] = torch.autograd.grad(total, points, retain_graph=True)
            slopes.append((gradient * embedded).sum(dim=-1))
    return torch.stack(slopes, dim=1)


@torch.no_grad()
def _f_at(
    question: _Question, sentences: Int[Tensor, " rows"], factors: Float[Tensor, "rows #source"]
) -> Float[Tensor, "rows target"]:
    """f_t of the chosen sentences of the batch, with their embeddings multiplied by `factors`."""
    model, batch, contrast, passes = question
    passes.begin()
    variants = _rows(batch, sentences)
    embedded = model.source_embedding(variants.source)
    embedded = embedded * factors.to(embedded).unsqueeze(-1)
    features = model.decode(variants.target_input, model.encode_embedded(embedded, variants.source_mask))
    return _f(model, features, variants.target_output, contrast)


def _f(
    model: Seq2Seq, features: Float[Tensor, "*rows width"], target: Int[Tensor, "*rows"], contrast: int | None
) -> Float[Tensor, "*rows"]:
    """f_t, computed from the features that `decode` returned."""
    logits = model.output(features)
    log_probs = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=-1)
    chosen: Tensor = log_probs.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    return chosen if contrast is None else chosen - log_probs[..., contrast]


def _constant(sentences: Int[Tensor, " rows"], factor: float) -> Float[Tensor, "rows 1"]:
    """The same factor for every embedding of these sentences."""
    return torch.full((len(sentences), 1), factor, device=sentences.device)


def _rows(batch: Batch, sentences: Int[Tensor, " rows"]) -> Batch:
    """The chosen sentences of a batch, without earlier sentences as context."""
    return Batch(
        batch.source[sentences],
        batch.source_mask[sentences],
        batch.target_input[sentences],
        batch.target_output[sentences],
        batch.indices[sentences],
    )


def _without_padding(attributions: Attributions, batch: Batch) -> Attributions:
    return torch.where((batch.target_output != PAD)[:, :, None] & batch.source_mask[:, None], attributions, 0)
