"""Losses over the vocabulary, computed together with their gradients for part of the tokens at a time."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

PART = {"cpu": 2048, "cuda": 8192}
"""Largest number of tokens whose logits are in memory at a time, in the dtype of the matrix products.

With smaller parts, gradients of the weights are added up more often; larger parts exceed the CPU's cache.
"""
BLOCK = {"cpu": 256, "cuda": 8192}
"""Largest number of these tokens, summed over the passes, whose logits are also in memory in float32.

On the CPU such a block fits into the cache, which accounts for most of the gain in speed.
"""

Features = Float[Tensor, "batch target width"]
Targets = Int[Tensor, "batch target"]
Logits = Float[Tensor, "tokens vocab"]
Chosen = Int[Tensor, " tokens"]
Kept = Bool[Tensor, " tokens"]
Rule = Callable[[Sequence[Logits], Chosen], Float[Tensor, " tokens"]]
"""rule(logits, targets) returns the loss of each token, and overwrites the logits of one or two passes with the
gradients.
"""


def summed_nll(
    features: Features, output: nn.Linear, target_output: Targets, label_smoothing: float = 0.0, ignore_index: int = 0
) -> Float[Tensor, ""]:
    """-sum log softmax(output(features))[target] in nats, over the targets that are not `ignore_index` (PAD).

    With `label_smoothing` e, the target has probability 1 - e, and every id gets e / vocab in addition (Szegedy et al.
    2016, section 7), as in torch's cross entropy.
    """
    rule = partial(_cross_entropy, smoothing=label_smoothing)
    return _summed([features], output, target_output, rule, ignore_index)


def summed_agreement(
    passes: tuple[Features, Features],
    output: nn.Linear,
    target_output: Targets,
    label_smoothing: float = 0.0,
    ignore_index: int = 0,
    *,
    nll: tuple[float, float],
    divergence: tuple[float, float],
) -> Float[Tensor, ""]:
    """nll[0] nll(p) + nll[1] nll(q) + divergence[0] KL(p, q) + divergence[1] KL(q, p) of two passes' predictions p, q.

    `nll` and `divergence` are weights. The sum is over the same tokens as in `summed_nll`, in nats. Label smoothing
    applies only to nll. Both passes get gradients.
    """
    rule = partial(_agreement, smoothing=label_smoothing, nll=nll, divergence=divergence)
    return _summed(passes, output, target_output, rule, ignore_index)


def selects_tokens(device: torch.device) -> bool:
    """Whether tokens without a loss are left out of the computation.

    Not on a GPU: Python would have to wait for their number, and a CUDA graph needs a fixed one.
    """
    return device.type != "cuda"


def _summed(
    passes: Sequence[Features], output: nn.Linear, target_output: Targets, rule: Rule, ignore_index: int
) -> Float[Tensor, ""]:
    tokens = target_output != ignore_index
    kept: Tensor | None = None
    if selects_tokens(target_output.device):
        chosen, targets = [features[tokens] for features in passes], target_output[tokens]
    else:
        chosen, targets = [features.flatten(0, -2) for features in passes], target_output.flatten()
        kept = tokens.flatten()
    kind = output.weight.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else chosen[0].dtype
    # Small gradients would underflow in float16 before a loss scaler multiplies them.
    dtype = torch.float32 if dtype == torch.float16 else dtype
    # Gradients are always disabled inside a Function, so LinearLoss cannot check this itself.
    wanted = torch.is_grad_enabled()
    with torch.autocast(kind, enabled=False):
        loss: Tensor = LinearLoss.apply(rule, dtype, wanted, targets, kept, output.weight, output.bias, *chosen)
    return loss


class LinearLoss(torch.autograd.Function):
    """The sum of rule(linear(features, weight, bias), targets) over the features of one or two passes.

    Logits are not kept. Tokens that are not `kept` have no loss and no gradient; None keeps all tokens.

    The forward pass computes the gradients too, and backward only scales them. Matrix products are computed in `dtype`,
    and the softmax and the sum of the loss in at least float32.
    """

    @staticmethod
    def forward(
        ctx: Any,
        rule: Rule,
        dtype: torch.dtype,
        wanted: bool,
        targets: Tensor,
        kept: Tensor | None,
        weight: Tensor,
        bias: Tensor | None,
        *passes: Tensor,
    ) -> Tensor:
        kind = weight.device.type
        part, block = PART.get(kind, PART["cuda"]), max(1, BLOCK.get(kind, BLOCK["cuda"]) // len(passes))
        # Both memory layouts are kept, because the CPU would otherwise transpose the weights again for every part.
        rows = weight.to(dtype)
        columns = rows.T.contiguous()
        # All parts share one buffer: on the CPU, allocating memory takes longer than the computation.
        rounded = [weight.new_empty(min(part, len(targets)), len(weight), dtype=dtype) for _ in passes]
        # This is a separate buffer, because `rounded` still holds logits that are needed later.
        exact_dtype = torch.promote_types(dtype, torch.float32)
        exact = [torch.empty_like(buffer[:block], dtype=exact_dtype) for buffer in rounded]
        loss = exact[0].new_zeros(())
        grad_weight, grad_bias = torch.zeros_like(weight), None if bias is None else torch.zeros_like(bias)
        # These are at least as precise as `dtype`: small gradients would underflow in float16 before they are scaled.
        grad_passes = [torch.empty_like(x, dtype=torch.promote_types(x.dtype, dtype)) for x in passes]
        for start in range(0, len(targets), part):
            y = targets[start : start + part]
            inputs = [features[start : start + part].to(dtype) for features in passes]
            logits = [torch.mm(x, columns, out=buffer[: len(y)]) for x, buffer in zip(inputs, rounded, strict=True)]
            for first in range(0, len(y), block):
                block_logits = [of_pass[first : first + block] for of_pass in logits]
                exact_logits = _exact(block_logits, exact, bias)
                losses = rule(exact_logits, y[first : first + block])  # leaves the gradients in exact_logits
                # Not a product with 0: the loss of padding could be infinite.
                left_out = None if kept is None else ~kept[start + first : start + first + len(losses)]
                loss += (losses if left_out is None else losses.masked_fill(left_out, 0)).sum()
                if wanted:
                    _store_gradients(exact_logits, block_logits, left_out, grad_bias)
            # `logits` holds the gradients now.
            if wanted:
                for x, gradient, grad_features in zip(inputs, logits, grad_passes, strict=True):
                    grad_features[start : start + part] = gradient @ rows
                    grad_weight += gradient.T @ x
        ctx.save_for_backward(grad_weight, grad_bias, *grad_passes)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        # autograd casts each gradient to the dtype of its input.
        scaled = (None if saved is None else saved * grads[0] for saved in ctx.saved_tensors)
        return None, None, None, None, None, *scaled


def _exact(logits: Sequence[Logits], memory: Sequence[Tensor], bias: Tensor | None) -> list[Logits]:
    """logits + bias, written to `memory` in its dtype."""
    exact = [buffer[: len(rows)].copy_(rows) for buffer, rows in zip(memory, logits, strict=True)]
    if bias is not None:
        for rows in exact:
            rows += bias
    return exact


def _store_gradients(
    gradients: Sequence[Logits], logits: Sequence[Logits], left_out: Kept | None, grad_bias: Tensor | None
) -> None:
    """Overwrites logits with their gradients, and adds the gradients to that of the bias; tokens left out get 0."""
    for rows, gradient in zip(logits, gradients, strict=True):
        if left_out is not None:
            gradient.masked_fill_(left_out.unsqueeze(-1), 0)
        rows.copy_(gradient)
        if grad_bias is not None:
            grad_bias += gradient.sum(dim=0)


def _cross_entropy(logits: Sequence[Logits], targets: Chosen, smoothing: float) -> Float[Tensor, " tokens"]:
    """-log p(target) with smoothed targets; the gradient is softmax - smoothed target."""
    [rows] = logits
    rows -= rows.amax(dim=-1, keepdim=True)
    likely = _smoothed(rows, targets, smoothing)
    # torch computes the softmax row by row, and a row stays in the cache.
    torch.softmax(rows, dim=-1, out=rows)
    # The largest logit was 0, so the largest probability is 1 / sum exp(logit).
    log_totals = -rows.amax(dim=-1).log()
    _subtract_target(rows, targets, smoothing, 1.0)
    return log_totals - likely


def _agreement(
    logits: Sequence[Logits],
    targets: Chosen,
    smoothing: float,
    nll: tuple[float, float],
    divergence: tuple[float, float],
) -> Float[Tensor, " tokens"]:
    """The weighted sum of both passes' nll and of both KL divergences, for each token.

    The gradients with respect to the logits of p are p - smoothed target for nll(p), p (log (p / q) - KL(p, q)) for
    KL(p, q) = sum p log (p / q), and p - q for KL(q, p).
    """
    losses = logits[0].new_zeros(len(targets))
    probabilities = []
    for rows, share in zip(logits, nll, strict=True):
        rows -= rows.amax(dim=-1, keepdim=True)
        exponentials = rows.exp()
        total = exponentials.sum(dim=-1, keepdim=True)
        rows -= total.log()
        losses -= share * _smoothed(rows, targets, smoothing)
        probabilities.append(exponentials.mul_(1 / total))
    ratio = logits[0] - logits[1]
    # The logits are no longer needed, so their memory is reused from here on.
    sides = zip(logits, probabilities, probabilities[::-1], nll, divergence, divergence[::-1], strict=True)
    for rows, p, q, share, to_other, from_other in sides:
        kl = torch.mul(p, ratio, out=rows).sum(dim=-1, keepdim=True)
        losses += to_other * kl.squeeze(-1)
        torch.sub(ratio, kl, out=rows)
        rows.mul_(to_other).add_(share + from_other).mul_(p).sub_(q, alpha=from_other)
        _subtract_target(rows, targets, smoothing, share)
        ratio.neg_()
    return losses


def _smoothed(rows: Logits, targets: Chosen, smoothing: float) -> Float[Tensor, " tokens"]:
    """row . smoothed target, for each row."""
    return (1 - smoothing) * rows.gather(1, targets.unsqueeze(-1)).squeeze(-1) + smoothing * rows.mean(dim=-1)


def _subtract_target(rows: Logits, targets: Chosen, smoothing: float, share: float) -> None:
    """rows -= share * smoothed targets."""
    rows.sub_(share * smoothing / rows.shape[1])
    targets = targets.unsqueeze(-1)
    rows.scatter_add_(1, targets, rows.new_full((), share * (smoothing - 1)).expand_as(targets))
