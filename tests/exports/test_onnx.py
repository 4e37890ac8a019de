"""A run as ONNX graphs: what ONNX Runtime computes of them is what torch computes of the model."""

import contextlib
import copy
import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import onnx
import onnxruntime
import pytest
import torch
from grids import SOAK
from torch import Tensor

from nmt.attention import Attention, VisibleKeys, normalizers, scorers, windows
from nmt.config.schema import ContextSettings
from nmt.data.batch import context_sentences, pad_source
from nmt.decoding.beam import BeamSearch
from nmt.decoding.constraints import Constraints
from nmt.decoding.sampling import Sampling
from nmt.decoding.state import Decodable, move_rows
from nmt.errors import Mistake
from nmt.exports import onnx as onnx_export
from nmt.exports.damage import DamagedExport
from nmt.exports.export_record import RECORD
from nmt.exports.export_run import comparison_pairs, export_run
from nmt.exports.formats import open_engine
from nmt.exports.onnx import write_onnx
from nmt.exports.onnx_model import OnnxModel
from nmt.exports.parity import BOUNDS
from nmt.files import locked
from nmt.models import Bahdanau, Luong, Seq2Seq, Transformer, VocabularySizes
from nmt.models.decoders import LSTMDecoder, LSTMNDecoder
from nmt.models.embeddings import with_plain_weights
from nmt.models.encoders import Bidirectional, LSTMNEncoder, Reversed
from nmt.models.norms import LayerNorm, ScaleNorm
from nmt.runs.load import LoadedRun, load_run
from nmt.runs.search import build_translator
from nmt.text import BOS, PAD

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "how_to" / "onnx.md"
EXAMPLE = CHECKOUT / "docs" / "how_to" / "translate_with_onnx.py"
LINES = ["one two three four.", "", "seven", "five  two six one one three two four seven two."]

EPS = torch.finfo(torch.float32).eps
# Numbers below 16, such as log p, are rounded by at most 4 EPS; a value is the result of about 30 roundings in a row.
CLOSE = 120 * EPS

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


BIDIRECTIONAL, LSTM = Bidirectional(), LSTMDecoder()


def luong(cross: Cross, encoder: Any = BIDIRECTIONAL, decoder: Any = LSTM, **changes: Any) -> Callable[..., Seq2Seq]:
    sizes = {"embedding_dim": 10, "encoder_dim": 12, "decoder_dim": 12, "num_layers": 1, "num_heads": 1}
    return partial(Luong, cross, encoder, decoder, **{**sizes, "input_feeding": True, **changes})


def bahdanau(cross: Cross, encoder: Any = BIDIRECTIONAL, **changes: Any) -> Callable[..., Seq2Seq]:
    sizes = {"embedding_dim": 10, "encoder_dim": 12, "decoder_dim": 12, "maxout_dim": 6, "num_heads": 1}
    return partial(Bahdanau, cross, encoder, **{**sizes, **changes})


def transformer(encoder: Cross, decoder: Cross, cross: Cross, norm: Any = LayerNorm, **changes: Any) -> Any:
    sizes = {"dim": 12, "ffn_dim": 16, "num_heads": 2, "num_layers": 1, "norm_first": True}
    return partial(Transformer, encoder, decoder, cross, norm, **{**sizes, **changes})


