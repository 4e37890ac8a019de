"""CTranslate2: the same log-probabilities and translations as the run, for all that it supports."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import ctranslate2
import pytest
import sentencepiece
import torch

from nmt.attention import Attention
from nmt.attention.normalizers import Softmax, Sparsemax
from nmt.attention.scorers import Additive, Dot, Gaussian, General, NoScore, ScaledDot, Scorer
from nmt.attention.windows import Global, LocalM
from nmt.decoding.beam import BeamSearch
from nmt.decoding.binding import bind
from nmt.decoding.constraints import Constraints
from nmt.decoding.id_search import Hypothesis, IdBatch
from nmt.decoding.sampling import Sampling
from nmt.decoding.translator import Translator
from nmt.errors import Mistake
from nmt.exports.ctranslate2 import write_ctranslate2
from nmt.exports.ctranslate2_model import CTranslate2Model
from nmt.exports.damage import DamagedExport
from nmt.exports.formats import FORMATS, open_exported
from nmt.exports.parity import BOUNDS, log_prob_differences
from nmt.models import Transformer, VocabularySizes
from nmt.models.embeddings import with_plain_weights
from nmt.models.norms import LayerNorm, ScaleNorm
from nmt.runs.forced_batches import log_probs_of_ids
from nmt.runs.load import LoadedRun, load_run
from nmt.text.tokenizer import BOS, EOS, PAD, UNK

# Log-probabilities of about -5 from sums of at most 64 float32 products, in another order: 64 x 2^-24 x 5 x 10 layers.
ROUNDING = 2e-4
SOURCES = [[5, 9, 20, 33, 7], [11], [4, 4, 250, 8, 9, 10, 11, 12]]
TARGETS = [[8, 30, 12, 44], [9, 9, 9], []]

Site = Callable[..., Attention]


def site(scorer: type[Scorer] = ScaledDot, window: Callable = Global, normalizer: type = Softmax) -> Site:
    return partial(Attention, scorer, window, normalizer)


@pytest.fixture
def trained(folder: Path) -> LoadedRun:
    """A run of a Transformer, whose model the tests replace."""
    return load_run(folder / "maps_transformer", "cpu")


def with_model(
    trained: LoadedRun, *sites: Site, norm: type = LayerNorm, joint: bool = True, **options: int
) -> LoadedRun:
    """The run with random weights, biases and norms included."""
    torch.manual_seed(1)
    size = trained.tokenizers.target.size
    shape = {"dim": 16, "ffn_dim": 24, "num_heads": 4, "num_layers": 2, "dropout": 0.0}
    options = {"norm_first": True, **options}
    model = Transformer(*sites, norm, **shape, **options, vocabulary=VocabularySizes(size, size, joint)).eval()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) / 5)
    with_plain_weights(model)
    for table in {model.source_embedding, model.target_embedding}:  # special pieces are rare, and sentences end
        table.weight.data[[PAD, UNK, BOS]] = 0
        table.weight.data[EOS] *= 2
    return trained._replace(model=model)


def exported(trained: LoadedRun, out: Path, quantization: str = "float32") -> CTranslate2Model:
    out.mkdir()
    write_ctranslate2(trained, out, quantization)
    return CTranslate2Model(out, trained.tokenizers, "cpu", threads=1)


KINDS = {
    "pre-norm": {},
    "post-norm": {"norm_first": False},
    "separate": {"joint": False},
    "fix_norm": {"fix_norm": True},
    "shallow decoder": {"decoder_layers": 1},
    "scale_norm": {"norm": ScaleNorm},
    "scale_norm, post-norm": {"norm": ScaleNorm, "norm_first": False},
}


@pytest.mark.parametrize("kind", KINDS)
def test_forced_log_probabilities_are_the_models(trained: LoadedRun, kind: str, tmp_path: Path) -> None:
    model = with_model(trained, site(), site(), site(), **KINDS[kind])
    check_forced(model, exported(model, tmp_path / "out"))


@pytest.mark.parametrize("scorer", [Dot, General, NoScore])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_scorers_are_folded_at_every_site(trained: LoadedRun, scorer: type[Scorer], place: int, tmp_path: Path) -> None:
    sites = [site(), site(), site()]
    sites[place] = site(scorer)
    model = with_model(trained, *sites)
    check_forced(model, exported(model, tmp_path / "out"))


def check_forced(trained: LoadedRun, model: CTranslate2Model) -> None:
    found = model.forced_log_probs(SOURCES, TARGETS)
    assert [len(row) for row in found] == [len(target) + 1 for target in TARGETS]
    expected = log_probs_of_ids([trained], SOURCES, TARGETS, batch_tokens=100)
    assert [sum(row) for row in found] == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("quantization", FORMATS["ctranslate2"].quantizations)
def test_writing_leaves_the_weights_alone(trained: LoadedRun, quantization: str, tmp_path: Path) -> None:
    model = with_model(trained, site(), site(), site())
    for weights in model.model.parameters():
        if weights.dim() == 2:  # 8-bit products are added in pairs, without VNNI in 16 bits: 255 x (127 + 127) > 2^15
            weights.data[:, 1::2] = 0
    before = {name: weights.clone() for name, weights in model.model.state_dict().items()}
    exported(model, tmp_path / "out", quantization)
    assert all(torch.equal(weights, before[name]) for name, weights in model.model.state_dict().items())
    rounded = open_exported(model, "ctranslate2", tmp_path / "out", quantization)
    differences = [each for row in log_prob_differences(model, rounded, SOURCES, TARGETS).values() for each in row]
    assert sum(differences) / len(differences) <= BOUNDS[quantization]
    assert quantization == "float32" or max(differences) > ROUNDING, "it is rounded"


def test_a_gpu_that_cannot_be_used_is_no_damage(
    trained: LoadedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(trained, tmp_path / "out")
    translator = ctranslate2.Translator

    def on_full_gpu(folder: str, device: str, **options: object) -> ctranslate2.Translator:
        if device == "cuda":
            raise RuntimeError("CUDA failed with error out of memory")
        return translator(folder, device=device, **options)

    monkeypatch.setattr(ctranslate2, "Translator", on_full_gpu)
    message = r"^CTranslate2 cannot use the GPU \(CUDA failed .*\): add device=cpu, or use engine=torch\.$"
    with pytest.raises(Mistake, match=message) as raised:
        CTranslate2Model(tmp_path / "out", trained.tokenizers, "cuda", threads=1)
    assert not isinstance(raised.value, DamagedExport)


def search(model: LoadedRun, out: Path, beam: BeamSearch, prefixes: list[list[int]] | None = None) -> list[list[list]]:
    """The hypotheses of our search and of CTranslate2's."""
    engine = exported(model, out)
    searches = bind(beam, model.model), engine.bind(beam)
    return [Translator(search, model.tokenizers).search_ids(SOURCES, prefixes) for search in searches]


