import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from grids import covering

from nmt.decoding.beam import BeamSearch, Candidates, _keep_rows
from nmt.decoding.constraints import Constraints
from nmt.decoding.id_search import Hypothesis
from nmt.errors import CheckFailed, Mistake
from nmt.kernels import wide_top_k
from nmt.text.tokenizer import BOS, EOS, PAD, UNK

ALPHAS = (-2.0, 0.0, 0.6, 3.0)
SOURCES = [[4, 6, EOS], [5, EOS], [4, 4, 7, 5, EOS], [EOS], [6, 5, 4, 4, EOS], [7, 7, EOS]]


def search(
    model: Any,
    sources: list[list[int]],
    prefixes: list[list[int]] | None = None,
    constraints: dict[str, Any] | None = None,
    **settings: Any,
) -> list[list[Hypothesis]]:
    source = padded(sources)
    beam = BeamSearch(constraints=Constraints(**(constraints or {})), **settings)
    return beam(model, source, source != PAD, None if prefixes is None else padded(prefixes))


def padded(rows: list[list[int]]) -> torch.Tensor:
    return torch.tensor([ids + [PAD] * (max(map(len, rows)) - len(ids)) for ids in rows])


def log_prob(model: Any, source: list[int], ids: list[int]) -> float:
    return sum(float(model.next_log_probs(source, ids[:t])[token]) for t, token in enumerate([*ids, EOS]))


def penalty(length: int, alpha: float) -> float:
    return ((5 + length) / 6) ** alpha


def coverage(model: Any, source: list[int], ids: list[int]) -> float:
    """sum_s log min(sum_t a_ts, 1), over the source without its EOS, and without the sentences before it."""
    sums = sum(model.next_weights(source, ids[:t]) for t in range(len(ids) + 1))
    first = max((s + 1 for s in range(len(source) - 1) if source[s] == EOS), default=0)
    return sum(math.log(min(max(float(sums[s]), 1e-3), 1)) for s in range(first, len(source) - 1))


def allowed(ids: list[int], token: int, limit: int, shortest: int, ngram: int, prefix: list[int]) -> bool:
    length, grams = len(ids) + 1, [(*ids, token)[t : t + ngram] for t in range(max(0, len(ids) + 2 - ngram))]
    if length == limit or token in (PAD, BOS):
        return token == EOS
    if len(ids) < len(prefix) and prefix[len(ids)] != PAD:
        return token == prefix[len(ids)]
    if token == EOS and any(prefix[length:]):  # a later piece is fixed
        return False
    return (token != EOS or length >= shortest) and not (ngram and grams and grams[-1] in grams[:-1])


def plain_beam_search(
    model: Any,
    source: list[int],
    beam: int,
    limit: int,
    alpha: float = 0.6,
    beta: float = 0.0,
    shortest: int = 1,
    ngram: int = 0,
    prefix: list[int] | None = None,
) -> list[Hypothesis]:
    """The definition of beam search in plain lists, for one sentence, without the early end."""
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[Hypothesis] = []
    for length in range(1, limit + 1):
        candidates = []
        for total, ids in live:
            for token, value in enumerate(model.next_log_probs(source, ids).tolist()):
                if value > -math.inf and allowed(ids, token, limit, shortest, ngram, prefix or []):
                    candidates.append((total + value, [*ids, token]))
        best = sorted(candidates, reverse=True)[: 2 * beam]
        for total, ids in best[:beam]:
            if ids[-1] == EOS:
                score = total / penalty(length, alpha) + (beta and beta * coverage(model, source, ids[:-1]))
                finished.append(Hypothesis(ids[:-1], total, score))
        live = [(x, ids) for x, ids in best if ids[-1] != EOS][:beam]
        ahead = max(total for total, _ in live) / penalty(length, alpha) if live else -math.inf
        if len(finished) >= beam and (beam == 1 or ahead <= max(found.score for found in finished)):
            break
    return sorted(finished, key=lambda hypothesis: -hypothesis.score)


