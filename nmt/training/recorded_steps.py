"""Training steps as CUDA graphs: a GPU runs the kernels of a small model faster than Python can launch them.

A CUDA graph is a recording of kernels that is launched as a whole. It repeats the same computation on the same memory,
so a recorded step gives the same loss and the same gradients as Python, bit by bit, with the seed of its batch.
"""

import logging
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from nmt.data.batch import Batch
from nmt.data.masking import MaskedBatch

logger = logging.getLogger(__name__)

Work = Callable[[], None]
Record = Callable[[Work], Work]
"""record(work) returns a function that repeats the computation of `work` on the same memory.

Raises RuntimeError if the work cannot be recorded.
"""

MOST_SHAPES = 1024
"""The number of batch shapes that are recorded; batches of further shapes are computed by Python."""
_LARGEST_SHARE = 0.3
"""The largest share of the GPU's memory that a training may use and still be recorded.

The recorded steps have memory of their own, so the training then needs up to twice as much. Steps this large keep the
GPU busy anyway.
"""


class RecordedStep:
    """The forward and backward pass over batches of one shape."""

    def __init__(
        self,
        loss: Callable[[Batch], Tensor],
        batch: Batch,
        gradients: dict[nn.Parameter, Tensor],
        accumulate: int,
        record: Record,
    ) -> None:
        read = batch._replace(
            source=batch.source.clone(),
            source_mask=batch.source_mask.clone(),
            target_input=batch.target_input.clone(),
            target_output=batch.target_output.clone(),
        )
        self.read, self.loss = read, torch.zeros(())
        self.trained: list[nn.Parameter] = []
        losses: list[Tensor] = []

        def forward() -> None:
            losses.append(loss(read))
            self.loss = losses[0].detach()

        def backward() -> None:
            # Lightning limits autocast to the forward pass. The loss is dropped, because with it autograd would keep
            # nodes of the parameters that belong to the stream of this recording.
            with torch.autocast(read.source.device.type, enabled=False):
                found = torch.autograd.grad(losses.pop() / accumulate, list(gradients), allow_unused=True)
            self.trained = [each for each, new in zip(gradients, found, strict=True) if new is not None]
            torch._foreach_add_([gradients[each] for each in self.trained], [new for new in found if new is not None])

        self.forward, self.backward = record(forward), record(backward)


class RecordedSteps:
    """Records the step of every batch shape that is seen a second time.

    The gradients are those of `loss` divided by `accumulate`, the number of batches in an optimizer step, as in
    Lightning. All recorded steps add them to the same memory, which `backward` makes the `grad` of the parameters. If a
    step cannot be recorded, none is recorded from then on.
    """

    def __init__(
        self, loss: Callable[[Batch], Tensor], parameters: Iterable[nn.Parameter], accumulate: int, record: Record
    ) -> None:
        self._loss, self._accumulate, self._record = loss, accumulate, record
        self._parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self._gradients: dict[nn.Parameter, Tensor] = {}
        self._addresses: list[int] = []
        self._seen: set[tuple[torch.Size, torch.Size]] = set()
        self._steps: dict[tuple[torch.Size, torch.Size], RecordedStep] = {}
        self._current: RecordedStep | None = None
        self._most = MOST_SHAPES

    def forward(self, batch: Batch | MaskedBatch) -> Tensor | None:
        """The loss of the batch if its step is recorded, otherwise None. The next recorded step overwrites it."""
        self._current = self._find(batch)
        if self._current is None:
            return None
        read = self._current.read
        for memory, new in zip(read[:4], batch[:4], strict=True):
            memory.copy_(new)
        self._current.forward()
        return self._current.loss

    def backward(self) -> bool:
        """Adds the gradients of the last batch to those of the parameters; False if its step is not recorded."""
        if self._current is None:
            return False
        empty = [memory for parameter, memory in self._gradients.items() if parameter.grad is None]
        if empty:
            torch._foreach_zero_(empty)
        for parameter, memory in self._gradients.items():
            # The earlier batches of this step were computed by Python.
            if parameter.grad is not None and parameter.grad is not memory:
                memory.copy_(parameter.grad)
        self._current.backward()
        for parameter in self._current.trained:
            parameter.grad = self._gradients[parameter]
        return True

    def _find(self, batch: Batch | MaskedBatch) -> RecordedStep | None:
        if isinstance(batch, MaskedBatch) or batch.context is not None:
            return None
        shape = batch.source.shape, batch.target_input.shape
        if shape not in self._seen:
            self._seen.add(shape)
            return None
        addresses = [parameter.data_ptr() for parameter in self._parameters]
        if addresses != self._addresses:  # the parameters were moved, and the recordings read their old memory
            self._steps.clear()
            self._addresses = addresses
        if shape not in self._steps and len(self._steps) < self._most:
            self._gradients = self._gradients or {each: torch.zeros_like(each) for each in self._parameters}
            try:
                self._steps[shape] = RecordedStep(self._loss, batch, self._gradients, self._accumulate, self._record)
            except RuntimeError as error:
                logger.info("Training steps are not recorded as CUDA graphs: %s", str(error).split("\n")[0])
                self._steps.clear()
                self._most = 0
        return self._steps.get(shape)


class CudaRecorder:
    """Records work as CUDA graphs that share their memory: at any time, only one step is being computed."""

    def __init__(self) -> None:
        self._pool, self._stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()
        self._checked = False

    def __call__(self, work: Work) -> Work:
        if not self._checked:
            used, whole = torch.cuda.max_memory_allocated(), torch.cuda.get_device_properties().total_memory
            if used > _LARGEST_SHARE * whole:
                raise RuntimeError(f"training already uses {used / whole:.0%} of the GPU's memory.")
            self._checked = True
        random = torch.cuda.default_generators[torch.cuda.current_device()]
        graph, current, seed = torch.cuda.CUDAGraph(), torch.cuda.current_stream(), random.initial_seed()
        torch.cuda.synchronize()
        # Casts of weights made by Python must not be read by the graph, whose memory they would not belong to.
        torch.clear_autocast_cache()
        self._stream.wait_stream(current)
        try:
            with torch.cuda.stream(self._stream):
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    work()
                finally:
                    graph.capture_end()
        except RuntimeError:
            # A failed recording leaves the generator unusable, so it gets a new state with the seed of the batch.
            random.graphsafe_set_state(torch.Generator("cuda").graphsafe_get_state())
            random.manual_seed(seed)
            raise
        finally:
            current.wait_stream(self._stream)
        return graph.replay
