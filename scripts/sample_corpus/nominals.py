"""Sentences with a noun for predicate: professions, this is, whose, have, age, there is, where is, weather."""

from .descriptions import Descriptions
from .lexicon import Noun
from .noun_phrases import NounPhrase
from .phrase import Phrase, compose, lexical

PROFESSIONS = {
    "profession": ("{s} BE a {n}", "{s} là {n}", "BE=là a~{n}"),
    "profession negated": ("{s} BE not a {n}", "{s} không phải là {n}", "BE=là not=không not=phải a~{n}"),
    "profession question": ("BE {s} a {n}", "{s} có phải là {n} không", "BE=là BE~có BE~phải BE~không a~{n}"),
    "described profession": ("{s} BE a {a} {n}", "{s} là một {n} {a}", "BE=là a=một"),
    "become": ("{s} WANT to become a {n}", "{s} muốn trở thành {n}", "WANT=muốn to~trở become=trở become=thành a~{n}"),
    "became": ("{s} became a {a} {n} {t}", "{t} {s} đã trở thành một {n} {a}", "became=trở became=thành became~đã a=một"),
}
IDENTITIES = {
    "this is": ("this is {n}", "đây là {n}", "this=đây is=là"),
    "that is": ("that is {n}", "đó là {n}", "that=đó is=là"),
    "that is not": ("that is not {n}", "đó không phải là {n}", "that=đó is=là not=không not=phải"),
    "is this": ("is this {n}", "đây có phải là {n} không", "this=đây is=là is~có is~phải is~không"),
}
PREPOSITIONS = (
    ("on", "trên", ("surface",)),
    ("under", "dưới", ("table", "chair", "bed", "tree")),
    ("in", "trong", ("container", "room", "garden", "house")),
    ("behind", "sau", ("door", "house", "tree", "hospital", "school", "station", "market", "cupboard", "shop")),
    ("in front of", "trước", ("house", "hotel", "hospital", "school", "station", "bank", "theatre", "shop")),
    ("near", "gần", ("river", "lake", "house", "hotel", "hospital", "school", "station", "bank", "market", "bridge", "park", "airport")),
    ("next to", "cạnh", ("library", "bank", "hotel", "restaurant", "school", "hospital", "window", "piano", "supermarket")),
)
LITTLE = "cat book newspaper letter map ticket hat phone camera bag bottle cup bowl knife key pen umbrella gift toy ball basket box".split()
LARGE = "dog car bicycle motorbike truck bus taxi tree horse child man woman girl boy policeman tourist buffalo flower".split()


