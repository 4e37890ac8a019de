"""Sentences about qualities: degrees, colors, feelings, comparisons, superlatives."""

from .determiners import NounPhrase, owned, same_sex
from .events import Events
from .lexicon import Adjective
from .phrase import Phrase, compose, lexical
from .sampler import NothingFitsError

DEGREES = {
    "degree very": ("{s} BE very {a}", "{s} rất {a}", "very=rất BE~{a}"),
    "degree too": ("{s} BE too {a}", "{s} quá {a}", "too=quá BE~{a}"),
    "degree quite": ("{s} BE quite {a}", "{s} khá {a}", "quite=khá BE~{a}"),
    "degree extremely": ("{s} BE extremely {a}", "{s} vô cùng {a}", "extremely=vô extremely=cùng BE~{a}"),
    "quality negated": ("{s} BE not {a}", "{s} không {a}", "not=không BE~{a}"),
    "quality not very": ("{s} BE not very {a}", "{s} không {a} lắm", "not=không very=lắm BE~{a}"),
    "quality not enough": ("{s} BE not {a} enough", "{s} không đủ {a}", "not=không enough=đủ BE~{a}"),
    "quality question": ("BE {s} {a}", "{s} có {a} không", "BE=có BE~không"),
    "quality why": (
        "why BE {s} so {a}",
        "tại sao {s} lại {a} như vậy",
        "why=tại why=sao BE~lại so=như so=vậy",
    ),
    "both qualities": ("{s} BE both {a} and {b}", "{s} vừa.1 {a} vừa.2 {b}", "both=vừa.1 and=vừa.2 BE~{a}"),
}
# {c} is the comparative: `bigger`, `more beautiful`
COMPARED = {
    "comparative": ("{s} BE {c} than {y}", "{s} {a} hơn {y}", "than=hơn {c}~hơn BE~{a}"),
    "much comparative": (
        "{s} BE much {c} than {y}",
        "{s} {a} hơn nhiều so với {y}",
        "{c}~hơn much=nhiều than=so than=với BE~{a}",
    ),
    "comparative question": (
        "BE {s} {c} than {y}",
        "{s} có {a} hơn {y} không",
        "BE=có BE~không than=hơn {c}~hơn",
    ),
    "equality": ("{s} BE as.1 {a} as.2 {y}", "{s} {a} bằng {y}", "as.1~{a} as.2=bằng BE~{a}"),
    "inequality": (
        "{s} BE not as.1 {a} as.2 {y}",
        "{s} không {a} bằng {y}",
        "not=không as.1~{a} as.2=bằng BE~{a}",
    ),
}
FEELINGS = {
    "appearance": ("{s} LOOK very {a} {t}", "{t} {s} trông rất {a}", "LOOK=trông very=rất"),
    "past quality": ("{s} WAS very {a} {t}", "{t} {s} rất {a}", "very=rất WAS~{a}"),
    "feeling": ("{s} felt {a} {t}", "{t} {s} đã cảm thấy {a}", "felt=cảm felt=thấy felt~đã"),
    "no longer quality": ("{s} BE no longer {a}", "{s} không còn {a} nữa", "no=không longer=còn longer~nữa BE~{a}"),
    "still quality": ("{s} BE still {a}", "{s} vẫn còn {a}", "still=vẫn still=còn BE~{a}"),
}


