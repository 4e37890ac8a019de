"""The Triton kernels against the score in blocks, which test_scorers.py holds to the formula; see conftest.py."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from nmt.kernels.additive_score import additive_score

triton = pytest.importorskip("triton", reason="it comes with torch's CUDA builds, and with nmt[dev]")
if not torch.cuda.is_available() and tuple(map(int, triton.__version__.split(".")[:2])) < (3, 7):
    pytest.skip("the interpreter of triton before 3.7 does not run with numpy 2.4", allow_module_level=True)
triton_additive_score = importlib.import_module("scripts.bench.triton_kernels").triton_additive_score
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def leaves(batch: int, heads: int, queries: int, keys: int, hidden: int, dtype: torch.dtype) -> list[Tensor]:
    shapes = (batch, heads, queries, hidden), (batch, heads, keys, hidden), (heads, hidden)
    return [torch.randn(shape, device=DEVICE).to(dtype).requires_grad_() for shape in shapes]


SIZES = [(1, 1, 1, 1, 1), (2, 3, 5, 7, 11), (1, 2, 17, 33, 19), (1, 1, 33, 3, 37)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_scores_and_gradients_are_those_of_the_blocks(sizes: tuple[int, ...]) -> None:
    torch.manual_seed(3)
    inputs = leaves(*sizes, dtype=torch.float32)
    expected, found = additive_score(*inputs), triton_additive_score(*inputs)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    grad = torch.randn_like(expected)
    for ours, theirs in zip(
        torch.autograd.grad(found, inputs, grad), torch.autograd.grad(expected, inputs, grad), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_bfloat16_is_computed_in_float32() -> None:
    torch.manual_seed(4)
    inputs = leaves(2, 2, 5, 7, 11, dtype=torch.bfloat16)
    found = triton_additive_score(*inputs)
    assert found.dtype == torch.bfloat16
    exact = additive_score(*(x.float() for x in inputs))
    torch.testing.assert_close(found, exact.bfloat16(), rtol=8e-3, atol=8e-3)
    assert {grad.dtype for grad in torch.autograd.grad(found.sum(), inputs)} == {torch.bfloat16}


def test_any_layout_of_memory_will_do() -> None:
    torch.manual_seed(5)
    queries, keys, vector = leaves(2, 3, 5, 7, 11, dtype=torch.float32)
    found = triton_additive_score(queries.mT.contiguous().mT, keys.mT.contiguous().mT, vector)
    torch.testing.assert_close(found, additive_score(queries, keys, vector), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("queries", "keys"), [(0, 3), (3, 0)])
def test_nothing_to_score_is_nothing(queries: int, keys: int) -> None:
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


def test_they_compile_for_a_gpu_that_is_not_there(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    checkout = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", COMPILE], env=environment, cwd=checkout, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["fp32 True", "bf16 True"] * 2
