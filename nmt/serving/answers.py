"""The lab's answers as JSON fields, and the piece ids of the sentences in a question."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmt.decoding.stepwise import Observe
from nmt.errors import Mistake, TemplatedMessage
from nmt.insight.sentence_pair import Decoded, best_translation, check_length
from nmt.maps.attention_map import AttentionMap
from nmt.runs.load import LoadedRun
from nmt.serving.questions import PairQuestion, Question, check_search
from nmt.text import EOS as EOS_ID
from nmt.text import PAD, normalize

DIGITS = 6
"""Decimal places of all numbers."""
_MOST_PIECES = 200
"""Maximum number of pieces per side. The size of a response with all maps grows with the product of both lengths."""


def source_ids(run: LoadedRun, question: Question) -> list[int]:
    """The piece ids of the text. Raises Mistake if it is empty or too long."""
    source = run.tokenizers.source.encode(run.source_text(question.text))
    check_length("source", source, _MOST_PIECES)
    return source


def sentence_pair(run: LoadedRun, question: PairQuestion, observe: Observe) -> tuple[list[int], list[int]]:
    """The piece ids of the text, and those of the given translation or the run's own.

    Raises Mistake if a side is empty or too long, and what `check_question` and `check_found` raise.
    """
    source, target = source_ids(run, question), question.target_ids
    check_question(run, question)
    if target is None and question.target is not None:
        target = run.tokenizers.target.encode(normalize(question.target))
        check_length("target", target, _MOST_PIECES)
    if target is None:
        target = best_translation(run, source, question.prefix_ids or [], question.search, observe=observe)
        check_found(target)
    return source, target


def check_found(target: Sequence[int]) -> None:
    """Raises Mistake if a translation that a search has found, rather than the user given, is too long."""
    if len(target) >= _MOST_PIECES:
        raise Mistake(
            TemplatedMessage(
                "The translation has {number} pieces, but the lab shows at most {most}; shorten the sentence.",
                number=len(target),
                most=_MOST_PIECES - 1,
            )
        )


def check_question(run: LoadedRun, question: PairQuestion) -> None:
    """Raises Mistake if an id is not that of a piece in the target vocabulary, if there are too many ids, or if the
    question sets a beam search that the run does not have.
    """
    check_search(run.settings.search, question.search)
    first, size = EOS_ID + 1, run.tokenizers.target.size
    for name, ids in (("target", question.target_ids or []), ("prefix", question.prefix_ids or [])):
        # A prefix may leave positions free.
        if any(not first <= index < size and not (name == "prefix" and index == PAD) for index in ids):
            raise Mistake(
                TemplatedMessage(
                    "{name}_ids must be from {first} to {last}; smaller ids are PAD, UNK, BOS and EOS.",
                    name=name,
                    first=first,
                    last=size - 1,
                )
            )
        check_length(name, ids, _MOST_PIECES, least=0)


def shown(decoded: Decoded, *, maps: bool) -> dict[str, Any]:
    """The fields of a translation for a JSON response, with its attention maps if `maps` is true."""
    fields: dict[str, Any] = {
        "text": decoded.text,
        "ids": decoded.ids,
        "pieces": decoded.pieces,
        "log_probs": rounded(decoded.log_probs),
        "log_prob": round(decoded.log_prob, DIGITS),
    }
    if maps:
        fields["maps"] = {item.site: _map(item) for item in decoded.maps}
    return fields


def _map(item: AttentionMap) -> dict[str, Any]:
    return {
        "inputs": item.inputs,
        "outputs": item.outputs,
        "columns": item.columns,
        "weights": rounded(item.weights),
        "center": None if item.local is None else rounded(item.local.center),
    }


def rounded(numbers: Sequence[Any] | np.ndarray) -> Any:
    """Nested lists of numbers, rounded; lists of anything else are left unchanged."""
    array = np.asarray(numbers)
    return np.round(array.astype(np.float64), DIGITS).tolist() if array.dtype.kind == "f" else array.tolist()