class Descriptions:
    """Builds the sentences of this module."""

    def __init__(self, events: Events) -> None:
        self.events, self.nps, self.participants = events, events.nps, events.participants
        self.sampler, self.lexicon = events.sampler, events.lexicon

    def adjective(self, use: str = "pred") -> Adjective:
        """Return an adjective for the use, preferring one whose form is rare so far."""
        fitting = [a for a in self.lexicon.adjectives if use in a.uses]
        form = {"comp": "comparative", "sup": "superlative"}.get(use, "english")
        if use in ("comp", "sup"):
            long = self.sampler.chance(0.3)
            fitting = [a for a in fitting if (a.comparative == "more") == long]
            form = "english" if long else form
        return self.sampler.rare(fitting, lambda a: getattr(a, form))

    def topic(self, adjective: Adjective) -> NounPhrase:
        """Return a subject that the adjective suits."""
        if "person" in adjective.suits and self.sampler.chance(0.75):
            return self.participants.person("topic")
        nouns = [noun for noun in self.lexicon.nouns if adjective.fits(noun)]
        return self.nps.common(self.sampler.rare(nouns, lambda n: n.singular), "topic", 0.0)

    def quality(self, adjective: Adjective, subject: NounPhrase) -> Phrase:
        """Return the adjective as a predicate of the subject."""
        if subject.noun is not None:
            return self.nps.describe(subject.noun, adjective).tagged("predicative adjective")
        phrase = lexical(adjective.english, adjective.vietnamese, f"adjective:{adjective.key}")
        return phrase.tagged("predicative adjective")

    def degree(self, name: str) -> Phrase:
        """Return a sentence of the item `name` of DEGREES, such as `the house is very big`."""
        source, target, links = DEGREES[name]
        first = self.adjective("enough" if "enough" in name else "pred")
        subject = self.topic(first)
        slots = {"s": subject.phrase, "a": self.quality(first, subject)}
        if "{b}" in source:
            fitting = [a for a in self.lexicon.adjectives if "pred" in a.uses and a.fits(subject.noun)]
            second = self.sampler.rare(fitting, lambda a: a.english)
            if "temp" in second.uses | first.uses:
                raise NothingFitsError("a passing state does not go with a lasting quality")
            slots["b"] = self.quality(second, subject)
        return compose(source, target, links, head="a", agreement=subject.agreement, slots=slots).tagged(name)

    def colour(self) -> Phrase:
        """Return `this car is red`."""
        adjective = self.adjective("colour")
        nouns = [noun for noun in self.lexicon.nouns if adjective.fits(noun)]
        noun = self.sampler.rare(nouns, lambda n: n.singular)
        subject = self.nps.common(noun, "topic", 0.0)
        quality = self.nps.describe(noun, adjective)
        slots = {"s": subject.phrase, "a": quality}
        return compose("{s} BE {a}", "{s} có {a}", "BE=có", agreement=subject.agreement, slots=slots).tagged("colour")

    def feeling(self, name: str) -> Phrase:
        """Return how a person is, looks or feels, from the item `name` of FEELINGS."""
        adjective = self.adjective("look" if name == "appearance" else "temp")
        subject = self.participants.person("topic")
        source, target, links = FEELINGS[name]
        slots: dict[str, Phrase | None] = {"s": subject.phrase, "a": self.quality(adjective, subject)}
        if "{t}" in source:
            slots["t"] = self.events.time("day" if name == "appearance" else "past")
        return compose(source, target, links, head="a", agreement=subject.agreement, slots=slots).tagged(name)

    def compared(self, adjective: Adjective) -> tuple[NounPhrase, NounPhrase]:
        """Return two subjects of the same kind that the adjective suits."""
        if "person" in adjective.suits and self.sampler.chance(0.75):
            return self.participants.person("topic"), self.sampler.pick(
                (self.participants.people.name, self.participants.people.relative)
            )()
        nouns = [noun for noun in self.lexicon.nouns if adjective.fits(noun) and not noun.mass]
        noun = self.sampler.rare(nouns, lambda n: n.singular)
        one, other = self.sampler.pick((("this", "that"), ("that", "this")))
        if owned(noun) and self.sampler.chance(0.5):
            other = "possessive"
        return self.nps.determined(noun, one, 0.0), self.nps.determined(noun, other, 0.0)

    def comparison(self, name: str) -> Phrase:
        """Return a comparison from the item `name` of COMPARED."""
        source, target, links = COMPARED[name]
        adjective = self.adjective("equal" if "equality" in name else "comp")
        subject, rival = self.compared(adjective)
        quality = self.quality(adjective, subject)
        if "{c}" in source:
            if adjective.comparative == "more":
                source = source.replace("{c}", "more {a}")
                links = links.replace("than=hơn", "than~hơn").replace("{c}~hơn", "more=hơn")
            else:
                quality = self.graded(adjective.comparative, adjective, quality)
                source = source.replace("{c}", "{a}")
                links = links.replace("{c}~hơn", "{a}~hơn" if "than=hơn" in links else "{a}=hơn")
        slots = {"s": subject.phrase, "y": rival.phrase, "a": quality}
        return compose(source, target, links, head="a", agreement=subject.agreement, slots=slots).tagged(name)

    def graded(self, word: str, adjective: Adjective, positive: Phrase) -> Phrase:
        """Return the comparative or superlative `word`, with the translation and records of the positive form."""
        phrase = lexical(word, adjective.vietnamese, f"adjective:{adjective.key}")
        return phrase.tagged(*positive.constructions, combinations=positive.combinations)

    def superlative(self) -> Phrase:
        """Return `Lan is the cleverest pupil in this village`, `this is the longest river in Hue`."""
        adjective = self.adjective("sup")
        kinds = {"person", "building", "nature", "animal", "road", "furniture", "vehicle", "clothes"}
        nouns = [
            n
            for n in self.lexicon.nouns
            if adjective.fits(n) and not n.mass and n.classes & kinds and not n.classes & {"relation", "region"}
        ]
        noun = self.sampler.rare(nouns, lambda n: n.singular)
        if noun.person:
            subject = self.participants.person("topic")
            if subject.several or subject.noun is not None or not same_sex(subject, noun):
                raise NothingFitsError("one person is the best of a kind")
        else:
            subject = NounPhrase(lexical("this", "đây"), "he", "it")
        slots: dict[str, Phrase | None] = {
            "s": subject.phrase,
            "n": self.nps.unit(noun),
            "a": self.nps.describe(noun, adjective),
            "q": self.participants.adverbial(("region",)),
        }
        source, links = "{s} BE the most {a} {n} {q}", "most=nhất BE=là the~{n}"
        if adjective.superlative != "most":
            source, links = "{s} BE the {a} {n} {q}", "{a}=nhất BE=là the~{n}"
            slots["a"] = self.graded(adjective.superlative, adjective, self.nps.describe(noun, adjective))
        target = "{s} là {n} {a} nhất {q}"
        return compose(source, target, links, head="n", agreement=subject.agreement, slots=slots).tagged("superlative")
