"""nmt.explain: what the attention of a configuration computes, in plain text."""

import inspect
import textwrap
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention import Attention, MultiHeadAttention, View
from nmt.config.job import Job
from nmt.config.nodes import make
from nmt.config.schema import ExplainSettings
from nmt.models import Seq2Seq, VocabularySizes
from nmt.text import BOS, EOS, PAD, UNK

WIDTH = 110
"""The line width of the text, in columns."""
MULTIHEAD = (
    "head_i = sum_j a_j v_j with queries Q W_i^Q, keys K W_i^K and values V W_i^V; the heads are concatenated and "
    "multiplied by W^O (Vaswani et al. 2017, section 3.2.2). Each projection has a bias, unlike in the paper."
)


class Site(NamedTuple):
    """An attention site of a model, described by its first layer as observed in an example."""

    name: str
    layers: int
    attention: Attention
    around: MultiHeadAttention | None
    """The module with the projections around the attention; None if there are no projections."""
    calls: int
    shapes: dict[str, tuple[int, ...]]
    keys_are_values: bool
    """Whether one tensor serves as both keys and values, because the scorer does not project keys."""


def explain(job: Job[ExplainSettings]) -> None:
    """Prints each site's formula and its source, where its queries come from, the shapes in an example, and the costs.

    Raises Mistake for parts that do not fit together.
    """
    settings = job.settings
    vocabulary = VocabularySizes(settings.vocabulary, settings.vocabulary, joint=True)
    model: Seq2Seq = make(settings.model)(vocabulary=vocabulary)
    print(explanation(model, settings.source_length, settings.target_length))
    print(
        f"\nThe parameters are counted for a joint vocabulary of {settings.vocabulary:,} pieces (vocabulary=N), with "
        "one embedding table for both languages."
    )


def explanation(model: Seq2Seq, source_length: int, target_length: int) -> str:
    """The text that describes a model; its example has `source_length` source and `target_length` target pieces."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    settings = f"Here {model.extra_repr()}.\n" if model.extra_repr() else ""
    paragraphs = [f"{inspect.getdoc(model)}\n{settings}{parameters:,} parameters"]
    for site in observed_sites(model, source_length, target_length):
        heads = site.shapes["queries"][1]
        side = "source" if site.name == "encoder_self" else "target"
        shapes = ", ".join(f"{part} {_shape(shape)}" for part, shape in site.shapes.items())
        rows = {
            "queries": model.queries[site.name],
            "score": _summary(site.attention.scorer),
            "window": _summary(site.attention.window)
            + ("" if site.name == "cross" else " Local windows are only for cross attention."),
            "weights": _summary(site.attention.normalizer),
            "context": MULTIHEAD
            if site.around
            else "o = sum_i a_i v_i; query, keys and values are states, without projections.",
            "example": f"S = {source_length} source pieces, T = {target_length} target pieces: {shapes}"
            + (f", {site.calls} times, once for each {side} position" if site.calls > 1 else "")
            + ". Axes are (batch, heads, positions, width); keys are shown as the scorer stores them.",
            "parameters": _parameters(site.around or site.attention),
            "memory": _memory(site),
        }
        head = f"{site.name}: {site.layers} layer{'s' if site.layers > 1 else ''}, {heads} head"
        lines = [head + ("s" if heads > 1 else "")]
        for name, text in rows.items():
            lines.append(textwrap.fill(f"  {name:11}{text}", WIDTH, subsequent_indent=" " * 13, break_long_words=False))
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs)


def observed_sites(model: Seq2Seq, source_length: int, target_length: int) -> list[Site]:
    """The sites of a model, observed while it reads one example sentence pair."""
    layers = dict.fromkeys(model.sites, 0)
    first = {name: attentions[0] for name, attentions in model.sites.items()}
    calls: dict[Attention, list[tuple[Tensor, ...]]] = {attention: [] for attention in first.values()}
    hooks = [
        attention.register_forward_pre_hook(lambda module, arguments: calls[module].append(arguments[:3]))
        for attention in calls
    ]

    def count(site: str, layer: int, weights: Tensor, view: View) -> None:
        layers[site] += 1

    source = torch.tensor([[UNK] * (source_length - 1) + [EOS]])
    target = torch.tensor([[BOS] + [UNK] * (target_length - 1)])
    with torch.inference_mode():
        model.eval()(source, source.ne(PAD), target, watch=count)
    for hook in hooks:
        hook.remove()
    around = {module.attention: module for module in model.modules() if isinstance(module, MultiHeadAttention)}
    sites = []
    for name, attention in first.items():
        queries, keys, values = calls[attention][0]
        shapes = {"queries": tuple(queries.shape), "keys": tuple(keys.shape), "values": tuple(values.shape)}
        shared = keys.data_ptr() == values.data_ptr()
        sites.append(Site(name, layers[name], attention, around.get(attention), len(calls[attention]), shapes, shared))
    return sites


def _summary(part: nn.Module) -> str:
    """The part's settings, and the first paragraph of its docstring, which gives the formula and its source."""
    formula = " ".join((inspect.getdoc(type(part)) or "").split("\n\n")[0].split())
    return f"{formula} Here {part.extra_repr()}." if part.extra_repr() else formula


def _parameters(site: nn.Module) -> str:
    named = dict(site.named_parameters())
    parts = [f"{name} {_shape(tuple(value.shape))}" for name, value in named.items()]
    total = sum(value.numel() for value in named.values())
    return f"{total:,} in each layer: {', '.join(parts)}" if parts else "none of its own"


def _memory(site: Site) -> str:
    heads, key_width, value_width = site.shapes["keys"][1], site.shapes["keys"][3], site.shapes["values"][3]
    rows, columns = {"cross": ("T", "S"), "encoder_self": ("S", "S"), "decoder_self": ("T", "T")}[site.name]
    weights = f"weights {heads} x {rows} x {columns}"
    if not site.attention.window.masks_only:
        weights += ", and as many for the prior"
    elif site.attention.scorer.inner_product and site.attention.normalizer.fused:
        weights += " (none in the fused kernel that a GPU uses for several queries)"
    kept = f"keys and values {heads} x {columns} x {key_width + value_width}"
    if site.keys_are_values:
        kept = f"keys, which are also the values, {heads} x {columns} x {value_width}"
    return f"numbers for each sentence and layer: {weights}; {kept}"


def _shape(sizes: tuple[int, ...]) -> str:
    return f"({','.join(map(str, sizes))})"
