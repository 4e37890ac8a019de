"""Samples follow the model's probabilities, and depend only on the seed and the source."""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt.decoding.constraints import Constraints
from nmt.decoding.id_search import Hypothesis
from nmt.decoding.sampling import Sampling
from nmt.decoding.stepwise import Step
from nmt.errors import CheckFailed, Mistake
from nmt.text.tokenizer import BOS, EOS, PAD

SOURCES = [[4, 6, EOS], [5, EOS], [4, 4, 7, 5, EOS], [5, EOS]]


def sample(model: Any, sources: list[list[int]], prefix: list[list[int]] | None = None, **settings: Any) -> Any:
    width = max(map(len, sources))
    source = torch.tensor([ids + [PAD] * (width - len(ids)) for ids in sources])
    return Sampling(**settings)(model, source, source != PAD, None if prefix is None else torch.tensor(prefix))


def first_pieces(found: list[Hypothesis]) -> Counter[int]:
    return Counter(hypothesis.ids[0] if hypothesis.ids else EOS for hypothesis in found)


def test_sorting_in_parts_changes_no_sample(markov: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model = markov(vocab=8, seed=1)
    whole = sample(model, SOURCES, samples=3)
    monkeypatch.setattr("nmt.decoding.sampling._DRAWN_AT_ONCE", 1)
    assert sample(model, SOURCES, samples=3) == whole


@pytest.mark.parametrize(
    ("settings", "kept", "temperature"),
    [
        ({}, 5, 1.0),
        ({"temperature": 0.5}, 5, 0.5),
        ({"temperature": 2.0}, 5, 2.0),
        ({"top_k": 2}, 2, 1.0),
        ({"top_p": 0.55}, 2, 1.0),
        ({"top_p": 0.3}, 1, 1.0),
        ({"top_k": 3, "top_p": 0.75}, 3, 1.0),  # 2 if top_p counted only the 3 pieces of top_k
        ({"top_k": 2, "top_p": 0.75}, 2, 1.0),
    ],
)
def test_pieces_are_drawn_in_proportion_to_their_probability(
    markov: Callable[..., Any], settings: dict[str, Any], kept: int, temperature: float
) -> None:
    """Within four standard errors; of the probabilities 0.4, 0.3, 0.15, 0.1 and 0.05 the `kept` highest remain."""
    probabilities = {5: 0.4, EOS: 0.3, 4: 0.15, 7: 0.1, 6: 0.05}
    model = markov(vocab=8, seed=1)
    model.table[:] = -torch.inf
    for piece, probability in probabilities.items():
        model.table[:, piece] = math.log(probability)
    number = 4000
    counts = first_pieces(
        sample(model, [[4, EOS]], samples=number, constraints=Constraints(max_length=2), **settings)[0]
    )
    powers = {piece: p ** (1 / temperature) for piece, p in list(probabilities.items())[:kept]}
    assert set(counts) == set(powers)
    for piece, power in powers.items():
        expected = power / sum(powers.values())
        error = math.sqrt(expected * (1 - expected) / number)
        assert abs(counts[piece] / number - expected) <= 4 * error + 1e-12


def test_later_pieces_depend_on_the_prefix_of_their_sample(markov: Callable[..., Any]) -> None:
    model, source, number = markov(vocab=7, seed=3), [4, EOS], 6000
    found = sample(model, [source], samples=number)[0]
    pairs = Counter(tuple(hypothesis.ids[:2]) for hypothesis in found if len(hypothesis.ids) >= 2)
    for pair, count in pairs.most_common(3):
        log_probs = [model.next_log_probs(source, list(pair[:t])).clone() for t in range(2)]
        for step in log_probs:
            step[[PAD, BOS]] = -torch.inf
        expected = math.prod(float(step.softmax(-1)[piece]) for step, piece in zip(log_probs, pair, strict=True))
        assert abs(count / number - expected) <= 4 * math.sqrt(expected * (1 - expected) / number)


def test_log_prob_is_the_model_s_at_any_temperature(markov: Callable[..., Any]) -> None:
    model = markov(vocab=11, seed=4)
    for source, found in zip(SOURCES, sample(model, SOURCES, samples=3, temperature=0.7, top_k=4), strict=True):
        for hypothesis in found:
            whole = [*hypothesis.ids, EOS]
            steps = [float(model.next_log_probs(source, whole[:t])[piece]) for t, piece in enumerate(whole)]
            assert hypothesis.log_prob == hypothesis.score == pytest.approx(sum(steps))
            assert not {PAD, BOS} & set(hypothesis.ids)
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


def test_the_batch_changes_no_sample_and_equal_sources_get_equal_samples(markov: Callable[..., Any]) -> None:
    model = markov(vocab=11, seed=5)
    together = sample(model, SOURCES, samples=3)
    assert together == [sample(model, [source], samples=3)[0] for source in SOURCES]
    assert together[1] == together[3]
    assert sample(model, SOURCES, samples=3, seed=2) != together


def test_samples_keep_to_their_prefix_and_maximum_length(markov: Callable[..., Any]) -> None:
    model = markov(vocab=11, seed=6)
    model.table[:, EOS] = -50
    found = sample(
        model, SOURCES, [[9, 4], [7, PAD], [PAD, PAD], [5, 5]], samples=2, constraints=Constraints(max_length=6)
    )
    for prefix, hypotheses in zip([[9, 4], [7], [], [5, 5]], found, strict=True):
        for hypothesis in hypotheses:
            assert hypothesis.ids[: len(prefix)] == prefix
            assert len(hypothesis.ids) == 5


def test_a_model_without_valid_probabilities_is_refused(markov: Callable[..., Any]) -> None:
    model = markov(vocab=7, seed=12)
    model.table[:] = math.nan
    with pytest.raises(CheckFailed, match=r"NaN or -inf, or search\.constraints block all pieces: check the model"):
        sample(model, [[4, EOS]])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"samples": 0}, "search.samples is 0; it must be from 1 to 10000"),
        ({"samples": 10**9}, "search.samples is 1000000000; it must be from 1 to 10000"),
        ({"temperature": 0.0}, "search.temperature is 0.0; it must be from 0.001 to 1000"),
        ({"temperature": math.inf}, "search.temperature is inf; it must be from 0.001 to 1000"),
        ({"top_k": -1}, "search.top_k is -1; it must be at least 0"),
        ({"top_p": 0.0}, "search.top_p is 0.0; it must be above 0 and at most 1"),
        ({"top_p": 1.1}, "search.top_p is 1.1; it must be above 0 and at most 1"),
        ({"seed": -1}, "search.seed is -1"),
    ],
)
def test_settings_out_of_range_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        Sampling(**setting)


def test_an_observer_sees_the_pieces_of_every_sample(markov: Callable[..., Any]) -> None:
    histories: dict[int, list[list[int]]] = {}

    def observe(step: Step) -> None:
        for sentence, pieces in zip(step.sentence.tolist(), step.tokens.tolist(), strict=True):
            histories.setdefault(sentence, []).append(pieces)

    source = torch.tensor([[4, 6, EOS], [5, 7, EOS]])
    samples = Sampling(samples=3)(markov(vocab=11, seed=4), source, source != PAD, observe=observe)
    for sentence, hypotheses in enumerate(samples):
        seen = [[piece for piece in pieces if piece != PAD] for pieces in zip(*histories[sentence], strict=True)]
        assert sorted(seen) == sorted([*hypothesis.ids, EOS] for hypothesis in hypotheses)
