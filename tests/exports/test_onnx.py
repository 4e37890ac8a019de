"""A run as ONNX graphs: what ONNX Runtime computes of them is what torch computes of the model."""

import contextlib
import copy
import io
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jaxtyping
import onnxruntime
import pytest
import torch
from torch import Tensor

from nmt.attention import Attention, normalizers, scorers, windows
from nmt.data.batch import pad_source
from nmt.decoding.beam import BeamSearch
from nmt.decoding.constraints import Constraints
from nmt.decoding.sampling import Sampling
from nmt.decoding.state import Decodable, move_rows
from nmt.exports.onnx import write_onnx
from nmt.exports.onnx_model import OnnxModel
from nmt.models import Bahdanau, Luong, Seq2Seq, Transformer, VocabularySizes
from nmt.models.embeddings import with_plain_weights
from nmt.models.norms import LayerNorm, ScaleNorm
from nmt.runs.load import Trained, load_run
from nmt.runs.search import build_translator
from nmt.text import BOS

CHECKOUT = Path(__file__).resolve().parents[2]
EXAMPLE = CHECKOUT / "docs" / "how_to" / "translate_with_onnx.py"
LINES = ["one two three four.", "", "seven", "five  two six one one three two four seven two."]

EPS = torch.finfo(torch.float32).eps
# No value goes through more than 12 products in a row, of at most 32 terms with a sum of at most 8.
CLOSE = 12 * 32 * 8 * EPS / 10

Cross = Callable[..., Attention]


def site(
    scorer: Callable[..., scorers.Scorer],
    window: Callable[..., windows.Window] = windows.Global,
    normalizer: Callable[[], normalizers.Normalizer] = normalizers.Softmax,
) -> Cross:
    return partial(Attention, scorer, window, normalizer)


LOCAL_M = partial(windows.LocalM, half_width=2)
LOCAL_P = partial(windows.LocalP, half_width=2, renormalize=False)
RENORMALIZED = partial(windows.LocalP, half_width=3, renormalize=True)
LOCATION = partial(scorers.Location, max_length=40)


def luong(cross: Cross, own: Cross | None = None, **changes: Any) -> Callable[..., Seq2Seq]:
    sizes = {"embedding_dim": 10, "encoder_dim": 12, "decoder_dim": 12, "num_layers": 1, "num_heads": 1}
    return partial(Luong, cross, own, own, **{**sizes, "input_feeding": True, **changes})


def bahdanau(cross: Cross, **changes: Any) -> Callable[..., Seq2Seq]:
    sizes = {"embedding_dim": 10, "encoder_dim": 12, "decoder_dim": 12, "maxout_dim": 6, "num_heads": 1}
    return partial(Bahdanau, cross, **{**sizes, **changes})


def transformer(encoder: Cross, decoder: Cross, cross: Cross, norm: Any = LayerNorm, **changes: Any) -> Any:
    sizes = {"dim": 12, "ffn_dim": 16, "num_heads": 2, "num_layers": 1, "norm_first": True}
    return partial(Transformer, encoder, decoder, cross, norm, **{**sizes, **changes})


SPARSE = normalizers.Sparsemax
MODELS: dict[str, Callable[..., Seq2Seq]] = {
    "luong": luong(site(scorers.General)),
    "luong_reversed": luong(
        site(scorers.Additive, LOCAL_P, SPARSE), encoder="reversed", num_layers=2, input_feeding=False, fix_norm=True
    ),
    "luong_lstmn": luong(
        site(scorers.Concat, RENORMALIZED), site(scorers.Dot), decoder="lstmn", num_heads=2, encoder_dim=8
    ),
    "bahdanau": bahdanau(site(LOCATION, LOCAL_M, SPARSE), num_heads=3, fix_norm=True),
    "transformer": transformer(*3 * [site(scorers.ScaledDot)], num_layers=2, fix_norm=True),
    "transformer_post": transformer(
        site(scorers.Gaussian),
        site(scorers.Additive, normalizer=SPARSE),
        site(scorers.GaussianLearned, LOCAL_P),
        ScaleNorm,
        norm_first=False,
    ),
    "transformer_location": transformer(
        site(LOCATION, normalizer=SPARSE), site(LOCATION), site(scorers.NoScore, LOCAL_M)
    ),
}
JOINT = {"transformer"}


class Exported(NamedTuple):
    """A model with random weights, its export, and what was printed and logged meanwhile."""

    trained: Trained
    folder: Path
    onnx: OnnxModel
    printed: str

    @property
    def exact(self) -> Seq2Seq:
        """The model in float64."""
        return copy.deepcopy(self.trained.model).double()


@pytest.fixture(scope="session")
def base(finished: str, session_corpus: Path) -> Trained:
    return load_run(session_corpus / "run", "cpu")


def with_model(base: Trained, name: str) -> Trained:
    torch.manual_seed(7)
    size = base.tokenizers.target.size
    model = MODELS[name](vocabulary=VocabularySizes(size, size, joint=name in JOINT), dropout=0.1).eval()
    with_plain_weights(model)
    return base._replace(model=model)


