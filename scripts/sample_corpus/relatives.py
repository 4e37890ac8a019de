"""Noun phrases with a relative clause or a place, and the sentences that hold them."""

from .descriptions import Descriptions
from .events import Template
from .lexicon import Noun, Verb
from .nominals import Nominals
from .noun_phrases import NounPhrase
from .phrase import Phrase, compose, lexical

# name: (source, target, links); {n} carries determiner and plural word
RELATIVES = {
    "object relative": ("{n} that {s} {v} {t}", "{n} mà {s} đã {v} {t}", "that=mà {v}~đã"),
    "whom relative": ("{n} whom {s} {v} {t}", "{n} mà {s} đã {v} {t}", "whom=mà {v}~đã"),
    "subject relative progressive": ("{n} who BE {p}", "{n} đang {p}", "who~{n} BE=đang"),
    "subject relative past": ("{n} who {p} {t}", "{n} đã {p} {t}", "who~{n} {p}~đã"),
    "passive relative": ("{n} that WAS {v} by {a}", "{n} được {a} {v}", "that~{n} WAS=được by~được"),
    "place relative": ("{n} where {s} {p}", "{n} nơi {s} {p}", "where=nơi"),
}
EVENT_FRAMES = ("simple past", "future", "progressive", "ability", "perfect with already", "want to", "must")
LOOKS = (
    ("long hair", "~mái tóc/2 dài/1"),
    ("short hair", "~mái tóc/2 ngắn/1"),
    ("black hair", "~mái tóc/2 đen/1"),
    ("blue eyes", "~đôi mắt/2 xanh/1"),
    ("brown eyes", "~đôi mắt/2 nâu/1"),
)
ATTRIBUTES = (
    ("name", "tên", ("hotel", "village", "song", "film", "novel", "street", "river", "mountain", "island", "school", "lake", "museum")),
    ("price", "giá", ("clothes", "furniture", "car", "motorbike", "phone", "camera", "computer", "ticket", "ring", "bag", "house")),
    ("colour", "màu", ("clothes", "car", "motorbike", "bicycle", "umbrella", "door", "wall", "boat")),
)


