"""Training steps as CUDA graphs: a GPU runs the kernels of a small model faster than Python can launch them.

A CUDA graph is a recording of kernels that is launched as a whole. It repeats the same computation on the same memory,
so the losses and gradients of a recorded step equal those of Python, for the same seed.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nmt.data.batch import Batch

logger = logging.getLogger(__name__)

SumsOf = Callable[[Batch], Mapping[str, Tensor]]
"""sums_of(batch) returns sums over the tokens of a batch; the one called 'loss' is minimized."""
Work = Callable[[], None]
Record = Callable[[Work], Work]
"""record(work) returns a function that repeats the computation of `work` on the same memory.

Raises RuntimeError if the work cannot be recorded.
"""

_READING = {
    "_local_scalar_dense",
    "_unique2",
    "bincount",
    "equal",
    "masked_select",
    "nonzero",
    "repeat_interleave",
    "unique_consecutive",
    "unique_dim",
}
"""torch operations that read values from the GPU, for Python or for the shape of their result."""

MOST_SHAPES = 1024
"""At most this many batch shapes are recorded; batches of other shapes are computed by Python."""
_LARGEST_SHARE = 0.3
"""A run that uses a larger share of the GPU's free memory is not recorded, because it could then need twice as much."""
_FIELDS = ("source", "source_mask", "target_input", "target_output", "indices")


class ReadsValues(TorchDispatchMode):
    """Raises RuntimeError if Python, or a shape, depends on the values of a tensor, or if a tensor changes its device.

    A recorded step would repeat what the first batch decided. This is checked before a recording, because torch cannot
    free all memory of one that fails.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        reads = name in _READING
        if name in ("index", "index_put", "index_put_"):
            by_mask = any(index is not None and index.dtype == torch.bool for index in args[1])
            # torch writes a single value through a mask by masked_fill.
            reads = by_mask and (name == "index" or args[2].numel() > 1)
        result = func(*args, **(kwargs or {}))
        if name in ("copy_", "_to_copy"):
            devices = {leaf.device.type for leaf in tree_leaves((args, result)) if isinstance(leaf, Tensor)}
            reads = len(devices) > 1
        if reads:
            raise RuntimeError(f"a step reads values of tensors ({name}); use tensor operations of fixed shape.")
        return result


class Gradients:
    """Memory for the gradients of all parameters, to which every recorded step adds."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.of = {parameter: torch.zeros_like(parameter) for parameter in parameters}

    def take_over(self) -> None:
        """Copies each parameter's `grad`, or zeros if it is None."""
        empty = [memory for parameter, memory in self.of.items() if parameter.grad is None]
        if empty:
            torch._foreach_zero_(empty)
        for parameter, memory in self.of.items():
            # Gradients of earlier batches of the step that Python computed are in other memory.
            if parameter.grad is not None and parameter.grad is not memory:
                memory.copy_(parameter.grad)

    def add(self, loss: Tensor) -> list[nn.Parameter]:
        """Adds the gradients of the loss; returns the parameters that have one."""
        gradients = torch.autograd.grad(loss, list(self.of), allow_unused=True)
        pairs = [(parameter, new) for parameter, new in zip(self.of, gradients, strict=True) if new is not None]
        torch._foreach_add_([self.of[parameter] for parameter, _ in pairs], [new for _, new in pairs])
        return [parameter for parameter, _ in pairs]


class RecordedStep:
    """The forward and backward pass over batches of one shape."""

    def __init__(self, sums_of: SumsOf, batch: Batch, gradients: Gradients, record: Record) -> None:
        self._inputs = batch._replace(**{name: getattr(batch, name).clone() for name in _FIELDS})
        self._gradients = gradients
        self._sums: dict[str, Tensor] = {}
        self._trained: list[nn.Parameter] = []
        losses: list[Tensor] = []

        def forward() -> None:
            sums = sums_of(self._inputs)
            losses.append(sums["loss"])
            self._sums = {name: value.detach() for name, value in sums.items()}

        def backward() -> None:
            # The loss is dropped, because with it autograd would keep gradient-accumulation nodes created on the
            # stream of this recording.
            with _without_autocast(batch):
                self._trained = gradients.add(losses.pop())

        self._repeat_forward, self._repeat_backward = record(forward), record(backward)

    def run(self, batch: Batch) -> dict[str, Tensor]:
        """Adds the gradients of a batch of the same shape to those of the parameters; returns its sums.

        The next recorded step may overwrite the sums.
        """
        for name in _FIELDS:
            getattr(self._inputs, name).copy_(getattr(batch, name))
        self._repeat_forward()
        self._gradients.take_over()
        self._repeat_backward()
        for parameter in self._trained:
            parameter.grad = self._gradients.of[parameter]
        return self._sums


