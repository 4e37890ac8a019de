"""Sentences about what people do: the templates of events.tsv, filled with verbs that suit them."""

from collections.abc import Collection

from .determiners import SINGULAR_ONLY, NounPhrase, may_end_in_adjective
from .lexicon import Entry, Lexicon, Verb
from .participants import Participants
from .phrase import Phrase, compose, lexical
from .predicates import Predicates
from .sampler import NothingFitsError, Sampler
from .templates import NO_MANNER, SKILLED, Template, load_templates, suits

FREQUENCY = (
    ("always", "luôn"),
    ("often", "thường"),
    ("sometimes", "thỉnh thoảng"),
    ("rarely", "hiếm khi"),
    ("never", "không bao giờ"),
)
TASKS = (
    ("easy", "dễ"),
    ("difficult", "khó"),
    ("important", "quan trọng"),
    ("interesting", "thú vị"),
    ("useful", "hữu ích"),
)
Slots = dict[str, Phrase | None]


class Events:
    """Fills the templates of events.tsv."""

    def __init__(self, lexicon: Lexicon, sampler: Sampler) -> None:
        self.lexicon, self.sampler = lexicon, sampler
        self.participants = Participants(lexicon, sampler)
        self.nps, self.people = self.participants.nps, self.participants.people
        self.predicates = Predicates(self.participants)
        self.templates = {template.name: template for template in load_templates()}
        self.times = lexicon.entries("times")
        self._verbs = {
            name: [verb for verb in lexicon.verbs if suits(verb, template, self.nps)]
            for name, template in self.templates.items()
        }

    def build(
        self, name: str, subject: NounPhrase | None = None, bare: bool = False, among: Collection[str] = ()
    ) -> Phrase:
        """Return a sentence of the template `name`.

        `subject` is a person given from outside, `bare` leaves out optional times, `among` restricts the verbs to keys.
        Raises NothingFitsError if the choices do not suit each other.
        """
        template = self.templates[name]
        verb = self.verb(template, subject is not None, among)
        times = self.time_slots(template, verb, bare)
        if verb.base == verb.past and name == "simple past" and times["t"] is None:
            raise NothingFitsError(f"{verb.past!r} alone could be present or past")
        source, links, target = template.pattern, template.links, template.target
        if template.passive:
            slots, agreement = self.passive_slots(template, verb)
            target, links = target.replace("PASS", verb.passive), links.replace("PASS", verb.passive)
        else:
            slots, agent = self.active_slots(template, verb, subject)
            agreement = agent.agreement if agent else "he"
            if "PRON" in source:
                source, links = self.tagged(source, agent), self.tagged(links, agent)
        slots |= times
        used = {slot: phrase for slot, phrase in slots.items() if "{" + slot + "}" in source}
        head = next(slot for slot in ("p", "v") if slot in used)
        phrase = compose(source, target, links, head=head, agreement=agreement, slots=used)
        return phrase.tagged(name, combinations=[("construction+verb", name, verb.key)])

    def verb(self, template: Template, person: bool, among: Collection[str]) -> Verb:
        """Return a verb that suits the template, preferring one whose form is rare so far."""
        verbs = self._verbs[template.name]
        verbs = [v for v in verbs if (not person or "person" in v.subjects) and (not among or v.key in among)]
        form = "third" if template.form == "fin" else template.form
        return self.sampler.rare(verbs, lambda v: f"{getattr(v, form)} vi:{v.target.split()[0]}", 30)

    def tagged(self, pattern: str, agent: NounPhrase | None) -> str:
        """Return the pattern of a tag question with the pronoun of its subject."""
        if agent is None or agent.auxiliary in ("it", "we"):
            raise NothingFitsError("a tag question needs a third person, and `chúng tôi` excludes the listener")
        return pattern.replace("PRON", agent.auxiliary)

    def subject(self, template: Template, verb: Verb) -> NounPhrase:
        """Return a subject: often in the third person singular where the verb shows it, plural with `together`."""
        if "person" in verb.subjects and template.form == "fin" and self.sampler.chance(0.8):
            return self.participants.third()
        if "together" in verb.manner and self.sampler.chance(0.25):
            return self.participants.persons()
        return self.participants.subject(verb)

    def active_slots(
        self, template: Template, verb: Verb, subject: NounPhrase | None
    ) -> tuple[Slots, NounPhrase | None]:
        """Return the slots of the template and the subject, if it has one."""
        slots: Slots = {}
        agent = None
        if "{s}" in template.source:
            agent = subject or self.subject(template, verb)
            if " nên " in template.target and may_end_in_adjective(agent.phrase):
                raise NothingFitsError("'giáo viên hài hước nên' reads as 'the teacher is funny, so'")
            slots["s"] = agent.phrase
        actor = agent
        if "{r}" in template.source:
            actor = self.participants.someone("PERSON", agent)
            slots["r"] = actor.phrase
        if "{f}" in template.source:
            word, vietnamese = self.sampler.rare(FREQUENCY, lambda pair: pair[0])
            slots["f"] = lexical(word, vietnamese, f"adverb:{word}")
        if "{x}" in template.source:
            word, vietnamese = self.sampler.rare(TASKS, lambda pair: pair[0])
            slots["x"] = lexical(word, vietnamese, f"adjective:{word}")
        if actor is not None and actor.several and " a " in verb.source:
            raise NothingFitsError("several people ride bicycles, not one")
        slots |= self.verb_slots(template, verb, actor, "he" if agent is None else agent.agreement)
        if "{x}" in template.source and may_end_in_adjective(slots["p"]):
            raise NothingFitsError("'trong ngôi nhà mát mẻ không quan trọng' reads as 'cool, not important'")
        return slots, agent

    def verb_slots(self, template: Template, verb: Verb, actor: NounPhrase | None, agreement: str) -> Slots:
        """Return the predicate, or the verb alone with what is asked for, in the form of the template."""
        asked = template.asks_object
        predicate = self.predicates.complete(
            verb,
            actor,
            template.nps,
            place=not template.asks_place and not asked and "finished" not in template.source,
            manner=not asked and not template.infinitive and template.name not in NO_MANNER,
            skilled=template.name in SKILLED,
            omit="o" if asked else "",
        )
        finite = "third" if agreement == "he" else "base"
        slots: Slots = {"v" if asked else "p": predicate.form(finite if template.form == "fin" else template.form)}
        if "{q}" in template.source:
            slots["q"] = self.participants.adverbial(verb.where) if verb.where and self.sampler.chance(0.3) else None
        if "{n}" in template.source:
            slots["n"] = self.asked_noun(verb, template.nps == "many")
        return slots

    def asked_noun(self, verb: Verb, several: bool) -> Phrase:
        """Return the noun after `which` or `how many`."""
        nouns = [n for n in self.nps.of_class(verb.objects) if not n.mass and not n.person]
        nouns = [n for n in nouns if not several or not n.classes & SINGULAR_ONLY]
        noun = self.sampler.rare(nouns, lambda n: n.plural if several else n.singular)
        return self.nps.unit(noun, several).tagged(combinations=[("verb+object", verb.key, noun.singular)])

    def passive_slots(self, template: Template, verb: Verb) -> tuple[Slots, str]:
        """Return the patient, the agent and the bare participle, and the agreement of the patient."""
        slots: Slots = {}
        if "{n}" in template.source:
            patient = None
            slots["n"] = self.asked_noun(verb, False)
        else:
            known = template.end == "?" or "not" in template.source.split()
            patient = self.people.as_subject(self.participants.object(verb, "topic" if known else "subject", None))
            slots["o"] = patient.phrase
        if "{a}" in template.source:
            slots["a"] = self.agent(verb, patient).phrase
        slots["v"] = self.predicates.complete(verb, None, "any", place=False, manner=False, omit="o").form("participle")
        return slots, patient.agreement if patient else "he"

    def agent(self, verb: Verb, patient: NounPhrase | None) -> NounPhrase:
        """Return the agent, in the object form."""
        if "person" in verb.subjects:
            found = self.participants.someone("PERSON", patient)
            if found.auxiliary in ("I", "we", "you") or may_end_in_adjective(found.phrase):
                raise NothingFitsError("`I moved the mirror` needs no passive; `luật sư giỏi vẽ` draws well")
            return found
        noun = self.sampler.rare(self.nps.of_class(verb.subjects), lambda n: n.singular)
        return self.nps.common(noun, "single")

    def time_slots(self, template: Template, verb: Verb, bare: bool) -> Slots:
        """Return the time adverbials: t comes first in Vietnamese, e last; never both."""
        slots: Slots = {"t": None, "e": None}
        for slot, wish in template.times.items():
            needed = wish.endswith("!")
            unwanted = bare or slots["t"] is not None or ("state" in verb.aspect and slot == "e")
            if needed or (not unwanted and self.sampler.chance(0.55)):
                slots[slot] = self.time(wish.rstrip("!"), verb)
        return slots

    def time(self, kind: str, verb: Verb | None = None) -> Phrase:
        """Return a time adverbial of the kind; slow events take weeks, daily ones do not."""
        kinds = {kind}
        if verb is not None and kind in ("past", "future"):
            kinds = {kind + "-long"} if "slow" in verb.aspect else kinds
            kinds |= {kind + "-long"} if "long" in verb.aspect else set()
        fitting: list[Entry] = [entry for entry in self.times if kinds & set(entry.tags)]
        entry = self.sampler.rare(fitting, lambda e: e.english.split()[-1])
        head = len(entry.english.split()) - 1
        return lexical(entry.english, entry.vietnamese, f"time:{entry.english}", head).tagged("time adverbial")
