"""The cost of training data by corpus size: the first and later start-ups, memory, and batches per second."""

import argparse
import multiprocessing
import resource
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config.direction import Direction
from nmt.config.schema import TokenizerSettings
from nmt.data.corpus import check_files, corpus_hashes
from nmt.data.dataset import training_dataset
from nmt.data.drawn_pairs import DrawnPairs
from nmt.data.filters import Filters
from nmt.data.module import StepData
from nmt.data.vocabulary import learned_tokenizers
from nmt.errors import Mistake
from scripts.bench.size_lists import size_list

_WORDS, _MEAN_LENGTH = 20_000, 16
_CHUNK = 100_000
_DIRECTION = Direction("en", "vi")
_BATCH_TOKENS = 4096
_LEAST = 10_000  # lines: a smaller corpus does not have enough distinct words for 8,000 pieces


def made_up(folder: Path, lines: int, seed: int = 1) -> None:
    """Writes a parallel corpus of random words whose frequencies follow Zipf's law."""
    draw = np.random.default_rng(seed)
    for language in ("en", "vi"):
        words = np.array(["".join(letters) for letters in draw.choice(list("abcdeghiklmnoprstuvxy"), (_WORDS, 6))])
        shares = 1 / np.arange(1, _WORDS + 1)
        shares /= shares.sum()
        with (folder / f"train.{language}").open("w", encoding="utf-8") as file:
            for start in range(0, lines, _CHUNK):
                lengths = 1 + draw.poisson(_MEAN_LENGTH - 1, min(_CHUNK, lines - start))
                chosen = words[draw.choice(_WORDS, lengths.sum(), p=shares)]
                file.writelines(f"{' '.join(line)}\n" for line in np.split(chosen, np.cumsum(lengths)[:-1]))


def start(folder: Path, batches: int) -> dict[str, float]:
    """Prepares the data as nmt.train does, in this process, then reads batches."""
    begun = time.perf_counter()
    train, cache = [str(folder / "train")], folder / "cache"
    check_files(train, _DIRECTION, cache)
    corpus_hashes(train, _DIRECTION, cache)
    pair = learned_tokenizers(
        train,
        _DIRECTION,
        TokenizerSettings(kind="unigram", size=8000, joint=True, character_coverage=1.0, tone_marks=None),
        cache,
    )
    rows, _ = training_dataset(train, _DIRECTION, pair, Filters(), [], cache)
    data = StepData(DrawnPairs(rows), [], seed=1, batch_tokens=_BATCH_TOKENS, max_steps=batches)
    loader = iter(data.train_dataloader())
    next(loader)
    started = time.perf_counter()
    tokens = sum(batch.tokens for [batch] in loader)
    seconds = time.perf_counter() - started
    return {
        "pairs": len(rows),
        "seconds_to_first_batch": started - begun,
        "batches_per_second": (batches - 1) / seconds,
        "target_tokens_per_second": tokens / seconds,
        "own_bytes": _own_bytes(),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _own_bytes() -> int:
    """Anonymous memory of this process. Mapped pages of the corpus do not count: the kernel can reclaim them."""
    status = Path("/proc/self/status").read_text(encoding="ascii").split("\n")
    [line] = [line for line in status if line.startswith("RssAnon:")]
    return int(line.split()[1]) * 1024


def measure(sizes: list[int], batches: int, rounds: int) -> dict[str, Any]:
    """Measures for each size the first start-up, which fills the cache, and later ones, each in its own process."""
    context = multiprocessing.get_context("spawn")
    measured = []
    for lines in sizes:
        with tempfile.TemporaryDirectory() as name:
            made_up(Path(name), lines)
            starts = []
            for _ in range(1 + rounds):
                with ProcessPoolExecutor(1, mp_context=context) as pool:
                    starts.append(pool.submit(start, Path(name), batches).result())
        first, *later = starts
        medians = {key: statistics.median(row[key] for row in later) for key in first}
        measured.append({"lines": lines, "first": first, "later": medians})
    return {"sizes": measured, "batches": batches, "rounds": rounds, "batch_tokens": _BATCH_TOKENS}


def table(record: dict[str, Any]) -> str:
    """The measurements as a Markdown table. Bytes per pair are relative to the smallest corpus."""
    smallest = record["sizes"][0]
    header = ["lines", "first start", "its peak memory", "later starts", "own memory", "bytes per pair", "batches/s"]
    header += ["target tokens/s"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for size in record["sizes"]:
        first, later = size["first"], size["later"]
        pairs = later["pairs"] - smallest["later"]["pairs"]
        bytes_per_pair = f"{(later['own_bytes'] - smallest['later']['own_bytes']) / pairs:.1f}" if pairs else ""
        lines.append(
            f"| {size['lines']:,} | {first['seconds_to_first_batch']:,.1f} s | {first['peak_bytes'] / 2**20:,.0f} MiB "
            f"| {later['seconds_to_first_batch']:,.1f} s | {later['own_bytes'] / 2**20:,.0f} MiB | {bytes_per_pair} "
            f"| {later['batches_per_second']:,.0f} | {later['target_tokens_per_second']:,.0f} |"
        )
    return "\n".join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark data`."""
    parser.add_argument(
        "--lines", default="10000,100000", metavar="N,N", help="corpus sizes, ascending (default: %(default)s)"
    )
    parser.add_argument("--batches", type=int, default=500, help="batches to read (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="start-ups after the first (default: %(default)s)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures what the options ask for. Raises Mistake unless the sizes are ascending."""
    sizes = size_list("--lines", options.lines, _LEAST)
    if options.batches < 2 or options.rounds < 1:
        raise Mistake(f"--batches {options.batches} must be at least 2, --rounds {options.rounds} at least 1.")
    return measure(sizes, options.batches, options.rounds)