@pytest.mark.parametrize("beta", [0.0, 0.4])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_wide_beam_on_three_words_finds_what_exhaustive_search_finds(
    markov: Callable[..., Any], seed: int, alpha: float, beta: float
) -> None:
    model, source = markov(vocab=7, seed=seed), [5, 4, EOS]
    sentences = [list(ids) for n in range(4) for ids in itertools.product([4, 5, 6], repeat=n)]
    scored = [
        (log_prob(model, source, ids) / penalty(len(ids) + 1, alpha) + beta * coverage(model, source, ids), ids)
        for ids in sentences
    ]
    settings = {"length_penalty": alpha, "coverage_penalty": beta, "constraints": {"max_length": 4}}
    best = search(model, [source], beam_size=41, **settings)[0][0]
    assert best.ids == max(scored)[1]
    assert best.score == pytest.approx(max(scored)[0])


def test_earlier_sentences_have_no_coverage_penalty(markov: Callable[..., Any]) -> None:
    """With context=concatenate, they are in front of the source, each with an EOS."""
    model, sources = markov(vocab=7, seed=4), [[5, EOS, 6, 4, EOS, 4, 5, EOS], [4, 6, EOS]]
    found = search(model, sources, beam_size=4, coverage_penalty=0.7, length_penalty=0.0, n_best=4)
    for source, hypotheses in zip(sources, found, strict=True):
        for each in hypotheses:
            assert each.score == pytest.approx(each.log_prob + 0.7 * coverage(model, source, each.ids))


@pytest.mark.parametrize("seed", range(5))
def test_beam_1_takes_the_best_token_at_each_step(markov: Callable[..., Any], seed: int) -> None:
    model, source = markov(vocab=11, seed=seed), [4, 9, EOS]
    ids: list[int] = []
    while len(ids) < 2 * 3 + 10 - 1:
        scores = model.next_log_probs(source, ids)
        scores[[PAD, BOS]] = -math.inf
        if scores.argmax() == EOS:
            break
        ids.append(int(scores.argmax()))
    (greedy,) = search(model, [source], beam_size=1)[0]
    assert greedy.ids == ids
    assert greedy.log_prob == pytest.approx(log_prob(model, source, ids))


SETTINGS = {
    **{f"alpha {alpha}": ({"length_penalty": alpha}, {}, {"alpha": alpha}) for alpha in ALPHAS},
    "coverage": ({"coverage_penalty": 0.7}, {}, {"beta": 0.7}),
    "shortest": ({}, {"min_length": 7}, {"shortest": 7}),
    "no word twice": ({}, {"no_repeat_ngram": 1}, {"ngram": 1}),
    "no two words twice": ({}, {"no_repeat_ngram": 2, "min_length": 9}, {"ngram": 2, "shortest": 9}),
    "all": (
        {"length_penalty": 0.9, "coverage_penalty": 0.2},
        {"no_repeat_ngram": 3, "min_length": 4},
        {"alpha": 0.9, "beta": 0.2, "ngram": 3, "shortest": 4},
    ),
}
PREFIXES = [[9, 4], [PAD, 8, PAD, PAD, 4], [5, 5, 5], [PAD, PAD, 11], [6, 12], []]
"""PAD leaves a position free."""


@pytest.mark.parametrize(("name", "prefixed", "beam"), covering(itertools.product(SETTINGS, [False, True], [1, 2, 5])))
def test_equals_the_definition_in_lists(markov: Callable[..., Any], name: str, prefixed: bool, beam: int) -> None:
    """The best hypothesis with the early end, and all of them if n_best asks for all."""
    settings, constraints, oracle = SETTINGS[name]
    prefixes = PREFIXES if prefixed else None
    for seed in range(2):
        model = markov(vocab=13, seed=seed, sharpness=5.0)
        shared = {"prefixes": prefixes, "beam_size": beam, "constraints": constraints, **settings}
        best, all_of_them = (search(model, SOURCES, n_best=n, **shared) for n in (1, beam))
        for index, source in enumerate(SOURCES):
            prefix = prefixes[index] if prefixes else None
            expected = plain_beam_search(model, source, beam, 2 * len(source) + 10, prefix=prefix, **oracle)[:beam]
            assert [hypothesis.ids for hypothesis in all_of_them[index]] == [each.ids for each in expected]
            assert [h.score for h in all_of_them[index]] == pytest.approx([h.score for h in expected])
            assert best[index] == all_of_them[index][:1]


