"""Windows: which of the unmasked keys a query may see, and a prior over them (Luong et al. 2015, section 3.2)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Real
from torch import Tensor, nn

from nmt.attention.masks import window_mask

Mask = Bool[Tensor, "..."]


class Asking(NamedTuple):
    """What a window may know of the queries: their states before the split into heads, and their target positions."""

    states: Float[Tensor, "batch queries state_dim"]
    positions: Int[Tensor, "#batch queries"]


class View(NamedTuple):
    """The keys that remain, p_t where they lie around one, and the prior g over them.

    The prior multiplies the weights after the normaliser, or, `renormalised`, enters it as log g beside the scores.
    """

    mask: Mask
    center: Real[Tensor, "batch #heads queries 1"] | None = None
    log_prior: Float[Tensor, "batch heads queries keys"] | None = None
    renormalised: bool = False

    @staticmethod
    def join(views: "Sequence[View]") -> "View":
        """The views of successive queries as one."""
        masks, centers, log_priors, renormalised = zip(*views, strict=True)
        center, log_prior = (None if part[0] is None else torch.cat(part, dim=-2) for part in (centers, log_priors))
        return View(torch.cat(masks, dim=-2), center, log_prior, renormalised[0])


class Window(nn.Module, ABC):
    """`masks_only` says that there is no prior, so that a fused kernel can be used."""

    masks_only = True

    @abstractmethod
    def forward(self, mask: Mask, asking: Asking | None) -> View:
        """The view of each query on the keys that `mask` allows; raises ValueError where it needs to know who asks."""


class Global(Window):
    """Every position that the mask allows may be seen (global attention: Luong et al. 2015, section 3.1)."""

    def __init__(self, state_dim: int, num_heads: int) -> None:
        super().__init__()

    def forward(self, mask: Mask, asking: Asking | None) -> View:
        return View(mask)


class LocalM(Window):
    """|s - p_t| <= D around p_t = t: local-m (Luong et al. 2015, section 3.2). Past the source's end p_t stays at its
    last position; the paper's p_t = t would narrow the window there (footnote 8) and leave it empty from t = S + D on.
    """

    def __init__(self, state_dim: int, num_heads: int, half_width: int) -> None:
        super().__init__()
        _at_least(half_width, 0)
        self.half_width = half_width

    def extra_repr(self) -> str:
        return f"D = half_width = {self.half_width}"

    def forward(self, mask: Mask, asking: Asking | None) -> View:
        lengths = mask.sum(dim=-1, keepdim=True)
        center = torch.minimum(_known(asking).positions[:, None, :, None], (lengths - 1).clamp(min=0))
        return View(mask & window_mask(center, self.half_width, mask.shape[-1]), center)


class LocalP(Window):
    """|s - p_t| <= D around p_t = S sigmoid(v_p . tanh(W_p h_t)), S the sentence's own length, with the prior
    g(s) = exp(-(s - p_t)^2 / (2 sigma^2)), sigma = D / 2: local-p (Luong et al. 2015, equations 9 and 10). The prior
    multiplies the weights after the normaliser, so a row sums to at most 1; with `renormalise` its logarithm is added
    to the scores, and a row sums to 1. h_t is the state that asks, before it is split into heads; these share W_p, and
    each has a v_p and so a p_t of its own.

    W_p and v_p learn through the prior only.
    """

    masks_only = False

    def __init__(self, state_dim: int, num_heads: int, half_width: int, renormalise: bool) -> None:
        super().__init__()
        _at_least(half_width, 1)
        self.half_width, self.renormalise = half_width, renormalise
        self.hidden = nn.Linear(state_dim, state_dim, bias=False)
        self.place = nn.Linear(state_dim, num_heads, bias=False)

    def extra_repr(self) -> str:
        return f"D = half_width = {self.half_width}, renormalise = {str(self.renormalise).lower()}"

    def center(self, mask: Mask, asking: Asking) -> Float[Tensor, "batch heads queries 1"]:
        """p_t, a real number between 0 and the sentence's length."""
        place = self.place(torch.tanh(self.hidden(asking.states)))
        # bfloat16 could not tell the later positions of a long sentence apart.
        share = torch.sigmoid(place.to(torch.promote_types(place.dtype, torch.float32)))
        return mask.sum(dim=-1, keepdim=True) * share.transpose(1, 2).unsqueeze(-1)

    def forward(self, mask: Mask, asking: Asking | None) -> View:
        center, size = self.center(mask, _known(asking)), mask.shape[-1]
        distance = torch.arange(size, device=mask.device) - center
        log_prior = -distance.square() / (2 * (self.half_width / 2) ** 2)
        return View(mask & window_mask(center, self.half_width, size), center, log_prior, self.renormalise)


def _known(asking: Asking | None) -> Asking:
    if asking is None:
        raise ValueError(
            "A local window needs the queries' states and positions, which only cross attention has: "
            "give this site windows.Global."
        )
    return asking


def _at_least(half_width: int, least: int) -> None:
    if half_width < least:
        raise ValueError(
            f"window.half_width is {half_width}; it must be at least {least}: give a larger one, such as 10."
        )
