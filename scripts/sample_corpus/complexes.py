"""Sentences of more than one clause: conjunctions, reported clauses, embedded questions, coordination."""

from collections.abc import Sequence

from .descriptions import Descriptions
from .determiners import NounPhrase
from .phrase import Phrase, compose, lexical
from .relatives import Relatives
from .sampler import NothingFitsError
from .situations import CONDITIONS, DUTIES, FEELINGS, INDOORS, LEISURE, OUTDOORS, PAUSES, PROMISES

# name: (source, target, links, main clause x, other clause y). A clause is (event template, verb keys). The keys
# `does` and `avoids` are what a feeling makes somebody do or avoid; the clause `feeling` names the feeling.
JOINED: dict[str, tuple[str, str, str, tuple[str, Sequence[str]], tuple[str, Sequence[str]]]] = {
    "because": ("{x} because {y}", "{x} vì {y}", "because=vì", ("simple past", "does"), ("feeling", "WAS")),
    "not because": ("{x} because {y}", "{x} vì {y}", "because=vì", ("past negation", "avoids"), ("feeling", "WAS")),
    "because now": ("{x} because {y}", "{x} vì {y}", "because=vì", ("want to", "does"), ("feeling", "BE")),
    "so": ("{y}, so {x}", "{y} nên {x}", "so=nên", ("simple past", "does"), ("feeling", "WAS")),
    "so not": ("{y}, so {x}", "{y} nên {x}", "so=nên", ("past negation", "avoids"), ("feeling", "WAS")),
    "although": (
        "although {y}, {x}",
        "mặc dù {y}, {x}",
        "although=mặc although=dù",
        ("still past", "avoids"),
        ("feeling", "WAS"),
    ),
    "but not yet": (
        "{x}, but {y}",
        "{x} nhưng {y}",
        "but=nhưng",
        ("simple past", DUTIES),
        ("perfect with not yet", DUTIES),
    ),
    "but feeling": ("{x}, but {y}", "{x} nhưng {y}", "but=nhưng", ("want to", "avoids"), ("feeling", "BE")),
    "when": ("when {y}, {x}", "khi {y}, {x}", "when=khi", ("background", ()), ("arrival", ())),
    "when last": ("{x} when {y}", "{x} khi {y}", "when=khi", ("background", ()), ("arrival", ())),
    "after": (
        "after {y}, {x}",
        "sau khi {y}, {x}",
        "after=sau after=khi",
        ("simple past", LEISURE),
        ("past clause", DUTIES),
    ),
    "before": (
        "{x} before {y}",
        "{x} trước khi {y}",
        "before=trước before=khi",
        ("future", DUTIES),
        ("present clause", PAUSES),
    ),
    "before must": (
        "{x} before {y}",
        "{x} trước khi {y}",
        "before=trước before=khi",
        ("must", DUTIES),
        ("present clause", PAUSES),
    ),
    "while": ("{x} while {y}", "{x} trong khi {y}", "while=trong while=khi", ("background", ()), ("background", ())),
    "if": ("if {y}, {x}", "nếu {y}, {x}", "if=nếu", ("future", PROMISES), ("present clause", CONDITIONS)),
    "if rain": ("if {y}, {x}", "nếu {y}, {x}", "if=nếu", ("future", INDOORS), ("rain", ())),
    "if last": ("{x} if {y}", "{x} nếu {y}", "if=nếu", ("future negation", OUTDOORS), ("rain", ())),
    "if advice": ("{x} if {y}", "{x} nếu {y}", "if=nếu", ("should", "does"), ("feeling", "BE")),
    "two clauses": ("{x}, and {y}", "{x} và {y}", "and=và", ("progressive", ()), ("progressive", ())),
    "two past clauses": ("{x}, and {y}", "{x} và {y}", "and=và", ("simple past", DUTIES), ("simple past", DUTIES)),
}
SAME_SUBJECT = ("but not yet", "after", "before", "before must")
REPORTS = {
    "think that": ("{s} THINK that {y}", "{s} nghĩ rằng {y}", "THINK=nghĩ that=rằng"),
    "know that": ("{s} KNOW that {y}", "{s} biết rằng {y}", "KNOW=biết that=rằng"),
    "believe that": ("{s} BELIEVE that {y}", "{s} tin rằng {y}", "BELIEVE=tin that=rằng"),
    "hope that": ("{s} HOPE that {y}", "{s} hy vọng rằng {y}", "HOPE=hy HOPE=vọng that=rằng"),
    "say that": ("{s} SAY that {y}", "{s} nói rằng {y}", "SAY=nói that=rằng"),
}
ASKS = {
    "do you know": ("do you know {y}", "bạn có biết {y} không", "do=có do~không you=bạn know=biết"),
    "not know": ("{s} DO not know {y}", "{s} không biết {y}", "DO~không not=không know=biết"),
    "ask": ("{s} asked me {y}", "{s} đã hỏi tôi {y}", "asked=hỏi asked~đã me=tôi"),
    "want to know": ("{s} WANT to know {y}", "{s} muốn biết {y}", "WANT=muốn know=biết to~biết"),
}
QUESTIONS = tuple(f"embedded {word}" for word in ("what", "what past", "where", "when", "why", "why past"))
QUESTIONS += ("who did", "who will", "who is doing")
ASKED = ("embedded what past", "embedded where", "embedded why past", "who did")  # `asked` would shift other tenses
REPORTED = (
    "future",
    "ability",
    "state",
    "progressive",
    "future negation",
    "should",
    "must",
    "perfect with already",
    "present negation",
    "passive future",
)
COORDINATED = {
    "two predicates": ("{s} {x} and {y}", "{s} đã {x} và {y}", "and=và {x}~đã"),
    "not only but also": (
        "{s} not only {x} but also {y}",
        "{s} không những {x} mà còn {y}",
        "not=không only=những but=mà also=còn",
    ),
}
BOTH = ("like doing", "want to", "future", "simple past", "ability", "state", "progressive")
EMOTIONS = ("happy", "sad", "worried", "angry", "nervous")
MOVING = ("story", "film", "song", "letter", "exam", "report")


