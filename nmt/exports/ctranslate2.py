"""Exports a Transformer as a CTranslate2 model, and translates with CTranslate2's beam search in place of ours."""

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ctranslate2
import numpy as np
import torch
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import Activation
from jaxtyping import Bool, Int
from torch import Tensor, nn

from nmt.attention import MultiHeadAttention
from nmt.decoding.beam import BeamSearch
from nmt.decoding.state import Decodable, Hypothesis, Search
from nmt.errors import Mistake
from nmt.exports.damage import DamagedExport
from nmt.exports.folding import POSITIONS, Folded, Projection, folded, require_plain_transformer
from nmt.models.embeddings import sinusoids
from nmt.models.norms import ScaleNorm
from nmt.models.transformer_layers import FeedForward
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun
from nmt.text import PAD, Tokenizer
from nmt.text.tokenizer import BOS, EOS, UNK

ctranslate2.set_log_level(logging.ERROR)


def write_ctranslate2(trained: LoadedRun, folder: Path, quantization: str) -> None:
    """Writes the run's model, vocabularies and SentencePiece models to an existing folder.

    Raises Mistake for a model that CTranslate2 does not support.
    """
    model = require_plain_transformer(trained, "ctranslate2")
    layers: Any = model.encoder, model.decoder  # nn.ModuleList does not know the class of its modules
    scale_norm = isinstance(layers[0][0].around_attention.norm, ScaleNorm)
    spec = TransformerSpec.from_config(
        (len(model.encoder), len(model.decoder)),
        layers[0][0].attention.num_heads,
        pre_norm=model.norm_first,
        activation=Activation.RELU,
        rms_norm=scale_norm,
        alignment_layer=-1,
        alignment_heads=0,  # the mean of all heads
    )
    # CTranslate2's own position encodings have all sines first, and start at position 1.
    positions = _array(sinusoids(torch.arange(POSITIONS), model.dim))
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = True
        side.position_encodings.encodings = positions.copy()
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.weight)
    spec.decoder.embeddings.weight = _array(model.target_embedding.weight)
    spec.decoder.projection.weight = _array(model.output.weight)
    if model.norm_first:
        _write_norm(spec.encoder.layer_norm, model.encoder_norm, model.dim)
        _write_norm(spec.decoder.layer_norm, model.decoder_norm, model.dim)
    for target, layer in zip(spec.encoder.layer, layers[0], strict=True):
        _write_self_attention(target.self_attention, layer.attention)
        _write_norm(target.self_attention.layer_norm, layer.around_attention.norm, model.dim)
        _write_feed_forward(target.ffn, layer.feed_forward)
        _write_norm(target.ffn.layer_norm, layer.around_ffn.norm, model.dim)
    for target, layer in zip(spec.decoder.layer, layers[1], strict=True):
        _write_self_attention(target.self_attention, layer.attention)
        _write_norm(target.self_attention.layer_norm, layer.around_attention.norm, model.dim)
        _write_cross_attention(target.attention, layer.cross)
        _write_norm(target.attention.layer_norm, layer.around_cross.norm, model.dim)
        _write_feed_forward(target.ffn, layer.feed_forward)
        _write_norm(target.ffn.layer_norm, layer.around_ffn.norm, model.dim)
    source, target_pieces = (_pieces(tokenizer) for tokenizer in trained.tokenizers)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target_pieces)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = (source[i] for i in (UNK, BOS, EOS))
    spec.config.decoder_start_token = source[BOS]
    spec.config.add_source_eos = True
    if scale_norm:
        spec.config.layer_norm_epsilon = 1e-12
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    spec.save(str(folder))
    RunDirectory(folder).write_tokenizers(trained.tokenizers, trained.direction)


def _write_self_attention(spec: Any, attention: MultiHeadAttention) -> None:
    parts = folded(attention)
    _write_linear(spec.linear[0], parts.query, parts.key, parts.value)
    _write_linear(spec.linear[1], parts.output)


def _write_cross_attention(spec: Any, attention: MultiHeadAttention) -> None:
    parts: Folded = folded(attention)
    _write_linear(spec.linear[0], parts.query)
    _write_linear(spec.linear[1], parts.key, parts.value)
    _write_linear(spec.linear[2], parts.output)


def _write_feed_forward(spec: Any, net: FeedForward) -> None:
    for target, linear in ((spec.linear_0, net.inner), (spec.linear_1, net.outer)):
        _write_linear(target, Projection(linear.weight, linear.bias))


