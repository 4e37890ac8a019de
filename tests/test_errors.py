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
from nmt.errors import CheckFailed, exit_code, is_mistake, report
from nmt.text import Tokenizer


def raiser(error: BaseException) -> Callable[[], int]:
    def action() -> int:
        raise error

    return action


def test_an_error_from_our_lines_is_a_mistake_and_one_from_elsewhere_is_a_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code(lambda: len(Tokenizer(b"").pieces([]))) == 2
    assert re.fullmatch(r"error: This is not a SentencePiece model \(0 bytes\); .*\n", capsys.readouterr().err)
    assert exit_code(lambda: int("abc")) == 1
    assert "Traceback" in capsys.readouterr().err


def test_another_kind_of_error_is_a_failure_even_from_our_lines() -> None:
    ours = compile("raise KeyError('a bug')", str(Path(nmt.__file__).parent / "commands" / "train.py"), "exec")
    with pytest.raises(KeyError) as failed:
        exec(ours)
    assert not is_mistake(failed.value)


def test_an_interruption_is_130_and_success_is_the_code_of_the_action() -> None:
    assert exit_code(raiser(KeyboardInterrupt())) == 130
    assert exit_code(lambda: 0) == 0


def test_a_failed_check_is_a_sentence_and_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(CheckFailed("BLEU is 1.0.")) == 1
    assert capsys.readouterr().err == "error: BLEU is 1.0.\n"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (errno.EACCES, "Permission denied: a/b. Fix its permissions."),
        (errno.ENOENT, "No such file or directory: a/b. Choose another path."),
        (errno.EEXIST, "File exists: a/b. Choose another path."),
        (errno.ENOTDIR, "Not a directory: a/b. Choose another path."),
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


def test_real_paths_that_cannot_be_folders_are_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    refused = [tmp_path / "dangling", tmp_path / "loop" / "run", tmp_path / ("x" * 300)]
    refused += [Path("/proc/x")] if sys.platform == "linux" else []
    for path in refused:

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
