"""What metrics.json records about the command of a run."""

import pytest

from nmt.errors import Mistake
from nmt.training.origin import changed_command


def test_the_recorded_command_does_not_resume() -> None:
    """It gives the same result at once, and may be that of a resumed run whose record was lost."""
    before, after = ({"trainer": {"max_steps": steps}} for steps in (4, 6))
    command = "python -m nmt.train resume=true seed=2 trainer.max_steps=4"
    assert changed_command(command, before, after) == "python -m nmt.train seed=2 trainer.max_steps=6"
    assert changed_command(command, before, before) == "python -m nmt.train seed=2 trainer.max_steps=4"


def test_a_recorded_command_whose_quotes_do_not_match_is_a_mistake() -> None:
    with pytest.raises(Mistake, match=r"metrics\.json records, \"it's\", is not a command line, because its quotes do"):
        changed_command("it's", {}, {})
