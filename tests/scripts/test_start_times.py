"""scripts/bench/start_times.py: what it runs and prints; nothing here depends on the clock."""

import sys

import pytest

from nmt.errors import Mistake
from scripts.bench import start_times


def test_every_command_has_a_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(start_times, "COMMANDS", {"`nmt --help`": ("nmt", "--help")})
    monkeypatch.setattr(sys, "argv", ["start_times", "--rounds", "1"])
    start_times.main()
    header, _, row = capsys.readouterr().out.splitlines()
    assert header == "| command | seconds (fastest to slowest) |"
    assert row.startswith("| `nmt --help` | ")


def test_a_command_that_fails_is_shown() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)nmt\.translate nonsense=1 ended with 2:.*nonsense"):
        start_times.seconds(("nmt.translate", "nonsense=1"), cold=False)


def test_no_rounds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["start_times", "--rounds", "0"])
    with pytest.raises(Mistake, match="--rounds is 0: use at least 1"):
        start_times.main()


@pytest.mark.soak
@pytest.mark.parametrize("name", start_times.COMMANDS)
def test_every_command_ends_well(name: str) -> None:
    start_times.seconds(start_times.COMMANDS[name], cold=False)  # raises RuntimeError if the command fails
