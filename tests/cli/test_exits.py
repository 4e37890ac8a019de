"""Which exit code stands for what."""

import errno
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import nmt
from nmt.errors import exit_code, is_mistake, report
from nmt.text import Tokenizer


def raiser(error: BaseException) -> Callable[[], int]:
    def action() -> int:
        raise error

    return action


def test_an_error_from_our_lines_is_a_mistake_and_one_from_elsewhere_is_a_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code(lambda: len(Tokenizer(b"").pieces([]))) == 2
    assert re.fullmatch(r"error: These 0 bytes are not a SentencePiece model\.\n", capsys.readouterr().err)
    assert exit_code(lambda: int("abc")) == 1
    assert "Traceback" in capsys.readouterr().err


def test_another_kind_of_error_is_a_failure_even_from_our_lines() -> None:
    ours = compile("raise KeyError('a bug')", str(Path(nmt.__file__).parent / "run" / "train.py"), "exec")
    with pytest.raises(KeyError) as failed:
        exec(ours)
    assert not is_mistake(failed.value)


def test_interruption_is_130_and_success_is_the_action_s_own_code() -> None:
    assert exit_code(raiser(KeyboardInterrupt())) == 130
    assert exit_code(lambda: 0) == 0


def test_a_missing_right_is_a_mistake_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    error = PermissionError(errno.EACCES, "Permission denied", "locked/a.en")
    assert report(error) == 2
    assert capsys.readouterr().err == "error: There is no right to use locked/a.en: change that, or name another.\n"
