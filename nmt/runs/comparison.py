"""The comparison of systems: their scores in one table with paired significance, and means over seeds."""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nmt.evaluation.score_chart import score_bars
from nmt.evaluation.scores import headline_metrics, sentence_scores
from nmt.evaluation.significance import paired_bootstrap
from nmt.files import write_json
from nmt.runs.evaluation import conditions, evaluate_runs
from nmt.runs.load import Trained, load_run
from nmt.runs.test_sets import TestSet, split_test_set
from nmt.tables import Table, mean_and_deviation

logger = logging.getLogger(__name__)

_NO_DIFFERENCE = 0.05
_OF_ONE_RUN = ("run", "job", "seed")
FIGURES = ("BLEU", "95 % interval", "p", "chrF2", "AER", "perplexity", "parameters", "tokens/s", "sentences/s", "MiB")
"""p: against the first row. Perplexity is per word. Speeds: target tokens in training, source lines in search. MiB: the
most memory of the training process."""


class System(NamedTuple):
    """One row: what tells it apart, its translations, its scores, and further figures where it is a run."""

    settings: dict[str, str]
    hypotheses: list[str]
    scores: dict[str, Any]
    metrics: dict[str, Any]

    def bleu(self) -> tuple[float, float, float]:
        """The headline with its interval."""
        headline = self.scores["scores"][0]
        return headline["value"], *headline["interval"]


def run_system(
    path: Path, device: str, split: str, settings: Mapping[str, str], references: list[list[str]] | None = None
) -> tuple[System, list[list[str]]]:
    """A run as a system, evaluated if it has not been, and its references; the model is not held any longer.

    Raises ValueError and FileNotFoundError as `load_run`, and ValueError when its references are not the given ones.
    """
    run = load_run(path, device)
    test_set = split_test_set(run, split)
    if references is not None and test_set.references != references:
        raise ValueError(
            f"{path} has other references for {split} than the first run: runs compare on one test corpus; translate "
            "the same file with both and compare outputs=[A,B]."
        )
    if not _up_to_date(run, test_set):
        logger.info("Evaluating %s", path)
        evaluate_runs([run], test_set)
    scores = json.loads((test_set.out / "scores.json").read_text(encoding="utf-8"))
    return System(
        dict(settings), _hypotheses(test_set.out / "hypotheses.txt"), scores, run.run.metrics()
    ), test_set.references


def report(
    systems: Sequence[System],
    references: Sequence[Sequence[str]],
    out: Path,
    refused: Mapping[int, Sequence[str]] | None = None,
) -> str:
    """The table as Markdown, with one of means where seeds can be pooled; written to the folder in every form.

    `refused` has further rows by their place in the table: settings, and why there are no figures.
    """
    of_tokens = {"|tok:none|" in system.scores["scores"][0]["signature"] for system in systems}
    if len(of_tokens) > 1:
        raise ValueError(
            "Some of these have BLEU of tokens and others of plain text, which do not compare: compare their "
            "translations, outputs=[A,B] reference=FILE."
        )
    metric = headline_metrics(of_tokens.pop())["BLEU"]
    p_values = paired_bootstrap([system.hypotheses for system in systems], references, metric)
    table = comparison_table(systems, p_values)
    places = list(range(len(systems)))
    for place, row in sorted((refused or {}).items()):
        table.rows.insert(place, list(row))
        places.insert(place, -1)
    parts = [table.markdown()]
    pooled = pooled_table(systems)
    if pooled:
        parts.append("Mean ± standard deviation over seeds:\n\n" + pooled.markdown())
    parts.extend(_notes(systems, {places.index(number) + 1: p for number, p in enumerate(p_values)}))
    text = "\n\n".join(parts)
    out.mkdir(parents=True, exist_ok=True)
    (out / "comparison.md").write_text(text + "\n", encoding="utf-8")
    (out / "comparison.csv").write_text(table.csv(), encoding="utf-8")
    (out / "comparison.tex").write_text(table.latex() + "\n", encoding="utf-8")
    (out / "sentences.csv").write_text(_sentences(systems, references).csv(), encoding="utf-8")
    write_json(out / "comparison.json", [_record(*each) for each in zip(systems, p_values, strict=True)])
    score_bars([_name(system) for system in systems], [system.bleu() for system in systems], out / "comparison.png")
    return text


def comparison_table(systems: Sequence[System], p_values: Sequence[float]) -> Table:
    """A row for each system; columns without any figure are left out."""
    rows = [
        [*system.settings.values(), *figures(system, p if number else None)]
        for number, (system, p) in enumerate(zip(systems, p_values, strict=True))
    ]
    header = [*systems[0].settings, *FIGURES]
    used = [column for column in range(len(header)) if any(row[column] for row in rows)]
    return Table([header[column] for column in used], [[row[column] for column in used] for row in rows])


