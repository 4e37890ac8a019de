"""Lower precision gives nearly the same probabilities for every model, scorer, window and normalizer."""

from types import SimpleNamespace

import pytest
import torch

from nmt.cli import compose
from nmt.config.nodes import make
from nmt.data.batch import pad, pad_source
from nmt.decoding.beam import BeamSearch
from nmt.models import Seq2Seq, VocabularySizes
from nmt.runs.precision import PRECISIONS, check_precision, with_precision

CPU = torch.device("cpu")
SIZES = {
    "transformer": ["model.dim=24", "model.ffn_dim=29", "model.num_heads=3", "model.num_layers=2"],
    "luong": ["model.embedding_dim=22", "model.encoder_dim=26", "model.decoder_dim=26", "model.num_layers=2"],
    "bahdanau": ["model.embedding_dim=22", "model.encoder_dim=26", "model.decoder_dim=26", "model.maxout_dim=17"],
}
ATTENTIONS = [
    *(f"scorer={scorer}" for scorer in ("additive", "general", "gaussian_learned", "location", "none")),
    *("window=local_m", "window=local_p", "normalizer=sparsemax"),
]
SOURCE, MASK = pad_source([[4, 5, 6, 7, 8, 9, 10], [11, 5]])
TARGET = pad([[2, 9, 8, 7, 6, 5], [2, 13, 14]])
# How far log p of about -3 may be away.
CLOSE = {"float32": 0.0, "bfloat16": 0.1, "int8": 0.1}


def model(name: str, attention: str) -> Seq2Seq:
    torch.manual_seed(3)
    config = compose.configuration("train", [f"model={name}", attention, "run_dir=none", *SIZES[name]])
    made: Seq2Seq = make(config["model"])(vocabulary=VocabularySizes(19, 23, joint=False))
    return made.eval()


@torch.inference_mode()
def log_probs(model: Seq2Seq) -> torch.Tensor:
    return model(SOURCE, MASK, TARGET).float().log_softmax(dim=-1)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("name", SIZES)
def test_every_precision_gives_nearly_the_same_probabilities(name: str, attention: str, precision: str) -> None:
    exact = log_probs(model(name, attention))
    other = with_precision(model(name, attention), precision, CPU)
    difference = (log_probs(other) - exact).abs().max()
    assert difference <= CLOSE[precision]
    assert (difference > 0) == (precision != "float32")


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", SIZES)
def test_the_search_s_sums_are_those_of_the_whole_forward_pass(name: str, precision: str) -> None:
    other = with_precision(model(name, "scorer=general"), precision, CPU)
    with torch.inference_mode():
        [[best], _] = BeamSearch(beam_size=3)(other, SOURCE, MASK)
        given = pad([[2, *best.ids]])
        forced = other(SOURCE[:1], MASK[:1], given).float().log_softmax(dim=-1)[0]
    # An activation's scale is that of a whole product's, which holds other positions here.
    assert forced.gather(1, torch.tensor([*best.ids, 3])[:, None]).sum() == pytest.approx(
        best.log_prob, abs=1e-4 if precision == "float32" else 0.05 * (len(best.ids) + 1)
    )


def test_int8_weights_take_a_quarter_of_the_memory() -> None:
    linear = with_precision(model("transformer", "scorer=general"), "int8", CPU).get_submodule("output")
    weight = linear.weight()  # type: ignore[operator]
    assert weight.element_size() == 1
    assert weight.q_per_channel_scales().shape == (23,)


def test_the_model_that_is_given_stays_as_it_is_for_int8() -> None:
    given = model("luong", "scorer=general")
    before = log_probs(given)
    with_precision(given, "int8", CPU)
    assert torch.equal(log_probs(given), before)


@pytest.mark.parametrize("name", ["int4", 16, 8.5, None])
def test_an_unknown_precision_is_refused(name: object) -> None:
    with pytest.raises(ValueError, match=f"Unknown precision '{name}'"):
        check_precision(name, CPU)


def test_int8_is_refused_where_it_cannot_be_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="precision=int8 is for the CPU: add device=cpu"):
        check_precision("int8", torch.device("cuda"))
    monkeypatch.setattr(torch.backends, "quantized", SimpleNamespace(engine="none"))
    with pytest.raises(ValueError, match="is not supported by this build of torch on this CPU"):
        check_precision("int8", CPU)
