"""Measure where the CPU time of a training step and a search step goes, by kind of operation.

    OMP_NUM_THREADS=1 python -m scripts.bench.budget
    OMP_NUM_THREADS=1 python -m scripts.bench.budget --precision bf16-mixed
    OMP_NUM_THREADS=1 python -m scripts.bench.budget --precision auto

--precision auto takes bf16-mixed where the CPU has bfloat16 instructions. The first lines list the CPU's instructions
that matter for speed, and its rate of matrix products. All other figures are CPU milliseconds of one thread, which
other work on the machine changes less than elapsed time. A training step reads random sentences (dropout
0.1); a search step extends five hypotheses of one sentence in float32.
The rate of bfloat16 is that of products of two bfloat16 matrices, without the casts that autocast adds.
Each operation is timed by itself, minus the time that a view takes, which is the overhead of timing. Profiled steps
alternate with unprofiled ones, and the fastest of each kind counts, because other work can only slow a step down.
"Python and calls" is the unprofiled step minus the sum of its operations: Python, torch's dispatch, and views. It is
negative if profiling slows the operations down. "Its products at the full rate" leaves out those inside fused
attention.
"""

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from nmt.cli.compose import configuration
from nmt.cores import usable_cores
from nmt.data.batch import pad_source
from nmt.decoding.beam import BeamSearch
from nmt.decoding.constraints import Constraints
from nmt.kernels.vocabulary_loss import summed_nll
from nmt.models import Seq2Seq, VocabularySizes
from nmt.runs.load import composed_model
from nmt.runs.precision import with_precision
from nmt.text import BOS, EOS
from scripts.bench.training_cost import SIZES
from scripts.mistakes import report_mistakes

