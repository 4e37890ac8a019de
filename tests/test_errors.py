"""Which error becomes which exit code, and what the user reads."""

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import nmt
from nmt.errors import CheckFailed, MissingFile, Mistake, TemplatedMessage, exit_code, report
from nmt.text import Tokenizer


def raiser(error: BaseException) -> Callable[[], int]:
    def action() -> int:
        raise error

    return action


def test_a_mistake_is_2_and_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(lambda: len(Tokenizer(b"").pieces([]))) == 2
    assert re.fullmatch(r"error: This is not a SentencePiece model \(0 bytes\); .*\n", capsys.readouterr().err)


@pytest.mark.parametrize("kind", [Mistake, CheckFailed])
def test_a_message_is_one_printable_line_whatever_value_it_names(kind: type[Exception]) -> None:
    for kept in ("một hai\u00a0ba 👩", "می\u200cخواهم", "👩\u200d🔬"):
        assert str(kind(kept)) == kept
    assert str(kind("a\x1b[2J\r\n\u202eb\ud800\u2028")) == r"a\x1b[2J\r\n\u202eb\ud800\u2028"
    assert re.fullmatch(r"x is 9+ \.\.\. 9+; lower it\.", str(kind(f"x is {'9' * 10_000}; lower it.")))
    assert len(str(kind("x" * 10**6))) < 2000
    error = kind(TemplatedMessage("{name} is unknown.", name="a\n\u202eb"))
    assert isinstance(error.args[0], TemplatedMessage)
    assert str(error) == r"a\n\u202eb is unknown."


@pytest.mark.parametrize(
    "kind",
    [
        *(ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RuntimeError),
        *(FloatingPointError, OSError, FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError),
    ],
)
def test_any_other_error_is_1_and_a_traceback_wherever_it_was_raised(
    kind: type[Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    bug = compile(f"raise {kind.__name__}('a bug')", str(Path(nmt.__file__).parent / "commands" / "train.py"), "exec")
    assert exit_code(lambda: exec(bug) or 0) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("Traceback")
    assert 'nmt/commands/train.py", line 1' in printed
    assert printed.endswith(f"error: {kind.__name__}\n")


@pytest.mark.parametrize("error", [Mistake("x is 1."), MissingFile("There is no file x."), CheckFailed("BLEU is 1.")])
def test_with_nmt_traceback_a_sentence_comes_with_its_traceback(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NMT_TRACEBACK", raising=False)
    code = exit_code(raiser(error))
    sentence = capsys.readouterr().err
    assert sentence == f"error: {error}\n"
    monkeypatch.setenv("NMT_TRACEBACK", "1")
    assert exit_code(raiser(error)) == code
    printed = capsys.readouterr().err
    assert printed.startswith("Traceback")
    assert "in action" in printed
    assert printed.endswith(sentence)


def test_an_interruption_is_130_and_a_word_and_success_is_the_code_of_the_action(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code(raiser(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert exit_code(lambda: 0) == 0


def test_a_full_standard_output_is_named() -> None:
    script = "import sys; from nmt.errors import exit_code; sys.exit(exit_code(lambda: print('a score')))"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", script],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        )
    assert done.returncode == 1
    assert done.stderr == (
        "error: No space left on device: standard output. Free some space and run the command again.\n"
    )


def test_a_path_cannot_command_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    report(PermissionError(errno.EACCES, "Permission denied", "a\x1b[2J\r\u202e"))
    assert capsys.readouterr().err == "error: Permission denied: a\\x1b[2J\\r\\u202e. Fix its permissions.\n"


def test_a_failed_check_is_a_sentence_and_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(CheckFailed("BLEU is 1.0.")) == 1
    assert capsys.readouterr().err == "error: BLEU is 1.0.\n"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (errno.EACCES, "Permission denied: a/b. Fix its permissions."),
        (errno.ELOOP, f"{os.strerror(errno.ELOOP)}: a/b. Choose another path."),
        (errno.ENAMETOOLONG, "File name too long: a/b. Choose another path."),
        (errno.EROFS, "Read-only file system: a/b. Choose another path."),
    ],
)
def test_a_path_that_the_system_refuses_is_a_mistake(
    code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(OSError(code, os.strerror(code), "a/b")) == 2
    assert capsys.readouterr().err == f"error: {sentence}\n"


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR])
def test_a_path_that_surprises_the_program_is_a_bug(code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Paths that a user names are checked where they are used."""
    assert report(OSError(code, os.strerror(code), "a/b")) == 1
    assert os.strerror(code) in capsys.readouterr().err


def test_real_paths_that_the_system_refuses_are_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "loop" / "run", tmp_path / ("x" * 300)):

        def make(path: Path = path) -> int:
            path.mkdir(parents=True, exist_ok=True)
            return 0

        assert exit_code(make) == 2
        assert re.fullmatch(r"error: [A-Z][^:]+: .+\. Choose another path\.\n", capsys.readouterr().err)


def test_a_full_disk_is_a_failure_with_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(OSError(errno.ENOSPC, "No space left on device", "a")) == 1
    assert capsys.readouterr().err == (
        "error: No space left on device: a. Free some space and run the command again.\n"
    )


def test_an_error_without_a_path_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(OSError(errno.ENOENT, "No such file or directory")) == 1
    assert "error: FileNotFoundError\n" in capsys.readouterr().err


def test_a_missing_reader_is_141_and_not_an_error() -> None:
    script = "import sys; from nmt.errors import exit_code; sys.exit(exit_code(lambda: print('x' * 10**6) or 0))"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait() == 141
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == b""


def test_a_long_value_does_not_push_the_remedy_out_of_a_message() -> None:
    value = "9" * 5000
    message = str(Mistake(f"Unknown option '--out={value}'. Write key=value without dashes: out={value}."))
    assert "'. Write key=value without dashes: out=999" in message
    assert message.endswith("999.")
    assert len(message) < 1000
