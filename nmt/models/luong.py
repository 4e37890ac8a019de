"""Luong et al. 2015: the query is the current decoder state, and the context enters after the recurrence."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from nmt.attention import Attention, with_heads
from nmt.attention.sizes import require_positive
from nmt.errors import Mistake
from nmt.kernels.dropout import Dropout
from nmt.models.base import Annotations, Embedded, SourceMask, Watch
from nmt.models.dropout_places import dropout_rates
from nmt.models.embeddings import VocabularySizes, token_embeddings
from nmt.models.lstmn import LSTMN, Tape, given_site, lstmn_query
from nmt.models.recurrent import (
    Memory,
    RecurrentSeq2Seq,
    annotate,
    attend_to,
    check_kind,
    direction_dim,
    reversed_order,
)

# Norm of the rows of the output layer with FixNorm. The layer's input is a tanh and thus bounded, so rows of norm 1
# allow only small logits. The training losses of experiment=envi_luong with seed 1 after 200 and 250 updates are 5.16
# and 5.41 with norm 1, 4.64 and 4.80 with 3, 4.39 and 4.57 with 5, and 4.52 and 4.86 with 22.6. Without FixNorm, the
# loss is 6.63 after 200 updates.
_OUTPUT_LENGTH = 5.0


class State(NamedTuple):
    """Hidden states and cells of all layers, the attentional vector h~_{t-1}, and the number of pieces read so far.

    With decoder=lstmn, `tapes` holds the past states of each layer.
    """

    hidden: Float[Tensor, "rows layers decoder_dim"]
    cell: Float[Tensor, "rows layers decoder_dim"]
    attentional: Float[Tensor, "rows decoder_dim"]
    position: Int[Tensor, " rows"]
    tapes: tuple[Tape, ...] = ()


class Luong(RecurrentSeq2Seq):
    """h~_t = tanh(W_c [c_t; h_t]) (equation 5), then softmax(W_s h~_t) (equation 6; Luong et al. 2015, section 3).

    h_t is the top state of a stacked LSTM, and c_t is its context, from attention to the source states h_s.
    With `input_feeding`, h~_{t-1} is concatenated to the next input embedding (section 3.3); it is zero at t = 0.

    `encoder` is bidirectional, reversed or lstmn. The final states of each layer of a bidirectional or LSTMN encoder
    pass through tanh(linear) and become the initial states of the decoder. The reversed encoder is the paper's: it
    reads the pieces from the last to the first, then EOS, and its final states become the decoder's initial states
    unchanged, so both must have the same width. `decoder` is lstm or lstmn. An LSTMN (Cheng et al. 2016) attends to its
    own past, at the site encoder_self in the encoder and at decoder_self in the decoder.

    Dropout is applied to the embeddings, to the output of each encoder and decoder layer, and to h~_t; `dropout_at`
    overrides `dropout` at the places embedding, encoder, decoder and output. With `fix_norm`, the rows of the
    embeddings have norm sqrt(embedding_dim), and the rows of the output layer have norm 5.
    """

    queries: ClassVar = {
        "encoder_self": lstmn_query("source"),
        "decoder_self": lstmn_query("target"),
        "cross": "h_t, the top layer's state after y_{t-1} has been read; h~_t then combines it with the context",
    }

    def __init__(
        self,
        cross: Callable[..., Attention],
        encoder_self: Callable[..., Attention] | None = None,
        decoder_self: Callable[..., Attention] | None = None,
        *,
        embedding_dim: int,
        encoder_dim: int,
        decoder_dim: int,
        num_layers: int,
        num_heads: int,
        dropout: float,
        dropout_at: Mapping[str, float | None] | None = None,
        input_feeding: bool,
        encoder: str = "bidirectional",
        decoder: str = "lstm",
        fix_norm: bool = False,
        vocabulary: VocabularySizes,
    ) -> None:
        super().__init__()
        widths = {"embedding_dim": embedding_dim, "encoder_dim": encoder_dim, "decoder_dim": decoder_dim}
        require_positive(widths | {"num_layers": num_layers})
        check_kind("encoder", encoder, ("bidirectional", "reversed", "lstmn"))
        check_kind("decoder", decoder, ("lstm", "lstmn"))
        if encoder == "reversed" and encoder_dim != decoder_dim:
            raise Mistake(
                f"encoder=reversed needs encoder_dim equal to decoder_dim, but they are {encoder_dim} and "
                f"{decoder_dim}; make them equal."
            )
        self.annotation_dim, self.input_feeding, self.fix_norm = encoder_dim, input_feeding, fix_norm
        self.encoder_kind, self.decoder_kind = encoder, decoder
        self.source_embedding, self.target_embedding = token_embeddings(vocabulary, embedding_dim)
        # One network per layer, because dropout is applied between the layers.
        inner_dims = [embedding_dim] + (num_layers - 1) * [encoder_dim]
        if encoder == "lstmn":
            look_back = given_site(encoder_self, "model.encoder=lstmn", "encoder_self")
            self.encoder = nn.ModuleList(LSTMN(look_back, dim, encoder_dim) for dim in inner_dims)
        elif encoder == "bidirectional":
            both = {"hidden_size": direction_dim(encoder_dim), "bidirectional": True}
            self.encoder = nn.ModuleList(nn.LSTM(dim, batch_first=True, **both) for dim in inner_dims)
        else:
            self.encoder = nn.ModuleList(nn.LSTM(dim, encoder_dim, batch_first=True) for dim in inner_dims)
        bridges = 0 if encoder == "reversed" else num_layers
        self.hidden_bridge, self.cell_bridge = (
            nn.ModuleList(nn.Linear(encoder_dim, decoder_dim) for _ in range(bridges)) for _ in range(2)
        )
        input_dim = embedding_dim + decoder_dim if input_feeding else embedding_dim
        input_dims = [input_dim] + (num_layers - 1) * [decoder_dim]
        if decoder == "lstmn":
            look_back = given_site(decoder_self, "model.decoder=lstmn", "decoder_self")
            self.cells = nn.ModuleList(LSTMN(look_back, dim, decoder_dim) for dim in input_dims)
        else:
            self.cells = nn.ModuleList(nn.LSTMCell(dim, decoder_dim) for dim in input_dims)
        self.attention = with_heads(cross, decoder_dim, encoder_dim, num_heads)
        self.combine = nn.Linear(encoder_dim + decoder_dim, decoder_dim, bias=False)
        self.output = nn.Linear(decoder_dim, vocabulary.target, bias=False)
        if fix_norm:
            self._fix_row_lengths(_OUTPUT_LENGTH)
        rates = dropout_rates(("embedding", "encoder", "decoder", "output"), dropout, dropout_at)
        dropouts = map(Dropout, rates.values())
        self.embedding_dropout, self.encoder_dropout, self.decoder_dropout, self.output_dropout = dropouts

    def extra_repr(self) -> str:
        feeding, fixed = (str(switch).lower() for switch in (self.input_feeding, self.fix_norm))
        networks = f"encoder = {self.encoder_kind}, decoder = {self.decoder_kind}"
        return f"input_feeding = {feeding}, {networks}, fix_norm = {fixed}"

    @property
    def sites(self) -> Mapping[str, Sequence[Attention]]:
        every: dict[str, list[Attention]] = {
            "encoder_self": [],
            "decoder_self": [],
            "cross": [self.attention.attention],
        }
        for site, layers in (("encoder_self", self.encoder), ("decoder_self", self.cells)):
            every[site] += [layer.attention for layer in layers if isinstance(layer, LSTMN)]
        return {site: attentions for site, attentions in every.items() if attentions}

    def annotate(
        self, embedded: Embedded, source_mask: SourceMask, watch: Watch | None = None
    ) -> tuple[Annotations, State]:
        lengths = source_mask.sum(dim=1).cpu()
        backwards = self.encoder_kind == "reversed"
        order = reversed_order(lengths, embedded.shape[1]).to(embedded.device) if backwards else None
        if order is not None:
            embedded = embedded.gather(1, order.unsqueeze(-1).expand_as(embedded))
        inputs = self.embedding_dropout(embedded)
        hidden, cell = [], []
        for layer, network in enumerate(self.encoder):
            outputs, final = annotate(network, inputs, lengths, watch and partial(watch, "encoder_self", layer))
            inputs = self.encoder_dropout(outputs)
            last_hidden, last_cell = (states.transpose(0, 1).flatten(1) for states in final)
            if not backwards:
                last_hidden = torch.tanh(self.hidden_bridge[layer](last_hidden))
                last_cell = torch.tanh(self.cell_bridge[layer](last_cell))
            hidden.append(last_hidden)
            cell.append(last_cell)
        if order is not None:
            inputs = inputs.gather(1, order.unsqueeze(-1).expand_as(inputs))
        nothing, start = torch.zeros_like(hidden[0]), torch.zeros_like(source_mask[:, 0], dtype=torch.long)
        # The tapes have the dtype of the embeddings, which autocast does not change.
        tapes = tuple(layer.start(embedded[:, 0]) for layer in self.cells if isinstance(layer, LSTMN))
        first = State(torch.stack(hidden, dim=1), torch.stack(cell, dim=1), nothing, start, tapes)
        return inputs, first

    def advance(
        self,
        embedded: Float[Tensor, "sentences beams embedding_dim"],
        state: State,
        memory: Memory,
        watch: Watch | None = None,
    ) -> tuple[Float[Tensor, "sentences beams output_dim"], State]:
        inputs = embedded.flatten(0, 1)
        if self.input_feeding:
            inputs = torch.cat([inputs, state.attentional], dim=-1)
        hidden, cell, tapes = self._recur(inputs, state, watch)
        query = self.decoder_dropout(hidden[:, -1]).unflatten(0, embedded.shape[:2])
        context = attend_to(self.attention, query, state.position, memory, watch and partial(watch, "cross", 0))
        attentional = torch.tanh(self.combine(torch.cat([context, query], dim=-1)))
        return attentional, State(hidden, cell, attentional.flatten(0, 1), state.position + 1, tapes)

    def read_out(self, results: Float[Tensor, "*rows output_dim"]) -> Float[Tensor, "*rows width"]:
        return self.output_dropout(results)

    def _recur(
        self, inputs: Float[Tensor, "rows input_dim"], state: State, watch: Watch | None
    ) -> tuple[Tensor, Tensor, tuple[Tape, ...]]:
        """Runs the stack for one time step.

        Returns its hidden states and cells, each of shape (rows, layers, decoder_dim), and its tapes.
        """
        hidden: list[Tensor] = []
        cell: list[Tensor] = []
        tapes: list[Tape] = []
        for layer, recur in enumerate(self.cells):
            below = self.decoder_dropout(hidden[-1]) if layer else inputs
            previous = state.hidden[:, layer], state.cell[:, layer]
            if isinstance(recur, LSTMN):
                watch_self = watch and partial(watch, "decoder_self", layer)
                h, c, tape = recur.step(below, previous, state.tapes[layer], state.position, watch_self)
                tapes.append(tape)
            else:
                h, c = recur(below, previous)
            hidden.append(h)
            cell.append(c)
        return torch.stack(hidden, dim=1), torch.stack(cell, dim=1), tuple(tapes)
