"""The exported folder computes what the run computes, with the library transformers and nothing of nmt."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest
import torch
from jobs import run_settings
from torch import Tensor, nn
from transformers import AutoModelForSeq2SeqLM, MarianMTModel, PegasusForConditionalGeneration

from nmt.data.batch import Example, collate
from nmt.exports.hugging_face import (
    HuggingFaceModel,
    write_hugging_face,
)
from nmt.models.embeddings import with_plain_weights
from nmt.runs.directory import RunDirectory
from nmt.runs.load import Trained, build_model
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
    "odd width": [POST, "model.dim=15", "model.num_heads=3"],
    **{f"{scorer} at {site}": [f"scorer@{site}={scorer}"] for scorer in FOLDABLE[1:] for site in SITES},
}

Build = Callable[..., Trained]


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, TokenizerPair]:
    """A joint pair and a separate one, of the sample corpus."""
    english, vietnamese = ((SAMPLE / f"train.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "vi"))
    joint = Tokenizer(train_tokenizer([*english[:2000], *vietnamese[:2000]], kind="bpe", size=700))
    separate = [
        Tokenizer(train_tokenizer(text[:2000], kind="unigram", size=size))
        for text, size in ((english, 500), (vietnamese, 600))
    ]
    return {"joint": TokenizerPair(joint, joint), "separate": TokenizerPair(*separate)}


@pytest.fixture
def build(tokenizers: dict[str, TokenizerPair], tmp_path: Path) -> Build:
    """A run of the sample corpus with random weights, far enough from 0 that no attention is uniform."""

    def built(*arguments: str, seed: int = 1) -> Trained:
        settings = run_settings(*TINY, *arguments)
        pair = tokenizers["joint" if settings.tokenizer.joint else "separate"]
        torch.manual_seed(seed)
        model = build_model(settings.model, pair)
        for parameter in model.parameters():
            mean, std = (0.0, 0.6) if parameter.dim() > 1 else (0.5, 0.3)
            nn.init.normal_(parameter, mean, std)
        with_plain_weights(model)
        return Trained(RunDirectory(tmp_path / "run"), settings, pair, model.eval(), torch.device("cpu"))

    return built


def exported(trained: Trained, folder: Path) -> HuggingFaceModel:
    folder.mkdir()
    write_hugging_face(trained, folder)
    return HuggingFaceModel(folder)


def random_ids(trained: Trained, pairs: int = 7) -> tuple[list[list[int]], list[list[int]]]:
    """Sources and targets of 1 to 12 pieces, none of them special."""
    random = Random(3)
    sides = [
        [[random.randrange(4, tokenizer.size) for _ in range(random.randint(1, 12))] for _ in range(pairs)]
        for tokenizer in trained.tokenizers
    ]
    return sides[0], sides[1]


def forced(trained: Trained, source: Sequence[int], target: Sequence[int]) -> tuple[Tensor, dict[int, Tensor]]:
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
        assert len(attentions) == LAYERS
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
    trained = build(*arguments, "search.length_penalty=0.0", "model.dim=32")
    sources, targets = ((SAMPLE / f"test.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "vi"))
    ids = (
        tokenizer.encode_all(lines[:12])
        for tokenizer, lines in zip(trained.tokenizers, (sources, targets), strict=True)
    )
    batch = collate([Example(index, *pair) for index, pair in enumerate(zip(*ids, strict=True))])
    trained.model.load_state_dict(build_model(trained.settings.model, trained.tokenizers).state_dict())
    optimizer = torch.optim.Adam(trained.model.parameters(), lr=0.005)
    for _ in range(70):
        logits = trained.model(batch.source, batch.source_mask, batch.target_input)
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), batch.target_output, ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ours = build_translator([trained]).translate(sources[:30])
    theirs = exported(trained, tmp_path / "out").translate(sources[:30])
    # A hypothesis at the maximum length is longer there, because the library has a single one for all sources.
    lengths = [len(ids) + 1 for ids in trained.tokenizers.target.encode_all(ours)]
    limits = [2 * (len(ids) + 1) + 10 for ids in trained.tokenizers.source.encode_all(sources[:30])]
    ended = [index for index in range(30) if lengths[index] < limits[index]]
    assert [theirs[index] for index in ended] == [ours[index] for index in ended]
    assert len({lengths[index] for index in ended}) > 5
