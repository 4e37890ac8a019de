"""What the trial build of a model refuses or warns of, before any text is read."""

from collections.abc import Callable
from typing import Any

import pytest
from jobs import run_settings

from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.training.translation import Translation


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"objective": "r_drop"}, True),
        ({"objective": "simcut", "objective__cut": 0.0}, True),
        ({"objective": "simcut"}, False),
        ({"objective": "r_drop", "model__dropout_at__ffn": 0.1}, False),
        ({}, False),
    ],
)
def test_two_passes_that_would_be_the_same_are_told(
    job: Callable[..., Job], changes: dict[str, Any], told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    Translation().check_buildable(job("train", model__dropout=0.0, **changes).settings)
    assert ("compares two passes that differ only in dropout, but this model has no dropout" in caplog.text) == told


def test_a_choice_for_a_site_that_the_model_lacks_is_refused() -> None:
    with pytest.raises(
        Mistake,
        match=r"^scorer@encoder_self has no effect, because this model has no attention at encoder_self; leave it out, "
        r"or add encoder@model=lstmn\.$",
    ):
        Translation().check_buildable(run_settings("model=luong", "scorer@encoder_self=dot"))
    with pytest.raises(Mistake, match=r"^normalizer@decoder_self has no effect, .* decoder@model=lstmn\.$"):
        Translation().check_buildable(run_settings("model=luong", "normalizer@decoder_self=sparsemax"))
    Translation().check_buildable(run_settings("model=luong", "encoder@model=lstmn", "scorer@encoder_self=dot"))
    Translation().check_buildable(run_settings("model=transformer", "scorer@encoder_self=dot"))
