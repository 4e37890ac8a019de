"""The alignment error rate of a run: links by argmax over the cross attention of forced decoding of the references."""

import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.data.corpus import Direction, Pairs, alignment_file, file_pair, read_pairs
from nmt.evaluation.alignment import Alignment, Choice, aer, check_links, choose, links, read_alignments
from nmt.run.attention_maps import forced_maps
from nmt.run.build import Trained
from nmt.text import normalize

logger = logging.getLogger(__name__)


class Gold(NamedTuple):
    """Normalised sentence pairs and the gold alignment of each."""

    pairs: Pairs
    alignments: list[Alignment]


class Links(NamedTuple):
    """The alignment error rate, from 0 to 1, and how its links were read off the maps."""

    aer: float
    note: str


class Maps(NamedTuple):
    """Cross maps of sentence pairs with gold alignments; pairs that have no map are left out."""

    weights: list[np.ndarray]
    source_pieces: list[list[str]]
    target_pieces: list[list[str]]
    gold: list[Alignment]


def read_gold(path: Path, pairs: Pairs, direction: Direction) -> Gold:
    """The alignments in `path` of sentence pairs with normalised sources. Raises ValueError where they do not fit."""
    pairs = Pairs(pairs.source, [normalize(line) for line in pairs.target])
    alignments = read_alignments(path, flip=path.name.endswith(f".{direction.target}-{direction.source}.align"))
    check_links(path, alignments, pairs.source, pairs.target)
    return Gold(pairs, alignments)


def read_valid_gold(trained: Trained) -> Gold | None:
    """The validation split of a run with its alignments; None when it has none.

    Raises FileNotFoundError when the split itself is not there, since another choice would be another error rate.
    """
    prefix = trained.config["data"]["valid"]
    absent = [path for path in file_pair(prefix, trained.direction) if not path.is_file()]
    if absent:
        raise FileNotFoundError(
            f"No file {absent[0]} of the run's data.valid, on which the links of the alignment error rate are chosen; "
            "run the command in the folder that the run was trained in, or put the file there."
        )
    path = alignment_file(prefix, trained.direction)
    return read_gold(path, read_pairs(prefix, trained.direction), trained.direction) if path else None


def alignment_error(trained: Trained, gold: Gold, valid: Gold | None, batch_tokens: int) -> Links:
    """AER against `gold`; shift, layer and head are those of lowest AER on `valid`.

    Without `valid` the rows that predict (shift 0) of the last layer are read, mean of the heads.
    """
    maps = _maps(trained, gold, batch_tokens)
    if valid:
        choice, reason = choose(*_maps(trained, valid, batch_tokens)), "chosen on the validation split"
    else:
        choice, reason = Choice(0, -1, None, 1.0), "not chosen: the validation split has no alignments"
    items = zip(maps.weights, maps.source_pieces, maps.target_pieces, strict=True)
    rate = aer([links(*item, choice) for item in items], maps.gold)
    layer = "last layer" if choice.layer == -1 else f"layer {choice.layer}"
    head = "mean of heads" if choice.head is None else f"head {choice.head}"
    return Links(rate, f"(shift {choice.shift}, {layer}, {head}; {reason})")


def _maps(trained: Trained, gold: Gold, batch_tokens: int) -> Maps:
    tokenizers = trained.tokenizers
    ids = tokenizers.source.encode_all(gold.pairs.source), tokenizers.target.encode_all(gold.pairs.target)
    found = sorted(forced_maps(trained, *ids, batch_tokens), key=lambda forced: forced.line)
    if len(found) < len(gold.alignments):
        logger.warning(
            "The alignment error rate leaves out %d of %d pairs: a side is empty or longer than the model reads.",
            len(gold.alignments) - len(found),
            len(gold.alignments),
        )
    return Maps(
        [forced.site("cross").weights for forced in found],
        [forced.source_pieces for forced in found],
        [forced.target_pieces for forced in found],
        [gold.alignments[forced.line] for forced in found],
    )
