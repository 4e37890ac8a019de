"""Short texts in which a Vietnamese pronoun or classifier depends on an earlier sentence.

A document introduces somebody or something, turns to others, and comes back with a pronoun. Before the pronoun, no
noun phrase except its antecedent agrees with it in number, gender and animacy.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from .anaphora import AGREES, WORDS, Antecedent, marker
from .determiners import SINGULAR_ONLY
from .document_lines import FIRST_PERSON, TITLES, TRIES, Line, Lines
from .grammar import Pair, finish
from .lexicon import Noun
from .phrase import Phrase, fill
from .sampler import NothingFitsError, Sampler
from .splits import LEAST_WORD, held_out, words

TWINS = {"documents_train": 1500, "documents_valid": 75, "documents_test": 75, "documents_contrast": 500}
SENTENCES = range(2, 7)
ROUNDS, REPLACED = 16, 120
# A and B introduce an antecedent, a and b refer to it, a dot is a sentence about others.
SINGLE = ("Aa", "A.a", "A..a", ".Aa", ".A.a", ".A..a", "..Aa", "..A.a", "Aaa", "A.aa", "Aa.a", ".Aaa", ".A.aa", ".Aa.a")
DOUBLE = ("ABab", "ABba", "AaBb", "AB.ab", ".ABab", ".ABba", "Aa.Bb", "AaB.b", "A.aB.b", ".AB.ab", ".AaBb")
CONTRAST = {1: ("Aa", ".Aa", "..Aa"), 2: ("A.a", ".A.a", "..A.a"), 3: ("A..a", ".A..a", "..A..a")}
KINDS = (("he", 5), ("she", 5), ("they", 3), ("it", 3.5), ("one", 3), ("some", 1), ("you", 2.5))
TWO_KINDS = (("he", "she"), ("she", "he"), ("he", "they"), ("she", "they"), ("he", "it"), ("it", "she"), ("she", "one"))
NOUN_FORMS = {
    "it": ("indefinite", "indefinite", "definite", "this", "that"),
    "one": ("number", "many", "some", "these", "those", "definite plural"),
    "some": ("many", "these", "those", "definite plural"),
    "they": ("number", "number", "these", "those", "definite plural", "some"),
}


@dataclass(frozen=True)
class Document:
    """A finished text. For each sentence: the kind and form of its pronoun, and how far back its antecedent is.

    Sentences without such a pronoun have '', '' and 0.
    """

    pairs: tuple[Pair, ...]
    kinds: tuple[str, ...]
    forms: tuple[str, ...]
    distances: tuple[int, ...]

    @property
    def source(self) -> tuple[str, ...]:
        return tuple(pair.source for pair in self.pairs)


def word_counts(documents: Iterable[Document]) -> Counter[str]:
    """Return how often each word occurs; Vietnamese words begin with `vi:`."""
    return Counter(
        word
        for document in documents
        for pair in document.pairs
        for word in (*words(pair.source), *(f"vi:{word}" for word in words(pair.target)))
    )


class Author:
    """Writes documents as twins: both have the same English sentences with pronouns, but translate them differently."""

    def __init__(self, seed: int, taken: Iterable[str] = ()) -> None:
        self.sampler = Sampler(seed)
        self.lines = Lines(self.sampler)
        self.taken = set(taken)
        self.seen: set[tuple[str, ...]] = set()
        self.asked: set[str] = set()

    def write(self, count: int, contrast: bool = False) -> list[tuple[Document, Document]]:
        """Return `count` new twins; with `contrast`, the two differ only in the antecedent and its pronoun."""
        made: list[tuple[Document, Document]] = []
        while len(made) < count:
            try:
                twins = self.contrast(1 + len(made) % 3) if contrast else self.twins()
            except NothingFitsError:
                continue
            if not self.accepts(twins):
                continue
            made.append(twins)
            self.sampler.used.update(word_counts(twins))
            for document in twins:
                self.seen.add(document.source)
                self.asked |= {p.source for p, kind in zip(document.pairs, document.kinds, strict=True) if kind}
        return made

    def accepts(self, twins: tuple[Document, Document]) -> bool:
        """Whether the twins are new, use only known words, and share no sentence with other parts of the corpus."""
        known = self.lines.known
        if known is not None and not set(word_counts(twins)) <= known:
            return False
        if twins[0].source == twins[1].source or any(document.source in self.seen for document in twins):
            return False
        for document in twins:
            asked = {p.source for p, kind in zip(document.pairs, document.kinds, strict=True) if kind}
            if asked & self.asked or len(set(document.source)) < len(document.source):
                return False
            if any(p.source in self.taken or p.target in self.taken for p in document.pairs):
                return False
            if any(held_out(combination) for p in document.pairs for combination in p.combinations):
                return False
        return True

    def twins(self) -> tuple[Document, Document]:
        """Return two documents with the same sentences with pronouns in different surroundings."""
        kinds = self.sampler.pick(TWO_KINDS) if self.sampler.chance(0.25) else (self.sampler.weighted(KINDS),)
        layout = self.sampler.pick(DOUBLE if len(kinds) == 2 else SINGLE)
        if "you" in kinds:
            layout = layout.lstrip(".")  # a greeting comes first
        lines = self.referring(kinds, layout)
        chosen = [self.antecedents(kind, [line for line in lines.values() if line.kind == kind]) for kind in kinds]
        first, second = ([pair[i] for pair in chosen] for i in (0, 1))
        return (
            self.finish(layout, {**lines, **self.others(layout, first)}, first),
            self.finish(layout, {**lines, **self.others(layout, second)}, second),
        )

    def contrast(self, distance: int) -> tuple[Document, Document]:
        """Return two documents with the same sentences except for the antecedent's, `distance` before the last one."""
        kinds, layout = (self.sampler.weighted(KINDS),), self.sampler.pick(CONTRAST[distance])
        if "you" in kinds:
            layout = layout.lstrip(".")
        lines = self.referring(kinds, layout)
        first, second = self.antecedents(kinds[0], list(lines.values()))
        lines |= self.others(layout, [first], [second])
        return self.finish(layout, lines, [first]), self.finish(layout, lines, [second])

    def referring(self, kinds: tuple[str, ...], layout: str) -> dict[int, Line]:
        """Return the lines with a pronoun, by position."""
        lines: dict[int, Line] = {}
        for place, letter in enumerate(layout):
            if letter.islower():
                kind = kinds["ab".index(letter)]
                pending = [k for k, later in zip(kinds, "ab", strict=False) if later in layout[place + 1 :]]
                lines[place] = self.reference(kind, pending)
        return lines

    def reference(self, kind: str, pending: list[str]) -> Line:
        """Return a line with a pronoun of the kind; most questions about a third person are skipped."""
        lines = self.lines
        if kind in ("he", "she", "you"):
            return lines.take(
                kind,
                lambda line: (
                    lines.clear(line, pending) and (line.end == "." or kind == "you" or self.sampler.chance(0.2))
                ),
            )
        return self.attempt(lines.several if kind == "they" else lambda: lines.of_thing(kind), pending)

    def attempt(self, make: Callable[[], Line], pending: list[str]) -> Line:
        """Return a line that contains nothing to which a later pronoun could refer by mistake."""
        for _ in range(TRIES):
            try:
                line = make()
            except NothingFitsError:
                continue
            if self.lines.clear(line, pending):
                return line
        raise NothingFitsError("no sentence keeps the antecedents clear")

    def antecedents(self, kind: str, lines: list[Line]) -> tuple[Antecedent, Antecedent]:
        """Return two antecedents that suit the lines and have different Vietnamese forms."""
        pick = self.sampler.pick
        if kind in ("he", "she"):
            forms = self.lines.antecedents.pronouns(kind)
            first = pick(forms)
            second = pick([form for form in forms if form != first])
            return self.lines.antecedents.person(kind, first), self.lines.antecedents.person(kind, second)
        if kind == "you":
            title = pick(list(TITLES))
            other = pick([one for one in TITLES if TITLES[one][0] != TITLES[title][0]])
            return self.lines.addressed(title), self.lines.addressed(other)
        form = pick(NOUN_FORMS[kind])
        nouns = [noun for noun in self.lines.things if all(line.suits(noun) for line in lines)]
        nouns = [noun for noun in nouns if kind == "it" or not noun.classes & SINGULAR_ONLY]
        if kind == "they":
            two = [self.thing(noun, kind, form) for noun in (pick(self.lines.people), pick(nouns))]
            return (two[0], two[1]) if self.sampler.chance(0.5) else (two[1], two[0])
        classifiers = sorted({noun.classifier for noun in nouns})
        first = pick(classifiers)
        second = pick([classifier for classifier in classifiers if classifier != first])
        chosen = [pick([noun for noun in nouns if noun.classifier == c]) for c in (first, second)]
        return self.thing(chosen[0], kind, form), self.thing(chosen[1], kind, form)

    def thing(self, noun: Noun, kind: str, form: str) -> Antecedent:
        """Return the noun as an antecedent, in a form of DETERMINED."""
        described = 0.2 if kind in ("it", "they") else 0.0
        phrase = self.lines.given.nps.determined(noun, form, described).phrase
        pronoun = noun.classifier if kind != "they" else "họ" if noun.person else "chúng"
        return Antecedent(phrase, kind, pronoun, noun)

    def others(self, layout: str, *antecedents: list[Antecedent]) -> dict[int, Line]:
        """Return the lines without a pronoun, by position; each suits all the lists of antecedents."""
        kinds = [antecedent.kind for antecedent in antecedents[0]]
        lines: dict[int, Line] = {}
        for place, letter in enumerate(layout):
            pending = [kind for kind, later in zip(kinds, "ab", strict=False) if later in layout[place + 1 :]]
            if letter == ".":
                lines[place] = self.lines.take("other", partial(self.passes, pending=pending))
            elif letter.isupper():
                number = "AB".index(letter)
                lines[place] = self.introduction([each[number] for each in antecedents], pending)
        return lines

    def passes(self, line: Line, pending: list[str]) -> bool:
        """Whether a sentence about others can stand before the pronouns."""
        first_person = {token.lower().strip(",") for token in line.phrase.source} & FIRST_PERSON
        return line.end == "." and self.lines.clear(line, pending) and not ("you" in pending and first_person)

    def introduction(self, antecedents: list[Antecedent], pending: list[str]) -> Line:
        """Return a line that can introduce each of the antecedents."""
        kind = antecedents[0].kind
        rest = [other for other in pending if other != kind]
        if kind == "you":
            return self.lines.greeting()
        if kind in ("he", "she"):  # the stock has introductions in which nobody else agrees
            return self.lines.take(f"intro {kind}", lambda line: line.end == "." and self.lines.clear(line, rest))
        nouns = [antecedent.noun for antecedent in antecedents if antecedent.noun is not None]
        return self.attempt(lambda: self.lines.introduction(kind, nouns), pending)

    def finish(self, layout: str, lines: dict[int, Line], antecedents: list[Antecedent]) -> Document:
        """Return the document of the lines with its antecedents. Raises NothingFitsError if an owner agrees."""
        values = {marker("you"): Phrase((), ("bạn",), frozenset())}
        agreeing = set().union(*(AGREES[antecedent.kind] for antecedent in antecedents))
        for antecedent in antecedents:
            owner = [token for token in antecedent.phrase.source if token.endswith("'s")]
            if self.lines.mentions.of(owner) & agreeing:
                raise NothingFitsError("the owner of the antecedent agrees with a pronoun")
            kind = antecedent.kind if antecedent.kind in WORDS else "cl"
            values[marker(kind)] = Phrase((), tuple(antecedent.pronoun.split()), frozenset())
            values[f"@{antecedent.kind}"] = antecedent.phrase
        pairs, kinds, forms, distances = [], [], [], []
        for place, letter in enumerate(layout):
            line = lines[place]
            found = antecedents["ab".index(letter.lower())] if letter != "." else None
            phrase = fill(line.phrase, values if found is None else {**values, "@thing": found.phrase})
            if found is not None and found.noun is not None:
                phrase = phrase.tagged(combinations=[(kind, one, found.noun.singular) for kind, one in line.combines])
            pairs.append(finish(phrase, line.end, "document"))
            refers = found is not None and letter.islower()
            kinds.append(line.kind if refers else "")
            forms.append(found.pronoun if found is not None and refers else "")
            distances.append(place - layout.index(letter.upper()) if refers else 0)
        return Document(tuple(pairs), tuple(kinds), tuple(forms), tuple(distances))


