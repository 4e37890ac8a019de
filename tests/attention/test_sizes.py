import pytest

from nmt.attention.sizes import require_positive
from nmt.errors import Mistake


@pytest.mark.parametrize(("value", "written"), [(0, "0"), (-4, "-4"), (1.5, "1.5"), ("abc", "'abc'"), (None, "None")])
def test_an_invalid_size_is_named(value: object, written: str) -> None:
    with pytest.raises(Mistake, match=f"^scorer.hidden_dim is {written}; it must be a whole number of at least 1"):
        require_positive({"dim": 7, "scorer.hidden_dim": value})


def test_valid_sizes_pass() -> None:
    require_positive({"dim": 1, "scorer.hidden_dim": 512})
