"""nmt.translate: standard input to standard output, line by line; or files to a folder, in parts."""

import glob
import json
import logging
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nmt.commands.translate_settings import TranslateSettings
from nmt.config.direction import Direction
from nmt.config.job import Job
from nmt.config.keys import leaves
from nmt.config.nodes import choice_names
from nmt.data.cache import content_key, file_digest
from nmt.data.language_checks import foreign_check
from nmt.decoding.ray_cluster import run_on_ray
from nmt.decoding.translatable import UnknownLines
from nmt.decoding.translation_job import JobFile, Shard, open_job, recorded_setting
from nmt.decoding.translator import Translation, Translator
from nmt.errors import Mistake
from nmt.exports.engine_choice import Chosen, check_precision_of_cluster, chosen_engine
from nmt.exports.precision_choice import fastest_precision
from nmt.pace import Pace
from nmt.paths import check_utf8, check_writable, existing_file
from nmt.runs.directory import tokenizer_hashes
from nmt.runs.engine import engine_translator, search_config
from nmt.runs.included import included_models
from nmt.runs.reading import StoredRun, read_run
from nmt.text.compressed import COMPRESSED, compression
from nmt.text.dictionary import NO_DICTIONARY, Dictionary
from nmt.text.lines import text_lines
from nmt.text.pipes import Pipe

logger = logging.getLogger(__name__)


def translate(job: Job[TranslateSettings]) -> None:
    """Translates every line of standard input as soon as possible, or all files of `input`; empty lines stay empty.

    Raises Mistake for a line that is not UTF-8; on standard input, after printing the translations of the lines before
    it.
    """
    settings = job.settings
    _dictionary(settings)  # refused now, before anything is measured or loaded
    if settings.precision == "auto":
        settings = _with_precision(settings)
    if settings.input is None:
        _translate_standard_input(settings)
    elif settings.cluster is None:
        _report(_translate_files(settings))
    else:
        _translate_on_cluster(settings)


def _with_precision(settings: TranslateSettings) -> TranslateSettings:
    """The settings with the precision, and with the engine, that precision=auto chooses."""
    # Measuring may take a minute, so what would be refused afterwards is refused first.
    if settings.input is not None:
        _inputs_by_target(settings)
    elif settings.prefixes is not None:
        existing_file("prefixes", settings.prefixes)
    if settings.output is not None and (precision := recorded_setting(Path(settings.output), "precision")):
        return settings.model_copy(update={"precision": precision})  # _load goes on with the recorded engine
    if settings.input is None and sys.stdin is not None and sys.stdin.isatty():
        # Lines that are typed are translated one at a time, where fewer bits are not always faster.
        return settings.model_copy(update={"precision": "float32"})
    engine, precision = fastest_precision(
        settings.run_dir,
        settings.device,
        settings.engine,
        search=settings.search,
        batch_tokens=settings.batch_tokens,
        workers=settings.workers,
        verbatim=settings.verbatim,
        cache_dir=settings.cache_dir,
        needs_torch=_why_torch(settings),
    )
    return settings.model_copy(update={"engine": engine, "precision": precision})


def _translate_standard_input(settings: TranslateSettings) -> None:
    if sys.stdin is None:
        raise Mistake("Standard input is closed. Give it a file, as in '< in.en', or a pipe.")
    prefix_file = None if settings.prefixes is None else existing_file("prefixes", settings.prefixes)
    (runs, _), translator = _load(settings)
    language = LanguageCheck(runs[0].direction)
    name = "Standard input"
    # Otherwise, a program that waits for each translation before it writes the next line would wait forever.
    pipe = Pipe(sys.stdin.fileno(), name) if Pipe.connected_to(sys.stdin) else None
    lines = language.watch(text_lines(pipe or sys.stdin.buffer, name))
    if prefix_file is None:
        pairs: Iterator[tuple[str, str]] = ((line, "") for line in lines)
    else:
        pairs = _with_prefixes(lines, prefix_file)
    read_ahead = settings.read_ahead
    if sys.stdin.isatty():
        logger.info("Type a line of %s and press Enter to translate it; Ctrl-D ends.", runs[0].direction.source)
        read_ahead = 1  # the user waits for each translation before typing the next line
    rows_of = FORMATS[settings.format]
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    unknown = UnknownLines()
    translated = translator.stream(
        pairs,
        read_ahead=read_ahead,
        paused=pipe.paused if pipe else lambda: False,
        document=settings.document,
    )
    for number, line in enumerate(translated, start=1):
        unknown.note(number, line.unknown_characters)
        for row in rows_of(number, line.translations):
            print(row, flush=True)
    if unknown.lines:
        logger.warning("%s", unknown.warning)


