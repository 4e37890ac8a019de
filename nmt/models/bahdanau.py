"""RNNsearch (Bahdanau et al. 2015): the query is the previous decoder state, and the context enters the recurrence."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from nmt.attention import Attention, with_heads
from nmt.attention.sizes import require_positive
from nmt.kernels.dropout import Dropout
from nmt.models.base import Annotations, Embedded, SourceMask, Watch
from nmt.models.dropout_places import dropout_rates
from nmt.models.embeddings import VocabularySizes, token_embeddings
from nmt.models.encoders import RecurrentEncoder
from nmt.models.lstmn import lstmn_query
from nmt.models.recurrent import Memory, RecurrentSeq2Seq, attend_to


class State(NamedTuple):
    """The decoder state s_{t-1}, which is the next query, and the number of pieces read so far."""

    hidden: Float[Tensor, "rows decoder_dim"]
    position: Int[Tensor, " rows"]


class Bahdanau(RecurrentSeq2Seq):
    """s_t = GRU([E y_{t-1}; c_t], s_{t-1}); s_{t-1} is the query for c_t (Bahdanau et al. 2015, section 3.1).

    The annotation h_j concatenates the forward and the backward state of a GRU at piece j (section 3.2); this is
    `encoder@model=bidirectional`, and other encoders have other h_j.
    s_0 = tanh(W_s b_1), where b_1 is the last state of the encoder: the backward state at the first piece (A.2.2).
    Readout: maxout over pairs of U_o s_{t-1} + V_o E y_{t-1} + C_o c_t (appendix A.2.2), then the softmax layer.

    The paper's i is our t. The weights of the paper are in the modules: E in `target_embedding`, W_s in `bridge`, the
    alignment model a (W_a, U_a, v_a) in the scorer of `attention`, the gates in `cell`, [U_o V_o C_o] in `readout`, and
    W_o in `output`.

    Deviations: torch's GRU applies the reset gate after the recurrent product, whereas the paper applies it before the
    product (A.1.1); torch's z is the paper's 1 - z. The paper uses no dropout; here it is applied to the embeddings,
    the annotations and the maxout layer. `dropout_at` overrides `dropout` at the places embedding, encoder and output.
    With `fix_norm`, the rows of the embeddings have norm sqrt(embedding_dim), and the rows of the output layer have
    norm 1.
    """

    queries: Mapping[str, str] = {
        "encoder_self": lstmn_query("source"),
        "cross": "s_{t-1}, the decoder state before y_{t-1} is read; the context is then an input to the step to s_t",
    }

    def __init__(
        self,
        cross: Callable[..., Attention],
        encoder: RecurrentEncoder,
        *,
        embedding_dim: int,
        encoder_dim: int,
        decoder_dim: int,
        maxout_dim: int,
        num_heads: int,
        dropout: float,
        dropout_at: Mapping[str, float | None] | None = None,
        fix_norm: bool = False,
        vocabulary: VocabularySizes,
    ) -> None:
        super().__init__()
        require_positive(
            {
                "embedding_dim": embedding_dim,
                "encoder_dim": encoder_dim,
                "decoder_dim": decoder_dim,
                "maxout_dim": maxout_dim,
            }
        )
        self.annotation_dim, self.encoder_kind, self.fix_norm = encoder_dim, encoder, fix_norm
        self.source_embedding, self.target_embedding = token_embeddings(vocabulary, embedding_dim)
        self.encoder = encoder.layer(nn.GRU, embedding_dim, encoder_dim)
        self.bridge = nn.Linear(encoder.state_dim(encoder_dim), decoder_dim)
        self.attention = with_heads(cross, decoder_dim, encoder_dim, num_heads)
        self.cell = nn.GRUCell(embedding_dim + encoder_dim, decoder_dim)
        self.readout = nn.Linear(decoder_dim + embedding_dim + encoder_dim, 2 * maxout_dim)
        self.output = nn.Linear(maxout_dim, vocabulary.target)
        if fix_norm:
            self._fix_row_lengths(output=1.0)
        rates = dropout_rates(("embedding", "encoder", "output"), dropout, dropout_at)
        self.embedding_dropout, self.encoder_dropout, self.output_dropout = map(Dropout, rates.values())

    def extra_repr(self) -> str:
        return f"encoder = {type(self.encoder_kind).__name__}, fix_norm = {str(self.fix_norm).lower()}"

    @property
    def sites(self) -> Mapping[str, Sequence[Attention]]:
        sites = {"encoder_self": self.encoder_kind.attentions([self.encoder]), "cross": [self.attention.attention]}
        return {site: attentions for site, attentions in sites.items() if attentions}

    def annotate(
        self, embedded: Embedded, source_mask: SourceMask, watch: Watch | None = None
    ) -> tuple[Annotations, State]:
        annotations, [final] = self.encoder_kind.read(
            [self.encoder],
            embedded,
            source_mask,
            input_dropout=self.embedding_dropout,
            output_dropout=self.encoder_dropout,
            watch=watch,
        )
        # b_1 is the state of the last direction: a backward network ends at the first piece.
        hidden = torch.tanh(self.bridge(final[0][-1]))  # s_0 = tanh(W_s b_1), A.2.2
        return annotations, State(hidden, torch.zeros_like(source_mask[:, 0], dtype=torch.long))

    def advance(
        self,
        embedded: Float[Tensor, "sentences beams embedding_dim"],
        state: State,
        memory: Memory,
        watch: Watch | None = None,
    ) -> tuple[Float[Tensor, "sentences beams output_dim"], State]:
        previous = state.hidden.unflatten(0, embedded.shape[:2])  # s_{t-1}
        # c_t = sum_j alpha_tj h_j, equation 5, with alpha = softmax of e_tj = a(s_{t-1}, h_j), equation 6
        context = attend_to(self.attention, previous, state.position, memory, watch and partial(watch, "cross", 0))
        # s_t = f(s_{t-1}, y_{t-1}, c_t), section 3.1; f is a GRU, A.2.2
        hidden = self.cell(torch.cat([embedded, context], dim=-1).flatten(0, 1), state.hidden)
        # The readout of step t sees s_{t-1} (A.2.2), so the new state is not among its inputs.
        return torch.cat([previous, embedded, context], dim=-1), State(hidden, state.position + 1)

    def read_out(self, results: Float[Tensor, "*rows output_dim"]) -> Float[Tensor, "*rows width"]:
        # Maxout over pairs of the entries of t~_t = U_o s_{t-1} + V_o E y_{t-1} + C_o c_t (A.2.2)
        return self.output_dropout(self.readout(results).unflatten(-1, (-1, 2)).amax(dim=-1))
