"""Compares systems: a table of scores, a table of means over seeds, and the significance of differences."""

import logging
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nmt.errors import MissingFile, Mistake
from nmt.evaluation.sanity import hypothesis_warnings
from nmt.evaluation.score_chart import score_bars
from nmt.evaluation.scores import RESAMPLES, all_metrics, corpus_scores, headline_metrics, sentence_scores
from nmt.evaluation.significance import TRIALS, approximate_randomization, holm, multi_bootstrap
from nmt.files import read_json, write_json, write_text
from nmt.names import distinct_names
from nmt.paths import existing_file
from nmt.runs.load import load_run
from nmt.scoring.references import warn_of_references
from nmt.scoring.run_scores import HYPOTHESES, SCORES, score_runs, stored_scores
from nmt.scoring.test_sets import split_test_set
from nmt.tables import Cell, Estimate, Number, PValue, Spread, Table, mean_and_deviation
from nmt.text import changed_lines
from nmt.text.lines import read_lines

logger = logging.getLogger(__name__)

_COMPARE_FILES = "Translate the same file with both runs, and compare the translations: 'outputs=[A,B]' reference=FILE."

SIGNIFICANT = 0.05
_NAMES = ("run", "output", "system")
"""Columns that name a row."""
_SCORES = ("BLEU", "chrF2", "TER")
_NOT_IN_PAPERS = ("job", "TER", "parameters", "tokens/s", "sentences/s", "MiB")


class System(NamedTuple):
    """A run or a file of translations, with its scores as in scores.json and, for a run, its metrics."""

    settings: dict[str, str]
    """What distinguishes it from the other systems."""
    hypotheses: list[str]
    scores: dict[str, Any]
    metrics: dict[str, Any]

    def bleu(self) -> tuple[float, float, float]:
        """The headline score with its interval."""
        headline = self.scores["scores"][0]
        return headline["value"], *headline["interval"]

    def name(self) -> str:
        return _name(self.settings) or "the run"


class _Significance(NamedTuple):
    """The p-values of all rows against the first one: of systems or, with several seeds, of groups."""

    uncorrected: Sequence[float]
    corrected: Sequence[float]
    test: str


class SeedGroup(NamedTuple):
    """Systems whose settings are equal except for the seed."""

    settings: dict[str, str]
    systems: list[System]


class Section(NamedTuple):
    """A table of a comparison; on a terminal, its rows are numbered and their settings listed below."""

    caption: str
    table: Table
    figures: Table
    """The table without the settings, with the number of each row instead."""
    rows: Sequence[str]
    """The settings of each row."""


class Comparison(NamedTuple):
    """What is printed about a comparison."""

    sections: Mapping[str, Section]
    """By the names of their files."""
    notes: Sequence[str]
    signatures: Mapping[str, str]
    without_result: Mapping[str, str]
    """The reason why a job has no row."""

    def markdown(self) -> str:
        blocks = [
            block
            for section in self.sections.values()
            for block in (section.caption, section.table.markdown())
            if block
        ]
        blocks += ["\n".join(f"- {name} {signature}" for signature, name in self.signatures.items()), *self.notes]
        if self.without_result:
            blocks += ["Without a result:", "\n".join(f"- {job}: {why}" for job, why in self.without_result.items())]
        return "\n\n".join(blocks)

    def screen(self, width: int) -> str:
        """The comparison for a terminal with this many columns; no label is cut."""

        def wrapped(text: str, first: str = "", rest: str = "") -> str:
            return textwrap.fill(
                text,
                width,
                initial_indent=first,
                subsequent_indent=rest,
                break_long_words=False,
                break_on_hyphens=False,
            )

        blocks = []
        for section in self.sections.values():
            blocks += [block for block in (section.caption, section.figures.screen(width)) if block]
            margin = len(str(len(section.rows))) + 4
            blocks.append(
                "\n".join(
                    wrapped(row, f"  {number}".ljust(margin), " " * margin)
                    for number, row in enumerate(section.rows, 1)
                )
            )
        blocks += [wrapped(note) for note in self.notes]
        for signature, name in self.signatures.items():
            lines = [f"{name}\n  "]
            for field in signature.split("|"):  # the only places where a signature may be broken
                if len(lines[-1].split("\n")[-1]) + len(field) > width:
                    lines.append("  ")
                lines[-1] += f"{field}|"
            blocks.append("\n".join(lines).removesuffix("|"))
        if self.without_result:
            jobs = [wrapped(f"{job}: {why}", "- ", "  ") for job, why in self.without_result.items()]
            blocks += ["Without a result:", "\n".join(jobs)]
        return "\n\n".join(blocks)

    def printed(self) -> str:
        """For standard output: Markdown in files and pipes, and what fits the terminal on one."""
        return self.screen(shutil.get_terminal_size().columns) if sys.stdout.isatty() else self.markdown()


