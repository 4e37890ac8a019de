"""A recorded step is the same step: its losses, gradients and weights are those of Python, bit by bit.

A CUDA graph repeats work on the same memory. Without a GPU, calling the work again does that.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from nmt.cli.compose import configuration
from nmt.config.nodes import make
from nmt.config.schema import TrainSettings, validated
from nmt.data.batch import Batch, Example, collate, context_sentences
from nmt.data.masking import MaskedBatch
from nmt.models import VocabularySizes
from nmt.models.base import Seq2Seq
from nmt.training.recorded_steps import CudaRecorder, RecordedSteps, Work
from nmt.training.task import TranslationTask, build_task
from tests.training.test_task import fit, task_of

SIZE = 12


def again(work: Work) -> Work:
    return work


def transformer(*overrides: str) -> TranslationTask:
    """A small Transformer with dropout, in float32."""
    given = ("model=transformer", "model.dim=8", "model.ffn_dim=12", "model.num_heads=2", "model.num_layers=2")
    config = configuration("train", ["run_dir=none", *given, "model.dropout=0.3", *overrides])
    settings = validated(TrainSettings, config)
    torch.manual_seed(5)
    return build_task(settings, make(config["model"])(vocabulary=VocabularySizes(SIZE, SIZE, joint=True)))


def losses(task: TranslationTask, batches: list[Batch], recorded: RecordedSteps | None, accumulate: int) -> list[float]:
    """The losses of steps of plain gradient descent, each on `accumulate` batches with seeds of their own."""
    found = []
    for number, batch in enumerate(batches):
        torch.manual_seed(number)
        loss = None if recorded is None else recorded.forward(batch)
        loss = task.loss(batch) if loss is None else loss
        found.append(loss.item())
        if number % accumulate == 0:
            task.zero_grad(set_to_none=True)
        if recorded is None or not recorded.backward():
            loss.backward()
        if number % accumulate == accumulate - 1:
            with torch.no_grad():
                for parameter in task.parameters():
                    if parameter.grad is not None:
                        parameter -= 0.01 * parameter.grad
    return found


@pytest.mark.parametrize("accumulate", [1, 2, 3])
@pytest.mark.parametrize(
    "overrides", [(), ("objective=simcut", "word_dropout=0.2"), ("scorer=additive", "model.fix_norm=true")]
)
def test_training_is_the_same_bit_by_bit(
    overrides: tuple[str, ...], accumulate: int, batches: list[Batch], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    # 16 steps: the three shapes come back in every step, alone or mixed with each other.
    steps = (batches * 16)[: 16 * accumulate]
    plain, task = transformer(*overrides), transformer(*overrides)
    recorded = RecordedSteps(task.loss, task.parameters(), 1, again)
    assert losses(task, steps, recorded, accumulate) == losses(plain, steps, None, accumulate)
    assert not caplog.messages, "nothing was recorded"
    for ours, theirs in zip(task.parameters(), plain.parameters(), strict=True):
        assert ours.equal(theirs)


def test_a_shape_is_recorded_when_it_comes_back(batches: list[Batch]) -> None:
    task = transformer()
    recorded = RecordedSteps(task.loss, task.parameters(), 1, again)
    assert [recorded.forward(batch) is not None for batch in (*batches, *batches)] == [False] * 3 + [True] * 3


def test_lightning_trains_with_recorded_steps(
    model: Seq2Seq, batches: list[Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = {name: value.clone() for name, value in model.state_dict().items()}
    options: dict[str, Any] = {"max_steps": 8, "accumulate_grad_batches": 2, "gradient_clip_val": 0.05}
    fit(plain := task_of(model), batches * 6, **options)
    expected = {name: value.clone() for name, value in model.state_dict().items()}

    model.load_state_dict(start)
    task = task_of(model)
    made = RecordedSteps(task.loss, task.parameters(), 2, again)
    used = []
    backward = made.backward
    monkeypatch.setattr(made, "backward", lambda: used.append(backward()) or used[-1])
    monkeypatch.setattr(task, "on_train_start", lambda: setattr(task, "_recorded", made))
    fit(task, batches * 6, **options)
    assert used == [False] * 3 + [True] * 13
    assert task._recorded is None, "its memory was not freed"
    assert task.target_tokens == plain.target_tokens
    for name, value in model.state_dict().items():
        assert value.equal(expected[name]), name


def test_parameters_without_a_gradient_get_none(batches: list[Batch]) -> None:
    # The gradients of a local-p window come through its prior alone; here, nothing reads one parameter.
    task = transformer()
    task.unused = nn.Parameter(torch.ones(3))
    frozen = next(task.model.parameters()).requires_grad_(False)
    recorded = RecordedSteps(task.loss, task.parameters(), 1, again)
    losses(task, batches * 3, recorded, 1)
    assert task.unused.grad is None
    assert frozen.grad is None


def test_moved_parameters_are_recorded_again(batches: list[Batch]) -> None:
    plain, task = transformer(), transformer()
    recorded = RecordedSteps(task.loss, task.parameters(), 1, again)
    made: list[Work] = []
    monitored = RecordedSteps(task.loss, task.parameters(), 1, lambda work: made.append(work) or work)
    losses(task, batches * 2, monitored, 1)
    assert len(made) == 2 * 3
    for parameter in task.parameters():
        parameter.data = parameter.data.clone()
    losses(task, batches, monitored, 1)
    assert len(made) == 2 * 2 * 3
    assert recorded.forward(batches[0]) is None
    losses(plain, batches * 2, None, 1)
    losses(plain, batches, None, 1)
    for ours, theirs in zip(task.parameters(), plain.parameters(), strict=True):
        assert ours.equal(theirs)


def test_more_shapes_than_are_kept_are_computed_by_python(
    batches: list[Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.training.recorded_steps.MOST_SHAPES", 2)
    task = transformer()
    recorded = RecordedSteps(task.loss, task.parameters(), 1, again)
    found = [recorded.forward(batch) is not None for batch in batches * 3]
    assert found == [False] * 3 + [True, True, False] * 2


def test_if_a_step_cannot_be_recorded_python_computes_it_and_all_others(
    batches: list[Batch], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    calls = []

    def refuses(work: Work) -> Work:
        calls.append(work)
        if len(calls) == 4:  # the backward pass of the second shape
            raise RuntimeError("operation not permitted when stream is capturing\nmore lines")
        return work

    plain, task = transformer(), transformer()
    recorded = RecordedSteps(task.loss, task.parameters(), 1, refuses)
    assert losses(task, batches * 4, recorded, 3) == losses(plain, batches * 4, None, 3)
    assert len(calls) == 4
    assert caplog.messages == [
        "Training steps are not recorded as CUDA graphs: operation not permitted when stream is capturing"
    ]


def test_only_batches_of_single_sentences_are_recorded(batches: list[Batch]) -> None:
    task = transformer()
    recorded = RecordedSteps(task.loss, task.parameters(), 1, again)
    with_context = batches[0]._replace(context=context_sentences([[([4], [5])]]))
    masked = MaskedBatch(*batches[0][:2], batches[0].source, batches[0].indices)
    for batch in (with_context, masked):
        assert [recorded.forward(batch), recorded.forward(batch)] == [None, None]
        assert not recorded.backward()


SCORERS = ("additive", "concat", "dot", "gaussian", "gaussian_learned", "general", "location", "none", "scaled_dot")
OBJECTIVES = ("cross_entropy", "r_drop", "simcut")


class NoValues(TorchDispatchMode):
    """Fails if Python, or a size, depends on the values of a tensor: a GPU could not repeat that without Python."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        reads = name in ("_local_scalar_dense", "nonzero", "masked_select", "_unique2")
        if name in ("index", "index_put", "index_put_"):
            masks = any(each is not None and each.dtype == torch.bool for each in args[1])
            # torch writes a single value through a mask by masked_fill.
            reads = masks and (name == "index" or args[2].numel() > 1)
        assert not reads, f"{name} depends on values"
        return func(*args, **(kwargs or {}))


