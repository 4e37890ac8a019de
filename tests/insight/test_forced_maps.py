"""Maps by forced decoding: which pairs have some, and what the log says about the others."""

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from jobs import run_settings

from nmt.config.nodes import make
from nmt.data.corpus import Pairs
from nmt.errors import Mistake
from nmt.insight.cells import cells
from nmt.insight.forced_maps import first_ranked, forced_maps
from nmt.insight.provenance import described_sites
from nmt.maps.diagnostics import per_head, per_sentence
from nmt.maps.links import Alignment
from nmt.maps.map_files import write_maps
from nmt.models import VocabularySizes
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun
from nmt.scoring.alignment_error import Gold, alignment_error
from nmt.text.tokenizer import Tokenizer, TokenizerPair, train_tokenizer

LINE = "a b c d e f g h i j k l m n o p"


def untrained(*overrides: str) -> LoadedRun:
    """An untrained run on a vocabulary of letters."""
    tokenizer = Tokenizer(train_tokenizer([LINE] * 3, kind="bpe", size=293, character_coverage=1.0))
    settings = run_settings(*overrides)
    torch.manual_seed(1)
    model = make(settings.model)(vocabulary=VocabularySizes(tokenizer.size, tokenizer.size, joint=True))
    pair = TokenizerPair(tokenizer, tokenizer)
    return LoadedRun(RunDirectory(Path("unused")), settings, pair, model.eval(), torch.device("cpu"))


@pytest.fixture(scope="module")
def run() -> LoadedRun:
    """An untrained Transformer whose encoder and cross attention read 5 pieces, its decoder 7."""
    overrides = ["scorer@encoder_self=location", "encoder_self.scorer.max_length=5", "scorer@decoder_self=location"]
    return untrained(*overrides, "decoder_self.scorer.max_length=7", "model.num_layers=1")


def test_equal_weights_of_an_lstmn_on_all_that_its_rows_see_are_uniform(tmp_path: Path) -> None:
    """Row t sees the positions before t, so the first row has no weight and the second no choice."""
    lstmn = ["model=luong", "scorer=none", "encoder@model=lstmn", "decoder@model=lstmn", "model.num_layers=2"]
    run = untrained(*lstmn, "model.embedding_dim=8", "model.encoder_dim=8", "model.decoder_dim=8")
    pairs = first_ranked([[5] * 9, [5], [5] * 4], [[6], [6] * 9, [6] * 6])
    made = list(forced_maps(run, pairs, batch_tokens=100))
    for item in (item for sentence in made for item in sentence.maps if item.site != "cross"):
        seen = np.tril(np.ones(item.weights.shape[2:], dtype=bool), -1)
        np.testing.assert_array_equal(item.visible[0, 0], seen)
        np.testing.assert_array_equal(item.weights != 0, np.broadcast_to(seen, item.weights.shape))
    stored = list(write_maps(tmp_path, made, described_sites(run.model), {"lines": 3}).sentences())
    for sentences in (made, stored):
        rows = per_sentence(sentences)
        for row in [*rows, *per_head(rows)]:
            of_two_pieces = (
                row.site != "cross" and len(pairs[row.line - 1][2 if row.site == "encoder_self" else 3]) == 1
            )
            if row.line and of_two_pieces:
                assert np.isnan(row.values["uniformity"])
            elif row.site != "cross":
                assert row.values["uniformity"] == pytest.approx(1)
                assert row.dead in ("uniform", "sink")
    assert {row.dead for row in per_head(per_sentence(stored)) if row.site != "cross"} == {"uniform"}


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
    too_long = Gold(Pairs([LINE], ["a b"]), [first])
    with pytest.raises(
        Mistake, match=r"^None of the 1 pairs with an alignment can be measured, because one side of each"
    ):
        alignment_error(run, too_long, None, batch_tokens=100)
    assert alignment_error(run, gold, too_long, batch_tokens=100).reason.startswith("not chosen: ")


def test_a_row_of_an_lstmn_has_a_key_for_each_column() -> None:
    """The keys that the row does not see are those of the later positions."""
    lstmn = ["model=luong", "encoder@model=lstmn", "decoder@model=lstmn", "model.num_layers=1"]
    run = untrained(*lstmn, "model.embedding_dim=8", "model.encoder_dim=8", "model.decoder_dim=8")
    source, target = [5, 6, 7, 8], [6, 7, 8]
    [maps] = forced_maps(run, first_ranked([source], [target]), batch_tokens=100)
    for site in ("encoder_self", "decoder_self"):
        rows = [cells(run, source, target, site, layer=0, head=0, row=row) for row in range(4)]
        for index, row in enumerate(rows):
            size = len(row.columns)
            for part in (row.keys, row.scores, row.allowed, row.weights, row.values):
                assert len(part) == size
            assert row.allowed == [column < index for column in range(size)]
            np.testing.assert_allclose(row.weights, maps.site(site).weights[0, 0, index], rtol=1e-5, atol=1e-7)
            assert row.keys == rows[0].keys
