"""Ablation of a training recipe: a base run, and one run for each part that is changed.

  python -m scripts.studies.ablation experiment=envi_transformer_small trainer.max_steps=1500
  python -m scripts.studies.ablation --parts dropout,bpe --jobs 1 --out runs/two_parts experiment=envi_transformer_small
  python -m scripts.studies.ablation --table-only OVERRIDES      only tabulates the finished runs

Overrides of nmt.train apply to every run, so all runs have the same number of updates. The base run is in OUT/base, the
others are in OUT/PART, and OUT/made.json records where they were trained. Finished runs are kept and stopped ones
resumed. Prints a table and writes it to OUT/ablation.md: test BLEU, best first, the gain over the base and its p-value
(approximate randomization, with Holm's correction), then the parts without a result and the reason. A part that the
base already has or cannot have is not trained.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nmt.cli.compose import configuration
from nmt.config.nodes import Config
from nmt.config.schema import TrainSettings, validated
from nmt.errors import Mistake
from nmt.evaluation.scores import headline_metrics
from nmt.evaluation.significance import approximate_randomization, holm
from nmt.paths import check_folder
from nmt.runs.directory import RunDirectory
from nmt.scoring.score_table import System, run_system, scored_on_tokens
from nmt.tables import PValue, Table
from nmt.training.translation import Translation
from scripts.mistakes import report_mistakes
from scripts.studies import results_report
from scripts.studies.sweep import add_circumstances, circumstances, sweep, threads_each, unfinished

BASE = "base"
PARTS = {
    "seed": ["seed=2"],
    "dropout": ["model.dropout=0.1"],
    "residual_dropout": ["model.dropout_at.residual=0.1"],
    "no_smoothing": ["label_smoothing=0.0"],
    "bpe": ["tokenizer=bpe"],
    "bpe_dropout": ["tokenizer=bpe", "subword_sampling=0.1"],
    "unigram_sampling": ["tokenizer=unigram", "subword_sampling=0.3"],
    "separate": ["tokenizer.joint=false"],
    "word_dropout": ["word_dropout=0.1"],
    "concatenate": ["data.concat_prob=0.1"],
    "temperature": ["data.sampling_temperature=2"],
    "r_drop": ["objective=r_drop", "model.dropout=0.1"],
    "simcut": ["objective=simcut"],
    "post_norm": ["model.norm_first=false"],
    "scale_norm": ["norm@model=scale_norm"],
    "fix_norm": ["model.fix_norm=true"],
    "fix_and_scale_norm": ["model.fix_norm=true", "norm@model=scale_norm"],
    "no_fix_norm": ["model.fix_norm=false"],
    "small": ["initializer=small"],
    "inverse_sqrt": ["schedule=inverse_sqrt"],
    "ema": ["ema_decay=0.999"],
}
"""The overrides of each part. 'seed' repeats the base with another seed, to show the variation by chance."""


def refused(names: Sequence[str], overrides: Sequence[str]) -> dict[str, str]:
    """The parts that will not be trained, and why. Raises Mistake if the base is invalid."""
    base = _composed(overrides)
    if "test" not in validated(TrainSettings, base).data.tests:
        raise Mistake("data.test is not set: an ablation needs a test split to score.")
    reasons: dict[str, str] = {}
    for name in names:
        try:
            if _composed([*overrides, *PARTS[name]]) == base:
                reasons[name] = "already in the base"
        except Mistake as error:
            reasons[name] = str(error)
    return reasons


def _composed(overrides: Sequence[str]) -> Config:
    config = configuration("train", [*overrides, "run_dir=unused"])
    Translation().check_buildable(validated(TrainSettings, config))
    return config


def report(names: Sequence[str], out: Path, without: Mapping[str, str]) -> tuple[Table, dict[str, str]]:
    """The table, and what is needed to reproduce it. `without` says why parts were not trained.

    Finished parts come first, best BLEU first. Raises Mistake if the base is not finished.
    """
    if not RunDirectory(out / BASE).finished:
        raise Mistake(f"{out / BASE} is not finished: {unfinished(out / BASE)}")
    finished = [name for name in names if RunDirectory(out / name).finished]
    systems: list[System] = []
    references: list[list[str]] | None = None
    for name in finished:
        system, references = run_system(out / name, "cpu", "test", {"part": name}, references)
        systems.append(system)
    metric = headline_metrics(scored_on_tokens(systems[0]))["BLEU"]
    _, *uncorrected = approximate_randomization([system.hypotheses for system in systems], references or [], metric)
    p_values = [1.0, *holm(uncorrected)]
    rows = sorted(zip(finished, systems, p_values, strict=True), key=lambda row: -row[1].bleu()[0])
    missing = {name: without.get(name) or f"not finished: {unfinished(out / name)}" for name in names}
    table = Table(
        ["part", "changes", "BLEU", "gain", "p", "chrF2", "target tokens/s"],
        [_cells(name, system, p, systems[0].bleu()[0]) for name, system, p in rows]
        + [[name, _changes(name), why, *[""] * 4] for name, why in missing.items() if name not in finished],
    )
    shown = [score for system in systems for score in system.scores["scores"] if score["name"] in ("BLEU", "chrF2")]
    return table, results_report.provenance(circumstances(out), [system.metrics for system in systems], shown)


def _cells(name: str, system: System, p: float, base: float) -> list[str]:
    value = system.bleu()[0]
    gain = ["", ""] if name == BASE else [f"{value - base:+.2f}", str(PValue(p))]
    chrf = next(score["value"] for score in system.scores["scores"] if score["name"] == "chrF2")
    speed = system.metrics["target_tokens_per_second"]
    return [name, _changes(name), f"{value:.2f}", *gain, f"{chrf:.2f}", f"{speed:,}"]


def _changes(name: str) -> str:
    return f"`{' '.join(PARTS[name])}`" if name in PARTS else ""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the command line."""
    parts = "\n".join(f"  {name:{max(map(len, PARTS)) + 1}} {' '.join(changes)}" for name, changes in PARTS.items())
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=f"parts:\n{parts}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated, from the list below (default: all)")
    parser.add_argument("--out", type=Path, default=Path("runs/ablation"), help="default: %(default)s")
    parser.add_argument(
        "--jobs",
        type=int,
        default=2,
        help="parallel runs; each has OMP_NUM_THREADS threads or an equal share of the cores (default: 2)",
    )
    parser.add_argument("--table-only", action="store_true", help="only tabulate the finished runs")
    parser.add_argument("overrides", nargs="*", help="overrides for every run, such as trainer.max_steps=100")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    asked = list(dict.fromkeys(options.parts.split(",")))
    if unknown := [name for name in asked if name not in PARTS]:
        raise Mistake(f"Unknown part '{unknown[0]}' in --parts; available: {', '.join(PARTS)}.")
    threads = threads_each(options.jobs)
    check_folder("--out", options.out)
    names, without = [BASE, *asked], refused(asked, options.overrides)
    if not options.table_only:
        trained = [name for name in names if name not in without]
        kept = all(RunDirectory(options.out / name).finished for name in trained)

        def train(name: str) -> None:
            sweep("nmt.train", options.out, name, [*options.overrides, *PARTS.get(name, [])], threads)

        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(train, trained))
        if not kept:
            add_circumstances(options.out, "ablation", arguments, options.jobs)
    table, facts = report(names, options.out, without)
    facts["p"] = "approximate randomization over sentences; one run each; corrected for all comparisons (Holm 1979)"
    text = "\n".join([table.markdown(), "", *(f"- {name}: {fact}" for name, fact in facts.items() if fact)])
    (options.out / "ablation.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    report_mistakes(main, sys.argv[1:])