@contextmanager
def like_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("nmt.kernels.vocabulary_loss.selects_tokens", lambda device: False)
    with NoValues():
        yield


def is_recordable(task: TranslationTask, batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    with like_on_a_gpu(monkeypatch):
        torch.autograd.grad(task.loss(batch), list(task.parameters()), allow_unused=True)


@pytest.mark.parametrize("normalizer", ["softmax", "sparsemax"])
@pytest.mark.parametrize("window", ["global", "local_m", "local_p"])
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_transformer_is_recordable_with_every_kind_of_attention(
    scorer: str, window: str, normalizer: str, batches: list[Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = transformer(f"scorer={scorer}", f"window={window}", f"normalizer={normalizer}")
    assert task.model.recordable
    is_recordable(task, batches[1], monkeypatch)


@pytest.mark.parametrize("options", [(), ("word_dropout=0.2",), ("label_smoothing=0.1", "model.fix_norm=true")])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_transformer_is_recordable_with_every_objective(
    objective: str, options: tuple[str, ...], batches: list[Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_recordable(transformer(f"objective={objective}", *options), batches[1], monkeypatch)


@pytest.mark.parametrize("name", ["luong", "bahdanau"])
def test_a_recurrent_model_is_not(name: str, batches: list[Batch], monkeypatch: pytest.MonkeyPatch) -> None:
    config = configuration("train", ["run_dir=none", f"model={name}"])
    model = make(config["model"])(vocabulary=VocabularySizes(SIZE, SIZE, joint=True))
    assert not model.recordable
    with pytest.raises(AssertionError, match="depends on values"):
        is_recordable(build_task(validated(TrainSettings, config), model), batches[1], monkeypatch)


@pytest.mark.parametrize(
    ("device", "world", "recordable", "scaler", "made"),
    [
        ("cuda", 1, True, None, True),
        ("cpu", 1, True, None, False),
        ("cuda", 2, True, None, False),
        ("cuda", 1, False, None, False),
        ("cuda", 1, True, "a scaler", False),
    ],
)
def test_steps_are_recorded_on_one_gpu_without_a_loss_scaler(
    device: str,
    world: int,
    recordable: bool,
    scaler: str | None,
    made: bool,
    model: Seq2Seq,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nmt.training.task.CudaRecorder", lambda: again)
    monkeypatch.setattr(TranslationTask, "device", torch.device(device))
    plugin = SimpleNamespace(scaler=scaler)
    monkeypatch.setattr(
        TranslationTask,
        "trainer",
        SimpleNamespace(world_size=world, precision_plugin=plugin, accumulate_grad_batches=1),
    )
    task = task_of(model)
    task.model.recordable = recordable
    task.on_train_start()
    assert (task._recorded is not None) == made


class Cuda:
    """The parts of torch.cuda that a recording uses, with a log of their calls."""

    def __init__(self, used: int = 1, failing: bool = False) -> None:
        self.log, self.used, self.failing = list[str](), used, failing
        self.default_generators = [self]

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            self.log.append(name)
            return self

        return call

    def max_memory_allocated(self) -> int:
        return self.used

    def get_device_properties(self) -> SimpleNamespace:
        return SimpleNamespace(total_memory=10)

    def current_device(self) -> int:
        return 0

    def initial_seed(self) -> int:
        return 7

    def manual_seed(self, seed: int) -> None:
        self.log.append(f"seed {seed}")

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        yield

    def capture_end(self) -> None:
        self.log.append("capture_end")
        if self.failing:
            raise RuntimeError("the recording is invalid")


def with_cuda(cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> CudaRecorder:
    monkeypatch.setattr(torch, "cuda", cuda)
    monkeypatch.setattr(torch, "Generator", lambda device: cuda)
    return CudaRecorder()


def test_a_recording_ends_with_a_graph_to_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = Cuda()
    record = with_cuda(cuda, monkeypatch)
    replay = record(lambda: cuda.log.append("work"))
    assert [name for name in cuda.log if "capture" in name or name == "work"] == [
        "capture_begin",
        "work",
        "capture_end",
    ]
    replay()
    assert cuda.log[-1] == "replay"


def test_after_a_failed_recording_random_numbers_continue_with_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = Cuda(failing=True)
    record = with_cuda(cuda, monkeypatch)
    with pytest.raises(RuntimeError, match="the recording is invalid"):
        record(lambda: None)
    assert cuda.log[-4:] == ["graphsafe_get_state", "graphsafe_set_state", "seed 7", "wait_stream"]


def test_a_training_that_fills_the_gpu_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    record = with_cuda(Cuda(used=4), monkeypatch)
    with pytest.raises(RuntimeError, match=r"training already uses 40% of the GPU's memory\."):
        record(lambda: None)


def test_batches_are_counted_without_reading_them() -> None:
    batch = collate([Example(0, [4, 5], [6, 7]), Example(1, [8], [9])])
    with NoValues():
        count = batch.token_count
    assert count == batch.tokens == 5
