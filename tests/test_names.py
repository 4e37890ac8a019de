"""Short names of paths."""

from pathlib import Path

import pytest

from nmt.names import distinct_names


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["runs/demo"], ["demo"]),
        (["runs/luong_dot/seed1"], ["luong_dot/seed1"]),
        (["runs/luong_dot/seed1_average"], ["luong_dot/seed1_average"]),
        (["runs/scorers/seed=1", "runs/scorers/seed=2"], ["scorers/seed=1", "scorers/seed=2"]),
        (["runs/demo", "runs/luong/seed1"], ["demo", "luong/seed1"]),
        (["en/luong/seed1", "vi/luong/seed1"], ["en/luong/seed1", "vi/luong/seed1"]),
        (["a/one", "b/one"], ["a/one", "b/one"]),
        ([], []),
    ],
)
def test_a_name_is_the_end_of_the_path_and_never_a_seed_alone(paths: list[str], names: list[str]) -> None:
    assert distinct_names([Path(path) for path in paths]) == names


def test_a_link_keeps_its_name(tmp_path: Path) -> None:
    (tmp_path / "luong" / "seed3").mkdir(parents=True)
    (tmp_path / "production").symlink_to(tmp_path / "luong" / "seed3")
    assert distinct_names([tmp_path / "production"]) == ["production"]