class Nominals:
    """Fills the patterns of this module."""

    def __init__(self, descriptions: Descriptions) -> None:
        self.descriptions, self.events = descriptions, descriptions.events
        self.nps, self.people, self.sampler = descriptions.nps, descriptions.people, descriptions.sampler
        self.lexicon = descriptions.lexicon
        self.ages = [entry for entry in self.lexicon.entries("numbers") if "age" in entry.tags]

    def profession(self, name: str) -> Phrase | None:
        """Return `my mother is a doctor` and its kin, by the name of an item of PROFESSIONS."""
        source, target, links = PROFESSIONS[name]
        subject = self.people.person("subject")
        if subject.several or (subject.noun is not None and "job" in subject.noun.classes):
            return None
        noun = self.sampler.rare(self.nps.of_class(["job"]), lambda n: n.singular)
        adjective = self.nps.adjective(noun, "become" if "bec" in name else "attr")
        values: dict[str, Phrase | None] = {"s": subject.phrase, "n": self.nps.unit(noun, bare="{a}" not in source)}
        if "{a}" in source:
            if adjective is None:
                return None
            values["a"] = self.nps.describe(noun, adjective)
        if "{t}" in source:
            values["t"] = self.events.time("past-long", self.lexicon.verbs[0])
        return compose(source, target, links, head="n", agreement=subject.agreement, **values).tagged(name)

    def identity(self, name: str) -> Phrase:
        """Return `this is my new book` and its kin."""
        source, target, links = IDENTITIES[name]
        if self.sampler.chance(0.2):
            thing = self.nps.relative()
            while thing.several:
                thing = self.nps.relative()
        else:
            noun = self.sampler.rare([n for n in self.lexicon.nouns if not n.mass], lambda n: n.singular)
            forms = ("indefinite", "possessive") if self.owned(noun) else ("indefinite",)
            thing = self.nps.determined(noun, self.sampler.pick(forms), 0.4)
        return compose(source, target, links, n=thing.phrase).tagged(name)

    def owned(self, noun: Noun) -> bool:
        from .noun_phrases import owned

        return owned(noun)

    def things(self) -> Phrase:
        """Return `these are my books` or `those are the new chairs`."""
        nouns = [n for n in self.lexicon.nouns if not n.mass and self.owned(n)]
        noun = self.sampler.rare(nouns, lambda n: n.plural)
        thing = self.nps.determined(noun, self.sampler.pick(("possessive plural", "definite plural")), 0.3)
        word, vietnamese = self.sampler.pick((("these", "đây"), ("those", "đó")))
        return compose(f"{word} are {{n}}", f"{vietnamese} là {{n}}", f"{word}={vietnamese} are=là", n=thing.phrase).tagged("these are")

    def whose(self) -> Phrase:
        """Return `whose book is this`."""
        nouns = [n for n in self.lexicon.nouns if not n.mass and self.owned(n) and not n.person and "room" not in n.classes]
        noun = self.sampler.rare(nouns, lambda n: n.singular)
        word, vietnamese = self.sampler.pick((("this", "đây"), ("that", "đó")))
        described = self.nps.attributes(noun) if self.sampler.chance(0.5) else None
        links = f"whose=ai whose~của is=là {word}={vietnamese}"
        return compose(
            f"whose {{a}} {{n}} is {word}", f"{vietnamese} là {{n}} {{a}} của ai", links, n=self.nps.unit(noun), a=described
        ).tagged("whose")  # fmt: skip

    def mine(self) -> Phrase:
        """Return `this book is mine`."""
        nouns = [n for n in self.lexicon.nouns if not n.mass and self.owned(n) and not n.person and "room" not in n.classes]
        noun = self.sampler.rare(nouns, lambda n: n.singular)
        pronoun = self.sampler.pick([p for p in self.lexicon.pronouns if p.auxiliary != "he"])
        owner = lexical(pronoun.independent, f"~của {pronoun.vietnamese}", f"pronoun:{pronoun.auxiliary}")
        thing = self.nps.determined(noun, self.sampler.pick(("this", "that", "these", "those")), 0.3)
        negative = self.sampler.chance(0.4)
        source, target = ("{s} BE not {o}", "{s} không phải là {o}") if negative else ("{s} BE {o}", "{s} là {o}")
        links = "BE=là not=không not=phải" if negative else "BE=là"
        return compose(source, target, links, agreement=thing.agreement, s=thing.phrase, o=owner).tagged("mine and yours")

    def having(self, name: str) -> Phrase:
        """Return `I have two cats`, its negation, its question, or `how many cats do you have`."""
        classes = ["pet", "livestock", "vehicle", "device", "clothes", "document", "relation", "tool", "luggage", "jewel"]
        nouns = [n for n in self.nps.of_class(classes) if n.singular not in ("bus", "train", "taxi")]
        noun = self.sampler.rare(nouns, lambda n: n.plural)
        subject = self.people.person("subject")
        if name == "how many have":
            source, target = "how many {n} DO {s} have", "{s} có bao nhiêu {n}"
            links = "how=bao many=nhiêu have=có DO~có"
            unit = self.nps.unit(noun, True)
            return compose(source, target, links, agreement=subject.agreement, n=unit, s=subject.phrase).tagged(name)
        source, target, links = {
            "have": ("{s} HAVE {n}", "{s} có {n}", "HAVE=có"),
            "not have": ("{s} DO not have a {a} {n}", "{s} không có {n} {a} nào", "DO~không not=không have=có a=nào"),
            "have question": ("DO {s} have a {a} {n}", "{s} có {n} {a} nào không", "DO~không have=có a=nào"),
        }[name]
        if name == "have":
            unit, described = self.nps.common(noun, "new", 0.5).phrase, None
        else:
            unit, described = self.nps.unit(noun), self.nps.attributes(noun) if self.sampler.chance(0.7) else None
        values = {"s": subject.phrase, "n": unit, "a": described}
        values = {k: v for k, v in values.items() if "{" + k + "}" in source}
        return compose(source, target, links, head="n", agreement=subject.agreement, **values).tagged(name)

    def age(self, name: str) -> Phrase:
        """Return `my father is fifty years old`, or `how old is he`."""
        subject = self.people.person("subject")
        while subject.several:
            subject = self.people.person("subject")
        if name == "how old":
            links = "how=bao how~nhiêu old=tuổi BE~nhiêu"
            return compose("how old BE {s}", "{s} bao nhiêu tuổi", links, agreement=subject.agreement, s=subject.phrase).tagged(name)
        tens = self.sampler.rare(self.ages, lambda e: e.english)
        number = lexical(tens.english, tens.vietnamese, f"number:{tens.english}")
        links = "years=tuổi old~tuổi BE~{k}"
        return compose(
            "{s} BE {k} years old", "{s} {k} tuổi", links, head="k", agreement=subject.agreement, s=subject.phrase, k=number
        ).tagged(name)  # fmt: skip

    def location(self, thing: Noun | None = None) -> Phrase:
        """Return `under the table`, as a phrase."""
        large = thing is not None and thing.singular in LARGE
        rows = PREPOSITIONS[3:] if large else PREPOSITIONS
        word, vietnamese, classes = self.sampler.pick(rows)
        noun = self.sampler.rare(self.nps.of_class(classes), lambda n: n.singular)
        kind = self.sampler.pick(("definite", "definite", "this", "possessive" if self.owned(noun) else "that"))
        place = self.nps.determined(noun, kind, 0.2, bare=True).phrase
        links = {"in front of": "front=trước in~trước of~trước", "next to": "next=cạnh to~cạnh"}.get(word, f"{word}={vietnamese}")
        return compose(f"{word} {{n}}", f"{vietnamese} {{n}}", links, head="n", n=place).tagged("location")

    def movable(self) -> Noun:
        nouns = self.nps.of_class(self.sampler.pick((LITTLE, LITTLE, LARGE)))
        return self.sampler.rare(nouns, lambda n: n.singular)

    def there(self, name: str) -> Phrase:
        """Return `there is a cat under the table` and its kin."""
        noun = self.movable()
        place = self.location(noun)
        if name == "there are":
            form = self.sampler.pick(("number", "many", "some"))
            thing = self.nps.determined(noun, form, 0.3)
            return compose("there are {n} {q}", "có {n} {q}", "there~có are=có", head="n", n=thing.phrase, q=place).tagged(name)
        if name == "there is":
            thing = self.nps.determined(noun, "indefinite", 0.4)
            return compose("there is {n} {q}", "có {n} {q}", "there~có is=có", head="n", n=thing.phrase, q=place).tagged(name)
        links = "there~có is=có is~không a=nào"
        described = self.nps.attributes(noun) if self.sampler.chance(0.5) else None
        return compose(
            "is there a {a} {n} {q}", "có {n} {a} nào {q} không", links, head="n", n=self.nps.unit(noun), a=described, q=place
        ).tagged(name)  # fmt: skip

    def lies(self) -> Phrase:
        """Return `the keys are in my bag`."""
        noun = self.movable()
        thing = self.nps.common(noun, "topic", 0.3)
        return compose(
            "{s} BE {q}", "{s} ở {q}", "BE=ở", head="q", agreement=thing.agreement, s=thing.phrase, q=self.location(noun)
        ).tagged("position")  # fmt: skip

    def where(self) -> Phrase:
        """Return `where is the hospital`."""
        if self.sampler.chance(0.4):
            thing = self.people.person("subject")
        else:
            noun = self.sampler.rare(self.nps.of_class([*LITTLE, *LARGE, "building"]), lambda n: n.singular)
            thing = self.nps.common(noun, "topic", 0.3)
        links = "where=ở where=đâu BE~ở"
        return compose("where BE {s}", "{s} ở đâu", links, agreement=thing.agreement, s=thing.phrase).tagged("where is")

    def price(self) -> Phrase:
        """Return `how much is this bag`."""
        noun = self.sampler.rare([n for n in self.nps.of_class(["buyable"]) if not n.mass], lambda n: n.singular)
        thing = self.nps.determined(noun, self.sampler.pick(("this", "that", "these", "those")), 0.5)
        links = "how=bao much=nhiêu BE~giá much~giá"
        return compose("how much BE {s}", "{s} giá bao nhiêu", links, agreement=thing.agreement, s=thing.phrase).tagged("price")

    def who_is(self) -> Phrase:
        """Return `who is that man`."""
        noun = self.sampler.rare(self.nps.of_class(["person"]), lambda n: n.singular)
        person = self.nps.determined(noun, self.sampler.pick(("this", "that", "these", "those")), 0.5)
        return compose("who BE {s}", "{s} là ai", "who=ai BE=là", agreement=person.agreement, s=person.phrase).tagged("who is")

    def exclamation(self) -> Phrase | None:
        """Return `what a beautiful house`."""
        noun = self.sampler.rare([n for n in self.lexicon.nouns if not n.mass], lambda n: n.singular)
        adjective = self.nps.adjective(noun, "pred")
        if adjective is None or adjective.uses & {"colour", "temp"}:
            return None
        described = self.nps.describe(noun, adjective)
        return compose("what a {a} {n}", "{n} {a} quá", "what=quá a~{n}", n=self.nps.unit(noun), a=described).tagged("exclamation")

    def preference(self) -> Phrase:
        """Return `I like cats more than dogs`."""
        subject = self.people.person("subject")
        group = self.sampler.pick(("fruit", "drink", "pet", "media", "vegetable", "clothes", "livestock", "document", "wheeled"))
        nouns = self.nps.of_class([group])
        first, second = (self.sampler.rare(nouns, lambda n: n.plural or n.singular) for _ in range(2))
        one, two = (self.nps.determined(n, "mass" if n.mass else "bare plural", 0.2) for n in (first, second))
        links = "LIKE=thích more=hơn than~hơn"
        pair = [("verb+object", "like {o}", first.singular)]
        return compose(
            "{s} LIKE {x} more than {y}", "{s} thích {x} hơn {y}", links, agreement=subject.agreement,
            s=subject.phrase, x=one.phrase, y=two.phrase,
        ).tagged("preference", combinations=pair)  # fmt: skip

    def weather(self, name: str) -> Phrase:
        """Return a sentence about the weather, in a city and at a time."""
        word, vietnamese = self.sampler.pick((("hot", "nóng"), ("cold", "lạnh"), ("cool", "mát mẻ"), ("sunny", "nắng"), ("windy", "gió"), ("cloudy", "nhiều mây")))
        quality = lexical(word, vietnamese, f"weather:{word}")
        city = self.people.city("in", "ở")
        kind = {"weather now": "day", "weather past": "past", "weather future": "future"}[name]
        time = self.events.time(kind, next(v for v in self.lexicon.verbs if "long" in v.aspect))
        source, target, links = {
            "weather now": ("it is very {a} {q} {t}", "{t} trời {q} rất {a}", "it=trời very=rất is~{a}"),
            "weather past": ("it was {a} {q} {t}", "{t} trời {q} đã {a}", "it=trời was=đã"),
            "weather future": ("it will be {a} {q} {t}", "{t} trời {q} sẽ {a}", "it=trời will=sẽ be~{a}"),
        }[name]
        return compose(source, target, links, head="a", a=quality, q=city, t=time).tagged(name, "weather")
