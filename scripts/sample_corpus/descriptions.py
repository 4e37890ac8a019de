"""Sentences about what people and things are: professions, possession, qualities, comparisons, places, weather."""

from .events import Events
from .lexicon import Adjective, Noun
from .noun_phrases import NounPhrase, owned
from .phrase import Phrase, compose, lexical

DEGREES = (
    ("degree very", "{s} BE very {a}", "{s} rất {a}", "very=rất BE~{a}"),
    ("degree too", "{s} BE too {a}", "{s} quá {a}", "too=quá BE~{a}"),
    ("degree quite", "{s} BE quite {a}", "{s} khá {a}", "quite=khá BE~{a}"),
    ("degree extremely", "{s} BE extremely {a}", "{s} vô cùng {a}", "extremely=vô extremely=cùng BE~{a}"),
    ("quality negated", "{s} BE not {a}", "{s} không {a}", "not=không BE~{a}"),
    ("quality not very", "{s} BE not very {a}", "{s} không {a} lắm", "not=không very=lắm BE~{a}"),
    ("quality not enough", "{s} BE not {a} enough", "{s} không đủ {a}", "not=không enough=đủ BE~{a}"),
    ("quality question", "BE {s} {a}", "{s} có {a} không", "BE=có BE~không"),
    ("quality why", "why BE {s} so {a}", "tại sao {s} lại {a} như vậy", "why=tại why=sao BE~lại so=như so=vậy"),
    ("both qualities", "{s} BE both {a} and {b}", "{s} vừa.1 {a} vừa.2 {b}", "both=vừa.1 and=vừa.2 BE~{a}"),
)
COMPARED = (
    ("comparative", "{s} BE {c} than {y}", "{s} {a} hơn {y}", "than=hơn {c}~hơn BE~{a}"),
    ("much comparative", "{s} BE much {c} than {y}", "{s} {a} hơn nhiều so với {y}", "{c}~hơn much=nhiều than=so than=với BE~{a}"),
    ("comparative question", "BE {s} {c} than {y}", "{s} có {a} hơn {y} không", "BE=có BE~không than=hơn {c}~hơn"),
    ("equality", "{s} BE as.1 {a} as.2 {y}", "{s} {a} bằng {y}", "as.1~{a} as.2=bằng BE~{a}"),
    ("inequality", "{s} BE not as.1 {a} as.2 {y}", "{s} không {a} bằng {y}", "not=không as.1~{a} as.2=bằng BE~{a}"),
)