def test_equals_the_definition_in_lists_with_many_pieces(markov: Callable[..., Any]) -> None:
    """With so many scores, the best are found by chunks."""
    beam, vocab = 5, 300
    assert beam * vocab >= 2 * (2 * beam) * wide_top_k.CHUNK
    model = markov(vocab=vocab, seed=1, sharpness=5.0)
    found = search(model, SOURCES, n_best=beam, beam_size=beam)
    for hypotheses, source in zip(found, SOURCES, strict=True):
        expected = plain_beam_search(model, source, beam, 2 * len(source) + 10)[:beam]
        assert [hypothesis.ids for hypothesis in hypotheses] == [each.ids for each in expected]
        assert [h.score for h in hypotheses] == pytest.approx([h.score for h in expected])


def test_a_long_prefix_raises_the_maximum_length(markov: Callable[..., Any]) -> None:
    prefix = [5, 6] * 8
    found = search(markov(vocab=13, seed=1), [[4, EOS]], [prefix], constraints={"max_length": 4})[0][0]
    assert found.ids == prefix
    late = [[PAD] * 8 + [5]]
    assert search(markov(vocab=13, seed=1), [[4, EOS]], late, constraints={"max_length": 4})[0][0].ids[8:] == [5]
    limited = search(markov(vocab=13, seed=1, max_target=6), [[4, EOS]], [prefix])[0][0]
    assert limited.ids == prefix[:5]


def test_min_length_overrides_the_maximum_from_the_source_length(markov: Callable[..., Any]) -> None:
    found = search(markov(vocab=13, seed=1), [[4, EOS]], constraints={"min_length": 41, "max_length": 41})
    assert len(found[0][0].ids) == 40


def test_n_best_does_not_change_the_best_ones(markov: Callable[..., Any]) -> None:
    for seed in range(5):
        model = markov(vocab=13, seed=seed, sharpness=5.0)
        found = [search(model, SOURCES, beam_size=5, n_best=n) for n in (1, 2, 5)]
        for one, two, five in zip(*found, strict=True):
            assert five[:1] == one == two[:1]
            assert five[:2] == two


@pytest.mark.parametrize("beam", [1, 3])
def test_a_batch_of_n_equals_n_batches_of_1(markov: Callable[..., Any], beam: int) -> None:
    model = markov(vocab=13, seed=5)
    assert search(model, SOURCES, beam_size=beam) == [search(model, [ids], beam_size=beam)[0] for ids in SOURCES]


def test_log_prob_and_score_cover_the_whole_sentence(markov: Callable[..., Any]) -> None:
    model = markov(vocab=13, seed=6)
    for source, found in zip(SOURCES, search(model, SOURCES, beam_size=3, n_best=3, length_penalty=0.6), strict=True):
        for hypothesis in found:
            assert hypothesis.log_prob == pytest.approx(log_prob(model, source, hypothesis.ids))
            assert hypothesis.score == pytest.approx(hypothesis.log_prob / penalty(len(hypothesis.ids) + 1, 0.6))
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        assert len({tuple(h.ids) for h in found}) == len(found) <= 3


def test_special_tokens_are_never_generated_even_when_they_are_likely(markov: Callable[..., Any]) -> None:
    model = markov(vocab=7, seed=7)
    model.table[:, [PAD, BOS]] = -0.01
    for found in search(model, SOURCES, beam_size=3):
        assert all(not {PAD, BOS, EOS} & set(hypothesis.ids) for hypothesis in found)


def test_without_eos_every_sentence_ends_at_its_own_maximum_length(markov: Callable[..., Any]) -> None:
    model = markov(vocab=7, seed=8)
    model.table[:, EOS] = -50.0
    found = search(model, SOURCES, beam_size=2, constraints={"max_length_ratio": 1.5, "max_length_offset": 3})
    assert [len(best.ids) + 1 for best, *_ in found] == [int(1.5 * len(ids) + 3) for ids in SOURCES]
    assert found[0][0].log_prob == pytest.approx(log_prob(model, SOURCES[0], found[0][0].ids))


