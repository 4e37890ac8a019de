import numpy as np
import pytest
import torch

from nmt.attention import VisibleKeys
from nmt.errors import Mistake
from nmt.maps.attention_map import SentenceMaps
from nmt.maps.recorder import Recorder

SOURCE, TARGET = ["▁a", "b", "▁c"], ["▁x"]
EVERYTHING = VisibleKeys(torch.ones(1, 1, 1, 1, dtype=torch.bool))


def recorded() -> tuple[Recorder, dict[tuple[str, int], torch.Tensor]]:
    """A padded batch of 2 with 5 source and 7 target tokens, 2 layers, recorded out of order, and 3 heads."""
    recorder, shown = Recorder(), {}
    for site, rows, columns in (("encoder_self", 5, 5), ("decoder_self", 7, 7), ("cross", 7, 5)):
        for layer in (1, 0):
            weights = torch.rand(2, 3, rows, columns, requires_grad=True)
            recorder(site, layer, weights, EVERYTHING)
            shown[site, layer] = weights.detach()
    return recorder, shown


def test_maps_have_no_padding_and_layers_are_in_order() -> None:
    recorder, shown = recorded()
    maps = {item.site: item for item in recorder.sentence(1, SOURCE, TARGET)}
    assert {site: item.weights.shape for site, item in maps.items()} == {
        "encoder_self": (2, 3, 4, 4),
        "decoder_self": (2, 3, 2, 2),
        "cross": (2, 3, 2, 4),
    }
    for (site, layer), weights in shown.items():
        rows, columns = maps[site].weights.shape[2:]
        np.testing.assert_array_equal(maps[site].weights[layer], weights[1, :, :rows, :columns].numpy())


def test_rows_are_labeled_by_the_piece_read_and_the_piece_predicted() -> None:
    maps = {item.site: item for item in recorded()[0].sentence(0, SOURCE, TARGET)}
    source = [*SOURCE, "</s>"]
    assert (maps["cross"].inputs, maps["cross"].outputs) == (["<s>", "▁x"], ["▁x", "</s>"])
    assert maps["cross"].columns == source
    assert maps["decoder_self"].columns == ["<s>", "▁x"]
    assert maps["encoder_self"].inputs == maps["encoder_self"].outputs == maps["encoder_self"].columns == source


def test_a_local_window_is_recorded_with_center_mask_and_gaussian() -> None:
    recorder = Recorder()
    weights, mask = torch.rand(2, 3, 7, 5), torch.rand(2, 3, 7, 5) > 0.5
    center, log_prior = torch.rand(2, 3, 7, 1) * 4, -torch.rand(2, 3, 7, 5)
    recorder("cross", 0, weights, VisibleKeys(mask, center, log_prior))
    [item] = recorder.sentence(1, SOURCE, TARGET)
    assert item.local is not None
    np.testing.assert_array_equal(item.local.center[0], center[1, :, :2, 0])
    np.testing.assert_array_equal(item.local.allowed[0], mask[1, :, :2, :4])
    np.testing.assert_allclose(item.local.prior[0], log_prior[1, :, :2, :4].exp())


def test_a_window_without_a_gaussian_has_none_and_one_center_serves_all_heads() -> None:
    recorder = Recorder()
    mask, center = torch.rand(1, 1, 2, 4) > 0.5, torch.tensor([0, 1]).view(1, 1, 2, 1)
    recorder("cross", 0, torch.rand(1, 3, 2, 4), VisibleKeys(mask, center))
    [item] = recorder.sentence(0, SOURCE, TARGET)
    assert item.local is not None
    assert item.local.prior is None
    assert item.local.center.tolist() == [[[0, 1]] * 3]
    np.testing.assert_array_equal(item.local.allowed[0], mask[0].expand(3, -1, -1))


def test_bf16_weights_become_float32() -> None:
    recorder = Recorder()
    recorder("cross", 0, torch.full((1, 1, 2, 4), 0.5, dtype=torch.bfloat16), EVERYTHING)
    assert recorder.sentence(0, SOURCE, TARGET)[0].weights.tolist() == [[[[0.5] * 4] * 2]]


def test_a_second_forward_pass_is_refused() -> None:
    recorder, _ = recorded()
    with pytest.raises(ValueError, match="Layer 1 of cross is already recorded"):
        recorder("cross", 1, torch.zeros(2, 3, 7, 5), EVERYTHING)


def test_an_unknown_site_is_refused_with_the_known_ones() -> None:
    sentence = SentenceMaps(1, 1, SOURCE, TARGET, recorded()[0].sentence(0, SOURCE, TARGET))
    assert sentence.site("cross").site == "cross"
    with pytest.raises(Mistake, match="no maps at site 'self', only at encoder_self, decoder_self, cross"):
        sentence.site("self")
