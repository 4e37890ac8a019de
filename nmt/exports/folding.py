"""Converts Transformers to the form that other programs support: scaled dot-product attention with softmax."""

import math
import re
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from nmt.attention import Attention, MultiHeadAttention
from nmt.attention.normalizers import Softmax
from nmt.attention.scorers import Dot, General, NoScore, ScaledDot
from nmt.attention.windows import Global
from nmt.exports.damage import Unsupported
from nmt.models import Transformer
from nmt.models.lstmn import LSTMN
from nmt.models.norms import LayerNorm
from nmt.runs.load import LoadedRun

FOLDABLE = (ScaledDot, Dot, General, NoScore)


class Projection(NamedTuple):
    """x -> weight x + bias. The tensors are copies, because CTranslate2 quantizes its arrays in place."""

    weight: Float[Tensor, "width input_dim"]
    bias: Float[Tensor, " width"]


class Folded(NamedTuple):
    """The projections of a multi-head attention whose score is q . k / sqrt(d), where d is the width of a head."""

    query: Projection
    key: Projection
    value: Projection
    output: Projection


def require_plain_transformer(run: LoadedRun, format: str) -> Transformer:
    """The run's model, if its attention can be folded at every site.

    Otherwise raises Unsupported, which names the unsupported choice, its site and a format that supports it.
    """
    model = run.model
    require_no_context(run, format)
    if not isinstance(model, Transformer):
        raise Unsupported(
            f"{format} supports only Transformers, but the model of {run.directory.path} is of the class "
            f"{type(model).__name__}: use onnx.",
            limit="supports only Transformers",
        )
    for site, attentions in model.sites.items():
        for choice, part, held in _choices(attentions[0]):
            if not isinstance(part, held):
                known = ", ".join(_option(kind) for kind in held)
                raise Unsupported(
                    f"{format} does not support {choice}={_option(type(part))}, which {run.directory.path} uses "
                    f"at {site}; it supports {known}. Use onnx, which supports every {choice}.",
                    limit=f"does not support {choice}={_option(type(part))}",
                )
    return model


def require_no_context(run: LoadedRun, format: str) -> None:
    """Raises Unsupported for a run that reads earlier sentences."""
    if run.context_window.sentences:
        raise Unsupported(
            f"{format} supports only models that read one sentence, but {run.directory.path} also reads earlier "
            "ones (context): export the run that it started from, or one trained with context=none.",
            limit="supports only models that read one sentence",
        )


def require_marian_or_pegasus(run: LoadedRun) -> Transformer:
    """The run's model, if Marian or Pegasus of `transformers` has all its parts; otherwise raises Unsupported."""
    model = require_plain_transformer(run, "hugging_face")
    first: Any = model.encoder[0]  # nn.ModuleList does not know the class of its modules
    if not isinstance(first.around_attention.norm, LayerNorm):
        raise Unsupported(
            f"hugging_face supports only norm@model=layer_norm, not scale_norm, which {run.directory.path} uses: "
            "use ctranslate2 or onnx, which support both."
        )
    if model.norm_first and not run.tokenizers.joint:
        raise Unsupported(
            f"hugging_face does not support model.norm_first=true with tokenizer.joint=false, which "
            f"{run.directory.path} uses, because Pegasus has one vocabulary: use ctranslate2 or onnx, which "
            "support both."
        )
    return model


def require_two_graphs(run: LoadedRun) -> None:
    """Raises Unsupported for a model that cannot be written as an encoder and a step in ONNX."""
    path = run.directory.path
    require_no_context(run, "onnx")
    if run.precision != "float32":
        raise Unsupported(
            f"onnx needs float32 weights, but {path} is loaded with precision={run.precision}: load it with "
            "precision=float32."
        )
    if any(isinstance(module, LSTMN) and name.startswith("encoder") for name, module in run.model.named_modules()):
        raise Unsupported(
            f"onnx does not support encoder@model=lstmn, which {path} uses, because it attends to its own "
            "past at every source piece: export a run with another encoder, or use engine=torch."
        )


def folded(attention: MultiHeadAttention) -> Folded:
    """The projections of an attention, with its scorer folded into the query and key projections.

    For the dot score q . k and the general score q . W k, the queries are multiplied by sqrt(d), and W becomes part of
    the key projection. For scorer=none, whose score is 0, the queries are 0.
    """
    scorer, heads = attention.attention.scorer, attention.num_heads
    query, key, value, output = (
        _copied(part) for part in (attention.query, attention.key, attention.value, attention.output)
    )
    root = math.sqrt(query.weight.shape[0] // heads)
    if isinstance(scorer, NoScore):
        query = Projection(torch.zeros_like(query.weight), torch.zeros_like(query.bias))
    elif isinstance(scorer, General):
        matrices = scorer.weight.detach()  # (heads, key_dim, query_dim), multiplied from the right
        by_head = key.weight.unflatten(0, (heads, -1)), key.bias.unflatten(0, (heads, -1))
        key = Projection(
            torch.einsum("hki,hkq->hqi", by_head[0], matrices).flatten(0, 1),
            torch.einsum("hk,hkq->hq", by_head[1], matrices).flatten(),
        )
    if not isinstance(scorer, ScaledDot):
        query = Projection(query.weight * root, query.bias * root)
    return Folded(query, key, value, output)


def _copied(linear: nn.Linear) -> Projection:
    return Projection(linear.weight.detach().clone(), linear.bias.detach().clone())


def _choices(attention: Attention) -> list[tuple[str, nn.Module, tuple[type[nn.Module], ...]]]:
    """The name of each choice in an attention, its module, and the classes that can be folded."""
    return [
        ("scorer", attention.scorer, FOLDABLE),
        ("window", attention.window, (Global,)),
        ("normalizer", attention.normalizer, (Softmax,)),
    ]


def _option(choice: type[nn.Module]) -> str:
    """The option that selects a class on the command line."""
    return "none" if choice is NoScore else re.sub(r"(?<!^)(?=[A-Z])", "_", choice.__name__).lower()
