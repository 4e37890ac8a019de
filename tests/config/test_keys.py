"""Dotted keys of a configuration."""

from nmt.config.keys import NOTHING, leaves, value_at

CONFIG = {"model": {"dropout": 0.1, "dropout_at": {"ffn": None}, "norm": {}}, "seed": 1}


def test_leaves_are_the_values_that_are_no_groups() -> None:
    assert leaves(CONFIG) == {"model.dropout": 0.1, "model.dropout_at.ffn": None, "seed": 1}
    assert leaves(CONFIG["model"], "model") == {"model.dropout": 0.1, "model.dropout_at.ffn": None}


def test_every_leaf_is_found_under_its_key() -> None:
    for key, value in leaves(CONFIG).items():
        assert value_at(CONFIG, key, NOTHING) == value


def test_what_there_is_not_is_told_from_none() -> None:
    assert value_at(CONFIG, "model.dropout_at.ffn", NOTHING) is None
    for key in ("model.dropout.ffn", "model.width", "seed.more"):
        assert value_at(CONFIG, key) is None
        assert value_at(CONFIG, key, NOTHING) is NOTHING
