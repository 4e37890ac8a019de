"""The loss of masked pretraining counts the predicted pieces alone, and a step divides by their number once."""

from functools import partial

import lightning
import pytest
import torch
from torch.optim.lr_scheduler import LambdaLR

from nmt.attention import Attention
from nmt.attention.normalizers import Softmax
from nmt.attention.scorers import Additive, ScaledDot
from nmt.attention.windows import Global
from nmt.data.masking import MaskedBatch, Masking, collate_masked
from nmt.errors import Mistake
from nmt.models import MaskedTransformer, Transformer, VocabularySizes
from nmt.text import PAD
from nmt.training.masked_task import MaskedTask, masked_score, masked_sums

VOCABULARY = 23
SIZES = {"dim": 8, "ffn_dim": 12, "num_heads": 2, "num_layers": 2, "dropout": 0.0, "norm_first": True}


def attention(scorer: type = ScaledDot) -> partial[Attention]:
    parts = [partial(part) for part in (scorer, Global, Softmax)]
    return partial(Attention, *parts)


def encoder(scorer: type = ScaledDot, **changes: object) -> MaskedTransformer:
    torch.manual_seed(1)
    vocabulary = VocabularySizes(VOCABULARY, VOCABULARY, joint=True)
    return MaskedTransformer(attention(scorer), **{**SIZES, **changes}, vocabulary=vocabulary)


@pytest.fixture
def model() -> MaskedTransformer:
    """In float64, whose rounding is far below the default tolerance of 1e-7 for some hundred terms."""
    return encoder().double()


@pytest.fixture
def batches() -> list[MaskedBatch]:
    """Three batches with unequal numbers of predicted pieces."""
    masking = Masking(VOCABULARY, share=0.4)
    sentences = [[4, 5, 6, 7, 8, 9, 10, 11], [12, 13], [14, 15, 16, 17, 18], [19]]
    examples = [masking(index, ids, f"{index}") for index, ids in enumerate(sentences)]
    made = [collate_masked(examples[:1]), collate_masked(examples[1:3]), collate_masked(examples[3:])]
    assert [batch.tokens for batch in made] == [3, 3, 1]
    return made


@pytest.mark.parametrize("place", [0, 1])
def test_the_loss_is_the_sum_over_the_predicted_pieces_alone(
    model: MaskedTransformer, batches: list[MaskedBatch], place: int
) -> None:
    batch = batches[place]
    log_probs = model.output(model(batch.source, batch.source_mask)).log_softmax(-1)
    predicted = [(row, at) for row, at in batch.predicted.nonzero().tolist()]
    expected = -sum(log_probs[row, at, batch.predicted[row, at]] for row, at in predicted)
    right = sum(int(log_probs[row, at].argmax()) == int(batch.predicted[row, at]) for row, at in predicted)
    sums = masked_sums(model, batch)
    torch.testing.assert_close(sums.nll, expected)
    assert int(sums.right) == right


def test_no_gradient_reaches_the_states_of_other_pieces(model: MaskedTransformer, batches: list[MaskedBatch]) -> None:
    seen: list[torch.Tensor] = []
    model.register_forward_hook(lambda module, given, states: (states.retain_grad(), seen.append(states))[0])
    masked_sums(model, batches[0]).nll.backward()
    [states] = seen
    reached = states.grad.abs().sum(-1) > 0
    torch.testing.assert_close(reached, batches[0].predicted != PAD)


