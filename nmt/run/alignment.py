"""The alignment error rate of a run: links by argmax over the cross attention of forced decoding of the references."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.data.corpus import Direction, Pairs, alignment_file, read_pairs
from nmt.evaluation.alignment import Alignment, Choice, aer, check_links, choose, links, read_alignments
from nmt.run.attention_maps import forced_maps
from nmt.run.build import Trained
from nmt.text import normalize


class Links(NamedTuple):
    """The alignment error rate, from 0 to 1, and how its links were read off the maps."""

    aer: float
    note: str


class Maps(NamedTuple):
    """Cross maps of sentence pairs with gold alignments; pairs with an empty side are left out."""

    weights: list[np.ndarray]
    source_pieces: list[list[str]]
    target_pieces: list[list[str]]
    gold: list[Alignment]


def alignment_error(trained: Trained, pairs: Pairs, gold: Path, batch_tokens: int) -> Links:
    """AER against the links in `gold`; shift, layer and head are those of lowest AER on the validation split.

    Where that split has no alignments, the rows that predict (shift 0) of the last layer are read, mean of the heads.
    """
    maps = _maps(trained, pairs, gold, batch_tokens)
    valid_prefix = trained.config["data"]["valid"]
    valid_gold = alignment_file(valid_prefix, trained.direction)
    if valid_gold:
        valid = _maps(trained, read_pairs(valid_prefix, trained.direction), valid_gold, batch_tokens)
        choice, reason = choose(*valid), "chosen on the validation split"
    else:
        choice, reason = Choice(0, -1, None, 1.0), "not chosen: the validation split has no alignments"
    items = zip(maps.weights, maps.source_pieces, maps.target_pieces, strict=True)
    rate = aer([links(*item, choice) for item in items], maps.gold)
    layer = "last layer" if choice.layer == -1 else f"layer {choice.layer}"
    head = "mean of heads" if choice.head is None else f"head {choice.head}"
    return Links(rate, f"(shift {choice.shift}, {layer}, {head}; {reason})")


def _maps(trained: Trained, pairs: Pairs, path: Path, batch_tokens: int) -> Maps:
    targets = [normalize(line) for line in pairs.target]
    gold = read_alignments(path, flip=_is_flipped(path, trained.direction))
    check_links(path, gold, pairs.source, targets)
    tokenizers = trained.tokenizers
    ids = tokenizers.source.encode_all(pairs.source), tokenizers.target.encode_all(targets)
    found = sorted(forced_maps(trained, *ids, batch_tokens), key=lambda forced: forced.line)
    return Maps(
        [forced.site("cross").weights for forced in found],
        [forced.source_pieces for forced in found],
        [forced.target_pieces for forced in found],
        [gold[forced.line] for forced in found],
    )


def _is_flipped(path: Path, direction: Direction) -> bool:
    return path.name.endswith(f".{direction.target}-{direction.source}.align")