def run_system(
    path: Path,
    device: str,
    split: str,
    settings: Mapping[str, str],
    references: list[list[str]] | None = None,
    *,
    command: str | None = None,
) -> tuple[System, list[list[str]]]:
    """A run as a system, and its references. The run is evaluated unless its scores are up to date.

    `command` is recorded with the scores of an evaluation.

    Raises whatever `load_run` and `split_test_set` raise, and Mistake if the run's references differ from the given
    ones.
    """
    run = load_run(path, device)
    try:
        test_set = split_test_set(run, split)
    except MissingFile as error:
        raise MissingFile(f"{error} {_COMPARE_FILES}") from error
    if references is not None and test_set.references != references:
        raise Mistake(f"The references of {path} for {split} differ from those of the first run. {_COMPARE_FILES}")
    stored = stored_scores(run, test_set)
    if stored is None:
        logger.info("Evaluating %s", path)
        score_runs([run], test_set, command=command)
    hypotheses, scores = stored or (read_lines(test_set.out / HYPOTHESES), read_json(test_set.out / SCORES))
    return System(dict(settings), hypotheses, scores, run.directory.metrics()), test_set.references


def scored_on_tokens(system: System) -> bool:
    """Whether the BLEU of a system is that of the references' own tokens, as its signature says."""
    return "|tok:none|" in system.scores["scores"][0]["signature"]


def reference_files(names: Sequence[str]) -> dict[str, list[str]]:
    """The lines of each reference file. Logs warnings about them, and raises Mistake if a file is missing."""
    references = {}
    for name in names:
        file = existing_file("reference", name)
        references[name] = read_lines(file)
        warn_of_references(file, references[name])
    return references


def file_systems(
    outputs: Sequence[str], references: Mapping[str, Sequence[str]], *, column: str, tokenized: bool
) -> list[System]:
    """Scores files of translations against one or more lists of references, each under the name that an error gives it.

    `column` is the heading for the names of the files. `tokenized` says whether BLEU uses the references' own tokens.
    Raises Mistake if a file is missing, or if a file and a list of references have different numbers of lines.
    """
    all_references = [*references.values()]
    metrics = all_metrics(tokenized)
    systems = []
    for output in [existing_file("outputs", name) for name in outputs]:
        hypotheses = read_lines(output)
        for name, lines in references.items():
            if len(hypotheses) != len(lines):
                raise Mistake(
                    f"{output} has {len(hypotheses)} lines but {name} has {len(lines)}; line n of both must belong "
                    "to the same source line."
                )
        for warning in [
            *hypothesis_warnings(hypotheses, None, all_references[0]),
            *_normalization_warnings(hypotheses),
        ]:
            logger.warning("%s: %s", output, warning)
        scores = {"scores": [score.record() for score in corpus_scores(hypotheses, all_references, metrics)]}
        systems.append(System({column: str(output)}, hypotheses, scores, {}))
    return systems


def _normalization_warnings(lines: Sequence[str]) -> list[str]:
    """A warning if normalization would change any lines: decomposed letters, for example, match no reference."""
    changed, kinds = changed_lines(lines)
    if not changed:
        return []
    return [
        f"Normalization would change {changed} of {len(lines)} lines ({kinds}). That can cost most of the score: "
        "convert the file to NFC and plain spaces."
    ]


