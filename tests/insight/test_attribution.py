"""Laws and oracles of attributions, for all three models in float64."""

import logging
from collections.abc import Callable
from functools import partial

import pytest
import torch
import yaml
from torch import Tensor, nn

from nmt.attention import Attention, normalizers, windows
from nmt.attention.multihead import KeysValues
from nmt.config.nodes import CONFIGS, make
from nmt.data.batch import Batch, collate
from nmt.data.example import Example
from nmt.insight.attribution import Method, gradient_x_input, integrated_gradients, occlusion, value_zeroing
from nmt.models import Bahdanau, Luong, Seq2Seq, Transformer, VocabularySizes
from nmt.models.decoders import LSTMDecoder
from nmt.models.encoders import Bidirectional, Reversed
from nmt.text import PAD

VOCABULARY = 23
CONTRAST = 9
WITH_CONTRAST: dict[str, Callable[..., Tensor]] = {
    "gradient_x_input": gradient_x_input,
    "integrated_gradients": integrated_gradients,
    "occlusion": occlusion,
}
METHODS: dict[str, Method] = {**WITH_CONTRAST, "value_zeroing": value_zeroing}
EXAMPLES = [Example(0, [4, 7, 5, 11, 6], [8, 9, 4]), Example(1, [12], [5]), Example(2, [6, 13, 4], [10, 11, 12, 13, 7])]


def build(name: str, window: Callable[..., windows.Window] = windows.Global) -> Seq2Seq:
    """A small model with random weights in float64; the Transformer and Luong have two layers."""
    torch.manual_seed(5)
    scorer = make(yaml.safe_load((CONFIGS / "scorer" / "general.yaml").read_text())["scorer"])
    cross = partial(Attention, scorer, window, normalizers.Softmax)
    own = partial(Attention, scorer, windows.Global, normalizers.Softmax)
    shared = {"vocabulary": VocabularySizes(VOCABULARY, VOCABULARY, False), "dropout": 0.3}
    recurrent = {"embedding_dim": 11, "encoder_dim": 14, "decoder_dim": 14}
    made: Seq2Seq
    if name == "transformer":
        made = Transformer(own, own, cross, dim=12, ffn_dim=17, num_heads=3, num_layers=2, norm_first=True, **shared)
    elif name == "luong":
        made = Luong(
            cross, Reversed(), LSTMDecoder(), num_layers=2, num_heads=1, input_feeding=True, **recurrent, **shared
        )
    else:
        made = Bahdanau(cross, Bidirectional(), maxout_dim=7, num_heads=2, **recurrent, **shared)
    return made.double().eval()


@pytest.fixture(params=["bahdanau", "luong", "transformer"])
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    return build(request.param)


@pytest.fixture
def batch() -> Batch:
    return collate(EXAMPLES)


def explained(model: Seq2Seq, batch: Batch, embedded: Tensor) -> Tensor:
    """log p of every target piece, from the model's own parts."""
    with torch.no_grad():
        features = model.decode(batch.target_input, model.encode_embedded(embedded, batch.source_mask))
        log_probs = model.output(features).log_softmax(dim=-1)
    return log_probs.gather(2, batch.target_output[..., None])[..., 0]


close = partial(torch.testing.assert_close, rtol=0, atol=1e-10)


@pytest.mark.usefixtures("check_annotations")
@pytest.mark.parametrize("method", METHODS)
def test_a_batch_is_its_sentences_one_by_one_with_zeros_at_padding(model: Seq2Seq, batch: Batch, method: str) -> None:
    together = METHODS[method](model, batch, 5)
    assert together.abs().max() > 1e-6
    for row, example in enumerate(EXAMPLES):
        alone = METHODS[method](model, collate([example]), 100)[0]
        targets, sources = alone.shape
        close(together[row, :targets, :sources], alone)
        together[row, :targets, :sources] = 0
    assert together.eq(0).all()


@pytest.mark.parametrize("method", METHODS)
def test_the_number_of_rows_in_a_pass_changes_nothing(model: Seq2Seq, batch: Batch, method: str) -> None:
    close(METHODS[method](model, batch, 1), METHODS[method](model, batch, 1000))


@pytest.mark.parametrize("method", WITH_CONTRAST)
def test_a_piece_in_contrast_with_itself_has_exactly_zeros(model: Seq2Seq, batch: Batch, method: str) -> None:
    found = WITH_CONTRAST[method](model, batch, 100, contrast=CONTRAST)
    same = batch.target_output == CONTRAST
    assert same.any()
    assert found[same].eq(0).all()
    assert found[~same & (batch.target_output != PAD)].ne(0).any(dim=-1).all()


