"""Interventions on a finished run's attention: how the run translates, and how likely each piece is, after a change.

`intervened` changes the attention and leaves the trained weights as they are. `intervene` compares one sentence with
and without the change.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

from nmt.attention import Attention
from nmt.attention.edits import Change, Edit, Given, OfHead, Scaled, Tempered, with_parts
from nmt.attention.normalizers import Normalizer
from nmt.attention.sizes import LARGEST_WIDTH
from nmt.attention.windows import Global, LocalM, Window
from nmt.decoding.stepwise import Observe
from nmt.errors import Mistake, TemplatedMessage
from nmt.insight.sentence_pair import Decoded, best_translation, check_index, check_length, check_site, decoded_pair
from nmt.models import Seq2Seq
from nmt.runs.load import LoadedRun
from nmt.sites import SITES


@dataclass(frozen=True)
class Intervention:
    """A change to the attention at one site.

    `change` replaces weights, and may be limited to a head and to some steps. The other fields change all heads and
    steps: `temperature` divides the scores (and with them the log of a renormalized Gaussian), `normalizer` turns them
    into weights, and `half_width` sets D of the window; a global window becomes a local-m window.
    """

    change: Change | None = None
    site: str = "cross"
    """One of nmt.sites.SENTENCE_SITES."""
    layer: int | None = None
    """From 0; None for every layer."""
    head: int | None = None
    """From 0; None for every head."""
    steps: Sequence[int] | None = None
    """Positions of the queries, from 0; None for all. In a decoder, step t predicts piece t of the translation."""
    temperature: float | None = None
    normalizer: Normalizer | None = None
    half_width: int | None = None

    @property
    def first_step(self) -> int:
        """The first piece of the translation that the change can affect."""
        later = self.steps is not None and SITES[self.site].rows == "target"
        return min(self.steps or (0,)) if later else 0


class InterventionEffect(NamedTuple):
    """What an intervention changes."""

    source_pieces: list[str]
    intact: Decoded
    """The translation without the change."""
    forced: Decoded
    """The same pieces, with their log-probabilities and maps under the change."""
    changed: Decoded
    """The translation that the search finds under the change. It keeps the pieces before the first changed step."""


@contextmanager
def intervened(model: Seq2Seq, interventions: Sequence[Intervention]) -> Iterator[None]:
    """Changes the model's attention inside the block.

    Raises Mistake for a site, layer or head that the model does not have, and for a value out of range.
    """
    with ExitStack() as stack:
        for intervention in interventions:
            for attention in _selected(model, intervention):
                stack.enter_context(with_parts(attention, **_parts(attention, intervention)))
        yield


def intervene(
    run: LoadedRun,
    source: list[int],
    interventions: Sequence[Intervention],
    target: list[int] | None = None,
    prefix: Sequence[int] = (),
    search: dict[str, Any] | None = None,
    observe: Observe | None = None,
) -> InterventionEffect:
    """Translates a sentence with and without interventions; `target` replaces the translation found without them.

    Source, target and prefix are ids without BOS and EOS. Both translations begin with `prefix`. `observe` receives
    every step of the searches. Raises whatever `intervened` raises, and Mistake if the source or the target is
    empty or too long for the model, or if a change names a source piece that the source does not have.
    """
    with intervened(run.model, interventions):  # fails before anything is computed; keys need the maps' columns
        pass
    if target is None:
        target = best_translation(run, source, prefix, search, observe)
    else:
        check_length("target", target, run.model.max_target)
    first = min((intervention.first_step for intervention in interventions), default=0)
    kept = [*target[:first], *prefix[first:]]

    intact = decoded_pair(run, source, target)
    for item in intact.maps:
        _check_keys([change for change in interventions if change.site == item.site], len(item.columns))
    with intervened(run.model, interventions):
        same = decoded_pair(run, source, target)
        changed = decoded_pair(run, source, best_translation(run, source, kept, search, observe))
    return InterventionEffect(run.tokenizers.source.pieces(source), intact, same, changed)


def _selected(model: Seq2Seq, intervention: Intervention) -> list[Attention]:
    """The Attention modules that an intervention changes."""
    sites = model.sentence_sites
    check_site(intervention.site, sites)
    layers = sites[intervention.site]
    check_index("layer", intervention.layer, len(layers), intervention.site)
    check_index("head", intervention.head, layers[0].num_heads, intervention.site)
    if isinstance(intervention.change, OfHead):
        check_index("head", intervention.change.head, layers[0].num_heads, intervention.site)
    return [layer for index, layer in enumerate(layers) if intervention.layer in (None, index)]


def _parts(attention: Attention, intervention: Intervention) -> dict[str, Any]:
    """The arguments of `with_parts`."""
    of_whole_layer = (intervention.temperature, intervention.normalizer, intervention.half_width)
    if intervention.change is None and of_whole_layer == (None, None, None):
        raise Mistake(
            TemplatedMessage(
                "The intervention changes nothing: set way (in Python, change), temperature, normalizer or half_width."
            )
        )
    if of_whole_layer != (None, None, None) and (intervention.head is not None or intervention.steps is not None):
        raise Mistake(
            TemplatedMessage(
                "temperature, normalizer and half_width change all heads and steps of a layer: leave out head and "
                "steps."
            )
        )
    parts: dict[str, Any] = {}
    if intervention.change is not None:
        parts["edits"] = [Edit(intervention.change, intervention.head, intervention.steps)]
    if intervention.normalizer is not None or intervention.temperature is not None:
        old = attention.normalizer
        # Earlier interventions may have set a temperature. One product replaces nested normalizers, of which a long
        # list of interventions would make more than Python can call.
        earlier_temperature = old.temperature if isinstance(old, Tempered) else 1.0
        normalizer = intervention.normalizer or (old.normalizer if isinstance(old, Tempered) else old)
        factor = 1.0 if intervention.temperature is None else intervention.temperature
        if not 0 < factor < math.inf:
            raise Mistake(TemplatedMessage("temperature is {asked}; it must be a finite number above 0.", asked=factor))
        temperature = earlier_temperature * factor
        if not 0 < temperature < math.inf:
            raise Mistake(
                TemplatedMessage(
                    "The temperatures of {site} multiply to {temperature}: use less extreme ones.",
                    site=intervention.site,
                    temperature=temperature,
                )
            )
        parts["normalizer"] = normalizer if temperature == 1 else Tempered(normalizer, temperature)
    if intervention.half_width is not None:
        if intervention.site != "cross":
            raise Mistake(
                TemplatedMessage(
                    "half_width needs a local window, which only cross attention can have, not {site}.",
                    site=intervention.site,
                )
            )
        parts["window"] = _window(attention.window, intervention.half_width)
    return parts


def _check_keys(interventions: Sequence[Intervention], columns: int) -> None:
    """Raises Mistake if a change at a site names a key outside the source's `columns` columns."""
    for intervention in interventions:
        change = intervention.change
        if SITES[intervention.site].columns != "source":
            continue  # the target grows during the search
        if isinstance(change, Scaled):
            for key in change.keys:
                check_index("column", key, columns, intervention.site)
        if isinstance(change, Given) and len(change.weights) > columns:
            raise Mistake(
                TemplatedMessage(
                    "There are {number} weights; {site} has {columns} columns.",
                    number=len(change.weights),
                    site=intervention.site,
                    columns=columns,
                )
            )


def _window(window: Window, half_width: int) -> Window:
    """The window with a new half-width; a global window becomes a local-m window."""
    least = 0 if isinstance(window, (Global, LocalM)) else 1
    if half_width < least:
        raise Mistake(
            TemplatedMessage(
                "half_width is {half_width}; it must be at least {least}.", half_width=half_width, least=least
            )
        )
    if half_width > LARGEST_WIDTH:
        raise Mistake(
            TemplatedMessage(
                "half_width is {half_width}; it must be at most {most}.",
                half_width=half_width,
                most=f"{LARGEST_WIDTH:,}",
            )
        )
    if isinstance(window, Global):
        return LocalM(0, 1, half_width)
    changed: Any = copy(window)  # shares the trained weights
    changed.half_width = half_width
    return changed
