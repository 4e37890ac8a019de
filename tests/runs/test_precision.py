"""Lower precision changes probabilities by its roundings, for every model, scorer, window and normalizer."""

from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from grids import covering
from torch import Tensor, nn

from nmt.cli import compose
from nmt.config.nodes import Config, make
from nmt.data.batch import pad, pad_source
from nmt.decoding.beam import BeamSearch
from nmt.errors import Mistake
from nmt.kernels import packed_weights
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
EPS = {"float32": torch.finfo(torch.float32).eps, "bfloat16": torch.finfo(torch.bfloat16).eps}
QUANTIZED = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell)
# One rounding of each parameter and of each module's output is simulated; inside a module there are a few more.
ROUNDINGS = 3


@cache
def configuration(name: str, attention: str) -> Config:
    return compose.configuration("train", [f"model={name}", attention, "run_dir=none", *SIZES[name]])


def model(name: str, attention: str) -> Seq2Seq:
    torch.manual_seed(3)
    made: Seq2Seq = make(configuration(name, attention)["model"])(vocabulary=VocabularySizes(19, 23, joint=False))
    return made.eval()


@torch.inference_mode()
def log_probs(model: Seq2Seq) -> torch.Tensor:
    return model(SOURCE, MASK, TARGET).double().log_softmax(dim=-1)


def with_noise(model: Seq2Seq, precision: str) -> Seq2Seq:
    """The model in float64, with random noise of the size of a precision's roundings.

    bfloat16 and float32 round each parameter and each module's output, relative to the number itself. int8 rounds the
    weights of a row to 255 steps, and the inputs of a product, of which the largest and the least are 127 steps apart.
    """
    draw = torch.Generator().manual_seed(1)

    def rounded(x: Any, dim: int | None = None) -> Any:
        if isinstance(x, tuple):
            parts = [rounded(part) for part in x]
            return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
        if not isinstance(x, Tensor) or not x.is_floating_point():
            return x
        if precision != "int8":
            step = x.abs() * EPS[precision]
        elif dim is None:
            step = (x.max().clamp(min=0) - x.min().clamp(max=0)) / 127
        else:
            step = x.abs().amax(dim, keepdim=True) / 127.5
        return x + step * (torch.rand(x.shape, generator=draw, dtype=x.dtype) - 0.5)

    for module in model.double().modules():
        if precision != "int8":
            module.register_forward_hook(lambda _, inputs, output: rounded(output))
        elif isinstance(module, QUANTIZED):
            module.register_forward_pre_hook(lambda _, inputs: rounded(inputs))
        for parameter in module.parameters(recurse=False):
            if precision != "int8" or (isinstance(module, QUANTIZED) and parameter.dim() == 2):
                parameter.data = rounded(parameter.data, 1 if parameter.dim() == 2 else None)
    return model


def distance(found: Tensor, exact: Tensor) -> float:
    """The root mean square of the differences of log-probabilities."""
    return (found.double() - exact).square().mean().sqrt().item()


@cache
def noise(name: str, attention: str, precision: str) -> float:
    """The distance, in nats, that the roundings of a precision cause."""
    exact = log_probs(model(name, attention).double())
    return distance(log_probs(with_noise(model(name, attention), precision)), exact)


# Every precision with every model and with every attention.
MODELS = covering(
    product(SIZES, ATTENTIONS, ["bfloat16", "int8"]), lambda row: ((row[0], row[2]), (row[1], row[2])), pairs=False
)


@pytest.mark.parametrize(("name", "attention", "precision"), MODELS)
def test_lower_precision_changes_probabilities_by_its_roundings(name: str, attention: str, precision: str) -> None:
    exact = log_probs(model(name, attention).double())
    other = with_precision(model(name, attention), precision, CPU)
    rounding = noise(name, attention, precision)
    # A product that kept all digits would differ by much less.
    assert rounding / 10 < distance(log_probs(other), exact) <= ROUNDINGS * rounding


@pytest.mark.parametrize("name", SIZES)
def test_float32_is_the_model_as_it_was_trained_if_its_layers_are_small(name: str) -> None:
    given = model(name, "scorer=general")
    assert torch.equal(log_probs(with_precision(given, "float32", CPU)), log_probs(model(name, "scorer=general")))


@pytest.fixture
def all_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packs weights of every size."""
    monkeypatch.setattr(packed_weights, "MIN_WEIGHTS", 0)


@pytest.mark.usefixtures("all_packed")
@pytest.mark.parametrize("name", SIZES)
def test_packed_weights_change_probabilities_by_the_roundings_of_float32(name: str) -> None:
    packed = with_precision(model(name, "scorer=general"), "float32", CPU)
    kinds = {type(part) for part in packed.modules()}
    if torch.backends.mkldnn.is_available():
        assert packed_weights.PackedLinear in kinds
        assert (packed_weights.PackedLSTMCell in kinds) == (name == "luong")
        assert (packed_weights.PackedGRUCell in kinds) == (name == "bahdanau")
    exact = log_probs(model(name, "scorer=general").double())
    assert distance(log_probs(packed), exact) <= ROUNDINGS * noise(name, "scorer=general", "float32")
    # With gradients, as in attribution, nothing changes.
    assert torch.equal(packed(SOURCE, MASK, TARGET), model(name, "scorer=general")(SOURCE, MASK, TARGET))


@pytest.mark.usefixtures("all_packed")
@pytest.mark.parametrize("name", SIZES)
def test_a_packed_model_can_be_converted_again(name: str) -> None:
    packed = with_precision(model(name, "scorer=general"), "float32", CPU)
    for precision in ("int8", "bfloat16"):
        found = log_probs(with_precision(packed, precision, CPU))
        assert torch.equal(found, log_probs(with_precision(model(name, "scorer=general"), precision, CPU)))


@pytest.mark.parametrize("least", [0, packed_weights.MIN_WEIGHTS])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", SIZES)
def test_the_search_s_sums_are_those_of_the_whole_forward_pass(
    name: str, precision: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_weights, "MIN_WEIGHTS", least)
    other = with_precision(model(name, "scorer=general"), precision, CPU)
    with torch.inference_mode():
        [[best], _] = BeamSearch(beam_size=3)(other, SOURCE, MASK)
        given = pad([[2, *best.ids]])
        forced = other(SOURCE[:1], MASK[:1], given).double().log_softmax(dim=-1)[0]
    # Both sides round each piece, int8 with the scale of a product that holds other positions; a search also rounds
    # each sum to float32.
    piece = 2 * ROUNDINGS * noise(name, "scorer=general", precision) + EPS["float32"] / 2 * abs(best.log_prob)
    assert forced.gather(1, torch.tensor([*best.ids, 3])[:, None]).sum().item() == pytest.approx(
        best.log_prob, rel=0, abs=(len(best.ids) + 1) * piece
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
    with pytest.raises(Mistake, match=f"Unknown precision '{name}'"):
        check_precision(name, CPU)


def test_int8_is_refused_where_it_cannot_be_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Mistake, match="precision=int8 runs only on the CPU: add device=cpu"):
        check_precision("int8", torch.device("cuda"))
    monkeypatch.setattr(torch.backends, "quantized", SimpleNamespace(engine="none"))
    with pytest.raises(Mistake, match="is not supported by this build of torch on this CPU"):
        check_precision("int8", CPU)