def write_comparison(
    systems: Sequence[System],
    references: Sequence[Sequence[str]],
    out: Path,
    without_result: Mapping[str, str] | None = None,
    *,
    command: str | None = None,
    test_set: Mapping[str, Any] | None = None,
) -> Comparison:
    """Compares systems, and writes the comparison to the folder `out` as Markdown, CSV, LaTeX, JSON and a chart.

    If some settings were run with several seeds, p compares settings; otherwise it compares systems. `without_result`
    gives the reason why a job has no row. `command` and `test_set`, the split or the reference files, are recorded.
    Raises Mistake if the BLEU scores are not comparable.
    """
    groups = seed_groups(systems)
    significance = _significance(systems, groups, references)
    corrected = significance.corrected
    sections = {"comparison": system_section(systems, None if groups else corrected)}
    if groups:
        sections["comparison_means"] = means_section(groups, corrected)
    signatures = {
        score["signature"]: score["name"]
        for name in _SCORES
        for system in systems
        for score in system.scores["scores"]
        if score["name"] == name
    }
    notes = _notes(corrected, significance.test)
    if any(len(group.systems) == 1 for group in groups):
        notes.append("A mean of one seed cannot show how much seeds differ: train more seeds before you trust its p.")
    comparison = Comparison(sections, notes, signatures, dict(without_result or {}))
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "comparison.md", comparison.markdown() + "\n")
    if not groups:  # otherwise the means of an earlier comparison would stay
        (out / "comparison_means.csv").unlink(missing_ok=True)
    for name, section in sections.items():
        write_text(out / f"{name}.csv", section.table.csv())
    write_text(
        out / "comparison.tex", "\n\n".join(paper_table(section.table).latex() for section in sections.values()) + "\n"
    )
    write_text(out / "sentences.csv", _sentences(systems, references).csv())
    record = {
        "command": command,
        "test_set": test_set,
        **_record(systems, groups, significance),
        "without_result": comparison.without_result,
    }
    write_json(out / "comparison.json", record)
    score_bars([system.name() for system in systems], [system.bleu() for system in systems], out / "comparison.png")
    return comparison


def _significance(
    systems: Sequence[System], groups: Sequence[SeedGroup], references: Sequence[Sequence[str]]
) -> _Significance:
    """Tests all groups against the first one, or all systems if there are no groups.

    Raises Mistake if the BLEU scores are not comparable.
    """
    of_tokens = {scored_on_tokens(system) for system in systems}
    if len(of_tokens) > 1:
        raise Mistake(
            "Some systems have BLEU on tokens and others BLEU on plain text, which are not comparable. Compare their "
            "translations instead: 'outputs=[A,B]' reference=FILE."
        )
    metric: Any = headline_metrics(of_tokens.pop())["BLEU"]
    if groups:
        outputs = [[system.hypotheses for system in group.systems] for group in groups]
        uncorrected = multi_bootstrap(outputs, references, metric)
        test = f"the multi-bootstrap over sentences and seeds, {RESAMPLES:,} resamples (Sellam et al. 2022)"
    else:
        uncorrected = approximate_randomization([system.hypotheses for system in systems], references, metric)
        test = f"approximate randomization over sentences, {TRIALS:,} trials (Riezler & Maxwell 2005)"
    return _Significance(uncorrected, [1.0, *holm(uncorrected[1:])], test)


def _record(
    systems: Sequence[System], groups: Sequence[SeedGroup], significance: _Significance
) -> dict[str, list[dict[str, Any]]]:
    """What comparison.json says about the systems and, with several seeds, about the means of groups."""
    tests = [*zip(significance.corrected, significance.uncorrected, strict=True)]
    return {
        "systems": [
            {
                "settings": system.settings,
                "p": p,
                "p_uncorrected": uncorrected,
                "scores": system.scores,
                "metrics": system.metrics,
            }
            for system, (p, uncorrected) in zip(
                systems, [(None, None)] * len(systems) if groups else tests, strict=True
            )
        ],
        "means": [
            {
                "settings": group.settings,
                "seeds": len(group.systems),
                "p": p,
                "p_uncorrected": uncorrected,
                **{name: cell.parts() for name, cell in _means(group).items() if not isinstance(cell, str)},
            }
            for group, (p, uncorrected) in zip(groups, tests if groups else [], strict=True)
        ],
    }


