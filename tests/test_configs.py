"""Every model works with every scorer, window and normaliser that has a configuration, or says why not."""

from functools import cache
from itertools import product

import pytest
import torch
from grids import covering
from torch.optim.lr_scheduler import ConstantLR

from nmt.attention import Attention
from nmt.cli.compose import configuration
from nmt.config.nodes import CONFIGS, Config, make
from nmt.data.batch import collate
from nmt.data.example import Example
from nmt.errors import Mistake
from nmt.models import Seq2Seq, VocabularySizes
from nmt.training.task import TranslationTask

GROUPS = ("model", "scorer", "window", "normalizer")
CHOICES = {group: sorted(path.stem for path in (CONFIGS / group).glob("*.yaml")) for group in GROUPS}
COMBINATIONS = [
    tuple(f"{group}={choice}" for group, choice in zip(GROUPS, choices, strict=True))
    for choices in covering(product(*CHOICES.values()))
]
SITES = ("encoder_self", "decoder_self", "cross")
BATCH = collate([Example(0, [4, 5, 6, 7, 8], [9, 10, 11]), Example(1, [12, 13], [14, 15, 16, 17])])


@cache
def model_node(*overrides: str) -> Config:
    """The configuration of the model; composing it takes longer than a step of training."""
    config: Config = configuration("train", [*overrides, "run_dir=unused"])["model"]
    return config


def build(*overrides: str) -> Seq2Seq:
    """The model that `python -m nmt.train` with these overrides trains, with tiny vocabularies."""
    return built(model_node(*overrides))


def built(node: Config) -> Seq2Seq:
    torch.manual_seed(2)
    made: Seq2Seq = make(node)(vocabulary=VocabularySizes(19, 23, joint=False))
    return made


@cache
def part(override: str) -> Config:
    """The configuration that a choice such as `window=local_m` stands for."""
    config: Config = configuration("train", [override, "run_dir=unused"])[override.partition("=")[0]]
    return config


def with_parts(model: Config, window: Config, normalizer: Config) -> Config:
    """The configuration of a model with this window at its cross attention, and this normalizer at every site."""
    sites = {site: model[site] | {"normalizer": normalizer} for site in SITES if site in model}
    return model | sites | {"cross": sites["cross"] | {"window": window}}


def sites(model: Seq2Seq) -> list[Attention]:
    return [module for module in model.modules() if isinstance(module, Attention)]


def target(group: str, choice: str) -> str:
    """The class that a configuration names."""
    lines = (CONFIGS / group / f"{choice}.yaml").read_text(encoding="utf-8").splitlines()
    return next(line.split()[1] for line in lines if line.strip().startswith("_target_:"))


def name(part: object) -> str:
    return f"{type(part).__module__}.{type(part).__name__}"


def test_the_configurations_are_found():
    assert set(CHOICES["model"]) >= {"bahdanau", "luong", "transformer"}
    assert set(CHOICES["window"]) >= {"global", "local_m", "local_p"}
    assert set(CHOICES["normalizer"]) >= {"softmax", "sparsemax"}
    assert len(CHOICES["scorer"]) >= 9


@pytest.mark.parametrize("overrides", COMBINATIONS, ids=" ".join)
def test_every_combination_has_its_parts_and_learns(overrides: tuple[str, ...]):
    """The parts are those that were named; a step of gradient descent on the loss of a batch lowers that loss."""
    model_choice, scorer_choice, window_choice, normalizer_choice = overrides
    # Composing all 162 would take a minute; `test_parts_are_composed_in_their_places` compares the two ways.
    node = model_node(model_choice, scorer_choice)
    model = built(with_parts(node, part(window_choice), part(normalizer_choice)))
    _, scorer, window, normalizer = (override.partition("=")[2] for override in overrides)
    cross = sites(model)[-1]
    assert name(cross.scorer) == target("scorer", scorer)
    assert name(cross.window) == target("window", window)
    assert name(cross.normalizer) == target("normalizer", normalizer)
    task = TranslationTask(model.eval(), lambda parameters: torch.optim.SGD(parameters, lr=1e-3), ConstantLR, seed=1)
    before = task.nll(BATCH)
    before.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    torch.optim.SGD(model.parameters(), lr=1e-3).step()
    assert task.nll(BATCH) < before


