"""The results table: every model with every scorer, trained and scored on the sample corpus.

  python -m scripts.studies.results                        trains what is not finished yet, then writes the table
  python -m scripts.studies.results --models luong --scorers dot,general --seeds 1,2,3 --jobs 1
  python -m scripts.studies.results --out runs/quick trainer.max_steps=100
  python -m scripts.studies.results --table-only           writes the table of the finished runs

Every run has its directory OUT/MODEL_SCORER_seedN and, beside it, OUT/MODEL_SCORER_seedN.log with all that its commands
wrote. A finished run is taken as it is, a stopped one is resumed; overrides of nmt.train at the line's end go to every
run. A row is a pair of model and scorer; of several seeds it shows the mean and the standard deviation.
Writes OUT/results.md and OUT/results.json and prints the table; Ctrl-C stops, and the same command goes on.
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
from nmt.files import check_folder, write_json
from nmt.runs.directory import RunDirectory
from scripts.mistakes import told
from scripts.studies.results_report import SPLITS, report
from scripts.studies.trainings import all_done, circumstances, going_on, last_line, run_logged, threads_each

OWN = ("model", "scorer", "seed", "run_dir")
"""What the options say of a run."""
RESTARTS = ("resume", "overwrite", "batching.batch_tokens", "trainer.accumulate_grad_batches")
"""What else may stand in a run's command beside the overrides; the last two a run changes itself for less memory."""
MODELS = ("bahdanau", "luong", "transformer")
SCORERS = tuple(sorted(path.stem for path in (CONFIGS / "scorer").glob("*.yaml")))


class Pair(NamedTuple):
    """A model with a scorer and a seed: where its run is, what its commands wrote, and where and how it was trained."""

    model: str
    scorer: str
    seed: str
    run: RunDirectory
    log: Path
    made: Path

    def training(self, overrides: Sequence[str]) -> list[str]:
        """The command that begins or goes on with the run."""
        command = [f"model={self.model}", f"scorer={self.scorer}", f"seed={self.seed}"]
        return ["nmt.train", *command, f"run_dir={self.run.path}", *overrides, *going_on(self.run)]

    def scores(self, split: str) -> Path:
        """Where nmt.evaluate writes the scores of a split."""
        return self.run.path / "evaluation" / split / "scores.json"

    def evaluations(self) -> list[list[str]]:
        """The commands that score the splits that have no scores of the present weights."""
        has = self.run.config()["data"]
        done = [
            split
            for split in SPLITS
            if self.scores(split).is_file() and self.scores(split).stat().st_mtime >= self.run.weights.stat().st_mtime
        ]
        missing = [split for split in SPLITS if has.get(split) and split not in done]
        return [["nmt.evaluate", f"run_dir={self.run.path}", f"split={split}"] for split in missing]


def pairs(models: Sequence[str], scorers: Sequence[str], seeds: Sequence[str], out: Path) -> list[Pair]:
    """All runs, in the order of the table."""
    found = []
    for model, scorer, seed in product(models, scorers, seeds):
        path = out / f"{model}_{scorer}_seed{seed}"
        beside = (path.with_name(path.name + end) for end in (".log", ".json"))
        found.append(Pair(model, scorer, seed, RunDirectory(path), *beside))
    return found


def check_line(options: argparse.Namespace) -> None:
    """Raises ValueError for an override of what the options say, and for a seed that is named twice."""
    for override in options.overrides:
        key = override.split("=")[0]
        if key in OWN:
            raise ValueError(f"'{override}' is not for every run; use --models, --scorers, --seeds and --out.")
    seeds = options.seeds.split(",")
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"--seeds {options.seeds} names a seed twice; name each once.")


def check_overrides(rows: Sequence[Pair], overrides: Sequence[str]) -> None:
    """Raises ValueError when a run was begun with other overrides: it would be taken as it is, or gone on with."""
    for pair in rows:
        begun = pair.run.finished or pair.run.last.is_file()
        if not begun or not (stored := pair.run.metrics().get("command")):
            continue
        trained = {part for part in shlex.split(stored)[3:] if part.split("=")[0] not in OWN + RESTARTS}
        if trained != {part for part in overrides if part.split("=")[0] not in RESTARTS}:
            raise ValueError(
                f"{pair.run.path} was begun with {_listed(trained)} and not {_listed(overrides)}; give another --out."
            )


def _listed(overrides: Iterable[str]) -> str:
    return ", ".join(sorted(overrides)) or "no overrides"


def complete(pair: Pair, overrides: Sequence[str], made: dict[str, Any]) -> None:
    """Trains and scores a pair as far as that is still to be done; a command that fails ends it."""
    name = pair.run.path.name
    if not pair.run.finished:
        if not run_logged(name, pair.training(overrides), pair.log, made["threads"]):
            return
        write_json(pair.made, made)
    for command in pair.evaluations():
        if not run_logged(name, command, pair.log, made["threads"]):
            return
    print(f"{name}: done", file=sys.stderr)


def complete_all(rows: Sequence[Pair], overrides: Sequence[str], made: dict[str, Any]) -> None:
    """Completes as many pairs at once as there are jobs."""
    all_done(made["jobs"], [partial(complete, pair, overrides, made) for pair in rows])


def record(pair: Pair) -> dict[str, Any]:
    """A run as plain values: {metrics, scores by split}, or why it has none."""
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
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS), help="default: %(default)s")
    parser.add_argument("--scorers", default=",".join(SCORERS), help="default: %(default)s")
    parser.add_argument("--seeds", default="1", help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=Path("runs/results"), help="default: %(default)s")
    parser.add_argument(
        "--jobs",
        type=int,
        default=2,
        help="runs at once, of OMP_NUM_THREADS threads or an equal share of the cores (default: %(default)s)",
    )
    parser.add_argument("--table-only", action="store_true", help="train and score nothing")
    parser.add_argument("overrides", nargs="*", help="of nmt.train for every run, such as trainer.max_steps=100")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    check_line(options)
    rows = pairs(options.models.split(","), options.scorers.split(","), options.seeds.split(","), options.out)
    threads = threads_each(options.jobs)
    check_folder("--out", options.out)
    if not options.table_only:
        check_overrides(rows, options.overrides)
        complete_all(rows, options.overrides, circumstances("results", arguments, options.jobs, threads))
    records = [record(pair) for pair in rows]
    text = report(records)
    write_json(options.out / "results.json", records)
    (options.out / "results.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    told(main, sys.argv[1:])
