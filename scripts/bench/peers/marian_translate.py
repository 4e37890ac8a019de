"""Translates standard input with Marian, in an environment that has pymarian; see README.md.

python scripts/bench/peers/marian_translate.py MODEL_FOLDER THREADS < in.en > out.vi
"""

import sys
import unicodedata

import pymarian

folder, threads = sys.argv[1:]
translator = pymarian.Translator(
    f"--models {folder}/model.npz --vocabs {folder}/vocab.spm {folder}/vocab.spm --beam-size 5 --normalize 0.6 "
    f"--mini-batch 64 --maxi-batch 100 --maxi-batch-sort src --max-length 150 --max-length-crop --max-length-factor 3 "
    f"--cpu-threads {threads} --quiet"
)
text = sys.stdin.read().removesuffix("\n")
# As nmt.text.normalize does: NFC, single plain spaces.
lines = (unicodedata.normalize("NFC", " ".join(line.split())) for line in text.split("\n"))
print(translator.translate("\n".join(lines)))
