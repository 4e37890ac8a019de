"""Sentences with a nominal predicate: professions, this is, whose, have, age, price, weather."""

from .descriptions import Descriptions
from .determiners import owned, same_sex
from .lexicon import Noun
from .phrase import Phrase, compose, lexical
from .sampler import NothingFitsError

PROFESSIONS = {
    "profession": ("{s} BE a {n}", "{s} là {n}", "BE=là a~{n}"),
    "profession negated": ("{s} BE not a {n}", "{s} không phải là {n}", "BE=là not=không not=phải a~{n}"),
    "profession question": ("BE {s} a {n}", "{s} có phải là {n} không", "BE=là BE~có BE~phải BE~không a~{n}"),
    "described profession": ("{s} BE a {a} {n}", "{s} là một {n} {a}", "BE=là a=một"),
    "become": ("{s} WANT to become a {n}", "{s} muốn trở thành {n}", "WANT=muốn to~trở become=trở become=thành a~{n}"),
    "became": (
        "{s} became a {a} {n} {t}",
        "{t} {s} đã trở thành một {n} {a}",
        "became=trở became=thành became~đã a=một",
    ),
}
IDENTITIES = {
    "this is": ("this is {n}", "đây là {n}", "this=đây is=là"),
    "that is": ("that is {n}", "đó là {n}", "that=đó is=là"),
    "that is not": ("that is not {n}", "đó không phải là {n}", "that=đó is=là not=không not=phải"),
    "is this": ("is this {n}", "đây có phải là {n} không", "this=đây is=là is~có is~phải is~không"),
}
POINTERS = (("this", "đây"), ("that", "đó"))
HAVING = {
    "have": ("{s} HAVE {n}", "{s} có {n}", "HAVE=có"),
    "not have": ("{s} DO not have a {a} {n}", "{s} không có {n} {a} nào", "DO~không not=không have=có a=nào"),
    "have question": ("DO {s} have a {a} {n}", "{s} có {n} {a} nào không", "DO~không have=có a=nào"),
    "how many have": ("how many {n} DO {s} have", "{s} có bao nhiêu {n}", "how=bao many=nhiêu have=có DO~có"),
}
HAD = ("pet", "livestock", "vehicle", "device", "clothes", "document", "relation", "tool", "luggage", "jewel")
SKIES = (
    ("hot", "nóng"),
    ("cold", "lạnh"),
    ("cool", "mát mẻ"),
    ("sunny", "nắng"),
    ("windy", "nhiều gió"),
    ("cloudy", "nhiều mây"),
)
WEATHER = {
    "weather now": ("it is very {a} {q} {t}", "{t} trời {q} rất {a}", "it=trời very=rất is~{a}", "day"),
    "weather past": ("it was very {a} {q} {t}", "{t} trời {q} rất {a}", "it=trời very=rất was~{a}", "past"),
    "weather future": ("it will be {a} {q} {t}", "{t} trời {q} sẽ {a}", "it=trời will=sẽ be~{a}", "future"),
}
COMPARABLE = (
    ("apple", "orange", "banana", "mango", "pineapple", "watermelon", "coconut"),
    ("tea", "coffee", "milk", "beer", "wine", "water"),
    ("dog", "cat", "rabbit", "bird"),
    ("film", "song", "photo", "painting"),
    ("tomato", "potato", "carrot", "egg"),
    ("shirt", "dress", "coat", "hat", "scarf"),
    ("horse", "buffalo", "cow", "pig", "duck", "hen", "goat"),
    ("novel", "newspaper", "magazine", "poem", "story"),
    ("car", "bicycle", "motorbike", "bus", "taxi"),
    ("meat", "beef", "fish", "seafood", "soup", "bread", "rice"),
)


