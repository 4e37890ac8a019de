"""An ensemble is a model whose probabilities are the mean of its members'."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt.decoding.beam import BeamSearch
from nmt.decoding.ensemble import Ensemble
from nmt.errors import Mistake
from nmt.text.tokenizer import EOS

SOURCE = torch.tensor([[4, 6, EOS], [5, 7, EOS]])


def found(model: Any) -> Any:
    return BeamSearch(beam_size=3, n_best=3)(model, SOURCE, torch.ones_like(SOURCE, dtype=torch.bool))


def test_an_ensemble_of_one_or_of_equal_models_equals_that_model(markov: Callable[..., Any]) -> None:
    alone = found(markov(vocab=13, seed=1))
    for number in (1, 3):
        together = found(Ensemble([markov(vocab=13, seed=1) for _ in range(number)]))
        for one, other in zip(alone, together, strict=True):
            assert [hypothesis.ids for hypothesis in other] == [hypothesis.ids for hypothesis in one]
            assert [hypothesis.score for hypothesis in other] == pytest.approx([h.score for h in one])


def test_each_step_averages_the_probabilities_and_weights(markov: Callable[..., Any]) -> None:
    models = [markov(vocab=13, seed=seed) for seed in (1, 2, 3)]
    together = Ensemble(models)
    memory = together.encode(SOURCE, torch.ones_like(SOURCE, dtype=torch.bool))
    state = together.start(memory, 2)
    tokens = torch.tensor([[4, 5], [6, 7]])
    steps = [model.attending_step(tokens, *parts) for model, *parts in zip(models, state, memory, strict=True)]
    log_probs, weights, _ = together.attending_step(tokens, state, memory)
    torch.testing.assert_close(log_probs.exp(), sum(found.exp() for found, _, _ in steps) / 3)
    torch.testing.assert_close(weights, sum(found for _, found, _ in steps) / 3)
    torch.testing.assert_close(together.step(tokens, state, memory)[0], log_probs)


def test_the_smallest_limit_of_its_members_applies_and_all_change_their_mode(markov: Callable[..., Any]) -> None:
    together = Ensemble([markov(vocab=13, seed=1, max_target=limit) for limit in (None, 7, 5)])
    assert (together.max_source, together.max_target) == (None, 5)
    assert together.train(False) is together
    assert not together.training
    assert not any(model.training for model in together.models)


def test_an_empty_ensemble_is_refused() -> None:
    with pytest.raises(Mistake, match="An ensemble of 0 models cannot translate; load at least one model"):
        Ensemble([])
