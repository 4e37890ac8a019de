"""The results table: every model with every scorer, trained and scored on the sample corpus.

  python -m scripts.studies.results                    trains the missing runs, then writes the table
  python -m scripts.studies.results --models luong --scorers dot,general --seeds 1,2,3 --jobs 1
  python -m scripts.studies.results --out runs/quick trainer.max_steps=100
  python -m scripts.studies.results --table-only       only tabulates the finished runs

Each run is in OUT/MODEL_SCORER_seedN, with the output of its commands in OUT/MODEL_SCORER_seedN.log beside it. Finished
runs are kept and stopped ones resumed, so after Ctrl-C the same command continues. Overrides of nmt.train at the end of
the line apply to every run. Each row is a model with a scorer; with several seeds it has the mean and standard
deviation. Prints the table and writes OUT/results.md and OUT/results.json.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.nodes import CONFIGS
from nmt.errors import Mistake
from nmt.files import check_folder, write_json
from nmt.runs.directory import RunDirectory
from scripts.mistakes import report_mistakes
from scripts.studies.results_report import SPLITS, report
from scripts.studies.trainings import circumstances, last_line, resuming, run_logged, run_parallel, threads_each

OWN = ("model", "scorer", "seed", "run_dir")
"""Keys that are set by this script's own options."""
RESTARTS = ("resume", "overwrite", "batching.batch_tokens", "trainer.accumulate_grad_batches")
"""Keys that may differ from the overrides. A run changes the last two itself when it runs out of memory."""
MODELS = ("bahdanau", "luong", "transformer")
SCORERS = tuple(sorted(path.stem for path in (CONFIGS / "scorer").glob("*.yaml")))


class Pair(NamedTuple):
    """A model with a scorer and a seed: its run, its log, and the record of where and how it was trained."""

    model: str
    scorer: str
    seed: str
    run: RunDirectory
    log: Path
    made: Path

    def training(self, overrides: Sequence[str]) -> list[str]:
        """The command that starts or resumes the run."""
        command = [f"model={self.model}", f"scorer={self.scorer}", f"seed={self.seed}"]
        return ["nmt.train", *command, f"run_dir={self.run.path}", *overrides, *resuming(self.run)]

    def scores(self, split: str) -> Path:
        """The file to which nmt.evaluate writes the scores of a split."""
        return self.run.path / "evaluation" / split / "scores.json"

    def evaluations(self) -> list[list[str]]:
        """The commands that score the splits without up-to-date scores."""
        has = self.run.config()["data"]
        done = [
            split
            for split in SPLITS
            if self.scores(split).is_file() and self.scores(split).stat().st_mtime >= self.run.weights.stat().st_mtime
        ]
        missing = [split for split in SPLITS if has.get(split) and split not in done]
        return [["nmt.evaluate", f"run_dir={self.run.path}", f"split={split}"] for split in missing]


def pairs(models: Sequence[str], scorers: Sequence[str], seeds: Sequence[str], out: Path) -> list[Pair]:
    """All runs, in table order."""
    found = []
    for model, scorer, seed in product(models, scorers, seeds):
        path = out / f"{model}_{scorer}_seed{seed}"
        beside = (path.with_name(path.name + end) for end in (".log", ".json"))
        found.append(Pair(model, scorer, seed, RunDirectory(path), *beside))
    return found


def check_line(options: argparse.Namespace) -> None:
    """Raises Mistake for an override that an option sets, and for a repeated seed."""
    for override in options.overrides:
        key = override.split("=")[0]
        if key in OWN:
            raise Mistake(f"'{override}' cannot be an override; use --models, --scorers, --seeds or --out.")
    seeds = options.seeds.split(",")
    if len(set(seeds)) < len(seeds):
        raise Mistake(f"--seeds {options.seeds} repeats a seed; list each seed once.")


def check_overrides(rows: Sequence[Pair], overrides: Sequence[str]) -> None:
    """Raises Mistake if a run was started with different overrides: it would be kept or resumed."""
    for pair in rows:
        begun = pair.run.finished or (pair.run.checkpoints / "last.ckpt").is_file()
        if not begun or not (stored := pair.run.metrics().get("command")):
            continue
        trained = {part for part in shlex.split(stored)[3:] if part.split("=")[0] not in OWN + RESTARTS}
        if trained != {part for part in overrides if part.split("=")[0] not in RESTARTS}:
            raise Mistake(
                f"{pair.run.path} was started with {_listed(trained)}, not {_listed(overrides)}; choose another --out."
            )


def _listed(overrides: Iterable[str]) -> str:
    return ", ".join(sorted(overrides)) or "no overrides"


def complete(pair: Pair, overrides: Sequence[str], made: dict[str, Any]) -> None:
    """Runs the commands that a pair still needs, until one fails."""
    name = pair.run.path.name
    if not pair.run.finished:
        if not run_logged(name, pair.training(overrides), pair.log, made["threads"]):
            return
        write_json(pair.made, made)
    for command in pair.evaluations():
        if not run_logged(name, command, pair.log, made["threads"]):
            return
    print(f"{name}: done", file=sys.stderr)


def record(pair: Pair) -> dict[str, Any]:
    """A run as plain values: its metrics and its scores by split, or why it has none."""
    row: dict[str, Any] = {"model": pair.model, "scorer": pair.scorer, "seed": pair.seed}
    if not pair.run.finished:
        return {**row, "problem": f"not finished: {last_line(pair.log)}"}
    missing = [command[-1] for command in pair.evaluations()]
    if missing:
        row["problem"] = f"without {', '.join(missing)}: {last_line(pair.log)}"
    found = {split: pair.scores(split) for split in SPLITS if pair.scores(split).is_file()}
    scores = {split: _read(path) for split, path in found.items() if f"split={split}" not in missing}
    made = _read(pair.made) if pair.made.is_file() else None
    return {**row, "metrics": pair.run.metrics(), "scores": scores, "made": made}


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


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
        check_overrides(rows, options.overrides)
        made = circumstances("results", arguments, options.jobs, threads)
        run_parallel(options.jobs, [partial(complete, pair, options.overrides, made) for pair in rows])
    records = [record(pair) for pair in rows]
    text = report(records)
    write_json(options.out / "results.json", records)
    (options.out / "results.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    report_mistakes(main, sys.argv[1:])