def system_section(systems: Sequence[System], p_values: Sequence[float] | None = None) -> Section:
    """One row per system, with its p-value against the first system. Columns without any values are left out."""
    p_cells = ["" for _ in systems] if p_values is None else _p_cells(p_values)
    rows = [(system.settings, _figures(system, p)) for system, p in zip(systems, p_cells, strict=True)]
    return _section("", rows)


def means_section(groups: Sequence[SeedGroup], p_values: Sequence[float]) -> Section:
    """One row per group: its number of seeds, its means, and the p-value of its mean BLEU against the first one's."""
    rows = []
    for group, p in zip(groups, _p_cells(p_values), strict=True):
        means = _means(group)
        seeds = Number(len(group.systems), "d")
        rows.append((group.settings, {"seeds": seeds, "BLEU": means.pop("BLEU"), "p": p, **means}))
    return _section("Mean ± standard deviation over seeds:", rows)


def paper_table(table: Table) -> Table:
    """The table, narrow enough for a page: the last part of each key, without the less useful columns and intervals.

    The other files of a comparison have everything.
    """
    kept = [number for number, name in enumerate(table.header) if name not in _NOT_IN_PAPERS]
    short = [table.header[number].rpartition(".")[2] for number in kept]
    names = [name if short.count(name) == 1 else table.header[number] for name, number in zip(short, kept, strict=True)]
    labels = {number: _labels(table, number) for number in kept if table.header[number] in _NAMES}
    rows = [
        [
            labels[number][str(row[number])] if number in labels else _for_paper(table.header[number], row[number])
            for number in kept
        ]
        for row in table.rows
    ]
    return Table(["PPL" if name == "perplexity" else name for name in names], rows)


def _labels(table: Table, number: int) -> dict[str, str]:
    """A label for each cell of a column of paths: the end of the path, just long enough to differ from the others."""
    paths = list(dict.fromkeys(text for row in table.rows if (text := str(row[number]))))
    return {"": "", **dict(zip(paths, distinct_names([Path(path) for path in paths]), strict=True))}


def _for_paper(name: str, cell: Cell) -> Cell:
    if isinstance(cell, Estimate) and name != "BLEU":
        return Number(cell.value, cell.spec)
    if isinstance(cell, Spread) and name in ("AER", "perplexity"):
        return Number(cell.mean, cell.spec)
    return cell


def seed_groups(systems: Sequence[System]) -> list[SeedGroup]:
    """The systems grouped by their settings other than the seed; empty if no settings were run with several seeds.

    A file of translations, which has no seed, keeps its name and is a group of its own.
    """
    groups: dict[tuple[tuple[str, str], ...], list[System]] = {}
    for system in systems:
        of_one_run = ("job", "seed", *_NAMES) if "seed" in system.settings else ()
        settings = tuple((key, value) for key, value in system.settings.items() if key not in of_one_run)
        groups.setdefault(settings, []).append(system)
    if "seed" not in systems[0].settings or all(len(group) == 1 for group in groups.values()):
        return []
    return [SeedGroup(dict(settings), group) for settings, group in groups.items()]


def _section(caption: str, rows: Sequence[tuple[Mapping[str, str], Mapping[str, Cell]]]) -> Section:
    keys = dict.fromkeys(
        [*(key for settings, _ in rows for key in settings), *(key for _, figures in rows for key in figures)]
    )
    full: list[dict[str, Cell]] = [{**dict.fromkeys(keys, ""), **settings, **figures} for settings, figures in rows]
    header = [key for key in keys if any(row[key] != "" for row in full)]
    measured = [key for key in header if key in rows[0][1]]
    return Section(
        caption,
        Table(header, [[row[key] for key in header] for row in full]),
        Table(
            ["row", *measured],
            [[Number(number, "d"), *(row[key] for key in measured)] for number, row in enumerate(full, 1)],
        ),
        [_name(settings) or "all settings are equal" for settings, _ in rows],
    )