@pytest.mark.parametrize("prefixes", [None, [[8, 30], [], [9]]])
def test_greedy_translations_and_their_scores_are_those_of_our_search(
    trained: LoadedRun, prefixes: list[list[int]] | None, tmp_path: Path
) -> None:
    model = with_model(trained, site(), site(), site())
    ours, theirs = search(model, tmp_path / "out", BeamSearch(1, length_penalty=0.8), prefixes)
    check_best(ours, theirs)


@pytest.mark.parametrize("prefixes", [None, ["một", "", "ba bốn"]])
def test_beams_of_a_model_that_has_learned_are_those_of_our_search(
    run: Path, prefixes: list[str] | None, tmp_path: Path
) -> None:
    """With random weights the beams never end, and the searches end by different rules."""
    trained, beam = load_run(run, "cpu"), BeamSearch(4, length_penalty=0.8)
    model = exported(trained, tmp_path / "out")
    lines = ["one two three.", "four.", "five six seven one two."]
    sources = trained.tokenizers.source.encode_all(lines)
    begins = None if prefixes is None else trained.tokenizers.target.encode_all(prefixes)
    searches = bind(beam, trained.model), model.bind(beam)
    check_best(*(Translator(search, trained.tokenizers).search_ids(sources, begins) for search in searches))


