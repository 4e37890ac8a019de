"""A recorded step is the same step: its losses, gradients and weights are those of Python, bit by bit.

A CUDA graph repeats work on the same memory. Without a GPU, calling the work again does that.
"""

import gc
import logging
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
import torch
from grids import SOAK, covering
from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy
from torch import Tensor, nn

from nmt.cli.compose import configuration
from nmt.config.nodes import make
from nmt.config.schema import TrainSettings, validated
from nmt.data.batch import Batch, collate
from nmt.data.example import Example
from nmt.models import DocumentModel, MaskedTransformer, VocabularySizes
from nmt.models.base import Attending
from nmt.training.recorded_steps import CudaRecorder, ReadsValues, Record, RecordedSteps, Work, check_recordable
from nmt.training.task import TranslationTask, build_task
from tests.training.test_task import fit

SIZE = 12


DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def again(work: Work) -> Work:
    return work


def recorder() -> Record:
    """That of the GPU, if there is one."""
    return CudaRecorder() if torch.cuda.is_available() else again


@pytest.fixture(autouse=True)
def loss_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.kernels.vocabulary_loss.selects_tokens", lambda device: False)


@pytest.fixture
def batches(batches: list[Batch]) -> list[Batch]:
    return [batch.to(DEVICE) for batch in batches]


def transformer(*overrides: str) -> TranslationTask:
    """A small Transformer with dropout, in float32."""
    given = ("model=transformer", "model.dim=8", "model.ffn_dim=12", "model.num_heads=2", "model.num_layers=2")
    config = configuration("train", ["run_dir=none", *given, "model.dropout=0.3", *overrides])
    settings = validated(TrainSettings, config)
    torch.manual_seed(5)
    return build_task(settings, make(config["model"])(vocabulary=VocabularySizes(SIZE, SIZE, joint=True))).to(DEVICE)


def losses(task: TranslationTask, batches: list[Batch], recorded: RecordedSteps | None, accumulate: int) -> list[float]:
    """The losses of steps of plain gradient descent, each on `accumulate` batches with seeds of their own."""
    values = []
    for number, batch in enumerate(batches):
        torch.manual_seed(number)
        if number % accumulate == 0:
            task.zero_grad(set_to_none=True)
        step = None if recorded is None else recorded.find(batch)
        if step is None:
            loss = task.loss(batch)
            loss.backward()
        else:
            loss = step.run(batch)["loss"]
        values.append(loss.item())
        del loss
        if number % accumulate == accumulate - 1:
            with torch.no_grad():
                for parameter in task.parameters():
                    if parameter.grad is not None:
                        parameter -= 0.001 * parameter.grad
    return values


# Each once; make soak trains every combination.
TRAINED = [(), ("objective=simcut", "word_dropout=0.2"), ("scorer=additive", "model.fix_norm=true")]
ACCUMULATED = [1, 2, 3]


@pytest.mark.parametrize(
    ("overrides", "accumulate"),
    list(product(TRAINED, ACCUMULATED)) if SOAK else list(zip(TRAINED, (3, 1, 2), strict=True)),
)
def test_training_is_the_same_bit_by_bit(overrides: tuple[str, ...], accumulate: int, batches: list[Batch]) -> None:
    # The three shapes come back in every step, or mixed with each other: as they are, recorded, and repeated.
    steps = batches * 3 * accumulate
    plain, task = transformer(*overrides), transformer(*overrides)
    made: list[Work] = []
    record = recorder()
    recorded = RecordedSteps(task.training_sums, task.parameters(), lambda work: made.append(work) or record(work))
    assert losses(task, steps, recorded, accumulate) == losses(plain, steps, None, accumulate)
    assert len(made) == 2 * 3
    for ours, theirs in zip(task.parameters(), plain.parameters(), strict=True):
        assert ours.equal(theirs)


def test_a_shape_is_recorded_when_it_comes_back(batches: list[Batch]) -> None:
    task = transformer()
    recorded = RecordedSteps(task.training_sums, task.parameters(), again)
    assert [recorded.find(batch) is not None for batch in (*batches, *batches)] == [False] * 3 + [True] * 3


def live_graphs() -> list[Tensor]:
    """The tensors of this process that hold a graph."""
    return [value for value in gc.get_objects() if type(value) is Tensor and value.grad_fn is not None]


