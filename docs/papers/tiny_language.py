"""A language of 3,600 sentence pairs, in which attention is learned in seconds: the pages on the papers train on it.

An English noun phrase becomes a Vietnamese one: "a black cat" is "một con mèo đen", one CLASSIFIER cat black. The
adjective and the noun change places, so a model that attends to the right words has weights beside the diagonal.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.maps.attention_map import BOS, EOS, AttentionMap
from nmt.models import Seq2Seq, VocabularySizes

STEPS = 300
SENTENCES_PER_STEP = 32

NOUNS = {"cat": "mèo", "dog": "chó", "bird": "chim", "fish": "cá", "horse": "ngựa"}
ADJECTIVES = {"": "", "black": "đen", "white": "trắng", "small": "nhỏ", "big": "to", "old": "già"}
VERBS = {"sees": "thấy", "follows": "theo", "helps": "giúp", "likes": "thích"}

Pair = tuple[list[str], list[str]]


def noun_phrases() -> list[Pair]:
    return [
        (f"a {adjective} {noun}".split(), f"một con {vietnamese_noun} {vietnamese_adjective}".split())
        for (noun, vietnamese_noun), (adjective, vietnamese_adjective) in product(NOUNS.items(), ADJECTIVES.items())
    ]


def sentence_pairs() -> list[Pair]:
    """Each sentence of the language with its translation."""
    return [
        ([*subject[0], verb, *thing[0]], [*subject[1], vietnamese_verb, *thing[1]])
        for subject, (verb, vietnamese_verb), thing in product(noun_phrases(), VERBS.items(), noun_phrases())
    ]


PAIRS = sentence_pairs()
# PAD is 0, as everywhere in nmt; a word is a piece.
SOURCE_WORDS, TARGET_WORDS = (
    ["<pad>", BOS, EOS, *sorted({word for pair in PAIRS for word in pair[side]})] for side in (0, 1)
)
VOCABULARY = VocabularySizes(len(SOURCE_WORDS), len(TARGET_WORDS), joint=False)
HELD_OUT = next(pair for pair in PAIRS if " ".join(pair[0]) == "a black cat sees a small dog")
"""It is left out of the training pairs; its translation is "một con mèo đen thấy một con chó nhỏ"."""


def ids(sentences: Sequence[list[str]], words: list[str]) -> Tensor:
    """The padded numbers of the words, (sentences, longest)."""
    rows = [torch.tensor([words.index(word) for word in sentence]) for sentence in sentences]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def train(model: Seq2Seq, seed: int = 1) -> float:
    """Trains the model for STEPS steps; returns the mean loss of the last ten, in nats per word."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # dropout
    pairs = [pair for pair in PAIRS if pair != HELD_OUT]
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    model.train()
    for _ in range(STEPS):
        drawn = [pairs[i] for i in torch.randint(len(pairs), (SENTENCES_PER_STEP,), generator=generator).tolist()]
        source = ids([[*english, EOS] for english, _ in drawn], SOURCE_WORDS)
        target = ids([[BOS, *vietnamese, EOS] for _, vietnamese in drawn], TARGET_WORDS)
        logits = model(source, source != 0, target[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return sum(losses[-10:]) / len(losses[-10:])


@torch.no_grad()
def translate(model: Seq2Seq, english: list[str], longest: int = 20) -> list[str]:
    """Takes the most probable word at each step, until the end of the sentence."""
    source = ids([[*english, EOS]], SOURCE_WORDS)
    memory = model.encode(source, source != 0)
    state, word, translation = model.start(memory, beams=1), BOS, []
    for _ in range(longest):
        log_probs, state = model.step(torch.tensor([[TARGET_WORDS.index(word)]]), state, memory)
        word = TARGET_WORDS[int(log_probs.argmax())]
        if word == EOS:
            break
        translation.append(word)
    return translation


@torch.no_grad()
def attend(model: Seq2Seq, pair: Pair = HELD_OUT, site: str = "cross") -> AttentionMap:
    """The model's weights at a site while it reads the source and is given the target."""
    english, vietnamese = [*pair[0], EOS], [BOS, *pair[1], EOS]
    source, target = ids([english], SOURCE_WORDS), ids([vietnamese], TARGET_WORDS)
    layers: dict[int, np.ndarray] = {}

    def watch(where: str, layer: int, weights: Tensor, visible: object) -> None:
        if where == site:
            layers[layer] = weights[0].numpy()

    model(source, source != 0, target[:, :-1], watch)
    sources, read, predicted = (_labels(words) for words in (english, vietnamese[:-1], vietnamese[1:]))
    in_encoder = site == "encoder_self"
    return AttentionMap(
        site=site,
        weights=np.stack([layers[layer] for layer in sorted(layers)]),
        inputs=sources if in_encoder else read,
        outputs=sources if in_encoder else predicted,
        columns=read if site == "decoder_self" else sources,
    )


def _labels(words: list[str]) -> list[str]:
    """As pieces are labeled in maps: each word begins with a mark."""
    return [word if word in (BOS, EOS) else f"▁{word}" for word in words]
