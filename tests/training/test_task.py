"""The gradient of a step is that of the mean over all its target tokens, however they come."""

from functools import partial
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.plugins import MixedPrecision
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR

from nmt.data.batch import Batch, collate
from nmt.data.example import Example
from nmt.errors import CheckFailed, Mistake
from nmt.models.base import Seq2Seq
from nmt.models.embeddings import with_rows_of_length
from nmt.text import PAD
from nmt.training.averaging import EMAWeightAveraging
from nmt.training.not_finite import NotFinite
from nmt.training.objectives import Objective, SimCut
from nmt.training.step import batch_seed
from nmt.training.task import TranslationTask

EPS = torch.finfo(torch.float32).eps
CONSTANT = partial(LambdaLR, lr_lambda=lambda step: 1.0)


def task_of(model: Seq2Seq, objective: Objective | None = None, **options: Any) -> TranslationTask:
    optimizer = partial(torch.optim.SGD, lr=0.7)
    return TranslationTask(model, optimizer, CONSTANT, objective, seed=3, **options)


def fit(task: TranslationTask, batches: list[Batch], accumulate: int = 1, **options: object) -> lightning.Trainer:
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        **{"max_steps": 1, "limit_val_batches": 0, **options},
    )
    # What the trainer calls a batch is a step, a list of `accumulate` batches.
    steps = [batches[start : start + accumulate] for start in range(0, len(batches), accumulate)]
    trainer.fit(
        task,
        torch.utils.data.DataLoader(steps, batch_size=None, collate_fn=list),
        torch.utils.data.DataLoader(batches, batch_size=None),
    )
    return trainer


@pytest.mark.parametrize("clip", [None, 0.05])
def test_accumulated_step_equals_the_step_on_one_batch(
    model: Seq2Seq, batches: list[Batch], clip: float | None
) -> None:
    start = {name: value.clone() for name, value in model.state_dict().items()}
    task = task_of(model, gradient_clip_val=clip)
    fit(task, batches, accumulate=len(batches))
    ours = {name: value.clone() for name, value in model.state_dict().items()}

    model.load_state_dict(start)
    loss = sum(task.nll(batch) for batch in batches) / sum(batch.tokens for batch in batches)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.7)
    optimizer.zero_grad()
    loss.backward()
    if clip is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    torch.testing.assert_close(dict(model.state_dict()), ours)
    assert task.target_tokens == sum(batch.tokens for batch in batches)


def test_nll_is_in_nats_over_target_tokens_and_eos(model: Seq2Seq) -> None:
    batch = collate([Example(0, [4, 5], [6, 7]), Example(1, [8], [9])])
    log_probs = model(batch.source, batch.source_mask, batch.target_input).log_softmax(-1)
    expected = -sum(
        log_probs[row, position, token]
        for row, ids in enumerate(batch.target_output.tolist())
        for position, token in enumerate(ids)
        if token != PAD
    )
    torch.testing.assert_close(task_of(model).nll(batch), expected)
    assert batch.tokens == 5


@pytest.mark.parametrize(
    "options",
    [{"label_smoothing": 0.3}, {"word_dropout": 0.5}, {"objective": SimCut(alpha=3.0, cut=0.5)}],
    ids=lambda options: next(iter(options)),
)
def test_what_regularises_acts_in_training_only(model: Seq2Seq, batches: list[Batch], options: dict[str, Any]) -> None:
    torch.manual_seed(1)
    task = task_of(model, **options)
    plain = task.nll(batches[1])
    assert not torch.isclose(task.training_sums(batches[1])["loss"], plain)
    torch.testing.assert_close(task.validation_sums(batches[1])["loss"], plain, rtol=0, atol=0)


