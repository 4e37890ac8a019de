"""Trains a Transformer with Marian, in an environment that has pymarian and in the folder of prepare.sh; see README.md.

marian/bin/python marian_train.py UPDATES THREADS    writes marian_model/model.npz and its log to standard error

The size and the recipe are those of `experiment=envi_transformer_small` where Marian has them: 3 + 3 layers, 256/1,024,
4 heads, label smoothing 0.1, no dropout. The layers are Marian's own, post-norm. Batches have half as many tokens.
The learning rate falls with the square root of the updates, because Marian has no cosine schedule.
"""

import shutil
import sys
from pathlib import Path

import pymarian

updates, threads = sys.argv[1:]
folder = Path("marian_model")
folder.mkdir(exist_ok=True)
# Marian recognizes SentencePiece models by this ending.
shutil.copyfile("pieces.model", folder / "vocab.spm")
options = f"""
    --model {folder}/model.npz --vocabs {folder}/vocab.spm {folder}/vocab.spm --train-sets train.en train.vi
    --type transformer --dim-emb 256 --transformer-dim-ffn 1024 --transformer-heads 4 --enc-depth 3 --dec-depth 3
    --tied-embeddings-all --label-smoothing 0.1 --cost-type ce-mean-words --max-length 128
    --mini-batch 1000 --mini-batch-words 1024
    --maxi-batch 100 --optimizer adam --optimizer-params 0.9 0.98 1e-9 --learn-rate 0.001 --lr-warmup 800
    --lr-decay-inv-sqrt 800 --clip-norm 1 --cpu-threads {threads} --sync-sgd --workspace 3000 --disp-freq 50u
    --save-freq 100000u --after {updates}u --seed 1
"""
pymarian.Trainer(" ".join(options.split())).train()
