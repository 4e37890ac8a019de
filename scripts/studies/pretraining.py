"""How much masked pretraining helps a translation model that has few training pairs.

  python -m scripts.studies.pretraining data/envi                hours on one core
  python -m scripts.studies.pretraining data/envi --table-only   only tabulates the finished runs

  A trial of a few minutes, with a folder of its own, because finished runs are kept:
  python -m scripts.studies.pretraining data/envi --seeds 1 --pretrain-steps 40 --steps 20 --out runs/trial

CORPUS is a folder with the files of data=envi. The encoder is pretrained once, on both sides of all training corpora
without their pairing; lines of news_dev and news_test are left out, and news_dev is the validation text. Then a
Transformer is trained on `news` alone, for each seed:

  random      from random weights
  pretrained  from the pretrained encoder, with as many updates
  longer      from random weights, for as long as pretraining and `pretrained` took together

All use the vocabulary of the pretrained encoder. The runs with random weights get it from an encoder that is pretrained
for one step, with the learning rate of the first warm-up step. Finished runs are kept and stopped ones resumed. Prints
a table and writes it to OUT/pretraining.md: BLEU on news_test with its interval, chrF2, the loss per target token on
news_dev, and the seconds of training, including pretraining.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nmt.config.direction import Direction
from nmt.data.detokenized import detokenized
from nmt.errors import Mistake
from nmt.paths import cache_folder, check_folder
from nmt.runs.directory import EncoderDirectory, RunDirectory
from nmt.tables import Table
from scripts.mistakes import report_mistakes
from scripts.studies.sweep import add_circumstances, circumstances, sweep, threads_each, unfinished

CORPORA = ("basic", "alt", "news", "evb")
TOKENIZED = ("evb",)
"""Published as tokens; `data=envi` detokenizes them too."""
ARMS = ("random", "pretrained", "longer")
MODEL = (
    "model.dim=256",
    "model.ffn_dim=1024",
    "model.num_heads=4",
    "model.num_layers=3",
    "model.dropout=0.1",
    "tokenizer=unigram",
    "tokenizer.size=8000",
)
TRAINING = ("optimizer.lr=1.5e-3", "optimizer.betas=[0.9,0.98]", "batching.batch_tokens=2048")
WARMUP = 300


def schedule(steps: int) -> list[str]:
    """A cosine with a warm-up of at most a tenth of the steps; a single step has the rate of the first warm-up step."""
    if steps == 1:
        return ["schedule=constant", f"schedule.warmup={WARMUP}"]
    return ["schedule=cosine", f"schedule.warmup={max(1, min(WARMUP, steps // 10))}"]


def plain_files(corpus: Path, direction: Direction, cache: Path) -> list[str]:
    """Both sides of every training corpus as plain text."""
    prefixes = [
        detokenized(str(corpus / name), direction, cache) if name in TOKENIZED else str(corpus / name)
        for name in CORPORA
    ]
    return [f"{prefix}.{language}" for prefix in prefixes for language in (direction.source, direction.target)]


def as_list(files: Sequence[str]) -> str:
    return f"[{','.join(files)}]"


def pretraining(options: argparse.Namespace, steps: int, seeds: str, files: Sequence[str]) -> list[str]:
    """The overrides with which nmt.pretrain makes an encoder in `steps` steps."""
    languages = (options.direction.source, options.direction.target)
    dev, test = ([str(options.corpus / f"{part}.{code}") for code in languages] for part in ("news_dev", "news_test"))
    every = max(1, min(steps, options.pretrain_steps) // 5)
    return [
        f"data.train={as_list(files)}",
        f"data.valid={as_list(dev)}",
        f"data.exclude={as_list(test)}",
        *MODEL,
        *TRAINING,
        *schedule(steps),
        f"trainer.max_steps={steps}",
        f"validation.every={every}",
        f"cache_dir={options.out / 'cache'}",
        f"seed={seeds}",
        *options.overrides,
    ]


def training(options: argparse.Namespace, arm: str, seeds: str, steps: int) -> list[str]:
    """The overrides with which nmt.train makes the models of an arm. Model and tokenizer come from the encoder."""
    start = "pretrained_encoder" if arm == "pretrained" else "random_encoder_${seed}"
    return [
        "data=files",
        f"direction={options.direction}",
        f"data.train={as_list([str(options.corpus / 'news')])}",
        f"data.valid={options.corpus / 'news_dev'}",
        f"data.test={options.corpus / 'news_test'}",
        "data.tokenized=false",
        f"start_from={options.out / start}",
        *TRAINING,
        *schedule(steps),
        f"trainer.max_steps={steps}",
        f"validation.every={max(1, steps // 10)}",
        "validation.monitor=loss",
        "validation.max_time_fraction=0.01",
        "validation.probes=0",
        f"cache_dir={options.out / 'cache'}",
        f"seed={seeds}",
        *options.overrides,
    ]


def seconds(run: RunDirectory) -> float:
    """The wall time of a run's training, validations included."""
    return float(run.metrics()["wall_time_seconds"])


def longer_steps(options: argparse.Namespace, seed: int) -> int:
    """The number of steps that a run from random weights takes in the time that the encoder and `pretrained` took."""
    encoder, pretrained, random = (
        RunDirectory(options.out / name) for name in ("pretrained_encoder", f"pretrained_{seed}", f"random_{seed}")
    )
    for run in (encoder, pretrained, random):
        if not run.finished:
            raise Mistake(f"{run.path} is not finished: {unfinished(run.path)}")
    return max(1, round(random.metrics()["steps"] * (seconds(encoder) + seconds(pretrained)) / seconds(random)))


