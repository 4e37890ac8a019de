"""Beam search over all sentences of a batch at once; a beam of 1 is greedy search."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.decoding.state import Decodable, select_rows
from nmt.text.tokenizer import BOS, EOS, PAD


class Hypothesis(NamedTuple):
    """A finished translation."""

    ids: list[int]
    """Target pieces, without BOS and EOS."""
    log_prob: float
    """Sum over the pieces and EOS, in nats."""
    score: float
    """log_prob / length penalty: what hypotheses are ranked by."""


class Live(NamedTuple):
    """Sentences still searched, one row each."""

    sentence: Int[Tensor, " sentences"]
    """Index in the batch that search was given."""
    limit: Int[Tensor, " sentences"]
    """Longest output, EOS counted."""
    log_probs: Float[Tensor, "sentences beams"]
    """Of the unfinished hypotheses, best first; -inf where there is none."""
    finished: Int[Tensor, " sentences"]
    """Number of finished hypotheses."""
    best: Float[Tensor, " sentences"]
    """Highest score among the finished ones; -inf before the first."""


class Candidates(NamedTuple):
    """The best one-token continuations of a sentence's live hypotheses, best first."""

    log_probs: Float[Tensor, "sentences candidates"]
    parents: Int[Tensor, "sentences candidates"]
    """The beam that is continued."""
    tokens: Int[Tensor, "sentences candidates"]


