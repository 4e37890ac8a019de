"""A rule-based sentence splitter as an ONNX graph for MiniSBD, so an Argos package needs no download.

MiniSBD is the sentence splitter of Argos Translate. It downloads its own models, a neural network for each language.
"""

import json
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from nmt.exports.onnx import quiet_exporter

TERMINATORS = ".!?…。！？"
CLOSERS = "\"'”’»)]"
ABBREVIATIONS = ("Mr.", "Mrs.", "Ms.", "Dr.", "Prof.", "St.", "Jr.", "vs.", "e.g.", "i.e.", "TP.", "TS.", "ThS.")
"""Abbreviations whose period does not end a sentence."""

_PAD, _UNKNOWN, _SPACE = 0, 1, 2
_SMALL = "".join(letter for letter in map(chr, range(0x1F00)) if letter.islower() and letter.isalpha())
"""The lowercase letters up to U+1EFF, including those of Vietnamese."""
_IDS = {
    letter: _SPACE + number
    for number, letter in enumerate(dict.fromkeys(f" {TERMINATORS}{CLOSERS}{_SMALL}{''.join(ABBREVIATIONS)}"))
}
_REACH = 8
"""Number of characters that the rules look at on either side."""


class _SentenceEnds(nn.Module):
    """Scores each character for MiniSBD's three classes: inside a token, end of a token, end of a sentence.

    Every character is a separate token, because only the ends of sentences matter.
    """

    kinds: Tensor
    spelled: Tensor

    def __init__(self) -> None:
        super().__init__()
        kinds = torch.zeros(3, _SPACE + len(_IDS), dtype=torch.bool)
        for row, letters in enumerate((TERMINATORS, CLOSERS, _SMALL)):
            kinds[row, [_IDS[letter] for letter in letters]] = True
        self.register_buffer("kinds", kinds)
        spelled = torch.full((len(ABBREVIATIONS), _REACH), _PAD)  # backwards; PAD matches any character
        for row, abbreviation in zip(spelled, ABBREVIATIONS, strict=True):
            row[: len(abbreviation) + 1] = torch.tensor([_IDS[letter] for letter in f" {abbreviation}"[::-1]])
        self.register_buffer("spelled", spelled)

    def forward(
        self, units: Int[Tensor, "batch length"], features: Float[Tensor, "batch length 1"]
    ) -> Float[Tensor, "batch length 3"]:
        """`units` are character ids; the only feature is whether a character is a capital letter."""
        length = units.shape[1]
        padded = F.pad(units, (_REACH, _REACH))
        padded = padded.masked_fill(padded == _PAD, _SPACE)
        capitals = F.pad(features[:, :, 0], (1, 0))[:, :length] > 0
        current, first, second, *_ = before = [
            padded[:, _REACH - distance : _REACH - distance + length] for distance in range(_REACH)
        ]
        after, later = (padded[:, _REACH + distance : _REACH + distance + length] for distance in (1, 2))
        terminator, closer, small = self.kinds.unbind()
        ends = terminator[current]
        ends = ends | (closer[current] & (terminator[first] | (closer[first] & terminator[second])))
        initial = (current == _IDS["."]) & capitals & (second == _SPACE)
        letters = torch.stack(before, dim=-1).unsqueeze(2)
        abbreviation = ((letters == self.spelled) | (self.spelled == _PAD)).all(dim=-1).any(dim=-1)
        ends = ends & (after == _SPACE) & ~small[later] & ~initial & ~abbreviation
        return torch.stack([torch.zeros_like(ends), ~ends, ends], dim=-1).float()


@cache
def sentence_splitter(language: str) -> bytes:
    """An ONNX graph that ends a sentence after . ! ? … and up to two closing quotes or brackets, if a space follows.

    No sentence ends before a lowercase letter, after an initial such as J. in J. Smith, or after one of ABBREVIATIONS.
    """
    batch, length = torch.export.Dim.DYNAMIC, torch.export.Dim.DYNAMIC
    with torch.no_grad(), quiet_exporter():
        program: Any = torch.onnx.export(
            _SentenceEnds().eval(),
            (torch.full((2, 20), _UNKNOWN), torch.zeros(2, 20, 1)),
            input_names=["units", "features"],
            output_names=["classes"],
            dynamic_shapes=({0: batch, 1: length}, {0: batch, 1: length}),
            opset_version=18,
            dynamo=True,
            verbose=False,
        )
    for node in program.model.graph.all_nodes():
        node.metadata_props.clear()  # stack traces, which contain paths on this machine
    units = {"<PAD>": _PAD, "<UNK>": _UNKNOWN, **_IDS}
    program.model.metadata_props.update(
        lang_code=language,
        config=json.dumps({"feat_funcs": ["capitalized"], "batch_size": 16}),
        vocab=json.dumps({"lang": language, "_unit2id": units, "_id2unit": list(units)}),
        lexicon="null",
    )
    return bytes(program.model_proto.SerializeToString())
