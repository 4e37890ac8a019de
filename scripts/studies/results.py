"""The results table: every model with every scorer, trained and scored on the sample corpus.

  python -m scripts.studies.results                    trains the missing runs, then writes the table
  python -m scripts.studies.results --models luong --scorers dot,general --seeds 1,2,3 --jobs 1
  python -m scripts.studies.results --out runs/quick trainer.max_steps=100
  python -m scripts.studies.results --table-only       only tabulates the finished runs

Each run is in OUT/MODEL_SCORER_seedN. Finished runs are kept and stopped ones resumed, so after Ctrl-C the same command
continues. Overrides of nmt.train at the end of the line apply to every run. Each row is a model with a scorer; with
several seeds it has the mean and standard deviation. Prints the table and writes OUT/results.md and OUT/results.json.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.nodes import CONFIGS
from nmt.errors import Mistake
from nmt.files import write_json
from nmt.paths import check_folder
from nmt.runs.directory import RunDirectory
from scripts.mistakes import report_mistakes
from scripts.studies.results_report import SPLITS, report
from scripts.studies.sweep import add_circumstances, circumstances, sweep, threads_each, unfinished

OWN = ("model", "scorer", "seed", "run_dir")
"""Keys that are set by this script's own options."""
MODELS = ("bahdanau", "luong", "transformer")
SCORERS = tuple(sorted(path.stem for path in (CONFIGS / "scorer").glob("*.yaml")))


class Pair(NamedTuple):
    """A model with a scorer and a seed, and its run."""

    model: str
    scorer: str
    seed: str
    run: RunDirectory

    def scores(self, split: str) -> Path:
        """The file to which nmt.evaluate writes the scores of a split."""
        return self.run.path / "evaluation" / split / "scores.json"

    def not_scored(self) -> list[str]:
        """The splits of the run without up-to-date scores."""
        data, trained = self.run.config()["data"], self.run.weights.stat().st_mtime
        files = {split: self.scores(split) for split in SPLITS if data.get(split)}
        return [split for split, file in files.items() if not file.is_file() or file.stat().st_mtime < trained]


def pairs(models: Sequence[str], scorers: Sequence[str], seeds: Sequence[str], out: Path) -> list[Pair]:
    """All runs, in table order."""
    rows = product(models, scorers, seeds)
    return [Pair(*row, RunDirectory(out / "{}_{}_seed{}".format(*row))) for row in rows]


def check_line(options: argparse.Namespace) -> None:
    """Raises Mistake for an override that an option sets, and for a repeated seed."""
    for override in options.overrides:
        key = override.split("=")[0]
        if key in OWN:
            raise Mistake(f"'{override}' cannot be an override; use --models, --scorers, --seeds or --out.")
    seeds = options.seeds.split(",")
    if len(set(seeds)) < len(seeds):
        raise Mistake(f"--seeds {options.seeds} repeats a seed; list each seed once.")


def make_runs(options: argparse.Namespace, rows: Sequence[Pair], threads: int) -> None:
    """Trains the runs that are not finished, and scores the splits without up-to-date scores."""
    swept = [f"model={options.models}", f"scorer={options.scorers}", f"seed={options.seeds}"]
    name = "${hydra:runtime.choices.model}_${hydra:runtime.choices.scorer}_seed${seed}"
    sweep("nmt.train", options.out, name, [*swept, *options.overrides], threads, options.jobs)
    for row in rows:
        for split in row.not_scored() if row.run.finished else ():
            arguments = ["nmt.evaluate", f"run_dir={row.run.path}", f"split={split}"]
            subprocess.run([sys.executable, "-m", *arguments], stdout=subprocess.DEVNULL)


def record(pair: Pair, made: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A run as plain values: its metrics and its scores by split, or why it has none."""
    row: dict[str, Any] = {"model": pair.model, "scorer": pair.scorer, "seed": pair.seed}
    if not pair.run.finished:
        return {**row, "problem": f"not finished: {unfinished(pair.run.path)}"}
    missing = pair.not_scored()
    if missing:
        row["problem"] = f"not scored on {', '.join(missing)}"
    files = {split: pair.scores(split) for split in SPLITS if split not in missing}
    scores = {split: json.loads(file.read_text(encoding="utf-8")) for split, file in files.items() if file.is_file()}
    return {**row, "metrics": pair.run.metrics(), "scores": scores, "made": made}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS), help="comma-separated (default: %(default)s)")
    parser.add_argument("--scorers", default=",".join(SCORERS), help="comma-separated (default: %(default)s)")
    parser.add_argument("--seeds", default="1", help="comma-separated (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/results"), help="default: %(default)s")
    parser.add_argument(
        "--jobs",
        type=int,
        default=2,
        help="parallel runs; each has OMP_NUM_THREADS threads or an equal share of the cores (default: %(default)s)",
    )
    parser.add_argument("--table-only", action="store_true", help="only tabulate the finished runs")
    parser.add_argument("overrides", nargs="*", help="overrides for every run, such as trainer.max_steps=100")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    check_line(options)
    rows = pairs(options.models.split(","), options.scorers.split(","), options.seeds.split(","), options.out)
    threads = threads_each(options.jobs)
    check_folder("--out", options.out)
    if not options.table_only:
        kept = all(row.run.finished for row in rows)
        make_runs(options, rows, threads)
        if not kept:
            add_circumstances(options.out, "results", arguments, options.jobs)
    made = circumstances(options.out)
    records = [record(row, made) for row in rows]
    text = report(records)
    write_json(options.out / "results.json", records)
    (options.out / "results.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    report_mistakes(main, sys.argv[1:])
