"""Noun phrases: nouns with classifiers, adjectives, numbers, determiners and measures."""

from collections.abc import Iterable

from .determiners import BEFORE_COLOUR, DETERMINED, GENDERS, MEASURES, SINGULAR_ONLY, TAGS, NounPhrase, forms, written
from .lexicon import Adjective, Lexicon, Noun
from .people import People
from .phrase import Phrase, compose, lexical
from .sampler import NothingFitsError, Sampler


class NounPhrases:
    """Builds noun phrases from the lexicon."""

    def __init__(self, lexicon: Lexicon, sampler: Sampler, people: People) -> None:
        self.lexicon, self.sampler, self.people = lexicon, sampler, people
        self.numbers = [entry for entry in lexicon.entries("numbers") if "count" in entry.tags]
        self._of_class: dict[tuple[str, ...], list[Noun]] = {}
        self._fitting: dict[tuple[str, str], list[Adjective]] = {}

    def of_class(self, classes: Iterable[str]) -> list[Noun]:
        """Return the nouns whose class or name is listed."""
        key = tuple(classes)
        if key not in self._of_class:
            self._of_class[key] = [n for n in self.lexicon.nouns if set(key) & (n.classes | {n.singular})]
        return self._of_class[key]

    def number(self, noun: Noun, most: int = 9) -> Phrase:
        """Return one of the first `most` numbers from two on, preferring small ones."""
        entry = self.numbers[int(most * self.sampler.fraction() ** 1.7)]
        phrase = lexical(entry.english, entry.vietnamese, f"number:{entry.english}")
        return phrase.tagged("numbers", combinations=[("number+noun", entry.english, noun.singular)])

    def unit(self, noun: Noun, several: bool = False, bare: bool = False) -> Phrase:
        """Return classifier and noun; without the classifier if `bare`."""
        words = noun.plural if several else noun.singular
        last = len(words.split())
        classifier = "" if bare or not noun.classifier else f"~{noun.classifier}/{last} "
        return lexical(words, classifier + noun.vietnamese, f"noun:{noun.singular}", head=last - 1)

    def adjective(self, noun: Noun, use: str = "attr") -> Adjective | None:
        """Return an adjective that suits the noun in this use, or None."""
        key = (noun.singular, use)
        if key not in self._fitting:
            self._fitting[key] = [a for a in self.lexicon.adjectives if use in a.uses and a.fits(noun)]
        return self.sampler.rare(self._fitting[key], lambda a: a.english) if self._fitting[key] else None

    def describe(self, noun: Noun, adjective: Adjective) -> Phrase:
        """Return the adjective as a phrase that records its noun."""
        phrase = lexical(adjective.english, adjective.vietnamese, f"adjective:{adjective.key}")
        return phrase.tagged(combinations=[("adjective+noun", adjective.key, noun.singular)])

    def attributes(self, noun: Noun) -> Phrase | None:
        """Return an adjective, or a size and a color; None if no adjective suits."""
        first = self.adjective(noun)
        if first is None:
            return None
        one = self.describe(noun, first)
        second = self.adjective(noun, "colour") if first.english in BEFORE_COLOUR and self.sampler.chance(0.9) else None
        if second is None:
            return one.tagged("attributive adjective")
        return compose("{x} {y}", "{x} {y}", x=one, y=self.describe(noun, second)).tagged("two adjectives")

    def common(self, noun: Noun, kind: str, adjective: float = 0.35, bare: bool = False) -> NounPhrase:
        """Return a noun phrase in one of the forms for its kind of position, preferring rarely used words."""
        name = self.sampler.rare(forms(noun, kind), lambda form: written(noun, form), 3)
        return self.measured(noun) if name == "measure" else self.determined(noun, name, adjective, bare)

    def determined(self, noun: Noun, name: str, adjective: float = 0.35, bare: bool = False) -> NounPhrase:
        """Return the noun in the form `name` of DETERMINED; `adjective` is the probability that it has an adjective.

        `bare` leaves the classifier out after `the`, as places do: `trên bàn`. Raises NothingFitsError for the plural
        of a noun that the corpus has in the singular only.
        """
        number, source, target, links = DETERMINED[name]
        plural = number == "many"
        if plural and noun.classes & SINGULAR_ONLY:
            raise NothingFitsError(f"the corpus has no plural of {noun.singular!r}")
        described = self.attributes(noun) if "{a}" in source and self.sampler.chance(adjective) else None
        generic = name == "bare plural"
        many = "những" if noun.classifier else "các"
        phrase = compose(
            source,
            target.replace("PL", many),
            links.replace("PL", many),
            head="n",
            n=self.unit(noun, plural, generic or (bare and name == "definite" and described is None)),
            a=described,
            o=self.people.possessor().tagged("possession") if "{o}" in source else None,
            k=self.number(noun, 9 if name == "number" else 3) if "{k}" in source else None,
        )
        phrase = phrase.tagged(*(TAGS[name],) if name in TAGS else ())
        gender = GENDERS.get(noun.singular, "it")
        return NounPhrase(phrase, "they" if plural else "he", "they" if plural else gender, noun)

    def measured(self, noun: Noun) -> NounPhrase:
        """Return a measured mass noun such as `two cups of tea`, or `some bread` if it has no measure."""
        fitting = [measure for measure in MEASURES if noun.singular in measure[3]]
        if not fitting:
            return self.determined(noun, "some mass")
        plural = self.sampler.chance(0.5)
        one, several, vietnamese, _ = self.sampler.rare(fitting, lambda m: m[1] if plural else m[0])
        phrase = compose(
            "{k} {m} of {n}" if plural else "a {m} of {n}",
            "{k} {m} {n}" if plural else "một {m} {n}",
            "of~{m}" if plural else "of~{m} a=một",
            head="n",
            k=self.number(noun) if plural else None,
            m=lexical(several if plural else one, vietnamese),
            n=self.unit(noun),
        )
        return NounPhrase(phrase.tagged("measures"), "they" if plural else "he", "they" if plural else "it", noun)
