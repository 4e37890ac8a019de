"""Antecedents, the pronouns that refer to them, and the noun phrases that a pronoun could refer to by mistake."""

from collections.abc import Iterable
from dataclasses import dataclass

from .determiners import GENDERS
from .lexicon import Lexicon, Noun, Pronoun
from .phrase import Phrase, compose, lexical
from .referents import FORMS
from .sampler import Sampler

# Classifiers that can take the place of their noun, as in `con này` for `this one`.
CLASSIFIERS = frozenset(
    ["con", "cái", "chiếc", "quyển", "cuốn", "bức", "quả", "cây", "tờ", "bộ", "ngôi", "tấm", "củ", "món", "bông", "bản"]
)
# Nouns that their classifier cannot replace: `con phố này` cannot become `con này`, nor `cái cây này` `cái này`.
NOT_ALONE = frozenset(("street", "road", "tree", "wall", "village"))
# What each kind of pronoun agrees with: persons and things in the singular and in the plural.
AGREES = {
    "he": {"he"},
    "she": {"she"},
    "they": {"people", "things"},
    "it": {"it"},
    "one": {"it", "things"},
    "some": {"people", "things"},
    "you": {"you"},
}
# English words of a pronoun, by its kind.
WORDS = {
    "he": FORMS["he"],
    "she": FORMS["she"],
    "they": ("they", "them", "their", "theirs"),
    "you": ("you", "your", "yours"),
}
OWN = {**WORDS, "it": ("it",), "one": ("one", "ones"), "some": ("them",)}
# Words for things that the grammar uses although they are not among the nouns.
OTHER_THINGS = "name radio music breakfast lunch dinner homework football chess mathematics history it one kilo"
OTHER_PLURALS = "ones dishes kilos bowls bottles cups"


@dataclass(frozen=True)
class Antecedent:
    """Who or what a document introduces: a noun phrase, the kind of its pronoun, and the pronoun in Vietnamese."""

    phrase: Phrase
    kind: str
    pronoun: str
    noun: Noun | None = None


def marker(kind: str) -> str:
    """Return the token that stands for the Vietnamese pronoun until the antecedent is known."""
    return f"<{kind}>"


def open_pronouns(lexicon: Lexicon) -> list[Pronoun]:
    """Return the pronouns with a marker as the Vietnamese form of those that depend on an antecedent."""
    return [
        Pronoun(p.subject, p.object, p.determiner, p.independent, marker(p.auxiliary), p.agreement, p.auxiliary)
        if p.auxiliary in WORDS
        else p
        for p in lexicon.pronouns
    ]


class Mentions:
    """Tells which pronouns each word of a sentence agrees with."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.kinds: dict[str, set[str]] = {}
        self.kin = {entry.english.split()[-1] for entry in lexicon.entries("kin")}
        for noun in lexicon.nouns:
            sex = GENDERS.get(noun.singular)
            one = ({sex} if sex else {"he", "she"}) if noun.person else {"it"}
            self.add(noun.singular.split()[-1], one)
            if not noun.mass:
                self.add(noun.plural.split()[-1], {"people" if noun.person else "things"})
        for entry in lexicon.entries("names"):
            self.add(entry.english, {entry.tags[0]})
        for entry in lexicon.entries("kin"):
            self.add(entry.english.split()[-1], {entry.tags[0]} if entry.tags[0] != "they" else {"people"})
        for entry in lexicon.entries("cities"):
            self.add(entry.english.split()[-1], {"it"})
        for words, kind in (
            (OTHER_THINGS.split(), "it"),
            (OTHER_PLURALS.split(), "things"),
            (("they", "them", "their", "theirs"), "things"),
            (("they", "them", "their", "theirs", "and"), "people"),
            ((*WORDS["he"], "@he"), "he"),
            ((*WORDS["she"], "@she"), "she"),
            (WORDS["you"], "you"),
        ):
            for word in words:
                self.add(word, {kind})

    def add(self, word: str, kinds: set[str]) -> None:
        """Add kinds of pronouns with which the word agrees."""
        self.kinds[word.lower()] = self.kinds.get(word.lower(), set()) | kinds

    def of(self, tokens: Iterable[str]) -> set[str]:
        """Return the kinds with which at least one of the words agrees."""
        return set().union(*(self.kinds.get(self.plain(token), set()) for token in tokens))

    @staticmethod
    def plain(token: str) -> str:
        """Return the word without punctuation, possessive and capitals."""
        return token.strip(",.?!").removesuffix("'s").lower()


class Antecedents:
    """Makes antecedents. All Vietnamese forms of a pronoun are equally likely."""

    def __init__(self, lexicon: Lexicon, sampler: Sampler) -> None:
        self.sampler = sampler
        self.names = lexicon.entries("names")
        self.entries = lexicon.entries("antecedents")

    def pronouns(self, sex: str) -> list[str]:
        """Return the Vietnamese forms of `he` or `she`."""
        return sorted({entry.tags[2] for entry in self.entries if entry.tags[0] == sex})

    def person(self, sex: str, pronoun: str) -> Antecedent:
        """Return a person of the sex to whom the Vietnamese pronoun refers."""
        fitting = [entry for entry in self.entries if (entry.tags[0], entry.tags[2]) == (sex, pronoun)]
        names = [name for name in self.names if name.tags[0] == sex]
        if pronoun == {"he": "anh ấy", "she": "cô ấy"}[sex] and self.sampler.chance(0.4):
            name = self.sampler.pick(names)
            return Antecedent(lexical(name.english, name.vietnamese, f"name:{name.english}"), sex, pronoun)
        entry = self.sampler.pick(fitting)
        owner = entry.tags[1]
        if owner == "name":
            name = self.sampler.pick(names)
            vietnamese = f"{entry.vietnamese}/1 {name.vietnamese}/2"
            phrase = lexical(f"{entry.english} {name.english}", vietnamese, f"name:{name.english}", head=1)
            return Antecedent(phrase, sex, pronoun)
        noun = lexical(entry.english, entry.vietnamese, f"kin:{entry.english}", head=len(entry.english.split()) - 1)
        if owner != "none":
            noun = compose("{o} {n}", "{n} {o}", head="n", o=self.owner(sex, owner, entry.english), n=noun)
        return Antecedent(noun, sex, pronoun)

    def owner(self, sex: str, kind: str, kin: str) -> Phrase:
        """Return the person whose relative it is, never of the same sex, so the pronoun is unambiguous."""
        of = kin in ("grandmother", "grandfather")
        own = [("my", "tôi", False), ("our", "chúng tôi", of)]
        others = [
            (f"{name.english}'s", name.vietnamese, True) for name in self.names if name.tags[0] not in (sex, "they")
        ]
        chosen = self.sampler.pick(own if kind == "own" else [*others, *own * 3] if kind == "any" else others)
        return lexical(chosen[0], ("~của " if chosen[2] else "") + chosen[1])


def alone(noun: Noun) -> bool:
    """Whether the classifier of the noun can take its place."""
    return noun.classifier in CLASSIFIERS and not noun.person and noun.singular not in NOT_ALONE
