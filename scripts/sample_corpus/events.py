"""Sentences about what people do: the templates of events.tsv, filled with verbs that suit them."""

import csv
import re
from dataclasses import dataclass

from .lexicon import HERE, Entry, Lexicon, Verb
from .noun_phrases import PLACES, NounPhrase
from .participants import Participants
from .phrase import Phrase, compose, lexical
from .predicates import Predicates
from .sampler import NothingFits, Sampler

SLOT = re.compile(r"\{([pv]):(\w+)\}")


@dataclass(frozen=True)
class Template:
    """A line of events.tsv. `times` maps the slots t (first in Vietnamese) and e (last) to a class; `!` = obligatory."""

    name: str
    end: str
    source: str
    target: str
    links: str
    aspects: tuple[str, ...]
    times: dict[str, str]
    nps: str
    embed: bool

    @property
    def form(self) -> str:
        found = SLOT.search(self.source)
        return found.group(2) if found else ""

    @property
    def passive(self) -> bool:
        return self.nps == "passive"


def load_templates() -> list[Template]:
    """Return the templates of events.tsv in their order."""
    with (HERE / "events.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        Template(
            row["name"],
            row["end"],
            row["source"],
            row["target"],
            "" if row["links"] == "-" else row["links"],
            tuple(row["aspects"].split(",")),
            dict(item.split() for item in row["times"].split(",")) if row["times"] != "-" else {},
            row["nps"],
            row["embed"] == "y",
        )
        for row in rows
    ]


