"""The subjects, objects, recipients and places that a verb can take."""

from collections.abc import Iterable

from .determiners import NounPhrase
from .lexicon import Lexicon, Noun, Verb
from .noun_phrases import NounPhrases
from .people import People
from .phrase import Phrase, compose, lexical
from .sampler import Sampler

PEOPLE = ("PERSON", "KIN", "NAME")
CONSUMED = frozenset(["edible", "drink", "document", "text", "media", "growable", "animal"])
# The kind of noun phrase for an object, by the kind that the template wants and that of the verb; see `object`.
OBJECT_KINDS = {
    ("generic", "any"): "generic",
    ("generic", "one"): "single",
    ("generic", "wares"): "bare",
    ("known", "wares"): "known",
    ("known", "any"): "known",
    ("known", "new"): "known",
    ("known", "one"): "single",
    ("known", "like"): "known",
}
REFLEXIVE = {"I": ("I", "we"), "we": ("I", "we")}


class Participants:
    """Chooses the noun phrases around a verb."""

    def __init__(self, lexicon: Lexicon, sampler: Sampler) -> None:
        self.lexicon, self.sampler = lexicon, sampler
        self.people = People(lexicon, sampler)
        self.nps = NounPhrases(lexicon, sampler, self.people)
        self.cities = lexicon.entries("cities")

    def person(self, role: str, banned: Iterable[str] = ()) -> NounPhrase:
        """Return persons as `subject`, `topic` (a known subject) or `object`, never a banned pronoun."""
        kind = self.sampler.weighted([("pronoun", 6), ("name", 4), ("kin", 4), ("common", 5), ("and", 0.7)])
        if kind == "pronoun":
            return self.people.pronoun("object" if role == "object" else "subject", banned)
        if kind == "name":
            return self.people.name()
        if kind == "kin":
            return self.people.relative()
        if kind == "and":
            return self.people.together()
        noun = self.sampler.rare(self.nps.of_class(["person"]), lambda n: n.singular)
        found = self.nps.common(noun, "known" if role == "object" else role)
        plain = found.phrase.source[0] in ("the", "a")
        return self.from_city(found) if plain and self.sampler.chance(0.25) else found

    def from_city(self, found: NounPhrase) -> NounPhrase:
        """Return `the doctor from Hue`."""
        slots = {"n": found.phrase, "q": self.city()}
        phrase = compose("{n} from {q}", "{n} đến từ {q}", "from=từ from~đến", head="n", slots=slots)
        phrase = phrase.tagged("noun with origin")
        return NounPhrase(phrase, found.agreement, found.auxiliary, found.noun, found.echo)

    def persons(self) -> NounPhrase:
        """Return several persons as a subject."""
        kind = self.sampler.weighted([("they", 2), ("we", 2), ("and", 4), ("common", 3)])
        if kind == "and":
            return self.people.together()
        if kind == "common":
            noun = self.sampler.rare(self.nps.of_class(["person"]), lambda n: n.plural)
            return self.nps.common(noun, "group")
        return self.people.pronoun("subject", [p.auxiliary for p in self.lexicon.pronouns if p.auxiliary != kind])

    def third(self) -> NounPhrase:
        """Return a person as a subject of the third person singular."""
        for _ in range(20):
            found = self.person("subject")
            if found.agreement == "he":
                return found
        return self.people.name()

    def subject(self, verb: Verb) -> NounPhrase:
        """Return a subject that the verb can have."""
        tag = self.sampler.weighted([(tag, 6.0 if tag == "person" else 1.0) for tag in verb.subjects])
        if tag == "person":
            return self.person("subject")
        if tag in ("adult", "kin") and self.sampler.chance(0.5):
            return self.people.relative()
        if tag in ("adult", "kin") and self.sampler.chance(0.4):
            return self.people.pronoun("subject")
        noun = self.sampler.rare(self.nps.of_class([tag]), lambda n: n.singular)
        return self.nps.common(noun, "subject")

    def object(self, verb: Verb, wanted: str, subject: NounPhrase | None) -> NounPhrase:
        """Return an object of the verb, in a form that suits the verb and the template (`wanted`)."""
        people = [tag for tag in verb.objects if tag in PEOPLE]
        nouns = self.nps.of_class(verb.objects)
        if people and (not nouns or self.sampler.chance(0.6)):
            return self.someone(self.sampler.pick(people), subject)
        kind = OBJECT_KINDS.get((wanted, verb.nps), verb.nps if wanted in ("any", "known", "generic") else wanted)
        nouns = [n for n in nouns if not n.mass or kind != "known plural"]
        several = kind in ("known plural", "bare")
        noun = self.sampler.rare(nouns, lambda n: n.plural or n.singular if several else n.singular)
        found = self.nps.common(noun, self.habitual(noun) if kind == "generic" else kind, 0.5)
        phrase = found.phrase.tagged(combinations=[("verb+object", verb.key, noun.singular)])
        return NounPhrase(phrase, found.agreement, found.auxiliary, noun)

    def habitual(self, noun: Noun) -> str:
        """Return the kind of noun phrase for a habitual object: `books`, but `my house`."""
        if noun.classes & {"edible", "drink", "growable"}:
            return "bare"
        return "generic" if noun.classes & CONSUMED else "single"

    def someone(self, tag: str, subject: NounPhrase | None) -> NounPhrase:
        """Return a person as an object, never the subject itself."""
        if tag == "KIN":
            return self.people.relative()
        if tag == "NAME":
            return self.people.name()
        banned = REFLEXIVE.get(subject.auxiliary, (subject.auxiliary,)) if subject else ()
        return self.person("object", banned)

    def adverbial(self, tags: Iterable[str]) -> Phrase | None:
        """Return a place whose classes are among the tags, `in the garden`, or None."""
        if "region" in tags and self.sampler.chance(0.5):
            return self.in_city().tagged("place adverbial")
        places = [noun for noun in self.nps.of_class(tags) if noun.place]
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

    def city(self) -> Phrase:
        """Return a city."""
        entry = self.sampler.rare(self.cities, lambda e: e.english)
        return lexical(entry.english, entry.vietnamese, f"city:{entry.english}")

    def in_city(self) -> Phrase:
        """Return a city as a place, `in Hue`."""
        return compose("in {n}", "ở {n}", "in=ở", head="n", n=self.city())

    def destination(self) -> Phrase:
        """Return a destination, without its preposition."""
        if self.sampler.chance(0.2):
            return self.city()
        places = [n for n in self.nps.of_class(("building", "nature", "town")) if n.place]
        noun = self.sampler.rare(places, lambda n: n.singular)
        return self.nps.determined(noun, self.sampler.pick(("definite", "definite", "this", "that")), 0.3, True).phrase
