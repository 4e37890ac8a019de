"""Runs an exported model with ONNX Runtime, as a model that every search can use."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import onnxruntime
import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from nmt.config.stored import Count, Stored, read_stored
from nmt.data.batch import ContextSentences
from nmt.errors import Mistake
from nmt.exports.damage import DamagedExport
from nmt.exports.onnx import DESCRIPTION, LAYOUT


class Memory(NamedTuple):
    """The encoder graph's outputs: the step graph's inputs that stay the same at every step, and the first State."""

    parts: tuple[Tensor, ...]
    first: tuple[Tensor, ...]


State = tuple[Tensor, ...]
"""The step graph's inputs that change at every step; on axis 0, row = sentence * beams + beam."""


class OnnxModel:
    """The graphs that `nmt.exports.onnx.write_onnx` wrote to a folder, as a Decodable on the CPU.

    Tensors are passed to ONNX Runtime and back without a copy. Each operator may use up to `threads` threads.
    Raises DamagedExport if a file is missing or cannot be read.
    """

    def __init__(self, folder: Path, threads: int) -> None:
        about = read_description(folder)
        self.device = torch.device("cpu")
        self.training = False
        self.max_source: int | None = about["max_source"]
        self.max_target: int | None = about["max_target"]
        self.encoder, self.decoder = (_session(folder / about[name]["file"], threads) for name in ("encoder", "step"))
        outputs = [value["name"] for value in about["encoder"]["outputs"]]
        self.memory_names = [name for name in outputs if name.startswith("memory.")]
        self.state_names = [name for name in outputs if name.startswith("state.")]
        self.next_names = [value["name"] for value in about["step"]["outputs"] if value["name"].startswith("next.")]

    def train(self, mode: bool = True) -> "OnnxModel":
        """Changes nothing: the graphs have no dropout."""
        return self

    def encode(
        self,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        *,
        context: ContextSentences | None = None,
    ) -> Memory:
        """The encoder's outputs. Raises ValueError if a `context` is given."""
        if context is not None:
            raise ValueError("ONNX graphs read single sentences; leave out the context, or use nmt.translate.")
        names = [*self.memory_names, *self.state_names]
        outputs = _run(self.encoder, names, {"source": source, "source_mask": source_mask})
        return Memory(outputs[: len(self.memory_names)], outputs[len(self.memory_names) :])

    def start(self, memory: Memory, beams: int) -> State:
        return tuple(part.repeat_interleave(beams, dim=0) for part in memory.first)

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: State, memory: Memory
    ) -> tuple[Float[Tensor, "sentences beams vocab"], State]:
        log_probs, *after = self._advance(["log_probs"], tokens, state, memory)
        return log_probs, tuple(after)

    def attending_step(
        self, tokens: Int[Tensor, "sentences beams"], state: State, memory: Memory
    ) -> tuple[Float[Tensor, "sentences beams vocab"], Float[Tensor, "sentences beams source"], State]:
        log_probs, cross, state = self.watched_step(tokens, state, memory)
        return log_probs, cross[-1].mean(dim=1), state

    def watched_step(
        self, tokens: Int[Tensor, "sentences beams"], state: State, memory: Memory
    ) -> tuple[Float[Tensor, "sentences beams vocab"], Float[Tensor, "layers sentences heads beams source"], State]:
        """The same as `step`, plus the cross attention weights of all layers and heads."""
        log_probs, cross, *after = self._advance(["log_probs", "cross"], tokens, state, memory)
        return log_probs, cross, tuple(after)

    def _advance(self, results: list[str], tokens: Tensor, state: State, memory: Memory) -> tuple[Tensor, ...]:
        inputs = {
            "tokens": tokens,
            **dict(zip(self.state_names, state, strict=True)),
            **dict(zip(self.memory_names, memory.parts, strict=True)),
        }
        return _run(self.decoder, [*results, *self.next_names], inputs)


class _Named(Stored):
    name: str


class _Graph(Stored):
    file: Annotated[str, Field(pattern=r"^\w+\.onnx$")]
    outputs: list[_Named]


class _Description(Stored):
    """What is read of model.json."""

    format: int
    max_source: Count | None
    max_target: Count | None
    encoder: _Graph
    step: _Graph


def read_description(folder: Path) -> dict[str, Any]:
    """Reads model.json. Raises DamagedExport if it is missing or unreadable."""
    file = folder / DESCRIPTION
    if not file.is_file():
        raise DamagedExport(f"{folder} has no {DESCRIPTION}, so it is not an ONNX export: export the run again.")
    try:
        about = read_stored(file, _Description, remedy="Export the run again.")
    except Mistake as error:
        raise DamagedExport(str(error)) from error
    if about["format"] != LAYOUT:
        raise DamagedExport(f"{file} does not describe an ONNX export of this version of nmt: export the run again.")
    return about


def _session(file: Path, threads: int) -> Any:
    if not file.is_file():
        raise DamagedExport(f"There is no {file}: copy it back, or export the run again.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    try:
        return onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no public base class
        reason = str(error).partition("\n")[0]
        raise DamagedExport(
            f"{file} is damaged: ONNX Runtime cannot read it ({reason}). Export the run again."
        ) from error


def _run(session: Any, outputs: list[str], inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """The outputs of a session. Inputs and outputs share their memory with ONNX Runtime."""
    given = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(tensor.contiguous().numpy()) for name, tensor in inputs.items()
    }
    return tuple(from_dlpack(value) for value in session.run_with_ort_values(outputs, given))
