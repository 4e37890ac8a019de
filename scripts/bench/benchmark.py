"""Measure speed on this machine. On a shared machine, quote ratios of alternating rounds, not single figures.

  python -m scripts.bench.benchmark train --data PREFIX,PREFIX
  python -m scripts.bench.benchmark train --data PREFIX,PREFIX --updates 20 --json speed.json model=luong scorer=general
  python -m scripts.bench.benchmark shapes --data PREFIX,PREFIX
  python -m scripts.bench.benchmark attention --lengths 16,64,256
  python -m scripts.bench.benchmark parts
  python -m scripts.bench.benchmark viewer
  python -m scripts.bench.benchmark growth --model luong
  python -m scripts.bench.benchmark data --lines 10000,100000,1000000
  python -m scripts.bench.benchmark translate in.en --tokenizer PATH/tokenizer.model \\
    --system 'ours=python -m nmt.translate run_dir=PATH' --system 'other=COMMAND'
  python -m scripts.bench.benchmark lab runs/demo data/sample/test.en --words 12
  python -m scripts.bench.benchmark serve runs/demo data/sample/test.en --plain

`train` measures target tokens per second (including EOS, excluding padding) of training steps. The default is a
Transformer with 3 + 3 layers, width 256, feed-forward width 1,024 and 4 heads; the recurrent models have one layer of
width 512 and embeddings of 256. All have a joint unigram vocabulary of 8,000 pieces. Append overrides of nmt.train to
change any of this.
`shapes` compares training steps on batches of new shapes with steps on known ones, with the same models.
`attention` measures time and memory of every scorer by sequence length: the formula, torch's fused kernel where there
is one, and the blockwise additive score.
`parts` compares each optimized part with a plain implementation of the same computation.
`growth` measures training steps on random batches as sentence length, vocabulary and model width grow.
`data` measures start-up time, data memory and batches per second on corpora of random words.
`viewer` measures the page of attention maps in a browser.
`translate` measures whole translation commands, ours and others', in alternating rounds.
`lab` measures the lab's page in a browser: how long until a translation, its map, and the result of a change.
`serve` measures the server with several numbers of clients, beside nmt.translate.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from nmt.cli.command import limit_cached_shapes, limit_spinning

limit_spinning()  # before torch is imported, as in nmt's commands

# isort: split
from nmt.training.machine import quiet  # noqa: E402
from scripts.bench import (  # noqa: E402
    attention_cost,
    data_cost,
    growth_cost,
    lab_cost,
    parts_cost,
    serving,
    shape_cost,
    training_cost,
    translation_cost,
    viewer_cost,
)
from scripts.mistakes import report_mistakes  # noqa: E402

MODES = {
    "train": (training_cost, "target tokens per second during training"),
    "shapes": (shape_cost, "training steps on batches of new shapes, compared with known ones"),
    "translate": (translation_cost, "sentences per second and memory of whole translation commands"),
    "attention": (attention_cost, "time and memory of every scorer by sequence length"),
    "parts": (parts_cost, "each optimized part beside a plain implementation"),
    "data": (data_cost, "start-up time, memory and batches per second by corpus size"),
    "viewer": (viewer_cost, "the page of attention maps: size, time to open, time to change the sentence"),
    "lab": (lab_cost, "the lab's page: time until the first word, the translation, its map, the result of a change"),
    "serve": (serving, "the server under load: throughput, latency, memory"),
    "growth": (growth_cost, "training steps as sentence length, vocabulary and width grow"),
}

COMPUTING = ("train", "shapes", "attention", "parts", "growth")
"""The modes that compute with torch themselves, as nmt's commands do; other modes start commands or a server."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    for name, (measurement, summary) in MODES.items():
        mode = modes.add_parser(name, help=summary)
        measurement.add_arguments(mode)
        mode.add_argument("--json", type=Path, metavar="FILE", help="also write the measurements to this file")
    options = parser.parse_args(arguments)
    if options.mode in COMPUTING:
        limit_cached_shapes()
    quiet(leader=True)
    measurement, _ = MODES[options.mode]
    record = measurement.run(options)
    if options.json:
        options.json.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(measurement.table(record))


if __name__ == "__main__":
    report_mistakes(main)
