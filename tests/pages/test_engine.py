"""The models, the tokenizer and the search of the page's engine equal torch's and SentencePiece's."""

import copy
import itertools
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from attention_parts import NORMALIZERS, SCORERS, WINDOWS
from grids import SOAK
from page_engine import ASK, answers

from nmt.attention.attention import Attention
from nmt.config.direction import Direction
from nmt.decoding.beam import BeamSearch
from nmt.decoding.constraints import Constraints
from nmt.errors import Mistake
from nmt.exports.page_export import page_text
from nmt.exports.page_file import PageRun, page_data
from nmt.insight.alternatives import alternatives
from nmt.insight.attribution_maps import attribution_maps, chosen_method
from nmt.insight.cells import cells
from nmt.insight.forced_maps import IdPair
from nmt.insight.interventions import intervene
from nmt.insight.known_alignments import agreement, aligned_pairs
from nmt.insight.sentence_pair import Decoded, decoded_pair
from nmt.insight.unknown_words import folded_words, unknown_words
from nmt.maps.links import MapSelector
from nmt.models import Bahdanau, Luong, Seq2Seq, Transformer, VocabularySizes
from nmt.models.decoders import LSTMDecoder, LSTMNDecoder
from nmt.models.embeddings import with_plain_weights
from nmt.models.encoders import Bidirectional, LSTMNEncoder, Reversed
from nmt.models.norms import LayerNorm, ScaleNorm
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun, load_run
from nmt.runs.weights import in_8_bits
from nmt.serving.questions import ChangeOfAttention
from nmt.text import BOS, EOS, PAD, Tokenizer, TokenizerPair, normalize, train_tokenizer
from nmt.text.dictionary import Dictionary
from nmt.text.lines import iter_lines

# Annotations are checked where these functions are tested themselves.
pytestmark = pytest.mark.unchecked

CHECKOUT = Path(__file__).resolve().parents[2]
# All combinations are tested in so many parts, which can run one by one or side by side.
PARTS = 12
# Sums of a few hundred float32 numbers differ by a few units of their last digits from those in float64.
CLOSE = 1e-4


def site(scorer: str = "scaled_dot", window: str = "global", normalizer: str = "softmax") -> Callable[..., Attention]:
    return partial(Attention, SCORERS[scorer], WINDOWS[window], NORMALIZERS[normalizer])


def luong(cross: Any, encoder: Any = None, decoder: Any = None, **changes: Any) -> Callable[..., Seq2Seq]:
    sizes = {"embedding_dim": 10, "encoder_dim": 12, "decoder_dim": 12, "num_layers": 2, "num_heads": 1}
    parts = (cross, encoder or Bidirectional(), decoder or LSTMDecoder())
    return partial(Luong, *parts, **{**sizes, "input_feeding": True, **changes})


def bahdanau(cross: Any, encoder: Any = None, **changes: Any) -> Callable[..., Seq2Seq]:
    sizes = {"embedding_dim": 10, "encoder_dim": 12, "decoder_dim": 12, "maxout_dim": 6, "num_heads": 1}
    return partial(Bahdanau, cross, encoder or Bidirectional(), **{**sizes, **changes})


def transformer(own: Any, cross: Any, norm: Any = LayerNorm, **changes: Any) -> Callable[..., Seq2Seq]:
    sizes = {"dim": 12, "ffn_dim": 16, "num_heads": 2, "num_layers": 2, "decoder_layers": 1, "norm_first": True}
    return partial(Transformer, own, own, cross, norm, **{**sizes, **changes})