PIECES, STEPS = 8000, 40
INSTRUCTIONS = ("avx2", "avx512_f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")
"""Those on which the speed of products depends, by the names of torch.cpu.get_capabilities."""
PRODUCTS = "products"
KINDS = {
    PRODUCTS: (
        *("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "_linear_pointwise", "_mkl_linear"),
        *("lstm", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward"),
    ),
    "fused attention": (
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention_for_cpu_backward",
    ),
    "softmax": ("softmax", "_softmax", "log_softmax", "_log_softmax", "_softmax_backward_data"),
    "random numbers": ("random_", "bernoulli_", "native_dropout", "uniform_"),
    "casts": ("_to_copy", "to"),
    "layout and copies": (
        *("copy_", "clone", "cat", "stack", "index_select", "index_copy_", "gather", "scatter", "index", "embedding"),
        *("constant_pad_nd", "contiguous", "empty", "empty_like", "new_empty", "zeros", "zeros_like", "new_zeros"),
        *("view", "_unsafe_view", "t", "transpose", "slice", "select", "unsqueeze", "squeeze", "expand", "permute"),
        *("unflatten", "flatten", "split", "unbind", "as_strided", "fill_", "zero_", "index_put_", "select_backward"),
        *("slice_backward", "embedding_dense_backward"),
    ),
    "sums": ("add", "add_", "sum", "sub", "sub_", "mean", "cumsum"),
}
"""The operations of each kind, by their names in torch; all others are elementwise or choose the best hypotheses."""
REST, PYTHON = "all others", "Python and calls"


class MeasuredOperations(TorchDispatchMode):
    """Measures the CPU seconds of each operation inside it, by name, and counts their calls and products."""

    def __init__(self, smallest: float = 0.0) -> None:
        super().__init__()
        self.smallest = smallest
        self.seconds, self.calls = defaultdict[str, float](float), Counter[str]()
        self.multiplications = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        start = time.process_time()
        result = func(*args, **(kwargs or {}))
        self.seconds[name] += time.process_time() - start - self.smallest
        self.calls[name] += 1
        if name in KINDS[PRODUCTS]:
            self.multiplications += multiplications(name, args, result)
        return result


def multiplications(name: str, args: Any, result: Any) -> int:
    """The multiplications of a product, or of the products of a recurrent layer."""
    if name.startswith("mkldnn_rnn_layer"):  # inputs, weights of the inputs, weights of the states, ...
        rows = args[0].numel() // args[0].shape[-1]
        # Backward, there is one product for the gradient of the left side and one for that of the right side.
        return rows * (args[1].numel() + args[2].numel()) * (2 if name.endswith("backward") else 1)
    if name == "lstm":  # inputs, perhaps the sizes of a packed batch, states, weights of all layers
        rows, weights = args[0].numel() // args[0].shape[-1], args[3 if isinstance(args[1], Tensor) else 2]
        return rows * sum(matrix.numel() for matrix in weights if matrix.dim() == 2)
    left = args[1] if name in ("addmm", "baddbmm") else args[0]
    return int(result.numel() * left.shape[-1])


def model_of(name: str) -> Seq2Seq:
    torch.manual_seed(1)
    node = configuration("train", ["run_dir=none", "experiment=none", f"model={name}", *SIZES[name]])["model"]
    return composed_model(node, VocabularySizes(PIECES, PIECES, joint=True), None)


def training_step(name: str, sentences: int, length: int, precision: str) -> Callable[[], None]:
    model = model_of(name).train()
    optimizer = torch.optim.AdamW(model.parameters())
    source, mask = pad_source(torch.randint(EOS + 1, PIECES, (sentences, length - 1)).tolist())
    target = torch.randint(EOS + 1, PIECES, (sentences, length))
    begun = torch.cat([torch.full((sentences, 1), BOS), target[:, :-1]], dim=1)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16-mixed"):
            features = model.decode(begun, model.encode(source, mask))
            loss = summed_nll(features, model.output, target, 0.1) / target.numel()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def search_of_one_sentence(name: str) -> Callable[[], None]:
    """A search of STEPS steps, with the encoder."""
    model = with_precision(model_of(name).eval(), "float32", torch.device("cpu"))
    search = BeamSearch(constraints=Constraints(min_length=STEPS, max_length=STEPS))
    source, mask = pad_source(torch.randint(EOS + 1, PIECES, (1, 20)).tolist())

    def step() -> None:
        with torch.inference_mode():
            search(model, source, mask)

    return step


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def rate_of_products(dtype: torch.dtype) -> float:
    """Multiplications per second in products of 1,024 x 1,024."""
    square = torch.randn(1024, 1024, dtype=dtype)
    return 1024**3 / min(cpu_seconds(lambda: square @ square) for _ in range(10))


def smallest_operation() -> float:
    """The CPU seconds that a view takes where operations are measured one by one."""
    row, calls = torch.zeros(1), 10_000
    with torch.inference_mode(), MeasuredOperations() as operations:
        for _ in range(calls):
            row.unsqueeze(0)
    return operations.seconds["unsqueeze"] / calls


def budget(step: Callable[[], None], parts: int, rounds: int, rate: float) -> dict[str, float]:
    """Milliseconds of each kind, for a step that counts as `parts` of them; `rate` is in multiplications per second."""
    step()
    smallest = smallest_operation()
    totals, measured = list[float](), list[MeasuredOperations]()
    for _ in range(rounds):
        totals.append(cpu_seconds(step))
        with MeasuredOperations(smallest) as operations:
            step()
        measured.append(operations)
    total, operations = min(totals), min(measured, key=lambda one: sum(one.seconds.values()))
    kinds = {name: kind for kind, names in KINDS.items() for name in names}
    milliseconds = dict.fromkeys([*KINDS, REST], 0.0)
    for name, seconds in operations.seconds.items():
        milliseconds[kinds.get(name, REST)] += 1000 * seconds / parts
    milliseconds[PYTHON] = 1000 * total / parts - sum(milliseconds.values())
    return {
        **milliseconds,
        "the whole step": 1000 * total / parts,
        "its products at the full rate": 1000 * operations.multiplications / rate / parts,
        "calls of operations": sum(operations.calls.values()) / parts,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sentences",
        type=int,
        default=64,
        help="sentences per training step, each with 32 pieces (default: %(default)s)",
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="steps of each kind, of which the fastest counts (default: %(default)s)"
    )
    parser.add_argument(
        "--precision", choices=["32-true", "bf16-mixed", "auto"], default="32-true", help="of the training step"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    able = torch.cpu.get_capabilities()
    precision = options.precision
    if precision == "auto":
        precision = "bf16-mixed" if able.get("avx512_bf16") or able.get("amx_bf16") else "32-true"
    training_type = torch.bfloat16 if precision == "bf16-mixed" else torch.float32
    rates = {dtype: rate_of_products(dtype) for dtype in dict.fromkeys([torch.float32, training_type])}
    columns = {
        f"{name}, {kind}": budget(step, parts, options.rounds, rate)
        for name in ("transformer", "luong")
        for kind, step, parts, rate in (
            (
                f"training, {precision}",
                training_step(name, options.sentences, 32, precision),
                1,
                rates[training_type],
            ),
            ("search", search_of_one_sentence(name), STEPS, rates[torch.float32]),
        )
    }
    supported = ", ".join(name for name in INSTRUCTIONS if able.get(name)) or "none of " + ", ".join(INSTRUCTIONS)
    print(f"{able.get('cpu_name', able['architecture'])}, {usable_cores()} cores: {supported}")
    for dtype, rate in rates.items():
        name = str(dtype).removeprefix("torch.")
        print(f"{name} products of 1,024 x 1,024: {2 * rate / 1e9:.0f} GFLOP/s with one thread")
    print()
    print("| ms | " + " | ".join(columns) + " |")
    print("|---|" + "---|" * len(columns))
    for row in next(iter(columns.values())):
        print(f"| {row} | " + " | ".join(f"{column[row]:,.2f}" for column in columns.values()) + " |")


if __name__ == "__main__":
    report_mistakes(main)
