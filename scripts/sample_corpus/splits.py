"""Training, validation and test sets, and a test set of combinations absent from training."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from zlib import crc32

from .grammar import GROUPS, Grammar, Pair
from .lexicon import Lexicon
from .sampler import Sampler

SIZES = {"train": 12000, "valid": 500, "test": 500, "test_new": 500}
FREE = 1500  # training pairs drawn by weight, before those added for rare words
PATIENCE = 20000  # give up on rare words after this many draws without one
LENGTHS = range(3, 31)
LEAST_WORD, LEAST_CONSTRUCTION, LEAST_TEMPLATE = 20, 100, 15
# fraction of short sentences that are left out, by number of words
SHORT = {3: 0.97, 4: 0.94, 5: 0.9, 6: 0.82, 7: 0.65, 8: 0.45, 9: 0.25}
HELD_OUT = {"adjective+noun": 8, "verb+object": 8, "construction+verb": 12, "number+noun": 8}


NEW_KINDS = [("adjective+noun", 3.0), ("verb+object", 3.0), ("construction+verb", 3.0), ("number+noun", 2.0)]


def words(sentence: str) -> list[str]:
    """Return the words in the form in which they are counted: lowercase, without surrounding punctuation."""
    return [word.strip(".,?!").lower() for word in sentence.split()]


def held_out(combination: tuple[str, str, str]) -> bool:
    """Whether the combination is held out of training: one in HELD_OUT, chosen by a checksum."""
    kind, first, second = combination
    return crc32(f"{kind}|{first}|{second}".encode()) % HELD_OUT[kind] == 0


@dataclass
class Corpus:
    """The pairs of each split. No sentence of either language occurs twice."""

    splits: dict[str, list[Pair]] = field(default_factory=lambda: {name: [] for name in SIZES})


class Collector:
    """Draws pairs from the grammar until the splits are full."""

    def __init__(self, seed: int, taken: Iterable[str] = ()) -> None:
        self.sampler = Sampler(seed)
        self.grammar = Grammar(Lexicon(), self.sampler)
        self.seen = set(taken)
        self.counts: Counter[str] = Counter()
        self.trained: Counter[str] = Counter()
        self.left_out: set[str] = set()
        self.translated: Counter[str] = Counter()
        self.corpus = Corpus()
        self.names = [(name, weight) for name, (_, _, weight) in self.grammar.templates.items()]

    def draw(self, name: str, new: str = "") -> Pair | None:
        """Return a new pair without held-out combinations, or with one of the kind `new`."""
        pair = self.grammar.derive(name)
        if pair is None or pair.source in self.seen or pair.target in self.seen:
            return None
        if self.left_out & set(words(pair.source)):
            return None
        if any(len(side.split()) not in LENGTHS for side in (pair.source, pair.target)):
            return None
        if self.sampler.chance(SHORT.get(len(pair.source.split()), 0.0)):
            return None
        kinds = {combination[0] for combination in pair.combinations if held_out(combination)}
        return pair if (new in kinds if new else not kinds) else None

    def known(self, pair: Pair) -> bool:
        """Whether training has all words and constructions of the pair often enough."""
        if any(self.counts[name] < LEAST_CONSTRUCTION for name in pair.constructions):
            return False
        counts = [self.trained[word] for word in words(pair.source)]
        counts += [self.translated[word] for word in words(pair.target)]
        return min(counts) >= LEAST_WORD

    def keep(self, split: str, pair: Pair) -> None:
        """Add the pair to the split and count its words, so that later draws prefer rare ones."""
        self.seen |= {pair.source, pair.target}
        self.corpus.splits[split].append(pair)
        self.sampler.used.update([*words(pair.source), *(f"vi:{word}" for word in words(pair.target))])
        if split == "train":
            self.trained.update(words(pair.source))
            self.translated.update(words(pair.target))
            self.counts.update({*pair.constructions, f"template {pair.template}"})

    def fill(self, split: str, size: int, known: bool = False) -> None:
        """Fill the split, drawing templates by weight; if `known`, only with words frequent enough in training."""
        pairs = self.corpus.splits[split]
        if split != "train":
            self.sampler.used.clear()
        while len(pairs) < size:
            name = self.sampler.weighted(self.names)
            new = self.sampler.weighted(NEW_KINDS) if split == "test_new" else ""
            for _ in range(100):
                pair = self.draw(name, new)
                if pair is not None and (not known or self.known(pair)):
                    self.keep(split, pair)
                    break

    def floor(self) -> None:
        """Bring every template and every construction to its minimum count, with a margin."""
        for name, _ in self.names:
            self.raise_to(f"template {name}", name, LEAST_TEMPLATE)
        for name, _ in self.names:
            self.raise_to(GROUPS.get(name, name), name, LEAST_CONSTRUCTION)

    def raise_to(self, counted: str, name: str, least: int) -> None:
        """Add training pairs of the template until `counted` occurs often enough. Raises ValueError if it cannot."""
        for _ in range(20000):
            if self.counts[counted] >= least:
                return
            pair = self.draw(name)
            if pair is not None:
                self.keep("train", pair)
        raise ValueError(f"{name!r} gave {self.counts[counted]} different pairs, {least} expected: widen its lexicon")

    def complete(self, size: int) -> None:
        """Add training pairs with a word or construction below its minimum count, until none is found.

        The split grows to `size` at most. Templates that helped before are drawn more often.
        """
        tried, helped = Counter[str](), Counter[str]()
        misses = 0
        while len(self.corpus.splits["train"]) < size and misses < PATIENCE:
            name = self.sampler.weighted([(name, (helped[name] + 1) / (tried[name] + 10)) for name, _ in self.names])
            tried[name] += 1
            pair = self.draw(name)
            misses += 1
            if pair is not None and not self.known(pair):
                misses = 0
                helped[name] += 1
                self.keep("train", pair)

    def leave_out_short(self) -> None:
        """Replace the training pairs that contain a word below its minimum count, so that no split contains it."""
        short = {word for word, count in self.trained.items() if count < LEAST_WORD}
        pairs = self.corpus.splits["train"]
        gone = [pair for pair in pairs if short & set(words(pair.source))]
        pairs[:] = [pair for pair in pairs if not short & set(words(pair.source))]
        for pair in gone:
            self.trained -= Counter(words(pair.source))
            self.translated -= Counter(words(pair.target))
            self.counts -= Counter({*pair.constructions, f"template {pair.template}"})
        self.left_out |= short
        self.complete(SIZES["train"])
        self.fill("train", SIZES["train"])


def make_corpus(seed: int, taken: Iterable[str] = ()) -> Corpus:
    """Return the sample corpus, which depends only on the seed, without any of the `taken` sentences."""
    collector = Collector(seed, taken)
    collector.fill("train", FREE)
    collector.floor()
    collector.complete(SIZES["train"])
    for split, size in SIZES.items():
        collector.fill(split, size, known=True)
    collector.leave_out_short()
    return collector.corpus
