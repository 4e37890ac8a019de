"""Bugs planted in a model, in a scorer of one's own and in a command: each ends in a traceback.

The functions are compiled under the names of the files in which they are planted, so that they look like the program's
own lines. tests/serving/test_defects.py does the same in the server.
"""

import importlib
import io
import math
import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.models.base import Seq2Seq
from nmt.signals import STOP_SIGNALS

SCORER = """
import torch

from nmt.attention.scorers import Scorer


class OwnScorer(Scorer):
    def __init__(self, query_dim, key_dim, num_heads):
        super().__init__()
        self.width = {at_first}

    def project_queries(self, queries):
        return queries

    def project_keys(self, keys):
        return keys

    def score(self, queries, keys):
        {later}
        return queries @ keys.transpose(-2, -1)
"""


def planted(place: str, bug: str) -> Callable[..., object]:
    """A function with a bug, compiled as a part of the file of the module `place`."""
    file = importlib.import_module(place).__file__
    assert file is not None
    names: dict[str, Callable[..., object]] = {}
    exec(compile(f"import torch\ndef planted(*_, **__):\n    {bug}\n", file, "exec"), names)
    return names["planted"]


@pytest.fixture
def ended(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Runs a command in this process, where bugs are planted; its exit code and what it writes to standard error."""
    monkeypatch.chdir(corpus)

    def run(name: str, *arguments: str) -> tuple[int, str]:
        handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
        monkeypatch.setattr(sys, "argv", [f"nmt.{name}", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one two.\n")))
        capsys.readouterr()
        try:
            with pytest.raises(SystemExit) as left:
                runpy.run_module(f"nmt.{name}", run_name="__main__")
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return int(left.value.code or 0), capsys.readouterr().err

    return run


def check_shown(ended: tuple[int, str], kind: str, file: str, record: Callable[[str, object], None]) -> None:
    """A traceback that names the file, and exit code 1."""
    code, errors = ended
    record("outcome", f"exit {code}, {'traceback' if 'Traceback' in errors else 'no traceback'}: {errors[-200:]}")
    assert code == 1, errors
    assert "Traceback (most recent call last)" in errors
    assert file in errors
    assert errors.splitlines()[-1] == f"error: {kind}"


@pytest.mark.parametrize(
    ("method", "bug", "kind"),
    [
        ("decode", "hidden, cell = 1, 2, 3", "ValueError"),
        ("annotate", "return dict(zip([1], [1, 2], strict=True))", "ValueError"),
        ("__init__", "torch.nn.Linear(in_feature=3, out_features=4)", "TypeError"),
        ("__init__", "torch.zeros(2, 3) @ torch.zeros(2, 3)", "RuntimeError"),
    ],
    ids=["wrong unpacking", "zip(strict=True)", "misspelled keyword", "tensor shapes"],
)
def test_a_bug_in_a_model_is_shown(
    ended: Callable[..., tuple[int, str]],
    tiny: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    method: str,
    bug: str,
    kind: str,
) -> None:
    place = "nmt.models.transformer"
    monkeypatch.setattr(f"{place}.Transformer.{method}", planted(place, bug))
    check_shown(ended("train", *tiny()), kind, "nmt/models/transformer.py", record_property)


@pytest.mark.parametrize(
    ("at_first", "later", "kind"),
    [
        ("{'width': 3}['wdith']", "", "KeyError"),
        ("None + key_dim", "", "TypeError"),
        ("key_dim", "self.wdith", "AttributeError"),
        ("key_dim", "keys = torch.zeros(2, 3) @ keys.new_zeros(2, 3)", "RuntimeError"),
    ],
    ids=["KeyError", "arithmetic with None", "AttributeError", "tensor shapes"],
)
def test_a_bug_in_a_scorer_of_ones_own_is_shown(
    ended: Callable[..., tuple[int, str]],
    tiny: Callable[..., list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    at_first: str,
    later: str,
    kind: str,
) -> None:
    (tmp_path / "own_scorer.py").write_text(SCORER.format(at_first=at_first, later=later))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_scorer", raising=False)
    result = ended("train", *tiny(), "scorer._target_=own_scorer.OwnScorer")
    check_shown(result, kind, "own_scorer.py", record_property)


@pytest.mark.parametrize(
    ("function", "bug", "kind"),
    [
        ("engine_translator", "open('weights_of_nobody')", "FileNotFoundError"),
        ("foreign_check", "return int('three')", "ValueError"),
    ],
    ids=["a file that nobody named", "int() of a word"],
)
def test_a_bug_in_a_command_is_shown(
    ended: Callable[..., tuple[int, str]],
    trained: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    function: str,
    bug: str,
    kind: str,
) -> None:
    place = "nmt.commands.translate"
    monkeypatch.setattr(f"{place}.{function}", planted(place, bug))
    result = ended("translate", f"run_dir={trained}", "device=cpu")
    check_shown(result, kind, "nmt/commands/translate.py", record_property)


def test_a_model_that_computes_nan_fails_and_its_user_made_no_mistake(
    ended: Callable[..., tuple[int, str]], trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Seq2Seq.step

    def nan(*arguments: Any, **settings: Any) -> object:
        log_probs, state = whole(*arguments, **settings)
        return log_probs.fill_(math.nan), state

    monkeypatch.setattr(Seq2Seq, "step", nan)
    code, errors = ended("translate", f"run_dir={trained}", "device=cpu", "engine=torch")
    assert code == 1, errors
    assert errors.splitlines()[-1].startswith("error: A sentence has no translation, because the model's")


def test_a_module_that_fails_when_it_is_imported_is_shown_and_not_called_missing(
    ended: Callable[..., tuple[int, str]],
    tiny: Callable[..., list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    (tmp_path / "own_scorer.py").write_text("import torch\n\nWIDTHS = torch.wdiths\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_scorer", raising=False)
    result = ended("train", *tiny(), "scorer._target_=own_scorer.OwnScorer")
    check_shown(result, "AttributeError", "own_scorer.py", record_property)
