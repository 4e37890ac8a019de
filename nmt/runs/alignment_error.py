"""The alignment error rate of a run: links by argmax over the cross attention of forced decoding of the references."""

import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.config.direction import Direction
from nmt.data.corpus import Pairs, alignment_file, file_pair, read_pairs
from nmt.maps.links import (
    Alignment,
    Choice,
    Rates,
    best,
    check_links,
    chosen_map,
    diagonal_links,
    rates,
    read_alignments,
    table,
)
from nmt.maps.symmetrization import LINKS, all_links
from nmt.maps.words import merge_pieces
from nmt.runs.forced_maps import first_ranked, forced_maps
from nmt.runs.load import Trained
from nmt.text import normalize

logger = logging.getLogger(__name__)


class Gold(NamedTuple):
    """Normalised sentence pairs and the gold alignment of each."""

    pairs: Pairs
    alignments: list[Alignment]


class Links(NamedTuple):
    """How the argmax links of a choice of row, layer and head agree with the gold ones."""

    rates: Rates
    choice: Choice
    reason: str
    """Why this choice."""
    diagonal: Rates
    """Of links that know nothing but the lengths."""
    table: dict[Choice, Rates]
    """Of every choice."""
    valid_table: dict[Choice, Rates]
    """Of every choice on the validation split, on which one is chosen; empty where that has no alignments."""

    @property
    def note(self) -> str:
        return f"({self.choice}; {self.reason}; the diagonal {self.diagonal.aer:.3f})"


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


def gold_file(trained: Trained, prefix: str) -> Path | None:
    """The gold alignments beside a corpus of a run, if there are any.

    None for one that became plain text: alignments count the words of the file, and plain text has others.
    """
    return None if trained.settings.data.becomes_plain(prefix) else alignment_file(prefix, trained.direction)


def read_valid_gold(trained: Trained) -> Gold | None:
    """The validation split of a run with its alignments; None when it has none.

    Raises FileNotFoundError when the split itself is not there, since another choice would be another error rate.
    """
    prefix = trained.settings.data.valid
    absent = [path for path in file_pair(prefix, trained.direction) if not path.is_file()]
    if absent:
        raise FileNotFoundError(
            f"No file {absent[0]} of the run's data.valid, on which the links of the alignment error rate are chosen; "
            "run the command in the folder that the run was trained in, or put the file there."
        )
    path = gold_file(trained, prefix)
    return read_gold(path, read_pairs(prefix, trained.direction), trained.direction) if path else None


def alignment_error(trained: Trained, gold: Gold, valid: Gold | None, batch_tokens: int) -> Links:
    """AER, precision and recall against `gold`; row, layer and head are those of lowest AER on `valid`.

    Without `valid` the choice is the row that predicts, last layer, mean of heads.
    """
    return chosen_links(*both_maps(trained, gold, valid, batch_tokens))


def both_maps(trained: Trained, gold: Gold, valid: Gold | None, batch_tokens: int) -> tuple[Maps, Maps | None]:
    """The cross maps of the sentences, and of the validation split; the same ones where that is measured itself."""
    maps = _maps(trained, gold, batch_tokens)
    if valid is None or valid == gold:
        return maps, valid and maps
    return maps, _maps(trained, valid, batch_tokens)


def chosen_links(maps: Maps, valid: Maps | None) -> Links:
    """The rates of the choice that is best on the maps of the validation split, if there are any."""
    found, of_valid = table(*maps), table(*valid) if valid else {}
    sides = zip(maps.source_pieces, maps.target_pieces, strict=True)
    diagonal = rates([diagonal_links(*(len(merge_pieces(side)) for side in pair)) for pair in sides], maps.gold)
    if of_valid:
        choice, reason = best(of_valid), "chosen on the validation split"
        if valid is maps:
            reason += ", which these sentences are"
    else:
        layers, heads = maps.weights[0].shape[:2]
        choice = Choice("predicts", layers - 1, None if heads > 1 else 0)
        reason = "not chosen: the validation split has no alignments"
    return Links(found[choice], choice, reason, diagonal, found, of_valid)


def rates_by_way(maps: Maps, choice: Choice, threshold: float) -> dict[str, Rates | None]:
    """Of the chosen map: argmax either way, from a threshold of weight, symmetrised; None where no link is anywhere."""
    sentences = zip(maps.weights, maps.source_pieces, maps.target_pieces, strict=True)
    links = [all_links(chosen_map(*sentence, choice), threshold) for sentence in sentences]
    sure = any(gold.sure for gold in maps.gold)
    return {
        name: rates([each[name] for each in links], maps.gold) if sure or any(each[name] for each in links) else None
        for name in LINKS
    }


def _maps(trained: Trained, gold: Gold, batch_tokens: int) -> Maps:
    """The cross maps of forced decoding of the references; warns of pairs that have none."""
    tokenizers = trained.tokenizers
    ids = tokenizers.source.encode_all(gold.pairs.source), tokenizers.target.encode_all(gold.pairs.target)
    found = sorted(forced_maps(trained, first_ranked(*ids), batch_tokens), key=lambda sentence: sentence.line)
    if len(found) < len(gold.alignments):
        logger.warning(
            "The alignment error rate leaves out %d of %d pairs: a side is empty or longer than the model reads.",
            len(gold.alignments) - len(found),
            len(gold.alignments),
        )
    return Maps(
        [sentence.site("cross").weights for sentence in found],
        [sentence.source_pieces for sentence in found],
        [sentence.target_pieces for sentence in found],
        [gold.alignments[sentence.line - 1] for sentence in found],
    )
