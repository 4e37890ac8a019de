"""Which process of a distributed run leads."""

import pytest

from nmt.ranks import rank


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, 0),
        ({"RANK": "0", "LOCAL_RANK": "0"}, 0),
        ({"RANK": "5", "LOCAL_RANK": "1"}, 5),
        ({"RANK": "4", "LOCAL_RANK": "0"}, 4),
        ({"LOCAL_RANK": "1"}, 1),
        ({"LOCAL_RANK": "0", "NODE_RANK": "1"}, 1),
        ({"RANK": "0", "NODE_RANK": "1"}, 0),
        ({"SLURM_PROCID": "3"}, 3),
        ({"SLURM_PROCID": "0", "LOCAL_RANK": "1"}, 1),
    ],
)
def test_one_process_leads(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: int) -> None:
    for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert rank() == expected