class Events:
    """Fills the templates of events.tsv."""

    def __init__(self, lexicon: Lexicon, sampler: Sampler) -> None:
        self.lexicon, self.sampler = lexicon, sampler
        self.participants = Participants(lexicon, sampler)
        self.nps = self.participants.nps
        self.predicates = Predicates(self.participants)
        self.templates = load_templates()
        self.times = lexicon.entries("times")
        self._candidates: dict[str, list[Verb]] = {}

    def candidates(self, template: Template) -> list[Verb]:
        """Return the verbs that the template can take."""
        found = []
        for verb in self.lexicon.verbs:
            fits = set(verb.aspect) & set(template.aspects) or ("habit" in template.aspects and verb.habit)
            if not fits or bool(not verb.subjects) > template.passive:
                continue
            if template.passive and not (verb.plain and verb.passive):
                continue
            if template.nps in ("what", "which", "many", "whom") and not self.extracts(verb, template.nps):
                continue
            if "ở đâu" in template.target and (verb.source[-1] == "}" and verb.source[-2] in "dcq" or "home" in verb.source):
                continue
            if "person" not in verb.subjects and not template.passive and ("{s}" not in template.source or "{r}" in template.source or template.source.startswith(("please", "let"))):
                continue
            found.append(verb)
        return found

    def extracts(self, verb: Verb, kind: str) -> bool:
        """Whether one can ask for the verb's object by `what`, `which`, `how many` or `whom`."""
        if not verb.plain or not verb.subjects:
            return False
        if kind == "whom":
            return "PERSON" in verb.objects
        things = [n for n in self.nps.of_class(verb.objects) if not n.person and (kind == "what" or not n.mass)]
        return bool(things)

    def build(self, template: Template, subject: NounPhrase | None = None, bare: bool = False) -> Phrase | None:
        """Return a sentence of the template, or None if the choices do not suit each other; `bare` leaves out times."""
        if template.name not in self._candidates:
            self._candidates[template.name] = self.candidates(template)
        verbs = self._candidates[template.name]
        form = "third" if template.form == "fin" else template.form
        verb = self.sampler.rare(verbs, lambda v: getattr(v, form), 30)
        source, links = SLOT.sub(lambda m: "{" + m.group(1) + "}", template.source), template.links
        if template.passive:
            slots, agreement = self.passive_slots(template, verb)
        else:
            slots, agreement, tag = self.active_slots(template, verb, subject)
            source, links = source.replace("PRON", tag), links.replace("PRON", tag)
        times = self.time_slots(template, verb, bare)
        if times is None or (verb.base == verb.past and template.form == "past" and not times.get("t")):
            return None
        phrase = compose(
            source,
            template.target.replace("PASS", verb.passive),
            links.replace("PASS", verb.passive),
            head="p" if "{p}" in source else "v" if "{v}" in source else "",
            agreement=agreement,
            **{name: value for name, value in {**slots, **times}.items() if "{" + name + "}" in source},
        )
        return phrase.tagged(template.name, combinations=[("construction+verb", template.name, verb.key)])

    def active_slots(
        self, template: Template, verb: Verb, subject: NounPhrase | None
    ) -> tuple[dict[str, Phrase | None], str, str]:
        """Return the slots of the template, the agreement of its finite verb and the pronoun for its subject."""
        slots: dict[str, Phrase | None] = {}
        agent, agreement = None, "he"
        together = "together" in verb.manner and self.sampler.chance(0.2)
        if "{s}" in template.source:
            third = template.form == "fin" and self.sampler.chance(0.8)
            agent = subject or self.participants.subject(verb, several=together and not third, third=third)
            slots["s"], agreement = agent.phrase, agent.agreement
            if "PRON" in template.source and agent.auxiliary == "it":
                raise NothingFits("a tag needs he or she")
        actor = agent
        if template.name in ("hard to do", "too hard to do"):
            word, vietnamese = self.sampler.pick(TASKS)
            slots["x"] = lexical(word, vietnamese, f"adjective:{word}")
        if "{r}" in template.source:
            actor = self.participants.someone("PERSON", agent)
            slots["r"] = actor.phrase
        if "{f}" in template.source:
            word, vietnamese = self.sampler.pick(FREQUENCY)
            slots["f"] = lexical(word, vietnamese, f"adverb:{word}")
        asked = template.nps in ("what", "which", "many", "whom")
        where = "ở đâu" in template.target
        predicate = self.predicates.complete(
            verb,
            actor,
            template.nps,
            place=not where and not asked,
            manner=not asked and "như thế" not in template.target,
            omit="o" if asked else "",
        )
        form = template.form
        if form == "fin":
            form = "third" if agreement == "he" else "base"
        phrase = predicate.form(form)
        slots["v" if asked else "p"] = phrase
        if "{q}" in template.source:
            slots["q"] = self.participants.adverbial(verb.where) if verb.where and self.sampler.chance(0.3) else None
        if "{n}" in template.source:
            slots["n"] = self.asked_noun(verb, template.nps == "many")
        return slots, agreement, agent.auxiliary if agent else ""

    def asked_noun(self, verb: Verb, several: bool) -> Phrase:
        """Return the noun after `which` or `how many`."""
        nouns = [n for n in self.nps.of_class(verb.objects) if not n.mass and not n.person]
        nouns = [n for n in nouns if not several or not n.classes & PLACES]
        noun = self.sampler.rare(nouns, lambda n: n.plural if several else n.singular)
        return self.nps.unit(noun, several).tagged(combinations=[("verb+object", verb.key, noun.singular)])

    def passive_slots(self, template: Template, verb: Verb) -> tuple[dict[str, Phrase | None], str]:
        """Return the patient, the agent and the bare participle."""
        slots: dict[str, Phrase | None] = {}
        patient = self.participants.object(verb, "subject" if verb.objects[0] not in ("PERSON",) else "known", None)
        agreement = patient.agreement
        if "{n}" in template.source:
            slots["n"], agreement = self.asked_noun(verb, False), "he"
        elif patient.noun is None and patient.auxiliary in ("I", "you", "he", "she", "we", "they"):
            patient = self.as_subject(patient)
        slots["o"] = patient.phrase
        if "{a}" in template.source:
            slots["a"] = self.agent(verb, patient).phrase
        slots["v"] = self.predicates.complete(verb, None, "any", place=False, manner=False, omit="o").form("participle")
        return slots, agreement

    def as_subject(self, patient: NounPhrase) -> NounPhrase:
        """Return a pronoun object as a subject; anything else as it is."""
        for pronoun in self.lexicon.pronouns:
            if patient.phrase.source == (pronoun.object,):
                phrase = lexical(pronoun.subject, pronoun.vietnamese, f"pronoun:{pronoun.auxiliary}")
                return NounPhrase(phrase, pronoun.agreement, pronoun.auxiliary)
        return patient

    def agent(self, verb: Verb, patient: NounPhrase) -> NounPhrase:
        """Return who did it, in the object form."""
        if "person" in verb.subjects:
            return self.participants.someone("PERSON", patient)
        noun = self.sampler.rare(self.nps.of_class(verb.subjects), lambda n: n.singular)
        return self.nps.common(noun, "single")

    def time_slots(self, template: Template, verb: Verb, bare: bool) -> dict[str, Phrase | None] | None:
        """Return the time adverbials, or None if one is obligatory but unwanted."""
        slots: dict[str, Phrase | None] = {"t": None, "e": None}
        for slot, wish in template.times.items():
            needed = wish.endswith("!")
            if bare and not needed:
                continue
            wait = slots["t"] is not None and slot == "e"
            chance = 1.0 if needed else 0.5 if slot == "t" else 0.55
            if not wait and self.sampler.chance(chance):
                slots[slot] = self.time(wish.rstrip("!"), verb)
        return slots

    def time(self, kind: str, verb: Verb) -> Phrase:
        """Return a time adverbial of the kind; slow events take weeks, daily ones do not."""
        kinds = {kind}
        if kind in ("past", "future"):
            kinds = {kind + "-long"} if "slow" in verb.aspect else {kind, kind + "-long"} if "long" in verb.aspect else {kind}
        entry: Entry = self.sampler.rare(
            [e for e in self.times if kinds & set(e.tags)], lambda e: e.english.split()[-1]
        )
        return lexical(entry.english, entry.vietnamese, f"time:{entry.english}").tagged("time adverbial")


TASKS = (("easy", "dễ"), ("difficult", "khó"), ("important", "quan trọng"), ("interesting", "thú vị"), ("useful", "hữu ích"))
FREQUENCY = (
    ("always", "luôn"),
    ("often", "thường"),
    ("sometimes", "thỉnh thoảng"),
    ("rarely", "hiếm khi"),
    ("never", "không bao giờ"),
)
