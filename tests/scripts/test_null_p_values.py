"""scripts/studies/null_p_values.py: every case is tested, and its two systems are equally good."""

import pytest

from nmt.errors import Mistake
from scripts.studies import null_p_values


def test_every_case_has_a_row_for_each_of_its_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LINES": 40, "RUNS": 10, "RESAMPLES": 20}.items():
        monkeypatch.setattr(null_p_values, name, value)
    table = null_p_values.study(simulations=2, sizes=[20])
    assert [str(row[0]) for row in table.rows] == ["alike"] * 2 + ["unlike"] * 2 + ["2 seeds", "3 seeds", "5 seeds"]
    for row in table.rows:
        shares = [float(str(cell)) for cell in row[3:]]
        assert shares == sorted(shares)


def test_a_number_of_simulations_below_one_is_refused() -> None:
    with pytest.raises(Mistake, match="--simulations must be at least 1"):
        null_p_values.main(["--simulations", "0"])
