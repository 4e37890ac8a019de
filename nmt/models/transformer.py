"""The Transformer (Vaswani et al. 2017) with any Attention at each of its three sites."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.attention import Attention, KeysValues, causal_mask, lengths_to_mask
from nmt.attention.sizes import MOST_LAYERS, require_positive
from nmt.kernels.dropout import Dropout
from nmt.kernels.key_value_cache import append, in_use, next_length
from nmt.models.base import Annotations, Embedded, Seq2Seq, SourceMask, Target, Watch
from nmt.models.dropout_places import dropout_rates
from nmt.models.embeddings import DIRECTION_STD, VocabularySizes, token_embeddings, with_rows_of_length
from nmt.models.norms import LayerNorm
from nmt.models.transformer_layers import (
    DecoderLayer,
    Dropouts,
    EncoderLayer,
    Norm,
    encoded,
    final_norm,
    with_positions,
)


class Memory(NamedTuple):
    """The keys and values of the source for the cross attention of each decoder layer, and the source mask."""

    cross: tuple[KeysValues, ...]
    mask: Bool[Tensor, "sentences source"]


class State(NamedTuple):
    """The keys and values of the pieces read so far, for each decoder layer, and the number of these pieces per row."""

    self_attention: tuple[KeysValues, ...]
    position: Int[Tensor, " rows"]


class Transformer(Seq2Seq):
    """Encoder and decoder stacks; both read sqrt(dim) E x + PE (Vaswani et al. 2017, section 3).

    E are the embeddings (section 3.4) and PE the sinusoidal position encodings (section 3.5). The output layer shares
    its weights with the target embeddings and, if the vocabulary is joint, with the source embeddings (section 3.4).

    The paper's d_model is `dim`, d_ff `ffn_dim`, h `num_heads` and N `num_layers`. The decoder has `decoder_layers`
    layers; None, as in the paper, gives both stacks the same depth. W_i^Q, W_i^K, W_i^V and W^O are
    `query`, `key`, `value` and `output` of each attention; W_1 and W_2 are `inner` and `outer` of each feed-forward
    net.

    `norm` is the paper's layer norm or another norm from nmt.models.norms. The paper uses post-norm; `norm_first`
    selects pre-norm, with an extra norm at the end of each stack. With `fix_norm`, embeddings are unit vectors, in the
    output layer too (Nguyen & Salazar 2019). Deviations that most implementations share: the projections of the heads
    have biases, and dropout is also applied to attention weights and inside the feed-forward net. `dropout_at`
    overrides `dropout` at the places named in `Dropouts`.
    """

    queries: Mapping[str, str] = {
        "encoder_self": "every source position, attending to all source positions",
        "decoder_self": "every target position t, attending to the positions 0 to t",
        "cross": "every target position t after its self-attention, attending to the source",
    }

    recordable = True

    def __init__(
        self,
        encoder_self: Callable[..., Attention],
        decoder_self: Callable[..., Attention],
        cross: Callable[..., Attention],
        norm: Norm = LayerNorm,
        *,
        dim: int,
        ffn_dim: int,
        num_heads: int,
        num_layers: int,
        decoder_layers: int | None = None,
        dropout: float,
        dropout_at: Mapping[str, float | None] | None = None,
        norm_first: bool,
        fix_norm: bool = False,
        vocabulary: VocabularySizes,
    ) -> None:
        super().__init__()
        require_positive({"dim": dim, "ffn_dim": ffn_dim})
        decoder_layers = num_layers if decoder_layers is None else decoder_layers
        require_positive({"num_layers": num_layers, "decoder_layers": decoder_layers}, MOST_LAYERS)
        self.dim, self.annotation_dim = dim, dim
        self.norm_first, self.fix_norm = norm_first, fix_norm
        std = DIRECTION_STD if fix_norm else dim**-0.5
        self.source_embedding, self.target_embedding = token_embeddings(vocabulary, dim, std)
        dropouts = Dropouts(**dropout_rates(Dropouts._fields, dropout, dropout_at))
        sizes = (norm, dim, ffn_dim, num_heads, dropouts, norm_first)
        self.encoder = nn.ModuleList(EncoderLayer(encoder_self, *sizes) for _ in range(num_layers))
        self.decoder = nn.ModuleList(DecoderLayer(decoder_self, cross, *sizes) for _ in range(decoder_layers))
        self.encoder_norm, self.decoder_norm = (final_norm(norm, dim, norm_first) for _ in range(2))
        self.dropout = Dropout(dropouts.embedding)
        self.output = nn.Linear(dim, vocabulary.target, bias=False)
        self.output.weight = self.target_embedding.weight
        if fix_norm:
            with_rows_of_length(self.source_embedding, self.target_embedding, self.output)

    def extra_repr(self) -> str:
        return f"norm_first = {str(self.norm_first).lower()}, fix_norm = {str(self.fix_norm).lower()}"

    @property
    def sites(self) -> Mapping[str, Sequence[Attention]]:
        stacks: tuple[Any, Any] = (self.encoder, self.decoder)
        encoder, decoder = stacks
        return {
            "encoder_self": [layer.attention.attention for layer in encoder],
            "decoder_self": [layer.attention.attention for layer in decoder],
            "cross": [layer.cross.attention for layer in decoder],
        }

    def annotate(
        self, embedded: Embedded, source_mask: SourceMask, watch: Watch | None = None
    ) -> tuple[Annotations, None]:
        x = self._with_positions(embedded, torch.arange(embedded.shape[1], device=embedded.device))
        return encoded(x, source_mask, self.encoder, self.encoder_norm, watch), None

    def remember(self, annotations: Annotations, source_mask: SourceMask, first: None) -> Memory:
        return Memory(tuple(layer.cross.project(annotations) for layer in self.decoder), source_mask)

    def decode(
        self, target_input: Target, memory: Memory, watch: Watch | None = None
    ) -> Float[Tensor, "batch target width"]:
        size = target_input.shape[1]
        positions = torch.arange(size, device=target_input.device).unsqueeze(0)
        x = self._with_positions(self.target_embedding(target_input), positions)
        causal, source_mask = causal_mask(size, x.device), memory.mask[:, None, None, :]
        for index, layer in enumerate(self.decoder):  # section 3.1, the three sub-layers of a decoder layer
            watch_self, watch_cross = (watch and partial(watch, site, index) for site in ("decoder_self", "cross"))
            inputs = layer.around_attention.before(x)
            x = layer.self_attend(x, inputs, layer.keys_values(inputs), causal, watch_self)
            x = layer.cross_attend(x, memory.cross[index], source_mask, positions, watch_cross)
            x = layer.apply_feed_forward(x)
        return self.decoder_norm(x)

    def start(self, memory: Memory, beams: int) -> State:
        rows = memory.mask.shape[0] * beams
        # Projecting no positions gives empty keys and values of the right widths for every scorer.
        nothing = self.target_embedding.weight.new_zeros(rows, 0, self.dim)
        position = torch.zeros(rows, dtype=torch.long, device=nothing.device)
        return State(tuple(layer.keys_values(nothing) for layer in self.decoder), position)

    def advance_features(
        self, tokens: Int[Tensor, "sentences beams"], state: State, memory: Memory, watch: Watch | None = None
    ) -> tuple[Float[Tensor, "sentences beams width"], State]:
        """Reads one more token per beam; see Seq2Seq.

        In self-attention, each row attends to its own cached keys. In cross attention, the beams of a sentence are the
        queries and share its Memory.
        """
        sentences, beams = tokens.shape
        positions = state.position.view(sentences, beams)
        x = self._with_positions(self.target_embedding(tokens), positions)
        source_mask, self_attention = memory.mask[:, None, None, :], []
        length = next_length(state.position, state.self_attention[0].keys)
        longest = length.longest
        seen = lengths_to_mask(state.position + 1, longest)[:, None, None, :]
        for index, (layer, past, cross) in enumerate(
            zip(self.decoder, state.self_attention, memory.cross, strict=True)
        ):
            row = x.view(sentences * beams, 1, self.dim)
            inputs = layer.around_attention.before(row)
            new = layer.keys_values(inputs)
            # The cache grows in blocks, so only its first positions are in use.
            keys, values = (append(old, added, state.position, length) for old, added in zip(past, new, strict=True))
            row = layer.self_attend(row, inputs, KeysValues(in_use(keys, longest), in_use(values, longest)), seen)
            watch_cross = watch and partial(watch, "cross", index)
            x = layer.cross_attend(row.view(sentences, beams, self.dim), cross, source_mask, positions, watch_cross)
            x = layer.apply_feed_forward(x)
            self_attention.append(KeysValues(keys, values))
        return self.decoder_norm(x), State(tuple(self_attention), state.position + 1)

    def _with_positions(
        self, embedded: Float[Tensor, "batch n dim"], positions: Int[Tensor, "*batch n"]
    ) -> Float[Tensor, "batch n dim"]:
        return with_positions(embedded, positions, self.dropout)
