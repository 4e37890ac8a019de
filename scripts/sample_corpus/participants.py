"""Who does what to whom: subjects, objects, recipients and places that a verb can take."""

from collections.abc import Iterable

from .lexicon import Lexicon, Noun, Verb
from .noun_phrases import NounPhrase, NounPhrases
from .phrase import Phrase, compose, lexical
from .sampler import Sampler

PEOPLE = ("PERSON", "KIN", "NAME")
CONSUMED = frozenset("edible drink document text media growable animal".split())
OBJECT_KINDS = {
    ("generic", "known"): "known",
    ("generic", "knownplural"): "knownplural",
    ("generic", "like"): "like",
    ("generic", "new"): "new",
    ("known", "any"): "known",
    ("known", "new"): "known",
    ("known", "like"): "known",
}


class Participants:
    """Chooses the noun phrases around a verb."""

    def __init__(self, lexicon: Lexicon, sampler: Sampler) -> None:
        self.lexicon, self.sampler = lexicon, sampler
        self.nps = NounPhrases(lexicon, sampler)

    def person(self, role: str, banned: Iterable[str] = (), several: bool = False) -> NounPhrase:
        """Return a person or persons as `subject` or `object`; `several` asks for a plural."""
        banned = tuple(banned)
        if several:
            kind = self.sampler.weighted([("pronoun", 3), ("and", 4), ("parents", 1), ("common", 2)])
        else:
            kind = self.sampler.weighted([("pronoun", 6), ("name", 4), ("kin", 4), ("common", 5), ("and", 0.7)])
        if kind == "pronoun":
            only = ("I", "he", "she", "you") if several else ()
            return self.nps.pronoun(role, (*banned, *only)) if not several or "we" not in banned else self.nps.name()
        if kind == "name":
            return self.nps.name()
        if kind == "kin":
            return self.nps.relative()
        if kind == "and":
            return self.nps.together(self.sampler.pick([self.nps.name, self.nps.relative, self.nps.name]))
        nouns = self.nps.of_class(["person"])
        noun = self.sampler.rare(nouns, lambda n: n.plural if several else n.singular)
        return self.nps.common(noun, "group" if several else "subject" if role == "subject" else "known")

    def third(self) -> NounPhrase:
        """Return a subject of the third person singular."""
        for _ in range(20):
            found = self.person("subject")
            if found.agreement == "he":
                return found
        return self.nps.name()

    def subject(self, verb: Verb, several: bool = False, third: bool = False) -> NounPhrase:
        """Return a subject that the verb can have."""
        if third and "person" in verb.subjects:
            return self.third()
        classes = self.sampler.weighted([(tag, 6.0 if tag == "person" else 1.0) for tag in verb.subjects])
        if classes == "person":
            return self.person("subject", several=several)
        if classes in ("adult", "kin") and self.sampler.chance(0.4):
            return self.nps.relative()
        if classes == "adult" and self.sampler.chance(0.4):
            return self.nps.pronoun("subject")
        noun = self.sampler.rare(self.nps.of_class([classes]), lambda n: n.singular)
        return self.nps.common(noun, "group" if several else "subject")

    def object(self, verb: Verb, wanted: str, subject: NounPhrase | None, several: bool = False) -> NounPhrase:
        """Return an object of the verb, in the form that verb and template (`wanted`) agree on."""
        kind = OBJECT_KINDS.get((wanted, verb.nps), verb.nps if wanted in ("any", "known", "generic") else wanted)
        kind = "generic" if wanted == "generic" and kind == "any" else kind
        people = [tag for tag in verb.objects if tag in PEOPLE]
        nouns = self.nps.of_class(verb.objects)
        if people and (not nouns or self.sampler.chance(0.6)):
            return self.someone(self.sampler.pick(people), subject)
        noun = self.noun(nouns, kind)
        if kind == "generic":
            kind = "bare" if noun.classes & {"edible", "drink", "growable"} else kind
            kind = kind if noun.classes & CONSUMED else "single"
        found = self.nps.common(noun, kind, 0.5)
        pair = ("verb+object", verb.key, noun.singular)
        phrase = found.phrase.tagged(combinations=[pair])
        return NounPhrase(phrase, found.agreement, found.auxiliary, noun)

    def noun(self, nouns: list[Noun], kind: str) -> Noun:
        """Return one of the nouns; countable ones only if the kind asks for a count."""
        several = kind in ("plural", "knownplural", "bare")
        if kind in ("knownplural",):
            nouns = [noun for noun in nouns if not noun.mass]
        return self.sampler.rare(nouns, lambda n: n.plural or n.singular if several else n.singular)

    def someone(self, tag: str, subject: NounPhrase | None) -> NounPhrase:
        """Return a person as an object; never the subject itself."""
        if tag == "KIN":
            return self.nps.relative()
        if tag == "NAME":
            return self.nps.name()
        banned = {"I": ("I", "we"), "we": ("I", "we"), "you": ("you",)}.get(subject.auxiliary, (subject.auxiliary,)) if (
            subject
        ) else ()
        return self.person("object", banned)

    def adverbial(self, tags: Iterable[str]) -> Phrase | None:
        """Return `in the garden`, `at school`: a place whose classes are among the tags."""
        tags = [tag for tag in tags if tag not in ("city",)]
        places = [noun for noun in self.nps.of_class(tags) if noun.place] if tags else []
        if "region" in tags and self.sampler.chance(0.5):
            return self.city("in", "ở")
        if not places:
            return None
        noun = self.sampler.rare(places, lambda n: n.singular)
        english, vietnamese = noun.place
        kind = self.sampler.weighted([("definite", 5), ("this", 1), ("that", 1), ("possessive", 1)])
        if kind == "possessive" and not noun.classes & {"home", "room", "farming", "eatery", "shopping"}:
            kind = "definite"
        place = self.nps.determined(noun, kind, 0.25, bare=True).phrase
        links = f"{english}={vietnamese}"
        return compose(f"{english} {{n}}", f"{vietnamese} {{n}}", links, head="n", n=place).tagged("place adverbial")

    def city(self, english: str = "", vietnamese: str = "") -> Phrase:
        """Return a city, with its preposition if one is given."""
        entry = self.sampler.rare(self.nps.cities, lambda e: e.english)
        name = lexical(entry.english, entry.vietnamese, f"city:{entry.english}", head=0)
        if not english:
            return name
        return compose(f"{english} {{n}}", f"{vietnamese} {{n}}", f"{english}={vietnamese}", head="n", n=name)

    def destination(self) -> Phrase:
        """Return a place to go to, without its preposition."""
        if self.sampler.chance(0.2):
            return self.city()
        places = self.nps.of_class(["building", "nature", "town"])
        noun = self.sampler.rare([n for n in places if n.place], lambda n: n.singular)
        return self.nps.determined(noun, self.sampler.pick(("definite", "definite", "this", "that")), 0.3, True).phrase
