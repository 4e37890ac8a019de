"""What is minimised beside cross entropy, held to cross entropy and to torch's own divergence."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Categorical, kl_divergence
from torch.nn import functional

from nmt.data.batch import Batch, collate
from nmt.data.example import Example
from nmt.errors import Mistake
from nmt.models.base import Seq2Seq
from nmt.text import BOS, EOS, PAD, UNK
from nmt.training.objectives import CrossEntropy, RDrop, SimCut, with_words_dropped

SMOOTHING = 0.2


class Scripted(Seq2Seq):
    """One pass after the other gives the logits that it was given."""

    def __init__(self, *passes: Tensor) -> None:
        super().__init__()
        self.passes, self.sources = iter(passes), list[Tensor]()
        self.output = nn.Linear(11, 11, bias=False, dtype=torch.float64)
        nn.init.eye_(self.output.weight)

    @property
    def sites(self) -> dict[str, Any]:
        return {}

    def encode(self, source: Tensor, source_mask: Tensor, watch: Any = None, context: Any = None) -> Tensor:
        self.sources.append(source)
        return source

    def annotate(self, embedded: Tensor, source_mask: Tensor, watch: Any = None) -> Any:
        raise NotImplementedError

    def remember(self, annotations: Tensor, source_mask: Tensor, first: Any) -> Any:
        raise NotImplementedError

    def decode(self, target_input: Tensor, memory: Tensor, watch: Any = None) -> Tensor:
        return next(self.passes)

    def start(self, memory: Tensor, beams: int) -> Any:
        raise NotImplementedError

    def advance_features(self, tokens: Tensor, state: Any, memory: Tensor, watch: Any = None) -> Any:
        raise NotImplementedError


@pytest.fixture
def batch(batches: list[Batch]) -> Batch:
    return batches[1]


@pytest.fixture
def passes(batch: Batch) -> tuple[Tensor, Tensor]:
    torch.manual_seed(4)
    first, second = torch.randn(2, *batch.target_output.shape, 11, dtype=torch.float64)
    return first, second


def nll(logits: Tensor, batch: Batch) -> Tensor:
    return functional.cross_entropy(
        logits.flatten(0, 1),
        batch.target_output.flatten(),
        ignore_index=PAD,
        reduction="sum",
        label_smoothing=SMOOTHING,
    )


def divergence(first: Tensor, second: Tensor, batch: Batch) -> Tensor:
    each = kl_divergence(Categorical(logits=first), Categorical(logits=second))
    return each[batch.target_output != PAD].sum()


def test_r_drop_is_the_mean_of_two_passes_and_their_divergence(batch: Batch, passes: tuple[Tensor, Tensor]) -> None:
    first, second = passes
    found = RDrop(alpha=5.0)(Scripted(first, second), batch, SMOOTHING)
    both = divergence(first, second, batch) + divergence(second, first, batch)
    torch.testing.assert_close(found, (nll(first, batch) + nll(second, batch) + 5 * both / 2) / 2)


def test_simcut_is_the_loss_of_the_whole_sentence_and_its_divergence(
    batch: Batch, passes: tuple[Tensor, Tensor]
) -> None:
    first, second = passes
    model = Scripted(first, second)
    found = SimCut(alpha=3.0, cut=0.7)(model, batch, SMOOTHING)
    assert model.sources[0].equal(batch.source)
    assert (model.sources[1] == UNK).any()
    torch.testing.assert_close(found, nll(first, batch) + 3 * divergence(first, second, batch))


@pytest.mark.parametrize("objective", [RDrop(alpha=5.0), SimCut(alpha=3.0, cut=0.0)], ids=["r_drop", "simcut"])
def test_without_dropout_and_cuts_it_is_cross_entropy(model: Seq2Seq, batch: Batch, objective: RDrop | SimCut) -> None:
    ours, plain = (
        torch.autograd.grad(each(model, batch, SMOOTHING), list(model.parameters()))
        for each in (objective, CrossEntropy())
    )
    torch.testing.assert_close(ours, plain)
    torch.testing.assert_close(objective(model, batch, SMOOTHING), CrossEntropy()(model, batch, SMOOTHING))


def test_the_cut_sentence_is_another_one(model: Seq2Seq, batch: Batch) -> None:
    torch.manual_seed(1)
    assert SimCut(alpha=3.0, cut=0.5)(model, batch, SMOOTHING) > CrossEntropy()(model, batch, SMOOTHING)


def test_dropped_words_are_unknown_and_all_else_stays() -> None:
    torch.manual_seed(2)
    batch = collate([Example(0, [4, 5] * 211, [6] * 307), Example(1, [7] * 101, [8] * 103)])
    found = with_words_dropped(batch, 0.3)
    assert found.target_output.equal(batch.target_output)
    assert found.source_mask.equal(batch.source_mask)
    for ours, before in ((found.source, batch.source), (found.target_input, batch.target_input)):
        special = torch.isin(before, torch.tensor([PAD, BOS, EOS]))
        assert ours[special].equal(before[special])
        assert ((ours == before) | (ours == UNK)).all()
        words = ours[~special]
        deviation = (0.3 * 0.7 / len(words)) ** 0.5
        assert (words == UNK).float().mean() == pytest.approx(0.3, abs=3 * deviation)
    assert with_words_dropped(batch, 0.0).source.equal(batch.source)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(Mistake, match=r"objective\.alpha is -1.0; it must be finite and not negative"):
        RDrop(alpha=-1.0)
    with pytest.raises(Mistake, match=r"objective\.cut is 1.0; it must be at least 0 and below 1"):
        SimCut(alpha=1.0, cut=1.0)
