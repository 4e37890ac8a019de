"""Sentences about location: there is, it is on the table, where is it, and places after nouns."""

from .determiners import NounPhrase, owned
from .events import Events
from .lexicon import Noun
from .phrase import Phrase, compose

PREPOSITIONS = (
    ("on", "trên", ("surface",)),
    ("under", "dưới", ("table", "chair", "bed", "tree")),
    ("in", "trong", ("container", "room", "garden", "house")),
    ("behind", "sau", ("door", "house", "tree", "hospital", "school", "station", "market", "cupboard", "shop")),
    ("in front of", "trước", ("house", "hotel", "hospital", "school", "station", "bank", "theatre", "shop")),
    (
        "near",
        "gần",
        (
            "river",
            "lake",
            "house",
            "hotel",
            "hospital",
            "school",
            "station",
            "bank",
            "market",
            "bridge",
            "park",
            "airport",
        ),
    ),
    (
        "next to",
        "cạnh",
        ("library", "bank", "hotel", "restaurant", "school", "hospital", "window", "piano", "supermarket"),
    ),
)
LINKS = {"in front of": "front=trước in~trước of~trước", "next to": "next=cạnh to~cạnh"}
LITTLE = tuple(
    [
        "cat",
        "book",
        "newspaper",
        "letter",
        "map",
        "ticket",
        "hat",
        "phone",
        "camera",
        "bag",
        "bottle",
        "cup",
        "bowl",
        "knife",
        "key",
        "pen",
        "umbrella",
        "gift",
        "toy",
        "ball",
        "basket",
        "box",
    ]
)
LARGE = tuple(
    [
        "dog",
        "car",
        "bicycle",
        "motorbike",
        "truck",
        "bus",
        "taxi",
        "tree",
        "horse",
        "child",
        "man",
        "woman",
        "girl",
        "boy",
        "policeman",
        "tourist",
        "buffalo",
        "flower",
    ]
)
THERE = {
    "there is": ("there is {n} {q}", "có {n} {q}", "there~có is=có"),
    "there are": ("there are {n} {q}", "có {n} {q}", "there~có are=có"),
    "is there": ("is there a {a} {n} {q}", "có {n} {a} nào {q} không", "there~có is=có is~không a=nào"),
}


class Places:
    """Builds the sentences of this module."""

    def __init__(self, events: Events) -> None:
        self.events, self.nps, self.participants = events, events.nps, events.participants
        self.sampler = events.sampler

    def location(self, thing: Noun) -> Phrase:
        """Return a place where the thing can be, such as `under the table`."""
        rows = PREPOSITIONS[3:] if thing.singular in LARGE else PREPOSITIONS
        word, vietnamese, classes = self.sampler.pick(rows)
        noun = self.sampler.rare(self.nps.of_class(classes), lambda n: n.singular)
        kind = self.sampler.pick(("definite", "definite", "this", "possessive" if owned(noun) else "that"))
        place = self.nps.determined(noun, kind, 0.3, bare=True).phrase
        links = LINKS.get(word, f"{word}={vietnamese}")
        return compose(f"{word} {{n}}", f"{vietnamese} {{n}}", links, head="n", n=place).tagged("location")

    def thing(self) -> Noun:
        """Return a thing or a person that can be anywhere."""
        nouns = self.nps.of_class(self.sampler.pick((LITTLE, LITTLE, LARGE)))
        return self.sampler.rare(nouns, lambda n: n.singular)

    def there(self, name: str) -> Phrase:
        """Return a sentence of the item `name` of THERE, such as `there is a cat under the table`."""
        source, target, links = THERE[name]
        noun = self.thing()
        slots: dict[str, Phrase | None] = {"q": self.location(noun)}
        if name == "is there":
            slots |= {"n": self.nps.unit(noun), "a": self.nps.attributes(noun) if self.sampler.chance(0.6) else None}
        else:
            form = "indefinite" if name == "there is" else self.sampler.pick(("number", "many", "some"))
            slots["n"] = self.nps.determined(noun, form, 0.5).phrase
        return compose(source, target, links, head="n", slots=slots).tagged(name)

    def position(self) -> Phrase:
        """Return `the keys are in my bag`."""
        noun = self.thing()
        thing = self.nps.common(noun, "topic", 0.4)
        slots = {"s": thing.phrase, "q": self.location(noun)}
        return compose("{s} BE {q}", "{s} ở {q}", "BE=ở", head="q", agreement=thing.agreement, slots=slots).tagged(
            "position"
        )

    def where(self) -> Phrase:
        """Return `where is the hospital`."""
        if self.sampler.chance(0.3):
            thing = self.participants.person("subject")
        else:
            noun = self.sampler.rare(self.nps.of_class((*LITTLE, *LARGE, "building")), lambda n: n.singular)
            thing = self.nps.common(noun, "topic", 0.5)
        links = "where=ở where=đâu BE~ở"
        source, target = "where BE {s}", "{s} ở đâu"
        return compose(source, target, links, agreement=thing.agreement, s=thing.phrase).tagged("where is")

    def located(self, found: NounPhrase) -> NounPhrase:
        """Return a noun phrase with a place after it, `the book on the table`."""
        if found.noun is None:
            raise ValueError("only a phrase with a common noun takes a place; pass one made by NounPhrases")
        slots = {"n": found.phrase, "q": self.location(found.noun)}
        phrase = compose("{n} {q}", "{n} {q}", head="n", slots=slots).tagged("noun with place")
        return NounPhrase(phrase, found.agreement, found.auxiliary, found.noun)
