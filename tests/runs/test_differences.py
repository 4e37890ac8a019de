"""What tells configurations apart, and nothing else."""

from nmt.cli.compose import configuration
from nmt.runs.differences import differences


def of(*lines: str) -> dict[str, list[str]]:
    return differences([configuration("train", [*line.split(), f"run_dir=run{n}"]) for n, line in enumerate(lines)])


def test_a_chosen_part_is_called_by_the_word_that_chooses_it() -> None:
    assert of("scorer=dot", "scorer=none", "scorer=gaussian_learned") == {"scorer": ["dot", "none", "gaussian_learned"]}
    assert of("normalizer=softmax", "normalizer=sparsemax") == {"normalizer": ["softmax", "sparsemax"]}


def test_values_are_those_of_each_configuration() -> None:
    assert of("scorer=dot seed=1", "scorer=dot seed=2", "scorer=additive seed=1") == {
        "seed": ["1", "2", "1"],
        "scorer": ["dot", "dot", "additive"],
    }


def test_what_changes_alike_is_shown_all_the_same() -> None:
    found = of("model.dim=64 label_smoothing=0.2 model.norm_first=false", "model.dim=32")
    assert found == {
        "model.dim": ["64", "32"],
        "label_smoothing": ["0.2", "0.1"],
        "model.norm_first": ["false", "true"],
    }


def test_a_site_of_its_own_is_a_column_of_its_own() -> None:
    found = of("model=transformer scorer@cross=additive", "model=transformer")
    assert found == {"model.cross.scorer": ["additive", "scaled_dot"]}


def test_a_number_is_the_same_with_or_without_a_point() -> None:
    assert of("search.length_penalty=1 seed=1", "search.length_penalty=1.0 seed=2") == {"seed": ["1", "2"]}


def test_models_differ_by_their_name() -> None:
    assert of("model=luong scorer=dot", "model=bahdanau scorer=dot")["model"] == ["luong", "bahdanau"]


def test_what_some_lack_is_shown_where_the_others_differ() -> None:
    found = of("model=transformer model.num_layers=1 model.norm_first=true", "model=transformer", "model=bahdanau")
    assert found["model.num_layers"] == ["1", "2", ""]
    assert "model.norm_first" not in found


def test_equal_configurations_do_not_differ_and_where_they_lie_does_not_count() -> None:
    assert of("seed=3", "seed=3 overwrite=true") == {}
