"""Fixtures that tests of several folders share: a tiny corpus, and the real commands, run as a user runs them.

conftest.py loads this plugin in the processes that run tests.
"""

import contextlib
import io
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import disk
import jaxtyping
import pytest
import sampled_checks
import torch
from attention_runs import RUNS, train_all
from forked import Forked, killed, module, signalled_training, with_environment
from jobs import HIERARCHICAL, JOINED
from shared import made_once
from tiny import TINY, write_corpora
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nmt.cli.compose import configuration
from nmt.cli.settings_class import settings_class
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.config.schema import validated

CHECKOUT = Path(__file__).resolve().parents[1]

# Chromium opens two pages of its own for the address bar of each window, which takes longer than most tests; these are
# the first two features. Chromium uses only the last --disable-features, so this list repeats those of Playwright that
# matter: no background requests, no change of http addresses, and no page that is painted late.
SWITCHED_OFF = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "MediaRouter",
    "OptimizationHints",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
)

jaxtyping.config.update("jaxtyping_disable", True)

Start = Callable[..., Forked]
Command = Callable[..., "Ended"]


class Ended(NamedTuple):
    """A command that has ended."""

    code: int
    output: str
    errors: str


@pytest.fixture(scope="session", autouse=True)
def nothing_waits_for_the_disk() -> Iterator[None]:
    """Replaces fsync here; preloaded.py does the same in the commands that are forked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", disk.not_waiting)
        yield


@pytest.fixture
def check_annotations() -> Iterator[None]:
    """The types and sizes of arguments and results are compared with the annotations, see sampled_checks.py."""
    sampled_checks.check_again()
    jaxtyping.config.update("jaxtyping_disable", False)
    yield
    jaxtyping.config.update("jaxtyping_disable", True)


@pytest.fixture(autouse=True)
def check_annotations_of_tensors(request: pytest.FixtureRequest) -> None:
    """Annotations are checked in some folders, except in tests marked as unchecked."""
    if request.path.parent.name in sampled_checks.FOLDERS and not request.node.get_closest_marker("unchecked"):
        request.getfixturevalue("check_annotations")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with train, valid and test."""
    return write_corpora(tmp_path)


@pytest.fixture(scope="session")
def session_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, for what all tests of a session share."""
    return write_corpora(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def start(corpus: Path) -> Iterator[Start]:
    """Starts a command in the corpus folder; what still runs after the test is killed.

    `sent` is a signal and the step of training after which it gets that; `dies` are the arguments of forked.killed.
    `variables` are set in its environment.
    """
    started: list[Forked] = []

    def fork(
        name: str,
        *overrides: str,
        stdin: int | None = None,
        sent: tuple[int, int] | None = None,
        dies: tuple[Any, ...] | None = None,
        variables: dict[str, str] | None = None,
    ) -> Forked:
        program = partial(module, f"nmt.{name}")
        if sent is not None:
            program = partial(signalled_training, f"nmt.{name}", *sent)
        if dies is not None:
            program = partial(killed, f"nmt.{name}", *dies)
        if variables is not None:
            program = partial(with_environment, variables, program)
        started.append(Forked(program, [f"nmt.{name}", *overrides], corpus, stdin))
        return started[-1]

    yield fork
    for process in started:
        process.close()


@pytest.fixture
def command(start: Start) -> Command:
    """Runs a command in the corpus folder to its end."""

    def run(module: str, *overrides: str, text: str = "") -> Ended:
        process = start(module, *overrides, stdin=subprocess.PIPE)
        output, errors = process.communicate(text)
        return Ended(process.wait(), output, errors)

    return run


@pytest.fixture(scope="session")
def tiny() -> Callable[..., list[str]]:
    """The overrides of a tiny training, with changes: double underscores stand for dots."""

    def overrides(**changes: object) -> list[str]:
        # Another schedule has its own settings.
        own = [each for each in TINY if not ("schedule" in changes and each.startswith("schedule."))]
        return [*own, *(f"{key.replace('__', '.')}={value}" for key, value in changes.items())]

    return overrides


@pytest.fixture(scope="session")
def folder(session_corpus: Path, tiny: Callable[..., list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus with runs whose attention is looked at."""
    made = made_once(tmp_path_factory, "maps", lambda folder: train_all(write_corpora(folder), tiny))
    shutil.copytree(made, session_corpus, dirs_exist_ok=True)
    return session_corpus


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of these runs, in its folder."""
    monkeypatch.chdir(folder)
    return f"maps_{request.param}"


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of these runs, as the working folder."""
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="session")
def job(tiny: Callable[..., list[str]]) -> Callable[..., Job]:
    """The job of a command line, composed by Hydra; to be run in the corpus folder."""

    def make(name: str, **changes: object) -> Job:
        written = [f"{key.replace('__', '.')}={value}" for key, value in changes.items()]
        overrides = tiny(**changes) if name in ("train", "prepare") else written
        config = configuration(name, overrides)
        return Job(
            config,
            validated(settings_class(name), config),
            tuple(key.replace("__", ".") for key in changes),
            "python -m nmt.train THE COMMAND",
            None,
        )

    return make


