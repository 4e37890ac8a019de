"""nmt.explain: what the attention of a configuration computes, in plain text."""

import inspect
import shutil
import textwrap
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention import Attention, MultiHeadAttention
from nmt.commands.explain_settings import ExplainSettings
from nmt.config.job import Job
from nmt.data.batch import ContextSentences
from nmt.errors import Mistake
from nmt.models import DocumentModel, Seq2Seq, VocabularySizes
from nmt.models.no_initial_weights import NoInitialWeights
from nmt.runs.load import composed_model, load_run
from nmt.runs.memory import on_out_of_memory, require_memory
from nmt.sites import SITES, Attended
from nmt.text import BOS, EOS, PAD, UNK

WIDTH = 110
"""The largest line width of the text, in columns."""
MULTIHEAD = (
    "head_i = sum_j a_j v_j with queries Q W_i^Q, keys K W_i^K and values V W_i^V; the heads are concatenated and "
    "multiplied by W^O (Vaswani et al. 2017, section 3.2.2). Each projection has a bias, unlike in the paper."
)


_SIZES: dict[Attended, str] = {
    "source": "S",
    "target": "T",
    "earlier source": "C x S",
    "earlier target": "C x T",
    "earlier sentences": "C",
}


class ObservedSite(NamedTuple):
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
    if settings.run_dir is not None:
        if others := [key for key in job.given if key not in ("run_dir", "source_length", "target_length")]:
            raise Mistake(
                f"run_dir explains the model of that run, so {others[0]} has no effect; leave one of them out."
            )
        run = load_run(Path(settings.run_dir), "cpu")
        model, earlier = run.model, run.settings.context.sentences
        sizes = VocabularySizes(run.tokenizers.source.size, run.tokenizers.target.size, run.tokenizers.joint)
        counted = f"the vocabulary of {settings.run_dir}"
    else:
        sizes = VocabularySizes(settings.vocabulary, settings.vocabulary, joint=True)
        with torch.device("meta"), NoInitialWeights():
            require_memory(composed_model(settings.model, sizes, settings.context.model))
        model = composed_model(settings.model, sizes, settings.context.model)
        earlier = settings.context.sentences
        counted = "vocabulary=N; run_dir=FOLDER counts with the vocabulary of a run"
    source, target = settings.source_length, settings.target_length
    for key, length, most in (("source", source, model.max_source), ("target", target, model.max_target)):
        if most is not None and length > most:
            raise Mistake(
                f"{key}_length is {length:,}, but scorer=location has weights for only {most:,} pieces in this model: "
                f"use at most {most}{'' if settings.run_dir else ', or set its max_length'}."
            )
    too_large = partial(
        Mistake,
        f"An example of {source:,} source and {target:,} target pieces does not fit into memory: choose a smaller "
        "source_length or target_length.",
    )
    with on_out_of_memory(too_large):
        text = explanation(model, source, target, earlier)
    print(text)
    pieces = (
        f"a joint vocabulary of {sizes.source:,} pieces, with one embedding table for both languages"
        if sizes.joint
        else f"vocabularies of {sizes.source:,} source and {sizes.target:,} target pieces"
    )
    print("\n" + textwrap.fill(f"The parameters are counted for {pieces} ({counted}).", _width()))


def explanation(model: Seq2Seq, source_length: int, target_length: int, earlier: int = 0) -> str:
    """The text that describes a model: the formulas of each attention site and its costs, then the model.

    Its example has `source_length` source and `target_length` target pieces, and `earlier` sentences of these lengths
    before them.
    """
    parameters = sum(parameter.numel() for parameter in model.parameters())
    described = [model.sentence, model] if isinstance(model, DocumentModel) else [model]
    model_paragraphs = [
        f"{inspect.getdoc(part)}\nHere {part.extra_repr()}." if part.extra_repr() else f"{inspect.getdoc(part)}"
        for part in described
    ]
    model_paragraphs[-1] += f"\n\n{parameters:,} parameters"
    paragraphs = []
    example = f"S = {source_length} source pieces, T = {target_length} target pieces"
    if isinstance(model, DocumentModel):
        example += f", C = {earlier} earlier sentences of these lengths"
    for site in observed_sites(model, source_length, target_length, earlier):
        heads = site.shapes["queries"][1]
        shapes = ", ".join(f"{part} {_shape(shape)}" for part, shape in site.shapes.items())
        rows = {
            "score": _summary(site.attention.scorer),
            "weights": _summary(site.attention.normalizer),
            "context": MULTIHEAD
            if site.around
            else "o = sum_i a_i v_i; query, keys and values are states, without projections.",
            "queries": model.queries[site.name],
            "window": _summary(site.attention.window)
            + ("" if site.name == "cross" else " Local windows are only for cross attention."),
            "example": f"{example}: {shapes}"
            + (f", {site.calls} times, once for each {SITES[site.name].rows} position" if site.calls > 1 else "")
            + ". Axes are (batch, heads, positions, width); keys are shown as the scorer stores them.",
            "parameters": _parameters(site.around or site.attention),
            "memory": _memory(site),
        }
        title = f"{site.name}: {site.layers} layer{'s' if site.layers > 1 else ''}, {heads} head"
        lines = [title + ("s" if heads > 1 else "")]
        for name, text in rows.items():
            lines.append(
                textwrap.fill(f"  {name:11}{text}", _width(), subsequent_indent=" " * 13, break_long_words=False)
            )
        paragraphs.append("\n".join(lines))
    for paragraph in "\n\n".join(model_paragraphs).split("\n\n"):
        too_wide = max(map(len, paragraph.split("\n"))) > _width()
        paragraphs.append(textwrap.fill(" ".join(paragraph.split()), _width()) if too_wide else paragraph)
    return "\n\n".join(paragraphs)


