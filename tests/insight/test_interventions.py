"""Laws of interventions on the attention of trained runs, for all three models."""

from pathlib import Path

import numpy as np
import pytest

import nmt
from nmt.attention.edits import Given, Off, OfHead, Scaled, Uniform
from nmt.attention.normalizers import Softmax, Sparsemax
from nmt.errors import Mistake
from nmt.insight.ablation import ABLATIONS
from nmt.insight.interventions import Intervention, InterventionEffect, intervene, intervened
from nmt.insight.sentence_pair import Decoded
from nmt.runs.load import LoadedRun, load_run
from nmt.runs.search import build_translator
from nmt.scoring.forced_scores import log_probs
from nmt.text import PAD, normalize

LINE = "one two three four ."
TARGET = "một hai ba bốn ."


@pytest.fixture
def trained(run: str) -> LoadedRun:
    return load_run(Path(run), "cpu")


def weights(decoded: Decoded, site: str = "cross") -> np.ndarray:
    [found] = [item.weights for item in decoded.maps if item.site == site]
    return found


def ids(trained: LoadedRun, line: str, target: str = "") -> tuple[list[int], list[int]]:
    return trained.tokenizers.source.encode(line), trained.tokenizers.target.encode(target)


def compared(trained: LoadedRun, *interventions: Intervention) -> InterventionEffect:
    source, target = ids(trained, LINE, TARGET)
    return intervene(trained, source, interventions, target)


def test_weights_replaced_by_themselves_change_no_bit(trained: LoadedRun) -> None:
    intact = compared(trained).intact
    same = [
        Intervention(Given(row.tolist()), site, layer, head, [step])
        for site in trained.model.sites
        for layer, heads in enumerate(weights(intact, site))
        for head, rows in enumerate(heads)
        for step, row in enumerate(rows)
    ]
    found = compared(trained, *same)
    assert found.forced.log_probs == found.intact.log_probs
    for site in trained.model.sites:
        np.testing.assert_array_equal(weights(found.forced, site), weights(found.intact, site))


@pytest.mark.usefixtures("check_annotations")
def test_a_blocked_word_has_no_weight_and_the_rest_keeps_the_sum(trained: LoadedRun) -> None:
    found = compared(trained, Intervention(Scaled([1], 0.0)))
    before, after = weights(found.intact), weights(found.forced)
    assert (after[..., 1] == 0).all()
    visible = np.delete(before, 1, axis=-1).sum(-1) > 0
    np.testing.assert_allclose(after.sum(-1)[visible][:1], before.sum(-1)[visible][:1], rtol=1e-5)


@pytest.mark.parametrize("step", [1, 3])
def test_an_edit_of_a_step_changes_nothing_before_it(trained: LoadedRun, step: int) -> None:
    for site in set(trained.model.sites) - {"encoder_self"}:
        found = compared(trained, Intervention(Uniform(), site, steps=[step]))
        assert found.forced.log_probs[:step] == found.intact.log_probs[:step]
        assert found.forced.log_probs[step:] != found.intact.log_probs[step:]
        np.testing.assert_array_equal(weights(found.forced)[:, :, :step], weights(found.intact)[:, :, :step])
        assert found.changed.pieces[:step] == found.intact.pieces[:step]


def test_a_search_makes_the_same_edit_as_forced_decoding(trained: LoadedRun) -> None:
    """The search's log-probability of what it found is that of forced decoding, so its steps were edited alike."""
    trained = trained._replace(model=trained.model.double())
    edits = [Intervention(Uniform(), site, steps=[0, 2]) for site in trained.model.sites if site != "encoder_self"]
    found = intervene(trained, ids(trained, LINE)[0], edits)
    with intervened(trained.model, edits):
        source = trained.tokenizers.source.encode(LINE)
        best = build_translator([trained]).search_ids([source])[0][0]
    assert found.changed.text == normalize(trained.tokenizers.target.decode(best.ids))
    pieces = len(best.ids) + 1
    assert found.changed.log_prob == pytest.approx(best.log_prob, rel=0, abs=rounding(trained, pieces, best.log_prob))


def rounding(trained: LoadedRun, pieces: int, total: float) -> float:
    """Bound on the difference of two sums of float32 log-probabilities of equal float64 logits below 32.

    float32 rounds each logit, the logarithm of a sum over the vocabulary and their difference; a search also rounds
    each sum of log-probabilities.
    """
    return pieces * (2 * (3 * 32 + trained.tokenizers.target.size / 2) + abs(total) / 2) * 2**-23


@pytest.mark.parametrize("head", [0, 1])
def test_a_head_that_is_off_is_the_ablation(folder: Path, monkeypatch: pytest.MonkeyPatch, head: int) -> None:
    monkeypatch.chdir(folder)
    trained = load_run(Path("maps_transformer"), "cpu")
    trained = trained._replace(model=trained.model.double())
    for site, layers in trained.model.sites.items():
        found = compared(trained, Intervention(Off(), site, 1, head)).forced
        with ABLATIONS["off"](layers[1], head, {}):
            [ablated] = log_probs([trained], [LINE], [TARGET])
        close = rounding(trained, len(found.log_probs), ablated)
        assert found.log_prob == pytest.approx(ablated, rel=0, abs=close)
        assert (weights(found, site)[1, head] == 0).all()


def test_a_head_takes_the_weights_of_another(here: Path) -> None:
    found = compared(load_run(Path("maps_transformer"), "cpu"), Intervention(OfHead(1), layer=0, head=0)).forced
    np.testing.assert_array_equal(weights(found)[0, 0], weights(found)[0, 1])