@pytest.mark.parametrize("method", ["gradient_x_input", "occlusion"])
def test_a_contrast_is_the_difference_of_two_attributions(model: Seq2Seq, batch: Batch, method: str) -> None:
    """Both are linear in f; of the contrast's own attribution, the target has the contrast at that step alone."""
    attribute = WITH_CONTRAST[method]
    visible = (batch.target_output != PAD)[..., None]
    against = Batch(*batch[:3], torch.full_like(batch.target_output, CONTRAST), batch.indices)
    expected = (attribute(model, batch, 100) - attribute(model, against, 100)) * visible
    close(attribute(model, batch, 100, contrast=CONTRAST), expected)


@pytest.mark.parametrize(("steps", "contrast"), [(8, None), (3, CONTRAST)])
def test_integrated_gradients_sum_to_the_difference_from_the_baseline(
    model: Seq2Seq, batch: Batch, steps: int, contrast: int | None
) -> None:
    larger, output = {Bahdanau: (2, 3), Luong: (2.5, 8), Transformer: (1.25, 5)}[type(model)]  # f is far from linear
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(larger)
        model.output.weight.mul_(output)
    embedded = model.source_embedding(batch.source).detach()
    whole, nothing = (explained(model, batch, points) for points in (embedded, torch.zeros_like(embedded)))
    if contrast is not None:
        against = Batch(*batch[:3], torch.full_like(batch.target_output, contrast), batch.indices)
        whole, nothing = (
            each - explained(model, against, points)
            for each, points in ((whole, embedded), (nothing, torch.zeros_like(embedded)))
        )
    difference = (whole - nothing).masked_fill(batch.target_output == PAD, 0)
    missed = integrated_gradients(model, batch, 64, contrast=contrast, steps=steps).sum(dim=-1) - difference
    assert (missed.abs() <= 0.01 * difference.abs().clamp(min=1)).all()
    assert (difference.abs() > 1).any()
    slopes = gradient_x_input(model, batch, 64, contrast=contrast).sum(dim=-1)
    assert ((slopes - difference).abs() > difference.abs()).any()