def test_nothing_is_longer_than_the_model_can_read(markov: Callable[..., Any]) -> None:
    model = markov(vocab=13, seed=8, max_target=5)
    model.table[:, EOS] = -90.0
    found = search(model, SOURCES, beam_size=2)
    assert {len(hypothesis.ids) + 1 for hypotheses in found for hypothesis in hypotheses} == {5}


def test_an_eos_candidate_below_the_first_beam_ranks_does_not_finish(markov: Callable[..., Any]) -> None:
    model = markov(vocab=7, seed=9)
    # Ranks at the first step: 4, 5, EOS, 6; with a beam of 2 EOS is third, and the empty translation is not found.
    model.table[:] = torch.tensor([0, 0, 0, 0.2, 0.4, 0.3, 0.1]).log()
    found = search(model, [[4, EOS]], beam_size=2, n_best=2, length_penalty=0.0, constraints={"max_length": 2})[0]
    assert [hypothesis.ids for hypothesis in found] == [[4], [5]]
    assert search(model, [[4, EOS]], beam_size=3, length_penalty=0.0)[0][0].ids == []


def test_a_full_beam_does_not_end_the_search_while_a_better_hypothesis_is_unfinished(
    markov: Callable[..., Any],
) -> None:
    """Piece 4 is nearly certain three times over; EOS is the best of the unlikely pieces."""
    model = markov(vocab=7, seed=12)
    model.table[:] = torch.tensor([0, 0, 0, 0.02, 0.96, 0.01, 0.01]).log()
    model.table[4] = torch.tensor([0, 0, 0, 0.05, 0.93, 0.01, 0.01]).log()
    settings = {"beam_size": 2, "length_penalty": 1.0, "constraints": {"max_length": 6}}
    best = search(model, [[4, EOS]], **settings)[0][0]
    assert best.ids == [4, 4, 4, 4, 4]
    assert best == plain_beam_search(model, [4, EOS], beam=2, limit=6, alpha=1.0)[0]._replace(
        log_prob=pytest.approx(best.log_prob), score=pytest.approx(best.score)
    )


def test_greedy_search_ends_with_the_first_eos(markov: Callable[..., Any]) -> None:
    model = markov(vocab=7, seed=13)
    model.table[:] = torch.tensor([0, 0, 0, 0.41, 0.4, 0.1, 0.09]).log()
    for coverage_penalty in (0.0, 5.0):
        assert search(model, [[4, 5, EOS]], beam_size=1, coverage_penalty=coverage_penalty)[0][0].ids == []


def test_search_ends_as_soon_as_no_unfinished_hypothesis_can_win(markov: Callable[..., Any]) -> None:
    model = markov(vocab=7, seed=10)
    model.table[:] = torch.tensor([0, 0, 0, 0.9, 0.05, 0.03, 0.02]).log()
    assert [h.ids for h in search(model, [[4, EOS]], beam_size=5, length_penalty=0.0)[0]] == [[]]
    assert len(model.calls) == 1


def test_finished_sentences_leave_the_batch(markov: Callable[..., Any]) -> None:
    model = markov(vocab=13, seed=11)
    search(model, SOURCES, beam_size=3)
    sentences = [rows for rows, _ in model.calls]
    assert sentences[0] == len(SOURCES) > sentences[-1]
    assert sentences == sorted(sentences, reverse=True)
    assert all(states == 3 * rows for rows, states in model.calls)


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_a_model_without_valid_probabilities_is_refused(markov: Callable[..., Any], value: float) -> None:
    model = markov(vocab=7, seed=12)
    model.table[:] = value
    with pytest.raises(
        CheckFailed,
        match=r"^A sentence has no translation, because the model's log-probabilities are NaN or -inf, or "
        r"search\.constraints block all pieces: check the model's weights, search in float32, or relax the "
        r"constraints\.$",
    ):
        search(model, [[4, EOS]])