class Relatives:
    """Makes noun phrases that contain a clause."""

    def __init__(self, descriptions: Descriptions, nominals: Nominals) -> None:
        self.descriptions, self.nominals, self.events = descriptions, nominals, descriptions.events
        self.nps, self.people, self.sampler = descriptions.nps, descriptions.people, descriptions.sampler
        self.lexicon, self.predicates = descriptions.lexicon, descriptions.events.predicates

    def determined(self, noun: Noun) -> NounPhrase:
        return self.nps.determined(noun, self.sampler.weighted([("definite", 3), ("definite plural", 1)]), 0.0)

    def make(self, name: str) -> NounPhrase | None:
        """Return a noun phrase with the relative clause `name` of RELATIVES."""
        if name == "place relative":
            return self.place()
        source, target, links = RELATIVES[name]
        verbs = [v for v in self.lexicon.verbs if self.suits(v, name)]
        form = {"subject relative progressive": "ing", "passive relative": "participle"}.get(name, "past")
        verb = self.sampler.rare(verbs, lambda v: getattr(v, form), 30)
        things = [n for n in self.nps.of_class(verb.objects) if not n.mass and not n.person]
        people = self.nps.of_class(["person"])
        human = "who" in source
        noun = self.sampler.rare(people if human else things, lambda n: n.singular)
        found = self.determined(noun)
        values: dict[str, Phrase | None] = {"n": found.phrase}
        if "{p}" in source:
            values["p"] = self.predicates.complete(verb, found, "any").form(form)
        else:
            values["v"] = self.predicates.complete(verb, None, "any", place=False, manner=False, omit="o").form(form)
        if "{s}" in source:
            subject = self.people.person("subject")
            if subject.noun is not None and subject.several:
                return None
            values["s"] = subject.phrase
        if "{a}" in source:
            values["a"] = self.events.agent(verb, found).phrase
        if "{t}" in source:
            values["t"] = self.events.time("past", verb) if self.sampler.chance(0.4) else None
        pairs = [("construction+verb", name, verb.key)]
        if "{p}" not in source and not human:
            pairs.append(("verb+object", verb.key, noun.singular))
        phrase = compose(source, target, links, head="n", agreement=found.agreement, **values)
        return NounPhrase(phrase.tagged(name, combinations=pairs), found.agreement, found.auxiliary, noun)

    def suits(self, verb: Verb, name: str) -> bool:
        """Whether the verb can stand in the relative clause."""
        if "state" in verb.aspect or not verb.subjects:
            return False
        if name == "whom relative":
            return verb.plain and "PERSON" in verb.objects
        if name == "object relative":
            things = [n for n in self.nps.of_class(verb.objects) if not n.mass and not n.person]
            return verb.plain and bool(things) and "person" in verb.subjects
        if name == "passive relative":
            things = [n for n in self.nps.of_class(verb.objects) if not n.mass and not n.person]
            return verb.plain and verb.passive == "được" and bool(things)
        return "person" in verb.subjects and ("act" in verb.aspect or "past" in name)

    def place(self) -> NounPhrase:
        """Return `the factory where my father works`."""
        key = self.sampler.pick(("work", "study", "live {q}", "live {q}"))
        verb = next(v for v in self.lexicon.verbs if v.key == key)
        tags = {"work": ["work", "hotel", "restaurant"], "study": ["study"]}.get(verb.key, ["region", "house", "street"])
        noun = self.sampler.rare(self.nps.of_class(tags), lambda n: n.singular)
        found = self.nps.determined(noun, "definite", 0.15)
        subject = self.people.person("subject")
        word = verb.third if subject.agreement == "he" else verb.base
        predicate = lexical(word, verb.target.replace(" {q}", ""), f"verb:{verb.key}")
        source, target, links = RELATIVES["place relative"]
        phrase = compose(source, target, links, head="n", n=found.phrase, s=subject.phrase, p=predicate)
        return NounPhrase(phrase.tagged("place relative"), "he", "it", noun)

    def located(self) -> NounPhrase:
        """Return `the book on the table`."""
        noun = self.nominals.movable()
        found = self.determined(noun)
        phrase = compose("{n} {q}", "{n} {q}", head="n", n=found.phrase, q=self.nominals.location(noun))
        return NounPhrase(phrase.tagged("noun with place"), found.agreement, found.auxiliary, noun)

    def looking(self) -> NounPhrase:
        """Return `the girl with long hair`."""
        noun = self.sampler.rare(self.nps.of_class(["man", "woman", "girl", "boy", "singer", "teacher", "student", "child", "actor", "pupil"]), lambda n: n.singular)
        found = self.determined(noun)
        words, vietnamese = self.sampler.pick(LOOKS)
        look = lexical(words, vietnamese, f"look:{words}", head=1)
        phrase = compose("{n} with {x}", "{n} có {x}", "with=có", head="n", n=found.phrase, x=look)
        return NounPhrase(phrase.tagged("noun with look"), found.agreement, found.auxiliary, noun)

    def attribute(self) -> NounPhrase:
        """Return `the price of this bag`."""
        word, vietnamese, classes = self.sampler.pick(ATTRIBUTES)
        noun = self.sampler.rare(self.nps.of_class(classes), lambda n: n.singular)
        owner = self.nps.determined(noun, self.sampler.pick(("this", "that", "definite")), 0.2)
        part = lexical(word, vietnamese, f"attribute:{word}")
        phrase = compose("the {x} of {n}", "{x} của {n}", "of=của the~{x}", head="x", x=part, n=owner.phrase)
        return NounPhrase(phrase.tagged("attribute of"), "he", "it")

    def any(self, name: str) -> NounPhrase | None:
        """Return a noun phrase by the name of its construction."""
        makers = {"noun with place": self.located, "noun with look": self.looking, "attribute of": self.attribute}
        return makers[name]() if name in makers else self.make(name)

    def sentence(self, name: str) -> Phrase | None:
        """Return a sentence with the noun phrase `name` in one of its places."""
        found = self.any(name)
        if found is None:
            return None
        if name == "attribute of":
            return self.about_attribute(found)
        assert found.noun is not None
        frames = ["quality", "this is"]
        frames += ["know", "kin", "event", "event", "event"] if found.noun.person else ["like", "want"] * ("place" not in name or name == "noun with place")
        frames += ["where"] * (name in ("object relative", "whom relative", "place relative", "passive relative"))
        frames += ["search", "see"] * (not found.noun.classes & {"text", "abstract", "media"} and name != "place relative")
        return self.frame(self.sampler.pick(frames), found)

    def frame(self, kind: str, found: NounPhrase) -> Phrase | None:
        """Return the sentence of one kind about the noun phrase."""
        if kind == "event":
            name = self.sampler.pick(EVENT_FRAMES)
            template: Template = next(t for t in self.events.templates if t.name == name)
            return self.events.build(template, subject=found)
        if kind == "quality":
            assert found.noun is not None
            adjective = self.nps.adjective(found.noun, "pred")
            if adjective is None:
                return None
            word, vietnamese = self.sampler.pick((("very", "rất"), ("quite", "khá"), ("not", "không")))
            links = f"{word}={vietnamese} BE~{{a}}"
            return compose(
                f"{{s}} BE {word} {{a}}", f"{{s}} {vietnamese} {{a}}", links, head="a", agreement=found.agreement,
                s=found.phrase, a=self.nps.describe(found.noun, adjective),
            )  # fmt: skip
        subject = self.people.person("subject")
        other = {"s": subject.phrase, "n": found.phrase}
        if kind == "kin":
            kin = self.nps.name() if not found.several and self.sampler.chance(0.3) else self.nps.relative()
            if found.several or kin.several:
                return None
            return compose("{n} is {k}", "{n} là {k}", "is=là", n=found.phrase, k=kin.phrase)
        if kind == "this is":
            word, be = ("these", "are") if found.several else ("this", "is")
            return compose(f"{word} {be} {{n}}", "đây là {n}", f"{word}=đây {be}=là", n=found.phrase)
        if kind == "where":
            return compose("where BE {n}", "{n} ở đâu", "where=ở where=đâu BE~ở", agreement=found.agreement, n=found.phrase).tagged("question")
        if kind == "know":
            return compose("do you know {n}", "bạn có biết {n} không", "do=có do~không you=bạn know=biết", n=found.phrase).tagged("question")
        source, target, links = {
            "like": ("{s} LIKE {n}", "{s} thích {n}", "LIKE=thích"),
            "want": ("{s} WANT to have {n}", "{s} muốn có {n}", "WANT=muốn have=có to~có"),
            "search": ("{s} BE looking for {n}", "{s} đang tìm {n}", "BE=đang looking=tìm for~tìm"),
            "see": ("{s} saw {n} yesterday", "hôm qua {s} đã nhìn thấy {n}", "saw=nhìn saw=thấy saw~đã yesterday=hôm yesterday=qua"),
        }[kind]
        return compose(source, target, links, agreement=subject.agreement, **other)

    def about_attribute(self, found: NounPhrase) -> Phrase:
        """Return a question or statement about the name, price or colour of something."""
        kind = self.sampler.pick(("what", "know", "remember", "like"))
        if kind == "what":
            return compose("what is {n}", "{n} là gì", "what=gì is=là", n=found.phrase).tagged("question")
        if kind == "know":
            return self.frame("know", found) or found.phrase
        subject = self.people.person("subject")
        source, target, links = {
            "remember": ("{s} DO not remember {n}", "{s} không nhớ {n}", "DO~không not=không remember=nhớ"),
            "like": ("{s} KNOW {n}", "{s} biết {n}", "KNOW=biết"),
        }[kind]
        return compose(source, target, links, agreement=subject.agreement, s=subject.phrase, n=found.phrase)
