"""Writes a run as two ONNX graphs, the encoder and one step of the decoder, which any search can drive."""

import copy
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.attention import SiteWatch, VisibleKeys
from nmt.errors import Mistake
from nmt.exports.folding import require_two_graphs
from nmt.files import write_json
from nmt.models.base import Seq2Seq
from nmt.models.lstmn import Recurrence
from nmt.models.recurrent import Memory as RecurrentMemory
from nmt.runs.directory import RunDirectory, tokenizer_hashes
from nmt.runs.engine import longest_source
from nmt.runs.load import LoadedRun
from nmt.runs.search import beam_settings
from nmt.text import BOS, EOS, PAD, UNK

LAYOUT = 1
"""Version of the folder's layout."""
DESCRIPTION = "model.json"
_OPSET = 18
_SENTENCES, _BEAMS, _SOURCE, _PAST = 2, 3, 5, 4
"""Sizes of the example inputs. The graphs accept any other sizes too."""


class _Encoder(nn.Module):
    """The Memory of the sources and their first State, with one row per sentence."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, source: Int[Tensor, "sentences source"], source_mask: Bool[Tensor, "sentences source"]
    ) -> tuple[Any, Any]:
        memory = self.model.encode(source, source_mask)
        state = self.model.start(memory, beams=1)
        if isinstance(memory, RecurrentMemory):
            memory = memory._replace(first=())
        # ONNX cannot reshape a tensor without elements, so tensors that have no positions yet are created anew.
        return memory, _mapped(
            lambda leaf: leaf if leaf.ndim < 4 else leaf.new_zeros(source.shape[0], *leaf.shape[1:]), state
        )


class _Step(nn.Module):
    """One step of the decoder: log p of the next piece, the cross attention weights of all layers, and the new State.

    The State and the Memory are passed as flat tuples of tensors; `state` and `memory` are examples of their structure.
    """

    def __init__(self, model: Seq2Seq, state: Any, memory: Any) -> None:
        super().__init__()
        self.model, self.state, self.memory = model, state, memory

    def forward(
        self, tokens: Int[Tensor, "sentences beams"], state_parts: tuple[Tensor, ...], memory_parts: tuple[Tensor, ...]
    ) -> tuple[Float[Tensor, "sentences beams vocab"], Float[Tensor, "layers sentences heads beams source"], Any]:
        cross: list[Tensor] = []
        parts = iter((*state_parts, *memory_parts))
        state, memory = _mapped(lambda _: next(parts), (self.state, self.memory))

        def keep(site: str, layer: int, weights: Tensor, visible: VisibleKeys) -> None:
            if site == "cross":
                cross.append(weights)

        log_probs, state = self.model.step(tokens, state, memory, keep)
        return log_probs, torch.stack(cross), state


class OnnxRecurrence(Recurrence):
    """A layer of torch's LSTM or GRU as the ONNX operator of the same name, which takes the sentence lengths.

    The exporter would fix torch's own layer to the length of the example input. This module can be exported but not
    run.
    """

    input_weight: Tensor
    hidden_weight: Tensor
    bias: Tensor

    def __init__(self, network: nn.LSTM | nn.GRU) -> None:
        super().__init__()
        self.hidden_dim = network.hidden_size
        self.attributes: dict[str, Any] = {
            "hidden_size": self.hidden_dim,
            "direction": "bidirectional" if network.bidirectional else "forward",
        }
        order: tuple[int, ...]  # of ONNX's gates i o f c or z r h among torch's i f g o or r z n
        if isinstance(network, nn.LSTM):
            self.operator, self.states, order = "LSTM", 2, (0, 3, 1, 2)
        else:
            self.operator, self.states, order = "GRU", 1, (1, 0, 2)
            self.attributes["linear_before_reset"] = 1  # as in torch, the reset gate multiplies the recurrent product
        suffixes = ("l0", "l0_reverse") if network.bidirectional else ("l0",)

        def in_order(name: str) -> Tensor:
            gates = [getattr(network, f"{name}_{suffix}").detach().chunk(len(order)) for suffix in suffixes]
            return torch.stack([torch.cat([of_direction[gate] for gate in order]) for of_direction in gates])

        self.register_buffer("input_weight", in_order("weight_ih"))
        self.register_buffer("hidden_weight", in_order("weight_hh"))
        self.register_buffer("bias", torch.cat([in_order("bias_ih"), in_order("bias_hh")], dim=1))

    def forward(
        self,
        inputs: Float[Tensor, "batch source input_dim"],
        lengths: Int[Tensor, " batch"],
        watch: SiteWatch | None = None,
    ) -> tuple[Float[Tensor, "batch source hidden_dim"], Any]:
        batch, source, _ = inputs.shape
        final = (self.input_weight.shape[0], batch, self.hidden_dim)
        outputs, *states = torch.onnx.ops.symbolic_multi_out(
            self.operator,
            (inputs.transpose(0, 1), self.input_weight, self.hidden_weight, self.bias, lengths.int()),
            self.attributes,
            dtypes=[inputs.dtype] * (1 + self.states),
            shapes=[(source, *final), *[final] * self.states],
        )
        return outputs.permute(2, 0, 1, 3).flatten(2), tuple(states) if self.operator == "LSTM" else states[0]


def write_onnx(run: LoadedRun, folder: Path, *, int8: bool = False) -> None:
    """Writes encoder.onnx, step.onnx, model.json and the tokenizer files to an existing folder.

    docs/how_to/onnx.md describes them. With `int8`, the matrices of linear layers and LSTMs are stored as 8-bit
    integers with one scale per column, and their inputs are rounded to 8 bits when the graph runs.

    Raises Mistake for a model that cannot be written as two graphs.
    """
    model = _exportable(run)
    with torch.no_grad():
        # The example inputs; the graphs take any number of sentences, beams and pieces.
        source = torch.full((_SENTENCES, min(_SOURCE, model.max_source or _SOURCE)), EOS)
        memory, first = _Encoder(copy.deepcopy(run.model).cpu())(source, source != PAD)
        past = min(_PAST, (model.max_target or _PAST + 1) - 1)
        state = _mapped(lambda leaf: _lengthened(leaf.repeat_interleave(_BEAMS, dim=0), past), first)
        tokens = torch.full((_SENTENCES, _BEAMS), BOS)
    written = {
        "encoder": _write(
            folder / "encoder.onnx",
            _Encoder(model),
            (source, source != PAD),
            ({0: "sentences", 1: "source"}, {0: "sentences", 1: "source"}),
            ["source", "source_mask"],
            [*_named(memory, "memory"), *_named(first, "state")],
        ),
        "step": _write(
            folder / "step.onnx",
            _Step(model, state, memory),
            (tokens, tuple(_named(state, "").values()), tuple(_named(memory, "").values())),
            ({0: "sentences", 1: "beams"}, _axes(state, "rows", "past"), _axes(memory, "sentences", "source")),
            ["tokens", *_named(state, "state"), *_named(memory, "memory")],
            ["log_probs", "cross", *_named(state, "next")],
        ),
    }
    if int8:
        for graph in written.values():
            _round_to_int8(folder / graph["file"])
    RunDirectory(folder).write_tokenizers(run.tokenizers, run.direction)
    write_json(folder / DESCRIPTION, {**_description(run), "quantization": "int8" if int8 else "float32", **written})


def _exportable(run: LoadedRun) -> Seq2Seq:
    """A copy of the model on the CPU with ONNX's recurrent operators. Raises Mistake if it cannot be exported."""
    require_two_graphs(run)
    model = copy.deepcopy(run.model).cpu()
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.LSTM | nn.GRU):
            model.set_submodule(name, OnnxRecurrence(module))
    return model


