"""The exported folder computes what the run computes, with the library transformers and nothing of nmt."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
import yaml
from grids import covering
from jobs import run_settings
from torch import Tensor, nn
from transformers import AutoModelForSeq2SeqLM, MarianMTModel, PegasusForConditionalGeneration

from nmt.data.batch import collate
from nmt.data.example import Example
from nmt.errors import Mistake
from nmt.exports import hugging_face
from nmt.exports.hugging_face import (
    TYPICAL_LENGTH,
    HuggingFaceModel,
    generation_settings,
    length_exponent,
    write_hugging_face,
)
from nmt.exports.model_card import corpus_license
from nmt.exports.positions import POSITIONS
from nmt.models.embeddings import with_plain_weights
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun, build_model
from nmt.runs.search import build_translator
from nmt.text import BOS, EOS, PAD, Tokenizer, TokenizerPair, normalize, train_tokenizer

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "sample"
WIDTH, LAYERS = 12, 2
TINY = [
    "data=sample",
    "model=transformer",
    f"model.dim={WIDTH}",
    "model.ffn_dim=19",
    "model.num_heads=2",
    f"model.num_layers={LAYERS}",
    "search.beam_size=3",
]
POST, SEPARATE = "model.norm_first=false", "tokenizer.joint=false"
FOLDABLE = ("scaled_dot", "dot", "general", "none")
SITES = ("encoder_self", "decoder_self", "cross")
VARIANTS = {
    "pre": [],
    "post": [POST],
    "post, separate": [POST, SEPARATE],
    "pre, FixNorm": ["model.fix_norm=true"],
    "post, FixNorm": [POST, "model.fix_norm=true"],
    "shallow decoder": ["model.decoder_layers=1"],
    "odd width": [POST, "model.dim=15", "model.num_heads=3"],
    # tests/exports/test_ctranslate2.py folds all scorers at all sites.
    **{
        f"{scorer} at {site}": [f"scorer@{site}={scorer}"]
        for scorer, site in covering(itertools.product(FOLDABLE[1:], SITES), pairs=False)
    },
}

Build = Callable[..., LoadedRun]


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, TokenizerPair]:
    """A joint pair and a separate one, of the sample corpus."""
    english, vietnamese = ((SAMPLE / f"train.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "vi"))
    joint = Tokenizer(
        train_tokenizer([*english[:2000], *vietnamese[:2000]], kind="bpe", size=700, character_coverage=1.0)
    )
    separate = [
        Tokenizer(train_tokenizer(text[:2000], kind="unigram", size=size, character_coverage=1.0))
        for text, size in ((english, 500), (vietnamese, 600))
    ]
    return {"joint": TokenizerPair(joint, joint), "separate": TokenizerPair(*separate)}


@pytest.fixture
def build(tokenizers: dict[str, TokenizerPair], tmp_path: Path) -> Build:
    """A run of the sample corpus with random weights, far enough from 0 that no attention is uniform."""

    def built(*arguments: str, seed: int = 1) -> LoadedRun:
        settings = run_settings(*TINY, *arguments)
        pair = tokenizers["joint" if settings.tokenizer.joint else "separate"]
        torch.manual_seed(seed)
        model = build_model(settings.model, pair)
        for parameter in model.parameters():
            mean, std = (0.0, 0.6) if parameter.dim() > 1 else (0.5, 0.3)
            nn.init.normal_(parameter, mean, std)
        with_plain_weights(model)
        return LoadedRun(RunDirectory(tmp_path / "run"), settings, pair, model.eval(), torch.device("cpu"))

    return built


def exported(trained: LoadedRun, folder: Path) -> HuggingFaceModel:
    folder.mkdir()
    write_hugging_face(trained, folder)
    return HuggingFaceModel(folder)


def random_ids(trained: LoadedRun, pairs: int = 7) -> tuple[list[list[int]], list[list[int]]]:
    """Sources and targets of 1 to 12 pieces, none of them special."""
    random = Random(3)
    sides = [
        [[random.randrange(4, tokenizer.size) for _ in range(random.randint(1, 12))] for _ in range(pairs)]
        for tokenizer in trained.tokenizers
    ]
    return sides[0], sides[1]


def forced(trained: LoadedRun, source: Sequence[int], target: Sequence[int]) -> tuple[Tensor, dict[int, Tensor]]:
    """log p of each target piece and EOS, and the cross attention (heads, queries, keys) of each layer."""
    seen: dict[int, Tensor] = {}

    def watch(site: str, layer: int, weights: Tensor, view: object) -> None:
        if site == "cross":
            seen[layer] = weights[0]

    ids = torch.tensor([[*source, EOS]])
    logits = trained.model(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([[BOS, *target]]), watch=watch)
    return logits[0].log_softmax(-1).gather(1, torch.tensor([*target, EOS])[:, None])[:, 0], seen


@pytest.mark.parametrize("variant", VARIANTS)
@torch.inference_mode()
def test_log_probs_and_cross_attention_are_the_runs(variant: str, build: Build, tmp_path: Path) -> None:
    """In float32: logits of up to 20 are sums of up to 19 products, through about 10 sums one after the other.

    20 x sqrt(19) x 10 x 2^-24 is 5e-5. A wrong order of a single axis changes log-probabilities by more than 0.1.
    """
    trained = build(*VARIANTS[variant])
    model = exported(trained, tmp_path / "out")
    sources, targets = random_ids(trained)
    found = model.forced_log_probs(sources, targets, batch_tokens=40)
    watched = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out", attn_implementation="eager").eval()
    for source, target, log_probs in zip(sources, targets, found, strict=True):
        expected, weights = forced(trained, source, target)
        torch.testing.assert_close(torch.tensor(log_probs), expected, rtol=0, atol=5e-5)
        inputs = {"input_ids": torch.tensor([[*source, EOS]]), "decoder_input_ids": torch.tensor([[BOS, *target]])}
        attentions = watched(**inputs, output_attentions=True).cross_attentions
        assert len(attentions) == len(trained.model.sites["cross"])
        for layer, attention in enumerate(attentions):
            torch.testing.assert_close(attention[0], weights[layer], rtol=0, atol=5e-6)


@pytest.mark.parametrize(
    ("arguments", "kind"), [([], PegasusForConditionalGeneration), ([POST], MarianMTModel)], ids=["pre", "post"]
)
def test_the_folder_says_which_model_it_is(
    arguments: list[str], kind: type[nn.Module], build: Build, tmp_path: Path
) -> None:
    assert type(exported(build(*arguments), tmp_path / "out").model) is kind


def test_the_runs_own_weights_stay_as_they_are(build: Build, tmp_path: Path) -> None:
    trained = build("scorer=general")
    before = {name: tensor.clone() for name, tensor in trained.model.state_dict().items()}
    exported(trained, tmp_path / "out")
    torch.testing.assert_close(dict(trained.model.state_dict()), before, rtol=0, atol=0)


@pytest.mark.parametrize("separate", [False, True], ids=["joint", "separate"])
def test_the_tokenizer_gives_the_runs_ids(separate: bool, build: Build, tmp_path: Path) -> None:
    """Of the test split and of hard texts, on both sides; and decodes them to the same text."""
    trained = build(POST, *([SEPARATE] if separate else []))
    tokenizer = exported(trained, tmp_path / "out").tokenizer
    hard = [
        "He said “hello” — it’s 50 % off…",
        "'quoted' \"twice\" «Xin chào» ,;:!? (a) [b]",
        "😀 👩‍👩‍👧 日本語 ﬁ ½ ①",
        "Đường Nguyễn Huệ, q̃uận ạ̃",
        "</s> <s> <pad> <unk> <0x41> a</s>b",
        "http://a.b/c?d=e&f=%20 #tag @user $1,000.00",
        "<<vi>> a >>vi<< b",
        "ALL CAPS 123.456 a",
    ]
    for side, ours, name in zip(("en", "vi"), trained.tokenizers, ("text", "text_target"), strict=True):
        lines = [*(SAMPLE / f"test.{side}").read_text(encoding="utf-8").splitlines(), *map(normalize, hard)]
        expected = ours.encode_all(lines)
        assert tokenizer(**{name: lines}).input_ids == [[*ids, EOS] for ids in expected]
        if name == "text_target" or not separate:
            decoded = tokenizer.batch_decode([[BOS, *ids, EOS] for ids in expected], skip_special_tokens=True)
            assert decoded == [ours.decode(ids) for ids in expected] == lines


def test_texts_that_the_tokenizer_reads_differently(build: Build, tmp_path: Path) -> None:
    """Each difference is in the model card."""
    trained = build()
    tokenizer = exported(trained, tmp_path / "out").tokenizer
    for text in (">>vi<< a", "  two  spaces ", "e\u0323\u0302", "a\u2581b", "tab\tand\u00a0blank"):
        ours = [*trained.tokenizers.source.encode(normalize(text)), EOS]
        assert tokenizer(text).input_ids != ours
        assert text.startswith(">>") or tokenizer(normalize(text)).input_ids == ours


@pytest.mark.parametrize("arguments", [[], [POST, SEPARATE]], ids=["pre", "post"])
def test_generate_finds_what_our_beam_search_finds(arguments: list[str], build: Build, tmp_path: Path) -> None:
    """Without length penalty, which is another one there; the model has learned a few sentences, so most end."""
    trained = build(*arguments, "search.length_penalty=0.0", "search.constraints.max_length=40", "model.dim=32")
    sources, targets = ((SAMPLE / f"test.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "vi"))
    ids = (
        tokenizer.encode_all(lines[:12])
        for tokenizer, lines in zip(trained.tokenizers, (sources, targets), strict=True)
    )
    batch = collate([Example(index, *pair) for index, pair in enumerate(zip(*ids, strict=True))])
    trained.model.load_state_dict(build_model(trained.settings.model, trained.tokenizers).state_dict())
    optimizer = torch.optim.Adam(trained.model.parameters(), lr=0.005)
    for _ in range(60):
        logits = trained.model(batch.source, batch.source_mask, batch.target_input)
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), batch.target_output, ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ours = build_translator([trained]).translate(sources[:30])
    theirs = exported(trained, tmp_path / "out").translate(sources[:30])
    # A hypothesis at the maximum length is longer there, because the library has a single one for all sources.
    lengths = [len(ids) + 1 for ids in trained.tokenizers.target.encode_all(ours)]
    limits = [min(2 * (len(ids) + 1) + 10, 40) for ids in trained.tokenizers.source.encode_all(sources[:30])]
    ended = [index for index in range(30) if lengths[index] < limits[index]]
    assert [theirs[index] for index in ended] == [ours[index] for index in ended]
    assert len({lengths[index] for index in ended}) > 5


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, -0.4])
def test_both_length_penalties_change_equally_at_the_typical_length(alpha: float) -> None:
    """The ratio of the penalties has its extreme there; the exponent is rounded to 4 digits."""
    ratios = [((5 + n) / 6) ** alpha / n ** length_exponent(alpha) for n in range(1, 100)]
    extreme = min if alpha > 0 else max
    assert ratios[TYPICAL_LENGTH - 1] == pytest.approx(extreme(ratios), rel=1e-5)


def test_generation_settings_are_those_of_the_search(build: Build) -> None:
    found = generation_settings(build("search.beam_size=7", "search.constraints.no_repeat_ngram=3"))
    assert {key: found[key] for key in ("num_beams", "early_stopping", "no_repeat_ngram_size", "max_length")} == {
        "num_beams": 7,
        "early_stopping": False,
        "no_repeat_ngram_size": 3,
        "max_length": 523,  # BOS, and 2 x 256 + 10 for the longest source
    }
    assert "num_beams" not in generation_settings(build("search.beam_size=1"))
    limits = ["search.constraints.max_length=30", "search.constraints.min_length=4"]
    found = generation_settings(build(*limits))
    assert (found["max_length"], found["min_length"]) == (31, 4)
    assert generation_settings(build("search.constraints.max_length_ratio=9.0"))["max_length"] == POSITIONS
    sampling = run_settings(*TINY[:-1], "search=sampling", "search.top_k=11")
    found = generation_settings(build()._replace(settings=sampling))
    assert (found["do_sample"], found["temperature"], found["top_k"], found["top_p"]) == (True, 1.0, 11, 1.0)


def test_no_sentence_is_shorter_than_the_searchs_minimum(build: Build, tmp_path: Path) -> None:
    """The lengths of both count EOS."""
    trained = build(POST, "search.constraints.min_length=4", "search.constraints.max_length=4")
    model = exported(trained, tmp_path / "out")
    inputs = model.tokenizer(["a b", "c"], padding=True, return_tensors="pt")
    rows = model.model.generate(**inputs).tolist()
    assert [len(row) for row in rows] == [5, 5]
    assert all(row[0] == BOS and row[4] == EOS and EOS not in row[:4] for row in rows)


def test_an_empty_line_stays_empty(build: Build, tmp_path: Path) -> None:
    model = exported(build(POST, "search.constraints.max_length=5"), tmp_path / "out")
    assert model.translate([]) == []
    assert model.translate(["", " "]) == ["", ""]


def test_the_model_card_says_what_the_run_is(build: Build, tmp_path: Path) -> None:
    trained = build()
    score = {"name": "BLEU", "value": 12.5, "interval": [11.0, 14.25], "signature": "nrefs:1|case:mixed"}
    trained.directory.path.mkdir()
    trained.directory.write_metrics(
        {"finished": True, "command": "python -m nmt.train THE COMMAND", "scores": {"test": [score]}}
    )
    exported(trained, tmp_path / "out")
    _, header, text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    settings = yaml.safe_load(header)
    assert settings["language"] == ["en", "vi"]
    assert (settings["license"], settings["pipeline_tag"], settings["library_name"]) == (
        "cc0-1.0",
        "translation",
        "transformers",
    )
    assert "The training corpus was generated by a grammar." in text
    assert "| `test` | BLEU | 12.50 | 11.00 | 14.25 | `nrefs:1\\|case:mixed` |" in text
    length_penalty, reading = f"|Y|^{length_exponent(0.6)}", "The exported model reads every line as it is."
    for part in ("python -m nmt.train THE COMMAND", "Seed: 1", "license: CC0 1.0", length_penalty, reading):
        assert part in text


def test_nothing_that_a_run_records_is_markup_in_its_card(build: Build, tmp_path: Path) -> None:
    trained = build()
    score = {"name": "<b>|", "value": 12.5, "interval": [11.0, 14.25], "signature": "a`|"}
    record = {"command": "x` <script>\n# A `` title\u202e", "versions": {"torch": "![](x)"}, "git_commit": "<i>"}
    trained.directory.path.mkdir()
    trained.directory.write_metrics({"finished": True, **record, "scores": {"t`": [score]}})
    exported(trained, tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "- Command: ``` x` <script>\\n# A `` title\\u202e ```\n" in text
    assert "- Version: torch `![](x)`, commit `<i>`\n" in text
    assert "| `` t` `` | `<b>\\|` | 12.50 | 11.00 | 14.25 | `` a`\\| `` |\n" in text
    assert "these scores; they were not computed again for this export." in text


@pytest.mark.parametrize(
    ("changes", "license"),
    [
        ({"name": "envi", "train": ["data/envi/alt"]}, "ALT (alt) CC BY 4.0"),
        ({"name": "iwslt15", "train": ["data/iwslt15/train", "my/train"]}, None),
        ({"name": "files", "train": ["my/train"]}, None),
        ({"train": ["sample:train", "my/train"]}, None),
        ({"train": ["sample:train"]}, "CC0 1.0"),
    ],
)
def test_a_license_is_stated_only_if_it_is_known(changes: dict[str, Any], license: str | None, build: Build) -> None:
    trained = build()
    trained = trained._replace(settings=run_settings(*TINY, **changes))
    found = corpus_license(trained)
    assert found == license if license is None else found is not None and found.startswith(license)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["norm@model=scale_norm"],
            r"supports only norm@model=layer_norm, not scale_norm, which .*run uses: .*use ctranslate2",
        ),
        ([SEPARATE], r"model\.norm_first=true with tokenizer\.joint=false, which .*run uses, .*use ctranslate2"),
        (["scorer@cross=additive"], r"hugging_face does not support scorer=additive, .* at cross.*Use onnx"),
    ],
)
def test_what_it_does_not_support_is_refused_in_one_sentence(
    arguments: list[str], message: str, build: Build, tmp_path: Path
) -> None:
    with pytest.raises(Mistake, match=message):
        write_hugging_face(build(*arguments), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_unknown_weights_of_another_version_are_refused(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = hugging_face._weights
    monkeypatch.setattr(
        hugging_face, "_weights", lambda model: {name: each for name, each in known(model).items() if "fc1" not in name}
    )
    with pytest.raises(Mistake, match=r"transformers 5\..* the weights model\.decoder\.layers\.0\.fc1\.bias, "):
        write_hugging_face(build(), tmp_path)


def test_a_folder_that_is_no_export_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(Mistake, match=r"transformers cannot load .*: export the run again"):
        HuggingFaceModel(tmp_path)


def test_whoever_may_read_the_folder_may_read_its_weights(build: Build, tmp_path: Path) -> None:
    exported(build(POST), tmp_path / "out")
    assert len({file.stat().st_mode for file in (tmp_path / "out").iterdir()}) == 1
