"""Maps by forced decoding: which pairs have some, and what the log says about the others."""

import logging
from pathlib import Path

import pytest
import torch
from jobs import run_settings

from nmt.config.nodes import make
from nmt.data.corpus import Pairs
from nmt.insight.forced_maps import first_ranked, forced_maps
from nmt.maps.links import Alignment
from nmt.models import VocabularySizes
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun
from nmt.scoring.alignment_error import Gold, alignment_error
from nmt.text.tokenizer import Tokenizer, TokenizerPair, train_tokenizer

LINE = "a b c d e f g h i j k l m n o p"


@pytest.fixture(scope="module")
def run() -> LoadedRun:
    """An untrained Transformer whose encoder and cross attention read 5 pieces, its decoder 7."""
    tokenizer = Tokenizer(train_tokenizer([LINE] * 3, kind="bpe", size=293))
    overrides = ["scorer@encoder_self=location", "encoder_self.scorer.max_length=5", "scorer@decoder_self=location"]
    settings = run_settings(*overrides, "decoder_self.scorer.max_length=7", "model.num_layers=1")
    torch.manual_seed(1)
    model = make(settings.model)(vocabulary=VocabularySizes(tokenizer.size, tokenizer.size, joint=True))
    pair = TokenizerPair(tokenizer, tokenizer)
    return LoadedRun(RunDirectory(Path("unused")), settings, pair, model.eval(), torch.device("cpu"))


def test_only_pairs_with_two_sides_that_can_be_read_have_maps(run: LoadedRun) -> None:
    """Including EOS, 4 and 6 pieces are the most."""
    sources = [[5] * 4, [5] * 5, [5] * 4, [5], []]
    targets = [[6] * 6, [6], [6] * 7, [6], [6]]
    found = forced_maps(run, first_ranked(sources, targets), batch_tokens=100)
    assert sorted((maps.line, maps.rank) for maps in found) == [(1, 1), (4, 1)]


def test_the_alignment_error_rate_tells_what_it_leaves_out(run: LoadedRun, caplog: pytest.LogCaptureFixture) -> None:
    first = Alignment(frozenset({(0, 0)}), frozenset({(0, 0)}))
    gold = Gold(Pairs(["a b", LINE], ["a b", LINE]), [first, first])
    with caplog.at_level(logging.WARNING):
        assert 0 <= alignment_error(run, gold, None, batch_tokens=100).rates.aer <= 1
    assert "leaves out 1 of 2 pairs" in caplog.text