SPARSE = normalizers.Sparsemax
LSTMN = LSTMNDecoder(site(scorers.Dot))
MODELS: dict[str, Callable[..., Seq2Seq]] = {
    "luong": luong(site(scorers.General)),
    "bahdanau": bahdanau(site(LOCATION, LOCAL_M, SPARSE), num_heads=2, encoder_dim=8, fix_norm=True),
    "transformer_post": transformer(
        site(scorers.ScaledDot),
        site(scorers.Additive, normalizer=SPARSE),
        site(scorers.GaussianLearned, LOCAL_P),
        ScaleNorm,
        norm_first=False,
    ),
}
# An export takes ten seconds.
MORE_MODELS: dict[str, Callable[..., Seq2Seq]] = {
    "luong_lstmn": luong(
        site(scorers.Concat, RENORMALIZED),
        Reversed(),
        LSTMN,
        num_layers=2,
        num_heads=2,
        input_feeding=False,
        fix_norm=True,
    ),
    "transformer": transformer(
        site(scorers.Gaussian),
        site(LOCATION),
        site(scorers.NoScore, LOCAL_M),
        num_layers=2,
        decoder_layers=1,
        fix_norm=True,
    ),
    "luong_reversed": luong(
        site(scorers.Additive, LOCAL_P, SPARSE), Reversed(), num_layers=2, input_feeding=False, fix_norm=True
    ),
    "luong_lstmn_feeding": luong(site(scorers.Concat, RENORMALIZED), decoder=LSTMN, num_heads=2, encoder_dim=8),
    "transformer_scaled_dot": transformer(*3 * [site(scorers.ScaledDot)], num_layers=2, decoder_layers=1),
    "transformer_location": transformer(
        site(LOCATION, normalizer=SPARSE), site(LOCATION), site(scorers.NoScore, LOCAL_M)
    ),
}
if SOAK:
    MODELS |= MORE_MODELS


class Exported(NamedTuple):
    """A model with random weights, its export, and what was printed and logged meanwhile."""

    trained: LoadedRun
    folder: Path
    onnx: OnnxModel
    printed: str

    @property
    def exact(self) -> Seq2Seq:
        """The model in float64."""
        return copy.deepcopy(self.trained.model).double()


@pytest.fixture(scope="session")
def base(finished: str, session_corpus: Path) -> LoadedRun:
    return load_run(session_corpus / "run", "cpu")


def with_model(base: LoadedRun, model: Callable[..., Seq2Seq], joint: bool = False) -> LoadedRun:
    """The run with a model of random weights."""
    torch.manual_seed(7)
    size = base.tokenizers.target.size
    made = model(vocabulary=VocabularySizes(size, size, joint), dropout=0.1).eval()
    with_plain_weights(made)
    return base._replace(model=made)


def export(trained: LoadedRun, folder: Path, int8: bool = False) -> str:
    """Writes the export; what that prints or logs."""
    printed = io.StringIO()
    handler = logging.StreamHandler(printed)
    logging.getLogger().addHandler(handler)
    folder.mkdir(exist_ok=True)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            write_onnx(trained, folder, int8=int8)
    finally:
        logging.getLogger().removeHandler(handler)
    return printed.getvalue()