def test_a_step_divides_the_sum_over_its_batches_by_their_predicted_pieces(
    model: MaskedTransformer, batches: list[MaskedBatch]
) -> None:
    start = {name: value.clone() for name, value in model.state_dict().items()}
    constant = partial(LambdaLR, lr_lambda=lambda step: 1.0)
    task = MaskedTask(model, partial(torch.optim.SGD, lr=0.7), constant, seed=3)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        max_steps=1,
    )
    trainer.fit(
        task,
        torch.utils.data.DataLoader([batches], batch_size=None, collate_fn=list),
        torch.utils.data.DataLoader(batches, batch_size=None),
    )
    ours = {name: value.clone() for name, value in model.state_dict().items()}

    model.load_state_dict(start)
    nll = [masked_sums(model, batch).nll for batch in batches]
    (sum(nll) / 7).backward()
    torch.optim.SGD(model.parameters(), lr=0.7).step()
    torch.testing.assert_close(dict(model.state_dict()), ours)
    # They are logged in float32: 7 terms of about 3 nats.
    logged = trainer.callback_metrics
    torch.testing.assert_close(logged["train_loss"].double(), (sum(nll) / 7).detach(), rtol=1e-5, atol=0)
    right = sum(int(masked_sums(task.model, batch).right) for batch in batches)
    assert logged["valid_accuracy"].item() == pytest.approx(right / 7)


def test_the_score_of_a_model_does_not_depend_on_its_batches(model: MaskedTransformer) -> None:
    masking = Masking(VOCABULARY, share=0.4)
    examples = [masking(index, [4 + index] * (1 + index % 5), f"{index}") for index in range(17)]
    one_by_one, together = (masked_score(model, examples, tokens) for tokens in (6, 10**4))
    assert one_by_one["loss"] == pytest.approx(together["loss"], rel=1e-12)
    assert one_by_one["accuracy"] == together["accuracy"]


@pytest.mark.parametrize("fix_norm", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("scorer", [ScaledDot, Additive])
def test_a_translation_model_with_the_weights_encodes_alike_bit_by_bit(
    scorer: type, norm_first: bool, fix_norm: bool
) -> None:
    pretrained = encoder(scorer, norm_first=norm_first, fix_norm=fix_norm)
    torch.manual_seed(2)
    sizes = {**SIZES, "norm_first": norm_first, "fix_norm": fix_norm}
    vocabulary = VocabularySizes(VOCABULARY, VOCABULARY, joint=True)
    model = Transformer(attention(scorer), attention(), attention(), **sizes, vocabulary=vocabulary)
    missing, unexpected = model.load_state_dict(pretrained.state_dict(), strict=False)
    assert unexpected == []
    assert all(name.startswith(("decoder", "target_embedding")) for name in missing)
    source = torch.tensor([[4, 9, 22, 3], [7, 3, 0, 0]])
    mask = source != PAD
    states = pretrained(source, mask)
    memory = model.encode(source, mask)
    for layer, kept in zip(model.decoder, memory.cross, strict=True):
        torch.testing.assert_close(layer.cross.project(states), kept, rtol=0, atol=0)
    torch.testing.assert_close(model.target_embedding.weight, pretrained.source_embedding.weight, rtol=0, atol=0)
    torch.testing.assert_close(model.output.weight, pretrained.output.weight, rtol=0, atol=0)


@pytest.mark.parametrize("fix_norm", [False, True])
def test_counting_the_right_guesses_changes_no_gradient(fix_norm: bool) -> None:
    model = encoder(fix_norm=fix_norm).double()
    batch = collate_masked([Masking(VOCABULARY, share=0.6)(0, [4, 9, 22, 7, 12], "key")])
    nll = model.output(model(batch.source, batch.source_mask)).log_softmax(-1)
    predicted = batch.predicted != PAD
    expected = -nll[predicted].gather(1, batch.predicted[predicted].unsqueeze(1)).sum()
    gradients = [
        torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
        for loss in (expected, masked_sums(model, batch).nll)
    ]
    torch.testing.assert_close(gradients[1], gradients[0])


def test_two_vocabularies_are_refused() -> None:
    with pytest.raises(Mistake, match="pieces of the same vocabulary; use a joint vocabulary"):
        MaskedTransformer(attention(), **SIZES, vocabulary=VocabularySizes(9, 9, joint=False))
