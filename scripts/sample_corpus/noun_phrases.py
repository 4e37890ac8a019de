"""Noun phrases: determiners, numbers, classifiers, adjectives, possessors, measures and the people of the corpus."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .lexicon import Adjective, Entry, Lexicon, Noun, Pronoun
from .phrase import Phrase, compose, lexical
from .sampler import NothingFits, Sampler

# name: (number, source, target, links); PL is the plural word, which depends on the classifier
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
    "every": ("one", "every {n}", "mỗi {n}", "every=mỗi"),
    "all": ("many", "all the {n}", "tất cả PL {n}", "all=tất all=cả the~PL {n}~PL"),
    "bare plural": ("many", "{a} {n}", "{n} {a}", ""),
    "mass": ("mass", "{a} {n}", "{n} {a}", ""),
    "some mass": ("mass", "some {a} {n}", "một ít {n} {a}", "some=ít some~một"),
    "this mass": ("mass", "this {a} {n}", "{n} {a} này", "this=này"),
    "much": ("mass", "a lot of {n}", "rất nhiều {n}", "lot=nhiều lot=rất a~rất of~nhiều"),
}
SINGLE = ("definite", "this", "that", "possessive")
PLURAL = ("definite plural", "these", "those", "possessive plural", "number and demonstrative", "number and possessive")
NEW = ("indefinite", "indefinite", "number", "many", "some")
KINDS = {
    "any": SINGLE * 3 + PLURAL + ("indefinite",) * 5 + NEW,
    "known": SINGLE * 3 + PLURAL,
    "new": NEW,
    "one": SINGLE * 2 + ("indefinite",) * 4,
    "group": ("definite plural", "definite plural", "these", "those", "number"),
    "like": SINGLE + PLURAL + ("bare plural", "bare plural"),
    "plural": ("bare plural", "number", "many", "some"),
    "knownplural": PLURAL + ("all",),
    "generic": ("bare plural", "bare plural", "bare plural", "possessive", "this"),
    "bare": ("bare plural",),
    "subject": SINGLE * 6 + ("definite plural",) * 3 + ("these", "those", "indefinite", "all", "every", "number", "many"),
    "topic": SINGLE + SINGLE + ("these", "those", "possessive plural"),
    "single": SINGLE,
    "pointed": ("this", "that"),
}
MEASURES = (
    ("cup", "cups", "tách", ("tea", "coffee")),
    ("bottle", "bottles", "chai", ("milk", "water", "beer", "wine")),
    ("bowl", "bowls", "bát", ("rice", "soup")),
    ("kilo", "kilos", "cân", ("meat", "beef", "fish", "seafood", "cheese", "fruit")),
)


TOLD = {"I": 6, "you": 1, "he": 4, "she": 4, "we": 3, "they": 3}
ASKED = {"I": 0, "you": 10, "he": 3, "she": 3, "we": 0.5, "they": 3}
PLACES = frozenset("building room nature town road singly".split())
BEFORE_COLOUR = ("big", "small", "new", "old", "long", "short", "beautiful", "cheap", "cute", "expensive", "fast", "heavy", "light")
GENDERS = {"man": "he", "boy": "he", "policeman": "he", "woman": "she", "girl": "she", "nurse": "she"}
OWNED = frozenset(
    "relation pet livestock document text clothes jewel furniture device container dish tool home room abstract".split()
    + "teacher doctor lawyer dentist director secretary pupil student car bicycle motorbike boat photo painting".split()
    + "guitar piano song door window garden farm field village city shop restaurant house school toy".split()
)


def owned(noun: Noun) -> bool:
    """Whether `my` and `Lan's` go well with the noun."""
    return bool(OWNED & (noun.classes | {noun.singular}))


@dataclass(frozen=True)
class NounPhrase:
    """A phrase with what the rest of the sentence must know about it.

    `agreement` is I, you, he or they; `auxiliary` the English pronoun that can take its place; `noun` None for
    pronouns, names and kin.
    """

    phrase: Phrase
    agreement: str
    auxiliary: str
    noun: Noun | None = None

    @property
    def several(self) -> bool:
        return self.agreement == "they"


class NounPhrases:
    """Makes noun phrases out of the lexicon."""

    def __init__(self, lexicon: Lexicon, sampler: Sampler) -> None:
        self.lexicon, self.sampler = lexicon, sampler
        self.asking = False
        self._of_class: dict[tuple[str, ...], list[Noun]] = {}
        self._fitting: dict[tuple[str, str], list[Adjective]] = {}
        self.names, self.kin = lexicon.entries("names"), lexicon.entries("kin")
        self.cities = lexicon.entries("cities")
        self.numbers = [entry for entry in lexicon.entries("numbers") if "count" in entry.tags]

    def of_class(self, classes: Iterable[str]) -> list[Noun]:
        """Return the nouns that have one of the classes or are named there themselves."""
        key = tuple(classes)
        if key not in self._of_class:
            self._of_class[key] = [n for n in self.lexicon.nouns if set(key) & (n.classes | {n.singular})]
        return self._of_class[key]

    def number(self) -> Phrase:
        entry = self.numbers[int(len(self.numbers) * self.sampler.fraction() ** 1.7)]
        return lexical(entry.english, entry.vietnamese, f"number:{entry.english}")

    def unit(self, noun: Noun, several: bool = False, bare: bool = False) -> Phrase:
        """Return classifier and noun; without the classifier if `bare`."""
        classifier = "" if bare or not noun.classifier else f"~{noun.classifier} "
        words = noun.plural if several else noun.singular
        last = len(words.split())
        syllables = noun.vietnamese if last == 1 or "/" in noun.vietnamese else noun.vietnamese
        mark = f"~{noun.classifier}/{last} " if classifier and last > 1 else classifier
        return lexical(words, mark + syllables, f"noun:{noun.singular}", head=last - 1)

    def adjective(self, noun: Noun, use: str = "attr") -> Adjective | None:
        """Return an adjective that suits the noun in that use, or None."""
        key = (noun.singular, use)
        if key not in self._fitting:
            self._fitting[key] = [a for a in self.lexicon.adjectives if use in a.uses and a.fits(noun)]
        fitting = self._fitting[key]
        return self.sampler.rare(fitting, lambda a: a.english) if fitting else None

    def describe(self, noun: Noun, adjective: Adjective) -> Phrase:
        """Return the adjective as a phrase that records with which noun it stands."""
        phrase = lexical(adjective.english, adjective.vietnamese, f"adjective:{adjective.key}")
        return phrase.tagged(combinations=[("adjective+noun", adjective.key, noun.singular)])

    def common(self, noun: Noun, kind: str, adjective: float = 0.35, bare: bool = False) -> NounPhrase:
        """Return a noun phrase of one of the DETERMINED forms that `kind` allows."""
        if noun.mass:
            forms: tuple[str, ...] = ("mass", "some mass", "this mass", "much", "measure", "measure", "measure")
            forms = {"known": ("this mass",), "like": ("mass", "this mass")}.get(kind, forms)
            forms = {"generic": ("mass",), "bare": ("mass",), "topic": ("this mass",), "single": ("this mass",), "pointed": ("this mass",)}.get(kind, forms)
        else:
            forms = KINDS[kind]
        allowed = [form for form in forms if "possessive" not in form or owned(noun)]
        if noun.classes & PLACES:
            allowed = [form for form in allowed if DETERMINED[form][0] == "one"]
        name = self.sampler.rare(allowed, lambda form: self.written(noun, form), 3)
        if name == "measure":
            return self.measured(noun)
        return self.determined(noun, name, adjective, bare)

    def written(self, noun: Noun, form: str) -> str:
        """Return the English word that the form of DETERMINED gives the noun."""
        return noun.plural if form in DETERMINED and DETERMINED[form][0] == "many" else noun.singular

    def determined(self, noun: Noun, name: str, adjective: float = 0.25, bare: bool = False) -> NounPhrase:
        """Return the noun in the form `name` of DETERMINED, with an adjective at that probability."""
        number, source, target, links = DETERMINED[name]
        plural = number == "many"
        if plural and noun.classes & PLACES:
            raise NothingFits(f"the corpus has no plural of {noun.singular!r}")
        bare = (bare and name in ("definite", "definite plural")) or name == "bare plural"
        described = None
        if "{a}" in source and self.sampler.chance(adjective):
            described = self.attributes(noun)
            bare = bare and name == "bare plural"
        owner = self.possessor().tagged("possession") if "{o}" in source else None
        count = self.number().tagged("numbers") if "{k}" in source else None
        if count is not None:
            key = count.lexemes[0].partition(":")[2]
            count = count.tagged(combinations=[("number+noun", key, noun.singular)])
        phrase = compose(
            source,
            target.replace("PL", "những" if noun.classifier else "các"),
            links.replace("PL", "những" if noun.classifier else "các"),
            head="n",
            n=self.unit(noun, plural, bare),
            a=described,
            o=owner,
            k=count,
        )
        tag = {"this": "demonstratives", "that": "demonstratives", "these": "demonstratives", "those": "demonstratives"}
        extra = [tag[name]] if name in tag else [f"quantifier {name}"] if name in ("many", "some", "every", "all", "much") else []
        agreement = "they" if plural else "he"
        return NounPhrase(phrase.tagged(*extra), agreement, "they" if plural else GENDERS.get(noun.singular, "it"), noun)

    def attributes(self, noun: Noun) -> Phrase | None:
        """Return one adjective, or two: a colour after a size, or two joined by `and`; None if none suits."""
        first = self.adjective(noun)
        if first is None:
            return None
        one = self.describe(noun, first)
        if self.sampler.chance(0.4):
            return one.tagged("attributive adjective")
        second = self.adjective(noun, "colour")
        if second is None or "colour" in first.uses or first.english not in BEFORE_COLOUR:
            return one.tagged("attributive adjective")
        return compose("{x} {y}", "{x} {y}", x=one, y=self.describe(noun, second)).tagged("two adjectives")

    def measured(self, noun: Noun) -> NounPhrase:
        """Return a measured mass noun such as `two cups of tea`, or `some tea` if it has no measure."""
        fitting = [m for m in MEASURES if noun.singular in m[3]]
        if not fitting:
            return self.determined(noun, "some mass")
        plural = self.sampler.chance(0.5)
        one, several, vietnamese, _ = self.sampler.rare(fitting, lambda m: m[1] if plural else m[0])
        phrase = compose(
            "{k} {m} of {n}" if plural else "a {m} of {n}",
            "{k} {m} {n}" if plural else "một {m} {n}",
            "of~{m}" if plural else "of~{m} a=một",
            head="n",
            k=self.number() if plural else None,
            m=lexical(several if plural else one, vietnamese),
            n=self.unit(noun),
        )
        return NounPhrase(phrase.tagged("measures"), "they" if plural else "he", "they" if plural else "it", noun)

    def possessor(self) -> Phrase:
        """Return a possessor before its noun in English, after it with `của` in Vietnamese."""
        if self.sampler.chance(0.6):
            pronoun = self.sampler.pick(self.lexicon.pronouns)
            owner = lexical(pronoun.determiner, f"~của {pronoun.vietnamese}", f"pronoun:{pronoun.auxiliary}")
            return owner
        if self.sampler.chance(0.7):
            name = self.sampler.rare(self.names, lambda e: e.english + "'s")
            return lexical(f"{name.english}'s", f"~của {name.vietnamese}", f"name:{name.english}")
        relation = self.relative(of_owner=True)
        phrase = relation.phrase
        owned = Phrase(
            (*phrase.source[:-1], phrase.source[-1] + "'s"),
            ("của", *phrase.target),
            frozenset({(i, j + 1, sure) for i, j, sure in phrase.links} | {(len(phrase.source) - 1, 0, False)}),
            (phrase.head[0], phrase.head[1] + 1),
            phrase.lexemes,
            phrase.combinations,
            phrase.constructions,
        )
        return owned

    def pronoun(self, role: str, banned: Iterable[str] = ()) -> NounPhrase:
        """Return a personal pronoun as `subject` or `object`, never one of the banned English ones."""
        weights = ASKED if self.asking else TOLD
        allowed = [(p, weights[p.auxiliary]) for p in self.lexicon.pronouns if p.auxiliary not in banned]
        pronoun: Pronoun = self.sampler.weighted(allowed)
        phrase = lexical(getattr(pronoun, role), pronoun.vietnamese, f"pronoun:{pronoun.auxiliary}")
        return NounPhrase(phrase, pronoun.agreement, pronoun.auxiliary)

    def name(self) -> NounPhrase:
        name = self.sampler.rare(self.names, lambda e: e.english)
        return NounPhrase(lexical(name.english, name.vietnamese, f"name:{name.english}"), "he", name.tags[0])

    def relative(self, of_owner: bool = False) -> NounPhrase:
        """Return a relative: `my mother`, `Lan's older brother`. `mẹ tôi` needs no `của`, `mẹ của anh ấy` does."""
        relations = [k for k in self.kin if not of_owner or k.english in ("mother", "father", "older sister", "older brother")]
        kin: Entry = self.sampler.rare(relations, lambda e: e.english.split()[-1])
        allowed = kin.tags[1]
        head = len(kin.english.split()) - 1
        noun = lexical(kin.english, kin.vietnamese, f"kin:{kin.english}", head=head)
        owners = [p for p in self.lexicon.pronouns if allowed == "all" or p.determiner in ("my", allowed)]
        if allowed == "all" and not of_owner and self.sampler.chance(0.25):
            owner = self.name().phrase
            possessor = lexical(owner.source[0] + "'s", f"~của {owner.target[0]}", owner.lexemes[0])
        else:
            pronoun = self.sampler.pick(owners)
            of = "~của " if "of" in kin.tags and pronoun.determiner != "my" else ""
            possessor = lexical(pronoun.determiner, of + pronoun.vietnamese, f"pronoun:{pronoun.auxiliary}")
        phrase = compose("{o} {n}", "{n} {o}", head="n", o=possessor, n=noun)
        agreement = "they" if kin.tags[0] == "they" else "he"
        return NounPhrase(phrase.tagged("kinship"), agreement, kin.tags[0])

    def together(self, make: Callable[[], NounPhrase]) -> NounPhrase:
        """Return two phrases joined by `and`."""
        first, second = make(), make()
        phrase = compose("{x} and {y}", "{x} và {y}", "and=và", x=first.phrase, y=second.phrase)
        return NounPhrase(phrase.tagged("coordinated nouns"), "they", "they", first.noun)