class Nominals:
    """Builds the sentences of this module."""

    def __init__(self, descriptions: Descriptions) -> None:
        self.descriptions, self.events = descriptions, descriptions.events
        self.nps, self.participants, self.sampler = descriptions.nps, descriptions.participants, descriptions.sampler
        self.lexicon = descriptions.lexicon
        self.ages = [entry for entry in self.lexicon.entries("numbers") if "age" in entry.tags]
        self.countable = [noun for noun in self.lexicon.nouns if not noun.mass]
        things = [noun for noun in self.countable if not noun.person and "room" not in noun.classes]
        self.possessions = [noun for noun in things if owned(noun)]

    def profession(self, name: str) -> Phrase:
        """Return a sentence of the item `name` of PROFESSIONS, such as `my mother is a doctor`."""
        source, target, links = PROFESSIONS[name]
        subject = self.participants.person("topic")
        if subject.several or (subject.noun is not None and "job" in subject.noun.classes):
            raise NothingFitsError("one person without a job gets one")
        jobs = [n for n in self.nps.of_class(("job",)) if "adult" in n.classes]
        noun = self.sampler.rare([n for n in jobs if same_sex(subject, n)], lambda n: n.singular)
        slots: dict[str, Phrase | None] = {"s": subject.phrase, "n": self.nps.unit(noun, bare="{a}" not in source)}
        if "{a}" in source:
            adjective = self.nps.adjective(noun, "become" if name == "became" else "attr")
            if adjective is None:
                raise NothingFitsError(f"no adjective suits {noun.singular!r}")
            slots["a"] = self.nps.describe(noun, adjective)
        if "{t}" in source:
            slots["t"] = self.events.time("past-year")
        return compose(source, target, links, head="n", agreement=subject.agreement, slots=slots).tagged(name)

    def identity(self, name: str) -> Phrase:
        """Return a sentence of the item `name` of IDENTITIES, such as `this is my new book`."""
        source, target, links = IDENTITIES[name]
        if self.sampler.chance(0.2):
            thing = self.participants.people.relative()
            if thing.several:
                raise NothingFitsError("this is one person")
        else:
            noun = self.sampler.rare(self.countable, lambda n: n.singular)
            form = self.sampler.pick(("indefinite", "possessive")) if owned(noun) else "indefinite"
            thing = self.nps.determined(noun, form, 0.5)
        return compose(source, target, links, n=thing.phrase).tagged(name)

    def things(self) -> Phrase:
        """Return `these are my books` or `those are the new chairs`."""
        noun = self.sampler.rare(self.possessions, lambda n: n.plural)
        thing = self.nps.determined(noun, self.sampler.pick(("possessive plural", "definite plural")), 0.4)
        word, vietnamese = self.sampler.pick((("these", "đây"), ("those", "đó")))
        links = f"{word}={vietnamese} are=là"
        return compose(f"{word} are {{n}}", f"{vietnamese} là {{n}}", links, n=thing.phrase).tagged("these are")

    def whose(self) -> Phrase:
        """Return `whose new book is this`."""
        noun = self.sampler.rare(self.possessions, lambda n: n.singular)
        word, vietnamese = self.sampler.pick(POINTERS)
        slots = {"n": self.nps.unit(noun), "a": self.nps.attributes(noun) if self.sampler.chance(0.6) else None}
        source, target = f"whose {{a}} {{n}} is {word}", f"{vietnamese} là {{n}} {{a}} của ai"
        links = f"whose=ai whose~của is=là {word}={vietnamese}"
        return compose(source, target, links, head="n", slots=slots).tagged("whose")

    def mine(self) -> Phrase:
        """Return `this book is mine`."""
        noun = self.sampler.rare(self.possessions, lambda n: n.singular)
        pronouns = [p for p in self.lexicon.pronouns if p.auxiliary != "he"]
        pronoun = self.sampler.rare(pronouns, lambda p: p.independent)
        owner = lexical(pronoun.independent, f"~của {pronoun.vietnamese}", f"pronoun:{pronoun.auxiliary}")
        thing = self.nps.determined(noun, self.sampler.pick(("this", "that", "these", "those")), 0.4)
        source, target, links = "{s} BE {o}", "{s} là {o}", "BE=là"
        if self.sampler.chance(0.4):
            source, target, links = "{s} BE not {o}", "{s} không phải là {o}", "BE=là not=không not=phải"
        slots = {"s": thing.phrase, "o": owner}
        return compose(source, target, links, agreement=thing.agreement, slots=slots).tagged("mine and yours")

    def having(self, name: str) -> Phrase:
        """Return a sentence of the item `name` of HAVING, such as `I have two cats`."""
        source, target, links = HAVING[name]
        noun = self.sampler.rare(
            [n for n in self.nps.of_class(HAD) if n.singular not in ("bus", "train", "taxi")], lambda n: n.plural
        )
        subject = self.participants.person("topic")
        slots: dict[str, Phrase | None] = {"s": subject.phrase, "n": self.nps.unit(noun, name == "how many have")}
        if name == "have":
            slots["n"] = self.nps.common(noun, "new", 0.6).phrase
        elif "{a}" in source:
            slots["a"] = self.nps.attributes(noun) if self.sampler.chance(0.8) else None
        return compose(source, target, links, head="n", agreement=subject.agreement, slots=slots).tagged(name)

    def age(self, name: str) -> Phrase:
        """Return `my father is fifty years old`, or `how old is he`."""
        subject = self.participants.third() if name == "age" else self.participants.person("topic")
        if subject.several:
            raise NothingFitsError("one person has one age")
        if name == "how old":
            source, target, links = "how old BE {s}", "{s} bao nhiêu tuổi", "how=bao how~nhiêu old=tuổi BE~nhiêu"
            return compose(source, target, links, agreement=subject.agreement, s=subject.phrase).tagged(name)
        tens = self.sampler.rare(self.ages, lambda e: e.english)
        slots = {"s": subject.phrase, "k": lexical(tens.english, tens.vietnamese, f"number:{tens.english}")}
        source, target, links = "{s} BE {k} years old", "{s} {k} tuổi", "years=tuổi old~tuổi BE~{k}"
        return compose(source, target, links, head="k", agreement=subject.agreement, slots=slots).tagged(name)

    def price(self) -> Phrase:
        """Return `how much is this bag`."""
        noun = self.sampler.rare([n for n in self.nps.of_class(("buyable",)) if not n.mass], lambda n: n.singular)
        thing = self.nps.determined(noun, self.sampler.pick(("this", "that", "these", "those")), 0.6)
        links = "how=bao much=nhiêu BE~giá much~giá"
        source, target = "how much BE {s}", "{s} giá bao nhiêu"
        return compose(source, target, links, agreement=thing.agreement, s=thing.phrase).tagged("price")

    def who_is(self) -> Phrase:
        """Return `who is that man`."""
        noun: Noun = self.sampler.rare(self.nps.of_class(("person",)), lambda n: n.singular)
        person = self.nps.determined(noun, self.sampler.pick(("this", "that", "these", "those")), 0.6)
        links = "who=ai BE=là"
        return compose("who BE {s}", "{s} là ai", links, agreement=person.agreement, s=person.phrase).tagged("who is")

    def exclamation(self) -> Phrase:
        """Return `what a beautiful house`."""
        noun = self.sampler.rare(self.countable, lambda n: n.singular)
        adjective = self.nps.adjective(noun, "pred")
        if adjective is None or adjective.uses & {"colour", "temp"} or adjective.english in ("new", "old"):
            raise NothingFitsError(f"no adjective to exclaim about {noun.singular!r}")
        slots = {"n": self.nps.unit(noun), "a": self.nps.describe(noun, adjective)}
        return compose("what a {a} {n}", "{n} {a} quá", "what=quá a~{n}", head="n", slots=slots).tagged("exclamation")

    def preference(self) -> Phrase:
        """Return `I like cats more than dogs`."""
        subject = self.participants.person("topic")
        nouns = self.nps.of_class(self.sampler.pick(COMPARABLE))
        first, second = (self.sampler.rare(nouns, lambda n: n.plural or n.singular) for _ in range(2))
        one, two = (self.nps.determined(n, "mass" if n.mass else "bare plural", 0.3) for n in (first, second))
        source, target, links = "{s} LIKE {x} more than {y}", "{s} thích {x} hơn là {y}", "LIKE=thích more=hơn than=là"
        slots = {"s": subject.phrase, "x": one.phrase, "y": two.phrase}
        phrase = compose(source, target, links, agreement=subject.agreement, slots=slots)
        return phrase.tagged("preference", combinations=[("verb+object", "like {o}", first.singular)])

    def weather(self, name: str) -> Phrase:
        """Return a sentence about the weather in a city, from the item `name` of WEATHER."""
        word, vietnamese = self.sampler.rare(SKIES, lambda pair: pair[0])
        source, target, links, kind = WEATHER[name]
        slots = {
            "a": lexical(word, vietnamese, f"weather:{word}"),
            "q": self.participants.in_city(),
            "t": self.events.time(kind),
        }
        return compose(source, target, links, head="a", slots=slots).tagged(name)
