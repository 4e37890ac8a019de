"""Attributions of trained runs as maps: records, settings, files and the command."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from attention_runs import RUNS, job
from grids import covering

import nmt
from nmt.commands.align import align
from nmt.commands.attribute import attribute
from nmt.config.shared_settings import AttributionMethod
from nmt.data.cache import file_digest
from nmt.errors import Mistake
from nmt.insight.attribution_maps import METHODS, chosen_method, contrast_id
from nmt.maps.map_files import MapFolder
from nmt.runs.load import load_run
from nmt.text import Tokenizer, train_tokenizer

SOURCES, TARGETS = ["one two three.", "", "three"], ["một hai ba.", "ba", "ba"]


def test_the_configuration_knows_every_method() -> None:
    assert list(METHODS) == list(get_args(AttributionMethod))


# Every method with every model is compared in test_attribution.py.
@pytest.mark.parametrize(
    ("run", "method"), covering([(run, method) for run in RUNS for method in METHODS], pairs=False), indirect=["run"]
)
def test_weights_are_the_shares_of_the_absolute_attributions(run: str, method: str) -> None:
    first, empty, third = nmt.load(run, device="cpu").attribute(SOURCES, TARGETS, method=method)
    attention = nmt.load(run, device="cpu").attend(SOURCES, TARGETS)[0]
    cross = next(item for item in attention if item.site == "cross")
    assert empty == []
    for [item] in (first, third):
        assert item.attribution is not None
        size = np.abs(item.attribution)
        np.testing.assert_allclose(item.weights.sum(axis=-1), 1, atol=1e-5)
        np.testing.assert_allclose(item.weights * size.sum(axis=-1, keepdims=True), size, atol=1e-6)
    [item] = first
    assert (item.site, item.inputs, item.outputs, item.columns) == ("cross", cross.inputs, cross.outputs, cross.columns)
    assert item.weights.shape == (1, 1, *cross.weights.shape[2:])


def test_without_a_target_the_best_translation_is_explained(run: str) -> None:
    pretrained = nmt.load(run, device="cpu")
    [[item]], [attended] = (pretrained.attribute(SOURCES[:1], method="occlusion"), pretrained.attend(SOURCES[:1]))
    assert item.outputs == next(other.outputs for other in attended if other.site == "cross")


def test_the_command_writes_the_maps_and_every_format(run: str, tmp_path: Path) -> None:
    formats = ["png", "csv", "alignments", "diagnostics", "viewer"]
    settings = {"run_dir": run, "input": "in.en", "target": "in.vi", "out": str(tmp_path), "device": "cpu"}
    attribute(job("attribute", method="occlusion", contrast="h", formats=formats, **settings))
    folder = MapFolder(tmp_path)
    assert folder.lines == [1, 3]
    made_from, site = folder.manifest["made_from"], folder.manifest["sites"]["cross"]
    assert (made_from["method"], made_from["contrast"], made_from["steps"]) == ("occlusion", "h", None)
    assert (site["layers"], site["heads"]) == (1, 1)
    assert site["queries"] == "log p of the piece that the step predicts, minus log p(h)"
    [expected] = nmt.load(run, device="cpu").attribute(SOURCES[:1], TARGETS[:1], method="occlusion", contrast="h")[0]
    item = next(folder.sentences([1])).site("cross")
    # Differences of log-probabilities of some -6 nats in float32; a batch of other sentences rounds them differently.
    np.testing.assert_allclose(item.attribution, expected.attribution, atol=1e-5)
    size = np.abs(item.attribution)
    np.testing.assert_allclose(item.weights * size.sum(axis=-1, keepdims=True), size, atol=1e-6)
    for name in ("pictures/00001.cross.png", "csv/00001.csv", "alignments/argmax.align", "heads.csv", "viewer.html"):
        assert (tmp_path / name).stat().st_size
    assert f"{run}, occlusion" in (tmp_path / "viewer.html").read_text(encoding="utf-8")
    with pytest.raises(Mistake, match="already contains maps; choose another folder, or replace them"):
        attribute(job("attribute", method="occlusion", formats=[], **settings))


def test_damaged_attributions_are_refused(here: Path, tmp_path: Path) -> None:
    settings = {"run_dir": "maps_luong", "input": "in.en", "target": "in.vi", "out": str(tmp_path), "device": "cpu"}
    attribute(job("attribute", method="occlusion", formats=[], **settings))
    file = tmp_path / "maps" / "00001.npz"
    with np.load(file) as arrays:
        changed = {**arrays, "00001/cross.attribution": arrays["00001/cross.attribution"][..., 1:]}
    np.savez_compressed(file, **changed)
    folder = MapFolder(tmp_path)
    for entry in folder.manifest["sentences"]:
        entry["sha256"] = file_digest(file)
    with pytest.raises(Mistake, match=r"00001\.npz is damaged: export the maps again"):
        list(folder.sentences([1]))


def test_the_alignment_error_of_an_attribution_is_in_its_own_files(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    align(job("align", run_dir="maps_transformer", device="cpu", method="value_zeroing", out=str(tmp_path)))
    output = capsys.readouterr().out
    assert "| predicts | 0       | 0" in output or "| predicts |       0 |      0 |" in output
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"alignment_value_zeroing.csv", "alignment_links_value_zeroing.csv"}


def test_a_contrast_is_a_word_of_one_piece_or_a_label() -> None:
    tokenizer = Tokenizer(train_tokenizer(["hai ba"] * 9, kind="bpe", size=271, character_coverage=1.0))
    assert tokenizer.pieces(tokenizer.encode("hai ba")) == ["\u2581hai", "\u2581ba"]
    for label in ("\u2581hai", "</s>", "a"):
        assert tokenizer.pieces([contrast_id(tokenizer, label)]) == [label]
    assert contrast_id(tokenizer, "hai") == contrast_id(tokenizer, "\u2581hai")
    with pytest.raises(
        Mistake, match=r"contrast is 'hai ba', which is 2 pieces, ▁hai ▁ba; it must be one piece of the target"
    ):
        contrast_id(tokenizer, "hai ba")
    with pytest.raises(Mistake, match="contrast is '', which is not a piece; it must be one piece"):
        contrast_id(tokenizer, "")


def test_settings_that_a_method_cannot_use_are_refused(here: Path) -> None:
    trained = load_run(Path("maps_luong"), "cpu")
    with pytest.raises(Mistake, match=r"Unknown method 'oclusion'\. Did you mean 'occlusion'\? Available: grad"):
        chosen_method(trained, "oclusion")
    with pytest.raises(Mistake, match="method=value_zeroing takes no contrast, because it compares vectors; leave"):
        chosen_method(trained, "value_zeroing", contrast="h")
    with pytest.raises(Mistake, match="steps has no effect with method=occlusion; leave it out, or use method=int"):
        chosen_method(trained, "occlusion", steps=4)
    with pytest.raises(Mistake, match="steps is 0; it must be at least 1, and the default is 8"):
        chosen_method(trained, "integrated_gradients", steps=0)
    with pytest.raises(Mistake, match="method=gradient_x_input needs gradients, which precision=int8 does not support"):
        chosen_method(trained._replace(precision="int8"), "gradient_x_input")
    with pytest.raises(Mistake, match=r"method=integrated_gradients needs precision=float32; use that, or method=occ"):
        chosen_method(trained._replace(precision="bfloat16"), "integrated_gradients")


def test_mistakes_on_the_command_line_are_refused(here: Path, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"Unknown method 'integrated_gradient'\. Did you mean 'integrated_gradients'"):
        job("attribute", run_dir="r", input="i", out="o", method="integrated_gradient")
    (here / "short.vi").write_text("ba\n", encoding="utf-8")
    settings = {"run_dir": "maps_luong", "input": "in.en", "out": str(tmp_path / "new"), "device": "cpu"}
    with pytest.raises(Mistake, match=r"in\.en has 3 lines but short\.vi has 1; line n"):
        attribute(job("attribute", target="short.vi", **settings))
    with pytest.raises(Mistake, match=r"contrast is 'hai ba', which is \d+ pieces"):
        attribute(job("attribute", contrast="hai ba", **settings))
    assert not (tmp_path / "new").exists()
