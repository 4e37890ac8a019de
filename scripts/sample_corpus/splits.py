"""Training, validation and test sets, and a test set of combinations that training never shows."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from zlib import crc32

from .grammar import GROUPS, Grammar, Pair
from .lexicon import Lexicon
from .sampler import Sampler

SIZES = {"train": 12000, "valid": 500, "test": 500, "test_new": 500}
LENGTHS = range(3, 31)
LEAST_WORD, LEAST_CONSTRUCTION, LEAST_TEMPLATE = 20, 100, 15
SHORT = {3: 0.9, 4: 0.8, 5: 0.7, 6: 0.55, 7: 0.35, 8: 0.15}  # share of the short sentences that is left out, by words
HELD_OUT = {"adjective+noun": 8, "verb+object": 8, "construction+verb": 12, "number+noun": 8}


def words(sentence: str) -> list[str]:
    """Return the words as they are counted: lowercase, without the punctuation around them."""
    return [word.strip(".,?!").lower() for word in sentence.split()]


def held_out(combination: tuple[str, str, str]) -> bool:
    """Whether the combination is kept out of training: one in HELD_OUT of its kind, chosen by a checksum."""
    kind, first, second = combination
    return crc32(f"{kind}|{first}|{second}".encode()) % HELD_OUT[kind] == 0


@dataclass
class Corpus:
    """The pairs of each split; no sentence of either side occurs twice anywhere."""

    splits: dict[str, list[Pair]] = field(default_factory=lambda: {name: [] for name in SIZES})


class Collector:
    """Draws pairs from the grammar until the splits are full."""

    def __init__(self, seed: int, taken: Iterable[str] = ()) -> None:
        self.sampler = Sampler(seed)
        self.grammar = Grammar(Lexicon(), self.sampler)
        self.seen = set(taken)
        self.counts: Counter[str] = Counter()
        self.translated: Counter[str] = Counter()
        self.corpus = Corpus()
        self.names = [(name, weight) for name, (_, _, weight) in self.grammar.constructions.items()]

    def draw(self, name: str, new: bool) -> Pair | None:
        """Return a pair not drawn before; with a held-out combination if and only if `new`."""
        pair = self.grammar.derive(name)
        if pair is None or pair.source in self.seen or pair.target in self.seen:
            return None
        if any(len(side.split()) not in LENGTHS for side in (pair.source, pair.target)):
            return None
        if self.sampler.chance(SHORT.get(len(pair.source.split()), 0.0)):
            return None
        return pair if any(held_out(c) for c in pair.combinations) == new else None

    def known(self, pair: Pair) -> bool:
        """Whether training has all words of the pair often enough."""
        counts = [self.sampler.used[word] for word in words(pair.source)]
        counts += [self.translated[word] for word in words(pair.target)]
        return min(counts) >= LEAST_WORD

    def keep(self, split: str, pair: Pair) -> None:
        """Add the pair to the split; what training has is counted, so that later draws prefer what it lacks."""
        self.seen |= {pair.source, pair.target}
        self.corpus.splits[split].append(pair)
        if split == "train":
            self.sampler.used.update(words(pair.source))
            self.translated.update(words(pair.target))
            self.counts.update({*pair.constructions, f"template {pair.template}"})

    def fill(self, split: str, size: int) -> None:
        """Fill the split with constructions by weight."""
        pairs = self.corpus.splits[split]
        while len(pairs) < size:
            name = self.sampler.weighted(self.names)
            for _ in range(100):
                pair = self.draw(name, split == "test_new")
                if pair is not None and (split == "train" or self.known(pair)):
                    self.keep(split, pair)
                    break

    def floor(self) -> None:
        """Give every template its least count and every construction its own, with a margin."""
        for name, _ in self.names:
            self.raise_to(f"template {name}", name, LEAST_TEMPLATE)
        for name, _ in self.names:
            self.raise_to(GROUPS.get(name, name), name, LEAST_CONSTRUCTION)

    def raise_to(self, counted: str, name: str, least: int) -> None:
        """Add training pairs of the template until `counted` occurs often enough. Raises ValueError if it cannot."""
        for _ in range(20000):
            if self.counts[counted] >= least:
                return
            pair = self.draw(name, False)
            if pair is not None:
                self.keep("train", pair)
        raise ValueError(f"{name!r} gave {self.counts[counted]} different pairs, {least} expected: widen its lexicon")

    def complete(self, size: int) -> None:
        """Add training pairs that hold a word or construction still short of its least count.

        Templates that helped before are drawn more often.
        """
        pairs = self.corpus.splits["train"]
        tried, helped = Counter[str](), Counter[str]()
        while len(pairs) < size:
            weights = [(name, (helped[name] + 1) / (tried[name] + 10)) for name, _ in self.names]
            name = self.sampler.weighted(weights)
            tried[name] += 1
            pair = self.draw(name, False)
            if pair is None:
                continue
            rare = any(self.sampler.used[word] < LEAST_WORD for word in words(pair.source))
            rare |= any(self.translated[word] < LEAST_WORD for word in words(pair.target))
            rare |= any(self.counts[name] < LEAST_CONSTRUCTION for name in pair.constructions)
            if rare or self.sampler.chance(0.01):
                helped[name] += rare
                self.keep("train", pair)


def make_corpus(seed: int, taken: Iterable[str] = ()) -> Corpus:
    """Return the whole sample corpus, the same for the same seed; no sentence of it is among those `taken`."""
    collector = Collector(seed, taken)
    collector.fill("train", 5000)
    collector.floor()
    collector.complete(SIZES["train"])
    for split in ("valid", "test", "test_new"):
        collector.fill(split, SIZES[split])
    return collector.corpus
