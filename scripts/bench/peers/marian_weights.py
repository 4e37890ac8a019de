"""Writes a run's weights as a Marian model, so that Marian's search can be timed on the same model.

  python -m scripts.bench.peers.marian_weights RUN OUT

OUT gets model.npz and vocab.spm for Marian 1.12. The run must be a pre-norm Transformer with layer norms and a joint
vocabulary. Three differences need care:

- A pre-norm decoder of Marian's `type: transformer` does not normalize earlier positions; `transformer-new` does.
- Marian's sinusoids have different frequencies, so ours are written as trained position embeddings. With trained
  positions, Marian does not scale the word embeddings, so they are written already scaled.
- Marian's decoder starts from the vector 0 instead of BOS, so the embedding of BOS is added to position 0.
"""

import argparse
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor, nn

from nmt.attention import MultiHeadAttention
from nmt.exports.folding import POSITIONS, Projection, folded, require_plain_transformer
from nmt.models.embeddings import sinusoids
from nmt.models.transformer_layers import FeedForward
from nmt.runs.load import load_run
from nmt.text import BOS, PAD
from scripts.mistakes import report_mistakes

ENCODER, DECODER = "TransformerBatchEncoder->encoder", "TransformerBatchDecoder->decoder"
LAYERS = {ENCODER: "TransformerEncoderLayer", DECODER: "TransformerDecoderLayerWithCrossAttention"}
NEVER = -1e9
"""Bias of pieces that a search must not choose. Marian excludes <unk> by itself."""


def arrays(model: Any) -> dict[str, np.ndarray]:
    """The weights of a pre-norm Transformer under Marian's names."""
    embeddings = model.target_embedding.weight.detach()
    scaled = embeddings * math.sqrt(model.dim)
    positions = sinusoids(torch.arange(POSITIONS), model.dim)
    begun = positions.clone()
    begun[0] += scaled[BOS]
    bias = torch.zeros(1, len(embeddings))
    bias[0, [PAD, BOS]] = NEVER
    found = {
        "encoder_Wemb": scaled,
        "decoder_Wemb": scaled,
        "decoder_ff_logit_out_Wt": embeddings,
        "decoder_ff_logit_out_b": bias,
        f"{ENCODER}->positionEmbedding->embeddings": positions,
        f"{DECODER}->positionEmbedding->embeddings": begun,
        **norm(f"{ENCODER}->postprocessor", model.encoder_norm),
        **norm(f"{DECODER}->postprocessor", model.decoder_norm),
    }
    for index, layer in enumerate(model.encoder):
        place = layer_name(ENCODER, index)
        found |= attention(
            f"{place}->selfAttentionBlock", "selfAttention", layer.attention, layer.around_attention.norm
        )
        found |= feed_forward(f"{place}->filterBlock", layer.feed_forward, layer.around_ffn.norm)
    for index, layer in enumerate(model.decoder):
        place = layer_name(DECODER, index)
        found |= attention(
            f"{place}->autoRegressiveBlock", "selfAttention", layer.attention, layer.around_attention.norm
        )
        found |= attention(f"{place}->crossAttentionBlock", "crossAttention", layer.cross, layer.around_cross.norm)
        found |= feed_forward(f"{place}->filterBlock", layer.feed_forward, layer.around_ffn.norm)
    return {name: tensor.detach().float().contiguous().numpy() for name, tensor in found.items()}


def layer_name(side: str, index: int) -> str:
    return f"{side}->layers->at({index})->as<marian::nn::{LAYERS[side]}>()"


def attention(block: str, name: str, part: MultiHeadAttention, before: nn.Module) -> dict[str, Tensor]:
    found = norm(f"{block}->preprocessor", before)
    for letter, projection in zip("qkvo", folded(part), strict=False):
        found |= linear(f"{block}->{name}->{letter}Proj", projection)
    return found


def feed_forward(block: str, net: FeedForward, before: nn.Module) -> dict[str, Tensor]:
    parts = zip(("LinearReluDropout", "Linear"), (net.inner, net.outer), strict=True)
    found = norm(f"{block}->preprocessor", before)
    for index, (kind, part) in enumerate(parts):
        found |= linear(f"{block}->layers->at({index})->as<marian::nn::{kind}>()", Projection(part.weight, part.bias))
    return found


def linear(name: str, projection: Projection) -> dict[str, Tensor]:
    return {f"{name}->weight": projection.weight.T, f"{name}->bias": projection.bias}


def norm(name: str, part: nn.Module) -> dict[str, Tensor]:
    return {f"{name}->norm->{kind}": tensor for kind, tensor in part.named_parameters()}


def options(model: Any) -> dict[str, Any]:
    """The model's part of Marian's configuration."""
    first = model.encoder[0]
    return {
        "type": "transformer-new",
        "dim-emb": model.dim,
        "dim-vocabs": [len(model.target_embedding.weight)] * 2,
        "enc-depth": len(model.encoder),
        "dec-depth": len(model.decoder),
        "transformer-dim-ffn": first.feed_forward.inner.out_features,
        "transformer-heads": first.attention.num_heads,
        "transformer-ffn-activation": "relu",
        "transformer-ffn-depth": 2,
        "transformer-preprocess": "n",
        "transformer-postprocess": "da",
        "transformer-postprocess-emb": "d",
        "transformer-postprocess-top": "n",
        "transformer-train-position-embeddings": True,
        "transformer-decoder-autoreg": "self-attention",
        "tied-embeddings": False,
        "tied-embeddings-src": False,
        "tied-embeddings-all": False,
        "max-length": POSITIONS,
        "version": "v1.12.42",
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args(arguments)
    trained = load_run(given.run, "cpu")
    model = require_plain_transformer(trained, "Marian")
    if not (model.norm_first and trained.tokenizers.joint and isinstance(model.encoder_norm, nn.LayerNorm)):
        raise ValueError(
            f"{given.run} is not a pre-norm Transformer with layer norms and a joint vocabulary: train one with "
            "model=transformer model.norm_first=true."
        )
    text = yaml.safe_dump(options(model)).encode() + b"\0"
    given.out.mkdir(parents=True, exist_ok=True)
    np.savez(given.out / "model.npz", **arrays(model), **{"special:model.yml": np.frombuffer(text, dtype=np.int8)})
    shutil.copyfile(trained.run.path / "tokenizer.model", given.out / "vocab.spm")


if __name__ == "__main__":
    report_mistakes(main)
