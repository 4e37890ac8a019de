"""Dotted keys of a configuration."""

from nmt.config.keys import leaves, normal_form, value_at, with_values

CONFIG = {"model": {"dropout": 0.1, "dropout_at": {"ffn": None}, "norm": {}}, "seed": 1}


def test_leaves_are_the_values_that_are_no_groups() -> None:
    assert leaves(CONFIG) == {"model.dropout": 0.1, "model.dropout_at.ffn": None, "seed": 1}
    assert leaves(CONFIG["model"], "model") == {"model.dropout": 0.1, "model.dropout_at.ffn": None}


def test_every_leaf_is_found_under_its_key() -> None:
    for key, value in leaves(CONFIG).items():
        assert value_at(CONFIG, key, ...) == value


def test_a_missing_key_gives_the_default_and_null_does_not() -> None:
    assert value_at(CONFIG, "model.dropout_at.ffn", ...) is None
    for key in ("model.dropout.ffn", "model.width", "seed.more"):
        assert value_at(CONFIG, key) is None
        assert value_at(CONFIG, key, ...) is ...


def test_other_values_make_a_copy() -> None:
    changed = with_values(CONFIG, {"model.dropout_at.ffn": 0.3, "seed": 2})
    assert (value_at(changed, "model.dropout_at.ffn"), changed["seed"]) == (0.3, 2)
    assert (value_at(CONFIG, "model.dropout_at.ffn"), CONFIG["seed"]) == (None, 1)


def test_one_training_corpus_has_one_form() -> None:
    listed = {"data": {"train": ["my/train"], "valid": "my/valid"}}
    assert normal_form({"data": {"train": "my/train", "valid": "my/valid"}}) == listed
    assert normal_form(listed) == listed
    assert normal_form({"run_dir": "x"}) == {"run_dir": "x"}