@pytest.mark.parametrize("model", CHOICES["model"])
def test_parts_are_composed_in_their_places(model: str):
    for window, normalizer in (("window=local_p", "normalizer=sparsemax"), ("window=global", "normalizer=softmax")):
        replaced = with_parts(model_node(f"model={model}"), part(window), part(normalizer))
        assert replaced == model_node(f"model={model}", window, normalizer)


@pytest.mark.parametrize(
    ("model", "scorer"), [("bahdanau", "additive"), ("luong", "general"), ("transformer", "scaled_dot")]
)
def test_a_model_brings_its_natural_scorer(model: str, scorer: str):
    assert {name(site.scorer) for site in sites(build(f"model={model}"))} == {target("scorer", scorer)}


@pytest.mark.parametrize("site", ["encoder_self", "decoder_self", "cross"])
@pytest.mark.parametrize(
    ("group", "package", "own", "others"),
    [("scorer", "{site}", "additive", "scaled_dot"), ("normalizer", "{site}", "sparsemax", "softmax")],
)
def test_a_site_of_the_transformer_may_have_parts_of_its_own(
    site: str, group: str, package: str, own: str, others: str
):
    model = build("model=transformer", f"{group}@{package.format(site=site)}={own}", "model.num_layers=1")
    encoder, decoder = model.encoder[0], model.decoder[0]
    found = {"encoder_self": encoder.attention, "decoder_self": decoder.attention, "cross": decoder.cross}
    for where, multihead in found.items():
        expected = target(group, own if where == site else others)
        assert name(getattr(multihead.attention, group)) == expected


REFUSED = {
    (model, scorer, "model.encoder_dim=64"): "queries are 128 wide and keys 64: make the widths equal or use scorer="
    for model in ("model=bahdanau", "model=luong")
    for scorer in ("scorer=dot", "scorer=scaled_dot", "scorer=gaussian", "scorer=gaussian_learned")
} | {
    ("model=luong", "model.encoder_dim=65"): "encoder_dim is 65; it must be even",
    ("model=luong", "model.num_heads=3"): "model.num_heads=3 does not divide the query width 128: .* such as 2",
    ("model=bahdanau", "window=local_p", "window.half_width=0"): "window.half_width is 0; it must be at least 1",
    ("model=luong", "window=local_m", "window.half_width=-1"): "window.half_width is -1; it must be at least 0",
    ("model=transformer", "scorer=location", "scorer.max_length=0"): "scorer.max_length is 0; it must be a whole",
    ("model=transformer", "model.num_heads=5"): "model.num_heads=5 does not divide the query width 128: .* such as 4",
}


@pytest.mark.parametrize(("overrides", "sentence"), REFUSED.items(), ids=map(" ".join, REFUSED))
def test_a_combination_that_cannot_work_is_refused_in_a_sentence(overrides: tuple[str, ...], sentence: str):
    with pytest.raises(Mistake, match=sentence):
        build(*overrides)


@pytest.mark.parametrize(
    ("overrides", "most"),
    [
        (("model=luong",), (None, None)),
        (("model=luong", "scorer=location"), (1024, None)),
        (("model=transformer", "scorer=location", "scorer.max_length=17"), (17, 17)),
        (("model=transformer", "scorer@decoder_self=location"), (None, 1024)),
        (("model=transformer", "scorer@encoder_self=location", "encoder_self.scorer.max_length=17"), (17, None)),
        (("model=transformer", "scorer@cross=location", "scorer=location", "scorer.max_length=17"), (17, 17)),
    ],
)
def test_a_scorer_of_positions_limits_the_length_of_what_it_attends_to(
    overrides: tuple[str, ...], most: tuple[int | None, int | None]
):
    model = build(*overrides)
    assert (model.max_source, model.max_target) == most


@pytest.mark.parametrize("scorer", ["general", "additive", "concat", "location", "none"])
@pytest.mark.parametrize("model", ["bahdanau", "luong"])
def test_the_other_scorers_take_unequal_widths(model: str, scorer: str):
    assert build(f"model={model}", f"scorer={scorer}", "model.encoder_dim=64")(*BATCH[:3]).isfinite().all()