def _translate_on_cluster(settings: TranslateSettings) -> None:
    """Translates the parts that are missing in several processes, and prints the files."""
    if settings.engine == "auto":  # every process must use the same one, on whatever machine it is
        engine = recorded_setting(Path(str(settings.output)), "engine") or "torch"
        settings = settings.model_copy(update={"engine": engine})
    files = _files_of_cluster(settings)
    if any(file.missing() for file in files):
        everywhere = settings.model_copy(
            update={
                "run_dir": [os.path.abspath(name) if os.path.exists(name) else name for name in settings.run_dir],
                "input": [str(file.source.absolute()) for file in files],
                "output": os.path.abspath(str(settings.output)),
                "dictionary": settings.dictionary and os.path.abspath(settings.dictionary),
            }
        )
        run_on_ray(
            partial(_translate_share, everywhere),
            settings.cluster_processes,
            settings.cluster_address,
            gpu=settings.device != "cpu",
        )
    _report(files)


def _translate_share(settings: TranslateSettings, number: int, of: int) -> None:
    """Translates share `number` of `of`; runs in a process of the cluster."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")  # as nmt.cli.log does in a command
    logging.getLogger("nmt").setLevel(logging.INFO)
    _translate_files(settings.model_copy(update={"shard": f"{number}/{of}"}))


def _files_of_cluster(settings: TranslateSettings) -> list[JobFile]:
    """The files of a job that other processes translate. Most mistakes are found here, before any process is started.

    The runs are loaded on the CPU and freed: the GPU, if this machine has one, is for the processes.
    """
    check_precision_of_cluster(settings.engine, settings.device, settings.precision)
    _, _, files = _open_files(settings.model_copy(update={"device": "cpu"}))
    return files


def _inputs_by_target(settings: TranslateSettings) -> dict[str, Path]:
    """The file to translate, by the name of its translation. Raises Mistake for unsuitable files and folders."""
    paths = _input_files(settings.input or [])
    folder = Path(str(settings.output))
    check_writable("output", folder)
    direction = read_run(settings.run_dir[0]).direction
    endings = (f".{direction.target}", ".txt", ".tsv", ".jsonl", ".gz")
    if folder.suffix in endings and not folder.exists():
        mistake = (
            f"output is {folder}, which looks like a file, but it is the folder of the translations: name a folder"
        )
        # Standard input and output are not compressed.
        if len(paths) == 1 and not compression(paths[0]) and not compression(folder):
            words = f"< {shlex.quote(str(paths[0]))} > {shlex.quote(str(folder))}"
            raise Mistake(f"{mistake}, or write instead of input and output: {words}")
        raise Mistake(f"{mistake}.")
    inputs: dict[str, Path] = {}
    for path in paths:
        name = target_name(path, direction, settings.format)
        if name in inputs:
            raise Mistake(f"{inputs[name]} and {path} would both become {name}: rename one, or translate it alone.")
        inputs[name] = path
    return inputs


def _open_files(settings: TranslateSettings) -> tuple[list[StoredRun], Translator, list[JobFile]]:
    """The runs, what translates with them, and the files of the job."""
    inputs = _inputs_by_target(settings)
    chosen, translator = _load(settings)
    made_with = _made_with(chosen, translator, settings)
    files = open_job(Path(str(settings.output)), inputs, made_with, settings.shard_lines, settings.document)
    return chosen.runs, translator, files


def _translate_files(settings: TranslateSettings) -> list[JobFile]:
    """Translates this process's share of the parts that are missing; returns all files of the job."""
    shard = Shard(*settings.share)
    runs, translator, files = _open_files(settings)
    # Other processes finish parts meanwhile, but no two of them have the same share.
    shares = [[index for index in file.missing() if shard.has(file.first_part + index)] for file in files]
    lines = sum(file.lines[index] for file, indices in zip(files, shares, strict=True) for index in indices)
    parts, missing = sum(len(file.lines) for file in files), sum(map(len, shares))
    logger.info(
        "%d part%s, of which this process translates %d (%d line%s). If it is stopped, the same command continues.",
        parts,
        "s" * (parts != 1),
        missing,
        lines,
        "s" * (lines != 1),
    )
    pace = Pace("lines translated")
    for file, indices in zip(files, shares, strict=True):
        line_label = f"{file.source}, line"
        unknown, language = UnknownLines(), LanguageCheck(runs[0].direction, line_label)
        for part in file.read(indices):
            pairs = ((line, "") for line in language.watch(part.lines, part.first_line))
            translated = translator.stream(
                pairs,
                read_ahead=settings.read_ahead,
                document=settings.document,
                first_line=part.first_line,
                line_label=line_label,
            )
            with file.writing(part) as text:
                for number, line in enumerate(translated, start=part.first_line):
                    unknown.note(number, line.unknown_characters)
                    text.writelines(f"{row}\n" for row in FORMATS[settings.format](number, line.translations))
                    pace(1, lines)
        if unknown.lines:
            logger.warning("%s, in the parts that this process translated: %s", file.source, unknown.warning)
        file.join()
    return files


