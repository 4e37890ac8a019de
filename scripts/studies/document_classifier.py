"""Attention over words and over sentences: which corpus is a document from (Yang et al. 2016)?

  python -m scripts.studies.document_classifier                   writes document_classifier.png
  python -m scripts.studies.document_classifier data/envi/alt data/envi/news data/envi/evb --lines 5 --documents 800

A document is `--lines` consecutive lines of a corpus PREFIX.en. If a file PREFIX.doc names the text that each line
belongs to, a document lies within one text. Words are lower-cased and stripped of punctuation, because the corpora
differ in how they write punctuation and spaces, which would give them away.

The network reads the words of each sentence and sums them, weighted by an Attention, to a sentence vector. It does the
same with the sentences of the document. It is compared with the same network with equal weights (scorer=none), and with
always answering the most frequent corpus.
"""

import argparse
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from nmt.attention import Attention, lengths_to_mask
from nmt.attention.normalizers import Softmax
from nmt.attention.scorers import Additive, NoScore, Scorer
from nmt.attention.windows import Global
from nmt.config.direction import Direction
from nmt.data.corpus import read_pairs
from nmt.data.documents import check_documents, read_documents
from nmt.errors import Mistake
from nmt.models.encoders import run_layer
from nmt.text import PAD, UNK
from scripts.intervals import wilson
from scripts.mistakes import report_mistakes

TEST_SHARE = 0.2
LONGEST = 60
"""Words of a sentence beyond this limit are not read."""
RARE = 3
"""Words that occur less often than this in the training documents are unknown."""


class Document(NamedTuple):
    """Sentences of words, the number of their corpus, and the name of their text within the corpus."""

    sentences: list[list[str]]
    label: int
    text: str


class Reading(NamedTuple):
    """Class scores (documents, classes), and the weights of words (documents, sentences, words) and of sentences."""

    logits: Tensor
    words: Tensor
    sentences: Tensor


def labeled_documents(prefix: str, label: int, direction: Direction, lines: int) -> list[Document]:
    """All documents of the source side of a corpus, each of `lines` successive lines that have words.

    A document lies within one text if PREFIX.doc names the texts; otherwise each document counts as a text. The rest of
    a text is dropped, because its length would give the corpus away. Raises the errors of `read_pairs` and
    `check_documents`.
    """
    sources = read_pairs(prefix, direction).source
    check_documents(prefix, direction)
    numbers = read_documents(prefix, direction)
    texts = [""] * len(sources) if numbers is None else [str(number) for number in numbers]
    documents: list[Document] = []
    sentences: list[list[str]] = []
    previous = texts[0]
    for line, text in zip(sources, texts, strict=True):
        if text != previous:
            sentences, previous = [], text
        if words := re.findall(r"\w+", line.lower()):
            sentences.append(words[:LONGEST])
        if len(sentences) == lines:
            documents.append(Document(sentences, label, text or str(len(documents))))
            sentences = []
    return documents


def split(documents: Sequence[Document], seed: int) -> tuple[list[Document], list[Document]]:
    """Training and test documents of a corpus in random order; all documents of a text are on the same side.

    Raises Mistake for fewer than 5 texts, of which a fifth would be less than one.
    """
    random = Random(seed)
    texts = sorted({document.text for document in documents})
    if len(texts) < 5:
        raise Mistake(
            f"There are documents of {len(texts)} texts, but it takes 5 to hold one out; lower --lines, raise "
            "--documents, or choose a longer corpus."
        )
    held_out = set(random.sample(texts, round(TEST_SHARE * len(texts))))
    shuffled = random.sample(documents, len(documents))
    return [d for d in shuffled if d.text not in held_out], [d for d in shuffled if d.text in held_out]


def vocabulary(documents: Sequence[Document]) -> dict[str, int]:
    """Numbers of the words that occur at least RARE times, above those of PAD and UNK."""
    counts = Counter(word for document in documents for sentence in document.sentences for word in sentence)
    known = sorted(word for word, count in counts.items() if count >= RARE)
    return {word: number for number, word in enumerate(known, start=max(PAD, UNK) + 1)}


