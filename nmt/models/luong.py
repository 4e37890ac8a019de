"""Luong et al. 2015: the query is the current decoder state, and the context enters after the recurrence."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from nmt.attention import Attention, with_heads
from nmt.attention.sizes import MOST_LAYERS, require_positive
from nmt.errors import Mistake
from nmt.kernels.dropout import Dropout
from nmt.models.base import Annotations, Embedded, SourceMask, Watch
from nmt.models.decoders import RecurrentDecoder
from nmt.models.dropout_places import dropout_rates
from nmt.models.embeddings import VocabularySizes, token_embeddings
from nmt.models.encoders import RecurrentEncoder
from nmt.models.lstmn import lstmn_query
from nmt.models.recurrent import Memory, RecurrentSeq2Seq, attend_to

# Norm of the rows of the output layer with FixNorm. The layer's input is a tanh and thus bounded, so rows of norm 1
# allow only small logits; docs/lab_notebook.md compares norms.
_OUTPUT_LENGTH = 5.0


class State(NamedTuple):
    """Hidden states and cells of all layers, the attentional vector h~_{t-1}, and the number of pieces read so far.

    `past` is what else each layer remembers, such as the past states of an LSTMN; see RecurrentDecoder.
    """

    hidden: Float[Tensor, "rows layers decoder_dim"]
    cell: Float[Tensor, "rows layers decoder_dim"]
    attentional: Float[Tensor, "rows decoder_dim"]
    position: Int[Tensor, " rows"]
    past: tuple[Any, ...] = ()


class Luong(RecurrentSeq2Seq):
    """h~_t = tanh(W_c [c_t; h_t]) (equation 5), then softmax(W_s h~_t) (equation 6; Luong et al. 2015, section 3).

    h_t is the top state of a stacked LSTM, and c_t is its context, from attention to the source states h_s.
    With `input_feeding`, h~_{t-1} is concatenated to the next input embedding (section 3.3); it is zero at t = 0.

    In the code, h_s are the `annotations`, h_t is `query`, c_t `context`, h~_t `attentional`, W_c `combine` and W_s
    `output`. W_a, W_p and v_p are in the scorer and the window of `attention`.

    The paper's encoder is `encoder@model=reversed`, whose final states become the initial states of the decoder
    unchanged, so both must have the same width. The final states of each layer of other encoders pass through
    tanh(linear). `encoder@model` and `decoder@model` choose the recurrent networks. An LSTMN (Cheng et al. 2016)
    attends to its own past, at the site encoder_self in the encoder and at decoder_self in the decoder.

    Dropout is applied to the embeddings, to the output of each encoder and decoder layer, and to h~_t; `dropout_at`
    overrides `dropout` at the places embedding, encoder, decoder and output. With `fix_norm`, the rows of the
    embeddings have norm sqrt(embedding_dim), and the rows of the output layer have norm 5.
    """

    queries: Mapping[str, str] = {
        "encoder_self": lstmn_query("source"),
        "decoder_self": lstmn_query("target"),
        "cross": "h_t, the top layer's state after y_{t-1} has been read; h~_t then combines it with the context",
    }

    def __init__(
        self,
        cross: Callable[..., Attention],
        encoder: RecurrentEncoder,
        decoder: RecurrentDecoder,
        *,
        embedding_dim: int,
        encoder_dim: int,
        decoder_dim: int,
        num_layers: int,
        num_heads: int,
        dropout: float,
        dropout_at: Mapping[str, float | None] | None = None,
        input_feeding: bool,
        fix_norm: bool = False,
        vocabulary: VocabularySizes,
    ) -> None:
        super().__init__()
        widths = {"embedding_dim": embedding_dim, "encoder_dim": encoder_dim, "decoder_dim": decoder_dim}
        require_positive(widths)
        require_positive({"num_layers": num_layers}, MOST_LAYERS)
        if encoder.hands_over_states and encoder_dim != decoder_dim:
            raise Mistake(
                f"The encoder {type(encoder).__name__} needs encoder_dim equal to decoder_dim, because the decoder "
                f"starts from its final states, but they are {encoder_dim} and {decoder_dim}; make them equal."
            )
        self.annotation_dim, self.input_feeding, self.fix_norm = encoder_dim, input_feeding, fix_norm
        self.encoder_kind, self.decoder_kind = encoder, decoder
        self.source_embedding, self.target_embedding = token_embeddings(vocabulary, embedding_dim)
        # One network per layer, because dropout is applied between the layers.
        inner_dims = [embedding_dim] + (num_layers - 1) * [encoder_dim]
        self.encoder = nn.ModuleList(encoder.layer(nn.LSTM, dim, encoder_dim) for dim in inner_dims)
        bridges = 0 if encoder.hands_over_states else num_layers
        self.hidden_bridge, self.cell_bridge = (
            nn.ModuleList(nn.Linear(encoder_dim, decoder_dim) for _ in range(bridges)) for _ in range(2)
        )
        input_dim = embedding_dim + decoder_dim if input_feeding else embedding_dim
        input_dims = [input_dim] + (num_layers - 1) * [decoder_dim]
        self.cells = nn.ModuleList(decoder.cell(dim, decoder_dim) for dim in input_dims)
        self.attention = with_heads(cross, decoder_dim, encoder_dim, num_heads)
        self.combine = nn.Linear(encoder_dim + decoder_dim, decoder_dim, bias=False)  # W_c
        self.output = nn.Linear(decoder_dim, vocabulary.target, bias=False)  # W_s
        if fix_norm:
            self._fix_row_lengths(_OUTPUT_LENGTH)
        rates = dropout_rates(("embedding", "encoder", "decoder", "output"), dropout, dropout_at)
        dropouts = map(Dropout, rates.values())
        self.embedding_dropout, self.encoder_dropout, self.decoder_dropout, self.output_dropout = dropouts

    def extra_repr(self) -> str:
        feeding, fixed = (str(switch).lower() for switch in (self.input_feeding, self.fix_norm))
        networks = f"encoder = {type(self.encoder_kind).__name__}, decoder = {type(self.decoder_kind).__name__}"
        return f"input_feeding = {feeding}, {networks}, fix_norm = {fixed}"

    @property
    def sites(self) -> Mapping[str, Sequence[Attention]]:
        sites = {
            "encoder_self": self.encoder_kind.attentions(self.encoder),
            "decoder_self": self.decoder_kind.attentions(self.cells),
            "cross": [self.attention.attention],
        }
        return {site: attentions for site, attentions in sites.items() if attentions}

    def annotate(
        self, embedded: Embedded, source_mask: SourceMask, watch: Watch | None = None
    ) -> tuple[Annotations, State]:
        annotations, finals = self.encoder_kind.read(
            self.encoder,
            embedded,
            source_mask,
            input_dropout=self.embedding_dropout,
            output_dropout=self.encoder_dropout,
            watch=watch,
        )
        hidden, cell = [], []
        for layer, final in enumerate(finals):
            last_hidden, last_cell = (states.transpose(0, 1).flatten(1) for states in final)  # directions side by side
            if not self.encoder_kind.hands_over_states:
                last_hidden = torch.tanh(self.hidden_bridge[layer](last_hidden))
                last_cell = torch.tanh(self.cell_bridge[layer](last_cell))
            hidden.append(last_hidden)
            cell.append(last_cell)
        nothing, start = torch.zeros_like(hidden[0]), torch.zeros_like(source_mask[:, 0], dtype=torch.long)
        # The past has the dtype of the embeddings, which autocast does not change.
        past = tuple(self.decoder_kind.start(layer, embedded[:, 0]) for layer in self.cells)
        return annotations, State(torch.stack(hidden, dim=1), torch.stack(cell, dim=1), nothing, start, past)

    def advance(
        self,
        embedded: Float[Tensor, "sentences beams embedding_dim"],
        state: State,
        memory: Memory,
        watch: Watch | None = None,
    ) -> tuple[Float[Tensor, "sentences beams output_dim"], State]:
        inputs = embedded.flatten(0, 1)
        if self.input_feeding:
            inputs = torch.cat([inputs, state.attentional], dim=-1)  # [y_{t-1}; h~_{t-1}], section 3.3
        hidden: list[Tensor] = []
        cell: list[Tensor] = []
        past: list[Any] = []
        for layer, network in enumerate(self.cells):
            below = self.decoder_dropout(hidden[-1]) if layer else inputs
            h, c, remembered = self.decoder_kind.step(
                network,
                below,
                previous=(state.hidden[:, layer], state.cell[:, layer]),
                past=state.past[layer],
                position=state.position,
                watch=watch and partial(watch, "decoder_self", layer),
            )
            hidden.append(h)
            cell.append(c)
            past.append(remembered)
        query = self.decoder_dropout(hidden[-1]).unflatten(0, embedded.shape[:2])  # h_t, after y_{t-1} has been read
        # c_t, the mean of the h_s with the weights a_t(s) of equation 7
        context = attend_to(self.attention, query, state.position, memory, watch and partial(watch, "cross", 0))
        attentional = torch.tanh(self.combine(torch.cat([context, query], dim=-1)))  # h~_t, equation 5
        return attentional, State(
            hidden=torch.stack(hidden, dim=1),
            cell=torch.stack(cell, dim=1),
            attentional=attentional.flatten(0, 1),
            position=state.position + 1,
            past=tuple(past),
        )

    def read_out(self, results: Float[Tensor, "*rows output_dim"]) -> Float[Tensor, "*rows width"]:
        # p(y_t | y_<t, x) = softmax(W_s h~_t), equation 6. The caller applies W_s, which is `output`, because training
        # leaves out padding and need not store the logits.
        return self.output_dropout(results)
