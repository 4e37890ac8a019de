"""The sentences for a name that does not exist, and for a key without a value."""

import pickle

from nmt.config.messages import missing, stored_invalid, unknown
from nmt.errors import Mistake, printable


def test_the_nearest_choice_is_named_and_a_few_are_listed() -> None:
    few = "Unknown scorer 'dott'. Did you mean 'dot'? Available: additive, dot."
    assert unknown("scorer", "dott", ["dot", "additive"]) == few
    many = [f"scorer{number}" for number in range(20)]
    assert unknown("scorer", "scorer_7", many) == "Unknown scorer 'scorer_7'. Did you mean 'scorer7'?"


def test_the_choices_remain_readable_beside_a_long_name() -> None:
    message = printable(unknown("font", "9" * 5000, [f"Font {number}" for number in range(500)]))
    assert message.startswith(f"Unknown font '{'9' * 200}...'. Available: Font 0, Font 1, ")


def test_only_the_remedy_for_missing_keys_is_replaced_in_a_stored_configuration() -> None:
    """A message may contain the word that a remedy begins with, as a name that a user has typed."""
    lacks = "seed is missing. Another version of nmt wrote it: train the run again."
    assert stored_invalid(missing(["seed"])) == stored_invalid(pickle.loads(pickle.dumps(missing(["seed"])))) == lacks
    assert stored_invalid(Mistake("scorer is ' Add '; choose another.")) == "scorer is ' Add '; choose another."


def test_without_a_near_choice_all_are_listed() -> None:
    assert unknown("scorer", "xyz", ["dot", "additive"]) == "Unknown scorer 'xyz'. Available: additive, dot."


def test_of_dotted_keys_the_last_part_is_compared_and_private_ones_are_left_out() -> None:
    choices = ["model.dim", "model._target_", "model.cross"]
    near = "Unknown key 'model.dimm'. Did you mean 'model.dim'? Available: model.cross, model.dim."
    assert unknown("key", "model.dimm", choices) == near
    assert "_target_" not in unknown("key", "model.xxxxxx", choices)
