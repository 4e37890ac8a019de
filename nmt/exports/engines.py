"""The engines that translate in place of torch, and the exports that they keep in the run directory."""

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.data.cache import cached_folder
from nmt.data.corpus import Pairs
from nmt.errors import CheckFailed, MissingFile, Mistake
from nmt.exports.damage import Unsupported
from nmt.exports.engine_options import COMPARED, VERDICT, check_supported
from nmt.exports.export_record import engine_folder
from nmt.exports.export_run import comparison_pairs, export_run, open_kept, write_compared
from nmt.exports.formats import open_engine
from nmt.exports.parity import Differs
from nmt.files import locked, remove_parts, write_json
from nmt.paths import check_writable
from nmt.runs.engine import Engine
from nmt.runs.load import LoadedRun, load_run, load_runs
from nmt.runs.reading import StoredRun

logger = logging.getLogger(__name__)


def load_with_engine(
    paths: Sequence[str | Path], device: str, precision: str, engine: str
) -> tuple[list[LoadedRun], Engine | None]:
    """The runs in these folders, and the engine that translates in place of torch; None for torch itself.

    An engine's export is kept in RUN/exports. It is made if it is missing or damaged, or if the run has changed. Raises
    whatever `load_runs` and `export_run` raise, and Mistake for options that the engine does not support.
    """
    if engine != "torch":
        check_supported(engine, device, precision, len(paths))
    # Engines read the weights in float32 and round them themselves.
    runs = load_runs(paths, "cpu" if engine == "onnx" else device, precision if engine == "torch" else "float32")
    if engine == "torch":
        return runs, None
    [run] = runs
    folder = engine_folder(run.directory, engine, precision)
    opened, _ = open_kept(run, engine, folder, precision)
    if opened is not None:
        return [run], opened
    try:
        check_writable("run_dir", run.directory.results)
    except Mistake as error:
        raise Mistake(
            f"engine={engine} has to export the run to {run.directory.exports} first, but cannot write there: copy the "
            "run to another folder, or use engine=torch."
        ) from error
    with locked(run.directory.exports, wait=True, task=f"exporting {run.directory.path}"):
        remove_parts(run.directory.exports)
        opened, reason = open_kept(run, engine, folder, precision)  # another process may have exported it meanwhile
        if opened is not None:
            return [run], opened
        # Compare on the CPU, because a GPU may multiply at lower precision.
        on_cpu = run if run.device.type == "cpu" else load_run(run.directory.path, "cpu")
        try:
            pairs = comparison_pairs(on_cpu.stored)
        except MissingFile as error:
            raise Mistake(
                f"engine={engine} has to export the run first ({reason}), but its validation corpus is missing "
                f"({error.__cause__}). Export it yourself, and compare it on other sentence pairs: python -m "
                f"nmt.export run_dir={shlex.quote(str(run.directory.path))} format={engine} quantization={precision} "
                f"out={shlex.quote(str(folder))} overwrite=true source=FILE reference=FILE"
            ) from error
        logger.info("Exporting %s to %s: %s", run.directory.path, folder, reason)
        try:
            logger.info("%s", export_run(on_cpu, engine, folder, precision, pairs))
        except (Mistake, CheckFailed) as error:
            raise type(error)(f"{error} To translate without an export, use engine=torch.") from error
        return [run], open_engine(run, engine, folder, precision)


def export_checked(run: StoredRun, folder: Path) -> None:
    """Exports a run for CTranslate2 to a folder of the cache, if both find the same translations of a few sentences.

    Else the folder only says why not. A failure that says nothing about the model is raised, and not kept.
    """
    on_cpu = load_run(run.directory.path, "cpu")
    try:
        sources, references = comparison_pairs(on_cpu.stored)
    except MissingFile as error:
        raise MissingFile(
            "CTranslate2 has to be compared with torch first, but the validation corpus is missing "
            f"({error.__cause__}). Score sentence pairs of your own once, and they are used instead: python -m "
            f"nmt.evaluate run_dir={shlex.quote(str(run.directory.path))} source=FILE reference=FILE"
        ) from error
    pairs = Pairs(sources[:COMPARED], references[:COMPARED])
    logger.info("Checking once whether CTranslate2 translates like torch with %s", run.directory.path)

    def fill(part: Path) -> None:
        verdict: dict[str, Any]
        try:
            parity = write_compared(on_cpu, "ctranslate2", part, "float32", pairs)
        except Unsupported as error:
            verdict = {"unsupported": error.limit}  # not the message, because runs with equal weights share the folder
        except Differs as error:  # anything else may pass
            verdict = {"refused": str(error).removesuffix(" Nothing was written.").rstrip(".")}
        else:
            verdict = {"parity": parity._asdict()}
            if unequal := parity.sentences - round(parity.equal_translations * parity.sentences):
                verdict = {"refused": f"they translate {unequal} of {parity.sentences} sentences differently"}
        if "parity" not in verdict:
            for file in part.iterdir():
                file.unlink()
        write_json(part / VERDICT, verdict)

    cached_folder(folder, fill, f"exporting {run.directory.path}")
