"""Speed on this machine. Figures of a shared machine are noisy: quote ratios of alternating runs, not one figure.

  python -m scripts.bench.benchmark train --data PREFIX,PREFIX
  python -m scripts.bench.benchmark train --data PREFIX,PREFIX --updates 20 --json speed.json model=luong scorer=general
  python -m scripts.bench.benchmark attention --lengths 16,64,256
  python -m scripts.bench.benchmark parts
  python -m scripts.bench.benchmark viewer
  python -m scripts.bench.benchmark growth --model luong
  python -m scripts.bench.benchmark data --lines 10000,100000,1000000
  python -m scripts.bench.benchmark translate in.en --tokenizer PATH/tokenizer.model \\
    --system 'ours=python -m nmt.translate run_dir=PATH' --system 'other=COMMAND'

`train` measures target tokens a second (EOS counted, padding not) of training steps through the parts of nmt.train: a
Transformer of 3 + 3 layers, width 256, feed-forward 1024, 4 heads; or one recurrent layer of width 512 with embeddings
of 256; a joint unigram vocabulary of 8,000 pieces. Overrides of nmt.train at the end of the line change any of it.
`attention` measures time and memory of every score by length: by the formula, by torch's fused kernel, and the additive
ones as the models compute them.
`parts` measures each part that was made faster, beside the plain way to compute the same.
`growth` measures training steps on made-up batches as the sentences, the vocabulary and the width grow.
`data` measures, on corpora of random words, how long a training takes to start, the memory of its data and the batches
a second that it could be given.
`viewer` measures the page of attention maps in a browser.
`translate` measures whole commands that read a file and write its translation, in alternating rounds.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from nmt.training.loop import quiet
from scripts.bench import (
    attention_cost,
    data_cost,
    growth_cost,
    parts_cost,
    training_cost,
    translation_cost,
    viewer_cost,
)
from scripts.mistakes import told

MODES = {
    "train": (training_cost, "target tokens per second of training steps"),
    "translate": (translation_cost, "sentences per second and memory of whole commands"),
    "attention": (attention_cost, "time and memory of every score by length"),
    "parts": (parts_cost, "each part that was made faster beside the plain way"),
    "data": (data_cost, "start-up, memory and batches per second of the data by its size"),
    "viewer": (viewer_cost, "the page of attention maps: size, opening, changing the sentence"),
    "growth": (growth_cost, "training steps as sentences, vocabulary and width grow"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    for name, (cost, what) in MODES.items():
        mode = modes.add_parser(name, help=what)
        cost.add_arguments(mode)
        mode.add_argument("--json", type=Path, metavar="FILE", help="write the record there too")
    options = parser.parse_args(arguments)
    quiet(leader=True)
    cost, _ = MODES[options.mode]
    record = cost.run(options)
    print(cost.table(record))
    if options.json:
        options.json.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    told(main)
