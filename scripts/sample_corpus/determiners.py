"""Determiners, quantifiers and measures: how a noun phrase is built around its noun in the two languages."""

from dataclasses import dataclass

from .lexicon import Noun
from .phrase import Phrase

# name: (number, source, target, links); PL is the plural word, `những` before a classifier, `các` without one
DETERMINED = {
    "definite": ("one", "the {a} {n}", "{n} {a}", "the~{n}"),
    "definite plural": ("many", "the {a} {n}", "PL {n} {a}", "the~PL {n}~PL"),
    "indefinite": ("one", "a {a} {n}", "một {n} {a}", "a=một"),
    "this": ("one", "this {a} {n}", "{n} {a} này", "this=này"),
    "that": ("one", "that {a} {n}", "{n} {a} đó", "that=đó"),
    "these": ("many", "these {a} {n}", "PL {n} {a} này", "these=này {n}~PL these~PL"),
    "those": ("many", "those {a} {n}", "PL {n} {a} đó", "those=đó {n}~PL those~PL"),
    "possessive": ("one", "{o} {a} {n}", "{n} {a} {o}", ""),
    "possessive plural": ("many", "{o} {a} {n}", "PL {n} {a} {o}", "{n}~PL"),
    "number": ("many", "{k} {a} {n}", "{k} {n} {a}", ""),
    "number and demonstrative": ("many", "these {k} {n}", "{k} {n} này", "these=này"),
    "number and possessive": ("many", "{o} {k} {n}", "{k} {n} {o}", ""),
    "many": ("many", "many {a} {n}", "nhiều {n} {a}", "many=nhiều"),
    "some": ("many", "some {a} {n}", "vài {n} {a}", "some=vài"),
    "all": ("many", "all the {n}", "tất cả PL {n}", "all=tất all=cả the~PL {n}~PL"),
    "bare plural": ("many", "{a} {n}", "{n} {a}", ""),
    "mass": ("mass", "{a} {n}", "{n} {a}", ""),
    "some mass": ("mass", "some {a} {n}", "một ít {n} {a}", "some=ít some~một"),
    "this mass": ("mass", "this {a} {n}", "{n} {a} này", "this=này"),
    "much": ("mass", "a lot of {n}", "rất nhiều {n}", "lot=nhiều lot=rất a~rất of~nhiều"),
}
TAGS = {
    "this": "demonstratives",
    "that": "demonstratives",
    "these": "demonstratives",
    "those": "demonstratives",
    "many": "quantifiers",
    "some": "quantifiers",
    "all": "quantifiers",
    "much": "quantifiers",
}
SINGLE = ("definite", "this", "that", "possessive")
PLURAL = ("definite plural", "these", "those", "possessive plural", "number and demonstrative", "number and possessive")
NEW = ("indefinite", "indefinite", "number", "many", "some")
# The forms of a countable noun in each kind of position in a sentence; repeated forms are more frequent.
KINDS = {
    "any": SINGLE * 3 + PLURAL + ("indefinite",) * 5 + NEW,
    "wares": SINGLE * 3 + PLURAL + ("indefinite",) * 5 + NEW,
    "known": SINGLE * 3 + PLURAL,
    "new": NEW,
    "one": SINGLE * 2 + ("indefinite",) * 4,
    "group": ("definite plural", "definite plural", "these", "those", "number"),
    "like": SINGLE + PLURAL + ("bare plural", "bare plural"),
    "known plural": (*PLURAL, "all"),
    "generic": ("bare plural", "bare plural", "bare plural", "possessive", "this"),
    "bare": ("bare plural",),
    "subject": SINGLE * 6 + ("definite plural",) * 3 + ("these", "those", "indefinite", "all", "number", "many"),
    "topic": SINGLE + SINGLE + ("these", "those", "possessive plural"),
    "single": SINGLE,
}
# The same for a mass noun; missing kinds use MASS.
MASS = ("mass", "some mass", "this mass", "much", "measure", "measure", "measure", "measure", "measure")
MASS_KINDS = {
    "like": ("mass", "this mass"),
    "generic": ("mass",),
    "bare": ("mass",),
    **dict.fromkeys(("known", "topic", "single", "subject", "one"), ("this mass",)),
}
MEASURES = (
    ("cup", "cups", "tách", ("tea", "coffee", "milk")),
    ("bottle", "bottles", "chai", ("water", "beer", "wine")),
    ("bowl", "bowls", "bát", ("rice", "soup")),
    ("kilo", "kilos", "cân", ("meat", "beef", "fish", "seafood", "cheese", "fruit")),
)
# Sizes that may precede a color, as in `a big black dog`.
BEFORE_COLOUR = (
    "big",
    "small",
    "new",
    "old",
    "long",
    "short",
    "beautiful",
    "cheap",
    "cute",
    "expensive",
    "fast",
    "heavy",
)
# Nouns used in the singular only, so that every word form occurs often enough.
SINGULAR_ONLY = frozenset(["building", "room", "nature", "town", "road", "singly"])
OWNED = frozenset(
    [
        "relation",
        "pet",
        "livestock",
        "document",
        "text",
        "clothes",
        "jewel",
        "furniture",
        "device",
        "container",
        "dish",
        "tool",
        "home",
        "room",
        "abstract",
        "teacher",
        "doctor",
        "lawyer",
        "dentist",
        "director",
        "secretary",
        "pupil",
        "student",
        "car",
        "bicycle",
        "motorbike",
        "boat",
        "photo",
        "painting",
        "guitar",
        "piano",
        "song",
        "door",
        "window",
        "garden",
        "farm",
        "field",
        "village",
        "city",
        "shop",
        "restaurant",
        "house",
        "school",
        "toy",
    ]
)
GENDERS = {"man": "he", "boy": "he", "policeman": "he", "woman": "she", "girl": "she", "nurse": "she"}


