"""The tables of scripts/studies/results.py: one row for each model with a scorer, seeds pooled."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from nmt.tables import mean_and_deviation

SPLITS = ("test", "test_new", "phrases_test")
COLUMNS = ("model", "scorer", *(f"BLEU {split}" for split in SPLITS), "chrF test", "AER test")
COLUMNS += ("parameters", "threads", "target tokens/s", "minutes")
RunRecord = dict[str, Any]


def rows(runs: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """The runs grouped by model and scorer, in order of appearance."""
    pairs = dict.fromkeys((run["model"], run["scorer"]) for run in runs)
    return [[run for run in runs if (run["model"], run["scorer"]) == pair] for pair in pairs]


def cells(runs: Sequence[RunRecord]) -> list[str]:
    """A row of the table. Without a finished run, one cell says why."""
    names = [runs[0]["model"], runs[0]["scorer"]]
    finished = [run for run in runs if "metrics" in run]
    if not finished:
        return [*names, runs[0]["problem"]] + [""] * (len(COLUMNS) - 3)
    bleu = [[_score(run, split, "BLEU") for run in finished] for split in SPLITS]
    chrf = [_score(run, "test", "chrF2") for run in finished]
    aer = [run["scores"].get("test", {}).get("aer", {}).get("value") for run in finished]
    speeds = [run["metrics"]["target_tokens_per_second"] for run in finished]
    minutes = [
        run["metrics"]["target_tokens"] / speed / 60 if speed else None
        for run, speed in zip(finished, speeds, strict=True)
    ]
    return [
        *names,
        *(_pooled(values, ".2f") for values in (*bleu, chrf)),
        _pooled(aer, ".3f"),
        _values(f"{run['metrics']['parameters']:,}" for run in finished),
        _values(made["threads"] for run in finished for made in run["made"]),
        _pooled(speeds, ",.0f", spread=False),
        _pooled(minutes, ".1f", spread=False),
    ]


def by_length(runs: Sequence[RunRecord]) -> list[list[str]]:
    """BLEU on the test split by source length: a header, then one row for each model with a scorer."""
    parts = {
        (part["words"][0], part["words"][1])
        for run in runs
        for part in run.get("scores", {}).get("test", {}).get("by_length", ())
    }
    buckets = sorted(parts, key=lambda words: words[0])
    if not buckets:
        return []
    table = [["model", "scorer", *(f"{low} to {high} words" if high else f"over {low - 1}" for low, high in buckets)]]
    for pair in rows(runs):
        scores = [
            [_length_score(run, bucket) for run in pair if "metrics" in run and run["scores"].get("test")]
            for bucket in buckets
        ]
        if scores[0]:
            table.append([pair[0]["model"], pair[0]["scorer"], *(_pooled(values, ".2f") for values in scores)])
    return table


def report(runs: Sequence[RunRecord]) -> str:
    """The tables, followed by what is needed to reproduce them."""
    finished = [run for run in runs if "metrics" in run]
    made = [record for run in finished for record in run["made"]]
    partly = [run for pair in rows(runs) for run in pair if any("metrics" in record for record in pair)]
    problems = [f"{_name(run)}: {run['problem']}" for run in partly if "problem" in run]
    scores = [score for run in finished for split in run["scores"].values() for score in split["scores"]]
    facts = provenance(made, [run["metrics"] for run in finished], scores) | {
        "Spread": "mean ± standard deviation over seeds" if len(rows(runs)) < len(runs) else "",
        "AER": "0 is perfect, 1 is worst; row, layer and head are chosen on the validation split",
        "Minutes": "of training, without validation",
    }
    tables = [_markdown([list(COLUMNS), *(cells(pair) for pair in rows(runs))])]
    lengths = by_length(runs)
    if lengths:
        tables.append("BLEU on `test` by source length:\n\n" + _markdown(lengths))
    below = [*problems, *(f"- {name}: {fact}" for name, fact in facts.items() if fact)]
    return "\n\n".join([*tables, "\n".join(below)])


def provenance(
    made: Sequence[dict[str, Any]], metrics: Sequence[dict[str, Any]], scores: Sequence[dict[str, Any]]
) -> dict[str, str]:
    """What is needed to reproduce figures, from the records of where runs were made, their metrics and scores."""
    return {
        "Command": _values(f"`{record['command']}`" for record in made),
        "Each run": _values(f"`{record['command']}`" for record in metrics[:1]),
        "Seed": _values(record["seed"] for record in metrics),
        "Direction": _values(record["direction"] for record in metrics),
        "Hardware": _values(f"{record['cpu']}, {record['cores']} cores" for record in made),
        "Parallel": _values(f"{record['jobs']} runs of {record['threads']} threads" for record in made),
        "Date": _values(record["date"] for record in made),
        "Versions": _values(f"{k} {v}" for record in metrics for k, v in record["versions"].items()),
        "Commit": _values(record["git_commit"] for record in metrics),
        "Signatures": _values(f"{score['name']} `{score['signature']}`" for score in scores),
    }


def _name(run: RunRecord) -> str:
    return f"{run['model']} {run['scorer']} seed {run['seed']}"


def _markdown(table: list[list[str]]) -> str:
    lines = [table[0], ["---"] * len(table[0]), *table[1:]]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _pooled(measured: Iterable[float | None], digits: str, spread: bool = True) -> str:
    """The mean of the values, with the standard deviation if `spread`; '' if there are none."""
    values = [value for value in measured if value is not None]
    return str(mean_and_deviation(values if spread else [statistics.fmean(values)] if values else [], digits))


def _score(run: RunRecord, split: str, name: str) -> float | None:
    scores = run["scores"].get(split, {}).get("scores", ())
    return next((score["value"] for score in scores if score["name"] == name), None)


def _length_score(run: RunRecord, bucket: tuple[int, int | None]) -> float | None:
    parts = run["scores"]["test"].get("by_length", ())
    return next((part["value"] for part in parts if tuple(part["words"]) == bucket), None)


def _values(values: Iterable[Any]) -> str:
    """The distinct values, in order of appearance."""
    return ", ".join(dict.fromkeys(str(value) for value in values))