class RecordedSteps:
    """The recorded steps of a run: a step is recorded when the shape of its batch is seen for the second time.

    If a step cannot be recorded, none is recorded from then on.
    """

    def __init__(self, sums_of: SumsOf, parameters: Iterable[nn.Parameter], record: Record) -> None:
        self._sums_of, self._record = sums_of, record
        self._parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self._gradients: Gradients | None = None
        self._addresses: list[int] = []
        self._seen: set[tuple[torch.Size, torch.Size]] = set()
        self._steps: dict[tuple[torch.Size, torch.Size], RecordedStep] = {}
        self._most = MOST_SHAPES

    def find(self, batch: Batch) -> RecordedStep | None:
        """The recorded step for the batch, or None if Python has to compute it."""
        shape = batch.source.shape, batch.target_input.shape
        if shape not in self._seen:
            self._seen.add(shape)
            return None
        # Until a new step is recorded, the old ones keep the memory that all of them share.
        old, addresses = self._steps, [parameter.data_ptr() for parameter in self._parameters]
        if addresses != self._addresses:  # the parameters were moved, but the recordings would read their old memory
            self._steps, self._addresses = {}, addresses
        if shape not in self._steps and len(self._steps) < self._most:
            try:
                self._steps[shape] = self._recorded(batch)
            except RuntimeError as error:
                reason = str(error).split("\n")[0]
                logger.warning("Training goes on, but its steps are not recorded as CUDA graphs: %s", reason)
                self._steps, self._gradients, self._most = {}, None, 0
        del old
        return self._steps.get(shape)

    def _recorded(self, batch: Batch) -> RecordedStep:
        first = self._gradients is None
        if self._gradients is None:
            check_recordable(self._sums_of, batch, self._parameters)
            self._gradients = Gradients(self._parameters)
        step = RecordedStep(self._sums_of, batch, self._gradients, self._record)
        if first:
            logger.info("Recording recurring training steps as CUDA graphs, which will make training faster")
        return step


def check_recordable(sums_of: SumsOf, batch: Batch, parameters: Sequence[nn.Parameter]) -> None:
    """Raises RuntimeError if the shapes of the batch alone do not determine what a step computes.

    The state of the random number generators is kept.
    """
    with torch.random.fork_rng([batch.source.device] if batch.source.is_cuda else []), ReadsValues():
        loss = sums_of(batch)["loss"]
        with _without_autocast(batch):
            torch.autograd.grad(loss, parameters, allow_unused=True)


def _without_autocast(batch: Batch) -> torch.autocast:
    """For a backward pass: Lightning limits autocast to the forward pass."""
    return torch.autocast(batch.source.device.type, enabled=False)


class CudaRecorder:
    """Records work as CUDA graphs that share their memory: at any time, only one step is being computed."""

    def __init__(self) -> None:
        self._pool, self._stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()
        self._checked = False
        torch.cuda.reset_peak_memory_stats()  # of an earlier run in this process

    def __call__(self, work: Work) -> Work:
        if not self._checked:
            used, available = torch.cuda.max_memory_allocated(), torch.cuda.mem_get_info()[0]
            available += torch.cuda.memory_reserved()
            if used > _LARGEST_SHARE * available:
                raise RuntimeError(
                    f"the run already uses {used / available:.0%} of the GPU's free memory. Lower "
                    "batching.batch_tokens to have them recorded."
                )
            self._checked = True
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        graph, current, seed = torch.cuda.CUDAGraph(), torch.cuda.current_stream(), generator.initial_seed()
        torch.cuda.synchronize()
        # A graph must not read casts of weights made outside of it; with them, autograd also keeps
        # gradient-accumulation nodes created on Python's CUDA stream.
        torch.clear_autocast_cache()
        self._stream.wait_stream(current)
        try:
            with torch.cuda.stream(self._stream):
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    work()
                except BaseException:
                    with suppress(RuntimeError):
                        self._end(graph)
                    raise
                self._end(graph)
        except BaseException:
            # A failed recording leaves the generator unusable, so it gets a new state with the seed of the batch.
            generator.graphsafe_set_state(torch.Generator("cuda").graphsafe_get_state())
            generator.manual_seed(seed)
            torch.clear_autocast_cache()
            raise
        finally:
            current.wait_stream(self._stream)
        return graph.replay

    def _end(self, graph: Any) -> None:
        try:
            graph.capture_end()
        except RuntimeError:
            # torch (2.11 to 2.15) then still allocates for the recording, and has no public function to end that.
            with suppress(AttributeError, RuntimeError):
                torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), self._pool)
                torch._C._cuda_releasePool(torch.cuda.current_device(), self._pool)
            raise
