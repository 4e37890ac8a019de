from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import pytest
import torch
import yaml
from grids import covering
from torch import Tensor, nn

from nmt.attention import Attention, normalizers, windows
from nmt.config.nodes import CONFIGS, make
from nmt.models import Bahdanau, DocumentModel, Luong, Seq2Seq, Transformer, VocabularySizes
from nmt.models.hierarchical import HierarchicalAttention
from nmt.models.norms import LayerNorm, ScaleNorm

SOURCE_VOCAB, TARGET_VOCAB = 19, 23
MODELS = ("bahdanau", "luong", "transformer")
PAPER_SCORERS = {"bahdanau": "additive", "luong": "general", "transformer": "scaled_dot"}
SCORERS = {
    path.stem: make(yaml.safe_load(path.read_text())["scorer"]) for path in sorted((CONFIGS / "scorer").glob("*.yaml"))
}


ENCODERS = sorted(path.stem for path in (CONFIGS / "encoder").glob("*.yaml"))


def network(group: str, name: str, attention: Callable[..., Attention]) -> Any:
    """A choice of the group encoder or decoder; one that attends to its own past does so with this attention."""
    node = yaml.safe_load((CONFIGS / group / f"{name}.yaml").read_text())[group]
    return make(node | {"attention": None}, attention=attention) if "attention" in node else make(node)


def build(
    model: str,
    scorer: str,
    *,
    window: Callable[..., windows.Window] = windows.Global,
    normalizer: Callable[[], normalizers.Normalizer] = normalizers.Softmax,
    num_heads: int = 1,
    input_feeding: bool = True,
    encoder: str = "bidirectional",
    decoder: str = "lstm",
    decoder_dim: int = 14,
    norm_first: bool = True,
    norm: Callable[[int], nn.Module] = LayerNorm,
    fix_norm: bool = False,
    joint: bool = False,
) -> Seq2Seq:
    """A small model in float64 with random weights and dropout, in evaluation mode; the heads are the recurrent's."""
    torch.manual_seed(5)
    cross = partial(Attention, SCORERS[scorer], window, normalizer)
    own = partial(Attention, SCORERS[scorer], windows.Global, normalizer)
    shared = {"vocabulary": VocabularySizes(SOURCE_VOCAB, TARGET_VOCAB, joint), "dropout": 0.3}
    recurrent = {
        "embedding_dim": 11,
        "encoder_dim": 14,
        "decoder_dim": decoder_dim,
        "num_heads": num_heads,
        "fix_norm": fix_norm,
    }
    made: Seq2Seq
    if model == "transformer":
        sizes = {"dim": 12, "ffn_dim": 17, "num_heads": 3, "num_layers": 2}
        made = Transformer(own, own, cross, norm, norm_first=norm_first, fix_norm=fix_norm, **sizes, **shared)
    elif model == "luong":
        networks = network("encoder", encoder, own), network("decoder", decoder, own)
        made = Luong(cross, *networks, num_layers=2, input_feeding=input_feeding, **recurrent, **shared)
    else:
        made = Bahdanau(cross, network("encoder", encoder, own), maxout_dim=7, **recurrent, **shared)
    return made.double().eval()


def build_document_model(
    model: str = "transformer",
    at: str = "both",
    scorer: str = "",
    normalizer: Callable[[], normalizers.Normalizer] = normalizers.Softmax,
) -> DocumentModel:
    """A small document model in float64 with random weights, in evaluation mode."""
    sentence = build(model, scorer or PAPER_SCORERS[model])
    torch.manual_seed(7)
    attention = partial(Attention, SCORERS[scorer or "scaled_dot"], windows.Global, normalizer)
    heads = {"transformer": 3, "luong": 2, "bahdanau": 7 if at == "decoder" else 1}[model]
    context = partial(HierarchicalAttention, attention, attention)
    contexts = {side: context if at in (side, "both") else None for side in ("encoder", "decoder")}
    made = DocumentModel(sentence, **contexts, ffn_dim=13, num_heads=heads, dropout=0.3)
    return made.double().eval()


