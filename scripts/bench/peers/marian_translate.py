"""Translates standard input with Marian, in an environment that has pymarian; see README.md.

python marian_translate.py MODEL_FOLDER PROCESSES < in.en > out.vi
python marian_translate.py MODEL_FOLDER PROCESSES --pieces 40 < in.en > out.vi    every translation has 40 pieces

Processes of one thread share batches of 64 sentences of similar length. Each batch gets its own translator, because
a translator of `transformer-new` translates only its first batch correctly: afterwards some translations no longer
depend on their source.

Marian has no minimum length. With --pieces, a bias forbids EOS, and Marian stops at --max-length-factor times the
length of a batch's longest source.
"""

import argparse
import itertools
import multiprocessing
import sys
import tempfile
import unicodedata
from pathlib import Path

import numpy as np
import pymarian
import sentencepiece

BATCH = 64


def translate(model: Path, vocabulary: Path, length_factor: float, lines: list[str]) -> list[str]:
    translator = pymarian.Translator(
        f"--models {model} --vocabs {vocabulary} {vocabulary} --beam-size 5 --normalize 0.6 --mini-batch {BATCH} "
        f"--maxi-batch 100 --maxi-batch-sort src --max-length 150 --max-length-crop "
        f"--max-length-factor {length_factor} --cpu-threads 1 --quiet"
    )
    return translator.translate("\n".join(lines)).split("\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("processes", type=int)
    parser.add_argument("--pieces", type=int, help="number of pieces of every translation, without EOS")
    options = parser.parse_args()
    model, vocabulary = options.folder / "model.npz", options.folder / "vocab.spm"
    # As nmt.text.normalize does: NFC, single plain spaces.
    lines = [unicodedata.normalize("NFC", " ".join(line.split())) for line in sys.stdin]
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary))
    lengths = [len(tokenizer.encode(line)) + 1 for line in lines]
    order = sorted(range(len(lines)), key=lengths.__getitem__)
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool(options.processes) as pool:
        batches = [order[first : first + BATCH] for first in range(0, len(order), BATCH)]
        factors = [3.0] * len(batches)
        if options.pieces is not None:
            # The half makes up for rounding: the search stops at the first length above the product.
            factors = [(options.pieces - 0.5) / lengths[batch[-1]] for batch in batches]
            with np.load(model) as file:
                weights = dict(file)
            weights["decoder_ff_logit_out_b"][0, tokenizer.eos_id()] = -1e9
            model = Path(folder) / "model.npz"
            np.savez(model, **weights)
        tasks = [
            (model, vocabulary, factor, [lines[index] for index in batch])
            for factor, batch in zip(factors, batches, strict=True)
        ]
        translations = itertools.chain(*pool.starmap(translate, tasks, chunksize=1))
    found = dict(zip(order, translations, strict=True))
    for index in range(len(lines)):
        print(found[index])


if __name__ == "__main__":
    main()
