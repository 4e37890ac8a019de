"""Predicates: a verb with its complements and adverbials, in any verb form."""

from dataclasses import dataclass

from .determiners import NounPhrase, may_end_in_adjective
from .lexicon import Verb
from .participants import Participants
from .phrase import Phrase, compose, lexical
from .sampler import NothingFitsError

WAY = "~một ~cách "  # `in a ... way`: turns a Vietnamese adjective into an adverb


# Before these, `her` is the recipient, not the owner of the object.
CLOSED = ("a", "the", "this", "that", "these", "those", "my", "your", "his", "our", "their")


@dataclass(frozen=True)
class Predicate:
    """A verb with chosen complements whose form is still open."""

    verb: Verb
    complements: dict[str, Phrase | None]
    adverbial: Phrase | None = None

    def form(self, name: str) -> Phrase:
        """Return the predicate with the verb in the form base, third, past, participle or ing."""
        word = getattr(self.verb, name)
        source = self.verb.source.replace("V", word, 1)
        items = self.verb.links.split()
        links = " ".join(word + item[1:] if item[0] == "V" and item[1] in "=~" else item for item in items)
        target = self.verb.target + " {x}"
        phrase = compose(source + " {x}", target, links, head=word, x=self.adverbial, slots=self.complements)
        return phrase.tagged(lexemes=[f"verb:{self.verb.key}"])


class Predicates:
    """Adds complements to verbs."""

    def __init__(self, participants: Participants) -> None:
        self.participants = participants
        self.sampler, self.lexicon = participants.sampler, participants.lexicon
        self.adverbs = {entry.english: entry for entry in self.lexicon.entries("adverbs")}

    def complete(
        self,
        verb: Verb,
        subject: NounPhrase | None,
        nps: str,
        *,
        place: bool = True,
        manner: bool = True,
        skilled: bool = False,
        omit: str = "",
    ) -> Predicate:
        """Return the verb with the object, recipient and place that its frame requires, and sometimes an adverbial.

        `nps` is the kind of noun phrase for the object, `place` and `manner` allow these adverbials, `skilled` allows
        `well`. The complement named by `omit` is left out on both sides, to be put elsewhere by a template.
        """
        people = self.participants
        slots: dict[str, Phrase | None] = {}
        if "{o}" in verb.source:
            slots["o"] = None if omit == "o" else people.object(verb, nps, subject).phrase
        if "{r}" in verb.source:
            recipient = people.someone("PERSON", subject).phrase
            slots["r"] = recipient
            given = slots.get("o")
            if "{r} {o}" in verb.source and recipient.source == ("her",) and given and given.source[0] not in CLOSED:
                raise NothingFitsError("`buy her eight photos` has two readings")
        if "{d}" in verb.source:
            slots["d"] = people.destination()
        if "{c}" in verb.source:
            slots["c"] = people.city()
        if "{q}" in verb.source:
            slots["q"] = people.adverbial(("region", "house"))
        adverb = None
        # A following adverb would attach to the adjective.
        manner = manner and not may_end_in_adjective(slots.get("o"))
        if manner and self.sampler.chance(0.35):
            adverb = self.manner(verb, subject, skilled)
        if adverb is None and place and verb.where and self.sampler.chance(0.45):
            adverb = people.adverbial(verb.where)
        return Predicate(verb, slots, adverb)

    def manner(self, verb: Verb, subject: NounPhrase | None, skilled: bool) -> Phrase | None:
        """Return a manner adverb that suits the verb, or None; `together` needs several subjects."""
        alone = subject is None or not subject.several
        names = [n for n in verb.manner if not (n == "together" and alone) and not (n == "well" and not skilled)]
        if not names:
            return None
        entry = self.adverbs[self.sampler.rare(names, lambda name: name)]
        very = entry.tags[0] == "yes" and self.sampler.chance(0.4)
        plain = entry.vietnamese.removeprefix(WAY)
        adverb = lexical(entry.english, plain if very else entry.vietnamese, f"adverb:{entry.english}")
        if very and plain != entry.vietnamese:
            adverb = compose("very {a}", "một cách rất {a}", "very=rất {a}~một {a}~cách", a=adverb)
        elif very:
            adverb = compose("very {a}", "rất {a}", "very=rất", a=adverb)
        return adverb.tagged("manner adverb")
