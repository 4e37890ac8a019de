"""Translates standard input with a Hugging Face folder that nmt.export wrote, as a system for `benchmark translate`.

python -m scripts.bench.generate FOLDER < in.en > out.vi
python -m scripts.bench.generate FOLDER --pieces 40 < in.en > out.vi    every translation has 40 pieces
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.exports.hugging_face import HuggingFaceModel
from nmt.text.lines import text_lines
from scripts.mistakes import report_mistakes


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pieces", type=int, help="number of pieces of every translation, without EOS")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    options = parser.parse_args(arguments)
    model = HuggingFaceModel(options.folder)
    if options.pieces is not None:
        settings = model.model.generation_config
        settings.max_length = settings.min_length = None
        settings.min_new_tokens = settings.max_new_tokens = options.pieces + 1
    for line in model.translate(list(text_lines(sys.stdin.buffer, "Standard input")), options.batch_tokens):
        print(line)


if __name__ == "__main__":
    report_mistakes(main)
