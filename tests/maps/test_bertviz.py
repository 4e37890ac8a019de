import numpy as np
import torch

from nmt.maps.attention_map import AttentionMap, SentenceMaps, site_labels
from nmt.maps.bertviz import arguments

LABELS = site_labels(["▁a", "▁b"], ["▁x"])
SIZES = {"encoder_self": (3, 3), "decoder_self": (2, 2), "cross": (2, 3)}


def test_the_arguments_are_a_tensor_for_each_layer_and_the_tokens_of_both_sides() -> None:
    draw = np.random.default_rng(1)
    maps = [
        AttentionMap(site, draw.random((5, 7, *size), dtype=np.float32), *LABELS[site]) for site, size in SIZES.items()
    ]
    found = arguments(SentenceMaps(1, 1, ["▁a", "▁b"], ["▁x"], maps))
    assert found["encoder_tokens"] == ["▁a", "▁b", "</s>"]
    assert found["decoder_tokens"] == ["<s>", "▁x"]
    for (site, size), name in zip(
        SIZES.items(), ("encoder_attention", "decoder_attention", "cross_attention"), strict=True
    ):
        layers = found[name]
        assert [tuple(layer.shape) for layer in layers] == [(1, 7, *size)] * 5, site
        assert torch.equal(layers[2][0], torch.from_numpy(maps[list(SIZES).index(site)].weights[2]))


def test_a_recurrent_model_has_cross_attention_alone() -> None:
    maps = [AttentionMap("cross", np.ones((1, 1, 2, 3), dtype=np.float32), *LABELS["cross"])]
    found = arguments(SentenceMaps(1, 1, ["▁a", "▁b"], ["▁x"], maps))
    assert set(found) == {"cross_attention", "encoder_tokens", "decoder_tokens"}
