"""scripts/studies/map_gallery.py: one picture with a panel for each run."""

import numpy as np
import pytest
import torch
from jobs import run_settings

from nmt.config.nodes import make
from nmt.errors import Mistake
from nmt.models import VocabularySizes
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun
from nmt.text import Tokenizer, TokenizerPair, train_tokenizer
from scripts.studies import map_gallery


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """Replaces the run directory by an untrained model."""
    lines = ["one two three four five six seven", "một hai ba bốn năm sáu bảy"] * 5
    tokenizer = Tokenizer(train_tokenizer(lines, kind="bpe", size=293, character_coverage=1.0))
    settings = run_settings("model=luong")
    model = make(settings.model)(vocabulary=VocabularySizes(293, 293, joint=True)).eval()
    run = LoadedRun(RunDirectory(tmp_path), settings, TokenizerPair(tokenizer, tokenizer), model, torch.device("cpu"))
    monkeypatch.setattr(map_gallery, "load_run", lambda *_: run)


def test_a_panel_has_the_weights_of_every_target_piece(trained, tmp_path):
    panel = map_gallery.panel("dot", tmp_path, "one two three", "một hai ba")
    assert panel.weights.shape == (len(panel.target), len(panel.source))
    assert panel.source[-1] == panel.target[-1] == "</s>"
    # A float32 softmax: a sum of as many terms as there are pieces, twice.
    np.testing.assert_allclose(panel.weights.sum(axis=1), 1, rtol=2 * len(panel.source) * np.finfo(np.float32).eps)


def test_draws_one_picture_of_all_runs(trained, tmp_path, capsys):
    out = tmp_path / "gallery.png"
    pair = ["--source", "one two", "--target", "một hai"]
    map_gallery.main([*pair, "--out", str(out), "a=x", "b=y", "c=z", "d=w"])
    assert out.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out == f"{out}\n"


def test_what_cannot_be_drawn_is_refused(trained, tmp_path):
    pair = ["--source", "one", "--target", "một", "--out", str(tmp_path / "x.png")]
    with pytest.raises(Mistake, match="Cannot read 'run': write NAME=RUN_DIR"):
        map_gallery.main([*pair, "run"])
    with pytest.raises(Mistake, match="must not be empty or longer than the model accepts"):
        map_gallery.panel("dot", tmp_path, "", "một")