@pytest.mark.parametrize("accumulate", [1, 2] if SOAK else [2])
def test_lightning_trains_with_recorded_steps(
    accumulate: int, batches: list[Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps are those of nmt.train: dropout with a seed for each batch, clipping, and a validation between them."""
    options: dict[str, Any] = {
        "max_steps": 8,
        "accumulate": accumulate,
        "limit_val_batches": 1,
        "val_check_interval": 4,
    }
    clipped = ("optimizer=sgd", "trainer.gradient_clip_val=0.05")
    fit(plain := transformer(*clipped), batches * 6, **options)
    made: list[Work] = []
    task = transformer(*clipped)
    start = task.on_train_start
    # What tests before this one left in the process is not ours to free. Held, so that no id is used again.
    earlier = live_graphs()
    earlier_ids = {id(value) for value in earlier}

    def recorded(work: Work) -> Work:
        graphs = [value for value in live_graphs() if id(value) not in earlier_ids]
        # The second of a recording's two passes has the graph of the first; a GPU cannot record with those of Python.
        assert len(made) % 2 or not graphs, "the graph of an earlier batch was not freed"
        made.append(work)
        return work

    def start_on_a_gpu() -> None:
        with pytest.MonkeyPatch.context() as gpu:
            gpu.setattr(TranslationTask, "device", torch.device("cuda"))
            gpu.setattr("nmt.training.task.CudaRecorder", lambda: recorded)
            start()

    monkeypatch.setattr(task, "on_train_start", start_on_a_gpu)
    fit(task, batches * 6, **options)
    assert len(made) == 2 * 3
    assert task.recorded is None, "its memory was not freed"
    assert task.target_tokens == plain.target_tokens
    for ours, theirs in zip(task.parameters(), plain.parameters(), strict=True):
        assert ours.equal(theirs)


def test_parameters_without_a_gradient_get_none(batches: list[Batch]) -> None:
    task = transformer()
    task.unused = nn.Parameter(torch.ones(3, device=DEVICE))
    frozen = next(task.model.parameters()).requires_grad_(False)
    recorded = RecordedSteps(task.training_sums, task.parameters(), recorder())
    losses(task, batches * 3, recorded, 1)
    assert task.unused.grad is None
    assert frozen.grad is None


def test_moved_parameters_are_recorded_again(batches: list[Batch]) -> None:
    plain, task = transformer(), transformer()
    made: list[str] = []
    record = recorder()
    recorded = RecordedSteps(task.training_sums, task.parameters(), lambda work: made.append("a pass") or record(work))
    losses(task, batches * 2, recorded, 1)
    assert len(made) == 2 * 3
    for parameter in task.parameters():
        parameter.data = parameter.data.clone()
    losses(task, batches, recorded, 1)
    assert len(made) == 2 * 2 * 3
    losses(plain, batches * 2, None, 1)
    losses(plain, batches, None, 1)
    for ours, theirs in zip(task.parameters(), plain.parameters(), strict=True):
        assert ours.equal(theirs)


def test_more_shapes_than_are_kept_are_computed_by_python(
    batches: list[Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.training.recorded_steps.MOST_SHAPES", 2)
    task = transformer()
    recorded = RecordedSteps(task.training_sums, task.parameters(), again)
    found = [recorded.find(batch) is not None for batch in batches * 3]
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
    recorded = RecordedSteps(task.training_sums, task.parameters(), refuses)
    assert losses(task, batches * 4, recorded, 3) == losses(plain, batches * 4, None, 3)
    assert len(calls) == 4
    assert caplog.messages == [
        "Recording recurring training steps as CUDA graphs, which will make training faster",
        "Training goes on, but its steps are not recorded as CUDA graphs: "
        "operation not permitted when stream is capturing",
    ]


def test_a_skipped_step_leaves_no_gradient_behind(batches: list[Batch]) -> None:
    task = transformer()
    recorded = RecordedSteps(task.training_sums, task.parameters(), recorder())
    losses(task, batches * 2, recorded, 1)
    found = []
    for _ in range(2):
        task.zero_grad(set_to_none=True)
        torch.manual_seed(1)
        step = recorded.find(batches[1])
        assert step is not None
        step.run(batches[1])
        found.append([parameter.grad.clone() for parameter in task.parameters()])
    for first, second in zip(*found, strict=True):
        assert first.equal(second)


SCORERS = ("additive", "concat", "dot", "gaussian", "gaussian_learned", "general", "location", "none", "scaled_dot")
OBJECTIVES = ("cross_entropy", "r_drop", "simcut")


class ReadsValuesOrPython(ReadsValues):
    """Also fails for tensors made of lists, which would have to be copied to a GPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func.overloadpacket.__name__ != "lift_fresh" or args[0].dim() == 0, "a tensor is made of a list"
        return super().__torch_dispatch__(func, types, args, kwargs)


def computes_as_on_a_gpu(task: TranslationTask, batch: Batch) -> None:
    with ReadsValuesOrPython():
        torch.autograd.grad(task.loss(batch), list(task.parameters()), allow_unused=True)


@pytest.mark.parametrize(
    ("scorer", "window", "normalizer"),
    covering(product(SCORERS, ["global", "local_m", "local_p"], ["softmax", "sparsemax"]), pairs=False),
)
def test_a_transformer_is_recordable_with_every_kind_of_attention(
    scorer: str, window: str, normalizer: str, batches: list[Batch]
) -> None:
    task = transformer(f"scorer={scorer}", f"window={window}", f"normalizer={normalizer}")
    assert task.model.recordable
    computes_as_on_a_gpu(task, batches[1])


OPTIONS = [(), ("word_dropout=0.2",), ("label_smoothing=0.1", "model.fix_norm=true")]


@pytest.mark.parametrize(
    ("objective", "options"),
    list(product(OBJECTIVES, OPTIONS)) if SOAK else list(zip(OBJECTIVES, OPTIONS, strict=True)),
)
def test_a_transformer_is_recordable_with_every_objective(
    objective: str, options: tuple[str, ...], batches: list[Batch]
) -> None:
    computes_as_on_a_gpu(transformer(f"objective={objective}", *options), batches[1])


@pytest.mark.parametrize("name", ["luong", "bahdanau"])
def test_a_recurrent_model_is_not(name: str, batches: list[Batch]) -> None:
    config = configuration("train", ["run_dir=none", f"model={name}"])
    model = make(config["model"])(vocabulary=VocabularySizes(SIZE, SIZE, joint=True))
    assert not model.recordable
    task = build_task(validated(TrainSettings, config), model).to(DEVICE)
    with pytest.raises(
        RuntimeError, match=r"^a step reads values of tensors \(\w+\); use tensor operations of fixed shape\.$"
    ):
        check_recordable(task.training_sums, batches[1], list(task.parameters()))


@pytest.mark.parametrize("kind", [DocumentModel, MaskedTransformer])
def test_neither_are_models_that_read_more_than_sentence_pairs(kind: type[Attending]) -> None:
    assert not kind.recordable


def test_a_step_that_reads_values_is_computed_by_python_with_the_same_random_numbers(
    batches: list[Batch], caplog: pytest.LogCaptureFixture
) -> None:
    def reading(task: TranslationTask, batch: Batch) -> dict[str, Tensor]:
        loss = task.loss(batch)
        return {"loss": loss * 2 if loss.item() > 0 else loss}

    plain, task = transformer(), transformer()
    recorded = RecordedSteps(partial(reading, task), task.parameters(), recorder())
    assert losses(task, batches * 4, recorded, 1) == losses(plain, batches * 4, None, 1)
    assert caplog.messages == [
        "Training goes on, but its steps are not recorded as CUDA graphs: a step reads values of tensors "
        "(_local_scalar_dense); use tensor operations of fixed shape."
    ]


@pytest.mark.parametrize(
    ("device", "strategy", "recordable", "scaler", "anomaly", "made"),
    [
        ("cuda", SingleDeviceStrategy, True, None, False, True),
        ("cpu", SingleDeviceStrategy, True, None, False, False),
        ("cuda", DDPStrategy, True, None, False, False),
        ("cuda", SingleDeviceStrategy, False, None, False, False),
        ("cuda", SingleDeviceStrategy, True, "a scaler", False, False),
        ("cuda", SingleDeviceStrategy, True, None, True, False),
    ],
)
def test_steps_are_recorded_on_one_gpu_without_a_loss_scaler(
    device: str,
    strategy: type,
    recordable: bool,
    scaler: str | None,
    anomaly: bool,
    made: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nmt.training.task.CudaRecorder", lambda: again)
    monkeypatch.setattr(TranslationTask, "device", torch.device(device))
    trainer = SimpleNamespace(
        strategy=strategy.__new__(strategy),
        precision_plugin=SimpleNamespace(scaler=scaler),
    )
    monkeypatch.setattr(TranslationTask, "trainer", trainer)
    task = transformer()
    task.model.recordable = recordable
    with torch.autograd.set_detect_anomaly(anomaly):
        task.on_train_start()
    assert (task.recorded is not None) == made
    task.forget_recorded_steps()
    assert task.recorded is None


def with_cuda(monkeypatch: pytest.MonkeyPatch, used: int) -> CudaRecorder:
    """A recorder on a GPU that has used so much of its memory, and whose recordings fail."""
    cuda = MagicMock()
    cuda.max_memory_allocated.return_value, cuda.memory_reserved.return_value = used, 2
    cuda.mem_get_info.return_value = 8, 20
    cuda.CUDAGraph.return_value.capture_end.side_effect = RuntimeError("the recording is invalid")
    monkeypatch.setattr(torch, "cuda", cuda)
    monkeypatch.setattr(torch, "Generator", MagicMock())
    for name in ("_cuda_endAllocateToPool", "_cuda_releasePool"):  # a build for the CPU may lack them
        monkeypatch.setattr(torch._C, name, MagicMock(), raising=False)
    return CudaRecorder()


def test_the_reason_of_a_failed_recording_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    record = with_cuda(monkeypatch, used=1)

    def work() -> None:
        raise RuntimeError("the reason")

    with pytest.raises(RuntimeError, match="the reason"):
        record(work)
    torch._C._cuda_releasePool.assert_called_once()  # the memory of the recording is freed


def test_a_run_that_fills_the_gpu_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    record = with_cuda(monkeypatch, used=4)
    with pytest.raises(RuntimeError, match=r"already uses 40% .* free memory\. Lower batching\.batch_tokens to have"):
        record(lambda: None)


def test_batches_are_counted_without_reading_them() -> None:
    batch = collate([Example(0, [4, 5], [6, 7]), Example(1, [8], [9])])
    with ReadsValues():
        count = batch.token_count
    assert count == batch.tokens == 5
