"""What a trial build of a run reports at once: invalid values, and choices that do not fit the model."""

import logging
from collections.abc import Callable
from typing import Any

from torch import nn

from nmt.config.nodes import make
from nmt.config.schema import RunSettings
from nmt.decoding.binding import Algorithm
from nmt.errors import Mistake
from nmt.kernels.dropout import Dropout
from nmt.models import Seq2Seq
from nmt.sites import SITES
from nmt.training.objectives import Objective, RDrop, SimCut

logger = logging.getLogger(__name__)


def check_translation(settings: RunSettings, model: Seq2Seq) -> None:
    """Raises Mistake for a choice of scorer, context or search that does not fit the model."""
    _check_sites(settings, model)
    most = model.max_context
    if most is not None and settings.context.sentences > most:
        raise Mistake(
            f"context.sentences is {settings.context.sentences}, but the scorer for earlier sentences has "
            f"weights for only {most} of them: lower context.sentences, or raise the scorer's max_length."
        )
    _warn_of_equal_passes(make(settings.objective), model)
    make(settings.search, Algorithm)


def _check_sites(settings: RunSettings, model: Seq2Seq) -> None:
    """Raises Mistake if a scorer or normalizer is set for a site that this model does not have."""
    for name, site in SITES.items():
        choices = getattr(settings, name)
        if choices and name not in model.sites:
            raise Mistake(
                f"{next(iter(choices))}@{name} has no effect, because this model has no attention at {name}; leave it "
                f"out, or add {site.needs}."
            )


def _warn_of_equal_passes(objective: Objective, model: Seq2Seq) -> None:
    name = {RDrop: "r_drop", SimCut: "simcut"}.get(type(objective))
    if name is None or (isinstance(objective, SimCut) and objective.cut > 0):
        return
    rates = [part.p for part in model.modules() if isinstance(part, (Dropout, nn.Dropout))]
    rates += [part.dropout for part in model.modules() if isinstance(part, nn.RNNBase)]
    if not any(rates):
        logger.warning(
            "objective=%s compares two passes that differ only in dropout, but this model has no dropout, so it "
            "amounts to cross entropy at twice the cost: add model.dropout=0.1, for example.",
            name,
        )


def built(key: str, constructor: Callable[..., Any], argument: Any) -> Any:
    """The optimizer of some parameters, or the schedule of an optimizer, by what the node under `key` makes.

    Raises Mistake if torch rejects a value of the node.
    """
    try:
        return constructor(argument)
    except (ValueError, TypeError, LookupError, RuntimeError) as error:
        # torch checks some values and stumbles over others, such as betas=[0.9]. Only a class of torch, which gets
        # nothing but the user's values, gets no traceback: in any other class the error may be a bug.
        target = getattr(constructor, "func", constructor)
        if isinstance(error, Mistake) or not target.__module__.startswith("torch."):
            raise
        values = ", ".join(f"{name}={value}" for name, value in getattr(constructor, "keywords", {}).items())
        # What torch checks is "Invalid learning rate: -1"; other errors are Python's messages, which name no value.
        reason = f": {str(error).rstrip('.')}" if str(error).startswith("Invalid ") else ""
        raise Mistake(
            f"The {key} cannot be built: {target.__name__} rejects a value of ({values}){reason}. Run the command with "
            f"--help {key} to see the usual values."
        ) from error