def test_constraints_that_block_every_piece_are_named(markov: Callable[..., Any]) -> None:
    """All four pieces have been used before the shortest length is reached."""
    constraints = {"no_repeat_ngram": 1, "min_length": 9, "max_length": 9}
    with pytest.raises(CheckFailed, match=r"search\.constraints block all pieces"):
        search(markov(vocab=8, seed=12), [[4, EOS]], constraints=constraints)


def test_probabilities_that_become_invalid_later_are_refused_too(markov: Callable[..., Any]) -> None:
    """Even if a hypothesis has finished before."""
    model = markov(vocab=7, seed=12)
    model.table[:] = torch.tensor([0, 0, 0, 0.1, 0.4, 0.3, 0.2]).log()
    whole = model.step

    def step(*arguments: Any) -> tuple[torch.Tensor, Any]:
        log_probs, state = whole(*arguments)
        return (log_probs * math.nan if len(model.calls) == 3 else log_probs), state

    model.step = step
    settings: dict[str, Any] = {"beam_size": 4, "length_penalty": 2.0}
    assert [] in [
        each.ids for each in search(model, [[4, EOS]], constraints={"max_length": 2}, n_best=4, **settings)[0]
    ]
    model.calls.clear()
    with pytest.raises(CheckFailed, match="log-probabilities are NaN"):
        search(model, [[4, EOS]], **settings)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"beam_size": 0}, "beam_size is 0"),
        ({"length_penalty": math.inf}, "length_penalty is inf"),
        ({"length_penalty": 1e6}, "length_penalty is 1000000.0; it must be from -10 to 10 .0 turns it off"),
        ({"length_penalty": math.nan}, "length_penalty is nan"),
        ({"coverage_penalty": 1e6}, "coverage_penalty is 1000000.0; it must be from 0 to 1000"),
        ({"constraints": {"max_length_ratio": 1e308}}, r"max_length_ratio is 1e.308; it must be from 0 to 1000"),
        ({"constraints": {"min_length": 10**6}}, "min_length is 1000000; it must be at most 100,000"),
        ({"coverage_penalty": -0.1}, "coverage_penalty is -0.1"),
        ({"n_best": 0}, "n_best is 0; it must be between 1 and search.beam_size, which is 5"),
        ({"n_best": 6}, "n_best is 6; it must be between 1 and search.beam_size, which is 5"),
        ({"constraints": {"max_length_ratio": -1.0}}, "constraints.max_length_ratio is -1"),
        ({"constraints": {"max_length_offset": 0}}, "constraints.max_length_offset is 0"),
        ({"constraints": {"min_length": 0}}, "constraints.min_length is 0; it must be a whole number of at least 1"),
        (
            {"constraints": {"min_length": 4, "max_length": 3}},
            "constraints.max_length is 3; it must be .* at least 4, which is search.constraints.min_length",
        ),
        ({"constraints": {"no_repeat_ngram": -1}}, "constraints.no_repeat_ngram is -1"),
    ],
)
def test_settings_out_of_range_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        search(None, [[EOS]], **setting)


def test_the_best_continuation_of_a_parent_keeps_its_row() -> None:
    torch.manual_seed(3)
    parents = torch.randint(5, (211, 5))
    log_probs, tokens = torch.randn(211, 5).sort(dim=1, descending=True).values, torch.arange(211 * 5).view(211, 5)
    settled = _keep_rows(Candidates(log_probs, parents, tokens))
    for row in range(211):
        before = [*zip(*(part[row].tolist() for part in (log_probs, parents, tokens)), strict=True)]
        after = [*zip(*(part[row].tolist() for part in settled), strict=True)]
        assert sorted(after) == sorted(before)
        for parent in set(parents[row].tolist()):
            assert after[parent] == max(each for each in before if each[1] == parent)


def test_unk_is_never_generated(markov: Callable[..., Any]) -> None:
    """Byte fallback can write any text, so UNK is never a target, however probable the model makes it."""
    model = markov(vocab=13, seed=1)
    model.table[:, UNK] = 1.0
    for beam_size in (1, 3):
        found = search(model, [[4, EOS], [5, 6, EOS]], beam_size=beam_size, constraints={"min_length": 4})
        assert all(len(hypothesis.ids) > 2 and UNK not in hypothesis.ids for each in found for hypothesis in each)