class BeamSearch:
    """Beam search with the length penalty of GNMT (Wu et al. 2016, eq. 14): log P(Y|X) / ((5 + |Y|) / 6)^alpha.

    |Y| counts EOS. A step looks at the best 2 x beam candidates of a sentence. A candidate that ends in EOS finishes if
    it ranks among the first `beam_size`; the best `beam_size` others go on. A sentence ends with `beam_size` finished
    hypotheses, or as soon as no live one can score higher than its best finished one. At the longest output,
    max_length_ratio * S + max_length_offset tokens (S source pieces; EOS counted on both sides) or the most that the
    model can read, EOS is the only candidate left, so that every log_prob is that of a whole sentence. Nothing depends
    on how many hypotheses are read.

    Raises ValueError for a setting out of range.
    """

    def __init__(
        self,
        beam_size: int = 5,
        length_penalty: float = 0.6,
        max_length_ratio: float = 2.0,
        max_length_offset: int = 10,
    ) -> None:
        if beam_size < 1:
            raise ValueError(f"search.beam_size is {beam_size}; it must be at least 1 (1 is greedy search).")
        if not math.isfinite(length_penalty):
            raise ValueError(f"search.length_penalty is {length_penalty}; it must be a finite number (0 turns it off).")
        if not 0 <= max_length_ratio < math.inf:
            raise ValueError(f"search.max_length_ratio is {max_length_ratio}; it must be a finite number, at least 0.")
        if max_length_offset < 1:
            raise ValueError(
                f"search.max_length_offset is {max_length_offset}; it must be at least 1, to leave room for EOS."
            )
        self.beam_size = beam_size
        self.length_penalty = length_penalty
        self.max_length_ratio = max_length_ratio
        self.max_length_offset = max_length_offset

    def __call__(
        self,
        model: Decodable,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
    ) -> list[list[Hypothesis]]:
        """At least one and at most `beam_size` hypotheses per sentence, best first.

        Raises ValueError where the model's log-probabilities are NaN or leave no way to end a sentence.
        """
        memory = model.encode(source, source_mask)
        state = model.start(memory, self.beam_size)
        live = self._start(source_mask, model.max_target)
        tokens = source.new_full(live.log_probs.shape, BOS)
        history = source.new_empty((tokens.numel(), 0))
        found: list[list[Hypothesis]] = [[] for _ in source]
        length = 0
        while len(live.sentence):
            length += 1
            log_probs, state = model.step(tokens, state, memory)
            candidates = self._candidates(live, log_probs, length)
            ending = candidates.tokens == EOS
            if ending.any():
                live = self._finish(found, live, candidates, history, length)
                candidates = self._unfinished(candidates, ending)
            live = live._replace(log_probs=candidates.log_probs[:, : self.beam_size])
            tokens, parents = candidates.tokens[:, : self.beam_size], candidates.parents[:, : self.beam_size]

            rows = parents + torch.arange(0, parents.numel(), self.beam_size, device=parents.device)[:, None]
            done = self._done(live, length)
            if done.any():
                going = (~done).nonzero().squeeze(1)
                live, memory, tokens, rows = select_rows((live, memory, tokens, rows), going)
            if not torch.equal(rows.flatten(), torch.arange(len(history), device=rows.device)):
                state, history = select_rows((state, history), rows.flatten())
            history = torch.cat([history, tokens.reshape(-1, 1)], dim=1)
        return [self._ranked(index, hypotheses) for index, hypotheses in enumerate(found)]

    def _start(self, source_mask: Bool[Tensor, "sentences source"], max_target: int | None) -> Live:
        lengths = source_mask.sum(1)
        limit = (lengths * self.max_length_ratio + self.max_length_offset).long()
        # The beams start equal: only the first is real, or every later one would repeat it.
        log_probs = torch.full((len(lengths), self.beam_size), -math.inf, device=lengths.device)
        log_probs[:, 0] = 0
        return Live(
            sentence=torch.arange(len(lengths), device=lengths.device),
            limit=limit if max_target is None else limit.clamp(max=max_target),
            log_probs=log_probs,
            finished=torch.zeros_like(lengths),
            best=torch.full_like(log_probs[:, 0], -math.inf),
        )

    def _candidates(self, live: Live, log_probs: Float[Tensor, "sentences beams vocab"], length: int) -> Candidates:
        totals = live.log_probs[:, :, None] + log_probs
        totals[:, :, PAD] = -math.inf
        totals[:, :, BOS] = -math.inf
        closing = live.limit == length
        if closing.any():
            only_eos = torch.full_like(totals, -math.inf)
            only_eos[:, :, EOS] = totals[:, :, EOS]
            totals = torch.where(closing[:, None, None], only_eos, totals)
        best, index = totals.flatten(1).topk(2 * self.beam_size)
        vocab = totals.shape[2]
        return Candidates(best, index // vocab, index % vocab)

    def _finish(
        self,
        found: list[list[Hypothesis]],
        live: Live,
        candidates: Candidates,
        history: Int[Tensor, "rows length"],
        length: int,
    ) -> Live:
        """Move the candidates that end in EOS among the first `beam_size` to `found`."""
        log_probs = candidates.log_probs[:, : self.beam_size]
        ending = (candidates.tokens[:, : self.beam_size] == EOS) & (log_probs > -math.inf)
        sentences, ranks = ending.nonzero(as_tuple=True)
        rows = sentences * self.beam_size + candidates.parents[sentences, ranks]
        penalty = self._penalty(length)
        for sentence, log_prob, ids in zip(
            live.sentence[sentences].tolist(), log_probs[sentences, ranks].tolist(), history[rows].tolist(), strict=True
        ):
            found[sentence].append(Hypothesis(ids, log_prob, log_prob / penalty))
        scores = log_probs.masked_fill(~ending, -math.inf) / penalty
        return live._replace(
            finished=live.finished + ending.sum(1), best=torch.maximum(live.best, scores.amax(1).to(live.best.dtype))
        )

    def _unfinished(self, candidates: Candidates, ending: Bool[Tensor, "sentences candidates"]) -> Candidates:
        """The candidates that do not end in EOS first, otherwise in order: at most `beam_size` of them end."""
        order = ending.byte().argsort(dim=1, stable=True)
        return Candidates(*(part.gather(1, order) for part in candidates))

    def _done(self, live: Live, length: int) -> Bool[Tensor, " sentences"]:
        """Sentences that are full, at their longest output, or whose live hypotheses can score no higher than the best.

        Log-probabilities only fall. A score is highest when they stay as they are and the penalty is the largest within
        reach: that of the longest output, or of the next token where alpha is negative.
        """
        reach = live.limit if self.length_penalty >= 0 else torch.full_like(live.limit, length + 1)
        bound = live.log_probs[:, 0] / ((5 + reach) / 6) ** self.length_penalty
        return (live.finished >= self.beam_size) | (live.limit <= length) | (live.best >= bound)

    def _penalty(self, length: int) -> float:
        return float(((5 + length) / 6) ** self.length_penalty)

    def _ranked(self, index: int, hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        if not hypotheses:
            raise ValueError(
                f"Sentence {index} of the batch has no translation: the model's log-probabilities are NaN or -inf; "
                "check its weights, or search in float32."
            )
        return sorted(hypotheses, key=lambda hypothesis: hypothesis.score, reverse=True)[: self.beam_size]
