"""Hierarchical attention, to the words of each earlier sentence and then to the sentences (Miculicich et al. 2018)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.attention import Attention, KeysValues, MultiHeadAttention, SiteWatch, VisibleKeys
from nmt.attention.sizes import require_heads, require_positive
from nmt.models.dropout_places import require_rate
from nmt.models.transformer_layers import FeedForward


class EarlierSentences(NamedTuple):
    """The keys and values of the words in the sentences before each sentence of a batch."""

    keys: Float[Tensor, "batch sentences heads words head_dim"]
    values: Float[Tensor, "batch sentences heads words head_dim"]
    mask: Bool[Tensor, "batch sentences words"]
    """All False where there is no sentence."""


class HierarchicalAttention(nn.Module):
    """h'_t = l * h_t + (1 - l) * d_t: mixes a state h_t with the document's context d_t (Miculicich et al. 2018).

    s^j = MultiHead_w(h_t, H^j) over the words of earlier sentence j; d_t = FFN(MultiHead_s(h_t, [s^1 ... s^k])) over
    the sentences; l = sigmoid(W [h_t; d_t] + b). The query projections of the heads serve as the paper's f_w and f_s.
    b is initialized to 2, so that a model initialized from a sentence model starts out close to it. If there is no
    earlier sentence, h'_t = h_t.
    """

    def __init__(
        self,
        words: Callable[..., Attention],
        sentences: Callable[..., Attention],
        *,
        dim: int,
        ffn_dim: int,
        num_heads: int,
        dropout: float,
    ) -> None:
        super().__init__()
        require_positive({"context.model.ffn_dim": ffn_dim})
        require_heads("context.model.num_heads", num_heads, {"state": dim})
        require_rate("context.model.dropout", dropout)
        self.words, self.sentences = (
            MultiHeadAttention(level, dim, dim, num_heads, dropout) for level in (words, sentences)
        )
        self.feed_forward = FeedForward(dim, ffn_dim, dropout)
        self.gate = nn.Linear(2 * dim, dim)
        nn.init.constant_(self.gate.bias, 2.0)

    def project(
        self,
        states: Float[Tensor, "rows words dim"],
        mask: Bool[Tensor, "rows words"],
        rows: Int[Tensor, "batch sentences"],
    ) -> EarlierSentences:
        """Projects `states` once, then selects the earlier sentences by their `rows`; -1 stands for no sentence."""
        projected, indices = self.words.project(states), rows.clamp(min=0)
        earlier_mask = mask[indices] & (rows >= 0).unsqueeze(-1)
        return EarlierSentences(projected.keys[indices], projected.values[indices], earlier_mask)

    def forward(
        self,
        states: Float[Tensor, "batch queries dim"],
        earlier: EarlierSentences,
        watch_words: SiteWatch | None = None,
        watch_sentences: SiteWatch | None = None,
    ) -> Float[Tensor, "batch queries dim"]:
        """Returns the new states.

        `watch_sentences` receives the weights of the sentences, (batch, heads, queries, sentences). `watch_words`
        receives those of all their words, (batch, heads, queries, sentences x words): a word's weight within its
        sentence times the sentence's mean weight over the heads.
        """
        batch, number = earlier.mask.shape[:2]
        queries = states.shape[1]
        of_words: list[Tensor] = []
        of_sentences: list[Tensor] = []
        # s^j: every earlier sentence is a row of its own, with the queries of the current sentence.
        repeated = states.unsqueeze(1).expand(-1, number, -1, -1).flatten(0, 1)
        word_memory = KeysValues(earlier.keys.flatten(0, 1), earlier.values.flatten(0, 1))
        word_mask = earlier.mask.flatten(0, 1)[:, None, None, :]
        keep_words = (lambda weights, visible: of_words.append(weights)) if watch_words else None
        summaries = (
            self.words(repeated, word_memory, word_mask, watch=keep_words).unflatten(0, (batch, number)).transpose(1, 2)
        )

        # d_t: every query has its own summaries of the sentences, so each query becomes a row of its own.
        exists = earlier.mask.any(dim=-1)
        sentence_mask = exists.repeat_interleave(queries, dim=0)[:, None, None, :]
        memory = self.sentences.project(summaries.flatten(0, 1))
        keep = (lambda weights, visible: of_sentences.append(weights)) if watch_words or watch_sentences else None
        attended = self.sentences(states.flatten(0, 1).unsqueeze(1), memory, sentence_mask, watch=keep)
        context = self.feed_forward(attended.view(batch, queries, -1))
        gate = torch.sigmoid(self.gate(torch.cat([states, context], dim=-1)))  # l
        mixed = gate * states + (1 - gate) * context  # h'_t
        mixed = torch.where(exists.any(dim=1)[:, None, None], mixed, states)

        if of_sentences:
            sentences = of_sentences[0].squeeze(2).unflatten(0, (batch, queries)).transpose(1, 2)
            if watch_sentences:
                watch_sentences(sentences, VisibleKeys(exists[:, None, None, :]))
            if watch_words:
                words = of_words[0].unflatten(0, (batch, number)).permute(0, 2, 3, 1, 4)
                shares = sentences.mean(dim=1, keepdim=True).unsqueeze(-1)
                watch_words((words * shares).flatten(3), VisibleKeys(earlier.mask.flatten(1)[:, None, None, :]))
        return mixed
