"""What differs between configurations."""

from nmt.cli.compose import configuration
from nmt.scoring.differences import differences


def of(*lines: str) -> dict[str, list[str]]:
    return differences([configuration("train", [*line.split(), f"run_dir=run{n}"]) for n, line in enumerate(lines)])


def test_a_choice_is_named_by_its_option() -> None:
    assert of("scorer=dot", "scorer=none", "scorer=gaussian_learned") == {"scorer": ["dot", "none", "gaussian_learned"]}
    assert of("normalizer=softmax", "normalizer=sparsemax") == {"normalizer": ["softmax", "sparsemax"]}


def test_each_configuration_has_its_values() -> None:
    assert of("scorer=dot seed=1", "scorer=dot seed=2", "scorer=additive seed=1") == {
        "seed": ["1", "2", "1"],
        "scorer": ["dot", "dot", "additive"],
    }


def test_keys_that_change_together_are_all_shown() -> None:
    found = of("model.dim=64 label_smoothing=0.2 model.norm_first=false", "model.dim=32")
    assert found == {
        "model.dim": ["64", "32"],
        "label_smoothing": ["0.2", "0.1"],
        "model.norm_first": ["false", "true"],
    }


def test_a_choice_for_one_site_is_a_column() -> None:
    found = of("model=transformer scorer@cross=additive", "model=transformer")
    assert found == {"model.cross.scorer": ["additive", "scaled_dot"]}


def test_whole_and_decimal_numbers_are_equal() -> None:
    assert of("search.length_penalty=1 seed=1", "search.length_penalty=1.0 seed=2") == {"seed": ["1", "2"]}


def test_models_differ_by_their_name() -> None:
    assert of("model=luong scorer=dot", "model=bahdanau scorer=dot")["model"] == ["luong", "bahdanau"]


def test_a_key_that_some_lack_is_shown_if_the_others_differ() -> None:
    found = of("model=transformer model.num_layers=1 model.norm_first=true", "model=transformer", "model=bahdanau")
    assert found["model.num_layers"] == ["1", "2", ""]
    assert "model.norm_first" not in found


def test_the_folder_of_a_run_is_no_difference() -> None:
    assert of("seed=3", "seed=3 overwrite=true") == {}


def test_what_follows_from_another_difference_is_left_out() -> None:
    assert of("trainer.max_steps=100", "trainer.max_steps=200") == {"trainer.max_steps": ["100", "200"]}
    assert of("trainer.max_steps=100 schedule.steps=50", "trainer.max_steps=200")["schedule.steps"] == ["50", "200"]
    assert of("schedule=noam model.dim=64", "schedule=noam model.dim=32") == {"model.dim": ["64", "32"]}


def test_a_choice_says_what_it_sets_itself() -> None:
    assert of("model=luong scorer=dot", "model=transformer scorer=dot") == {"model": ["luong", "transformer"]}
    assert of("data=iwslt15", "data=envi") == {"data.name": ["iwslt15", "envi"]}
    own = of("model=luong scorer=dot model.num_layers=3", "model=transformer scorer=dot")
    assert own == {"model": ["luong", "transformer"], "model.num_layers": ["3", "2"]}


def test_what_only_tells_how_a_run_is_watched_is_no_difference() -> None:
    assert of("trainer.log_every_n_steps=10 validation.probes=2", "trainer.log_every_n_steps=20") == {}