class Linear(Seq2Seq):
    """Log-odds of piece 1 against piece 0: a linear function of the embeddings, with other weights at each place."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.source_embedding = nn.Embedding(VOCABULARY, 3)
        self.output = nn.Linear(1, 2, bias=False)
        self.output.weight.data = torch.tensor([[0.0], [1.0]])
        self.slopes = torch.randn(4, 6, 3, dtype=torch.float64)

    @property
    def sites(self) -> dict:
        return {}

    def annotate(self, embedded: Tensor, source_mask: Tensor, watch: object = None) -> tuple[Tensor, None]:
        return embedded * source_mask[..., None], None

    def remember(self, annotations: Tensor, source_mask: Tensor, first: None) -> Tensor:
        return annotations

    def decode(self, target_input: Tensor, memory: Tensor, watch: object = None) -> Tensor:
        slopes = self.slopes[: target_input.shape[1], : memory.shape[1]]
        return torch.einsum("bsd,tsd->bt", memory, slopes)[..., None]

    def start(self, memory: Tensor, beams: int) -> None:
        raise NotImplementedError

    def advance_features(self, tokens: Tensor, state: object, memory: Tensor, watch: object = None) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("method", WITH_CONTRAST)
def test_of_a_linear_model_every_method_gives_the_contributions(method: str) -> None:
    """The log-probabilities are not linear, but the contrast of two pieces is: w_tj . e_j."""
    model = Linear().double().eval()
    batch = collate([Example(0, [4, 5, 6, 7, 8], [1, 1, 1])])
    batch = batch._replace(target_output=torch.ones_like(batch.target_output))
    contributions = torch.einsum("sd,tsd->ts", model.source_embedding(batch.source)[0], model.slopes).detach()
    close(WITH_CONTRAST[method](model, batch, 100, contrast=0)[0], contributions)


def test_occlusion_is_two_forward_passes(model: Seq2Seq, batch: Batch) -> None:
    found = occlusion(model, batch, 7)
    embedded = model.source_embedding(batch.source).detach()
    for row in range(len(EXAMPLES)):
        for column in range(int(batch.source_mask[row].sum())):
            without = embedded.clone()
            without[row, column] = 0
            lost = explained(model, batch, embedded)[row] - explained(model, batch, without)[row]
            close(found[row, :, column], lost * (batch.target_output[row] != PAD))


def test_gradient_x_input_is_the_change_for_a_small_step(model: Seq2Seq, batch: Batch) -> None:
    """A central difference of step h is off by the third derivative times h^2 / 6, and by rounding over h: 1e-8."""
    found, embedded, h = gradient_x_input(model, batch, 100), model.source_embedding(batch.source).detach(), 1e-4
    for column in range(batch.source.shape[1]):
        more, less = (embedded.clone() for _ in range(2))
        more[:, column] *= 1 + h
        less[:, column] *= 1 - h
        slope = (explained(model, batch, more) - explained(model, batch, less)) / (2 * h)
        visible = (batch.target_output != PAD) & batch.source_mask[:, column, None]
        torch.testing.assert_close(found[..., column], slope * visible, rtol=0, atol=1e-6)


def with_zeroed_values(keys_values: KeysValues, column: int) -> KeysValues:
    values = keys_values.values.clone()
    values[:, :, column] = 0
    return KeysValues(keys_values.keys, values)


def test_value_zeroing_is_decoding_with_zeroed_values(model: Seq2Seq, batch: Batch) -> None:
    found = value_zeroing(model, batch, 7)
    with torch.no_grad():
        memory = model.encode(batch.source, batch.source_mask)
        intact = model.decode(batch.target_input, memory)
        for column in range(batch.source.shape[1]):
            if isinstance(model, Transformer):
                layers = tuple(with_zeroed_values(layer, column) for layer in memory.cross)
                changed = memory._replace(cross=layers)
            else:
                changed = memory._replace(annotations=with_zeroed_values(memory.annotations, column))
            cosine = torch.cosine_similarity(intact, model.decode(batch.target_input, changed), dim=-1)
            visible = (batch.target_output != PAD) & batch.source_mask[:, column, None]
            close(found[..., column], (1 - cosine) * visible)


def test_value_zeroing_leaves_no_trace_in_the_model(model: Seq2Seq, batch: Batch) -> None:
    value_zeroing(model, batch, 7)
    assert all(not attention.edits for attention in model.sites["cross"])


def test_a_position_without_weight_has_no_distance(batch: Batch) -> None:
    """Step t of a window of half width 0 sees position t alone; later steps see what an earlier one has changed.

    The two passes may round differently: some 14 squares of 1e-16.
    """
    found = value_zeroing(build("luong", partial(windows.LocalM, half_width=0)), batch, 7)
    assert found[0, :4].triu(1).lt(1e-28).all()
    assert found[0, :4].diagonal().gt(1e-3).all()


def test_a_jump_of_the_model_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    class Jump(Linear):
        def decode(self, target_input: Tensor, memory: Tensor, watch: object = None) -> Tensor:
            found = super().decode(target_input, memory)
            return torch.where(memory.abs().amax(dim=(1, 2))[:, None, None] > 0.3, found + 5, found)

    one = collate([Example(0, [4, 5, 6, 7, 8], [1, 1, 1])])
    one = one._replace(target_output=torch.ones_like(one.target_output))
    with caplog.at_level(logging.WARNING):
        integrated_gradients(Linear().double(), one, 100, contrast=0)
        assert not caplog.text
        integrated_gradients(Jump().double(), one, 100, contrast=0)
    assert "but miss them by up to 5.00 nats, because the model's output jumps" in caplog.text


@pytest.mark.parametrize("method", METHODS)
def test_no_parameter_gets_a_gradient(model: Seq2Seq, batch: Batch, method: str) -> None:
    METHODS[method](model, batch, 100)
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("method", METHODS)
def test_a_computation_can_be_ended_before_each_pass(batch: Batch, method: str) -> None:
    model = build("luong")
    reported: list[float] = []
    METHODS[method](model, batch, 5, before_pass=reported.append)  # type: ignore[call-arg]
    assert len(reported) > 2
    assert (reported[0], reported) == (0, sorted(reported)), "the fraction that is done"
    if method == "integrated_gradients":  # which estimate how many passes they need
        assert 0.4 < reported[-1] <= 1
    else:
        assert reported == pytest.approx([done / len(reported) for done in range(len(reported))])

    def stop(done: float) -> None:
        reported.append(done)
        if len(reported) == 2:
            raise InterruptedError

    reported.clear()
    with pytest.raises(InterruptedError):
        METHODS[method](model, batch, 5, before_pass=stop)  # type: ignore[call-arg]
    assert len(reported) == 2
