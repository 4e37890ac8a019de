"""scripts/studies/serve_clients.py: the verdict on a check, the checks of npm's packages, table and exit code."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from nmt.errors import Mistake
from scripts.server import Server
from scripts.studies import serve_clients as script

TRANSLATED = "Mai bao nhiêu tuổi?"


def fail(message):
    raise RuntimeError(message)


def verdict(action, good):
    [(_, _, found, passed)] = script.tried("client", iter([("check", action, good)]))
    return found, passed


def test_a_check_passes_by_its_result_or_by_the_error_that_it_expects():
    assert verdict(lambda: TRANSLATED, script.is_translated) == (TRANSLATED, True)
    assert verdict(lambda: "", script.is_translated) == ("", False)
    assert verdict(lambda: fail("status 403\nno key"), "403") == ("RuntimeError: status 403 no key", True)
    assert verdict(lambda: fail("status 500"), "403") == ("RuntimeError: status 500", False)
    assert verdict(lambda: fail("403"), script.is_translated)[1] is False
    # An expected error must be raised; it does not count as a result.
    assert verdict(lambda: "403", "403") == ("403", False)
    # A result of another form than expected is a failure of the check, not of the script.
    assert verdict(lambda: [], lambda found: found[0]["language"] == "en")[1] is False
    assert len(verdict(lambda: "x" * 200, script.is_translated)[0]) == 80


def test_a_translation_is_a_new_text_that_keeps_the_name():
    assert script.is_translated(TRANSLATED)
    for text in ("", script.TEXT, "Bao nhiêu tuổi?", None, [TRANSLATED]):
        assert not script.is_translated(text)


@pytest.fixture
def fake_node(tmp_path, monkeypatch):
    """Makes `node` a shell script."""

    def make(text):
        command = tmp_path / "bin" / "node"
        command.parent.mkdir(exist_ok=True)
        command.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        command.chmod(0o755)
        monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")

    return make


def npm(folder):
    checks = script.node(folder, "http://keyed", "http://open")
    return {what: passed for _, what, _, passed in script.tried("npm", checks)}


def test_the_npm_packages_must_translate_and_must_refuse(fake_node, tmp_path):
    translate, refuse = f'echo "{TRANSLATED}"', 'case "$2" in *{}*) echo "{}" >&2; exit 1;; esac'
    wrong_key, no_direction = (
        refuse.format("'key: \"other\"'", "Invalid API key"),
        refuse.format("'to: \"en\"'", "not available"),
    )
    fake_node(f"{wrong_key}\n{no_direction}\n{translate}")
    assert len(npm(tmp_path)) == 5
    assert all(npm(tmp_path).values())
    fake_node(translate)
    assert [what for what, passed in npm(tmp_path).items() if not passed] == [
        "translate: wrong API key",
        "translate: unavailable direction",
    ]
    fake_node("echo 'Cannot find module' >&2; exit 1")
    assert not any(npm(tmp_path).values())


def test_each_package_asks_the_server_that_is_meant_for_it(fake_node, tmp_path):
    """`libretranslate` asks the one without keys, `translate` the one with keys."""
    fake_node('echo "$2"')
    for _, what, found, _ in script.tried("npm", script.node(tmp_path, "http://keyed", "http://open")):
        assert ("libretranslate" in found) == what.startswith("libretranslate")
    written = [action() for _, action, _ in script.node(tmp_path, "http://keyed", "http://open")]
    assert ["http://open" in text for text in written] == [True, True, False, False, False]
    assert ["http://keyed/translate" in text for text in written] == [False, False, True, True, True]


@pytest.fixture
def servers(monkeypatch):
    """No server is started; returns what each was asked to start with, and the keys it would have read."""
    started = []

    @contextmanager
    def server(run, log, *overrides):
        keys = [Path(each.removeprefix("api_keys=")).read_text() for each in overrides]
        started.append((run, keys))
        yield Server(None, f"http://{'keyed' if keys else 'open'}", log)

    monkeypatch.setattr(script, "server", server)
    monkeypatch.setattr(script, "_version", lambda package: "1.2")
    monkeypatch.setattr("sys.argv", ["serve_clients", "runs/demo"])
    return started


def clients(monkeypatch, good):
    for name in ("libretranslatepy", "deep_translator", "deepl"):

        def checks(address):
            yield "translate", lambda: f"{TRANSLATED} {address}", good

        checks.__name__ = name
        monkeypatch.setattr(script, name, checks)


def test_the_table_has_a_row_per_check_and_the_exit_code_says_whether_all_passed(servers, monkeypatch, capsys):
    clients(monkeypatch, script.is_translated)
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert ended.value.code == 0
    assert servers == [(Path("runs/demo"), [f"{script.KEY}\n"]), (Path("runs/demo"), [])]
    assert capsys.readouterr().out.splitlines() == [
        "| client | check | result | |",
        "|---|---|---|---|",
        *(
            f"| {package} 1.2 | translate | {TRANSLATED} http://keyed | passed |"
            for package in ("libretranslatepy", "deep-translator", "deepl")
        ),
    ]
    clients(monkeypatch, "403")
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert ended.value.code == 1
    assert capsys.readouterr().out.count("| FAILED |") == 3


def test_missing_packages_are_named(servers, monkeypatch):
    monkeypatch.setattr(script, "_version", lambda package: "1.2" if package == "deepl" else None)
    with pytest.raises(Mistake, match=r"^Missing packages: pip install libretranslatepy deep-translator$"):
        script.main()
    assert servers == []