def every_model() -> Iterator[tuple[str, Callable[..., Seq2Seq]]]:
    """All models, scorers, windows and normalizers, and the other choices in turn."""
    lstmn = site("additive")
    encoders = [Bidirectional(), Reversed(), LSTMNEncoder(lstmn), LSTMNEncoder(site("general", "local_m", "sparsemax"))]
    decoders = [LSTMDecoder(), LSTMNDecoder(site("concat")), LSTMNDecoder(site("scaled_dot", "local_p"))]
    every = itertools.product(SCORERS, WINDOWS, NORMALIZERS)
    for number, names in enumerate(every):
        cross, name = site(*names), " ".join(names)
        heads, fixed = 1 + number % 3, number % 2 == 0
        encoder = encoders[number % len(encoders)]
        yield (
            f"luong {name}",
            luong(
                cross,
                encoder,
                decoders[number % len(decoders)],
                num_heads=heads,
                fix_norm=fixed,
                input_feeding=number % 5 > 0,
            ),
        )
        yield f"bahdanau {name}", bahdanau(cross, encoder, num_heads=heads, fix_norm=not fixed)
        own = site(names[0], "global", names[2])
        norm = LayerNorm if number % 3 else ScaleNorm
        layers = {"num_layers": 1 + number % 2, "decoder_layers": (None, 1, 2)[number % 3]}
        yield f"transformer {name}", transformer(own, cross, norm, norm_first=number % 4 > 0, fix_norm=fixed, **layers)


SAMPLE = {
    "luong location": luong(site("location", "local_p", "sparsemax"), LSTMNEncoder(site("additive")), fix_norm=True),
    "luong concat": luong(site("concat", "renormalized"), Reversed(), LSTMNDecoder(site("dot")), input_feeding=False),
    "bahdanau": bahdanau(site("additive", "local_m"), num_heads=3),
    "transformer": transformer(site("gaussian"), site("gaussian_learned", "local_p"), ScaleNorm, norm_first=False),
    "transformer general": transformer(site("general", normalizer="sparsemax"), site("none"), fix_norm=True),
}


@pytest.fixture(scope="session")
def base(finished: str, session_corpus: Path) -> LoadedRun:
    return load_run(session_corpus / "run", "cpu")


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    page = browser.new_page()
    page.goto("about:blank")
    yield page
    page.close()


def random_run(base: LoadedRun, model: Callable[..., Seq2Seq], joint: bool) -> LoadedRun:
    """The run with a model of random weights, biases and norms."""
    torch.manual_seed(7)
    size = base.tokenizers.target.size
    made = model(vocabulary=VocabularySizes(size, size, joint), dropout=0.1).eval()
    with_plain_weights(made)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim < 2:
                parameter.add_(0.3 * torch.randn_like(parameter))
            else:
                parameter.mul_(2)  # larger states and scores, so that no function of them is almost linear
    return base._replace(model=made)


def with_short_translations(run: LoadedRun) -> LoadedRun:
    """The run with a search that ends after at most one piece more than the source has."""
    search = {**run.settings.search}
    search["constraints"] = {**search["constraints"], "max_length_ratio": 1.0, "max_length_offset": 1}
    return run._replace(settings=run.settings.model_copy(update={"search": search}))


def check_model(page: Any, run: LoadedRun, webassembly: bool) -> None:
    """Forced log-probabilities and weights of each site, and the hypotheses of a search."""
    draw = random.Random(3)
    source, target = (draw.choices(range(4, run.tokenizers.target.size), k=length) for length in (9, 6))
    options: dict[str, Any] = {"beam_size": 4, "length_penalty": 0.7, "coverage_penalty": 0.3}
    limits: dict[str, Any] = {"min_length": 3, "max_length": 9, "no_repeat_ngram": 2}
    prefix = [*target[:2], PAD, target[2]]  # the third piece is free
    text = run.tokenizers.source.decode(source)
    sources = run.tokenizers.source.encode(normalize(text))
    described, found, hypotheses, maps = answers(
        page,
        run,
        [
            ("describe", {}),
            ("score", {"source_ids": source, "target_ids": target}),
            ("hypotheses", {"source_ids": source, "prefix_ids": prefix, "settings": {**options, **limits}}),
            ("attend", {"text": text, "target_ids": target}),
        ],
        webassembly=webassembly,
    )
    assert described["simd"] == webassembly
    exact = run._replace(model=copy.deepcopy(run.model).double())
    expected = decoded_pair(exact, source, target)
    assert found == pytest.approx(expected.log_probs, abs=CLOSE)
    [[best]] = BeamSearch(**options, constraints=Constraints(**limits))(
        exact.model,
        torch.tensor([[*source, EOS]]),
        torch.ones(1, len(source) + 1, dtype=torch.bool),
        torch.tensor([prefix]),
    )
    assert hypotheses[0]["ids"] == best.ids
    assert (hypotheses[0]["logProb"], hypotheses[0]["score"]) == pytest.approx((best.log_prob, best.score), abs=CLOSE)
    decoded = decoded_pair(exact, sources, target)
    assert maps["pieces"] == decoded.pieces
    assert maps["text"] == decoded.text
    assert {*maps["maps"]} == {item.site for item in decoded.maps}
    for item in decoded.maps:
        shown = maps["maps"][item.site]
        assert (shown["inputs"], shown["outputs"], shown["columns"]) == (item.inputs, item.outputs, item.columns)
        torch.testing.assert_close(
            torch.tensor(shown["weights"], dtype=torch.float64), torch.tensor(item.weights).double(), rtol=0, atol=CLOSE
        )


