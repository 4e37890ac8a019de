"""Noun phrases with a relative clause, appearance or attribute, and the sentences that contain them."""

from .descriptions import Descriptions
from .determiners import NounPhrase, may_end_in_adjective
from .lexicon import Verb
from .phrase import Phrase, compose, lexical
from .places import Places
from .sampler import NothingFitsError

# name: (source, target, links); {n} is the noun phrase with its determiner
RELATIVES = {
    "object relative": ("{n} that {s} {v} {t}", "{n} mà {s} đã {v} {t}", "that=mà {v}~đã"),
    "whom relative": ("{n} whom {s} {v} {t}", "{n} mà {s} đã {v} {t}", "whom=mà {v}~đã"),
    "subject relative progressive": ("{n} who BE {p}", "{n} đang {p}", "who~{n} BE=đang"),
    "subject relative past": ("{n} who {p} {t}", "{n} đã {p} {t}", "who~{n} {p}~đã"),
    "passive relative": ("{n} that WAS {v} by {a}", "{n} được {a} {v}", "that~{n} WAS=được by~được"),
}
WHERE = ("{n} where {s} {p}", "{n} nơi {s} {p}", "where=nơi")
LOOKS = (
    ("long hair", "~mái/2 tóc/2 dài/1"),
    ("short hair", "~mái/2 tóc/2 ngắn/1"),
    ("black hair", "~mái/2 tóc/2 đen/1"),
    ("blue eyes", "~đôi/2 mắt/2 xanh/1"),
    ("brown eyes", "~đôi/2 mắt/2 nâu/1"),
)
LOOKING = ("man", "woman", "girl", "boy", "singer", "teacher", "student", "child", "actor", "pupil")
ATTRIBUTES = (
    (
        "name",
        "tên",
        tuple(
            [
                "hotel",
                "village",
                "song",
                "film",
                "novel",
                "street",
                "river",
                "mountain",
                "island",
                "school",
                "lake",
                "museum",
            ]
        ),
    ),
    (
        "price",
        "giá",
        tuple(
            [
                "clothes",
                "furniture",
                "car",
                "motorbike",
                "phone",
                "camera",
                "computer",
                "ticket",
                "ring",
                "bag",
                "house",
            ]
        ),
    ),
    ("colour", "màu", tuple(["clothes", "car", "motorbike", "bicycle", "umbrella", "door", "wall", "boat"])),
)
# These have no children; a student may.
YOUNG = ("girl", "boy", "child", "pupil")
YOUNG_KIN = {"younger", "son", "daughter"}
HOLDERS = {
    "this is": ("this is {n}", "đây là {n}", "this=đây is=là"),
    "these are": ("these are {n}", "đây là {n}", "these=đây are=là"),
    # `ở đâu` alone would ask where the previous clause took place.
    "where": ("where BE {n}", "{n} đang ở đâu", "where=ở where=đâu BE=đang"),
    "where built": ("where BE {n}", "{n} nằm ở đâu", "where=ở where=đâu BE=nằm"),
    "know": ("do you know {n}", "bạn có biết {n} không", "do=có do~không you=bạn know=biết"),
    "like": ("{s} LIKE {n}", "{s} thích {n}", "LIKE=thích"),
    "want": ("{s} WANT to have {n}", "{s} muốn có {n}", "WANT=muốn have=có to~có"),
    "search": ("{s} BE looking for {n}", "{s} đang tìm {n}", "BE=đang looking=tìm for~tìm"),
    "see": ("{t}, {s} saw {n}", "{t}, {s} đã nhìn thấy {n}", "saw=nhìn saw=thấy saw~đã"),
    "meet": ("{t}, {s} met {n}", "{t}, {s} đã gặp {n}", "met=gặp met~đã"),
    "want to meet": ("{s} WANT to meet {n}", "{s} muốn gặp {n}", "WANT=muốn meet=gặp to~gặp"),
    "what": ("what is {n}", "{n} là gì", "what=gì is=là"),
    "what price": ("what is {n}", "{n} là bao nhiêu", "what=bao what=nhiêu is=là"),
    "not remember": ("{s} DO not remember {n}", "{s} không nhớ {n}", "DO~không not=không remember=nhớ"),
    "knows": ("{s} KNOW {n}", "{s} biết {n}", "KNOW=biết"),
    "kin": ("{n} is {k}", "{n} là {k}", "is=là"),
}
QUESTIONS = ("where", "where built", "know", "what", "what price")
# A clause that begins with đã, đang or được has no marked end: before an adjective or another verb it reads as the main
# clause, and after `biết` as a separate clause. Before `là` and `đang ở đâu` it does not.
UNMARKED = ("subject relative progressive", "subject relative past", "passive relative")
IMMOVABLE = frozenset(["building", "room", "nature", "town", "road", "opening"])
DEGREES = (("very", "rất"), ("quite", "khá"), ("not", "không"))
EVENTS = ("simple past", "future", "progressive", "ability", "perfect with already", "want to", "must")