class Complexes:
    """Builds the sentences of this module."""

    def __init__(self, descriptions: Descriptions, relatives: Relatives) -> None:
        self.descriptions, self.relatives, self.events = descriptions, relatives, descriptions.events
        self.participants, self.nps, self.sampler = descriptions.participants, descriptions.nps, descriptions.sampler
        self.lexicon = descriptions.lexicon

    def feeling(self, word: str, subject: NounPhrase, verb: str) -> Phrase:
        """Return `I am very tired`; `verb` is BE or WAS."""
        adjective = next(a for a in self.lexicon.adjectives if a.english == word and "temp" in a.uses)
        slots = {"s": subject.phrase, "a": self.descriptions.quality(adjective, subject)}
        links = f"very=rất {verb}~{{a}}"
        return compose(
            f"{{s}} {verb} very {{a}}", "{s} rất {a}", links, head="a", agreement=subject.agreement, slots=slots
        )

    def clause(self, name: str, keys: Sequence[str], subject: NounPhrase, word: str) -> Phrase:
        """Return a clause of JOINED about the subject; `word` is its feeling."""
        if name == "rain":
            time = self.events.time("future")
            return compose("it rains {t}", "{t} trời mưa", "it=trời rains=mưa", t=time).tagged("weather")
        if name == "feeling":
            return self.feeling(word, subject, "".join(keys))
        if keys in ("does", "avoids"):
            keys = FEELINGS[word][keys == "avoids"]
        return self.events.build(name, subject=subject, bare=True, among=keys)

    def joined(self, name: str) -> Phrase:
        """Return two clauses joined according to the item `name` of JOINED."""
        source, target, links, main, other = JOINED[name]
        word = self.sampler.rare(list(FEELINGS), lambda feeling: feeling)
        earlier = self.participants.person("subject")
        if other[0] == "feeling" or name in SAME_SUBJECT:
            later = self.participants.people.echo(earlier)
        else:
            later = self.participants.person("subject")
            if earlier.auxiliary == later.auxiliary or {earlier.auxiliary, later.auxiliary} == {"I", "we"}:
                raise NothingFitsError("two clauses need two subjects")
        x_subject, y_subject = (earlier, later) if source.startswith("{x}") else (later, earlier)
        slots = {"x": self.clause(*main, x_subject, word), "y": self.clause(*other, y_subject, word)}
        if other[0] == "feeling" and word != "happy" and "happily" in slots["x"].source:
            raise NothingFitsError("nobody sings happily because they are sad")
        return compose(source, target, links, slots=slots).tagged(f"conjunction {name}")

    def statement(self) -> Phrase:
        """Return a statement that can be reported."""
        kind = self.sampler.pick(("degree", "comparison", "event", "event", "relative", "joined"))
        if kind == "degree":
            return self.descriptions.degree(self.sampler.pick(("degree very", "degree too", "quality negated")))
        if kind == "comparison":
            return self.descriptions.comparison(self.sampler.pick(("comparative", "much comparative", "equality")))
        if kind == "relative":
            kinds = ("object relative", "noun with place", "noun with look")
            return self.relatives.quality(self.relatives.noun_phrase(self.sampler.pick(kinds)))
        if kind == "joined":
            return self.joined(self.sampler.pick(("if", "if rain", "if last", "before", "because now", "but feeling")))
        return self.events.build(self.sampler.pick(REPORTED))

    def report(self, name: str) -> Phrase:
        """Return a sentence of the item `name` of REPORTS, such as `I think that this house is very big`."""
        source, target, links = REPORTS[name]
        subject = self.participants.person("subject")
        hoped = ("future", "ability", "future negation")
        inner = self.events.build(self.sampler.pick(hoped)) if name == "hope that" else self.statement()
        slots = {"s": subject.phrase, "y": inner}
        return compose(source, target, links, agreement=subject.agreement, slots=slots).tagged(name)

    def asked(self, name: str) -> Phrase:
        """Return a sentence of the item `name` of ASKS, such as `I do not know where he went`."""
        source, target, links = ASKS[name]
        whether = () if name == "do you know" else ("embedded whether",)
        kinds = ASKED if name == "ask" else (*QUESTIONS, *whether)
        slots = {"y": self.events.build(self.sampler.pick(kinds), bare=name == "ask")}  # a time would attach to `asked`
        agreement = "you"
        if "{s}" in source:
            subject = self.participants.person("subject", ("I", "we") if name == "ask" else ())
            slots["s"], agreement = subject.phrase, subject.agreement
        return compose(source, target, links, head="y", agreement=agreement, slots=slots).tagged(name)

    def predicates(self, name: str) -> Phrase:
        """Return two predicates of one subject: joined by `and`, or by `not only ... but also`."""
        source, target, links = COORDINATED[name]
        past = name == "two predicates"
        subject = self.participants.person("subject") if past else self.participants.third()
        form = "past" if past else "third" if subject.agreement == "he" else "base"
        verbs = [v for v in self.lexicon.verbs if "person" in v.subjects and "act" in v.aspect and v.past != v.base]
        verbs = [v for v in verbs if past or v.habit]
        one, two = (self.sampler.rare(verbs, lambda v: getattr(v, form), 30) for _ in range(2))
        nps = "any" if past else "generic"
        make = self.events.predicates.complete
        slots = {
            "s": subject.phrase,
            "x": make(one, subject, nps, manner=False).form(form),
            "y": make(two, subject, nps, manner=False).form(form),
        }
        pairs = [("construction+verb", name, verb.key) for verb in (one, two)]
        return compose(source, target, links, head="x", slots=slots).tagged(name, combinations=pairs)

    def both(self) -> Phrase:
        """Return `both Lan and Nam like swimming`."""
        people = self.participants.people
        first, second = (self.sampler.pick((people.name, people.relative, self.participants.third))() for _ in range(2))
        slots = {"x": first.phrase, "y": second.phrase}
        both = compose("both {x} and {y}", "cả {x} và {y} đều", "both=cả and=và both~đều", slots=slots)
        subject = NounPhrase(both, "they", "they")
        return self.events.build(self.sampler.pick(BOTH), subject=subject, bare=True).tagged("both and")

    def made(self) -> Phrase:
        """Return `this film made my mother very sad`."""
        cause = self.nps.common(self.sampler.rare(self.nps.of_class(MOVING), lambda n: n.singular), "topic", 0.3)
        word = self.sampler.pick(EMOTIONS)
        adjective = next(a for a in self.lexicon.adjectives if a.english == word and "temp" in a.uses)
        slots = {
            "s": cause.phrase,
            "r": self.participants.someone("PERSON", None).phrase,
            "a": lexical(word, adjective.vietnamese, f"adjective:{adjective.key}"),
        }
        source, target, links = "{s} made {r} very {a}", "{s} đã làm {r} rất {a}", "made=làm made~đã very=rất"
        return compose(source, target, links, slots=slots).tagged("made someone feel")