def test_unit_embeddings_are_made_once_for_all_passes(model: Seq2Seq, batches: list[Batch]) -> None:
    with_rows_of_length(model.source_embedding, model.output)
    made = []
    for module in (model.source_embedding, model.output):
        module.parametrizations.weight[0].register_forward_hook(lambda *of_call: made.append(of_call))
    objective = SimCut(alpha=3.0, cut=0.5)
    found = []
    for loss in (task_of(model, objective).loss, lambda batch: objective(model, batch, 0.0)):
        torch.manual_seed(1)
        made.clear()
        found.append((torch.autograd.grad(loss(batches[1]), list(model.parameters())), len(made)))
    (once, calls), (plainly, more) = found
    assert calls == 2 < more
    torch.testing.assert_close(once, plainly)


def test_smoothing_is_torchs(model: Seq2Seq, batches: list[Batch]) -> None:
    smoothed = task_of(model, label_smoothing=0.3).loss(batches[0])
    logits = model(batches[0].source, batches[0].source_mask, batches[0].target_input).flatten(0, 1)
    torch.testing.assert_close(
        smoothed,
        functional.cross_entropy(logits, batches[0].target_output.flatten(), reduction="sum", label_smoothing=0.3),
    )


def test_a_loss_that_is_not_finite_ends_the_training(model: Seq2Seq, batches: list[Batch]) -> None:
    task = TranslationTask(model.float(), partial(torch.optim.SGD, lr=1e38), CONSTANT, seed=3)
    with pytest.raises(
        CheckFailed, match=r"loss on the validation split is nan after step 1, so .*lower optimizer\.lr"
    ):
        fit(task, batches[:1], limit_val_batches=1)


def test_a_batch_seed_depends_on_each_of_its_parts() -> None:
    seeds = {batch_seed(seed, batch, rank) for seed in range(3) for batch in range(5) for rank in range(2)}
    assert len(seeds) == 30
    assert batch_seed(1, 23, 0) != batch_seed(12, 3, 0)
    torch.manual_seed(max(seeds))


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_smoothing_outside_of_its_range_is_refused(model: Seq2Seq, smoothing: float) -> None:
    with pytest.raises(Mistake, match=f"label_smoothing is {smoothing}"):
        task_of(model, label_smoothing=smoothing)


def float16(scale: float = 2.0**10) -> dict[str, Any]:
    """Options of a Trainer that trains in float16 on a CPU, where Lightning itself would take bfloat16."""
    return {"plugins": [MixedPrecision("16-mixed", "cpu", torch.amp.GradScaler("cpu", init_scale=scale))]}


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
@pytest.mark.parametrize("algorithm", ["norm", "value"])
def test_under_autocast_gradients_are_clipped_with_a_fused_optimizer_too(
    model: Seq2Seq, batches: list[Batch], algorithm: str, kind: str
) -> None:
    start = {name: value.clone() for name, value in model.float().state_dict().items()}
    found = []
    for fused in (False, True):
        model.load_state_dict(start)
        optimizer = partial(torch.optim.SGD, lr=0.7, fused=fused)
        clip = {"gradient_clip_val": 0.05, "gradient_clip_algorithm": algorithm}
        precision = {"precision": "bf16-mixed"} if kind == "bfloat16" else float16()
        fit(TranslationTask(model, optimizer, CONSTANT, seed=3, **clip), batches[:1], **precision)
        found.append({name: value - start[name] for name, value in model.state_dict().items()})
    # A weight is rounded once, by EPS / 2; its change is a product that is rounded once or never.
    noise = EPS * max(value.abs().max().item() for value in start.values())
    torch.testing.assert_close(*found, rtol=2 * EPS, atol=noise)
    moved = torch.stack([change.norm() if algorithm == "norm" else change.abs().max() for change in found[0].values()])
    limit = moved.norm() if algorithm == "norm" else moved.max()
    number = sum(value.numel() for value in start.values())
    # The norm of the gradient, above 0.05, is a sum of `number` squares, and clipping divides by it plus 1e-6.
    rtol, terms = (number * EPS + 1e-6 / 0.05, number) if algorithm == "norm" else (2 * EPS, 1)
    torch.testing.assert_close(limit, torch.tensor(0.7 * 0.05), rtol=rtol, atol=terms**0.5 * noise)


