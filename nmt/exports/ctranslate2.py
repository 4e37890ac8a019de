"""Exports a Transformer as a CTranslate2 model."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ctranslate2 import specs
from torch import Tensor, nn

from nmt.attention import MultiHeadAttention
from nmt.exports.damage import Unsupported
from nmt.exports.folding import Folded, Projection, folded, require_plain_transformer
from nmt.exports.positions import POSITIONS
from nmt.models.embeddings import sinusoids
from nmt.models.norms import ScaleNorm
from nmt.models.transformer_layers import FeedForward
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun
from nmt.text.tokenizer import BOS, EOS, UNK


def write_ctranslate2(run: LoadedRun, folder: Path, quantization: str) -> None:
    """Writes the run's model, vocabularies and SentencePiece models to an existing folder.

    Raises Unsupported for a model that CTranslate2 does not support.
    """
    model = require_plain_transformer(run, "ctranslate2")
    layers: Any = model.encoder, model.decoder  # nn.ModuleList does not know the class of its modules
    scale_norm = isinstance(layers[0][0].around_attention.norm, ScaleNorm)
    spec = specs.TransformerSpec.from_config(
        (len(model.encoder), len(model.decoder)),
        layers[0][0].attention.num_heads,
        pre_norm=model.norm_first,
        activation=specs.Activation.RELU,
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
    source, target = (tokenizer.pieces(range(tokenizer.size)) for tokenizer in run.tokenizers)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = (source[i] for i in (UNK, BOS, EOS))
    spec.config.decoder_start_token = source[BOS]
    spec.config.add_source_eos = True
    if scale_norm:
        spec.config.layer_norm_epsilon = 1e-12
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    spec.save(str(folder))
    RunDirectory(folder).write_tokenizers(run.tokenizers, run.direction)


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
        raise Unsupported(
            "ctranslate2 supports only norm@model=layer_norm and scale_norm, but the run uses "
            f"{type(norm).__name__}: use onnx.",
            limit="supports only norm@model=layer_norm and scale_norm",
        )


def _array(tensor: Tensor) -> np.ndarray:
    """A copy in float32; CTranslate2 quantizes its arrays in place."""
    return np.array(tensor.detach().float().cpu().numpy(), copy=True, order="C")
