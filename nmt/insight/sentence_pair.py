"""A run applied to one sentence: its own translation, and its log-probabilities and maps of a given translation.

Sources, targets and prefixes are ids without BOS and EOS.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.data.batch import collate
from nmt.data.example import Example
from nmt.decoding.stepwise import Observe
from nmt.errors import Mistake, TemplatedMessage
from nmt.maps.attention_map import EOS, AttentionMap
from nmt.maps.recorder import Recorder
from nmt.models.base import Watch
from nmt.runs.load import LoadedRun
from nmt.runs.search import build_translator
from nmt.text import EOS as EOS_ID
from nmt.text import normalize


class Decoded(NamedTuple):
    """A translation, with its log-probabilities and the attention maps from forced decoding."""

    text: str
    ids: list[int]
    """Without EOS."""
    pieces: list[str]
    """With EOS."""
    log_probs: list[float]
    """log p of each piece given the ones before it, in nats."""
    maps: list[AttentionMap]

    @property
    def log_prob(self) -> float:
        """log p(translation | source), in nats."""
        return math.fsum(self.log_probs)


def best_translation(
    run: LoadedRun,
    source: list[int],
    prefix: Sequence[int] = (),
    settings: Mapping[str, Any] | None = None,
    observe: Observe | None = None,
) -> list[int]:
    """The translation that the run's search ranks first; it begins with `prefix`.

    `settings` override some of the search's settings; `observe` receives every step of the search. Raises Mistake
    if the source is empty or too long.
    """
    check_length("source", source, run.model.max_source)
    return build_translator([run], settings, observe=observe).search_ids([source], [prefix])[0][0].ids


def step_log_probs(
    run: LoadedRun, source: list[int], target: list[int], watch: Watch | None = None
) -> Float[Tensor, "target vocab"]:
    """log p of every piece at each position of a given target, EOS included, in nats.

    The target may be empty, because a search may find an empty one. `watch` receives the attention of every site and
    layer. Raises Mistake if the source is empty, or if a side is too long.
    """
    check_length("source", source, run.model.max_source)
    check_length("target", target, run.model.max_target, least=0)
    batch = collate([Example(0, source, target)])
    inputs = (tensor.to(run.device) for tensor in (batch.source, batch.source_mask, batch.target_input))
    with torch.inference_mode():
        log_probs: Tensor = run.model(*inputs, watch=watch).float().log_softmax(dim=-1)[0]
    return log_probs


def decoded_pair(run: LoadedRun, source: list[int], target: list[int]) -> Decoded:
    """A translation with its log-probabilities and maps. Raises whatever `step_log_probs` raises."""
    recorder = Recorder()
    log_probs = step_log_probs(run, source, target, recorder)
    chosen = log_probs[torch.arange(len(log_probs)), torch.tensor([*target, EOS_ID])]
    pieces = run.tokenizers.target.pieces(target)
    maps = recorder.sentence(0, run.tokenizers.source.pieces(source), pieces)
    text = normalize(run.tokenizers.target.decode(target))
    return Decoded(text, list(target), [*pieces, EOS], chosen.tolist(), maps)


def check_length(side: str, ids: Sequence[int], most: int | None, least: int = 1) -> None:
    """Raises Mistake for fewer than `least` pieces, or for more than `most` including EOS; None means no limit.

    `side` is source, target or prefix.
    """
    if len(ids) < least:
        raise Mistake(TemplatedMessage("The {side} is empty; write a sentence.", side=side))
    if most is not None and len(ids) >= most:
        raise Mistake(
            TemplatedMessage(
                "The {side} has {number} pieces; shorten it to at most {most}.",
                side=side,
                number=len(ids),
                most=most - 1,
            )
        )


def check_index(name: str, index: int | None, number: int, site: str) -> None:
    """Raises Mistake unless a layer, head or row is one of the `number` that a site has; None means all."""
    if index is not None and not 0 <= index < number:
        if number == 1:
            raise Mistake(
                TemplatedMessage("{name} is {index}; {site} has only {name} 0.", name=name, index=index, site=site)
            )
        raise Mistake(
            TemplatedMessage(
                "{name} is {index}; {site} has {name}s 0 to {last}.", name=name, index=index, site=site, last=number - 1
            )
        )


def check_site(site: str, sites: Iterable[str]) -> None:
    """Raises Mistake unless a run has attention at a site."""
    if site not in sites:
        available = ", ".join(sites)
        raise Mistake(
            TemplatedMessage("Unknown attention site '{site}'. Available: {available}.", site=site, available=available)
        )
