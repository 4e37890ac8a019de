"""Measure how long a run takes for one sentence at a time, after start-up.

    OMP_NUM_THREADS=2 python -m scripts.bench.single_sentences en-vi data/envi/news_test.en --engine ctranslate2

Prints the median and the 99th percentile in milliseconds. The first sentences, which warm up, are not counted.
"""

import argparse
import statistics
import time
from pathlib import Path

from nmt.cli.command import limit_cached_shapes, limit_spinning

# Before torch is imported, as in nmt's commands.
limit_cached_shapes()
limit_spinning()

# isort: split
import torch  # noqa: E402

from nmt.cores import threads_of_process, usable_cores  # noqa: E402
from nmt.errors import Mistake  # noqa: E402
from nmt.exports.engines import load_with_engine  # noqa: E402
from nmt.paths import existing_file  # noqa: E402
from nmt.runs.search import build_translator  # noqa: E402
from nmt.text.lines import read_lines  # noqa: E402
from scripts.mistakes import report_mistakes  # noqa: E402

_WARM_UP = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_dir")
    parser.add_argument("source", type=Path, help="file of sentences")
    parser.add_argument("--engine", default="torch", help="as of nmt.translate (default: %(default)s)")
    parser.add_argument("--precision", default="float32", help="as of nmt.translate (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=100, help="number of sentences (default: %(default)s)")
    options = parser.parse_args()
    if options.lines < 2:
        raise Mistake(f"--lines is {options.lines}; it must be at least 2.")
    lines = read_lines(existing_file("SOURCE", options.source))[: _WARM_UP + options.lines]
    if len(lines) < _WARM_UP + 2:
        raise Mistake(f"{options.source} has {len(lines)} lines; at least {_WARM_UP + 2} are needed.")
    torch.set_num_threads(threads_of_process(usable_cores()))
    runs, engine = load_with_engine([options.run_dir], "cpu", options.precision, options.engine)
    translator = build_translator(runs, engine=engine)
    milliseconds = []
    for line in lines:
        start = time.perf_counter()
        translator.translate([line])
        milliseconds.append(1000 * (time.perf_counter() - start))
    counted = milliseconds[_WARM_UP:]
    percentile = statistics.quantiles(counted, n=100)[98]
    print(f"{len(counted)} sentences: median {statistics.median(counted):.0f} ms, 99th percentile {percentile:.0f} ms")


if __name__ == "__main__":
    report_mistakes(main)