def without_common(train: list[tuple[Document, Document]], counts: Counter[str]) -> list[tuple[Document, Document]]:
    """Return the twins without the REPLACED ones with the most common words; no word falls below its minimum count."""
    used = [word_counts(twins) for twins in train]
    rarest = [min(counts[word] for word in each) for each in used]
    left, gone = Counter(counts), set[int]()
    for place in sorted(range(len(train)), key=lambda place: (-rarest[place], place)):
        if len(gone) < REPLACED and all(left[word] - count >= LEAST_WORD for word, count in used[place].items()):
            gone.add(place)
            left -= used[place]
    return [twins for place, twins in enumerate(train) if place not in gone]


def make_documents(seed: int, taken: Iterable[str] = ()) -> dict[str, list[Document]]:
    """Return the documents of each split, which depend only on the seed, without any of the `taken` sentences.

    In training, the twins are apart; in the other splits, they follow each other. Words far below their minimum count
    in training are removed. To raise the counts of other rare words, twins with common words are replaced by new twins
    that prefer rare words. Words that are still too rare after `ROUNDS` rounds are removed too.
    """
    author = Author(seed, taken)
    train: list[tuple[Document, Document]] = []
    done = 0
    while True:
        train += author.write(TWINS["documents_train"] - len(train))
        counts = word_counts(document for twins in train for document in twins)
        short = {word for word, count in counts.items() if count < (LEAST_WORD if done else LEAST_WORD // 2)}
        if done and not short:
            break
        if done % ROUNDS == 0:
            author.lines.restrict(set(counts) - short)
            train = [twins for twins in train if not short & set(word_counts(twins))]
        else:
            train = without_common(train, counts)
        author.sampler.used = word_counts(document for twins in train for document in twins)
        done += 1
    author.lines.restrict(set(counts))
    documents = [document for twins in train for document in twins]
    order = sorted((author.sampler.fraction(), place) for place in range(len(documents)))
    splits = {"documents_train": [documents[place] for _, place in order]}
    for split in ("documents_valid", "documents_test", "documents_contrast"):
        author.sampler.used.clear()
        made = author.write(TWINS[split], split == "documents_contrast")
        splits[split] = [document for twins in made for document in twins]
    return splits
