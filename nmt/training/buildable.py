"""A trial build of a run's model, optimizer, schedule and search, so that invalid values are reported at once."""

import logging

import torch
from torch import nn

from nmt.config.nodes import make
from nmt.config.schema import RunSettings
from nmt.errors import Mistake
from nmt.kernels.dropout import Dropout
from nmt.models import Seq2Seq, VocabularySizes
from nmt.sites import SITES
from nmt.training.objectives import Objective, RDrop, SimCut
from nmt.training.task import build_task

logger = logging.getLogger(__name__)

# Any size will do: whether a model can be built does not depend on it.
_VOCABULARY = VocabularySizes(8, 8, joint=False)


def check_buildable(settings: RunSettings) -> None:
    """Builds the model (on the meta device), initial weights, optimizer, schedule and search once, and discards them.

    Raises Mistake for the first invalid value, so that it is reported before the corpora are read.
    """
    with torch.device("meta"):
        model = make(settings.model)(vocabulary=_VOCABULARY)
        if settings.context.model is not None:
            model = make(settings.context.model)(model)
        make(settings.initializer)(model)
    _check_sites(settings, model)
    most = model.max_context
    if most is not None and settings.context.sentences > most:
        raise Mistake(
            f"context.sentences is {settings.context.sentences}, but the scorer for earlier sentences has "
            f"weights for only {most} of them: lower context.sentences, or raise the scorer's max_length."
        )
    build_task(settings, model).configure_optimizers()
    _warn_of_equal_passes(make(settings.objective), model)
    make(settings.search)


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