def poisoned(model: Seq2Seq, token: int) -> Seq2Seq:
    """The model, whose gradient is NaN for a batch with a certain source token."""
    own = model.encode
    model.encode = lambda source, mask, **given: (
        own(source, mask, **given) * (torch.nan if (source == token).any() else 1)
    )
    return model


def test_a_gradient_that_is_not_finite_ends_the_training_and_names_the_sentences(model: Seq2Seq) -> None:
    batches = [
        collate([Example(3, [4, 5], [6]), Example(5, [7], [8, 9])]),
        collate([Example(11, [4], [5]), Example(13, [8], [6])]),
    ]
    start = {name: value.clone() for name, value in model.state_dict().items()}
    task = task_of(poisoned(model, 7))
    with pytest.raises(NotFinite, match=r"^At step 1 the loss is nan and the norm of its gradient is nan\.$") as found:
        fit(task, batches, accumulate=2)
    assert found.value.step == 1
    assert found.value.examples == [
        Example(3, [4, 5], [6]),
        Example(5, [7], [8, 9]),
        Example(11, [4], [5]),
        Example(13, [8], [6]),
    ]
    assert "resume=true max_skipped_steps=3, which" in found.value.remedy()
    torch.testing.assert_close(dict(model.state_dict()), start, rtol=0, atol=0)


SKIPS = pytest.mark.filterwarnings("ignore:Detected call of .lr_scheduler.step")  # because a first step was skipped


@SKIPS
@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_as_many_steps_as_allowed_are_skipped_without_a_trace(
    model: Seq2Seq, caplog: pytest.LogCaptureFixture, precision: str
) -> None:
    options = (lambda: {}) if precision == "float32" else float16
    good, bad = (
        collate([Example(11, [4], [5]), Example(13, [8], [6])]),
        collate([Example(3, [4, 5], [6]), Example(5, [7], [8, 9])]),
    )
    start = {name: value.clone() for name, value in model.float().state_dict().items()}
    fit(task_of(model), [good], **options())
    expected = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(start)
    task = TranslationTask(poisoned(model, 7), partial(torch.optim.SGD, lr=0.7), CONSTANT, seed=3, max_skipped_steps=1)
    fit(task, [bad, good], max_steps=2, **options())
    torch.testing.assert_close(dict(model.state_dict()), expected, rtol=0, atol=0)
    assert "Step 1 is skipped (1 of 1): At step 1 the loss is nan" in caplog.text
    with pytest.raises(NotFinite) as found:
        fit(task, [bad], **options())
    assert "resume=true max_skipped_steps=4, which" in found.value.remedy()


@SKIPS
def test_a_factor_that_cannot_be_lowered_any_more_ends_the_training(model: Seq2Seq) -> None:
    """Gradients that are not finite although the loss is: the loss scaler would go on for ever."""
    embedding = model.float().source_embedding.weight
    embedding.register_hook(lambda gradient: gradient * torch.inf)
    batch = collate([Example(3, [4, 5], [6])])
    with pytest.raises(NotFinite, match=r"^At step 5 the loss is \d.* and the norm of its gradient is nan\.$"):
        fit(task_of(model), [batch] * 9, max_steps=9, **float16(scale=16.0))


class Kept(lightning.Callback):
    """The weights after each step."""

    def __init__(self) -> None:
        self.weights: list[dict[str, torch.Tensor]] = []

    def on_train_batch_end(self, trainer: lightning.Trainer, task: lightning.LightningModule, *_: Any) -> None:
        self.weights.append({name: value.clone() for name, value in task.state_dict().items()})


def test_a_training_ends_with_the_moving_average_of_its_weights(model: Seq2Seq, batches: list[Batch]) -> None:
    kept, task = Kept(), task_of(model)
    fit(task, batches, max_steps=3, callbacks=[kept, EMAWeightAveraging(decay=0.2)])
    first, second, third = kept.weights
    for name, value in task.state_dict().items():
        # d = 2 / 11, and then 0.2, because 3 / 12 is more.
        average = 2 / 11 * first[name] + 9 / 11 * second[name]
        torch.testing.assert_close(value, 0.2 * average + 0.8 * third[name])