class Descriptions:
    """Fills the patterns of this module."""

    def __init__(self, events: Events) -> None:
        self.events, self.nps, self.people = events, events.nps, events.participants
        self.sampler, self.lexicon = events.sampler, events.lexicon

    def topic(self, adjective: Adjective) -> NounPhrase | None:
        """Return a subject that the adjective suits."""
        if "person" in adjective.suits and self.sampler.chance(0.75):
            return self.people.person("subject")
        nouns = [noun for noun in self.lexicon.nouns if adjective.fits(noun)]
        return self.nps.common(self.sampler.rare(nouns, lambda n: n.singular), "topic", 0.0) if nouns else None

    def quality(self, adjective: Adjective, subject: NounPhrase) -> Phrase:
        """Return the adjective as a predicate of the subject."""
        if subject.noun is not None:
            return self.nps.describe(subject.noun, adjective).tagged("predicative adjective")
        phrase = lexical(adjective.english, adjective.vietnamese, f"adjective:{adjective.key}")
        return phrase.tagged("predicative adjective")

    def predicative(self, use: str = "pred") -> Adjective:
        form = {"comp": "comparative", "sup": "superlative"}.get(use, "english")
        fitting = [a for a in self.lexicon.adjectives if use in a.uses]
        if use in ("comp", "sup"):
            long = self.sampler.chance(0.35)
            fitting = [a for a in fitting if (a.comparative == "more") == long]
        return self.sampler.rare(fitting, lambda a: self.written(a, form))

    def written(self, adjective: Adjective, form: str) -> str:
        """Return the word that the form adds: `bigger`, but `beautiful` for `more beautiful`."""
        word: str = getattr(adjective, form)
        return adjective.english if word in ("more", "most") else word

    def degree(self, name: str) -> Phrase | None:
        """Return `the house is very big` and its kin, by the name of a line of DEGREES."""
        _, source, target, links = next(row for row in DEGREES if row[0] == name)
        first = self.predicative("enough" if "enough" in name else "pred")
        subject = self.topic(first)
        if subject is None:
            return None
        extra = {}
        if "{b}" in source:
            fitting = [a for a in self.lexicon.adjectives if "pred" in a.uses and a.fits(subject.noun) and a != first]
            if not fitting:
                return None
            extra["b"] = self.quality(self.sampler.rare(fitting, lambda a: a.english), subject)
        quality = self.quality(first, subject)
        return compose(source, target, links, head="a", agreement=subject.agreement, s=subject.phrase, a=quality, **extra).tagged(name)

    def colour(self) -> Phrase:
        """Return `this car is red`."""
        adjective = self.predicative("colour")
        subject = self.topic(adjective)
        assert subject is not None and subject.noun is not None
        phrase = self.nps.describe(subject.noun, adjective)
        return compose("{s} BE {a}", "{s} có {a}", "BE=có", agreement=subject.agreement, s=subject.phrase, a=phrase).tagged("colour")

    def feeling(self, name: str) -> Phrase:
        """Return how a person is, looks or feels."""
        adjective = self.predicative("look" if name == "appearance" else "temp")
        subject = self.people.person("subject")
        time = self.events.time("past", self.lexicon.verbs[0])
        source, target, links = {
            "appearance": ("{s} LOOK very {a}", "{s} trông rất {a}", "LOOK=trông very=rất"),
            "past quality": ("{s} WAS very {a} {t}", "{t} {s} đã rất {a}", "WAS=đã very=rất"),
            "feeling": ("{s} felt {a} {t}", "{t} {s} đã cảm thấy {a}", "felt=cảm felt=thấy felt~đã"),
            "no longer quality": ("{s} BE no longer {a}", "{s} không còn {a} nữa", "no=không longer=còn longer~nữa BE~{a}"),
            "still quality": ("{s} BE still {a}", "{s} vẫn còn {a}", "still=vẫn still=còn BE~{a}"),
        }[name]
        quality = self.quality(adjective, subject)
        values = {"s": subject.phrase, "a": quality, "t": time if "{t}" in source else None}
        values = {k: v for k, v in values.items() if "{" + k + "}" in source}
        return compose(source, target, links, head="a", agreement=subject.agreement, **values).tagged(name)

    def rival(self, subject: NounPhrase) -> NounPhrase:
        """Return something to compare the subject with: of the same kind, in another form."""
        if subject.noun is None or subject.noun.person:
            return self.sampler.pick([self.nps.name, self.nps.relative])()
        other = "that" if "this" in subject.phrase.source else "this"
        forms = (other, "possessive") if owned(subject.noun) else (other,)
        return self.nps.determined(subject.noun, self.sampler.pick(forms), 0.0)

    def comparison(self, name: str) -> Phrase | None:
        """Return a comparison by the name of a line of COMPARED."""
        _, source, target, links = next(row for row in COMPARED if row[0] == name)
        adjective = self.predicative("equal" if "equality" in name else "comp")
        if "person" in adjective.suits and self.sampler.chance(0.75):
            subject = self.people.person("subject")
        else:
            nouns = [noun for noun in self.lexicon.nouns if adjective.fits(noun) and not noun.mass]
            noun = self.sampler.rare(nouns, lambda n: n.singular)
            subject = self.nps.determined(noun, self.sampler.pick(("this", "this", "that")), 0.0)
        rival = self.rival(subject)
        quality = self.quality(adjective, subject)
        values = {"s": subject.phrase, "y": rival.phrase, "a": quality}
        if "{c}" in source:
            return self.graded(source, target, links, adjective, subject, values).tagged(name)
        return compose(source, target, links, head="a", agreement=subject.agreement, **values).tagged(name)

    def graded(
        self, source: str, target: str, links: str, adjective: Adjective, subject: NounPhrase, values: dict
    ) -> Phrase:
        """Return a pattern with {c} for the comparative, `bigger` or `more beautiful`."""
        pair = values["a"].combinations
        if adjective.comparative == "more":
            source = source.replace("{c}", "more {a}")
            links = links.replace("than=hơn", "than~hơn").replace("{c}~hơn", "more=hơn")
        else:
            values["a"] = lexical(adjective.comparative, adjective.vietnamese, f"adjective:{adjective.key}").tagged(
                "predicative adjective", combinations=pair
            )
            source = source.replace("{c}", "{a}")
            links = links.replace("{c}~hơn", "{a}~hơn" if "than=hơn" in links else "{a}=hơn")
        return compose(source, target, links, head="a", agreement=subject.agreement, **values)

    def superlative(self) -> Phrase | None:
        """Return `the tallest student in the class`, as in `Lan is the cleverest pupil in this village`."""
        adjective = self.predicative("sup")
        nouns = [n for n in self.lexicon.nouns if adjective.fits(n) and not n.mass and n.classes & {"person", "building", "nature", "animal", "town"}]
        if not nouns:
            return None
        noun = self.sampler.rare(nouns, lambda n: n.singular)
        if noun.person:
            subject = self.people.person("subject")
            if subject.several or subject.noun is not None:
                return None
        else:
            subject = NounPhrase(lexical("this", "đây"), "he", "it")
        where = self.people.adverbial(["region"])
        best = adjective.superlative
        described = self.nps.describe(noun, adjective)
        if best == "most":
            source, links, a = "{s} BE the most {a} {n} {q}", "most=nhất", described
        else:
            source, links = "{s} BE the {a} {n} {q}", "{a}=nhất"
            a = lexical(best, adjective.vietnamese, f"adjective:{adjective.key}").tagged(combinations=described.combinations)
        return compose(
            source, "{s} là {n} {a} nhất {q}", links + " BE=là the~{n}", agreement=subject.agreement,
            s=subject.phrase, a=a, n=self.nps.unit(noun), q=where,
        ).tagged("superlative")  # fmt: skip
