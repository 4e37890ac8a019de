import json
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.evaluation.maps import Recorder, write_maps

SOURCE, TARGET = ["▁a", "b", "▁c"], ["▁x"]


def recorded() -> tuple[Recorder, dict[tuple[str, int], torch.Tensor]]:
    """A batch of 2, of 5 source and 7 target tokens with padding, in 2 layers of 3 heads; layers come out of order."""
    recorder, shown = Recorder(), {}
    for site, rows, columns in (("encoder_self", 5, 5), ("decoder_self", 7, 7), ("cross", 7, 5)):
        for layer in (1, 0):
            weights = torch.rand(2, 3, rows, columns, requires_grad=True)
            recorder(site, layer, weights)
            shown[site, layer] = weights.detach()
    return recorder, shown


def test_maps_are_cut_to_the_lengths_of_the_sentence_and_layers_are_in_order() -> None:
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


def test_rows_carry_the_piece_read_and_the_piece_predicted() -> None:
    maps = {item.site: item for item in recorded()[0].sentence(0, SOURCE, TARGET)}
    source = [*SOURCE, "</s>"]
    assert (maps["cross"].inputs, maps["cross"].outputs) == (["<s>", "▁x"], ["▁x", "</s>"])
    assert maps["cross"].columns == source
    assert maps["decoder_self"].columns == ["<s>", "▁x"]
    assert maps["encoder_self"].inputs == maps["encoder_self"].outputs == maps["encoder_self"].columns == source


def test_the_file_holds_the_maps_to_six_decimals(tmp_path: Path) -> None:
    maps = recorded()[0].sentence(0, SOURCE, TARGET)
    write_maps(tmp_path / "1.json", maps)
    stored = json.loads((tmp_path / "1.json").read_text(encoding="utf-8"))
    assert set(stored) == {"encoder_self", "decoder_self", "cross"}
    for item in maps:
        site = stored[item.site]
        assert (site["inputs"], site["outputs"], site["columns"]) == (item.inputs, item.outputs, item.columns)
        np.testing.assert_allclose(site["weights"], item.weights, rtol=0, atol=5.1e-7)
    assert (
        max(len(number) for number in (tmp_path / "1.json").read_text().split("[")[-1].rstrip("]}\n").split(",")) <= 8
    )


def test_bf16_weights_are_kept_as_numbers() -> None:
    recorder = Recorder()
    recorder("cross", 0, torch.full((1, 1, 2, 3), 0.5, dtype=torch.bfloat16))
    assert recorder.site("cross", 0).tolist() == [[[[0.5] * 3] * 2]]


def test_a_second_forward_pass_is_refused() -> None:
    recorder, _ = recorded()
    with pytest.raises(ValueError, match="Layer 1 of cross was recorded before"):
        recorder("cross", 1, torch.zeros(2, 3, 7, 5))


def test_an_unknown_site_names_those_there_are() -> None:
    recorder = Recorder()
    recorder("cross", 0, torch.zeros(1, 1, 2, 3))
    with pytest.raises(ValueError, match="No weights of site 'encoder_self' were recorded; there are cross"):
        recorder.site("encoder_self", 0)
