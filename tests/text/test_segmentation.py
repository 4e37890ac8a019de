"""Random segmentations: their distribution, and the same ones with the same seed in every process."""

import json
import math
import pickle
import subprocess
import sys
from collections import Counter
from random import Random

import pytest

from nmt.text import Tokenizer, normalize, train_tokenizer
from nmt.text.segmentation import BPEDropout, Pieces, UnigramSampling, words

WORD, ALPHA, DRAWS = "▁têngan", 0.4, 20_011


def lines(number: int = 211) -> list[str]:
    draw = Random(5)
    return [
        " ".join("".join(draw.choices("aeêntg", k=draw.randrange(1, 7))) for _ in range(draw.randrange(1, 11)))
        for _ in range(number)
    ]


@pytest.fixture(scope="module")
def unigram() -> Tokenizer:
    return Tokenizer(train_tokenizer(lines(), kind="unigram", size=311, character_coverage=1.0))


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return Tokenizer(train_tokenizer(lines(), kind="bpe", size=311, character_coverage=1.0))


@pytest.fixture(params=["unigram", "bpe"])
def tokenizer(request) -> Tokenizer:
    return request.getfixturevalue(request.param)


def strange_texts() -> list[str]:
    draw = Random(7)
    texts = ["".join(map(chr, draw.choices(range(1, 0xD800), k=13))) for _ in range(211)]
    return [normalize(text) for text in texts] + ["", "a", "<s> </s> <pad> <unk> <0x41>", "ế" * 29, "猫 🙂"]


def frequencies(draws) -> dict[tuple[str, ...], float]:
    return {found: count / DRAWS for found, count in Counter(map(tuple, draws)).items()}


def near(frequency: float, chance: float) -> bool:
    """Whether a frequency is within four standard deviations, plus one draw."""
    return abs(frequency - chance) < 4 * (chance * (1 - chance) / DRAWS) ** 0.5 + 1 / DRAWS


def dropout_chances(symbols: tuple[str, ...], scores: dict[str, float], alpha: float) -> Counter:
    """The outcomes of algorithm 1 of Provilkov et al. from here: the best k merges are skipped, the next is done."""
    places = [place for place in range(len(symbols) - 1) if symbols[place] + symbols[place + 1] in scores]
    places.sort(key=lambda place: (-scores[symbols[place] + symbols[place + 1]], place))
    chances = Counter({symbols: alpha ** len(places)})
    for skipped, place in enumerate(places):
        merged = (*symbols[:place], symbols[place] + symbols[place + 1], *symbols[place + 2 :])
        for outcome, chance in dropout_chances(merged, scores, alpha).items():
            chances[outcome] += alpha**skipped * (1 - alpha) * chance
    return chances


def test_bpe_dropout_has_the_probabilities_of_its_algorithm(bpe):
    pieces, random = Pieces(bpe._processor), Random(3)
    found = frequencies(BPEDropout(pieces).draw(WORD, ALPHA, random) for _ in range(DRAWS))
    expected = dropout_chances(tuple(WORD), pieces.scores, ALPHA)
    assert sum(expected.values()) == pytest.approx(1)
    assert len(expected) > 5
    assert set(found) <= set(expected)
    assert all(near(found.get(key, 0), chance) for key, chance in expected.items())


def test_unigram_sampling_has_the_probabilities_of_sentencepiece(unigram):
    best = unigram._processor.nbest_encode_as_proto(WORD[1:], nbest_size=512).nbests
    weights = {tuple(piece.piece for piece in one.pieces): math.exp(ALPHA * one.score) for one in best}
    sampling, random = UnigramSampling(Pieces(unigram._processor)), Random(3)
    found = frequencies(sampling.draw(WORD, ALPHA, random) for _ in range(DRAWS))
    assert len(weights) > 5
    assert set(found) <= set(weights)
    total = sum(weights.values())
    assert all(near(found.get(key, 0), weight / total) for key, weight in weights.items())