def collate(documents: Sequence[Document], numbers: Mapping[str, int]) -> Tensor:
    """The words' numbers (documents, sentences, words), padded with PAD."""
    sentences = [
        torch.tensor([numbers.get(word, UNK) for word in sentence]) for d in documents for sentence in d.sentences
    ]
    padded = pad_sequence(sentences, batch_first=True, padding_value=PAD)
    return pad_sequence(padded.split([len(d.sentences) for d in documents]), batch_first=True, padding_value=PAD)


class Level(nn.Module):
    """Summarizes sequences: annotations h_t of a bidirectional GRU, and their sum weighted by attention (Yang et al.
    2016, equations 5 to 7 for words, 8 to 10 for sentences):

      u_t = tanh(W h_t + b)      a_t = softmax_t(u_t . u)      s = sum_t a_t h_t

    This is Attention with the additive scorer v . tanh(W_q q + W_k k) for the keys and values h_t and the constant
    query q = 1: W_k is the paper's W, W_q its bias b, and v the vector u, which the paper calls a fixed query.
    """

    def __init__(self, input_dim: int, dim: int, scorer: Callable[..., Scorer]) -> None:
        super().__init__()
        self.encoder = nn.GRU(input_dim, dim, batch_first=True, bidirectional=True)
        self.attention = Attention(scorer, Global, Softmax, query_dim=1, key_dim=2 * dim)

    def forward(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The vectors (sequences, 2 dim) and weights (sequences, n) of inputs (sequences, n, input_dim)."""
        annotations, _ = run_layer(self.encoder, inputs, lengths)
        keys = annotations.unsqueeze(1)
        query = keys.new_ones(len(keys), 1, 1, 1)
        mask = lengths_to_mask(lengths, inputs.shape[1])[:, None, None, :]
        context, weights = self.attention.attend(query, self.attention.project_keys(keys), keys, mask)
        return context[:, 0, 0], weights[:, 0, 0]


class HierarchicalAttention(nn.Module):
    """Turns words into sentence vectors, these into a document vector, and this into a score for each class."""

    def __init__(self, words: int, classes: int, dim: int, scorer: Callable[..., Scorer]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, dim, padding_idx=PAD)
        self.of_words, self.of_sentences = Level(dim, dim, scorer), Level(2 * dim, dim, scorer)
        self.output = nn.Linear(2 * dim, classes)

    def forward(self, words: Tensor) -> Reading:
        """Reads documents (documents, sentences, words); padding comes last and gets weight 0.

        Sentences that are padding are not read at all, because a GRU cannot read an empty sequence.
        """
        lengths = (words != PAD).sum(dim=-1)
        there = lengths > 0
        vectors, of_words = self.of_words(self.embedding(words[there]), lengths[there])
        sentences = vectors.new_zeros(*there.shape, vectors.shape[-1]).masked_scatter(there[..., None], vectors)
        documents, of_sentences = self.of_sentences(sentences, there.sum(dim=-1))
        weights = of_words.new_zeros(words.shape).masked_scatter(there[..., None], of_words)
        return Reading(self.output(documents), weights, of_sentences)


def network(attentive: bool, words: int, classes: int, dim: int) -> HierarchicalAttention:
    """The network of the paper, or the one with equal weights; u is as wide as the annotations, as in the paper."""
    return HierarchicalAttention(words, classes, dim, partial(Additive, hidden_dim=2 * dim) if attentive else NoScore)


def learn(model: HierarchicalAttention, documents: Sequence[Document], numbers: Mapping[str, int], epochs: int) -> None:
    """Minimizes the cross entropy with Adam, 16 documents a step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    random = Random(0)
    for _ in range(epochs):
        for batch in _batches(random.sample(documents, len(documents))):
            loss = F.cross_entropy(model(collate(batch, numbers)).logits, torch.tensor([d.label for d in batch]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def right(model: HierarchicalAttention, documents: Sequence[Document], numbers: Mapping[str, int]) -> list[bool]:
    """Whether the class with the highest score is the right one, for each document."""
    labels = [c for batch in _batches(documents) for c in model(collate(batch, numbers)).logits.argmax(dim=-1).tolist()]
    return [c == document.label for c, document in zip(labels, documents, strict=True)]


def _batches(documents: Sequence[Document]) -> Iterator[Sequence[Document]]:
    for start in range(0, len(documents), 16):
        yield documents[start : start + 16]


def sign_test(first: int, second: int) -> float:
    """The two-sided p-value if only one network is right on `first` documents, and only the other on `second`."""
    number = first + second
    tail = sum(math.comb(number, k) for k in range(min(first, second) + 1)) / 2**number
    return min(1.0, 2 * tail)


@torch.no_grad()
def describe(model: HierarchicalAttention, document: Document, numbers: Mapping[str, int]) -> str:
    """The two sentences with the most weight, each with the three words that have the most weight in it."""
    reading = model(collate([document], numbers))
    weights = reading.sentences[0]
    rows = []
    for i in weights.topk(min(2, len(weights))).indices.tolist():
        words, sentence = reading.words[0, i], document.sentences[i]
        best = words.topk(min(3, len(sentence))).indices.tolist()
        rows.append(f"  {weights[i]:.2f} {textwrap.shorten(' '.join(sentence), 70, placeholder=' ...')}")
        rows.append("       " + ", ".join(f"{sentence[t]} {words[t]:.2f}" for t in best))
    return "\n".join(rows)


@torch.no_grad()
def draw(
    model: HierarchicalAttention, documents: Sequence[tuple[str, Document]], numbers: Mapping[str, int], path: Path
) -> None:
    """Writes the picture of documents with titles. A box shows the weight a_s of each sentence, and the background of
    each word shows sqrt(a_s) a_w, where a_w is the word's own weight (Yang et al. 2016, section 3.6). Both are relative
    to the largest value in the document.
    """
    row, marks = 0, list[tuple[int, int, str, str, float]]()
    for title, document in documents:
        marks.append((row, -3, title, "Greys", 0.0))
        reading = model(collate([document], numbers))
        sentences = reading.sentences[0]
        words = sentences.sqrt()[:, None] * reading.words[0]
        for i, sentence in enumerate(document.sentences):
            row, column = row + 1, 0
            marks.append((row, -3, "  ", "Blues", float(sentences[i] / sentences.max())))
            for t, word in enumerate(sentence):
                if column and column + len(word) > 100:
                    row, column = row + 1, 0
                marks.append((row, column, word, "Reds", float(words[i, t] / words.max())))
                column += len(word) + 1
        row += 2
    size, last = 8, max(column + len(text) for _, column, text, _, _ in marks)
    # A letter of DejaVu Sans Mono, which comes with matplotlib, is 0.602 times as wide as the font size.
    figure = plt.figure(figsize=((last + 5) * 0.602 * size / 72, row * 1.5 * size / 72))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(-4, last + 1), ylim=(row - 0.5, -1))
    axis.axis("off")
    for line, column, text, colors, strength in marks:
        if colors != "Greys":
            color = plt.get_cmap(colors)(0.75 * strength)
            axis.add_patch(plt.Rectangle((column - 0.2, line - 0.45), len(text) + 0.4, 0.9, color=color, linewidth=0))
        axis.text(column, line, text, size=size, family="DejaVu Sans Mono", va="center")
    figure.savefig(path, dpi=120)
    plt.close(figure)


class Comparison(NamedTuple):
    """The network with attention, its words, the documents by corpus, and which test documents each method gets
    right.
    """

    model: HierarchicalAttention
    numbers: dict[str, int]
    training: list[list[Document]]
    test: list[list[Document]]
    right: dict[str, list[bool]]

    def table(self, corpora: Sequence[str]) -> str:
        """Sizes, accuracies with their intervals, and the documents on which the two networks differ."""
        sizes = zip(corpora, self.training, self.test, strict=True)
        rows = [", ".join(f"{prefix} {len(training)} + {len(test)}" for prefix, training, test in sizes)]
        for name, is_correct in self.right.items():
            low, high = wilson(sum(is_correct), len(is_correct))
            rows.append(f"  {name:21} {sum(is_correct) / len(is_correct):6.1%} correct ({low:.1%} to {high:.1%})")
        pairs = list(zip(self.right["attention"], self.right["equal weights"], strict=True))
        first, second = (sum(pair == only for pair in pairs) for only in ((True, False), (False, True)))
        p = sign_test(first, second)
        rows.append(f"  correct only with attention {first}, only with equal weights {second}, p = {p:.3f}")
        return "\n".join(rows)


def compare(everything: Sequence[Sequence[Document]], most: int, epochs: int, dim: int, seed: int) -> Comparison:
    """Trains and tests the networks on at most `most` documents of each corpus."""
    random = Random(seed)
    sides = [split(random.sample(documents, min(len(documents), most)), seed) for documents in everything]
    training, test = ([d for side in sides for d in side[k]] for k in range(2))
    numbers = vocabulary(training)
    models, results = {}, {}
    for name, attentive in (("attention", True), ("equal weights", False)):
        torch.manual_seed(seed)
        models[name] = network(attentive, max(PAD, UNK) + 1 + len(numbers), len(sides), dim)
        learn(models[name], training, numbers, epochs)
        results[name] = right(models[name], test, numbers)
    largest = max(range(len(sides)), key=lambda k: len(sides[k][0]))
    results["most frequent corpus"] = [d.label == largest for d in test]
    return Comparison(models["attention"], numbers, [side[0] for side in sides], [side[1] for side in sides], results)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", metavar="PREFIX", default=["sample:train", "sample:phrases"])
    parser.add_argument(
        "--direction", default="en-vi", help="direction whose source side is read; default: %(default)s"
    )
    parser.add_argument("--lines", type=int, default=3, help="lines in a document; default: %(default)s")
    parser.add_argument("--documents", type=int, default=500, help="maximum documents per corpus; default: %(default)s")
    parser.add_argument("--epochs", type=int, default=4, help="default: %(default)s")
    parser.add_argument("--dim", type=int, default=50, help="width of embeddings and of a GRU; default: %(default)s")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="default: 1 2 3")
    parser.add_argument("--out", type=Path, default=Path("document_classifier.png"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    for name in ("lines", "documents", "epochs", "dim"):
        if getattr(options, name) < 1:
            raise Mistake(f"--{name} is {getattr(options, name)}; it must be at least 1.")
    corpora: list[str] = options.corpora
    if len(set(corpora)) < max(2, len(corpora)):
        raise Mistake(f"The corpora are {', '.join(corpora)}; give two or more different ones.")
    direction = Direction.parse(options.direction)
    everything = [labeled_documents(prefix, i, direction, options.lines) for i, prefix in enumerate(corpora)]
    comparisons = []
    for seed in options.seeds:
        comparisons.append(compare(everything, options.documents, options.epochs, options.dim, seed))
        print(f"seed {seed}, training + test documents: {comparisons[-1].table(corpora)}", flush=True)
    model, numbers, _, test, _ = comparisons[0]
    shown = [(prefix, document) for prefix, side in zip(corpora, test, strict=True) for document in side[:2]]
    print(f"The sentences and words with the most weight, seed {options.seeds[0]}")
    for prefix, document in shown:
        print(f"{prefix}\n{describe(model, document, numbers)}")
    draw(model, shown, numbers, options.out)
    print(options.out)


if __name__ == "__main__":
    report_mistakes(main)
