"""Translates standard input with Marian, in an environment that has pymarian; see README.md.

python marian_translate.py MODEL_FOLDER THREADS --batch 8 < in.en > out.vi
python marian_translate.py MODEL_FOLDER THREADS --pieces 40 < in.en > out.vi    every translation has 40 pieces

A batch runs until its longest translation ends, or reaches twice the length of the batch's longest source, so small
batches can be faster with free lengths.

Marian has no minimum length. With --pieces, a bias forbids EOS, and Marian stops at --max-length-factor times the
length of a batch's longest source. Each batch therefore gets a translator with its own factor, and processes with one
thread each share the batches.
"""

import argparse
import itertools
import sys
import tempfile
import unicodedata
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pymarian
import sentencepiece


def translate(
    model: Path, vocabulary: Path, threads: int, batch: int, length_factor: float, lines: list[str]
) -> list[str]:
    translator = pymarian.Translator(
        f"--models {model} --vocabs {vocabulary} {vocabulary} --beam-size 5 --normalize 0.6 --mini-batch {batch} "
        f"--maxi-batch 100 --maxi-batch-sort src --max-length 150 --max-length-crop "
        f"--max-length-factor {length_factor} --cpu-threads {threads} --quiet"
    )
    return translator.translate("\n".join(lines)).split("\n")


def translate_forced(
    model: Path, vocabulary: Path, processes: int, batch: int, pieces: int, lines: list[str]
) -> list[str]:
    """Translates so that every translation has `pieces` pieces."""
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary))
    lengths = [len(tokenizer.encode(line)) + 1 for line in lines]
    order = sorted(range(len(lines)), key=lengths.__getitem__)
    batches = [order[first : first + batch] for first in range(0, len(order), batch)]
    with np.load(model) as file:
        weights = dict(file)
    weights["decoder_ff_logit_out_b"][0, tokenizer.eos_id()] = -1e9
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(processes) as pool:
        endless = Path(folder) / "model.npz"
        np.savez(endless, **weights)
        waiting = [
            # The half makes up for rounding: the search stops at the first length above the product.
            pool.submit(
                translate,
                endless,
                vocabulary,
                1,
                batch,
                (pieces - 0.5) / lengths[chosen[-1]],
                [lines[index] for index in chosen],
            )
            for chosen in batches
        ]
        translations = itertools.chain(*(answer.result() for answer in waiting))
        translation_of = dict(zip(order, translations, strict=True))
    return [translation_of[index] for index in range(len(lines))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("threads", type=int)
    parser.add_argument("--batch", type=int, default=64, help="sentences (default: %(default)s)")
    parser.add_argument("--pieces", type=int, help="number of pieces of every translation, without EOS")
    options = parser.parse_args()
    model, vocabulary = options.folder / "model.npz", options.folder / "vocab.spm"
    # As nmt.text.normalize does: NFC, single plain spaces.
    given = sys.stdin.buffer.read().decode().removesuffix("\n").split("\n")
    lines = [unicodedata.normalize("NFC", " ".join(line.split())) for line in given]
    if options.pieces is None:
        translations = translate(model, vocabulary, options.threads, options.batch, 2, lines)
    else:
        translations = translate_forced(model, vocabulary, options.threads, options.batch, options.pieces, lines)
    print("\n".join(translations))


if __name__ == "__main__":
    main()