def _write(
    file: Path,
    module: nn.Module,
    inputs: tuple[Any, ...],
    axes: tuple[Any, ...],
    input_names: Sequence[str],
    output_names: Sequence[str],
) -> dict[str, Any]:
    """Writes a graph; returns its file name and the names, types and shapes of its inputs and outputs."""
    try:
        with torch.no_grad(), quiet_exporter():
            program: Any = torch.onnx.export(
                module.eval(),
                inputs,
                input_names=input_names,
                output_names=output_names,
                dynamic_shapes=axes,
                opset_version=_OPSET,
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        kinds = {type(part) for part in module.modules()}
        foreign = sorted(kind.__name__ for kind in kinds if not kind.__module__.startswith(("nmt.", "torch.")))
        if not foreign:  # a bug in nmt or in torch
            raise
        reason = (str(error.__cause__ or error).strip() or type(error).__name__).partition("\n")[0]
        raise Mistake(
            f"{file.name} cannot be written, because torch.onnx cannot express the class "
            f"{' or '.join(foreign)} ({reason}); use operations that torch.export can trace for every size, or one of "
            "nmt's own classes."
        ) from error
    graph = program.model.graph
    for node in graph.all_nodes():
        node.metadata_props.clear()  # stack traces, which contain paths on this machine
    program.save(file)
    return {"file": file.name, "inputs": _described(graph.inputs), "outputs": _described(graph.outputs)}


def _described(values: Sequence[Any]) -> list[dict[str, Any]]:
    """Name, type and shape of each input or output; a variable-size axis has a name instead of a number."""
    return [
        {
            "name": value.name,
            "type": value.dtype.numpy().name,
            "shape": [size if isinstance(size, int) else str(size) for size in value.shape],
        }
        for value in values
    ]


def _round_to_int8(file: Path) -> None:
    """Rounds the weights of a graph. The parameters of scorers, which have one matrix per head, stay float32.

    Weights use 7 bits, because products of two 8-bit numbers overflow on CPUs without VNNI instructions.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    quant_pre_process(file, file, skip_symbolic_shape=True)
    graph = onnx.load(file).graph
    matrices = {weights.name for weights in graph.initializer if len(weights.dims) == 2}
    products = [node for node in graph.node if node.op_type in ("Gemm", "MatMul")]
    quantize_dynamic(
        file,
        file,
        op_types_to_quantize=["Gemm", "LSTM", "MatMul"],
        nodes_to_exclude=[node.name for node in products if node.input[1] not in matrices],
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=True,
    )


@contextmanager
def quiet_exporter() -> Iterator[None]:
    """Silences messages about the exporter itself, because users can do nothing about them."""
    # They concern torchvision's operators, which no model here uses, and tracing failures, which an error reports.
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.fx")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            # torch copies its own deprecated objects.
            warnings.filterwarnings("ignore", message=".isinstance\\(treespec, LeafSpec\\)", category=FutureWarning)
            # Two inputs share an axis, as intended.
            warnings.filterwarnings("ignore", message=".*axis name.*", category=UserWarning)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _description(run: LoadedRun) -> dict[str, Any]:
    """What a program needs to know besides the graphs."""
    tokenizers = [*tokenizer_hashes(run.tokenizers, run.direction)]
    return {
        "format": LAYOUT,
        "model": type(run.model).__name__,
        "direction": {"source": run.direction.source, "target": run.direction.target},
        "tokenizers": {"source": tokenizers[0], "target": tokenizers[-1]},
        "special_ids": {"pad": PAD, "unk": UNK, "bos": BOS, "eos": EOS},
        "max_source": run.model.max_source,
        "max_target": run.model.max_target,
        "max_source_tokens": min(longest_source(run.settings), run.model.max_source or math.inf),
        "attention": {
            site: {"layers": len(layers), "heads": layers[0].num_heads} for site, layers in run.model.sites.items()
        },
        "search": beam_settings(run),
    }


def _mapped(change: Callable[[Tensor], Any], tree: Any) -> Any:
    """The nested named tuple with `change` applied to each tensor."""
    if isinstance(tree, Tensor):
        return change(tree)
    parts = [_mapped(change, part) for part in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def _named(tree: Any, name: str) -> dict[str, Tensor]:
    """The tensors of a nested named tuple by their paths, such as memory.annotations.keys."""
    if isinstance(tree, Tensor):
        return {name: tree}
    fields = getattr(tree, "_fields", range(len(tree)))
    parts = [_named(part, f"{name}.{field}") for field, part in zip(fields, tree, strict=True)]
    return {path: leaf for part in parts for path, leaf in part.items()}


def _lengthened(leaf: Tensor, positions: int) -> Tensor:
    """Keys or values (rows, heads, n, _) padded with more positions; other tensors are returned unchanged."""
    return nn.functional.pad(leaf, (0, 0, 0, positions)) if leaf.ndim == 4 else leaf


def _axes(tree: Any, rows: str, positions: str) -> tuple[dict[int, str], ...]:
    """The names of each tensor's variable-size axes; only keys, values and masks have positions."""
    return tuple(
        {0: rows, 2: positions}
        if leaf.ndim == 4
        else {0: rows, 1: positions}
        if leaf.dtype == torch.bool
        else {0: rows}
        for leaf in _named(tree, "").values()
    )
