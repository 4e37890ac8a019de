"""The models inside a page that is one file: structure, vocabularies and weights, for nmt/pages/web/engine."""

import json
import shlex
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import sentencepiece
from torch import Tensor

from nmt.attention import Attention, normalizers, scorers, windows
from nmt.attention.edits import random_numbers
from nmt.errors import Mistake
from nmt.insight.description import run_description
from nmt.insight.known_alignments import aligned_pairs
from nmt.insight.unknown_words import known_words
from nmt.models import Bahdanau, Luong, Seq2Seq, Transformer
from nmt.runs.load import LoadedRun
from nmt.runs.search import beam_settings
from nmt.runs.weights import in_8_bits
from nmt.scoring.test_sets import example_pairs
from nmt.text import Tokenizer

MOST_PARAMETERS = 30_000_000
"""A larger model takes JavaScript more than about five seconds for a sentence of 20 words with a beam of 5."""

_PARTS: tuple[type, ...] = (
    *(scorers.Dot, scorers.ScaledDot, scorers.General, scorers.Location, scorers.Gaussian, scorers.GaussianLearned),
    *(scorers.NoScore, scorers.Additive, scorers.Concat),
    *(windows.Global, windows.LocalM, windows.LocalP),
    *(normalizers.Softmax, normalizers.Sparsemax),
)
"""The parts of an attention that the page's engine knows; it has no subclasses of them."""
_MOST_COLUMNS = 256
"""The page accepts at most 200 pieces a side, and shuffles columns by as many random numbers."""
_ALIGNMENT = 4
"""Typed arrays of JavaScript begin at multiples of the size of a number."""


class PageRun(NamedTuple):
    """A run and its name on the page."""

    name: str
    run: LoadedRun


def page_data(runs: Sequence[PageRun], quantization: str) -> bytes:
    """The compressed file of the runs: the length of a JSON text in four bytes, the text, and the weights.

    Raises Mistake for a run that the page cannot compute.
    """
    for _, run in runs:
        _require_supported(run)
    weights, offset = list[bytes](), 0
    vocabularies = list[dict[str, Any]]()
    described = list[dict[str, Any]]()
    for name, run in runs:
        tensors: dict[str, dict[str, Any]] = {}
        for tensor_name, tensor, scales, names in _stored_tensors(run.model, quantization):
            tensors[tensor_name] = {"shape": [*tensor.shape]}
            for key, part in (("offset", tensor), ("scales", scales)):
                if part is not None:
                    raw = part.contiguous().numpy().tobytes()
                    raw += bytes(-len(raw) % _ALIGNMENT)
                    tensors[tensor_name][key] = offset
                    weights.append(raw)
                    offset += len(raw)
            tensors.update(dict.fromkeys(names, tensors[tensor_name]))
        numbers = list[int]()
        for tokenizer in run.tokenizers:
            vocabulary = _vocabulary(tokenizer)
            if vocabulary not in vocabularies:
                vocabularies.append(vocabulary)
            numbers.append(vocabularies.index(vocabulary))
        described.append(
            {
                "name": name,
                "source": run.direction.source,
                "target": run.direction.target,
                "structure": _structure(run.model),
                "tensors": tensors,
                "vocabularies": {"source": numbers[0], "target": numbers[1]},
                "search": beam_settings(run),
                "max_source": run.model.max_source,
                "max_target": run.model.max_target,
                "description": {**run_description(run), "quantization": quantization},
                "examples": _examples(run),
                "dictionary": run.dictionary.translations,
                "known_words": None if (words := known_words(run.directory)) is None else " ".join(sorted(words)),
            }
        )
    contents = {"runs": described, "vocabularies": vocabularies, "random": random_numbers(_MOST_COLUMNS).tolist()}
    text = json.dumps(contents, ensure_ascii=False, allow_nan=False).encode()
    text += b" " * (-(4 + len(text)) % _ALIGNMENT)
    return zlib.compress(len(text).to_bytes(4, "little") + text + b"".join(weights), 9)