@pytest.fixture(scope="session")
def finished(job: Callable[..., Job], session_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Puts a run of 9 steps into the session's folder; what its training printed."""

    def make(folder: Path) -> None:
        torch.set_num_threads(1)
        output = io.StringIO()
        with contextlib.chdir(write_corpora(folder)), contextlib.redirect_stdout(output):
            train(job("train", trainer__max_steps=9, validation__every=4, validation__probes=3))
        (folder / "printed.txt").write_text(output.getvalue(), encoding="utf-8")

    made = made_once(tmp_path_factory, "finished", make)
    shutil.copytree(made / "run", session_corpus / "run")
    return (made / "printed.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def document_runs(job: Callable[..., Job], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus with boundaries every 5 lines, a sentence model, and document models that continue from it."""

    def make(folder: Path) -> None:
        write_corpora(folder)
        for name in ("train", "valid"):
            lines = len((folder / f"{name}.en").read_text().splitlines())
            (folder / f"{name}.doc").write_text("".join(f"text {line // 5}\n" for line in range(lines)))
        (folder / "test.en").write_text("one two.\nthree.\nfour five.\n")
        (folder / "test.vi").write_text("một hai.\nba.\nbốn năm.\n")
        (folder / "test.doc").write_text("a\na\nb\n")
        torch.set_num_threads(1)
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
            train(job("train", run_dir="sentences", trainer__max_steps=4, validation__every=2))
            train(job("train", run_dir="hierarchical", start_from="sentences", **HIERARCHICAL))
            train(job("train", run_dir="joined", start_from="sentences", **JOINED))

    return made_once(tmp_path_factory, "documents", make)


@pytest.fixture
def corpus_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with train, valid and test for one test, entered."""
    folder = tmp_path / "copy"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return write_corpora(folder)


@pytest.fixture
def trained(finished: str, session_corpus: Path, corpus_copy: Path) -> Path:
    """A copy of the finished run in that folder."""
    return shutil.copytree(session_corpus / "run", corpus_copy / "run")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, for the tests of a page. While it is open, the process has a running event loop."""
    reason = "Playwright is not installed; pip install playwright to test the pages in a browser."
    sync = pytest.importorskip("playwright.sync_api", reason=reason)
    found = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    if not found:
        pytest.skip("No chromium, chromium-browser or google-chrome is on the PATH to test the pages in.")
    arguments = ["--no-sandbox", f"--disable-features={','.join(SWITCHED_OFF)}"]
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found[0], args=arguments)
        yield browser
        browser.close()


class LargestMade(TorchDispatchMode):
    """How many numbers the largest new tensor has of those made under it; a view is none."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        known = {x.untyped_storage().data_ptr() for x in _tensors((args, kwargs))}
        sizes = [x.numel() for x in _tensors(made) if x.untyped_storage().data_ptr() not in known]
        self.numbers = max([self.numbers, *sizes])
        return made


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


@pytest.fixture
def largest_made() -> Callable[[], LargestMade]:
    return LargestMade
