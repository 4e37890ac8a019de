"""Sentences of more than one clause: conjunctions, reported clauses, coordinated predicates."""

from .descriptions import Descriptions
from .noun_phrases import NounPhrase
from .phrase import Phrase, compose, lexical
from .relatives import Relatives

# name: (source, target, links, main clause x, other clause y); clauses are events or `mood`, how someone feels
JOINED = {
    "because": ("{x} because {y}", "{x} vì {y}", "because=vì", ("simple past", "past negation"), ("mood",)),
    "because present": ("{x} because {y}", "{x} vì {y}", "because=vì", ("progressive", "not want to", "want to", "need to"), ("mood now",)),
    "so": ("{y}, so {x}", "{y} nên {x}", "so=nên", ("simple past", "past negation"), ("mood",)),
    "although": ("although {y}, {x}", "mặc dù {y}, {x}", "although=mặc although=dù", ("still past",), ("mood",)),
    "but": ("{x}, but {y}", "{x} nhưng {y}", "but=nhưng", ("simple past", "perfect with already"), ("perfect with not yet",)),
    "but want": ("{x}, but {y}", "{x} nhưng {y}", "but=nhưng", ("want to", "like doing"), ("inability", "mood now")),
    "when": ("when {y}, {x}", "khi {y}, {x}", "when=khi", ("background",), ("arrival",)),
    "when last": ("{x} when {y}", "{x} khi {y}", "when=khi", ("background",), ("arrival",)),
    "after": ("after {y}, {x}", "sau khi {y}, {x}", "after=sau after=khi", ("simple past",), ("past clause",)),
    "before": ("{x} before {y}", "{x} trước khi {y}", "before=trước before=khi", ("future", "must", "should"), ("present clause",)),
    "while": ("{x} while {y}", "{x} trong khi {y}", "while=trong while=khi", ("background",), ("background",)),
    "if": ("if {y}, {x}", "nếu {y}, {x}", "if=nếu", ("future", "ability", "future negation"), ("present clause", "rain")),
    "if last": ("{x} if {y}", "{x} nếu {y}", "if=nếu", ("future", "should", "should not"), ("mood now", "rain")),
    "two clauses": ("{x}, and {y}", "{x} và {y}", "and=và", ("progressive", "future", "simple past"), ("same",)),
}
SHARED = ("because", "because present", "so", "although", "but", "but want", "after", "before", "if last")
REPORTS = {
    "think that": ("{s} THINK that {y}", "{s} nghĩ rằng {y}", "THINK=nghĩ that=rằng"),
    "know that": ("{s} KNOW that {y}", "{s} biết rằng {y}", "KNOW=biết that=rằng"),
    "believe that": ("{s} BELIEVE that {y}", "{s} tin rằng {y}", "BELIEVE=tin that=rằng"),
    "hope that": ("{s} HOPE that {y}", "{s} hy vọng rằng {y}", "HOPE=hy HOPE=vọng that=rằng"),
    "say that": ("{s} SAY that {y}", "{s} nói rằng {y}", "SAY=nói that=rằng"),
}
ASKED = ("embedded what", "embedded what past", "embedded where", "embedded when", "embedded why", "embedded why past", "embedded whether", "who did", "who will", "who is doing")  # fmt: skip


