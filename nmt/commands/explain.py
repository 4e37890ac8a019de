"""nmt.explain: what the attention of a configuration computes, in plain text."""

import inspect
import textwrap
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention import Attention, MultiHeadAttention, View
from nmt.attention.sizes import require_positive
from nmt.config.job import Job
from nmt.config.nodes import make
from nmt.models import Seq2Seq, VocabularySizes
from nmt.text import BOS, EOS, PAD, UNK

WIDTH = 110
"""Columns of the text."""
SPLIT = (
    "head_i = sum_j a_j v_j with queries Q W_i^Q, keys K W_i^K and values V W_i^V; the heads concatenated, times W^O "
    "(Vaswani et al. 2017, section 3.2.2), each projection with a bias, which the paper has not"
)


class Site(NamedTuple):
    """An attention site of a model: its first layer's attention, and what came by in the example."""

    name: str
    layers: int
    attention: Attention
    around: MultiHeadAttention | None
    calls: int
    shapes: dict[str, tuple[int, ...]]
    keys_are_values: bool
    """One tensor serves as both, because the scorer does not project keys."""


def explain(job: Job) -> None:
    """Prints the formula of each site with its source, who asks when, the shapes of an example, and what it costs.

    Raises ValueError for sizes out of range, and where the parts do not go together.
    """
    config = job.config
    sizes = {name: config[name] for name in ("source_length", "target_length", "vocabulary")}
    require_positive(sizes)
    if sizes["vocabulary"] <= EOS:
        raise ValueError(f"vocabulary is {sizes['vocabulary']}; {EOS + 1} pieces are special, so give more.")
    model: Seq2Seq = make(config["model"])(vocabulary=VocabularySizes(sizes["vocabulary"], sizes["vocabulary"], True))
    print(explanation(model, config["source_length"], config["target_length"]))
    print(
        f"\nThe parameters are counted with a joint vocabulary of {sizes['vocabulary']:,} pieces (vocabulary=N): one "
        "table of embeddings for both languages."
    )


def explanation(model: Seq2Seq, source_length: int, target_length: int) -> str:
    """The text for a model and an example of S source and T target pieces."""
    sites = watched_sites(model, source_length, target_length)
    paragraphs = [_paragraph(site, model.queries[site.name], source_length, target_length) for site in sites]
    return "\n\n".join([_title(model), *paragraphs])


def watched_sites(model: Seq2Seq, source_length: int, target_length: int) -> list[Site]:
    """The sites of a model, with what came by in an example of one sentence pair."""
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


def _title(model: Seq2Seq) -> str:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    settings = model.extra_repr()
    return f"{inspect.getdoc(model)}\n" + (f"Here {settings}.\n" if settings else "") + f"{parameters:,} parameters"


def _paragraph(site: Site, asks: str, source_length: int, target_length: int) -> str:
    attention, shapes = site.attention, site.shapes
    rows = {
        "who asks": asks,
        "score": _summary(attention.scorer),
        "window": _summary(attention.window)
        + ("" if site.name == "cross" else " Local windows are for cross attention."),
        "weights": _summary(attention.normalizer),
        "context": SPLIT
        if site.around
        else "o = sum_i a_i v_i; query, keys and values are states, without projections",
        "example": f"S = {source_length} source pieces, T = {target_length} target pieces; "
        + ", ".join(f"{part} {_shape(shape)}" for part, shape in shapes.items())
        + (f", {site.calls} times: one target position after the other" if site.calls > 1 else "")
        + "; axes are (batch, heads, positions, width), keys as the scorer keeps them",
        "parameters": _parameters(site.around or attention),
        "memory": _memory(site),
    }
    head = f"{site.name}: {site.layers} layer{'s' if site.layers > 1 else ''}, {shapes['queries'][1]} head"
    head += "s" if shapes["queries"][1] > 1 else ""
    return "\n".join([head, *(_row(name, text) for name, text in rows.items())])


def _row(name: str, text: str) -> str:
    return textwrap.fill(f"  {name:11}{text}", WIDTH, subsequent_indent=" " * 13, break_long_words=False)


def _summary(part: nn.Module) -> str:
    """The first paragraph of a part's docstring, its formula with paper, section and equation; and its settings."""
    formula = " ".join((inspect.getdoc(type(part)) or "").split("\n\n")[0].split())
    settings = part.extra_repr()
    return f"{formula} Here {settings}." if settings else formula


def _shape(sizes: Iterable[int]) -> str:
    return f"({','.join(map(str, sizes))})"


def _parameters(site: nn.Module) -> str:
    named: Mapping[str, Tensor] = dict(site.named_parameters())
    parts = [f"{name} {_shape(value.shape)}" for name, value in named.items()]
    total = sum(value.numel() for value in named.values())
    return f"{total:,} in each layer: {', '.join(parts)}" if parts else "none of its own"


def _memory(site: Site) -> str:
    heads, key_width, value_width = site.shapes["keys"][1], site.shapes["keys"][3], site.shapes["values"][3]
    lengths = {"cross": ("T", "S"), "encoder_self": ("S", "S"), "decoder_self": ("T", "T")}[site.name]
    weights = f"weights {heads} x {lengths[0]} x {lengths[1]}"
    if not site.attention.window.masks_only:
        weights += ", the prior as many"
    elif site.attention.scorer.inner_product and site.attention.normalizer.fused:
        weights += " (none in a GPU's fused kernel)"
    kept = f"keys and values {heads} x {lengths[1]} x {key_width + value_width}"
    if site.keys_are_values:
        kept = f"keys, which are the values, {heads} x {lengths[1]} x {value_width}"
    return f"numbers a sentence and layer: {weights}; {kept}"
