"""Masked pretraining (BERT, Devlin et al. 2019): the Transformer's encoder predicts pieces hidden from it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import nn

from nmt.attention import Attention
from nmt.attention.sizes import MOST_LAYERS, require_positive
from nmt.errors import Mistake
from nmt.kernels.dropout import Dropout
from nmt.models.base import Attending, Source, SourceMask, Watch
from nmt.models.dropout_places import dropout_rates
from nmt.models.embeddings import DIRECTION_STD, VocabularySizes, token_embeddings, with_rows_of_length
from nmt.models.norms import LayerNorm
from nmt.models.transformer import Transformer
from nmt.models.transformer_layers import Dropouts, EncoderLayer, Norm, encoded, final_norm, with_positions


class MaskedTransformer(Attending):
    """p(x_i | x~) at each position i of a sentence x~ with hidden pieces (Devlin et al. 2019, section 3.1).

    The model is the encoder of `Transformer`, with the same parameter names, and an output layer that shares its
    weights with the embeddings. As in the paper, the output layer reads the encoder's states directly; the authors'
    code has one more layer in between. Position encodings are sinusoidal, and there are no segment embeddings. The
    arguments have the same meaning as in `Transformer`. Raises Mistake if the vocabulary is not joint.
    """

    queries: Mapping[str, str] = {"encoder_self": Transformer.queries["encoder_self"]}

    def __init__(
        self,
        encoder_self: Callable[..., Attention],
        norm: Norm = LayerNorm,
        *,
        dim: int,
        ffn_dim: int,
        num_heads: int,
        num_layers: int,
        dropout: float,
        dropout_at: Mapping[str, float | None] | None = None,
        norm_first: bool,
        fix_norm: bool = False,
        vocabulary: VocabularySizes,
    ) -> None:
        super().__init__()
        if not vocabulary.joint:
            raise Mistake("Pretraining reads and predicts pieces of the same vocabulary; use a joint vocabulary.")
        require_positive({"dim": dim, "ffn_dim": ffn_dim})
        require_positive({"num_layers": num_layers}, MOST_LAYERS)
        self.source_embedding, _ = token_embeddings(vocabulary, dim, DIRECTION_STD if fix_norm else dim**-0.5)
        dropouts = Dropouts(**dropout_rates(Dropouts._fields, dropout, dropout_at))
        self.encoder = nn.ModuleList(
            EncoderLayer(encoder_self, norm, dim, ffn_dim, num_heads, dropouts, norm_first) for _ in range(num_layers)
        )
        self.encoder_norm = final_norm(norm, dim, norm_first)
        self.dropout = Dropout(dropouts.embedding)
        self.output = nn.Linear(dim, vocabulary.source, bias=False)
        self.output.weight = self.source_embedding.weight
        if fix_norm:
            with_rows_of_length(self.source_embedding, self.output)

    @property
    def sites(self) -> Mapping[str, Sequence[Attention]]:
        layers: Any = self.encoder
        return {"encoder_self": [layer.attention.attention for layer in layers]}

    def forward(
        self, source: Source, source_mask: SourceMask, watch: Watch | None = None
    ) -> Float[torch.Tensor, "batch source width"]:
        """The input to the output layer at each position."""
        embedded = self.source_embedding(source)
        x = with_positions(embedded, torch.arange(source.shape[1], device=source.device), self.dropout)
        return encoded(x, source_mask, self.encoder, self.encoder_norm, watch)
