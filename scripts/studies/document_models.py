"""How much document context helps: models of the embedded documents with different contexts.

  python -m scripts.studies.document_models                  trains the missing runs, then prints the table
  python -m scripts.studies.document_models --seeds 1 --steps 100 --more 50    a trial of a few minutes
  python -m scripts.studies.document_models --table-only     only tabulates the finished runs

For each seed, a sentence model is trained. All other models continue from it, with the same number of updates each:

  none         the sentence model itself, trained further
  concatenate  earlier source sentences as part of the source
  encoder, decoder, both   hierarchical attention at these places
  shuffled     `both`, trained on documents whose sentences were shuffled over the corpus

All models have about the same number of sentences per batch. Finished runs are kept, so after Ctrl-C the same command
continues. The table has BLEU on documents_test and the accuracy of `scripts.studies.contrastive_test`, as means and
standard deviations over the seeds.
"""

import argparse
import random
import statistics
from collections.abc import Sequence
from pathlib import Path

from nmt.config.direction import Direction
from nmt.data.corpus import read_aligned
from nmt.data.documents import document_file
from nmt.paths import check_folder
from nmt.runs.directory import RunDirectory
from nmt.runs.load import load_run
from nmt.tables import Cell, Table
from nmt.text.lines import read_lines
from scripts.mistakes import report_mistakes
from scripts.studies.contrastive_test import CORPUS, is_right, read_cases
from scripts.studies.sweep import sweep, threads_each

DIRECTION = Direction("en", "vi")
TRAIN = "sample:documents_train"
SETTINGS = {
    "none": [],
    "concatenate": ["context=concatenate", "batching.batch_tokens=2048"],
    "encoder": ["context=hierarchical_encoder", "batching.batch_tokens=2048"],
    "decoder": ["context=hierarchical_decoder", "batching.batch_tokens=3072"],
    "both": ["context=hierarchical", "batching.batch_tokens=3072"],
    "shuffled": ["context=hierarchical", "batching.batch_tokens=3072"],
}


def shuffled(out: Path) -> str:
    """The PREFIX of the training documents with their pairs in random order, but with the same boundaries."""
    prefix, boundaries = out / "corpus" / "shuffled", document_file(TRAIN, DIRECTION)
    assert boundaries is not None  # part of the embedded corpus
    pairs = list(zip(*read_aligned(TRAIN, DIRECTION), strict=True))
    random.Random(1).shuffle(pairs)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    sides = zip(("en", "vi", "doc"), (*zip(*pairs, strict=True), read_lines(boundaries)), strict=True)
    for ending, lines in sides:
        prefix.with_suffix(f".{ending}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(prefix)


def make_runs(options: argparse.Namespace, threads: int) -> None:
    """Trains what is not finished: for each seed the sentence model, then the models that continue from it."""
    shared, out = ["data=documents", f"seed={options.seeds}"], options.out
    sentence = [f"trainer.max_steps={options.steps}"]
    sweep("nmt.train", out, "sentence_${seed}", [*shared, *sentence], threads, options.jobs)
    shared += [
        f"start_from={out}/sentence_${{seed}}",
        f"trainer.max_steps={options.more}",
        f"validation.every={min(200, options.more)}",
        "optimizer.lr=1e-3",
    ]
    for setting, choices in SETTINGS.items():
        corpus = [f"data.train=[sample:train,{shuffled(out)}]"] if setting == "shuffled" else []
        sweep("nmt.train", out, f"{setting}_${{seed}}", [*shared, *choices, *corpus], threads, options.jobs)


def bleu_of(run: RunDirectory) -> float:
    """BLEU of a finished run on its test split."""
    return float(next(score["value"] for score in run.metrics()["scores"]["test"] if score["name"] == "BLEU"))


def table(out: Path, seeds: Sequence[int]) -> Table:
    """A row for each setting with at least one finished run."""
    cases = read_cases(CORPUS, DIRECTION)
    rows: list[list[Cell]] = []
    for setting in SETTINGS:
        directories = [folder for seed in seeds if (folder := RunDirectory(out / f"{setting}_{seed}")).finished]
        if not directories:
            continue
        loaded = [load_run(folder.path, "cpu") for folder in directories]
        right = [is_right(run, cases, in_context=run.context_window.sentences > 0) for run in loaded]
        accuracies = [100 * sum(cases_right) / len(cases_right) for cases_right in right]
        rows.append(
            [setting, str(len(directories)), spread([bleu_of(folder) for folder in directories]), spread(accuracies)]
        )
    return Table(["context", "seeds", "BLEU", "contrastive accuracy in %"], rows)


def spread(values: Sequence[float]) -> str:
    """The mean, with the standard deviation if there are several values."""
    mean = f"{statistics.mean(values):.1f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.1f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/document_models"))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--steps", type=int, default=1200, help="updates of the sentence model")
    parser.add_argument("--more", type=int, default=500, help="updates of the models that continue from it")
    parser.add_argument("--jobs", type=int, default=1, help="seeds trained at the same time")
    parser.add_argument("--table-only", action="store_true")
    options = parser.parse_args(arguments)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    if not options.table_only:
        threads = threads_each(options.jobs)
        check_folder("--out", options.out)
        make_runs(options, threads)
    print(table(options.out, seeds).markdown())


if __name__ == "__main__":
    report_mistakes(main)
