"""Cross entropy over the vocabulary, computed with its gradients a part of the tokens at a time."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.text import PAD

PART = {"cpu": 1024, "cuda": 8192}
"""How many tokens' logits exist at a time, in the type of the matrix products."""
BLOCK = {"cpu": 256, "cuda": 8192}
"""How many of these exist in float32 too; on the CPU as many as its cache holds, which is most of the gain."""


def summed_nll(
    features: Float[Tensor, "batch target width"],
    output: nn.Linear,
    target_output: Int[Tensor, "batch target"],
    label_smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """-sum log softmax(output(features))[target] in nats, over the target tokens without padding.

    Smoothed (Szegedy et al. 2016, section 7), a target is 1 - e of itself and e / vocab of every id, as in torch's
    cross entropy.
    """
    tokens = target_output != PAD
    given = (features[tokens], output.weight, output.bias, target_output[tokens], label_smoothing)
    # A Function cannot see for itself whether gradients are wanted.
    loss: Tensor = LinearCrossEntropy.apply(*given, torch.is_grad_enabled())
    return loss


class LinearCrossEntropy(torch.autograd.Function):
    """torch's cross_entropy(linear(features, weight, bias), targets, reduction="sum") that keeps no logits.

    The gradients are known as soon as the loss is, so the forward pass makes them, and backward only scales them.
    Under autocast the matrix products are in its type, but for float16, in which these small gradients would be lost
    before a loss scaler could enlarge them; softmax and the loss's sum are in float32 at least.
    """

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float, wanted: bool
    ) -> Tensor:
        kind = features.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else features.dtype
        dtype = torch.float32 if dtype == torch.float16 else dtype
        part, block = PART.get(kind, PART["cuda"]), BLOCK.get(kind, BLOCK["cuda"])
        # In both orders, because the CPU's matrix product would turn the wrong one around, once for every part.
        rows = weight.to(dtype)
        columns = rows.T.contiguous()
        # All parts use the memory of the first: new memory costs the CPU more time than what is computed in it.
        rounded = features.new_empty(min(part, len(targets)), len(weight), dtype=dtype)
        # Never the memory of `rounded`, whose first rows are still needed.
        exact = torch.empty_like(rounded[:block], dtype=torch.promote_types(dtype, torch.float32))
        loss = exact.new_zeros(())
        grad_features, grad_weight = torch.empty_like(features), torch.zeros_like(weight)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        for start in range(0, len(targets), part):
            x, y = features[start : start + part].to(dtype), targets[start : start + part]
            gradient = torch.mm(x, columns, out=rounded[: len(y)])
            for some, chosen in zip(gradient.split(block), y.split(block), strict=True):
                logits = exact[: len(chosen)].copy_(some)
                if bias is not None:
                    logits += bias
                loss += _replace_by_gradient(logits, chosen, smoothing)
                if not wanted:
                    continue
                if grad_bias is not None:
                    grad_bias += logits.sum(dim=0)
                some.copy_(logits)
            if wanted:
                grad_features[start : start + part] = gradient @ rows
                grad_weight += gradient.T @ x
        ctx.save_for_backward(grad_features, grad_weight, grad_bias)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return *(None if found is None else found * grads[0] for found in ctx.saved_tensors), None, None, None


def _replace_by_gradient(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The summed loss of rows of logits, which are overwritten by its gradient, softmax minus the smoothed target."""
    targets = targets.unsqueeze(-1)
    logits -= logits.amax(dim=-1, keepdim=True)
    chosen = (1 - smoothing) * logits.gather(1, targets).sum() + smoothing * logits.mean(dim=-1).sum()
    total = logits.exp_().sum(dim=-1, keepdim=True)
    logits.mul_(1 / total).sub_(smoothing / logits.shape[1])
    logits.scatter_add_(1, targets, logits.new_full((), smoothing - 1).expand_as(targets))
    return total.log().sum() - chosen