def check_best(ours: list[list[Hypothesis]], theirs: list[list[Hypothesis]]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        assert mine[0].ids == other[0].ids
        assert mine[0].log_prob == pytest.approx(other[0].log_prob, abs=ROUNDING)
        assert mine[0].score == pytest.approx(other[0].score, abs=ROUNDING)


def test_n_best_constraints_and_lengths_hold(trained: LoadedRun, tmp_path: Path) -> None:
    model = with_model(trained, site(), site(), site())
    beam = BeamSearch(4, n_best=3, constraints=Constraints(min_length=6, max_length=9, no_repeat_ngram=1))
    _, theirs = search(model, tmp_path / "out", beam)
    for source, found in zip(SOURCES, theirs, strict=True):
        assert len(found) == 3
        forced = log_probs_of_ids([model], [source] * 3, [each.ids for each in found], batch_tokens=100)
        assert [each.log_prob for each in found] == pytest.approx(forced, abs=ROUNDING)
        assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
        for hypothesis in found:
            assert 5 <= len(hypothesis.ids) <= 9
            assert len(set(hypothesis.ids)) == len(hypothesis.ids)


def test_the_shortest_limit_leaves_only_eos(trained: LoadedRun, tmp_path: Path) -> None:
    model = with_model(trained, site(), site(), site())
    ours, theirs = search(model, tmp_path / "out", BeamSearch(2, constraints=Constraints(max_length=1)))
    assert [found[0].ids for found in theirs] == [[]] * len(SOURCES)
    check_best(ours, theirs)


def test_special_pieces_are_left_out_if_there_is_another_hypothesis(trained: LoadedRun, tmp_path: Path) -> None:
    model = exported(with_model(trained, site(), site(), site()), tmp_path / "out")
    odd, usual = model.target_pieces([[9, 1], [9, 8]])
    results = [
        SimpleNamespace(hypotheses=[odd, usual], scores=[-1.0, -2.0]),
        SimpleNamespace(hypotheses=[odd], scores=[-1.0]),
    ]
    model.translator = SimpleNamespace(translate_batch=lambda *_, **__: results)
    first, second = model.bind(BeamSearch(3))(IdBatch([[5], [5]]))
    assert first == [Hypothesis([9, 8], -2.0, pytest.approx(-2.0 / (8 / 6) ** 0.6))]
    assert [hypothesis.ids for hypothesis in second] == [[9, 1]]


def test_what_the_engine_lacks_is_refused(trained: LoadedRun, tmp_path: Path) -> None:
    model = exported(with_model(trained, site(), site(), site()), tmp_path / "out")
    with pytest.raises(Mistake, match="supports only beam search, not search=sampling: use engine=torch or onnx"):
        model.bind(Sampling())
    with pytest.raises(Mistake, match=r"search.coverage_penalty is 0.2, which engine=ctranslate2 does not support"):
        model.bind(BeamSearch(coverage_penalty=0.2))


@pytest.mark.parametrize(
    ("place", "choice", "message"),
    [
        (0, site(Additive), "does not support scorer=additive, which .* uses at encoder_self"),
        (1, site(Gaussian), "does not support scorer=gaussian, which .* uses at decoder_self"),
        (2, site(window=partial(LocalM, half_width=2)), "does not support window=local_m, which .* uses at cross"),
        (2, site(normalizer=Sparsemax), "does not support normalizer=sparsemax, which .* uses at cross"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(
    trained: LoadedRun, place: int, choice: Site, message: str, tmp_path: Path
) -> None:
    sites = [site(), site(), site()]
    sites[place] = choice
    with pytest.raises(Mistake, match=f"^ctranslate2 {message}.*Use onnx"):
        write_ctranslate2(with_model(trained, *sites), tmp_path, "float32")


def test_a_damaged_folder_is_refused(trained: LoadedRun, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"CTranslate2 cannot load .*: export the run again"):
        CTranslate2Model(tmp_path, trained.tokenizers, "cpu", threads=1)


def test_the_folder_translates_without_this_project(trained: LoadedRun, tmp_path: Path) -> None:
    """With CTranslate2 and the SentencePiece model beside it, as its users do."""
    model = with_model(trained, site(), site(), site())
    exported(model, tmp_path / "out")
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "out" / "tokenizer.model"))
    pieces = tokenizer.encode("một hai ba.", out_type=str)
    [result] = ctranslate2.Translator(str(tmp_path / "out")).translate_batch(
        [pieces], beam_size=1, max_decoding_length=10
    )
    translator = Translator(bind(BeamSearch(1), model.model), model.tokenizers)
    [ours] = translator.search_ids([tokenizer.encode("một hai ba.")])
    assert result.hypotheses[0] == [tokenizer.id_to_piece(piece) for piece in ours[0].ids[:10]]


def test_several_searches_at_once_find_the_same(trained: LoadedRun, tmp_path: Path) -> None:
    model = with_model(trained, site(), site(), site())
    single = exported(model, tmp_path / "out")
    double = CTranslate2Model(tmp_path / "out", model.tokenizers, "cpu", threads=2)
    assert double.bind(BeamSearch()).at_once == double.translator.num_translators == 2
    one, other = (  # in the same batches
        Translator(engine.bind(BeamSearch()), model.tokenizers, batch_tokens=tokens).search_ids(SOURCES * 5)
        for engine, tokens in ((single, 16), (double, 32))
    )
    assert [hypotheses[0].ids for hypotheses in one] == [hypotheses[0].ids for hypotheses in other]