@dataclass(frozen=True)
class NounPhrase:
    """A phrase with what the rest of the sentence needs to know about it.

    `agreement` is I, you, he or they. `auxiliary` is the English pronoun that can replace the phrase, and `echo` tells
    whether the corpus's Vietnamese pronoun can (it cannot for one's mother). `noun` is None for pronouns, names and
    relatives.
    """

    phrase: Phrase
    agreement: str
    auxiliary: str
    noun: Noun | None = None
    echo: bool = True

    @property
    def several(self) -> bool:
        return self.agreement == "they"


def same_sex(person: NounPhrase, noun: Noun) -> bool:
    """Whether the noun can describe the person: not `my sister is a policeman`."""
    return not {"he", "she"} <= {person.auxiliary, GENDERS.get(noun.singular, "it")}


def may_end_in_adjective(phrase: Phrase | None) -> bool:
    """Whether an adjective may be the last word in Vietnamese: no owner and no demonstrative follows it.

    An adverb or a place after the adjective is ignored.
    """
    if phrase is None:
        return False
    adjective = any(lexeme.startswith("adjective:") for lexeme in phrase.lexemes)
    return adjective and phrase.target[-1] not in ("này", "đó") and "của" not in phrase.target


def owned(noun: Noun) -> bool:
    """Whether `my` and `Lan's` go well with the noun."""
    return bool(OWNED & (noun.classes | {noun.singular}))


def forms(noun: Noun, kind: str) -> list[str]:
    """Return the forms of DETERMINED (or `measure`) that the noun can take in this kind of position."""
    if noun.mass:
        return list(MASS_KINDS.get(kind, MASS))
    allowed = [form for form in KINDS[kind] if "possessive" not in form or owned(noun)]
    if noun.classes & SINGULAR_ONLY:
        allowed = [form for form in allowed if DETERMINED[form][0] == "one"]
    if "relation" in noun.classes:
        allowed = [form.replace("definite", "possessive") if form.startswith("definite") else form for form in allowed]
    return allowed


def written(noun: Noun, form: str) -> str:
    """Return the English form of the noun."""
    return noun.plural if form in DETERMINED and DETERMINED[form][0] == "many" else noun.singular
