from collections.abc import Callable

import pytest
import yaml

from nmt.attention.scorers import Scorer
from nmt.config.nodes import CONFIGS, make


@pytest.fixture(params=sorted(path.stem for path in (CONFIGS / "scorer").glob("*.yaml")))
def scorer_name(request: pytest.FixtureRequest) -> str:
    """Each scorer that has a configuration."""
    return str(request.param)


@pytest.fixture
def make_scorer(scorer_name: str) -> Callable[..., Scorer]:
    """The scorer's constructor, as an attention gets it from the configuration."""
    constructor: Callable[..., Scorer] = make(
        yaml.safe_load((CONFIGS / "scorer" / f"{scorer_name}.yaml").read_text())["scorer"]
    )
    return constructor
