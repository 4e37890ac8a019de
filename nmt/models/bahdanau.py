"""RNNsearch (Bahdanau et al. 2015): the query is the previous decoder state, and the context enters the recurrence."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from nmt.attention import Attention, with_heads
from nmt.attention.sizes import require_positive
from nmt.kernels.dropout import Dropout
from nmt.models.base import Annotations, Embedded, SourceMask, Watch
from nmt.models.dropout_places import dropout_rates
from nmt.models.embeddings import VocabularySizes, token_embeddings
from nmt.models.lstmn import LSTMN, given_site, lstmn_query
from nmt.models.recurrent import Memory, RecurrentSeq2Seq, annotate, attend_to, check_kind, direction_dim


class State(NamedTuple):
    """The decoder state s_{t-1}, which is the next query, and the number of pieces read so far."""

    hidden: Float[Tensor, "rows decoder_dim"]
    position: Int[Tensor, " rows"]


class Bahdanau(RecurrentSeq2Seq):
    """s_t = GRU([E y_{t-1}; c_t], s_{t-1}); s_{t-1} is the query for c_t (Bahdanau et al. 2015, section 3.1).

    The annotation h_j concatenates the forward and the backward state of a GRU at piece j (section 3.2).
    s_0 = tanh(W_s b_1), where b_1 is the backward state at the first piece (appendix A.2.2).
    Readout: maxout over pairs of U_o s_{t-1} + V_o E y_{t-1} + C_o c_t (appendix A.2.2), then the softmax layer.

    With encoder=lstmn, h_j is the state of an LSTMN, which attends to its own past (Cheng et al. 2016; site
    encoder_self), and its last state replaces b_1.

    Deviations: torch's GRU applies the reset gate after the recurrent product, whereas the paper applies it before the
    product (A.1.1); torch's z is the paper's 1 - z. The paper uses no dropout; here it is applied to the embeddings,
    the annotations and the maxout layer. `dropout_at` overrides `dropout` at the places embedding, encoder and output.
    With `fix_norm`, the rows of the embeddings have norm sqrt(embedding_dim), and the rows of the output layer have
    norm 1.
    """

    queries: ClassVar = {
        "encoder_self": lstmn_query("source"),
        "cross": "s_{t-1}, the decoder state before y_{t-1} is read; the context is then an input to the step to s_t",
    }

    def __init__(
        self,
        cross: Callable[..., Attention],
        encoder_self: Callable[..., Attention] | None = None,
        *,
        embedding_dim: int,
        encoder_dim: int,
        decoder_dim: int,
        maxout_dim: int,
        num_heads: int,
        dropout: float,
        dropout_at: Mapping[str, float | None] | None = None,
        encoder: str = "bidirectional",
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
        check_kind("encoder", encoder, ("bidirectional", "lstmn"))
        self.annotation_dim, self.encoder_kind, self.fix_norm = encoder_dim, encoder, fix_norm
        self.source_embedding, self.target_embedding = token_embeddings(vocabulary, embedding_dim)
        self.encoder: nn.GRU | LSTMN
        if encoder == "lstmn":
            look_back = given_site(encoder_self, "model.encoder=lstmn", "encoder_self")
            self.encoder, last_dim = LSTMN(look_back, embedding_dim, encoder_dim), encoder_dim
        else:
            last_dim = direction_dim(encoder_dim)
            self.encoder = nn.GRU(embedding_dim, last_dim, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(last_dim, decoder_dim)
        self.attention = with_heads(cross, decoder_dim, encoder_dim, num_heads)
        self.cell = nn.GRUCell(embedding_dim + encoder_dim, decoder_dim)
        self.readout = nn.Linear(decoder_dim + embedding_dim + encoder_dim, 2 * maxout_dim)
        self.output = nn.Linear(maxout_dim, vocabulary.target)
        if fix_norm:
            self._fix_row_lengths(output=1.0)
        rates = dropout_rates(("embedding", "encoder", "output"), dropout, dropout_at)
        self.embedding_dropout, self.encoder_dropout, self.output_dropout = map(Dropout, rates.values())

    def extra_repr(self) -> str:
        return f"encoder = {self.encoder_kind}, fix_norm = {str(self.fix_norm).lower()}"

    @property
    def sites(self) -> Mapping[str, Sequence[Attention]]:
        cross = {"cross": [self.attention.attention]}
        return {"encoder_self": [self.encoder.attention]} | cross if isinstance(self.encoder, LSTMN) else cross

    def annotate(
        self, embedded: Embedded, source_mask: SourceMask, watch: Watch | None = None
    ) -> tuple[Annotations, State]:
        lengths, watch_self = source_mask.sum(dim=1).cpu(), watch and partial(watch, "encoder_self", 0)
        annotations, final = annotate(self.encoder, self.embedding_dropout(embedded), lengths, watch_self)
        # The last state of an LSTMN, or b_1, which is the last state of the backward direction of a GRU.
        last = final[0][0] if isinstance(self.encoder, LSTMN) else final[1]
        hidden = torch.tanh(self.bridge(last))
        first = State(hidden, torch.zeros_like(source_mask[:, 0], dtype=torch.long))
        return self.encoder_dropout(annotations), first

    def advance(
        self,
        embedded: Float[Tensor, "sentences beams embedding_dim"],
        state: State,
        memory: Memory,
        watch: Watch | None = None,
    ) -> tuple[Float[Tensor, "sentences beams output_dim"], State]:
        previous = state.hidden.unflatten(0, embedded.shape[:2])
        context = attend_to(self.attention, previous, state.position, memory, watch and partial(watch, "cross", 0))
        hidden = self.cell(torch.cat([embedded, context], dim=-1).flatten(0, 1), state.hidden)
        return torch.cat([previous, embedded, context], dim=-1), State(hidden, state.position + 1)

    def read_out(self, results: Float[Tensor, "*rows output_dim"]) -> Float[Tensor, "*rows width"]:
        return self.output_dropout(self.readout(results).unflatten(-1, (-1, 2)).amax(dim=-1))