def figures(system: System, p: float | None) -> list[str]:
    """The cells of a system, in the order of FIGURES; '' where it has none."""
    value, low, high = system.bleu()
    scores, metrics = system.scores, system.metrics
    chrf = next((score["value"] for score in scores["scores"] if score["name"] == "chrF2"), None)
    return [
        f"{value:.2f}",
        f"{low:.2f} to {high:.2f}",
        "" if p is None else f"{p:.3f}",
        _cell(chrf, ".2f"),
        _cell(scores.get("aer", {}).get("value"), ".3f"),
        _cell(_perplexity(system), ".2f"),
        _cell(metrics.get("parameters"), ","),
        _cell(metrics.get("target_tokens_per_second"), ","),
        _cell(scores.get("sentences_per_second"), ".1f"),
        _cell(metrics.get("peak_memory_mib"), ","),
    ]


def _sentences(systems: Sequence[System], references: Sequence[Sequence[str]]) -> Table:
    """chrF of each sentence in each system, in the order of the rows, with the first reference."""
    columns = [sentence_scores(system.hypotheses, references) for system in systems]
    rows = [
        [str(number), *(f"{chrf:.2f}" for chrf in values), reference]
        for number, (values, reference) in enumerate(zip(zip(*columns, strict=True), references[0], strict=True), 1)
    ]
    return Table(["line", *(f"chrF2 of {_name(system)}" for system in systems), "reference"], rows)


def pooled_table(systems: Sequence[System]) -> Table | None:
    """Means over the seeds of equal settings; None where no settings come with two seeds."""
    header = [key for key in systems[0].settings if key not in _OF_ONE_RUN]
    groups: dict[tuple[str, ...], list[System]] = {}
    for system in systems:
        groups.setdefault(tuple(system.settings[key] for key in header), []).append(system)
    if "seed" not in systems[0].settings or all(len(group) == 1 for group in groups.values()):
        return None
    rows = []
    for values, group in groups.items():
        columns = [[system.bleu()[0] for system in group], *_pooled_columns(group)]
        rows.append(
            [
                *values,
                str(len(group)),
                *(
                    mean_and_deviation(column, digits)
                    for column, digits in zip(columns, (".2f", ".2f", ".3f", ".2f"), strict=True)
                ),
            ]
        )
    return Table([*header, "seeds", "BLEU", "chrF2", "AER", "perplexity"], rows)


def _pooled_columns(group: Sequence[System]) -> list[list[float]]:
    chrf = [score["value"] for s in group for score in s.scores["scores"] if score["name"] == "chrF2"]
    aer = [s.scores["aer"]["value"] for s in group if "aer" in s.scores]
    return [chrf, aer, [value for value in map(_perplexity, group) if value is not None]]


def _perplexity(system: System) -> float | None:
    """Per word; None where lines were left out that the others may have counted."""
    found = system.scores.get("perplexity", {})
    return found.get("word") if found.get("lines") == len(system.hypotheses) else None


def _notes(systems: Sequence[System], p_values: Mapping[int, float]) -> list[str]:
    """What the figures are; `p_values` are by the number of the row that is printed."""
    signatures = dict.fromkeys(score["signature"] for system in systems for score in system.scores["scores"][:1])
    notes = [f"BLEU {', '.join(signatures)}"]
    first, *others = p_values
    if others:
        notes.append(f"p: paired bootstrap against row {first}, 1,000 resamples (Koehn 2004).")
    alike = [str(row) for row in others if p_values[row] >= _NO_DIFFERENCE]
    if alike:
        notes.append(f"No difference from row {first} can be told at p < {_NO_DIFFERENCE} in row {', '.join(alike)}.")
    return notes


def _up_to_date(run: Trained, test_set: TestSet) -> bool:
    """Whether the run has been evaluated with its present weights, its own search and this corpus, on this device."""
    scores = test_set.out / "scores.json"
    if not scores.is_file():
        return False
    return json.loads(scores.read_text(encoding="utf-8")).get("made_with") == conditions([run], test_set)["made_with"]


def _hypotheses(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")[:-1]


def _record(system: System, p: float) -> dict[str, Any]:
    return {"settings": system.settings, "p": p, "scores": system.scores, "metrics": system.metrics}


def _name(system: System) -> str:
    """What tells a system apart, its folder or file without a word."""
    parts = [value if key in ("run", "output") else f"{key} {value}" for key, value in system.settings.items()]
    return ", ".join(parts) or "the run"


def _cell(value: Any, digits: str) -> str:
    return "" if value is None else format(value, digits)