def own_runs(options: argparse.Namespace) -> Iterator[RunDirectory]:
    """The run directories of all runs that the study makes."""
    yield EncoderDirectory(options.out / "pretrained_encoder")
    for seed in options.seeds:
        yield EncoderDirectory(options.out / f"random_encoder_{seed}")
        yield from (RunDirectory(options.out / f"{arm}_{seed}") for arm in ARMS)


def make_runs(options: argparse.Namespace, threads: int) -> None:
    """Trains every run that is not finished."""
    cache = cache_folder(str(options.out / "cache"))
    files = plain_files(options.corpus, options.direction, cache)

    seeds = ",".join(map(str, options.seeds))

    def encode(name: str, steps: int, seeds: str) -> None:
        overrides = pretraining(options, steps, seeds, files)
        sweep("nmt.pretrain", options.out, name, overrides, threads, options.jobs)

    def train(arm: str, steps: int, seeds: str) -> None:
        overrides = training(options, arm, seeds, steps)
        sweep("nmt.train", options.out, f"{arm}_${{seed}}", overrides, threads, options.jobs)

    encode("pretrained_encoder", options.pretrain_steps, "1")
    encode("random_encoder_${seed}", 1, seeds)
    train("random", options.steps, seeds)
    train("pretrained", options.steps, seeds)
    for seed in options.seeds:
        train("longer", longer_steps(options, seed), str(seed))


def rows(options: argparse.Namespace) -> Iterator[list[str]]:
    """A row for each finished run, and after each arm its mean."""
    encoder = EncoderDirectory(options.out / "pretrained_encoder")
    for arm in ARMS:
        scores = []
        for seed in options.seeds:
            run = RunDirectory(options.out / f"{arm}_{seed}")
            if not run.finished:
                continue
            metrics = run.metrics()
            bleu, chrf = (_score(metrics, name) for name in ("BLEU", "chrF2"))
            scores.append(bleu["value"])
            before = seconds(encoder) if arm == "pretrained" else 0.0
            low, high = bleu["interval"]
            yield [
                arm,
                str(seed),
                f"{metrics['steps']:,}",
                f"{seconds(run) + before:,.0f}",
                f"{metrics['best']['value']:.3f}",
                f"{bleu['value']:.2f} [{low:.2f}, {high:.2f}]",
                f"{chrf['value']:.2f}",
            ]
        if len(scores) > 1:
            mean = f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f}"
            yield [arm, "mean ± sd", "", "", "", mean, ""]


def _score(metrics: dict[str, Any], name: str) -> dict[str, Any]:
    return next(score for score in metrics["scores"]["test"] if score["name"] == name)


def report(options: argparse.Namespace) -> str:
    """The table and what is needed to reproduce it. Raises Mistake if the encoder is not finished."""
    encoder = EncoderDirectory(options.out / "pretrained_encoder")
    if not encoder.finished:
        raise Mistake(f"{encoder.path} is not finished: {unfinished(encoder.path)}")
    metrics = encoder.metrics()
    score, speed = metrics["scores"]["valid"], metrics["target_tokens_per_second"]
    table = Table(["arm", "seed", "steps", "seconds", "valid loss", "BLEU", "chrF2"], list(rows(options)))
    facts = [
        f"pretraining: {metrics['steps']:,} steps, {seconds(encoder):,.0f} seconds, {speed:,} predicted pieces/s, "
        f"loss {score['loss']:.3f} and accuracy {score['accuracy']:.3f} on news_dev",
        f"command: {metrics['command']}",
        f"commit: {metrics['git_commit']}",
    ]
    return "\n".join([table.markdown(), "", *(f"- {fact}" for fact in facts)])


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="folder with the files of data=envi")
    parser.add_argument(
        "--pretrain-steps", type=int, default=4000, help="updates of the encoder (default: %(default)s)"
    )
    parser.add_argument("--steps", type=int, default=2000, help="updates on news (default: %(default)s)")
    parser.add_argument("--seeds", default="1,2,3", help="comma-separated (default: %(default)s)")
    parser.add_argument("--direction", default="en-vi", help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=Path("runs/pretraining"), help="default: %(default)s")
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="parallel runs; above 1 the times, and so the length of `longer`, are approximate (default: %(default)s)",
    )
    parser.add_argument("--table-only", action="store_true", help="only tabulate the finished runs")
    parser.add_argument(
        "overrides",
        nargs="*",
        help="overrides for every run, of nmt.train and nmt.pretrain, such as trainer.precision=bf16-mixed",
    )
    options = parser.parse_intermixed_args(arguments)
    options.direction = Direction.parse(options.direction)
    try:
        options.seeds = [int(seed) for seed in options.seeds.split(",")]
    except ValueError as error:
        raise Mistake(f"--seeds is '{options.seeds}'; write whole numbers with commas, such as 1,2,3.") from error
    if min(options.steps, options.pretrain_steps) < 1:
        raise Mistake("--steps and --pretrain-steps must be at least 1.")
    return options


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    check_folder("--out", options.out)
    threads = threads_each(options.jobs)
    if not options.table_only:
        kept = all(run.finished for run in own_runs(options))
        make_runs(options, threads)
        if not kept:
            add_circumstances(options.out, "pretraining", arguments, options.jobs)
    text = report(options)
    for made in circumstances(options.out):
        shared = ", so the times of the arms, and the length of `longer`, are approximate" if made["jobs"] > 1 else ""
        parallel = f"{made['jobs']} runs at a time with {made['threads']} threads each{shared}"
        text += f"\n- made by: {made['command']}, {made['cpu']}, {made['date']}, {parallel}"
    (options.out / "pretraining.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    report_mistakes(main, sys.argv[1:])