def test_temperature_and_sparsemax_act_on_the_scores(trained: LoadedRun) -> None:
    intact, even = compared(trained).intact, compared(trained, Intervention(temperature=1e6)).forced
    sparse = compared(trained, Intervention(normalizer=Sparsemax())).forced
    assert (weights(even).max(-1) <= weights(intact).max(-1)).all()
    assert (weights(sparse) == 0).sum() >= (weights(intact) == 0).sum()


def test_the_width_of_a_window_can_be_changed(trained: LoadedRun) -> None:
    """Global attention gets a local-m window, the others keep their kind and weights."""
    [narrow] = [item for item in compared(trained, Intervention(half_width=1)).forced.maps if item.site == "cross"]
    assert narrow.local is not None
    assert narrow.local.allowed.sum(-1).max() <= 3
    assert (narrow.weights[~narrow.local.allowed] == 0).all()


def test_the_model_is_itself_again_afterwards(trained: LoadedRun) -> None:
    before = compared(trained).intact.log_probs
    compared(trained, Intervention(Off()), Intervention(temperature=2.0), Intervention(half_width=1))
    assert compared(trained).intact.log_probs == before


def test_both_translations_begin_with_the_prefix(trained: LoadedRun) -> None:
    source, prefix = ids(trained, LINE, "bảy sáu")
    found = intervene(trained, source, [Intervention(Uniform())], prefix=prefix)
    assert found.intact.text.startswith("bảy sáu")
    assert found.changed.text.startswith("bảy sáu")
    locked = [PAD, *prefix]
    found = intervene(trained, source, [Intervention(Uniform(), steps=[1])], prefix=locked)
    for translation in (found.intact, found.changed):
        assert translation.ids[1 : len(locked)] == locked[1:], "also what comes after the first changed step"


def test_a_temperature_and_a_normalizer_act_together_in_either_order(trained: LoadedRun) -> None:
    both = [Intervention(temperature=50.0), Intervention(normalizer=Softmax())]
    one = weights(compared(trained, both[0]).forced)
    for order in (both, both[::-1]):
        np.testing.assert_array_equal(weights(compared(trained, *order).forced), one)


def test_the_window_of_one_layer_leaves_the_others(here: Path) -> None:
    trained = load_run(Path("maps_transformer"), "cpu")
    found = compared(trained, Intervention(half_width=0, layer=0))
    before, after = (next(item for item in each.maps if item.site == "cross") for each in (found.intact, found.forced))
    assert ((after.weights[0] > 0).sum(-1) == 1).all(), "one key for each query"
    assert ((after.weights[1] > 0).sum(-1) == (before.weights[1] > 0).sum(-1)).all()
    assert after.local is None


@pytest.mark.parametrize(
    ("intervention", "message"),
    [
        (Intervention(Off(), "crss"), r"Unknown attention site 'crss'\..*cross"),
        (Intervention(Off(), layer=7), "layer is 7; cross has layers 0 to 1"),
        (Intervention(Off(), head=-1), "head is -1; cross has heads 0 to 1"),
        (Intervention(OfHead(2)), "head is 2; cross has heads 0 to 1"),
        (
            Intervention(),
            "The intervention changes nothing: set way .in Python, change., temperature, normalizer or half_width",
        ),
        (Intervention(temperature=0.0), r"temperature is 0\.0; it must be a finite number above 0"),
        (Intervention(temperature=2.0, head=1), "change all heads and steps of a layer: leave out head and steps"),
        (Intervention(half_width=-1), r"^half_width is -1; it must be at least 0"),
        (Intervention(half_width=10**9), r"^half_width is 1000000000; it must be at most 1,048,576\.$"),
        (Intervention(half_width=1, site="decoder_self"), "only cross attention can have, not decoder_self"),
    ],
)
def test_what_cannot_be_changed_is_refused(here: Path, intervention: Intervention, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        compared(load_run(Path("maps_transformer"), "cpu"), intervention)


@pytest.mark.parametrize(
    ("temperatures", "message"),
    [
        ((2.0, -1.0), r"^temperature is -1\.0; it must be a finite number above 0\.$"),
        ((1e200, 1e200), r"^The temperatures of cross multiply to inf: use less extreme ones\.$"),
    ],
)
def test_a_wrong_temperature_is_the_one_that_the_user_wrote(
    trained: LoadedRun, temperatures: tuple[float, ...], message: str
) -> None:
    with pytest.raises(Mistake, match=message):
        compared(trained, *(Intervention(temperature=temperature) for temperature in temperatures))


@pytest.mark.parametrize(
    ("line", "target", "message"),
    [(" ", TARGET, "The source is empty; write a sentence"), (LINE, "", "The target is empty; write a sentence")],
)
def test_empty_sentences_are_refused(here: Path, line: str, target: str, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        nmt.load("maps_transformer", device="cpu").intervene(line, [Intervention(Off())], target=target)


def test_a_loaded_run_intervenes(here: Path) -> None:
    found = nmt.load("maps_luong", device="cpu").intervene(LINE, [Intervention(Off())], target=TARGET)
    assert found.forced.pieces == found.intact.pieces
    assert found.forced.log_prob != found.intact.log_prob
    with pytest.raises(Mistake, match="Each of the 2 runs has its own attention; load only one"):
        nmt.load(["maps_luong", "maps_luong"], device="cpu").intervene(LINE, [])