@pytest.mark.parametrize("webassembly", [True, False])
@pytest.mark.parametrize("name", SAMPLE)
def test_a_model_computes_as_torch(page: Any, base: LoadedRun, name: str, webassembly: bool) -> None:
    check_model(page, random_run(base, SAMPLE[name], joint=name == "transformer general"), webassembly)


def test_8_bits_compute_as_torch_with_the_rounded_weights(page: Any, base: LoadedRun) -> None:
    for name in SAMPLE:
        run = random_run(base, SAMPLE[name], joint=False)
        rounded = run._replace(model=copy.deepcopy(run.model))
        stored = in_8_bits({key: tensor for key, tensor in run.model.state_dict().items()})
        with torch.no_grad():
            for key, tensor in rounded.model.state_dict().items():
                if f"{key}.scales" in stored:
                    scales = stored[f"{key}.scales"].view(-1, *[1] * (tensor.ndim - 1))
                    tensor.copy_(stored[key].float() * scales)
        pair = {"source_ids": [20, 40, 60, 80], "target_ids": [30, 50, 70]}
        expected = decoded_pair(rounded._replace(model=rounded.model.double()), *pair.values()).log_probs
        for webassembly in (True, False):
            [found] = answers(page, run, [("score", pair)], "int8", webassembly)
            assert found == pytest.approx(expected, abs=CLOSE), (name, webassembly)