def _report(files: Sequence[JobFile]) -> None:
    """Prints the complete files, and says what is missing of the others."""
    for file in files:
        if missing := len(file.missing()):
            logger.info(
                "%s: parts still missing: %d of %d. They belong to other shards; the last process to finish joins "
                "the parts. If one of the processes has died, the same command without shard= finishes the job.",
                file.target,
                missing,
                len(file.lines),
            )
        else:
            file.join()  # another process may have finished the last part since this one looked
            print(file.target)


def _load(settings: TranslateSettings) -> tuple[Chosen, Translator]:
    begun_with = None
    if settings.engine == "auto" and settings.output is not None:
        begun_with = recorded_setting(Path(settings.output), "engine")
    chosen = chosen_engine(
        settings.run_dir,
        settings.device,
        settings.precision,
        settings.engine,
        search=settings.search,
        cache_dir=settings.cache_dir,
        needs_torch=_why_torch(settings),
        begun_with=begun_with,
    )
    if settings.document:
        chosen.runs[0].require_context("document=true")
    translator = engine_translator(
        chosen.runs[0],
        chosen.engine,
        settings.search,
        settings.batch_tokens,
        max_source_tokens=settings.max_source_tokens,
        minimum_bayes_risk=settings.minimum_bayes_risk,
        dictionary=_dictionary(settings),
        verbatim=settings.verbatim,
        workers=settings.workers,
    )
    return chosen, translator


def _dictionary(settings: TranslateSettings) -> Dictionary:
    if settings.dictionary is None:
        return NO_DICTIONARY
    return Dictionary.load(existing_file("dictionary", settings.dictionary))


def _why_torch(settings: TranslateSettings) -> str | None:
    """What was asked for that only torch can do; None if there is nothing."""
    asked = {
        f"workers={settings.workers}": settings.workers > 1,
        "prefixes": settings.prefixes is not None,
        "document=true": settings.document,
        "minimum_bayes_risk=true": settings.minimum_bayes_risk,
    }
    return next((key for key, is_asked in asked.items() if is_asked), None)


def _input_files(names: Sequence[str]) -> list[Path]:
    """The files of `input`, with patterns such as parts/*.en replaced by the files that match."""
    paths: list[Path] = []
    for name in names:
        if glob.has_magic(name) and not os.path.lexists(name):
            matching = sorted(filter(os.path.isfile, glob.glob(name)))
            if not matching:
                raise Mistake(f"input is {name}, which matches no file; check the pattern.")
            for file in matching:
                check_utf8(file)
            paths += map(Path, matching)
        else:
            paths.append(existing_file("input", name, COMPRESSED))
    return list(dict.fromkeys(paths))


