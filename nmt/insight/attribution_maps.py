"""Attributions of sentence pairs as maps, in the same form as the cross attention of one layer and head."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt.config.messages import unknown
from nmt.errors import Mistake, TemplatedMessage
from nmt.insight.attribution import (
    STEPS,
    BeforePass,
    Method,
    gradient_x_input,
    integrated_gradients,
    occlusion,
    value_zeroing,
)
from nmt.insight.forced_maps import IdPair, MakeMaps, forced_maps
from nmt.maps.attention_map import AttentionMap, EarlierPair, SentenceMaps, site_labels
from nmt.runs.forced_batches import piece_log_probs, readable_batches, within_memory
from nmt.runs.load import LoadedRun
from nmt.text import EOS, Tokenizer, normalize

METHODS: dict[str, Callable[..., Any]] = {
    "gradient_x_input": gradient_x_input,
    "integrated_gradients": integrated_gradients,
    "occlusion": occlusion,
    "value_zeroing": value_zeroing,
}
P_CXMI = "p_cxmi"
"""The method that measures what earlier sentences contribute; it is not an attribution to source pieces."""
ATTENTION = "attention"
"""The method of nmt.align that measures attention instead of an attribution."""
_GRADIENTS = ("gradient_x_input", "integrated_gradients")


def chosen_method(
    run: LoadedRun,
    name: str,
    contrast: str | None = None,
    steps: int | None = None,
    before_pass: BeforePass | None = None,
) -> Method:
    """The method with that name; `steps` is for integrated gradients, and `before_pass` is called before each pass.

    Raises Mistake for an unknown name, for a contrast that is not one piece of the target vocabulary, and for
    settings or a precision that the method cannot use.
    """
    if name not in METHODS:
        raise Mistake(unknown("method", name, METHODS))
    if name in _GRADIENTS and run.precision == "int8":
        raise Mistake(
            TemplatedMessage(
                "method={name} needs gradients, which precision=int8 does not support; use precision=float32.",
                name=name,
            )
        )
    # The rounding errors of bfloat16 exceed the tolerance, so nearly every interval would be halved to the end.
    if name == "integrated_gradients" and run.precision != "float32":
        raise Mistake(
            TemplatedMessage("method=integrated_gradients needs precision=float32; use that, or method=occlusion.")
        )
    settings: dict[str, Any] = {}
    if contrast is not None:
        if name == "value_zeroing":
            raise Mistake(
                TemplatedMessage(
                    "method=value_zeroing takes no contrast, because it compares vectors; leave out contrast, or use "
                    "method=occlusion."
                )
            )
        settings["contrast"] = contrast_id(run.tokenizers.target, contrast)
    if steps is not None:
        if name != "integrated_gradients":
            raise Mistake(f"steps has no effect with method={name}; leave it out, or use method=integrated_gradients.")
        if steps < 1:
            raise Mistake(f"steps is {steps}; it must be at least 1, and the default is {STEPS}.")
        settings["steps"] = steps
    if before_pass is not None:
        settings["before_pass"] = before_pass
    return partial(METHODS[name], **settings)


def map_maker(run: LoadedRun, method: str) -> MakeMaps:
    """The function that makes the maps of ATTENTION or of an attribution. Raises Mistake as `chosen_method` does."""
    return forced_maps if method == ATTENTION else partial(attribution_maps, method=chosen_method(run, method))


def p_cxmi_maps(run: LoadedRun, pairs: Sequence[IdPair], batch_tokens: int) -> Iterator[SentenceMaps]:
    """What earlier sentences add to log p of each target piece, in nats (P-CXMI; Fernandes et al. 2023, section 2.2).

    The map belongs to the site 'context'. The column of an earlier sentence is log p(y_t | all earlier sentences) minus
    log p(y_t | all the others), and the last column, 'all', is the P-CXMI, log p(y_t | all earlier sentences) minus
    log p(y_t | none). The weights are the absolute values divided by the largest one in the map. A pair without earlier
    sentences has no map. Raises Mistake if no pair has a map.
    """
    empty = True
    for pair in pairs:
        number = len(pair.earlier)
        if not (pair.source and pair.target and number):
            continue
        without = [[*pair.earlier[:left_out], *pair.earlier[left_out + 1 :]] for left_out in range(number)]
        variants = [pair.earlier, *without, ()]
        log_probs: dict[int, Tensor] = {}
        repeated = [pair.source] * len(variants), [pair.target] * len(variants)
        for indices, batch in readable_batches([run], *repeated, batch_tokens, variants):
            with within_memory(batch, "scoring"):
                log_probs |= zip(indices, piece_log_probs([run], batch), strict=True)
        if len(log_probs) < len(variants):  # too long for the model
            continue
        source, target = run.tokenizers
        earlier = [
            EarlierPair(source.pieces(source_ids), target.pieces(target_ids)) for source_ids, target_ids in pair.earlier
        ]
        pieces = source.pieces(pair.source), target.pieces(pair.target)
        signed = torch.stack([log_probs[0] - log_probs[other] for other in range(1, len(variants))], dim=-1)
        labels = site_labels(*pieces, earlier)["context"]
        values = signed.float().numpy()[: len(labels.inputs)][None, None]
        weights = np.abs(values) / max(np.abs(values).max(), np.finfo(np.float32).tiny)
        item = AttentionMap(site="context", weights=weights, **labels._asdict(), attribution=values)
        empty = False
        yield SentenceMaps(
            line=pair.line,
            rank=pair.rank,
            source_pieces=pieces[0],
            target_pieces=pieces[1],
            maps=[item],
            score=pair.score,
            earlier=earlier,
        )
    if empty:
        raise Mistake(
            "No line has an earlier sentence in its document that the model can read with it, so p_cxmi has nothing to "
            "measure: in documents, give several lines the same name."
        )


def contrast_id(tokenizer: Tokenizer, contrast: str) -> int:
    """The id of a word that is one piece, or of a piece as written in a map's labels, such as '\u2581mèo' or '</s>'.

    Raises Mistake for anything else.
    """
    ids = tokenizer.encode(normalize(contrast))
    if len(ids) == 1:
        return ids[0]
    piece = tokenizer.id_of(contrast)
    if piece is not None and piece >= EOS:  # PAD, UNK and BOS are never predicted
        return piece
    if not ids:
        raise Mistake(
            TemplatedMessage(
                "contrast is '{contrast}', which is not a piece; it must be one piece of the target vocabulary, such "
                "as a row label of a map.",
                contrast=contrast,
            )
        )
    raise Mistake(
        TemplatedMessage(
            "contrast is '{contrast}', which is {number} pieces, {pieces}; it must be one piece of the target "
            "vocabulary, such as a row label of a map.",
            contrast=contrast,
            number=len(ids),
            pieces=" ".join(tokenizer.pieces(ids)),
        )
    )


def attribution_maps(
    run: LoadedRun, pairs: Sequence[IdPair], batch_tokens: int, method: Method
) -> Iterator[SentenceMaps]:
    """The map of each pair, longest first; a pair that has an empty side or is too long for the model has none.

    Each map belongs to the site 'cross' and has one layer and head. Its weights are |a_tj| / sum_j |a_tj|, where a are
    the attributions; a row of zeros stays 0.
    """
    pairs = [pair for pair in pairs if pair.source and pair.target]
    sides = [pair.source for pair in pairs], [pair.target for pair in pairs]
    for indices, batch in readable_batches([run], *sides, batch_tokens):
        longest = max(batch.source.shape[1], batch.target_input.shape[1])
        with within_memory(batch, "attributing"):
            attributions = (
                method(run.model, batch.to(run.device), max(1, batch_tokens // longest)).float().cpu().numpy()
            )
        for row, index in enumerate(indices):
            source, target = (
                tokenizer.pieces(side[index]) for tokenizer, side in zip(run.tokenizers, sides, strict=True)
            )
            labels = site_labels(source, target)["cross"]
            signed = attributions[row, : len(labels.inputs), : len(labels.columns)][None, None]
            sums = np.abs(signed).sum(axis=-1, keepdims=True)
            weights = np.divide(np.abs(signed), sums, out=np.zeros_like(signed), where=sums > 0)
            item = AttentionMap(site="cross", weights=weights, **labels._asdict(), attribution=signed)
            pair = pairs[index]
            yield SentenceMaps(
                line=pair.line,
                rank=pair.rank,
                source_pieces=source,
                target_pieces=target,
                maps=[item],
                score=pair.score,
            )
