"""The templates of events.tsv and which verbs suit each of them."""

import csv
import re
from dataclasses import dataclass

from .lexicon import HERE, Verb
from .noun_phrases import NounPhrases

SLOT = re.compile(r"\{([pv]):(\w+)\}")
# These accept animals as subjects; all others need a person.
ANIMATE = frozenset(("simple past", "fronted time", "progressive", "still", "ability", "why past", "why progressive"))
SKILLED = frozenset(
    (
        "habitual present",
        "frequency adverb",
        "ability",
        "inability",
        "can question",
        "present negation",
        "who can",
        "tag question",
    )
)
# Verbs for whose object a plain `gì` cannot ask.
NOT_WHAT = frozenset(
    (
        "follow",
        "chase",
        "catch",
        "feed",
        "protect",
        "ride",
        "drive",
        "push",
        "close",
        "lock",
        "visit",
        "answer",
        "remember",
        "finish",
        "bite",
        "call",
        "open",
        "wipe",
        "move",
        "paint",
        "take",
    )
)
SPECIAL = ("đội", "giặt", "tham")  # one of two translations of `wear`, `wash`, `visit`, depending on the object
# Verbs that are not planned, promised or asked for.
UNWILLED = ("cry", "laugh")
TOLD = frozenset(
    (
        "simple past",
        "fronted time",
        "habitual present",
        "frequency adverb",
        "progressive",
        "still",
        "perfect with just",
        "past negation",
        "present negation",
        "yes-no present",
        "yes-no past",
        "yes-no progressive",
        "negative request",
        "who did",
        "who is doing",
        "where is doing",
        "why progressive",
        "why past",
        "see someone doing",
        "begin to",
        "background",
        "still past",
        "embedded why",
    )
)
# Templates in which an adverb of manner would be asked for or denied.
NO_MANNER = (
    "how did",
    "how often",
    "how long",
    "when future",
    "when past",
    "no longer",
    "perfect with already",
    "perfect with not yet",
    "perfect with never",
    "past negation",
    "future negation",
    "should not",
    "negative request",
    "prohibition",
)
# Verbs without a `where` question; for some, Vietnamese asks `đi đâu` (where to).
NOT_WHERE = ("stay", "come", "get", "leave", "arrive", "stop", "carry", "move", "push", "follow", "chase", "visit")
DAILY = ("get",)  # `get up early`: `has not got up early yet` and `when did he get up early` make little sense
NO_OBJECT_WANTED = ("what", "which", "many", "whom")


@dataclass(frozen=True)
class Template:
    """A line of events.tsv. `times` maps the slots t (first in Vietnamese) and e (last) to a class, `!` if required."""

    name: str
    end: str
    source: str
    target: str
    links: str
    aspects: frozenset[str]
    times: dict[str, str]
    nps: str

    @property
    def form(self) -> str:
        """The form of the verb: base, fin, past, participle or ing."""
        found = SLOT.search(self.source)
        return found.group(2) if found else ""

    @property
    def pattern(self) -> str:
        """The source pattern with {p} and {v} for the slots with a form."""
        return SLOT.sub(r"{\1}", self.source)

    @property
    def passive(self) -> bool:
        return self.nps == "passive"

    @property
    def asks_object(self) -> bool:
        return self.nps in NO_OBJECT_WANTED

    @property
    def asks_place(self) -> bool:
        return "ở đâu" in self.target

    @property
    def infinitive(self) -> bool:
        """Whether another verb governs the predicate, which then cannot have an adverb of manner."""
        return "to~" in self.links or "finished" in self.source


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
            frozenset(row["aspects"].split(",")),
            dict((slot, kind) for slot, kind in (item.split() for item in row["times"].split(",")))
            if row["times"] != "-"
            else {},
            row["nps"],
        )
        for row in rows
    ]


def suits(verb: Verb, template: Template, nps: NounPhrases) -> bool:
    """Whether the template can take the verb."""
    if not (set(verb.aspect) & template.aspects or ("habit" in template.aspects and verb.habit)):
        return False
    if template.passive:
        return verb.plain and bool(verb.passive) and (bool(verb.subjects) or "{a}" not in template.source)
    if not verb.subjects or (template.asks_object and not extracts(verb, template.nps, nps)):
        return False
    if template.asks_place and (verb.source[-2:] in ("d}", "c}", "q}") or verb.base in NOT_WHERE):
        return False
    if verb.base in DAILY and ("perfect" in template.name or template.name.startswith("when")):
        return False
    if verb.base in template.name.split() or (verb.base in UNWILLED and template.name not in TOLD):
        return False
    return "person" in verb.subjects or (template.name in ANIMATE and "{s}" in template.source)


def extracts(verb: Verb, kind: str, nps: NounPhrases) -> bool:
    """Whether `what`, `which`, `how many` or `whom` can ask for the verb's object."""
    if not verb.plain:
        return False
    if kind == "whom":
        return "PERSON" in verb.objects
    if kind in ("which", "many") and verb.base == "grow":
        return False  # one plants trees, not the countable fruits `quả táo`
    if kind == "what" and (verb.base in NOT_WHAT or verb.target.split()[0] in SPECIAL):
        return False
    return bool([n for n in nps.of_class(verb.objects) if not n.person and (kind == "what" or not n.mass)])
