"""What each part of the recipe brings: a base training, and the same again with one part changed.

  python scripts/ablation.py experiment=envi_transformer_small trainer.max_steps=1500
  python scripts/ablation.py --parts dropout,bpe --jobs 1 --out runs/two_parts experiment=envi_transformer_small
  python scripts/ablation.py --table-only experiment=envi_transformer_small     the table of what there is

Overrides of nmt.train go to every training; all have its seed and as many updates. Each has its directory OUT/PART and,
beside it, OUT/PART.log; the base is OUT/base. A finished one is taken as it is, a stopped one is resumed. Prints the
parts with BLEU on the test split, the best first, with what each gains and its p against the base (paired bootstrap),
and writes OUT/ablation.md.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from nmt.evaluation.comparison import paired_bootstrap
from nmt.evaluation.scores import headline_metrics
from nmt.evaluation.tables import Table
from nmt.run.compare import System, run_system
from nmt.run.rundir import RunDirectory
from trainings import all_done, circumstances, going_on, last_line, run_logged

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
    "concatenate": ["batching.concatenate=0.1"],
    "temperature": ["batching.temperature=2"],
    "r_drop": ["objective=r_drop", "model.dropout=0.1"],
    "simcut": ["objective=simcut"],
    "post_norm": ["model.norm_first=false"],
    "scale_norm": ["norm@model.norm=scale_norm"],
    "fix_norm": ["norm@model.norm=scale_norm", "model.fix_norm=true"],
    "small": ["initializer=small"],
    "inverse_sqrt": ["schedule=inverse_sqrt"],
    "ema": ["ema_decay=0.999"],
}
"""Each part's overrides; 'seed' tells how much chance alone does."""


def command(name: str, overrides: Sequence[str], out: Path) -> list[str]:
    """The training of a part, or of the base."""
    return ["nmt.train", *overrides, *PARTS.get(name, []), f"run_dir={out / name}"]


def check_finished(names: Sequence[str], overrides: Sequence[str], out: Path) -> None:
    """Raises ValueError where a finished run was trained by another command: it would be taken as it is."""
    for name in names:
        run = RunDirectory(out / name)
        if not run.finished:
            continue
        trained = set(shlex.split(run.metrics()["command"])[2:]) - {"resume=true", "overwrite=true"}
        if trained != set(command(name, overrides, out)):
            raise ValueError(
                f"{run.path} is finished, and was trained by '{run.metrics()['command']}'; give another --out."
            )


def complete(name: str, overrides: Sequence[str], out: Path, threads: int) -> None:
    """Trains a part as far as that is still to be done."""
    run = RunDirectory(out / name)
    if not run.finished:
        run_logged(name, [*command(name, overrides, out), *going_on(run)], _log(name, out), threads)


def report(names: Sequence[str], out: Path) -> Table:
    """A row for each finished part, the best first, with the base's BLEU and the others' gains over it.

    Raises ValueError where the base is not finished.
    """
    if not RunDirectory(out / BASE).finished:
        raise ValueError(f"{out / BASE} is not finished: {last_line(_log(BASE, out))}")
    finished = [name for name in names if RunDirectory(out / name).finished]
    systems: list[System] = []
    references: list[list[str]] | None = None
    for name in finished:
        system, references = run_system(out / name, "cpu", "test", {"part": name}, references)
        systems.append(system)
    of_tokens = "|tok:none|" in systems[0].scores["scores"][0]["signature"]
    metric = headline_metrics(of_tokens)["BLEU"]
    p_values = paired_bootstrap([system.hypotheses for system in systems], references or [], metric)
    rows = sorted(zip(finished, systems, p_values, strict=True), key=lambda row: -row[1].bleu()[0])
    return Table(
        ["part", "changes", "BLEU", "gain", "p", "chrF2", "target tokens/s"],
        [_cells(name, system, p, systems[0].bleu()[0]) for name, system, p in rows],
    )


def _cells(name: str, system: System, p: float, base: float) -> list[str]:
    value = system.bleu()[0]
    gain = ["", ""] if name == BASE else [f"{value - base:+.2f}", f"{p:.3f}"]
    chrf = next(score["value"] for score in system.scores["scores"] if score["name"] == "chrF2")
    changes = f"`{' '.join(PARTS[name])}`" if name in PARTS else ""
    speed = system.metrics["target_tokens_per_second"]
    return [name, changes, f"{value:.2f}", *gain, f"{chrf:.2f}", f"{speed:,}"]


def _log(name: str, out: Path) -> Path:
    return out / f"{name}.log"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=Path("runs/ablation"), help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at once, which share the cores (default: 2)")
    parser.add_argument("--table-only", action="store_true", help="train nothing")
    parser.add_argument("overrides", nargs="*", help="of nmt.train for every training")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    asked = options.parts.split(",")
    if missing := [name for name in asked if name not in PARTS]:
        raise ValueError(f"--parts names '{missing[0]}'; there are: {', '.join(PARTS)}.")
    names = [BASE, *asked]
    check_finished(names, options.overrides, options.out)
    threads = max(1, (os.cpu_count() or 1) // options.jobs)
    if not options.table_only:
        all_done(options.jobs, [partial(complete, name, options.overrides, options.out, threads) for name in names])
    table = report(names, options.out)
    made = circumstances("ablation.py", arguments, options.jobs, threads)
    text = "\n".join([table.markdown(), "", *(f"- {key}: {value}" for key, value in made.items())])
    (options.out / "ablation.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ValueError as mistake:
        sys.exit(f"error: {mistake}")
