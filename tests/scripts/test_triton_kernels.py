"""The Triton kernels against the formula in float64; without a GPU, Triton's interpreter runs them (conftest.py)."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

triton = pytest.importorskip("triton", reason="triton is not installed; nmt[dev] has it")
if not torch.cuda.is_available() and tuple(map(int, triton.__version__.split(".")[:2])) < (3, 7):
    pytest.skip("triton's interpreter does not run with numpy 2.4 before triton 3.7", allow_module_level=True)
triton_additive_score = importlib.import_module("scripts.bench.triton_kernels").triton_additive_score
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def leaves(batch: int, heads: int, queries: int, keys: int, hidden: int, dtype: torch.dtype) -> list[Tensor]:
    shapes = (batch, heads, queries, hidden), (batch, heads, keys, hidden), (heads, hidden)
    return [torch.randn(shape, device=DEVICE).to(dtype).requires_grad_() for shape in shapes]


SIZES = [(1, 1, 1, 1, 1), (2, 3, 5, 7, 11), (1, 2, 17, 33, 19), (1, 1, 33, 3, 37)]
EPS = torch.finfo(torch.float32).eps
# tanh(x) is computed as 2 sigmoid(2 x) - 1, whose rounding errors are those of numbers near 1.
OF_TANH = 8


def assert_within(found: Tensor, exact: Tensor, bound: Tensor) -> None:
    """Compares a float32 result with one in float64. The bound is that of the rounding errors, for each number."""
    assert found.shape == exact.shape
    excess = (found.double() - exact).abs() - bound
    assert (excess <= 0).all(), f"off by up to {excess.max():.1e} more than rounding errors can be"


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_scores_and_gradients_are_those_of_the_formula(sizes: tuple[int, ...]) -> None:
    """A float32 sum of n terms is off by at most n eps times the sum of their absolute values."""
    torch.manual_seed(3)
    batch, _, num_queries, num_keys, hidden = sizes
    inputs = leaves(*sizes, dtype=torch.float32)
    queries, keys, vector = exact_inputs = [each.detach().double().requires_grad_() for each in inputs]
    exact = (torch.tanh(queries[:, :, :, None] + keys[:, :, None]) * vector[:, None, None]).sum(dim=-1)
    found = triton_additive_score(*inputs)
    size = vector.detach().abs()
    assert_within(found, exact, (hidden + OF_TANH) * EPS * size.sum(dim=1)[:, None, None])

    grad = torch.randn_like(found)
    ours = torch.autograd.grad(found, inputs, grad)
    exact_grads = torch.autograd.grad(exact, exact_inputs, grad.double())
    large = grad.double().abs()
    of_queries = (num_keys + 2 * OF_TANH) * EPS * large.sum(dim=3)[..., None] * size[:, None]
    of_keys = (num_queries + 2 * OF_TANH) * EPS * large.sum(dim=2)[..., None] * size[:, None]
    of_vector = (batch * num_queries * num_keys + OF_TANH) * EPS * large.sum(dim=(0, 2, 3))[:, None]
    for each, exact_grad, bound in zip(ours, exact_grads, (of_queries, of_keys, of_vector), strict=True):
        assert_within(each, exact_grad, bound)


def test_bfloat16_is_computed_in_float32() -> None:
    torch.manual_seed(4)
    inputs = leaves(2, 2, 5, 7, 11, dtype=torch.bfloat16)
    found = triton_additive_score(*inputs)
    assert found.dtype == torch.bfloat16
    queries, keys, vector = (each.detach().double() for each in inputs)
    exact = (torch.tanh(queries[:, :, :, None] + keys[:, :, None]) * vector[:, None, None]).sum(dim=-1)
    # One rounding to bfloat16 at the end, by up to one eps because Triton's interpreter truncates.
    of_float32 = (11 + OF_TANH) * EPS * vector.abs().sum(dim=1)[:, None, None]
    assert_within(found, exact, torch.finfo(torch.bfloat16).eps * (exact.abs() + of_float32) + of_float32)
    assert {grad.dtype for grad in torch.autograd.grad(found.sum(), inputs)} == {torch.bfloat16}


def test_any_memory_layout_gives_the_same_scores() -> None:
    torch.manual_seed(5)
    queries, keys, vector = leaves(2, 3, 5, 7, 11, dtype=torch.float32)
    found = triton_additive_score(queries.mT.contiguous().mT, keys.mT.contiguous().mT, vector)
    torch.testing.assert_close(found, triton_additive_score(queries, keys, vector), rtol=0, atol=0)


@pytest.mark.parametrize(("queries", "keys"), [(0, 3), (3, 0)])
def test_no_queries_or_no_keys_give_no_scores(queries: int, keys: int) -> None:
    inputs = leaves(2, 3, queries, keys, 5, dtype=torch.float32)
    found = triton_additive_score(*inputs)
    assert found.shape == (2, 3, queries, keys)
    assert all(not grad.any() for grad in torch.autograd.grad(found.sum(), inputs))


COMPILE = """
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from scripts.bench.triton_kernels import BLOCKS, _gradients, _scores

for kernel in (_scores, _gradients):
    for dtype in ("fp32", "bf16"):
        types = {name: "i32" for name in kernel.arg_names} | dict.fromkeys(BLOCKS, "constexpr")
        types |= {name: f"*{dtype}" for name in ("queries", "keys", "vector", "scores", "own", "other", "grad")}
        types |= {"grad_own": "*fp32", "grad_vector": "*fp32"}
        source = ASTSource(kernel, {name: types[name] for name in kernel.arg_names}, constexprs=dict(BLOCKS))
        print(dtype, ".entry" in compile(source, target=GPUTarget("cuda", 80, 32)).asm["ptx"])
"""


def test_they_compile_for_a_gpu_that_this_machine_may_not_have(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    checkout = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", COMPILE], env=environment, cwd=checkout, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["fp32 True", "bf16 True"] * 2