def export(trained: Trained, folder: Path, quantization: str | None = None) -> str:
    """Writes the export; what that prints or logs. Tracing has no sizes, so they are not checked."""
    printed = io.StringIO()
    handler = logging.StreamHandler(printed)
    logging.getLogger().addHandler(handler)
    jaxtyping.config.update("jaxtyping_disable", True)
    folder.mkdir(exist_ok=True)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            write_onnx(trained, folder, quantization)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
        logging.getLogger().removeHandler(handler)
    return printed.getvalue()


@pytest.fixture(scope="session", params=MODELS)
def exported(request: pytest.FixtureRequest, base: Trained, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    trained, folder = with_model(base, request.param), tmp_path_factory.mktemp(request.param)
    printed = export(trained, folder)
    return Exported(trained, folder, OnnxModel(folder, threads=1), printed)


def random_sources(lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(sum(lengths))
    return pad_source([torch.randint(4, 290, (length,), generator=generator).tolist() for length in lengths])


def random_tokens(sentences: int, beams: int, steps: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(beams)
    drawn = torch.randint(4, 290, (steps - 1, sentences, beams), generator=generator)
    return [torch.full((sentences, beams), BOS), *drawn]


def watched(model: Seq2Seq, source: Tensor, mask: Tensor, tokens: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """log p and the cross attention weights (layers, sentences, heads, beams, source) of each step of a torch model."""
    memory = model.encode(source, mask)
    state = model.start(memory, tokens[0].shape[1])
    for each in tokens:
        cross: list[Tensor] = []
        log_probs, state = model.step(
            each, state, memory, lambda name, layer, weights, view: name == "cross" and cross.append(weights)
        )
        yield log_probs, torch.stack(cross)


def stepped(
    model: OnnxModel, source: Tensor, mask: Tensor, tokens: Sequence[Tensor]
) -> Iterator[tuple[Tensor, Tensor]]:
    """The same of an exported model."""
    memory = model.encode(source, mask)
    state = model.start(memory, tokens[0].shape[1])
    for each in tokens:
        log_probs, cross, state = model.watched_step(each, state, memory)
        yield log_probs, cross


@torch.inference_mode()
def test_a_sentence_alone_equals_itself_in_a_batch(exported: Exported) -> None:
    source, mask = random_sources([7, 1, 4])
    tokens = random_tokens(3, 2, steps=3)
    together = list(stepped(exported.onnx, source, mask, tokens))
    for row, length in enumerate(mask.sum(dim=1)):
        alone = stepped(
            exported.onnx,
            source[row : row + 1, :length],
            mask[row : row + 1, :length],
            [each[row : row + 1] for each in tokens],
        )
        for (log_probs, cross), (alone_log_probs, alone_cross) in zip(together, alone, strict=True):
            torch.testing.assert_close(alone_log_probs[0], log_probs[row], rtol=0, atol=CLOSE)
            torch.testing.assert_close(alone_cross[:, 0], cross[:, row, ..., :length], rtol=0, atol=CLOSE)
            assert not cross[:, row, ..., length:].any()


@pytest.mark.parametrize(("lengths", "beams"), [((5,), 1), ((7, 1, 4), 3), ((1, 23), 1), ((2, 2), 3)])
@torch.inference_mode()
def test_every_step_equals_the_model_in_float64(exported: Exported, lengths: Sequence[int], beams: int) -> None:
    source, mask = random_sources(lengths)
    tokens = random_tokens(len(lengths), beams, steps=5)
    expected = watched(exported.exact, source, mask, tokens)
    for (log_probs, cross), (exact_log_probs, exact_cross) in zip(
        stepped(exported.onnx, source, mask, tokens), expected, strict=True
    ):
        torch.testing.assert_close(log_probs.double(), exact_log_probs.double(), rtol=0, atol=CLOSE)
        torch.testing.assert_close(cross.double(), exact_cross.double(), rtol=0, atol=CLOSE)


@torch.inference_mode()
def test_steps_with_and_without_weights_agree(exported: Exported) -> None:
    source, mask = random_sources([3, 6])
    [tokens] = random_tokens(2, 2, steps=1)
    memory = exported.onnx.encode(source, mask)
    plain, state = exported.onnx.step(tokens, exported.onnx.start(memory, 2), memory)
    attending, weights, attending_state = exported.onnx.attending_step(tokens, exported.onnx.start(memory, 2), memory)
    _, cross, _ = exported.onnx.watched_step(tokens, exported.onnx.start(memory, 2), memory)
    assert attending.equal(plain)
    assert weights.equal(cross[-1].mean(dim=1))
    assert all(map(torch.equal, attending_state, state))


@torch.inference_mode()
def test_a_step_returns_tensors_of_its_own(exported: Exported) -> None:
    """The search overwrites the State, and Memory's rows once it has copied them."""
    source, mask = random_sources([3, 6])
    first, second = random_tokens(2, 2, steps=2)
    memory = exported.onnx.encode(source, mask)
    _, state = exported.onnx.step(first, exported.onnx.start(memory, 2), memory)
    kept = [leaf.clone() for leaf in (*state, *memory.parts)]
    expected, after = exported.onnx.step(second, state, memory)
    assert all(map(torch.equal, kept, (*state, *memory.parts)))
    places = [leaf.untyped_storage().data_ptr() for leaf in (*state, *memory.parts, *after) if leaf.numel()]
    assert len(set(places)) == len(places)
    for leaf in after:
        leaf.zero_()
    again, _ = exported.onnx.step(second, state, memory)
    assert again.equal(expected)


@torch.inference_mode()
def test_moved_rows_continue_unchanged(exported: Exported) -> None:
    source, mask = random_sources([3, 6])
    first, second = random_tokens(2, 2, steps=2)
    memory = exported.onnx.encode(source, mask)
    _, state = exported.onnx.step(first, exported.onnx.start(memory, 2), memory)
    expected, _ = exported.onnx.step(second, state, memory)
    swapped, _ = exported.onnx.step(second.flip(1), move_rows(state, torch.tensor([1, 0, 3, 2])), memory)
    torch.testing.assert_close(swapped, expected.flip(1), rtol=0, atol=CLOSE)


@torch.inference_mode()
def test_the_searches_find_the_same_translations(exported: Exported) -> None:
    source, mask = random_sources([7, 1, 4, 5])
    prefix = torch.tensor([[17, 40], [0, 0], [9, 0], [0, 0]])
    constraints = Constraints(min_length=3, no_repeat_ngram=2)
    searches = [
        BeamSearch(beam_size=3, coverage_penalty=0.3, n_best=3, constraints=constraints),
        BeamSearch(beam_size=1),
        Sampling(samples=2, temperature=1.0, top_k=20, top_p=0.9, seed=3),
    ]
    for search in searches:
        expected = search(exported.trained.model, source, mask, prefix)
        found = search(exported.onnx, source, mask, prefix)
        assert [[each.ids for each in best] for best in found] == [[each.ids for each in best] for best in expected]
        for ours, theirs in zip(found, expected, strict=True):
            steps = max(len(each.ids) for each in theirs) + 1
            assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=steps * CLOSE)


def test_the_description_has_the_inputs_and_outputs_of_the_graphs(exported: Exported) -> None:
    about = json.loads((exported.folder / "model.json").read_text())
    for name in ("encoder", "step"):
        session = onnxruntime.InferenceSession(exported.folder / about[name]["file"])
        for side, values in (("inputs", session.get_inputs()), ("outputs", session.get_outputs())):
            assert [value["name"] for value in about[name][side]] == [value.name for value in values]
            assert [value["shape"] for value in about[name][side]] == [value.shape for value in values]
    inputs = {value["name"]: value["shape"] for value in about["step"]["inputs"]}
    outputs = {value["name"]: value["shape"] for value in about["step"]["outputs"]}
    model = exported.trained.model
    heads, layers = model.sites["cross"][0].num_heads, len(model.sites["cross"])
    assert about["attention"]["cross"] == {"layers": layers, "heads": heads}
    assert inputs["tokens"] == ["sentences", "beams"]
    assert inputs["memory.mask"] == ["sentences", "source"]
    assert outputs["log_probs"] == ["sentences", "beams", 293]
    assert outputs["cross"] == [layers, "sentences", heads, "beams", "source"]
    assert {f"next.{name.removeprefix('state.')}" for name in inputs if name.startswith("state.")} <= outputs.keys()


def test_the_exporter_is_silent_and_leaves_no_paths(exported: Exported) -> None:
    assert exported.printed == ""
    for name in ("encoder.onnx", "step.onnx"):
        assert str(CHECKOUT).encode() not in (exported.folder / name).read_bytes()


def test_it_is_a_decodable_with_the_limits_of_the_model(exported: Exported) -> None:
    model = exported.trained.model
    assert isinstance(exported.onnx, Decodable)
    assert (exported.onnx.max_source, exported.onnx.max_target) == (model.max_source, model.max_target)
    assert exported.onnx.train(True) is exported.onnx
    assert not exported.onnx.training


@pytest.mark.parametrize("exported", ["luong", "bahdanau", "transformer_post"], indirect=True)
def test_the_example_translates_as_the_model_without_torch(exported: Exported) -> None:
    script = (
        f"import runpy, sys; sys.argv = ['translate', {str(exported.folder)!r}]; "
        f"runpy.run_path({str(EXAMPLE)!r}, run_name='__main__'); "
        "print({'torch', 'nmt'} & set(sys.modules), file=sys.stderr)"
    )
    found = subprocess.run(
        [sys.executable, "-I", "-c", script],
        input="".join(f"{line}\n" for line in LINES),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert found.stderr == "set()\n"
    assert found.stdout.split("\n")[:-1] == build_translator([exported.trained]).translate(LINES)
