"""Attention maps as arguments for BertViz (Vig 2019)."""

from collections.abc import Sequence
from typing import TypedDict

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.maps.attention_map import SentenceMaps

Layers = tuple[Float[Tensor, "1 heads rows columns"], ...]


class EncoderDecoder(TypedDict, total=False):
    """The arguments of bertviz.model_view and bertviz.head_view for an encoder-decoder."""

    encoder_attention: Layers
    decoder_attention: Layers
    cross_attention: Layers
    encoder_tokens: Sequence[str]
    decoder_tokens: Sequence[str]


_ARGUMENTS = {
    "encoder_self": "encoder_attention",
    "decoder_self": "decoder_attention",
    "cross": "cross_attention",
}


def arguments(sentence: SentenceMaps) -> EncoderDecoder:
    """The arguments for `bertviz.model_view(**arguments(sentence))`, with a tensor for each layer of each site.

    The decoder tokens are the decoder's inputs, BOS first.
    """
    labels = {item.site: item for item in sentence.maps}
    found: EncoderDecoder = {
        "encoder_tokens": labels["cross"].columns,
        "decoder_tokens": labels["cross"].inputs,
    }
    for site, item in labels.items():
        found[_ARGUMENTS[site]] = tuple(torch.from_numpy(layer).unsqueeze(0) for layer in item.weights)  # type: ignore[literal-required]
    return found
