"""A command from start to end: arguments as typed -> a validated job -> the command's function -> the exit code."""

import os
import pkgutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

from hydra.core.override_parser.types import Override

from nmt.cli.arguments import HELP, INSPECT, SWEEP, VERSION, flags, for_hydra, inspection
from nmt.cli.compose import choices_and_values, job_of, run_hydra
from nmt.cli.help import group_help, help_text
from nmt.cli.log import log_to_standard_error
from nmt.cli.overrides import parsed
from nmt.cli.settings_class import settings_class
from nmt.cli.sweep import run_sweep
from nmt.config.nodes import CONFIGS
from nmt.errors import Mistake, exit_code
from nmt.paths import check_utf8
from nmt.signals import raise_on_interrupt


def command(
    name: str,
    description: str | None,
    run: str,
    after_sweep: str | None = None,
    run_directory: str | None = None,
    words: str | None = None,
) -> NoReturn:
    """Runs a command with the arguments in sys.argv, and exits.

    `name` is the name of the command's YAML file. `run` names the function that takes the Job, as 'module:function'. It
    is imported only after the arguments have been validated, because importing torch takes seconds and a mistake should
    be reported at once. `after_sweep` names a function that takes the records of a sweep's jobs, the sweep's folder
    (None if it is unknown) and its command; its result is printed when all jobs have ended. `run_directory` names the
    class of the folders that the jobs write, which knows whether a job is finished; the key sweep_dir needs it. If
    `words` is given, arguments without a key are collected in a list under that key.
    """
    limit_cached_shapes()
    limit_spinning()
    if sys.stderr is None:  # closed: errors cannot be printed
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    log_to_standard_error()
    start = partial(
        _run, name, description or "", run, after_sweep=after_sweep, run_directory=run_directory, words=words
    )
    sys.exit(exit_code(start))


def limit_cached_shapes() -> None:
    """Limits the number of shapes for which oneDNN and torch cache code, unless the user has set the limits.

    oneDNN, which multiplies bfloat16 matrices and packed weights on CPUs, generates code for each shape, and batches
    come in many shapes. It caches the code of 1,024 shapes by default, and so does torch's interface to it on x86,
    which takes gigabytes in a long run (docs/lab_notebook.md). The limits are read when torch first uses oneDNN.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    os.environ.setdefault("LRU_CACHE_CAPACITY", "8")


def limit_spinning() -> None:
    """Lets OpenMP's threads sleep soon while they wait for each other, unless the user has set how they wait.

    By default they spin for 300,000 rounds, which are milliseconds. When other programs use the machine, spinning takes
    CPU time away from the thread that is waited for. 10,000 rounds need a third of the CPU time in training there, and
    are no slower on a quiet machine (docs/lab_notebook.md). torch reads the setting when it is imported.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def _run(
    name: str, description: str, run: str, *, after_sweep: str | None, run_directory: str | None, words: str | None
) -> int:
    typed = sys.argv[1:]
    for argument in typed:
        check_utf8(argument)
    options = flags(typed)
    if VERSION in options:
        print(version_text())
        return 0
    # After --help, a word without '=' is the name of a group.
    groups = [word for word in typed if "=" not in word and word[:1] != "-"] if options & HELP and not words else []
    typed = [word for word in typed if word not in groups]
    if options & INSPECT and not options & HELP:
        shown, typed = inspection(typed)
        arguments = for_hydra(typed, settings_class(name), words)
        choices_and_values(name, parsed(name, arguments))  # raises for anything that Hydra would answer in its words
        sys.argv[1:] = [*shown, *arguments]
        run_hydra(name, lambda composed: None)
        return 0
    arguments = for_hydra(typed, settings_class(name), words)
    if options & HELP:
        return _help(name, description, arguments, groups, sweep=bool(options & SWEEP))
    if options & SWEEP:
        raise_on_interrupt()
        return run_sweep(name, run, after_sweep=after_sweep, run_directory=run_directory, arguments=arguments)
    job = job_of(name, arguments, typed)
    function = pkgutil.resolve_name(run)
    raise_on_interrupt()
    function(job)
    return 0


def _help(name: str, description: str, arguments: Sequence[str], groups: Sequence[str], *, sweep: bool) -> int:
    """Prints the help for the choices in the arguments, of the whole command or of the given groups.

    If the arguments are invalid, prints the default help and raises.
    """

    def show(overrides: Sequence[Override]) -> None:
        choices, config = choices_and_values(name, overrides)
        if groups:
            print("\n\n".join(group_help(CONFIGS, name, group, choices, config) for group in groups))
        else:
            print(help_text(CONFIGS, name, description, choices=choices, config=config))

    try:
        overrides = parsed(name, [argument for argument in arguments if not argument.startswith("-")], sweep)
        single = [override for override in overrides if not override.is_sweep_override()]
        choices_and_values(name, single)
    except Mistake:
        show([])
        raise
    show(single)
    return 0


def version_text() -> str:
    """The version of this package and, below it, those of the libraries that matter in a report of a fault."""
    lines = []
    for name in ("nmt-attention", "torch", "lightning", "sacrebleu", "sentencepiece"):
        with suppress(PackageNotFoundError):  # nmt may run without being installed
            lines.append(f"{name.removesuffix('-attention')} {version(name)}")
    return "\n".join(lines)