def _name(settings: Mapping[str, str]) -> str:
    parts = [value if key in _NAMES else f"{key} {value}" for key, value in settings.items() if value]
    return ", ".join(parts)


def _p_cells(p_values: Sequence[float]) -> list[Cell]:
    """The cells of the column p, which is empty in the first row because the others are compared with it."""
    return ["", *(PValue(p) for p in p_values[1:])]


def _figures(system: System, p: Cell) -> dict[str, Cell]:
    """The cells of a row. Perplexity is per word. tokens/s counts target tokens in training, sentences/s counts source
    lines in search, and MiB is the peak memory of training.
    """
    scores, metrics = system.scores, system.metrics
    estimates: dict[str, Cell] = {
        score["name"]: Estimate(score["value"], score["interval"][0], score["interval"][1], ".2f")
        for score in scores["scores"]
    }
    bleu, *others = (estimates.get(name, "") for name in _SCORES)
    return {
        "BLEU": bleu,
        "p": p,
        **dict(zip(_SCORES[1:], others, strict=True)),
        "AER": _number(scores.get("aer", {}).get("value"), ".3f"),
        "perplexity": _number(_perplexity(system), ".2f"),
        "parameters": _number(metrics.get("parameters"), ",d"),
        "tokens/s": _number(metrics.get("target_tokens_per_second"), ","),
        "sentences/s": _number(scores.get("sentences_per_second"), ".1f"),
        "MiB": _number(metrics.get("peak_memory_mib"), ","),
    }


def _means(group: SeedGroup) -> dict[str, Cell]:
    scores = [{score["name"]: score["value"] for score in system.scores["scores"]} for system in group.systems]
    columns = {name: [values[name] for values in scores if name in values] for name in _SCORES}
    columns["AER"] = [system.scores["aer"]["value"] for system in group.systems if "aer" in system.scores]
    columns["perplexity"] = [value for value in map(_perplexity, group.systems) if value is not None]
    return {name: mean_and_deviation(values, ".3f" if name == "AER" else ".2f") for name, values in columns.items()}


def _number(value: int | float | None, spec: str) -> Cell:
    return "" if value is None else Number(value, spec)


def _perplexity(system: System) -> float | None:
    """Perplexity per word; None if lines were left out, because the other systems' perplexities may include them."""
    recorded = system.scores.get("perplexity", {})
    return recorded.get("word") if recorded.get("lines") == len(system.hypotheses) else None


def _notes(p_values: Sequence[float], test: str) -> list[str]:
    """What the brackets and p mean, and which rows do not differ significantly from the first one."""
    notes = ["Brackets: 95 % confidence interval."]
    if len(p_values) > 1:
        correction = f", corrected for {len(p_values) - 1} comparisons (Holm 1979)" if len(p_values) > 2 else ""
        notes.append(
            f"p: how often two equally good systems differ in BLEU by at least as much as this row and row 1; by {test}"
            f"{correction}."
        )
    alike = [str(row) for row, p in enumerate(p_values[1:], 2) if p >= SIGNIFICANT]
    if alike:
        rows, verb = (f"Row {alike[0]}", "does") if len(alike) == 1 else (f"Rows {', '.join(alike)}", "do")
        notes.append(
            f"{rows} (counted without the header) {verb} not differ significantly from row 1 (p >= {SIGNIFICANT})."
        )
    return notes


def _sentences(systems: Sequence[System], references: Sequence[Sequence[str]]) -> Table:
    """chrF of each sentence for each system, next to the first reference."""
    columns = [sentence_scores(system.hypotheses, references) for system in systems]
    rows: list[list[Cell]] = [
        [Number(number, "d"), *(Number(round(chrf, 2), ".2f") for chrf in values), reference]
        for number, (values, reference) in enumerate(zip(zip(*columns, strict=True), references[0], strict=True), 1)
    ]
    return Table(["line", *(f"chrF2 of {system.name()}" for system in systems), "reference"], rows)