def test_the_pages_policy_lets_webassembly_run(browser: Any, base: LoadedRun, tmp_path: Path) -> None:
    file = tmp_path / "lab.html"
    file.write_text(page_text(page_data([PageRun("run", base)], "float32")), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    program, runs = (page.locator(f"#{part}").text_content() for part in ("engine", "runs"))
    [described] = page.evaluate(ASK, [program, runs, [["describe", {"run": "run"}]]])
    page.close()
    assert described["simd"]


CHANGES: list[dict[str, Any]] = [
    {"way": "off", "head": 0},
    {"way": "uniform", "steps": [0, 2]},
    {"way": "shuffled"},
    {"way": "scale", "columns": [1, 3], "factor": 3.0},
    {"way": "scale", "columns": [0, 1, 2], "factor": 0.0, "layer": 0},
    {"way": "weights", "weights": [0.1, 0.6, 0.2], "steps": [1]},
    {"way": "head", "other_head": 0},
    {"temperature": 0.5},
    {"normalizer": "sparsemax", "temperature": 2.0},
    {"half_width": 1},
]


@pytest.mark.parametrize("name", SAMPLE)
def test_changed_attention_continues_as_in_torch(page: Any, base: LoadedRun, name: str) -> None:
    """Each change with two or three of the models, and in make soak with all of them."""
    run = random_run(base, SAMPLE[name], joint=False)
    sites = [site for site in run.model.sites if site != "cross"]
    turn = list(SAMPLE).index(name)
    chosen = [change for number, change in enumerate(CHANGES) if SOAK or (number + turn) % 2 == 0]
    changes = [[change] for change in chosen] + [[{**CHANGES[2], "site": site}] for site in sites] + [CHANGES[:2]]
    check_changes(page, run, changes)


def check_changes(page: Any, run: LoadedRun, changes: list[list[dict[str, Any]]]) -> None:
    """The pieces of the run's own translation with changed attention, and the translation that is then found.

    An untrained model's translations are as long as they may be, so a longer text takes several times as long.
    """
    text = "one three five seven."
    if not SOAK:
        text, run = "one three.", with_short_translations(run)
    exact = run._replace(model=copy.deepcopy(run.model).double())
    source = run.tokenizers.source.encode(text)
    found = answers(
        page,
        run,
        [("intervene", {"text": text, "changes": [{"site": "cross", **each} for each in one]}) for one in changes],
    )
    for one, answer in zip(changes, found, strict=True):
        assert "error" not in answer, answer
        effect = intervene(exact, source, [ChangeOfAttention(**each).intervention() for each in one])
        for kind in ("intact", "forced", "changed"):
            expected: Decoded = getattr(effect, kind)
            if SOAK and kind == "changed" and answer[kind]["ids"] != expected.ids:
                # Torch's search adds log-probabilities in float32, which may exchange hypotheses within 1e-5 nats.
                assert len(answer[kind]["ids"]) == len(expected.ids), one
                assert answer[kind]["log_prob"] > sum(expected.log_probs) - CLOSE, one
                continue
            assert answer[kind]["ids"] == expected.ids, (one, kind)
            assert answer[kind]["log_probs"] == pytest.approx(expected.log_probs, abs=CLOSE), (one, kind)
            for item in expected.maps:
                assert np.allclose(answer[kind]["maps"][item.site]["weights"], item.weights, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", SAMPLE)
def test_rows_and_alternatives_are_those_of_the_server(page: Any, base: LoadedRun, name: str) -> None:
    run = random_run(base, SAMPLE[name], joint=False)
    text, target = "one three five seven.", [20, 40, 60]
    source, exact = run.tokenizers.source.encode(text), run._replace(model=copy.deepcopy(run.model).double())
    pair = {"text": text, "target_ids": target}
    sites = [*run.model.sites]
    other, line, translated, *rows = answers(
        page,
        run,
        [
            ("alternatives", {**pair, "number": 3}),
            ("line", {"text": text, "beam_size": 2}),
            ("translate", {"text": text, "beam_size": 2}),
            *(("explain", {**pair, "site": site, "layer": 0, "head": 0, "row": 2}) for site in sites),
        ],
    )
    assert line == translated["text"]
    for found, expected in zip(other["alternatives"], alternatives(exact, source, target, 3), strict=True):
        assert [one["id"] for one in found] == [one.id for one in expected]
        assert [one["log_prob"] for one in found] == pytest.approx([one.log_prob for one in expected], abs=CLOSE)
        assert [one["piece"] for one in found] == [one.piece for one in expected]
    for site, found in zip(sites, rows, strict=True):
        expected_row = cells(exact, source, target, site, 0, 0, 2)
        assert (found["scorer"], found["normalizer"]) == (expected_row.scorer, expected_row.normalizer)
        assert found["columns"] == expected_row.columns
        assert np.allclose(found["weights"], expected_row.weights, rtol=0, atol=CLOSE)
        assert np.allclose(found["context"], expected_row.context, rtol=0, atol=CLOSE)
        seen = [column for column, allowed in enumerate(expected_row.allowed) if allowed]
        assert [column for column, allowed in enumerate(found["allowed"]) if allowed] == seen
        assert seen
        for column in seen:
            assert found["scores"][column] == pytest.approx(expected_row.scores[column], abs=CLOSE)
            assert worked(found, column) == pytest.approx(found["scores"][column], abs=CLOSE), "as the page draws it"
            assert worked(expected_row._asdict(), column) == pytest.approx(expected_row.scores[column], abs=CLOSE)
        assert (found["renormalized"], found["row"]) == (expected_row.renormalized, expected_row.row)
        assert found["center"] == (
            None if expected_row.center is None else pytest.approx(expected_row.center, abs=CLOSE)
        )


def worked(row: dict[str, Any], column: int) -> float:
    """A score from its parts."""
    query, key = np.array(row["query"]), np.array(row["keys"][column])
    if row["vector"] is not None:
        return float(np.dot(row["vector"], np.tanh(query + key)))
    return float(np.dot(query, key)) - (float(np.dot(key, key)) / 2 if row["scorer"].startswith("Gaussian") else 0)


@pytest.mark.parametrize("name", SAMPLE)
def test_attributions_are_those_of_the_server(page: Any, base: LoadedRun, name: str) -> None:
    run = random_run(base, SAMPLE[name], joint=False)
    text, target, contrast = "one three five seven.", [20, 40, 60], run.tokenizers.target.pieces([50])[0]
    source, exact = run.tokenizers.source.encode(text), run._replace(model=copy.deepcopy(run.model).double())
    asked: list[dict[str, Any]] = [
        {"method": "occlusion"},
        {"method": "occlusion", "contrast": contrast},
        {"method": "value_zeroing"},
    ]
    found = answers(page, run, [("attribute", {"text": text, "target_ids": target, **one}) for one in asked])
    for one, answer in zip(asked, found, strict=True):
        method = chosen_method(exact, one["method"], one.get("contrast"))
        [sentence] = attribution_maps(exact, [IdPair(1, 1, source, target)], 512, method)
        [item] = sentence.maps
        assert (answer["inputs"], answer["outputs"], answer["columns"]) == (item.inputs, item.outputs, item.columns)
        assert item.attribution is not None
        close = min(CLOSE, float(np.abs(item.attribution).max()) / 20)
        assert close > 0
        assert np.allclose(answer["attribution"], item.attribution[0, 0], rtol=0, atol=close), one


def test_what_cannot_be_attributed_is_refused(page: Any, base: LoadedRun) -> None:
    run = random_run(base, SAMPLE["bahdanau"], joint=False)
    pair = {"text": "one two.", "target_ids": [20, 40]}
    gradient, contrast, known = answers(
        page,
        run,
        [
            ("attribute", {**pair, "method": "gradient_x_input"}),
            ("attribute", {**pair, "contrast": "no piece"}),
            ("align", {"text": "one two.", "guess": []}),
        ],
    )
    assert "choose occlusion or value zeroing, or serve the run with nmt.serve" in gradient["error"]
    assert "'no piece' is not one piece of the vocabulary" in contrast["error"]
    assert "The alignment of this sentence is not known" in known["error"]


def test_links_and_error_rates_are_those_of_the_server(page: Any, base: LoadedRun) -> None:
    settings = base.settings.model_copy(update={"direction": Direction("en", "vi")})
    run = random_run(base, SAMPLE["transformer general"], joint=False)._replace(settings=settings)
    exact = run._replace(model=copy.deepcopy(run.model).double())
    pairs, guess = aligned_pairs(run.direction)[:4], [[0, 0], [1, 2]]
    places = [(None, None), (0, 1), (None, 0), (0, None)]
    [examples, *found] = answers(
        page,
        run,
        [
            ("examples", {}),
            *(
                ("align", {"text": pair.source, "layer": layer, "head": head, "guess": guess if head else []})
                for pair, (layer, head) in zip(pairs, places, strict=True)
            ),
        ],
    )
    assert {"source": pairs[0].source, "target": pairs[0].target, "aligned": True} in examples
    for pair, (layer, head), answer in zip(pairs, places, found, strict=True):
        links = [(i, j) for i, j in guess] if head else []
        expected = agreement(exact, pair, MapSelector("predicts", layer, head), links)
        assert (answer["source_words"], answer["target_words"]) == (expected.source_words, expected.target_words)
        assert np.allclose(answer["weights"], expected.weights, rtol=0, atol=CLOSE)
        assert {(i, j) for i, j in answer["sure"]} == expected.gold.sure
        assert {(i, j) for i, j in answer["possible"]} == expected.gold.possible - expected.gold.sure
        assert {name: {(i, j) for i, j in some} for name, some in answer["links"].items()} == expected.links
        for name, rate in expected.rates.items():
            assert answer["rates"][name] == pytest.approx(rate._asdict())
        assert np.allclose(answer["error_rates"], expected.error_rates)


def test_what_an_address_may_contain_is_refused_in_a_sentence(page: Any, base: LoadedRun) -> None:
    run = random_run(base, SAMPLE["bahdanau"], joint=False)
    change = {"site": "cross", "way": "__proto__"}
    parts = [{"head": 0}, {"steps": [1]}, {"steps": [1], "way": "uniform"}]
    wholes: list[dict[str, Any]] = [{"temperature": 2.0}, {"normalizer": "sparsemax"}, {"half_width": 1}]
    layers = [{"site": "cross", **part, **whole} for part in parts for whole in wholes]
    prefix, changed, *of_layers = answers(
        page,
        run,
        [
            ("translate", {"text": "one two.", "prefix_ids": [99_999]}),
            ("intervene", {"text": "one two.", "changes": [change]}),
            *(("intervene", {"text": "one two.", "changes": [layer]}) for layer in layers),
        ],
    )
    assert prefix["error"] == "A piece of the translation is not in the vocabulary; use pieces of this run."
    assert changed["error"] == "There is no kind of change called __proto__; remove this change."
    for layer, refused in zip(layers, of_layers, strict=True):
        with pytest.raises(Mistake) as error:
            intervene(run, [20, 40], [ChangeOfAttention(**layer).intervention()])
        assert refused["error"] == str(error.value), layer


def test_words_that_never_occurred_in_training_are_those_of_the_server(
    page: Any, base: LoadedRun, tmp_path: Path
) -> None:
    text = (
        "\u0130stanbul MAI\u2019S  teacher's x-ray ſhe ① ٣ dot2dot Ⅷ_café ＭＡＩ họ, họ, "
        "mother-in-law isn't zebras \u212a ß 12 北京."
    )
    words = set(folded_words(normalize(text)))
    runs = [base._replace(directory=RunDirectory(tmp_path / name)) for name in ("none", "all", "half")]
    for run, stored in zip(runs, (set[str](), words, set(sorted(words)[::2])), strict=True):
        run.directory.write_source_words(stored)
        [found] = answers(page, run, [("translate", {"text": text, "beam_size": 1})])
        assert found["unknown_words"] == unknown_words(run, text)
        assert bool(found["unknown_words"]) == (0 < len(stored) < len(words))


def test_words_of_the_dictionary_are_replaced_as_on_the_server(page: Any, base: LoadedRun) -> None:
    texts = [
        "“Hot-dog soup”, 'soup' (soup) ٣soup 𐐨𐐨 soup.",
        "Soup hot  dog Hot dog hot dog",
        "mother-in-law mother’s ① Ⅷ họ",
    ]
    words = {"soup": "súp", "hot dog": "xúc xích nóng", "hot-dog": "xúc xích", "mother-in-law": "mẹ vợ", "họ": "they"}
    words |= {"constructor": "thợ xây", "𐐨𐐨": "x", "Ⅷ": "8", "mother's day": "ngày của mẹ"}
    run = base._replace(dictionary=Dictionary(words))
    texts += ["Mother’s Day, mother’s day", "https://a.org/soup_(soup),soup www.soup, a@b.co,soup", "1. Soup; 2. Soup"]
    near = [*"@./\\#&=?%:~+-_2é²Ⅷ,;…(“'’ <>{}$"]
    near += ["'a", "a'", "://", ". ", ".a", ": ", "::", "--", "..", "?a", "&a", "\u0331"]
    around = [*(f"{beside}soup" for beside in near), *(f"soup{beside}" for beside in near)]
    typed = [normalize(line) for line in (*texts, "Soup and hot dog", "constructor toString", *around)]
    asked = [(what, {"text": line, "beam_size": 1}) for line in typed for what in ("translate", "attend")]
    answered = answers(page, run, asked)
    for line, found, attended in zip(typed, answered[::2], answered[1::2], strict=True):
        assert [tuple(pair) for pair in found["dictionary_words"]] == run.dictionary.found(line), line
        source = run.tokenizers.source.encode(run.source_text(line))
        assert attended["maps"]["cross"]["columns"] == [*run.tokenizers.source.pieces(source), "</s>"]


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_every_combination_computes_as_torch(page: Any, base: LoadedRun, part: int) -> None:
    for number, (name, model) in [*enumerate(every_model())][part::PARTS]:
        try:
            run = random_run(base, model, joint=number % 5 == 0)
            check_model(page, run, webassembly=number % 4 > 0)
            sites = itertools.cycle(run.model.sites)
            chosen = [CHANGES[(number + turn) % len(CHANGES)] for turn in (0, 3, 7)]
            # A window can only be changed at cross attention.
            check_changes(
                page, run, [[{**one, "site": "cross" if "half_width" in one else next(sites)}] for one in chosen]
            )
        except BaseException as error:
            error.add_note(f"The model is {name}.")
            raise


ODD = [
    "",
    " ",
    "  a \t b\u00a0 c\n",
    "e\u0301 \u0301 \u0345\u0301",
    "\u2581 \u2581\u2581a",
    "\ufeffa\u200bb \u200d\u0915\u094d\u200d\u0937",
    "👩\u200d👩\u200d👧 🏴\U000e0067\U000e0062\U000e007f \ufe0f\u200d🌈",
    "hoà Hòa thuỷ QUÝ khoẻ chloé Huỷ ſoà",
    "<s> </s> <unk> <pad> <0x41> \x00\x01",
    "مرحبا \u202eabc\u202c \u200fא",
    "한\u1160글 \u115f\u1161 ឣ\u17b4ក",
    "ααα ｆｕｌｌ ½ ² Ⅷ a1b2 ﷽",
    "x" * 3000,
]


def check_text(page: Any, base: LoadedRun, tokenizer: Tokenizer, texts: list[str]) -> None:
    """The ids of lines, and their text again."""
    run = random_run(base, SAMPLE["bahdanau"], joint=False)._replace(tokenizers=TokenizerPair(tokenizer, tokenizer))
    [found] = answers(page, run, [("tokenize", {"lines": texts})])
    for text, one in zip(texts, found, strict=True):
        ids = tokenizer.encode(normalize(text))
        assert (one["ids"], one["text"]) == (ids, tokenizer.decode(ids)), repr(text)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_text_is_cut_into_the_pieces_of_sentencepiece(page: Any, base: LoadedRun, kind: str) -> None:
    files = [CHECKOUT / "data" / "sample" / f"{part}.{side}" for part in ("valid", "test") for side in ("en", "vi")]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()[: 800 if SOAK else 60]]
    draw = random.Random(1)
    alphabet = [*"".join(ODD), *"abcđêộ .,'\"", *map(chr, range(0x300, 0x310)), *map(chr, range(0x1D160, 0x1D170))]
    noise = ["".join(draw.choices(alphabet, k=draw.randint(1, 30))) for _ in range(500 if SOAK else 150)]
    model = train_tokenizer([normalize(line) for line in lines], kind=kind, size=700, character_coverage=0.999)
    for style in (None, "old", "new"):
        check_text(page, base, Tokenizer(model, style), [*(lines if style is None else lines[::10]), *ODD, *noise])


def test_control_pieces_between_bytes_are_no_part_of_the_text(page: Any, base: LoadedRun) -> None:
    run = random_run(base, SAMPLE["bahdanau"], joint=False)
    first, *rest = run.tokenizers.target.encode("\u5b57")[-3:]  # a character that is spelled in bytes
    question = {"text": "one", "prefix_ids": [first, BOS, *rest, PAD], "settings": {"beam_size": 1, "max_length": 8}}
    [[found]] = answers(page, run, [("hypotheses", question)])
    assert found["text"].startswith("\u5b57")
    assert found["text"] == normalize(run.tokenizers.target.decode(found["ids"]))


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_long_text_is_cut_into_the_pieces_of_sentencepiece(page: Any, base: LoadedRun, kind: str) -> None:
    """20,000 lines of the file that PAGE_TEXT names. The tokenizer learns a tenth of them, and spells the rest."""
    file = Path(os.environ.get("PAGE_TEXT", CHECKOUT / "data" / "sample" / "train.vi"))
    lines = [*itertools.islice(iter_lines(file), 20_000)]
    learned = [text for line in lines[::10] if (text := normalize(line))]
    model = train_tokenizer(learned, kind=kind, size=800, character_coverage=0.9995)
    for style in (None, "new"):
        check_text(page, base, Tokenizer(model, style), lines)
