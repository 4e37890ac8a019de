"""Losses over the vocabulary, computed with their gradients a part of the tokens at a time."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.text import PAD

PART = {"cpu": 2048, "cuda": 8192}
"""How many tokens' logits exist at a time, in the type of the matrix products: each part's gradient of the weights has
to be added up, and many logits leave the CPU's cache."""
BLOCK = {"cpu": 256, "cuda": 8192}
"""How many of these exist in float32 too, those of all passes together; on the CPU few enough for its cache, which is
most of the gain."""

Features = Float[Tensor, "batch target width"]
Targets = Int[Tensor, "batch target"]
Logits = Float[Tensor, "tokens vocab"]
Chosen = Int[Tensor, " tokens"]
Rule = Callable[[Sequence[Logits], Chosen], Tensor]
"""rule(logits, targets) is the summed loss of the logits of one or two passes, which it overwrites by its gradients."""


def summed_nll(
    features: Features, output: nn.Linear, target_output: Targets, label_smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """-sum log softmax(output(features))[target] in nats, over the target tokens without padding.

    Smoothed (Szegedy et al. 2016, section 7), a target is 1 - e of itself and e / vocab of every id, as in torch's
    cross entropy.
    """
    return _summed([features], output, target_output, partial(_cross_entropy, smoothing=label_smoothing))


def summed_agreement(
    passes: tuple[Features, Features],
    output: nn.Linear,
    target_output: Targets,
    label_smoothing: float = 0.0,
    *,
    nll: tuple[float, float],
    divergence: tuple[float, float],
) -> Float[Tensor, ""]:
    """nll[0] nll(p) + nll[1] nll(q) + divergence[0] KL(p, q) + divergence[1] KL(q, p) of two passes' predictions p, q.

    `nll` and `divergence` are weights. Summed over tokens as `summed_nll`, in nats; nll is smoothed and KL is not, and
    both passes get gradients.
    """
    rule = partial(_agreement, smoothing=label_smoothing, nll=nll, divergence=divergence)
    return _summed(passes, output, target_output, rule)


def _summed(passes: Sequence[Features], output: nn.Linear, target_output: Targets, rule: Rule) -> Float[Tensor, ""]:
    tokens = target_output != PAD
    chosen = [features[tokens] for features in passes]
    kind = output.weight.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else chosen[0].dtype
    # In float16 these small gradients would be lost before a loss scaler could enlarge them.
    dtype = torch.float32 if dtype == torch.float16 else dtype
    # A Function cannot see for itself whether gradients are wanted.
    wanted = torch.is_grad_enabled()
    with torch.autocast(kind, enabled=False):
        loss: Tensor = LinearLoss.apply(rule, dtype, wanted, target_output[tokens], output.weight, output.bias, *chosen)
    return loss


class LinearLoss(torch.autograd.Function):
    """A rule's loss of linear(features, weight, bias) that keeps no logits; features of one or two passes.

    The gradients are known as soon as the loss is, so the forward pass makes them, and backward only scales them. The
    matrix products are in `dtype`; softmax and the loss's sum are in float32 at least.
    """

    @staticmethod
    def forward(
        ctx: Any,
        rule: Rule,
        dtype: torch.dtype,
        wanted: bool,
        targets: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        *passes: Tensor,
    ) -> Tensor:
        kind = weight.device.type
        part, block = PART.get(kind, PART["cuda"]), max(1, BLOCK.get(kind, BLOCK["cuda"]) // len(passes))
        # In both orders, because the CPU's matrix product would turn the wrong one around, once for every part.
        rows = weight.to(dtype)
        columns = rows.T.contiguous()
        # All parts use the memory of the first: new memory costs the CPU more time than what is computed in it.
        rounded = [weight.new_empty(min(part, len(targets)), len(weight), dtype=dtype) for _ in passes]
        # Never the memory of `rounded`, whose first rows are still needed.
        exact = [torch.empty_like(some[:block], dtype=torch.promote_types(dtype, torch.float32)) for some in rounded]
        loss = exact[0].new_zeros(())
        grad_weight, grad_bias = torch.zeros_like(weight), None if bias is None else torch.zeros_like(bias)
        # In the type of the products at least: small gradients in float16 would be 0 before they are scaled.
        grad_passes = [torch.empty_like(x, dtype=torch.promote_types(x.dtype, dtype)) for x in passes]
        for start in range(0, len(targets), part):
            y = targets[start : start + part]
            inputs = [features[start : start + part].to(dtype) for features in passes]
            logits = [torch.mm(x, columns, out=some[: len(y)]) for x, some in zip(inputs, rounded, strict=True)]
            for first in range(0, len(y), block):
                some = [of_pass[first : first + block] for of_pass in logits]
                found = _exact(some, exact, bias)
                loss += rule(found, y[first : first + block])
                if wanted:
                    _keep(found, some, grad_bias)
            # By now the logits are their gradients.
            if wanted:
                for x, gradient, grad_features in zip(inputs, logits, grad_passes, strict=True):
                    grad_features[start : start + part] = gradient @ rows
                    grad_weight += gradient.T @ x
        ctx.save_for_backward(grad_weight, grad_bias, *grad_passes)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        # autograd gives each the type of what it is the gradient of.
        scaled = (None if found is None else found * grads[0] for found in ctx.saved_tensors)
        return None, None, None, None, *scaled


def _exact(logits: Sequence[Logits], memory: Sequence[Tensor], bias: Tensor | None) -> list[Logits]:
    """The logits with their bias, in the memory and the type of `memory`."""
    found = [some[: len(rows)].copy_(rows) for some, rows in zip(memory, logits, strict=True)]
    if bias is not None:
        for rows in found:
            rows += bias
    return found


def _keep(gradients: Sequence[Logits], logits: Sequence[Logits], grad_bias: Tensor | None) -> None:
    """Overwrites logits by their gradients, and adds these to that of the bias."""
    for rows, gradient in zip(logits, gradients, strict=True):
        rows.copy_(gradient)
        if grad_bias is not None:
            grad_bias += gradient.sum(dim=0)


def _cross_entropy(logits: Sequence[Logits], targets: Chosen, smoothing: float) -> Tensor:
    """-sum log p(target), smoothed. The gradient is softmax minus the smoothed target."""
    [rows] = logits
    rows -= rows.amax(dim=-1, keepdim=True)
    likely = _smoothed(rows, targets, smoothing)
    # In one pass over each row, which stays in the cache.
    torch.softmax(rows, dim=-1, out=rows)
    # The highest logit, which is 0 now, has the probability 1 / sum exp(logit).
    log_totals = -rows.amax(dim=-1).log()
    _subtract_target(rows, targets, smoothing, 1.0)
    return log_totals.sum() - likely


def _agreement(
    logits: Sequence[Logits],
    targets: Chosen,
    smoothing: float,
    nll: tuple[float, float],
    divergence: tuple[float, float],
) -> Tensor:
    """The weighted sum of both passes' nll and of KL both ways.

    By the logits of p, nll(p) has the gradient p minus the smoothed target, KL(p, q) = sum p log (p / q) has
    p (log (p / q) - KL(p, q)), and KL(q, p) has p - q.
    """
    loss = logits[0].new_zeros(())
    probabilities = []
    for rows, share in zip(logits, nll, strict=True):
        rows -= rows.amax(dim=-1, keepdim=True)
        own = rows.exp()
        total = own.sum(dim=-1, keepdim=True)
        rows -= total.log()
        loss -= share * _smoothed(rows, targets, smoothing)
        probabilities.append(own.mul_(1 / total))
    ratio = logits[0] - logits[1]
    # From here on the logits' own memory is free.
    sides = zip(logits, probabilities, probabilities[::-1], nll, divergence, divergence[::-1], strict=True)
    for rows, own, other, share, to_other, from_other in sides:
        kl = torch.mul(own, ratio, out=rows).sum(dim=-1, keepdim=True)
        loss += to_other * kl.sum()
        torch.sub(ratio, kl, out=rows)
        rows.mul_(to_other).add_(share + from_other).mul_(own).sub_(other, alpha=from_other)
        _subtract_target(rows, targets, smoothing, share)
        ratio.neg_()
    return loss


def _smoothed(rows: Logits, targets: Chosen, smoothing: float) -> Tensor:
    """The sum of the rows' products with the smoothed targets."""
    return (1 - smoothing) * rows.gather(1, targets.unsqueeze(-1)).sum() + smoothing * rows.mean(dim=-1).sum()


def _subtract_target(rows: Logits, targets: Chosen, smoothing: float, share: float) -> None:
    """Subtracts a share of the smoothed targets."""
    rows.sub_(share * smoothing / rows.shape[1])
    targets = targets.unsqueeze(-1)
    rows.scatter_add_(1, targets, rows.new_full((), share * (smoothing - 1)).expand_as(targets))
