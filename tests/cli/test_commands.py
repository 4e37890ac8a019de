"""The commands as processes: pipes, exit codes, and what goes to which stream."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import yaml
from forked import Forked, module

import nmt
from nmt.__main__ import main
from nmt.cli.command import limit_spinning
from nmt.cli.completion import completion_script
from nmt.cli.compose import configuration
from nmt.config.nodes import CONFIGS
from nmt.training.origin import stored_keys

Command = Callable[..., Any]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def trained(command: Command, tiny: Callable[..., list[str]], corpus: Path) -> Path:
    ended = command("train", *tiny(trainer__max_steps=2, validation__every=2, data__test="null"))
    assert (ended.code, ended.output) == (0, "run\n"), ended.errors
    return corpus / "run"


def test_translate_is_a_filter(trained: Path, command: Command) -> None:
    ended = command("translate", "run_dir=run", "engine=torch", "search.beam_size=1", text="one two.\r\n\nseven")
    assert ended.code == 0
    assert ended.errors == ""
    assert ended.output.count("\n") == 3
    assert ended.output.split("\n")[1] == ""
    assert command("translate", "run_dir=run", text="").output == ""


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 0, ""),
        (("--help",), 0, ""),
        (
            ("--versoin",),
            2,
            "error: Unknown option '--versoin'. Write --help or --version, or run one of the commands.\n",
        ),
        (
            ("model=luong",),
            2,
            "error: 'model=luong' has no command before it. Write one, as in nmt train model=luong.\n",
        ),
        (("trian",), 2, "error: Unknown command 'trian'. Did you mean 'train'?\n"),
    ],
)
def test_the_package_lists_its_commands(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    sentence: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["nmt", *arguments])
    monkeypatch.setattr("nmt.errors.on_stop_signals", lambda handler: None)
    with pytest.raises(SystemExit) as ended:
        main()
    output, errors = capsys.readouterr()
    assert (ended.value.code, errors) == (code, sentence)
    listed = re.findall(r"^  (\w+) +[A-Z]", output, re.MULTILINE)
    assert listed == (sorted(file.stem for file in CONFIGS.glob("*.yaml")) if code == 0 else [])


def test_help_may_come_before_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    run = list[tuple[str, list[str]]]()
    monkeypatch.setattr(sys, "argv", ["nmt", "--help", "train"])
    monkeypatch.setattr("nmt.__main__.leave_on_interrupt", lambda: None)
    monkeypatch.setattr("runpy.run_module", lambda name, **_: run.append((name, sys.argv[1:])))
    main()
    assert run == [("nmt.train", ["--help"])]


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("nmt tran", ["translate"]),
        ("nmt train model=", ["bahdanau", "luong", "transformer"]),
        ("nmt train model=luong scorer=gaussian", ["gaussian", "gaussian_learned"]),
        ("nmt train trainer.max_s", []),  # a key of a group's choice: not offered
        ("nmt train run_d", ["run_dir="]),
        ("nmt prepare model=", ["bahdanau", "luong", "transformer"]),
        ("nmt prepare split.v", ["split.valid="]),
        ("nmt prepare label", ["label_smoothing="]),
        ("nmt translate out", ["output="]),
        ("nmt translate run_dir=x ver", ["verbatim="]),
    ],
)
def test_bash_completes_commands_keys_and_choices(typed: str, completed: list[str], tmp_path: Path) -> None:
    script = tmp_path / "nmt.bash"
    script.write_text(completion_script("bash", sorted(file.stem for file in CONFIGS.glob("*.yaml"))), encoding="utf-8")
    code = f"""source {script}
        COMP_WORDBREAKS=$' \\t\\n"><=;|&(:'; COMP_LINE='{typed}'; COMP_POINT=${{#COMP_LINE}}
        _nmt
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    found = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert found.stderr == ""
    assert found.stdout.split() == completed


def test_completion_is_for_bash_and_zsh(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["nmt", "--completion", "zsh"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert capsys.readouterr().out.startswith("autoload")
    monkeypatch.setattr(sys, "argv", ["nmt", "--completion", "fish"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "Unknown shell 'fish'" in capsys.readouterr().err


def test_a_command_after_nmt_is_the_command(trained: Path, command: Command) -> None:
    """`python -m nmt.translate` and `nmt translate`; if the command fails, both also run as real processes."""
    arguments = ("run_dir=run", "engine=torch", "search.beam_size=1")
    forked = command("translate", *arguments, text="one two.\n")
    assert forked.code == 0
    assert forked.output.strip()
    with contextlib.closing(
        Forked(partial(module, "nmt"), ["nmt", "translate", *arguments], trained.parent, PIPE)
    ) as process:
        assert process.communicate("one two.\n") == (forked.output, forked.errors)
        assert process.returncode == 0
    failed = of_process("nmt.translate", folder=trained.parent)
    assert failed[:2] == (2, "")
    assert failed[2].startswith("error: ")
    assert of_process("nmt", "translate", folder=trained.parent) == failed
    ended = command("translate", text="one two.\n")
    assert (ended.code, ended.output, ended.errors) == failed


def test_ctrl_c_ends_the_console_script_while_a_command_starts() -> None:
    """It is not started as a module of nmt, as `python -m nmt` is."""
    script = (
        "import os, runpy, signal, sys; from nmt.__main__ import main\n"
        "sys.argv = ['nmt', 'train']\n"
        "runpy.run_module = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)\n"
        "main()"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def of_process(module: str, *arguments: str, folder: Path) -> tuple[int, str, str]:
    """The exit code and both outputs of `python -m`."""
    ended = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=folder, input="one two.\n", capture_output=True, text=True
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_a_closed_pipe_ends_translate_with_141(trained: Path, start: Start) -> None:
    process = start("translate", "run_dir=run", "engine=torch", "search.beam_size=1", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.write("one two.\n" * 3)
    process.stdin.close()
    assert process.wait() == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_help_into_a_closed_pipe_ends_with_141(start: Start) -> None:
    process = start("train", "--help")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait() == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""


def in_a_shell(command: str, corpus: Path) -> subprocess.CompletedProcess[str]:
    """A command with redirections of its own; 'nmt' stands for 'python -m nmt'."""
    line = command.replace("nmt.", f"{shlex.quote(sys.executable)} -m nmt.")
    environment = {**os.environ, "PYTHONPATH": str(Path(nmt.__file__).parents[1])}
    return subprocess.run(
        ["bash", "-c", line], cwd=corpus, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("nmt.translate run_dir=run >&-", "Standard output is closed. Redirect it to a file, a pipe or /dev/null."),
        ("nmt.translate run_dir=run <&-", "Standard input is closed. Give it a file, as in '< in.en', or a pipe."),
        ("nmt.train scorer=dott 1>&2 2>&-", ""),
        ("nmt.__main__ >&-", "Standard output is closed. Redirect it to a file, a pipe or /dev/null."),
        ("nmt.__main__ --version >&-", "Standard output is closed. Redirect it to a file, a pipe or /dev/null."),
    ],
)
def test_a_closed_stream_is_a_mistake_in_one_sentence(corpus: Path, line: str, sentence: str) -> None:
    ended = in_a_shell(line, corpus)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (f"error: {sentence}\n" if sentence else "")


@pytest.mark.parametrize(
    "target", ["scorer._target_=nmt.attention.scorers.Nope", "optimizer._target_=torch.optim.Nope"]
)
def test_a_target_that_does_not_exist_is_a_mistake(
    command: Command, tiny: Callable[..., list[str]], target: str
) -> None:
    ended = command("train", *tiny(), target)
    assert (ended.code, ended.output) == (2, "")
    assert ended.errors.endswith(f"error: Error loading '{target.partition('=')[2]}'. Check the value of _target_.\n")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize("place", ["dangling", "loop", "/proc/x"])
def test_a_run_directory_that_cannot_be_made_is_a_mistake(
    command: Command, tiny: Callable[..., list[str]], corpus: Path, place: str
) -> None:
    (corpus / "dangling").symlink_to(corpus / "nowhere")
    (corpus / "loop").symlink_to(corpus / "loop")
    ended = command("train", *tiny(run_dir=place))
    assert (ended.code, ended.output) == (2, "")
    assert "Traceback" not in ended.errors
    assert re.search(rf"^error: .*{place}", ended.errors, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("train", ["trainer.devices=0"], "trainer.devices is 0; set it to the number of devices to use, at least 1"),
        (
            "train",
            ["-m", "data.train.7=train,valid"],
            "data.train is a list. Set the whole list, as in 'data.train=[A,B]'",
        ),
        ("train", ["resume=true"], "run/config.yaml cannot be used: Unknown direction '12'"),
        ("compare", ["run_dirs=[run,./run]"], "run_dirs names run twice; name each run once"),
    ],
)
def test_a_mistake_ends_with_2_and_one_sentence(
    command: Command, tiny: Callable[..., list[str]], corpus: Path, name: str, arguments: list[str], sentence: str
) -> None:
    # A sweep has no run_dir.
    own = [item for item in tiny() if "-m" not in arguments or not item.startswith("run_dir=")] * (name == "train")
    if "resume=true" in arguments:
        stored = {**stored_keys(configuration("train", own)), "direction": 12}
        (corpus / "run").mkdir()
        (corpus / "run" / "config.yaml").write_text(yaml.safe_dump(stored), encoding="utf-8")
    ended = command(name, *own, *arguments)
    assert (ended.code, ended.output) == (2, ""), ended.errors
    [error] = ended.errors.splitlines()
    assert error.startswith(f"error: {sentence}")


def test_a_terminated_training_ends_with_143_and_can_be_resumed(start: Start, tiny: Callable[..., list[str]]) -> None:
    process = start("train", *tiny(trainer__max_steps=10**6, validation__every=10**5, trainer__log_every_n_steps=1))
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("step 3/"):
            process.send_signal(signal.SIGTERM)
            break
    output, errors = process.communicate()
    assert (process.returncode, output) == (143, "")
    assert "with a checkpoint; resume=true continues from there" in errors


@pytest.mark.parametrize(
    ("set_by_user", "expected"),
    [
        ({}, (None, "10000")),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, ("ACTIVE", None)),
        ({"GOMP_SPINCOUNT": "7"}, (None, "7")),
    ],
)
def test_threads_spin_briefly_unless_the_user_says_how_they_wait(
    set_by_user: dict[str, str], expected: tuple[str | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", dict(set_by_user))
    limit_spinning()
    assert (os.environ.get("OMP_WAIT_POLICY"), os.environ.get("GOMP_SPINCOUNT")) == expected


def test_threads_are_told_how_to_wait_before_torch_is_imported() -> None:
    """OpenMP reads its settings when it is loaded."""
    program = (
        "import os, sys, nmt.cli.command as c; assert 'torch' not in sys.modules; sys.argv[1:] = ['--version']\n"
        "try: c.command('translate', '', '')\n"
        "finally: assert 'torch' not in sys.modules; print(os.environ['GOMP_SPINCOUNT'])"
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_WAIT", "GOMP"))}
    shown = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert shown.stdout.split()[-1] == "10000"


def test_a_python_without_the_packages_is_told_to_activate_the_environment() -> None:
    checkout = Path(nmt.__file__).parents[1]
    # -S leaves out site-packages.
    ended = subprocess.run(
        [sys.executable, "-S", "-m", "nmt.translate"], cwd=checkout, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.endswith("Activate the environment that it is installed in, as in: source .venv/bin/activate\n")