def target_name(source: Path, direction: Direction, format: str) -> str:
    """The name of a translated file: mono.en.gz becomes mono.vi.gz, text.txt becomes text.txt.vi."""
    compressed = compression(source)
    name = source.name.removesuffix(compressed).removesuffix(f".{direction.source}")
    form = "" if format == "text" else f".{format}"
    return f"{name}.{direction.target}{form}{'.gz' if compressed else ''}"


def _made_with(chosen: Chosen, translator: Translator, settings: TranslateSettings) -> dict[str, Any]:
    """Everything on which the translation of a line depends, by the key of the setting."""
    runs = chosen.runs
    weights = [
        content_key([file_digest(run.directory.weights), tokenizer_hashes(run.tokenizers, run.direction)])
        for run in runs
    ]
    search = search_config(runs[0].settings.search, settings.search)
    return {
        "weights": weights,
        "engine": chosen.engine.name,
        "precision": settings.precision,
        "format": settings.format,
        "document": settings.document,
        "minimum_bayes_risk": settings.minimum_bayes_risk,
        "dictionary": translator.dictionary.digest if translator.dictionary else None,
        "verbatim": settings.verbatim,
        "max_source_tokens": translator.max_source_tokens,
        # The classes are named by their settings.
        **{key: value for key, value in leaves(search, "search").items() if "_target_" not in key},
        "search": choice_names().get(str(search["_target_"]), str(search["_target_"])),
    }


class LanguageCheck:
    """Warns about the first line that seems to be in the wrong language; `name` says what its number counts."""

    def __init__(self, direction: Direction, name: str = "Line") -> None:
        self.direction, self.name = direction, name
        self._foreign = foreign_check(direction)

    def watch(self, lines: Iterable[str], first: int = 1) -> Iterator[str]:
        """Yields the lines, of which the first one has the number `first`."""
        for number, line in enumerate(lines, start=first):
            if self._foreign and self._foreign(line):
                source, target = self.direction.source, self.direction.target
                reverse = f"{target}-{source}"
                logger.warning(
                    "%s %d does not look like %s, but this run translates from %s into %s: check the input, or use %s.",
                    self.name,
                    number,
                    source,
                    source,
                    target,
                    f"run_dir={reverse}" if reverse in included_models() else f"a run with direction={reverse}",
                )
                self._foreign = None
            yield line


def _with_prefixes(lines: Iterator[str], file: Path) -> Iterator[tuple[str, str]]:
    """Pairs each line with the prefix on the same line of the file.

    Raises Mistake, after the last pair, if the file has more or fewer lines than the input.
    """
    with file.open("rb") as stream:
        prefixes = text_lines(stream, str(file))
        for line in lines:
            prefix = next(prefixes, None)
            if prefix is None:
                raise Mistake(
                    f"{file} has fewer lines than standard input; write one prefix per line, or an empty line for none."
                )
            yield line, prefix
        if next(prefixes, None) is not None:
            raise Mistake(
                f"{file} has more lines than standard input; write one prefix per line, or an empty line for none."
            )


def _text(number: int, translations: Sequence[Translation]) -> list[str]:
    return [translations[0].text if translations else ""]


def _tsv(number: int, translations: Sequence[Translation]) -> list[str]:
    return [
        f"{number}\t{rank}\t{translation.score:.4f}\t{translation.log_prob:.4f}\t{translation.text}"
        for rank, translation in enumerate(translations, start=1)
    ]


def _jsonl(number: int, translations: Sequence[Translation]) -> list[str]:
    record = {"line": number, "translations": [translation._asdict() for translation in translations]}
    return [json.dumps(record, ensure_ascii=False)]


FORMATS: dict[str, Callable[[int, Sequence[Translation]], list[str]]] = {"text": _text, "tsv": _tsv, "jsonl": _jsonl}
"""What is printed for a line. text: its best translation. tsv: a row for each translation, with the line number, rank,
score, log_prob and text. jsonl: one JSON object with all translations.
"""