def test_without_dropout_the_merges_are_those_of_sentencepiece(bpe):
    texts = lines() + strange_texts()
    assert [bpe.resample(bpe.encode(text), 0.0, 1) for text in texts] == bpe.encode_all(texts)


def test_a_large_alpha_gives_the_best_segmentation(unigram):
    for ids in unigram.encode_all(lines() + strange_texts()):
        # There may be several best ones; one that is worse by 30 / 1e4 has e^-30 of their probability.
        drawn = unigram.resample(ids, 1e4, 1)
        assert sum(map(unigram._processor.get_score, drawn)) == pytest.approx(
            sum(map(unigram._processor.get_score, ids)), abs=30 / 1e4
        )


def test_skipping_all_merges_leaves_characters(bpe):
    assert bpe.pieces(bpe.resample(bpe.encode("tên nga"), 1.0, 1)) == list("▁tên▁nga")


@pytest.mark.parametrize("alpha", [0.1, 0.9])
def test_sampling_keeps_every_text(tokenizer, alpha):
    texts = lines() + strange_texts()
    drawn = [tokenizer.resample(tokenizer.encode(text), alpha, seed) for seed, text in enumerate(texts)]
    assert [tokenizer.decode(ids) for ids in drawn] == texts


def test_the_probabilities_of_a_long_word_do_not_underflow(unigram):
    ids = unigram.encode("tên" * 997)
    assert unigram.decode(unigram.resample(ids, 1.0, 3)) == "tên" * 997


def test_a_character_without_a_piece_is_less_likely_than_a_piece_with_it(unigram):
    pieces, random = Pieces(unigram._processor), Random(3)
    assert pieces.unknown == min(pieces.scores.values()) - 10
    pieces.scores, pieces.unknown = {"▁": -3.0, "x": -4.0, "qx": -8.0}, -18.0
    found = Counter(tuple(UnigramSampling(pieces).draw("▁qx", 1.0, random)) for _ in range(2_003))
    assert set(found) <= {("▁", "qx"), ("▁", "q", "x")}
    assert found["▁", "qx"] > 1_990


def test_sampling_makes_sentences_longer(tokenizer):
    plain = tokenizer.encode_all(lines())
    drawn = [tokenizer.resample(ids, 0.3, seed) for seed, ids in enumerate(plain)]
    assert sum(map(len, drawn)) > 1.05 * sum(map(len, plain))


def test_the_cache_of_words_changes_no_draws(unigram, monkeypatch):
    ids = [unigram.encode(line) for line in lines()]
    kept = [unigram.resample(line, ALPHA, 3) for line in ids]
    monkeypatch.setattr("nmt.text.segmentation._WORDS_KEPT", 2)
    forgetful = Tokenizer(unigram.model)
    assert [forgetful.resample(line, ALPHA, 3) for line in ids] == kept
    assert forgetful._sampling._kept_sums.cache_info().currsize == 2


def test_a_seed_draws_the_same_segmentations_in_every_process(tokenizer):
    ids = [tokenizer.encode(line) for line in lines(23)]
    here = [tokenizer.resample(line, ALPHA, seed) for seed, line in enumerate(ids)]
    code = (
        "import json, pickle, sys; tokenizer, ids, alpha = pickle.load(sys.stdin.buffer);"
        "print(json.dumps([tokenizer.resample(line, alpha, seed) for seed, line in enumerate(ids)]))"
    )
    given = pickle.dumps((tokenizer, ids, ALPHA))
    there = subprocess.run([sys.executable, "-c", code], input=given, stdout=subprocess.PIPE, check=True).stdout
    assert json.loads(there) == here
    assert here != [tokenizer.resample(line, ALPHA, 100 + seed) for seed, line in enumerate(ids)]


def test_words_keep_every_space():
    assert words("a  b ") == ["▁a", "▁", "▁b", "▁"]
    assert words("") == []
