"""Hostile command lines of every command end as tests/command_lines.py says; tests/soak/command_lines.py tries more."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_lines import COMMANDS, RIGHT, CommandLine, Ended, World, command_lines, faults

# Commands that translate or train take longest. Their lines are tried by `make soak`.
QUICK = [name for name in COMMANDS if name not in ("train", "pretrain", "prepare", "compare", "export", "evaluate")]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("command_lines"))
    yield world
    world.close()


def test_every_command_is_tried() -> None:
    assert sorted(RIGHT) == COMMANDS


def test_any_command_line_ends_lawfully(world: World) -> None:
    tried = (line for line in command_lines(70, 0, QUICK) if line.stdin not in ("long.en", "word.en"))
    lines = [line for line in tried if "-m" not in line.arguments and list(line.arguments) not in RIGHT[line.name]]
    assert len(lines) > 20
    for line in lines:
        ended = world.run(line)
        assert faults(line, ended) == [], (str(line), ended)


def ends(**changes: object) -> Ended:
    """The end of a refused command, with changes."""
    ended = Ended(2, "", "error: There is no folder zq; name another.\n", frozenset(), frozenset(), frozenset())
    return ended._replace(**changes)


BROKEN = {
    "a traceback": ends(
        errors="Traceback (most recent call last):\n  x\nerror: There is no folder zq; name another.\n"
    ),
    "no message": ends(errors="a.py: error: unrecognized arguments: a\n"),
    "a message that names nothing": ends(errors="error: There is no such folder; name another.\n"),
    "a message without a remedy": ends(errors="error: There is no folder zq.\n"),
    "a message of unreadable length": ends(errors=f"error: There is no folder zq; name another{'.' * 2100}\n"),
    "words of the interpreter: Errno": ends(errors="error: [Errno 2] zq; name another.\n"),
    "results of a command that failed": ends(output="0.5\n"),
    "exit code 3": ends(code=3),
    "a failure": ends(code=1),
    "messages among the results": ends(code=0, output="warning: x\n"),
    "a library's words": ends(code=0, errors="/a/b.py:3: UserWarning: x\n"),
    "a change outside of the output": ends(created=frozenset({"other"})),
    "a write outside of the world": ends(outside=frozenset({"/etc/passwd"})),
    "an output changed by a command that failed": ends(changed=frozenset({"new/scores.json"})),
    "a part of a file": ends(created=frozenset({"new/.scores.json.x.part"})),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_each_clause_of_the_law_can_be_broken(fault: str) -> None:
    line = CommandLine(
        "score" if fault != "results of a command that failed" else "align", ("run_dir=zq", "out=new"), "in.en"
    )
    assert faults(line, ends()) == []
    assert fault in faults(line, BROKEN[fault])


@pytest.mark.parametrize(
    ("out", "changes", "fault"),
    [
        (".", {"created": {"csv", "csv/1.csv"}}, None),
        ("run/..", {"created": {"csv/1.csv"}}, None),
        (".", {"changed": {"in.en"}}, "a change outside of the output"),
        ("new/below", {"created": {"new", "new/below/1.csv"}}, None),
        ("new", {"created": {"newer"}}, "a change outside of the output"),
        ("/nowhere/x", {"outside": {"/"}}, None),  # the command tried whether it can make the folder
        ("/opt/a/b", {"outside": {"/opt"}}, None),
        ("/opt/a/b", {"outside": {"/etc"}}, "a write outside of the world"),
        ("new", {"outside": {"/"}}, "a write outside of the world"),
        (".", {"outside": {"/home/a"}}, "a write outside of the world"),
        ("../../x", {"outside": {"/home/x"}}, None),
        ("../../x", {"outside": {"/home/a/x"}}, "a write outside of the world"),
        ("'a\"", {"created": {"'a\"", "'a\"/1.csv"}}, None),
        ("'a'", {"created": {"a/1.csv"}}, None),
    ],
)
def test_the_law_knows_the_output(out: str, changes: dict[str, set[str]], fault: str | None) -> None:
    ended = ends(
        code=0, errors="", folder="/home/a/world", **{kind: frozenset(paths) for kind, paths in changes.items()}
    )
    found = faults(CommandLine("draw_attention", ("maps=maps", f"out={out}"), "empty.en"), ended)
    assert found == ([fault] if fault else [])


def test_the_law_knows_the_failures_that_are_documented() -> None:
    line = CommandLine("evaluate", ("run_dir=zq", "-m", "expect=1,2", "out=new"), "empty.en")
    error = "error in expect=1: outside: 0.00 is 1.00 from the expected 1.00, more than 0.50\n"
    assert faults(line, ends(code=1, errors=error)) == []


@pytest.mark.parametrize(("sweep", "found"), [(["-m"], []), ([], ["a change outside of the output"])])
def test_the_law_knows_that_spaces_around_the_values_of_a_sweep_mean_nothing(
    sweep: list[str], found: list[str]
) -> None:
    line = CommandLine("train", (*sweep, "sweep_dir= new"), "empty.en")
    assert faults(line, ends(code=143, errors="", created=frozenset({"new/multirun.yaml"}))) == found


def test_the_law_knows_a_folder_by_its_name() -> None:
    line = CommandLine("download", ("iwslt15", "from=zq/"), "empty.en")
    assert faults(line, ends()) == []


def test_a_command_that_goes_on_and_on_is_stopped_even_before_it_handles_signals(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(name: str) -> None:
        while True:
            time.sleep(0.01)

    monkeypatch.setattr("runpy.run_module", lambda name, **options: wait(name))
    ended = world.run(CommandLine("score", ("run_dir=run",), "empty.en"), seconds=0.1)
    assert (ended.code, faults(CommandLine("score", ("run_dir=run",), "empty.en"), ended)) == (143, [])


def test_the_guards_see_what_a_command_does_outside_of_the_world(world: World, tmp_path: Path) -> None:
    ended = world.run(CommandLine("average", ("run_dir=run", "out=/nowhere/x"), "empty.en"))
    assert ended.code == 2
    assert not Path("/nowhere").exists()
    ended = world.run(CommandLine("average", ("run_dir=run", "out=../../x"), "empty.en"))
    assert (ended.code, faults(CommandLine("average", ("run_dir=run", "out=../../x"), "empty.en"), ended)) == (2, [])
    assert not (world.path / "../../x").exists()
    ended = world.run(CommandLine("score", ("run_dir=run", "source=unreadable.en", "target=in.vi"), "empty.en"))
    assert (ended.code, ended.errors) == (2, "error: Permission denied: unreadable.en. Fix its permissions.\n")