class Relatives:
    """Builds complex noun phrases and sentences about them."""

    def __init__(self, descriptions: Descriptions, places: Places) -> None:
        self.descriptions, self.places, self.events = descriptions, places, descriptions.events
        self.nps, self.participants, self.sampler = descriptions.nps, descriptions.participants, descriptions.sampler
        self.lexicon, self.predicates = descriptions.lexicon, descriptions.events.predicates

    def make(self, name: str) -> NounPhrase:
        """Return a noun phrase with the relative clause `name` of RELATIVES."""
        source, target, links = RELATIVES[name]
        form = {"subject relative progressive": "ing", "passive relative": "participle"}.get(name, "past")
        verb = self.sampler.rare([v for v in self.lexicon.verbs if self.suits(v, name)], lambda v: getattr(v, form), 30)
        human = "who" in source
        nouns = self.nps.of_class(("person",) if human else verb.objects)
        noun = self.sampler.rare([n for n in nouns if not n.mass and n.person == human], lambda n: n.singular)
        several = self.sampler.chance(0.25) and "relation" not in noun.classes
        found = self.nps.determined(noun, "definite plural" if several else "definite", 0.2)
        slots: dict[str, Phrase | None] = {"n": found.phrase, "t": None}
        if "{p}" in source:
            slots["p"] = self.predicates.complete(verb, found, "any").form(form)
        else:
            slots["v"] = self.predicates.complete(verb, None, "any", place=False, manner=False, omit="o").form(form)
        if "{s}" in source:
            slots["s"] = self.participants.person("subject").phrase
        if "{a}" in source:
            agent = self.events.agent(verb, found).phrase
            if may_end_in_adjective(found.phrase) or "and" in agent.source:
                raise NothingFitsError("`cửa sổ sạch được bố của họ và tôi mở` has several readings")
            slots["a"] = agent
        if "{t}" in source and self.sampler.chance(0.4):
            slots["t"] = self.events.time("past", verb)
        used = {slot: phrase for slot, phrase in slots.items() if "{" + slot + "}" in source}
        pairs = [("construction+verb", name, verb.key)]
        pairs += [("verb+object", verb.key, noun.singular)] if "{p}" not in source and not human else []
        phrase = compose(source, target, links, head="n", agreement=found.agreement, slots=used)
        return NounPhrase(phrase.tagged(name, combinations=pairs), found.agreement, found.auxiliary, noun)

    def suits(self, verb: Verb, name: str) -> bool:
        """Whether the verb can stand in the relative clause."""
        if "state" in verb.aspect or "stay" in verb.aspect or "person" not in verb.subjects:
            return False
        if name == "whom relative":
            return verb.plain and "PERSON" in verb.objects
        if name.startswith("subject"):
            return "act" in verb.aspect or name == "subject relative past"
        things = [n for n in self.nps.of_class(verb.objects) if not n.mass and not n.person]
        return verb.plain and bool(things) and (name == "object relative" or verb.passive == "được")

    def where_someone_is(self) -> NounPhrase:
        """Return `the factory where my father works`."""
        key, tags = self.sampler.pick(
            (
                ("work", ("work", "hotel", "restaurant")),
                ("study", ("study",)),
                ("live {q}", ("region", "house", "street")),
            )
        )
        verb = next(v for v in self.lexicon.verbs if v.key == key)
        noun = self.sampler.rare(self.nps.of_class(tags), lambda n: n.singular)
        found = self.nps.determined(noun, "definite", 0.25)
        subject = self.participants.person("subject")
        word = verb.third if subject.agreement == "he" else verb.base
        predicate = lexical(word, verb.target.replace(" {q}", ""), f"verb:{verb.key}")
        slots = {"n": found.phrase, "s": subject.phrase, "p": predicate}
        return NounPhrase(compose(*WHERE, head="n", slots=slots).tagged("place relative"), "he", "it", noun)

    def looking(self) -> NounPhrase:
        """Return `the girl with long hair`."""
        noun = self.sampler.rare(self.nps.of_class(LOOKING), lambda n: n.singular)
        found = self.nps.determined(noun, self.sampler.pick(("definite", "definite", "definite plural")), 0.0)
        words, vietnamese = self.sampler.pick(LOOKS)
        slots = {"n": found.phrase, "x": lexical(words, vietnamese, f"look:{words}", head=1)}
        phrase = compose("{n} with {x}", "{n} với {x}", "with=với", head="n", slots=slots).tagged("noun with look")
        return NounPhrase(phrase, found.agreement, found.auxiliary, noun)

    def attribute(self) -> NounPhrase:
        """Return `the price of this bag`."""
        word, vietnamese, classes = self.sampler.pick(ATTRIBUTES)
        noun = self.sampler.rare(self.nps.of_class(classes), lambda n: n.singular)
        # Nobody asks for the color of the green hat.
        adjective = 0.0 if word == "colour" else 0.3
        owner = self.nps.determined(noun, self.sampler.pick(("this", "that", "definite")), adjective)
        slots = {"x": lexical(word, vietnamese, f"attribute:{word}"), "n": owner.phrase}
        phrase = compose("the {x} of {n}", "{x} của {n}", "of=của the~{x}", head="x", slots=slots)
        return NounPhrase(phrase.tagged("attribute of"), "he", "it")

    def noun_phrase(self, name: str) -> NounPhrase:
        """Return a noun phrase by the name of its construction."""
        if name == "noun with place":
            noun = self.places.thing()
            return self.places.located(
                self.nps.determined(noun, self.sampler.pick(("definite", "definite", "definite plural")), 0.3)
            )
        makers = {
            "noun with look": self.looking,
            "attribute of": self.attribute,
            "place relative": self.where_someone_is,
        }
        return makers[name]() if name in makers else self.make(name)

    def holders(self, name: str, found: NounPhrase) -> list[str]:
        """Return the sentences that can contain the noun phrase: items of HOLDERS, `quality` and `event`."""
        if found.noun is None:
            return ["what price" if "price" in found.phrase.source else "what", "know", "not remember", "knows"]
        names = ["these are" if found.several else "this is", *(["quality"] * (name not in UNMARKED))]
        if found.noun.person:
            names += ["search", "want to meet", *(["kin"] * (not found.several))]
            # `Yesterday I met the girl who is singing` mixes tenses.
            names += ["meet"] * (name != "subject relative progressive")
            return names if name in UNMARKED else [*names, "know", "where", "see", "event", "event"]
        where = "where built" if found.noun.classes & IMMOVABLE else "where"
        if name == "place relative":
            return [*names, "like", where]
        tangible = not found.noun.classes & {"text", "abstract", "media"}
        # Nobody asks where the book on the table is, or where a plant is.
        asked = tangible and name != "noun with place" and "plant" not in found.noun.classes
        return [*names, "like", "want", *(["search", "see"] * tangible), *([where] * asked)]

    def sentence(self, name: str) -> Phrase:
        """Return a sentence with the noun phrase `name` in one of its places."""
        found = self.noun_phrase(name)
        return self.hold(self.sampler.pick(self.holders(name, found)), found)

    def hold(self, kind: str, found: NounPhrase) -> Phrase:
        """Return a sentence of this kind about the noun phrase."""
        if kind == "event":
            return self.events.build(self.sampler.pick(EVENTS), subject=found)
        if kind == "quality":
            return self.quality(found)
        source, target, links = HOLDERS[kind]
        slots: dict[str, Phrase | None] = {"n": found.phrase}
        agreement = found.agreement
        if "{s}" in source:
            subject = self.participants.person("subject")
            if {("I", "me"), ("we", "us")} & {(" ".join(subject.phrase.source), word) for word in found.phrase.source}:
                raise NothingFitsError("one who speaks is not in the relative clause: 'I met the actor who helped me'")
            slots["s"], agreement = subject.phrase, subject.agreement
        if "{t}" in source:
            if any(lexeme.startswith("time:") for lexeme in found.phrase.lexemes):
                raise NothingFitsError("a second time in the relative clause would contradict the first")
            slots["t"] = self.events.time("past")
        if "{k}" in source:
            slots["k"] = self.kin(found).phrase
        phrase = compose(source, target, links, head="n", agreement=agreement, slots=slots)
        return phrase.tagged("question") if kind in QUESTIONS else phrase

    def kin(self, found: NounPhrase) -> NounPhrase:
        """Return a relative that the person can be: not `the girl is my husband`."""
        kin = self.participants.people.relative()
        young = found.noun is not None and found.noun.singular in YOUNG
        if kin.several or {found.auxiliary, kin.auxiliary} == {"he", "she"}:
            raise NothingFitsError("one person is one relative, of the same sex")
        if (young and not YOUNG_KIN & set(kin.phrase.source)) or "young" in found.phrase.source:
            raise NothingFitsError("a child, or somebody young, is nobody's grandmother")
        return kin

    def quality(self, found: NounPhrase) -> Phrase:
        """Return `the book that I bought is very interesting`."""
        adjective = self.nps.adjective(found.noun, "pred") if found.noun else None
        if adjective is None or found.noun is None:
            raise NothingFitsError("no adjective suits the noun phrase")
        # `học khá` is `to be good at school`
        after_verb = "place relative" in found.phrase.constructions
        word, vietnamese = self.sampler.pick([degree for degree in DEGREES if not (after_verb and degree[1] == "khá")])
        slots = {"s": found.phrase, "a": self.nps.describe(found.noun, adjective).tagged("predicative adjective")}
        source, target = f"{{s}} BE {word} {{a}}", f"{{s}} {vietnamese} {{a}}"
        return compose(
            source, target, f"{word}={vietnamese} BE~{{a}}", head="a", agreement=found.agreement, slots=slots
        )