def _write_linear(spec: Any, *parts: Projection) -> None:
    """Writes projections of the same input as one projection, with their rows stacked."""
    spec.weight = _array(torch.cat([part.weight for part in parts]))
    spec.bias = _array(torch.cat([part.bias for part in parts]))


def _write_norm(spec: Any, norm: nn.Module, dim: int) -> None:
    """Writes a layer norm, or ScaleNorm's g x / |x| as an RMS norm, which divides by |x| / sqrt(dim)."""
    if isinstance(norm, ScaleNorm):
        spec.gamma = np.full(dim, float(norm.length.detach()) / math.sqrt(dim), np.float32)
    elif isinstance(norm, nn.LayerNorm):
        spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)
    else:
        raise Mistake(f"ctranslate2 supports only layer_norm and scale_norm, not norm={type(norm).__name__}: use onnx.")


def _array(tensor: Tensor) -> np.ndarray:
    """A copy in float32; CTranslate2 quantizes its arrays in place."""
    return np.array(tensor.detach().float().cpu().numpy(), copy=True, order="C")


def _pieces(tokenizer: Tokenizer) -> list[str]:
    return tokenizer.pieces(range(tokenizer.size))


class CTranslate2Model:
    """A model in CTranslate2's format, with the vocabularies of its run.

    Raises DamagedExport, naming the folder, if CTranslate2 cannot load it.
    """

    max_source: int | None = POSITIONS
    max_target: int | None = POSITIONS
    training = False
    device = torch.device("cpu")
    """The device of the ids that are passed to it."""

    def __init__(self, folder: Path, trained: LoadedRun, threads: int) -> None:
        try:
            self.translator = ctranslate2.Translator(
                str(folder), device=trained.device.type, compute_type="default", inter_threads=1, intra_threads=threads
            )
        except RuntimeError as error:
            raise DamagedExport(f"CTranslate2 cannot load {folder} ({error}): export the run again.") from error
        source, target = trained.tokenizers
        self._source, self._target = _pieces(source), _pieces(target)
        self._target_ids = {piece: number for number, piece in enumerate(self._target)}

    def train(self, mode: bool = True) -> "CTranslate2Model":
        return self

    def forced_log_probs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """log p of each target piece and of EOS, in nats. The ids contain neither BOS nor EOS."""
        scored = self.translator.score_batch(
            [self.source_pieces_of(ids) for ids in sources],
            [self.target_pieces_of(ids) for ids in targets],
            max_batch_size=2048,
            batch_type="tokens",
            max_input_length=0,  # CTranslate2 imposes no limit
        )
        return [list(each.log_probs) for each in scored]

    def source_pieces_of(self, ids: Sequence[int]) -> list[str]:
        return [self._source[i] for i in ids]

    def target_pieces_of(self, ids: Sequence[int]) -> list[str]:
        return [self._target[i] for i in ids]

    def target_ids_of(self, pieces: Sequence[str]) -> list[int]:
        return [self._target_ids[piece] for piece in pieces]

    def encode(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(_NO_STEPS)

    def start(self, *args: Any) -> Any:
        raise NotImplementedError(_NO_STEPS)

    def step(self, *args: Any) -> Any:
        raise NotImplementedError(_NO_STEPS)

    def attending_step(self, *args: Any) -> Any:
        raise NotImplementedError(_NO_STEPS)


_NO_STEPS = "CTranslate2 runs a whole search at once and cannot run single steps."


class _Scored(NamedTuple):
    ids: list[int]
    log_prob: float


class CTranslate2Search:
    """A BeamSearch that CTranslate2 runs without a length penalty, because its penalty differs from ours.

    Our length penalty then ranks the hypotheses. Raises Mistake for settings that CTranslate2 does not support.
    """

    def __init__(self, model: CTranslate2Model, search: Search) -> None:
        if not isinstance(search, BeamSearch):
            raise Mistake(
                f"engine=ctranslate2 supports only beam search, not search={type(search).__name__.lower()}: use "
                "engine=torch or onnx."
            )
        if search.coverage_penalty:
            raise Mistake(
                f"search.coverage_penalty is {search.coverage_penalty}, which engine=ctranslate2 does not support: set "
                "it to 0, or use engine=torch or onnx."
            )
        self.model, self.beam = model, search
        self.constraints = search.constraints

    @property
    def n_best(self) -> int:
        return self.beam.n_best

    @property
    def rows_per_sentence(self) -> int:
        return self.beam.rows_per_sentence

    def __call__(
        self,
        model: Decodable,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        prefix: Int[Tensor, "sentences prefix"] | None = None,
    ) -> list[list[Hypothesis]]:
        """Between 1 and `n_best` hypotheses per sentence, best first, each beginning with its row of `prefix`."""
        begins = source.new_empty(len(source), 0) if prefix is None else prefix
        most = [limit - 1 for limit in self.constraints.longest(source_mask, self.model.max_target, begins).tolist()]
        lengths = source_mask.sum(dim=1).tolist()
        sources = [row[: length - 1] for row, length in zip(source.tolist(), lengths, strict=True)]
        starts = [[piece for piece in row if piece != PAD] for row in begins.tolist()]
        found = self._search(sources, starts, max(most))
        # CTranslate2 has one length limit for the whole batch. In practice, only translations stuck in a repetition
        # exceed their sentence's own limit; those sentences are searched again.
        longer = [i for i, hypotheses in enumerate(found) if any(len(each.ids) > most[i] for each in hypotheses)]
        for limit in {most[i] for i in longer}:
            again = [i for i in longer if most[i] == limit]
            shorter = self._search([sources[i] for i in again], [starts[i] for i in again], limit)
            for index, hypotheses in zip(again, shorter, strict=True):
                found[index] = hypotheses
        return self._ranked(sources, found, most)

    def _search(
        self, sources: Sequence[Sequence[int]], starts: Sequence[Sequence[int]], most: int
    ) -> list[list[_Scored]]:
        """The hypotheses that CTranslate2 finds, with at most `most` pieces before EOS."""
        model = self.model
        if most < 1:  # CTranslate2 writes at least one piece
            return [[_Scored([], sum(row))] for row in model.forced_log_probs(sources, [[]] * len(sources))]
        found = model.translator.translate_batch(
            [model.source_pieces_of(ids) for ids in sources],
            [model.target_pieces_of(ids) for ids in starts] if any(starts) else None,
            beam_size=self.beam.beam_size,
            num_hypotheses=self.beam.beam_size,
            length_penalty=0,
            no_repeat_ngram_size=self.constraints.no_repeat_ngram,
            max_input_length=0,
            min_decoding_length=self.constraints.min_length - 1,
            max_decoding_length=most,
            return_scores=True,
        )
        before = [0.0] * len(sources)  # log p of the prefix, which CTranslate2's scores leave out
        if any(starts):
            before = [sum(each[:-1]) for each in model.forced_log_probs(sources, starts)]
        return [
            [
                _Scored(model.target_ids_of(pieces), log_prob + given)
                for pieces, log_prob in zip(each.hypotheses, each.scores, strict=True)
            ]
            for each, given in zip(found, before, strict=True)
        ]

    def _ranked(
        self, sources: Sequence[Sequence[int]], found: Sequence[Sequence[_Scored]], most: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence with the scores of our search, best first."""
        # CTranslate2 could block these pieces, but would then change the probabilities of all other pieces.
        usual = [[each for each in beam if not {PAD, UNK, BOS} & set(each.ids)] or [*beam] for beam in found]
        # Score these again: a hypothesis cut at the maximum length has no EOS, and when CTranslate2 blocks pieces, it
        # scales up the probabilities of all others.
        places = [
            (sentence, rank)
            for sentence, beam in enumerate(usual)
            for rank, each in enumerate(beam)
            if self._blocks_pieces or len(each.ids) == most[sentence]
        ]
        if places:
            rows = self.model.forced_log_probs(
                [sources[sentence] for sentence, _ in places], [usual[sentence][rank].ids for sentence, rank in places]
            )
            for (sentence, rank), row in zip(places, rows, strict=True):
                usual[sentence][rank] = usual[sentence][rank]._replace(log_prob=sum(row))
        complete = [
            [Hypothesis(ids, log_prob, log_prob / self.beam.length_factor(len(ids) + 1)) for ids, log_prob in beam]
            for beam in usual
        ]
        return [sorted(beam, key=lambda each: -each.score)[: self.n_best] for beam in complete]

    @property
    def _blocks_pieces(self) -> bool:
        return self.constraints.no_repeat_ngram > 0 or self.constraints.min_length > 1