def _require_supported(run: LoadedRun) -> None:
    path, model = run.directory.path, run.model
    serve = f"use python -m nmt.serve {shlex.quote(f'run_dirs=[{path}]')}"
    if run.context_window.sentences:
        raise Mistake(f"A page does not support models that read documents (context), such as {path}; {serve} instead.")
    if run.precision != "float32":
        raise Mistake(
            f"A page needs float32 weights, but {path} is loaded with precision={run.precision}: load it with "
            "precision=float32."
        )
    if type(model) not in (Bahdanau, Luong, Transformer):
        raise Mistake(f"A page does not support the model {type(model).__name__} of {path}; {serve} instead.")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if parameters > MOST_PARAMETERS:
        raise Mistake(
            f"{path} has {parameters:,} parameters, but a page holds at most {MOST_PARAMETERS:,}, because a browser "
            f"would take many seconds for each sentence; {serve} instead."
        )
    for site, layers in model.sites.items():
        for part in (layers[0].scorer, layers[0].window, layers[0].normalizer):
            if type(part) not in _PARTS:
                raise Mistake(
                    f"A page does not support {type(part).__name__}, which {path} uses at {site}; {serve} instead."
                )


def _stored_tensors(model: Seq2Seq, quantization: str) -> list[tuple[str, Tensor, Tensor | None, list[str]]]:
    """The name, numbers and scales of each tensor, and the other names of the same numbers."""
    tensors = {name: tensor.detach().float().cpu() for name, tensor in model.state_dict().items()}
    unique: dict[str, list[str]] = {}
    for name, tensor in tensors.items():
        # FixNorm's plain weights are equal copies, and other shared weights are the same tensor.
        same = next((known for known in unique if tensors[known].equal(tensor)), None)
        if same is None:
            unique[name] = []
        else:
            unique[same].append(name)
    kept = {name: tensors[name] for name in unique}
    stored = in_8_bits(kept) if quantization == "int8" else kept
    return [(name, stored[name], stored.get(f"{name}.scales"), names) for name, names in unique.items()]


def _structure(model: Seq2Seq) -> dict[str, Any]:
    """What the model is made of, by the names of its classes."""
    structure: dict[str, Any] = {
        "model": type(model).__name__,
        "sites": {site: _site(layers) for site, layers in model.sites.items()},
        "layers": 1,
        "input_feeding": False,
        "norm": "",
        "norm_eps": 0.0,
        "norm_first": False,
    }
    if isinstance(model, (Bahdanau, Luong)):
        structure["encoder"] = type(model.encoder_kind).__name__
    if isinstance(model, Luong):
        structure["layers"] = len(model.cells)
        structure["decoder"] = type(model.decoder_kind).__name__
        structure["input_feeding"] = model.input_feeding
    if isinstance(model, Transformer):
        first: Any = model.encoder[0]
        norm = first.around_ffn.norm
        structure.update(norm=type(norm).__name__, norm_eps=norm.eps, norm_first=model.norm_first)
    return structure


def _site(layers: Sequence[Attention]) -> dict[str, Any]:
    attention = layers[0]
    window: dict[str, Any] = {"kind": type(attention.window).__name__}
    if isinstance(attention.window, (windows.LocalM, windows.LocalP)):
        window["half_width"] = attention.window.half_width
    if isinstance(attention.window, windows.LocalP):
        window["renormalize"] = attention.window.renormalize
    return {
        "layers": len(layers),
        "heads": attention.num_heads,
        "scorer": type(attention.scorer).__name__,
        "normalizer": type(attention.normalizer).__name__,
        "window": window,
    }


def _vocabulary(tokenizer: Tokenizer) -> dict[str, Any]:
    """The pieces of a tokenizer, their scores in float32 and their types."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    ids = range(processor.get_piece_size())
    types = [
        "b" if processor.is_byte(i) else "u" if processor.is_unknown(i) else "c" if processor.is_control(i) else "n"
        for i in ids
    ]
    return {
        "kind": tokenizer.kind,
        "pieces": [processor.id_to_piece(i) for i in ids],
        "scores": [float(np.float32(processor.get_score(i))) for i in ids],
        "types": "".join(types),
        "tone_marks": tokenizer.tone_marks,
    }


def _examples(run: LoadedRun) -> list[dict[str, Any]]:
    """What /v1/examples of nmt.serve lists, and the links between the words of sentences whose alignment is known."""
    return [
        *({"source": source, "target": target, "aligned": False} for source, target in example_pairs(run)),
        *(
            {
                "source": pair.source,
                "target": pair.target,
                "aligned": True,
                "sure": sorted(pair.gold.sure),
                "possible": sorted(pair.gold.possible - pair.gold.sure),
            }
            for pair in aligned_pairs(run.direction)
        ),
    ]