@pytest.fixture(scope="session", params=MODELS)
def exported(request: pytest.FixtureRequest, base: LoadedRun, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    trained = with_model(base, MODELS[request.param], joint=request.param.startswith("transformer"))
    # Exports take seconds, so the processes of pytest-xdist share them.
    place = tmp_path_factory.getbasetemp()
    folder = (place.parent if "PYTEST_XDIST_WORKER" in os.environ else place) / f"onnx_{request.param}"
    printed = folder / "printed.txt"
    with locked(folder, wait=True):
        if not printed.is_file():
            printed.write_text(export(trained, folder))
    return Exported(trained, folder, OnnxModel(folder, threads=1), printed.read_text())


def random_sources(lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(sum(lengths))
    return pad_source([torch.randint(4, 290, (length,), generator=generator).tolist() for length in lengths])


def random_tokens(sentences: int, beams: int, steps: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(beams)
    drawn = torch.randint(4, 290, (steps - 1, sentences, beams), generator=generator)
    return [torch.full((sentences, beams), BOS), *drawn]


def watched(model: Seq2Seq, source: Tensor, mask: Tensor, tokens: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """log p and the cross attention weights (layers, sentences, heads, beams, source) of each step of a torch model."""
    found: list[Tensor] = []

    def keep(site: str, layer: int, weights: Tensor, visible: VisibleKeys) -> None:
        if site == "cross":
            found.append(weights)

    memory = model.encode(source, mask)
    state = model.start(memory, tokens[0].shape[1])
    for each in tokens:
        found.clear()
        log_probs, state = model.step(each, state, memory, keep)
        yield log_probs, torch.stack(found)


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


def test_the_example_names_a_folder_that_is_no_export(tmp_path: Path) -> None:
    found = subprocess.run([sys.executable, EXAMPLE, tmp_path], input="", capture_output=True, text=True)
    assert found.returncode == 1
    assert found.stderr == f"{tmp_path} has no model.json: give the folder that nmt.export format=onnx wrote.\n"


@pytest.mark.parametrize("exported", ["luong"], indirect=True)
def test_the_greedy_search_of_the_page_is_that_of_the_model(
    exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "exported").symlink_to(exported.folder)
    monkeypatch.chdir(tmp_path)
    [program] = re.findall(
        r"^```py\n(import numpy.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    found: dict[str, Any] = {}
    exec(program, found)
    source, translation = torch.from_numpy(found["source"]), found["translation"]
    tokens = [torch.tensor([[piece]]) for piece in [BOS, *translation[:-1]]]
    steps = watched(exported.trained.model, source, source != PAD, tokens)
    assert [int(log_probs.argmax()) for log_probs, _ in steps] == translation


def copied_from(exported: Exported) -> Callable[..., dict[str, Any]]:
    """Replaces the exporter by the graphs of this export."""
    traced = json.loads((exported.folder / "model.json").read_text())

    def copied(file: Path, *_: Any) -> dict[str, Any]:
        shutil.copy(exported.folder / file.name, file)
        graph: dict[str, Any] = traced[file.stem]
        return graph

    return copied


@pytest.mark.parametrize("exported", ["luong"], indirect=True)
def test_the_engine_is_written_compared_and_opened(
    exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session_corpus: Path
) -> None:
    monkeypatch.setattr(onnx_export, "_write", copied_from(exported))
    monkeypatch.chdir(session_corpus)
    found = export_run(exported.trained, "onnx", tmp_path / "new", "float32", comparison_pairs(exported.trained))
    record = json.loads((tmp_path / "new" / RECORD).read_text())
    assert record["parity"] == found._asdict()
    assert found.largest_difference < BOUNDS["float32"]
    assert {"encoder.onnx", "step.onnx", "model.json"} <= record["files"].keys()
    engine = open_engine(exported.trained, "onnx", tmp_path / "new", "float32")
    assert (engine.name, engine.precision, engine.device) == ("onnx", "float32", "cpu")
    engines = [build_translator([exported.trained], {"beam_size": 1}, engine=each) for each in (engine, None)]
    assert engines[0].translate(LINES) == engines[1].translate(LINES)


@pytest.mark.parametrize("exported", ["luong"], indirect=True)
@torch.inference_mode()
def test_int8_is_close_and_keeps_the_scorers_exact(
    exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In make test, the graphs that are rounded are those of the export in float32: tracing them takes seconds."""
    if not SOAK:
        monkeypatch.setattr(onnx_export, "_write", copied_from(exported))
    trained = exported.trained
    export(trained, tmp_path, int8=True)
    source, mask = random_sources([7, 1, 4])
    tokens = random_tokens(3, 2, steps=3)
    for (log_probs, cross), (exact, exact_cross) in zip(
        stepped(OnnxModel(tmp_path, threads=1), source, mask, tokens),
        watched(trained.model, source, mask, tokens),
        strict=True,
    ):
        # Of 127 and 255 levels, an input and a weight are half a level off; the largest sums are below 4.
        torch.testing.assert_close(log_probs, exact, rtol=0, atol=0.1)
        torch.testing.assert_close(cross, exact_cross, rtol=0, atol=0.1)
        torch.testing.assert_close(log_probs.logsumexp(-1), torch.zeros(3, 2), rtol=0, atol=CLOSE)
    graphs = {name: onnx.load(tmp_path / f"{name}.onnx").graph for name in ("encoder", "step")}
    operators = {name: {node.op_type for node in graph.node} for name, graph in graphs.items()}
    assert "DynamicQuantizeLSTM" in operators["encoder"]
    assert "MatMulInteger" in operators["step"]
    assert [w.data_type for w in graphs["encoder"].initializer if len(w.dims) == 3 and w.dims[-1] == 12] == [1]
    assert json.loads((tmp_path / "model.json").read_text())["quantization"] == "int8"


class Peeking(scorers.Dot):
    """A score that depends on what is in the tensors."""

    def score(self, queries: Tensor, keys: Tensor) -> Tensor:
        return super().score(queries, keys) * int(keys.sum() > 0)


def test_what_onnx_does_not_support_is_refused(base: LoadedRun, tmp_path: Path) -> None:
    def refused(message: str, trained: LoadedRun) -> None:
        with pytest.raises(Mistake, match=f"^{message}$"):
            export(trained, tmp_path)

    path = base.directory.path
    refused(
        f"onnx needs float32 weights, but {path} is loaded with precision=int8: load it with precision=float32.",
        base._replace(precision="int8"),
    )
    joined = base.settings.model_copy(update={"context": ContextSettings(sentences=2)})
    refused("onnx supports only models that read one sentence.*context=none.", base._replace(settings=joined))
    reads_itself = (
        f"onnx does not support encoder@model=lstmn, which {path} uses, because it attends to its own past at "
        "every source piece: export a run with another encoder, or use engine=torch."
    )
    dot = site(scorers.Dot)
    refused(reads_itself, with_model(base, luong(dot, LSTMNEncoder(dot))))
    refused(reads_itself, with_model(base, bahdanau(dot, LSTMNEncoder(dot))))
    refused(
        "encoder.onnx cannot be written, because torch.onnx cannot express the class Peeking \\(.*\\); use operations "
        "that torch.export can trace for every size, or one of nmt's own classes.",
        with_model(base, transformer(site(Peeking), dot, dot)),
    )


@pytest.fixture
def damaged(base: LoadedRun, tmp_path: Path) -> Path:
    """A folder that describes an export, whose graphs are no graphs."""
    about = {"format": 1, "max_source": None, "max_target": None, "encoder": {"file": "encoder.onnx", "outputs": []}}
    (tmp_path / "model.json").write_text(json.dumps({**about, "step": {"file": "step.onnx", "outputs": []}}))
    (tmp_path / "encoder.onnx").write_bytes(b"no graph")
    return tmp_path


def test_a_folder_that_is_no_export_is_refused(damaged: Path, tmp_path: Path) -> None:
    with pytest.raises(
        DamagedExport, match=r"^.*nowhere has no model.json, so it is not an ONNX export: export the run"
    ):
        OnnxModel(tmp_path / "nowhere", threads=1)
    with pytest.raises(
        DamagedExport, match=r"^.*encoder.onnx is damaged: ONNX Runtime cannot read it \(.+\)\. Export the"
    ):
        OnnxModel(damaged, threads=1)
    (damaged / "encoder.onnx").unlink()
    with pytest.raises(DamagedExport, match=r"^There is no .*encoder.onnx: copy it back, or export the run again."):
        OnnxModel(damaged, threads=1)
    whole = json.loads((damaged / "model.json").read_text())
    for change in ({"max_source": "9"}, {"encoder": {"file": "../a.onnx", "outputs": []}}, {"step": 5}):
        (damaged / "model.json").write_text(json.dumps(whole | change))
        with pytest.raises(
            DamagedExport, match=r"is damaged or no file of nmt: (?!.*(?i:copy)).*Export the run again\.$"
        ):
            OnnxModel(damaged, threads=1)
    (damaged / "model.json").write_text(json.dumps(whole | {"format": 0}))
    with pytest.raises(DamagedExport, match=r"^.*model.json does not describe an ONNX export of this version of nmt"):
        OnnxModel(damaged, threads=1)
    (damaged / "model.json").write_text("{")
    with pytest.raises(
        DamagedExport,
        match=r"^.*model.json is damaged: it is not JSON\. Export the run again\.$",
    ):
        OnnxModel(damaged, threads=1)


@pytest.mark.parametrize("exported", ["luong"], indirect=True)
def test_a_context_is_refused(exported: Exported) -> None:
    context = context_sentences([[([5, 6], [7, 8])]])
    with pytest.raises(ValueError, match=r"^ONNX graphs read single sentences; leave out the context"):
        exported.onnx.encode(*random_sources([3]), context=context)
