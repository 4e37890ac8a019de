"""Windows: which of the unmasked keys a query may see."""

from jaxtyping import Bool
from torch import Tensor, nn


class Global(nn.Module):
    """Every source position may be seen (Luong et al. 2015, section 3.1)."""

    def forward(self, mask: Bool[Tensor, "*axes"]) -> Bool[Tensor, "*axes"]:
        return mask