class Complexes:
    """Fills the patterns of this module."""

    def __init__(self, descriptions: Descriptions, relatives: Relatives) -> None:
        self.descriptions, self.relatives, self.events = descriptions, relatives, descriptions.events
        self.people, self.nps, self.sampler = descriptions.people, descriptions.nps, descriptions.sampler
        self.templates = {t.name: t for t in self.events.templates}

    def echo(self, subject: NounPhrase) -> NounPhrase:
        """Return the pronoun that takes up the subject again."""
        pronoun = self.sampler.pick([p for p in self.descriptions.lexicon.pronouns if p.auxiliary == subject.auxiliary])
        phrase = lexical(pronoun.subject, pronoun.vietnamese, f"pronoun:{pronoun.auxiliary}")
        return NounPhrase(phrase, pronoun.agreement, pronoun.auxiliary)

    def clause(self, name: str, subject: NounPhrase, bare: bool = True) -> Phrase | None:
        """Return a clause by the name of an event template, or `mood`, `mood now`, `rain`."""
        if name == "rain":
            time = self.events.time("future", self.descriptions.lexicon.verbs[0])
            return compose("it rains {t}", "{t} trời mưa", "it=trời rains=mưa", t=time).tagged("weather")
        if name.startswith("mood"):
            adjective = self.descriptions.predicative("temp")
            quality = self.descriptions.quality(adjective, subject)
            verb = "WAS" if name == "mood" else "BE"
            return compose(
                f"{{s}} {verb} very {{a}}", "{s} rất {a}", f"very=rất {verb}~{{a}}", head="a", agreement=subject.agreement,
                s=subject.phrase, a=quality,
            )  # fmt: skip
        return self.events.build(self.templates[name], subject=subject, bare=bare)

    def joined(self, name: str) -> Phrase | None:
        """Return two clauses joined as the item `name` of JOINED says."""
        source, target, links, mains, others = JOINED[name]
        main, other = self.sampler.pick(mains), self.sampler.pick(others)
        other = main if other == "same" else other
        first = self.people.person("subject")
        second = self.people.person("subject")
        second_first = source.startswith(("{y}", "when {y}", "after {y}", "although {y}", "if {y}"))
        if name in SHARED:
            again = self.echo(first)
            first, second = (again, first) if second_first else (first, again)
        elif first.auxiliary == second.auxiliary:
            return None
        x, y = self.clause(main, first, name != "two clauses"), self.clause(other, second)
        if x is None or y is None:
            return None
        return compose(source, target, links, x=x, y=y).tagged(f"conjunction {name}")

    def statement(self) -> Phrase | None:
        """Return a statement of any kind that can be reported."""
        kind = self.sampler.pick(("degree", "comparison", "event", "event", "relative"))
        if kind == "degree":
            return self.descriptions.degree(self.sampler.pick(("degree very", "degree too", "quality negated")))
        if kind == "comparison":
            return self.descriptions.comparison(self.sampler.pick(("comparative", "much comparative", "equality")))
        if kind == "relative":
            found = self.relatives.any(self.sampler.pick(("object relative", "noun with place", "subject relative progressive")))
            return self.relatives.frame("quality", found) if found else None
        names = ("future", "ability", "state", "progressive", "future negation", "should", "must", "perfect with already", "present negation", "passive future")
        return self.events.build(self.templates[self.sampler.pick(names)])

    def report(self, name: str) -> Phrase | None:
        """Return `I think that this house is very big`."""
        source, target, links = REPORTS[name]
        subject = self.people.person("subject")
        if name == "hope that":
            inner = self.events.build(self.templates[self.sampler.pick(("future", "ability", "future negation"))])
        else:
            inner = self.statement()
        if inner is None:
            return None
        return compose(source, target, links, agreement=subject.agreement, s=subject.phrase, y=inner).tagged(name)

    def asked(self, name: str) -> Phrase | None:
        """Return `I do not know where he went` or `do you know who wrote this letter`."""
        inner = self.events.build(self.templates[self.sampler.pick(ASKED)])
        if inner is None or (name == "do you know" and "embedded whether" in inner.constructions):
            return None
        if name == "do you know":
            links = "do=có do~không you=bạn know=biết"
            return compose("do you know {y}", "bạn có biết {y} không", links, y=inner).tagged(name)
        subject = self.people.person("subject")
        source, target, links = {
            "not know": ("{s} DO not know {y}", "{s} không biết {y}", "DO~không not=không know=biết"),
            "ask": ("{s} asked me {y}", "{s} đã hỏi tôi {y}", "asked=hỏi asked~đã me=tôi"),
            "want to know": ("{s} WANT to know {y}", "{s} muốn biết {y}", "WANT=muốn know=biết to~biết"),
        }[name]
        return compose(source, target, links, agreement=subject.agreement, s=subject.phrase, y=inner).tagged(name)

    def predicates(self, name: str) -> Phrase | None:
        """Return two predicates of one subject: joined by `and`, or by `not only ... but also`."""
        subject = self.people.person("subject")
        form = "past" if name == "two predicates" else "third" if subject.agreement == "he" else "base"
        verbs = [v for v in self.descriptions.lexicon.verbs if "person" in v.subjects and v.past != v.base]
        verbs = [v for v in verbs if ("act" in v.aspect and (form == "past" or v.habit))]
        one, two = (self.sampler.rare(verbs, lambda v: getattr(v, form), 30) for _ in range(2))
        nps = "any" if form == "past" else "generic"
        first, second = (self.events.predicates.complete(v, subject, nps, manner=False).form(form) for v in (one, two))
        source, target, links = {
            "two predicates": ("{s} {x} and {y}", "{s} đã {x} và {y}", "and=và {x}~đã"),
            "not only but also": (
                "{s} not only {x} but also {y}", "{s} không những {x} mà còn {y}", "not=không only=những but=mà also=còn",
            ),
        }[name]  # fmt: skip
        pairs = [("construction+verb", name, one.key), ("construction+verb", name, two.key)]
        return compose(source, target, links, head="x", s=subject.phrase, x=first, y=second).tagged(name, combinations=pairs)

    def both(self) -> Phrase | None:
        """Return `both Lan and Nam like swimming`."""
        first, second = self.people.person("subject"), self.people.person("subject")
        if first.auxiliary in ("I", "you", "we", "they") or second.auxiliary in ("I", "you", "we", "they"):
            return None
        subject = compose("both {x} and {y}", "cả {x} và {y} đều", "both=cả and=và both~đều", x=first.phrase, y=second.phrase)
        name = self.sampler.pick(("like doing", "want to", "future", "simple past", "ability", "state", "progressive"))
        template = self.templates[name]
        inner = self.events.build(template, subject=NounPhrase(subject, "they", "they"), bare=True)
        return inner.tagged("both and") if inner else None

    def made(self) -> Phrase | None:
        """Return `this film made my mother very sad`."""
        noun = self.sampler.rare(self.nps.of_class(["story", "film", "song", "letter", "exam", "report"]), lambda n: n.singular)
        cause = self.nps.common(noun, "topic", 0.2)
        person = self.people.someone("PERSON", None)
        word = self.sampler.pick(("happy", "sad", "worried", "angry", "nervous"))
        adjective = next(a for a in self.descriptions.lexicon.adjectives if a.english == word and "temp" in a.uses)
        quality = lexical(word, adjective.vietnamese, f"adjective:{adjective.key}")
        links = "made=làm made~đã very=rất"
        return compose("{s} made {r} very {a}", "{s} đã làm {r} rất {a}", links, s=cause.phrase, r=person.phrase, a=quality).tagged("made someone feel")