@pytest.fixture
def make_model() -> Callable[..., Seq2Seq]:
    return build


@pytest.fixture
def document_model() -> Callable[..., DocumentModel]:
    return build_document_model


@pytest.fixture
def scorers() -> dict[str, Callable[..., nn.Module]]:
    return SCORERS


ROWS = {f"{model}-{scorer}": partial(build, model, scorer) for model in MODELS for scorer in SCORERS} | {
    "luong-general-without feeding": partial(build, "luong", "general", input_feeding=False),
    "transformer-scaled_dot-post-norm": partial(build, "transformer", "scaled_dot", norm_first=False),
    "transformer-scaled_dot-scale_norm": partial(build, "transformer", "scaled_dot", norm=ScaleNorm),
}
WINDOWS = {
    "local_m": partial(windows.LocalM, half_width=2),
    "local_p": partial(windows.LocalP, half_width=2, renormalize=False),
    "local_p-renormalized": partial(windows.LocalP, half_width=2, renormalize=True),
}
ROWS |= {
    f"{model}-general-{name}": partial(build, model, "general", window=window, num_heads=1 if model == "luong" else 2)
    for model in MODELS
    for name, window in WINDOWS.items()
}
ROWS |= {
    f"{model}-general-{encoder}": partial(build, model, "general", encoder=encoder)
    for model in ("bahdanau", "luong")
    for encoder in ENCODERS
}
LSTMN = partial(build, encoder="lstmn")
ROWS |= {f"bahdanau-{scorer}-lstmn": partial(LSTMN, "bahdanau", scorer) for scorer in SCORERS}
ROWS |= {f"luong-{scorer}-lstmn": partial(LSTMN, "luong", scorer, decoder="lstmn") for scorer in SCORERS}
ROWS |= {"luong-general-lstmn-sparsemax": partial(LSTMN, "luong", "general", normalizer=normalizers.Sparsemax)}
SPARSE = partial(build, scorer="general", normalizer=normalizers.Sparsemax)
ROWS |= {f"{model}-general-sparsemax": partial(SPARSE, model) for model in MODELS}
ROWS |= {f"{model}-scaled_dot-fix_norm": partial(build, model, "scaled_dot", fix_norm=True) for model in MODELS}
ROWS |= {f"{model}-additive-2 heads": partial(build, model, "additive", num_heads=2) for model in ("bahdanau", "luong")}


def choices(name: str) -> tuple[object, ...]:
    """The arguments of `build`: the choices that define a model."""
    given = signature(build).bind(*ROWS[name].args, **ROWS[name].keywords)
    given.apply_defaults()
    return tuple(given.arguments.values())


@pytest.fixture(params=covering(ROWS, choices))
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    made: Seq2Seq = ROWS[request.param]()
    return made


@pytest.fixture(params=covering(ROWS, choices, pairs=False))
def typical(request: pytest.FixtureRequest) -> Seq2Seq:
    """Fewer of these models, one with each choice: for searches, and for laws that do not depend on combinations."""
    made: Seq2Seq = ROWS[request.param]()
    return made


@pytest.fixture
def rows() -> dict[str, Callable[[], Seq2Seq]]:
    """What builds each model; every one begins with the same random numbers."""
    return ROWS


@pytest.fixture
def sentences() -> tuple[Tensor, Tensor, Tensor]:
    """Three sources of 7, 3 and 5 pieces, their mask, and target inputs of 6 pieces."""
    generator = torch.Generator().manual_seed(3)
    source = torch.randint(4, SOURCE_VOCAB, (3, 7), generator=generator)
    mask = torch.arange(7) < torch.tensor([[7], [3], [5]])
    target = torch.randint(4, TARGET_VOCAB, (3, 6), generator=generator)
    return source * mask, mask, target


@pytest.fixture
def close() -> Callable[[Tensor, Tensor], None]:
    return partial(torch.testing.assert_close, rtol=0, atol=1e-10)
