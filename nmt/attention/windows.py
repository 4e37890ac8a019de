"""Windows limit which unmasked keys a query may attend to, and may add a prior (Luong et al. 2015, section 3.2)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Real
from torch import Tensor, nn

from nmt.attention.masks import window_mask
from nmt.attention.sizes import LARGEST_WIDTH
from nmt.errors import Mistake

Mask = Bool[Tensor, "..."]


class QueryStates(NamedTuple):
    """The queries as a window sees them: their states before the split into heads, and the positions in their own
    sentence, from 0.
    """

    states: Float[Tensor, "batch queries state_dim"]
    positions: Int[Tensor, "#batch queries"]


class VisibleKeys(NamedTuple):
    """The result of a window: the mask of the remaining keys, p_t if it is local, and log g if it has a prior g.

    p_t is the center of the window. g multiplies the weights after the normalizer. If `renormalized`, log g is added to
    the scores before the normalizer instead.
    """

    mask: Mask
    center: Real[Tensor, "batch #heads queries 1"] | None = None
    log_prior: Float[Tensor, "batch heads queries keys"] | None = None
    renormalized: bool = False

    def widened(self, size: int) -> "VisibleKeys":
        """The same keys extended to `size` keys; the additional keys are blocked."""
        missing = size - self.mask.shape[-1]
        log_prior = None if self.log_prior is None else F.pad(self.log_prior, (0, missing))
        return self._replace(mask=F.pad(self.mask, (0, missing)), log_prior=log_prior)

    @staticmethod
    def join(views: "Sequence[VisibleKeys]") -> "VisibleKeys":
        """Concatenates the visible keys of successive queries."""
        masks, centers, log_priors, renormalized = zip(*views, strict=True)
        center, log_prior = (None if part[0] is None else torch.cat(part, dim=-2) for part in (centers, log_priors))
        return VisibleKeys(torch.cat(masks, dim=-2), center, log_prior, renormalized[0])


class Window(nn.Module, ABC):
    """Restricts each query to some of the keys. If there is no prior (`masks_only`), a fused kernel can be used."""

    masks_only = True

    @abstractmethod
    def forward(self, mask: Mask, query_states: QueryStates | None) -> VisibleKeys:
        """Applies the window to the keys that `mask` allows. Raises Mistake if it needs missing `query_states`."""


class Global(Window):
    """All unmasked positions: global attention (Luong et al. 2015, section 3.1)."""

    def __init__(self, state_dim: int, num_heads: int) -> None:
        super().__init__()

    def forward(self, mask: Mask, query_states: QueryStates | None) -> VisibleKeys:
        return VisibleKeys(mask)


class LocalM(Window):
    """|s - p_t| <= D with p_t = min(t, S - 1) for a source of length S: local-m (Luong et al. 2015, section 3.2).

    With the paper's p_t = t, the window would become narrower past the end of the source (footnote 8) and empty for
    t > S - 1 + D.
    """

    def __init__(self, state_dim: int, num_heads: int, half_width: int) -> None:
        super().__init__()
        _at_least(half_width, 0)
        self.half_width = half_width

    def extra_repr(self) -> str:
        return f"D = half_width = {self.half_width}"

    def forward(self, mask: Mask, query_states: QueryStates | None) -> VisibleKeys:
        lengths = mask.sum(dim=-1, keepdim=True)
        center = torch.minimum(_known(query_states).positions[:, None, :, None], (lengths - 1).clamp(min=0))
        return VisibleKeys(mask & window_mask(center, self.half_width, mask.shape[-1]), center)


class LocalP(Window):
    """|s - p_t| <= D with p_t = S sigmoid(v_p . tanh(W_p h_t)) for a source of length S, and with the prior
    g(s) = exp(-(s - p_t)^2 / (2 sigma^2)), sigma = D / 2: local-p (Luong et al. 2015, equations 9 and 10). The prior
    multiplies the weights after the normalizer, so the weights of a query sum to at most 1. With `renormalize`, log g
    is added to the scores instead, and the weights sum to 1. h_t is the query before the split into heads. The heads
    share W_p, but each has its own v_p and therefore its own p_t.

    W_p and v_p get gradients only through the prior.
    """

    masks_only = False

    def __init__(self, state_dim: int, num_heads: int, half_width: int, renormalize: bool) -> None:
        super().__init__()
        _at_least(half_width, 1)
        self.half_width, self.renormalize = half_width, renormalize
        self.hidden = nn.Linear(state_dim, state_dim, bias=False)
        self.place = nn.Linear(state_dim, num_heads, bias=False)

    def extra_repr(self) -> str:
        return f"D = half_width = {self.half_width}, renormalize = {str(self.renormalize).lower()}"

    def center(self, mask: Mask, query_states: QueryStates) -> Float[Tensor, "batch heads queries 1"]:
        """p_t, a real number between 0 and the length of the source."""
        logit = self.place(torch.tanh(self.hidden(query_states.states)))
        # bfloat16 is not precise enough for the later positions of a long sentence.
        share = torch.sigmoid(logit.to(torch.promote_types(logit.dtype, torch.float32)))
        return mask.sum(dim=-1, keepdim=True) * share.transpose(1, 2).unsqueeze(-1)

    def forward(self, mask: Mask, query_states: QueryStates | None) -> VisibleKeys:
        center, size = self.center(mask, _known(query_states)), mask.shape[-1]
        distance = torch.arange(size, device=mask.device) - center
        log_prior = -distance.square() / (2 * (self.half_width / 2) ** 2)
        return VisibleKeys(mask & window_mask(center, self.half_width, size), center, log_prior, self.renormalize)


def _known(query_states: QueryStates | None) -> QueryStates:
    if query_states is None:
        raise Mistake(
            "A local window needs the states and positions of the queries, which this site does not provide; "
            "use window=global here."
        )
    return query_states


def _at_least(half_width: int, least: int) -> None:
    if not least <= half_width <= LARGEST_WIDTH:
        expected = f"at least {least}" if half_width < least else f"at most {LARGEST_WIDTH:,}"
        raise Mistake(f"window.half_width is {half_width}; it must be {expected}, such as 10.")
