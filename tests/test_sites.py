"""The table of attention sites agrees with what can be configured and with what the models have."""

from typing import get_args

import pytest

from nmt.cli.compose import configuration
from nmt.commands.explain_settings import ExplainSettings
from nmt.config.nodes import make
from nmt.config.schema import RunSettings
from nmt.models import VocabularySizes
from nmt.serving.questions import Site as LabSite
from nmt.sites import DOCUMENT_SITES, SENTENCE_SITES, SITES


def test_every_site_can_have_parts_of_its_own() -> None:
    assert SITES.keys() <= RunSettings.model_fields.keys()
    assert SITES.keys() <= ExplainSettings.model_fields.keys()


def test_the_lab_asks_about_the_sites_of_a_sentence() -> None:
    assert get_args(LabSite) == SENTENCE_SITES


@pytest.mark.parametrize("name", [name for name, site in SITES.items() if site.needs])
@pytest.mark.parametrize("model", ["luong", "transformer"])
def test_a_model_has_a_site_once_it_has_what_the_site_needs(name: str, model: str) -> None:
    needed = SITES[name].needs
    if model == "transformer" and name in SENTENCE_SITES:
        needed = "model=transformer"  # it always has them
    overrides = [f"model={model}", *(["context=hierarchical"] if name in DOCUMENT_SITES else []), needed]
    config = configuration("train", overrides)
    made = make(config["model"])(vocabulary=VocabularySizes(9, 9, joint=True))
    if config["context"]["model"]:
        made = make(config["context"]["model"])(made)
    assert name in made.sites
    assert [site for site in SITES if site in made.sites] == list(made.sites)
