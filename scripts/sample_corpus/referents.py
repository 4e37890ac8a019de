"""Whether `his` or `her` is unambiguous: Vietnamese has separate pronouns for older persons."""

from .determiners import GENDERS
from .lexicon import Lexicon
from .phrase import Phrase

# Vietnamese refers to these by `ông ấy`, `cậu ấy` and the like, not by `anh ấy`.
APART = frozenset(("mother", "father", "grandmother", "grandfather", "aunt", "uncle", "boy", "child"))
FORMS = {"he": ("he", "him", "his"), "she": ("she", "her", "hers")}


class Referents:
    """The sex of every person in the lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.sexes: dict[str, set[str]] = {}
        for noun in lexicon.nouns:
            if noun.person:
                sex = GENDERS.get(noun.singular)
                self.sexes |= {noun.singular: {sex} if sex else {"he", "she"}, noun.plural: {"they"}}
        for name in lexicon.entries("names"):
            self.sexes[name.english] = {name.tags[0]}
        kin = {entry.english.split()[-1]: {entry.tags[0]} for entry in lexicon.entries("kin")}
        self.kin = set(kin)
        self.sexes |= kin
        for sex, forms in FORMS.items():
            self.sexes |= {form: {sex} for form in forms}

    def clear(self, phrase: Phrase) -> bool:
        """Whether no pronoun refers to somebody in APART, and each one has a possible antecedent.

        `ông` is not `anh ấy`, so a sentence about a grandfather cannot go on with `his`; `her market` after `Duc` alone
        reads as a slip, as do `he` after a plural alone and `their daughter` after `the soldiers`. Only words are
        checked, so more is refused than necessary: `she` after `Duc`, and `her` as an object unless it ends the
        sentence.
        """
        if {"wife", "husband"} <= set(phrase.source):
            return False  # `my wife gave her husband a dress`
        found: set[str] = set()
        apart: set[str] = set()
        plural = False
        for word, following in zip(phrase.source, (*phrase.source[1:], ""), strict=True):
            word = word.strip(",").removesuffix("'s")
            sexes = self.sexes.get(word, set())
            if any(word in FORMS[sex] for sex in apart):
                return False
            ends = not following  # `Duc called her`: no possessor
            if found and word in ("his", "her", "he", "she") and not ends and not found & sexes:
                return False
            if word == "their" and following in self.kin and plural:
                return False
            plural = plural or (sexes == {"they"} and word != "parents")
            found |= sexes
            apart |= sexes if word in APART else set()
        return True
