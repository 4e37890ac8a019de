"""The number of torch's operations in a step of a search: with few hypotheses, calling them takes most of the time."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nmt.cli.compose import configuration
from nmt.data.batch import pad_source
from nmt.decoding.beam import BeamSearch
from nmt.decoding.constraints import Constraints
from nmt.models.embeddings import VocabularySizes
from nmt.runs.load import composed_model
from nmt.runs.precision import with_precision

STEPS = 20


class CountedOperations(TorchDispatchMode):
    """Counts the operations that are computed inside it, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("model", "most", "reads"),
    [
        (["model=transformer", "model.num_layers=3", "model.dim=64", "model.num_heads=2"], 354, 7),
        (["model=luong", "model.decoder_dim=64", "model.encoder_dim=64", "model.embedding_dim=64"], 160, 5),
    ],
    ids=["transformer", "luong"],
)
def test_a_step_of_one_sentence_takes_few_operations(model: list[str], most: int, reads: int) -> None:
    """`most` is 15 % above the numbers with torch 2.13, 308 and 139. A number read from a tensor is a wait on a GPU."""
    torch.manual_seed(1)
    node = configuration("train", ["run_dir=none", "experiment=none", *model])["model"]
    built = composed_model(node, VocabularySizes(400, 400, joint=False), None).eval()
    ready = with_precision(built, "float32", torch.device("cpu"))
    search = BeamSearch(constraints=Constraints(min_length=STEPS, max_length=STEPS))
    source, mask = pad_source([[*range(4, 20)]])
    with torch.inference_mode(), CountedOperations() as operations:
        search(ready, source, mask)
    counts = operations.counts
    assert counts.total() / STEPS <= most, counts.most_common()
    assert (counts["item"] + counts["is_nonzero"] + counts["_local_scalar_dense"]) / STEPS <= reads, counts
