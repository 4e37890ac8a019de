"""Trains a model with Marian, in an environment that has pymarian and in the folder of prepare.sh; see README.md.

marian/bin/python marian_train.py UPDATES THREADS [speed-transformer|speed-lstm]

Writes marian_model/model.npz, or with a third argument marian_KIND/model.npz, and the log to standard error. Marian
continues a model that is already there.

Without a third argument, the size and the recipe are those of `experiment=envi_transformer_small` where Marian has
them: 3 + 3 layers, 256/1,024, 4 heads, label smoothing 0.1, no dropout. The layers are Marian's own, post-norm. Batches
have half as many tokens. The learning rate falls with the square root of the updates, because Marian has no cosine
schedule. `speed-transformer` and `speed-lstm` are the models whose training speed is compared: with dropout, and with
batches of up to 64 sentences and 4,096 tokens.
"""

import shutil
import sys
from pathlib import Path

import pymarian

TRANSFORMER = "--type transformer --transformer-dim-ffn 1024 --transformer-heads 4 --enc-depth 3 --dec-depth 3"
DROPOUT = "--transformer-dropout 0.1 --transformer-dropout-attention 0.1 --transformer-dropout-ffn 0.1"
LSTM = "--type s2s --dim-rnn 512 --enc-cell lstm --dec-cell lstm --enc-depth 1 --dec-depth 1 --dropout-rnn 0.1"
SPEED = "--mini-batch 64 --mini-batch-words 4096 --lr-warmup 200 --lr-decay-inv-sqrt 200 --disp-freq 5u"
KINDS = {
    "recipe": f"{TRANSFORMER} --mini-batch 1000 --mini-batch-words 1024 --lr-warmup 800 --lr-decay-inv-sqrt 800 "
    "--disp-freq 50u",
    "speed-transformer": f"{TRANSFORMER} {DROPOUT} {SPEED}",
    "speed-lstm": f"{LSTM} {SPEED}",
}

updates, threads, *rest = sys.argv[1:]
kind = rest[0] if rest else "recipe"
folder = Path("marian_model" if kind == "recipe" else f"marian_{kind}")
folder.mkdir(exist_ok=True)
# Marian recognizes SentencePiece models by this ending.
shutil.copyfile("pieces.model", folder / "vocab.spm")
options = f"""
    --model {folder}/model.npz --vocabs {folder}/vocab.spm {folder}/vocab.spm --train-sets train.en train.vi
    {KINDS[kind]} --dim-emb 256
    --tied-embeddings-all --label-smoothing 0.1 --cost-type ce-mean-words --max-length 128
    --maxi-batch 100 --optimizer adam --optimizer-params 0.9 0.98 1e-9 --learn-rate 0.001
    --clip-norm 1 --cpu-threads {threads} --sync-sgd --workspace 3000
    --save-freq 100000u --after {updates}u --seed 1
"""
pymarian.Trainer(" ".join(options.split())).train()