def _width() -> int:
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 1)).columns)


def observed_sites(model: Seq2Seq, source_length: int, target_length: int, earlier: int = 0) -> list[ObservedSite]:
    """The sites of a model, observed while it reads one example sentence pair.

    A document model reads `earlier` copies of the pair before it, which must be at least 1.
    """
    source = torch.tensor([[UNK] * (source_length - 1) + [EOS]])
    target = torch.tensor([[BOS] + [UNK] * (target_length - 1)])
    contexts: dict[str, ContextSentences | None] = dict.fromkeys(model.sentence_sites)
    if isinstance(model, DocumentModel):
        sources, targets = source.expand(earlier, -1), target.expand(earlier, -1)
        context = ContextSentences(sources, sources.ne(PAD), targets, targets.ne(PAD), torch.arange(earlier)[None])
        # The sentence's own sites are observed without a context, which passes through them too.
        contexts |= {name: context for name in model.sites if name not in contexts}
    around = {module.attention: module for module in model.modules() if isinstance(module, MultiHeadAttention)}
    model.eval()
    sites = []
    for name, attentions in model.sites.items():
        calls: list[tuple[Tensor, ...]] = []
        hook = attentions[0].register_forward_pre_hook(partial(_keep_inputs, calls))
        with torch.inference_mode():
            model(source, source.ne(PAD), target, context=contexts[name])
        hook.remove()
        queries, keys, values = calls[0]
        sites.append(
            ObservedSite(
                name,
                layers=len(attentions),
                attention=attentions[0],
                around=around.get(attentions[0]),
                calls=len(calls),
                shapes={"queries": tuple(queries.shape), "keys": tuple(keys.shape), "values": tuple(values.shape)},
                keys_are_values=keys.data_ptr() == values.data_ptr(),
            )
        )
    return sites


def _keep_inputs(calls: list[tuple[Tensor, ...]], attention: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    calls.append(inputs[:3])


def _summary(part: nn.Module) -> str:
    """The part's settings, and the first paragraph of its docstring, which gives the formula and its source."""
    formula = " ".join((inspect.getdoc(type(part)) or "").split("\n\n")[0].split())
    return f"{formula} Here {part.extra_repr()}." if part.extra_repr() else formula


def _parameters(site: nn.Module) -> str:
    named = dict(site.named_parameters())
    parts = [f"{name} {_shape(tuple(value.shape))}" for name, value in named.items()]
    total = sum(value.numel() for value in named.values())
    return f"{total:,} in each layer: {', '.join(parts)}" if parts else "none of its own"


def _memory(site: ObservedSite) -> str:
    heads, key_width, value_width = site.shapes["keys"][1], site.shapes["keys"][3], site.shapes["values"][3]
    rows, columns = _SIZES[SITES[site.name].rows], _SIZES[SITES[site.name].columns]
    weights = f"weights {heads} x {rows} x {columns}"
    if not site.attention.window.masks_only:
        weights += ", and as many for the prior"
    elif site.attention.scorer.inner_product and site.attention.normalizer.fused:
        weights += " (none in the fused kernel that a GPU uses for several queries)"
    if SITES[site.name].columns == "earlier sentences":
        columns = f"{rows} x {columns}"  # each query has its own summaries of the sentences as keys
    kept = f"keys and values {heads} x {columns} x {key_width + value_width}"
    if site.keys_are_values:
        kept = f"keys, which are also the values, {heads} x {columns} x {value_width}"
    return f"numbers for each sentence and layer: {weights}; {kept}"


def _shape(sizes: tuple[int, ...]) -> str:
    return f"({','.join(map(str, sizes))})"
