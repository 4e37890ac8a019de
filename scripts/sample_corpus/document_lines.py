"""The sentences of documents: sentences of the grammar whose pronouns are open, and sentences about things."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass

from .anaphora import AGREES, OWN, WORDS, Antecedent, Antecedents, Mentions, alone, marker, open_pronouns
from .descriptions import DEGREES
from .determiners import NounPhrase
from .events import Events
from .grammar import Grammar
from .lexicon import Adjective, Entry, Lexicon, Noun, Verb
from .participants import Participants
from .phrase import Phrase, compose, lexical
from .predicates import Predicates
from .sampler import NothingFitsError, Sampler
from .splits import held_out

TRIES = 60
MOST_WORDS = 16  # English words of a sentence
FIRST_PERSON = frozenset(["i", "me", "my", "mine", "we", "us", "our", "ours"])
# Sentences with these words do not suit persons of every age and sex.
NOT_EVERYBODY = frozenset(
    (
        "homework",
        "wife",
        "husband",
        "son",
        "daughter",
        "young",
        "elderly",
        "school",
        "classroom",
        "pupil",
        "exam",
        "poor",
        *("punish", "punishes", "punished", "punishing", "scold", "scolds", "scolded", "scolding"),
        *("praise", "praises", "praised", "praising", "bite", "bites", "bit", "bitten", "biting"),
    )
)
NOT_WITH_PRONOUN = ("grow {o}", "count {o}", "steal {o}", "finish {o}", "draw {o}", "choose {o}", "need {o}")
NOT_MEALTIMES = {
    "breakfast": {"afternoon", "evening", "night", "tonight"},
    "lunch": {"morning", "evening", "night", "tonight"},
    "dinner": {"morning", "afternoon"},
}
SAID = (
    "simple past",
    "fronted time",
    "future",
    "fronted future time",
    "progressive",
    "still",
    "perfect with already",
    "perfect with just",
    "want to",
    "plan to",
    "hope to",
    "must",
    "need to",
    "decide to",
    "try to",
    "promise to",
    "ability",
    "begin to",
    "about to",
    "ask someone to",
    "tell someone to",
    "want someone to",
    "help someone do",
)
DENIED = ("perfect with not yet", "past negation", "future negation", "not want to", "inability", "forget to")
INTRODUCED: tuple[str, ...] = (
    "simple past",
    "simple past",
    "fronted time",
    "future",
    "progressive",
    "perfect with just",
    "want to",
    "plan to",
    "decide to",
    "perfect with already",
    "still",
    "about to",
)
OF_ALL = ("see {o}", "look for {o}", "follow {o}", "wait for {o}", "remember {o}")  # people, animals or things
MOVES = ("sleep", "run")
MOVED = ("simple past", "fronted time", "future", "progressive", "still", "want to", "about to", "past negation")
QUALITIES = ("clever", "lazy", "friendly", "brave", "strong", "hungry", "thirsty", "tired", "cute")
RATED = ("degree very", "degree too", "degree quite", "degree extremely", "quality negated", "quality not very")
ONES = (("this one", "<cl>/2 này/1"), ("that one", "<cl>/2 đó/1"), ("the other one", "<cl>/3 kia/2"))
ANOTHER = ("another one", "~một/1 <cl>/2 khác/1")
GREETINGS = (
    ("good morning, {x}", "chào {x}", "good~chào morning=chào"),
    ("good afternoon, {x}", "chào {x}", "good~chào afternoon=chào"),
    ("good evening, {x}", "chào {x}", "good~chào evening=chào"),
    ("hello, {x}", "xin chào {x}", "hello=xin hello=chào"),
    ("excuse me, {x}", "xin lỗi {x}", "excuse=xin excuse=lỗi me~lỗi"),
)
# How somebody is addressed: the Vietnamese word and the sex.
TITLES = {
    "Mr": ("ông", "he"),
    "Mrs": ("bà", "she"),
    "Miss": ("cô", "she"),
    "Uncle": ("chú", "he"),
    "Aunt": ("dì", "she"),
    "": ("bạn", ""),
}


@dataclass(frozen=True)
class Line:
    """A sentence of a document whose antecedents are still open.

    `kind` is the kind of its pronoun, if any, `fits` tells whether it can be about a noun, and `combines` are the
    combinations that it makes with the noun.
    """

    phrase: Phrase
    end: str = "."
    kind: str = ""
    fits: Callable[[Noun], bool] | None = None
    combines: tuple[tuple[str, str], ...] = ()

    def suits(self, noun: Noun) -> bool:
        """Whether the line can be about the noun, without a combination that is held out."""
        return (self.fits is None or self.fits(noun)) and not any(
            held_out((kind, first, noun.singular)) for kind, first in self.combines
        )


def listed(verb: Verb, noun: Noun) -> bool:
    """Whether the noun can be the object of the verb."""
    if noun.person:
        return "PERSON" in verb.objects
    return bool(set(verb.objects) & (noun.classes | {noun.singular}))


class GivenObjects(Participants):
    """Participants whose object can be given from outside."""

    given: NounPhrase | None = None

    def object(self, verb: Verb, wanted: str, subject: NounPhrase | None) -> NounPhrase:
        """Return the given object, or choose one."""
        return self.given or super().object(verb, wanted, subject)


class Lines:
    """Makes the lines of documents."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler, self.lexicon = sampler, Lexicon()
        self.lexicon.pronouns = open_pronouns(self.lexicon)
        self.grammar = Grammar(self.lexicon, sampler)
        people = self.grammar.events.people
        people.names = [*people.names, *(Entry(f"@{sex}", f"@{sex}", (sex,)) for sex in ("he", "she") * 5)]
        self.given = GivenObjects(self.lexicon, sampler)
        self.events = Events(self.lexicon, sampler)
        self.events.participants, self.events.people, self.events.nps = self.given, self.given.people, self.given.nps
        self.events.predicates = Predicates(self.given)
        self.mentions, self.antecedents = Mentions(self.lexicon), Antecedents(self.lexicon, sampler)
        self.things = [noun for noun in self.lexicon.nouns if not (noun.person or noun.mass)]
        self.people = [noun for noun in self.lexicon.nouns if noun.person]
        keys = Counter(verb.key for verb in self.lexicon.verbs)  # two verbs have the key `wash {o}`: rửa and giặt
        self.verbs = {
            verb.key: verb
            for verb in self.lexicon.verbs
            if keys[verb.key] == 1
            and verb.key not in NOT_WITH_PRONOUN
            and verb.objects
            and (verb.plain or verb.key in OF_ALL)
        }
        self.templates = [(name, weight) for name, (_, _, weight) in self.grammar.templates.items()]
        self.known: set[str] | None = None
        self.tried: Counter[str] = Counter()
        self.helped: dict[str, Counter[str]] = defaultdict(Counter)
        self.stock: dict[str, list[Line]] = {
            name: [] for name in ("he", "she", "you", "intro he", "intro she", "other")
        }

    def refill(self, name: str, size: int = 200) -> None:
        """Derive sentences of the grammar until the stock has `size` more under `name`; keep all other usable ones too.

        Templates that gave such sentences before are drawn more often.
        """
        tried, helped = self.tried, self.helped[name]
        lines, wanted = self.stock[name], len(self.stock[name]) + size
        while len(lines) < wanted:
            weights = [(t, w * (helped[t] + 1) / (tried[t] + 10)) for t, w in self.templates]
            for _ in range(20):
                template = self.sampler.weighted(weights)
                tried[template] += 1
                phrase = self.grammar.draw(template)
                if phrase is None or len(phrase.source) > MOST_WORDS or any(map(held_out, phrase.combinations)):
                    continue
                use = self.use(phrase)
                if use and self.in_words(phrase):
                    self.helped[use][template] += 1
                    end = self.grammar.end(template, phrase)
                    self.stock[use].append(Line(phrase, end, use if use in WORDS else ""))

    def restrict(self, known: set[str]) -> None:
        """Use only these words in lines from now on; Vietnamese words begin with `vi:`."""
        self.known = known
        for lines in self.stock.values():
            lines[:] = [line for line in lines if self.in_words(line.phrase)]

    def use(self, phrase: Phrase) -> str:
        """Return what documents can use a sentence of the grammar for, or '' if they cannot use it.

        A usable sentence has one kind of pronoun whose antecedent must come from outside, introduces somebody (the
        name @he or @she), or is about others.
        """
        source = [token.strip(",") for token in phrase.source]
        target = [token.strip(",") for token in phrase.target]
        kinds = {kind for kind in WORDS if set(WORDS[kind]) & set(source)}
        fixed = any(target.count(marker(k)) != sum(token in WORDS[k] for token in source) for k in WORDS)
        marked = [token for token in source if token.startswith("@")]
        meal = next((token for token in source if token in NOT_MEALTIMES), "")
        odd = "years" in source or bool(meal and NOT_MEALTIMES[meal] & set(source))
        if fixed or odd or len(marked) > 1 or source[0] in ("please", "let"):
            return ""
        if not marked and not kinds:
            return "other" if source[0] not in ("do", "does") else ""
        owns_relative = any(
            one in ("his", "her", "your") and {two, three} & self.mentions.kin
            for one, two, three in zip(source, [*source[1:], ""], [*source[2:], "", ""], strict=False)
        )
        if len(kinds) > 1 or "they" in kinds or set(source) & NOT_EVERYBODY or owns_relative:
            return ""  # `chú bà ấy`, her uncle, is clumsy
        if not marked:
            kind = kinds.pop()
            polite = kind != "you" or not FIRST_PERSON & {token.lower() for token in source}  # not `tôi` to an aunt
            return kind if polite and self.clear(Line(phrase, kind=kind), set()) else ""
        sex = marked[0][1:]
        if marked[0] not in ("@he", "@she") or kinds - {sex}:
            return ""
        after = all(i > source.index(marked[0]) for i, token in enumerate(source) if token in WORDS[sex])
        rest = [token for token in source if token not in (marked[0], *WORDS[sex])]
        return f"intro {sex}" if after and not AGREES[sex] & self.mentions.of(rest) else ""

    def clear(self, line: Line, pending: Collection[str]) -> bool:
        """Whether nothing before the line's pronoun agrees with it, and nothing in the line with later pronouns."""
        source = [self.mentions.plain(token) for token in line.phrase.source]
        own = OWN.get(line.kind, ())
        others = [token for token in source if token not in own]
        if self.mentions.of(others) & set().union(*(AGREES[kind] for kind in pending)):
            return False
        last = max((place for place, token in enumerate(source) if token in own), default=0)
        before = [token for token in source[:last] if token not in own]
        return not (line.kind and AGREES[line.kind] & self.mentions.of(before))

    def take(self, name: str, fits: Callable[[Line], bool]) -> Line:
        """Remove a fitting line from the stock and return it: of several candidates, the one with the rarest word."""
        for _ in range(5):
            lines, found = self.stock[name], set[int]()
            for _ in range(TRIES if lines else 0):
                place = int(self.sampler.fraction() * len(lines))
                if fits(lines[place]):
                    found.add(place)
                if len(found) == 12:
                    break
            if found:
                return lines.pop(min(sorted(found), key=lambda place: self.rarest(lines[place].phrase)))
            self.refill(name)
        raise NothingFitsError(f"no sentence of the grammar fits as {name!r}")

    def in_words(self, phrase: Phrase) -> bool:
        """Whether the phrase has only known words. Before the first `restrict`, all words are known."""
        used = {word.strip(",").lower() for word in phrase.source if word[0] != "@"}
        used |= {f"vi:{word.strip(',').lower()}" for word in phrase.target if word[0] not in "@<"}
        return self.known is None or used <= self.known

    def rarest(self, phrase: Phrase) -> int:
        """Return how often the rarest word of the phrase has been used."""
        target = [f"vi:{word}" for word in phrase.target if word[0] not in "@<"]
        return min(self.sampler.used[word.strip(",").lower()] for word in (*phrase.source, *target) if word[0] != "@")

    def event(
        self,
        names: tuple[str, ...],
        given: NounPhrase | None,
        among: Collection[str],
        subject: NounPhrase | None = None,
    ) -> tuple[Phrase, Verb, str]:
        """Return a sentence with the given object or subject, its verb and its final mark."""
        self.given.given, self.events.people.asking = given, False
        name = self.sampler.pick(names)
        try:
            phrase = self.events.build(name, subject, among=among)
        finally:
            self.given.given = None
        key = next(lexeme[5:] for lexeme in phrase.lexemes if lexeme.startswith("verb:"))
        allowed = {token for found in (given, subject) if found is not None for token in found.phrase.target}
        marks = {token.strip(",") for token in phrase.target if token[0] == "<"} - allowed
        sensible = self.grammar.sensible(phrase, False) and not self.grammar.repeats(phrase)
        if (
            marks
            or not sensible
            or not self.in_words(phrase)
            or len(phrase.source) > MOST_WORDS
            or any(map(held_out, phrase.combinations))
        ):
            raise NothingFitsError("another pronoun, or words that do not go together")
        return phrase, next(v for v in self.lexicon.verbs if v.key == key), self.events.templates[name].end

    def introduction(self, kind: str, nouns: Collection[Noun]) -> Line:
        """Return a sentence with the object @thing, which each of the nouns can be."""
        among = [verb.key for verb in self.verbs.values() if all(listed(verb, noun) for noun in nouns)]
        if not among:
            raise NothingFitsError("no verb takes all these nouns")
        given = NounPhrase(lexical("@thing", "@thing"), "he" if kind == "it" else "they", "it")
        phrase, verb, end = self.event(INTRODUCED, given, among)
        return Line(phrase, end, combines=(("verb+object", verb.key),))

    def greeting(self) -> Line:
        """Return a greeting of @thing."""
        source, target, links = self.sampler.pick(GREETINGS)
        return Line(compose(source, target, links, x=lexical("@thing", "@thing")))

    def addressed(self, title: str) -> Antecedent:
        """Return somebody with the title, or with a first name alone, who is addressed by `you`."""
        form, sex = TITLES[title]
        name = self.sampler.pick([name for name in self.antecedents.names if sex in ("", name.tags[0])])
        english, vietnamese = name.english, name.vietnamese
        if title:
            english, vietnamese = f"{title} {english}", f"{form}/1 {vietnamese}/2"
        return Antecedent(lexical(english, vietnamese, f"name:{name.english}", head=bool(title)), "you", form)

    def several(self) -> Line:
        """Return a sentence with `they` or `them`, about people as well as animals or things."""
        use = self.sampler.weighted([("object", 5), ("move", 2), ("quality", 3)])
        if use == "object":
            given = NounPhrase(lexical("them", marker("they")), "they", "they")
            phrase, verb, end = self.event(SAID + DENIED, given, OF_ALL)
            if "they" in phrase.source:
                raise NothingFitsError("they themselves cannot be what `they` see")
            return Line(phrase, end, "they", lambda noun: listed(verb, noun), (("verb+object", verb.key),))
        subject = NounPhrase(lexical("they", marker("they")), "they", "they")
        if use == "move":
            phrase, _, end = self.event(MOVED, None, MOVES, subject)
            return Line(phrase, end, "they", lambda noun: "legged" in noun.classes)
        word = self.sampler.pick(QUALITIES)
        adjective = next(a for a in self.lexicon.adjectives if a.english == word)
        phrase = self.degree(subject, adjective)
        if "temp" in adjective.uses:
            return Line(phrase, kind="they", fits=lambda noun: "legged" in noun.classes)
        return Line(phrase, ".", "they", adjective.fits, (("adjective+noun", adjective.key),))

    def degree(self, subject: NounPhrase, adjective: Adjective) -> Phrase:
        """Return `this one is very big`."""
        name = self.sampler.pick(RATED)
        source, target, links = DEGREES[name]
        quality = lexical(adjective.english, adjective.vietnamese, f"adjective:{adjective.key}")
        slots = {"s": subject.phrase, "a": quality}
        return compose(source, target, links, head="a", agreement=subject.agreement, slots=slots).tagged(name)

    def one(self, kind: str, adjective: Adjective | None) -> NounPhrase:
        """Return a phrase in place of a thing: `it`, `two of them`, `this one`, `the red one`, `the cheapest one`."""
        if kind == "it":
            return NounPhrase(lexical("it", "<cl> đó"), "he", "it")
        if kind == "some":
            number = self.sampler.pick(self.given.nps.numbers[:5])
            return NounPhrase(lexical(f"{number.english} of them", f"{number.vietnamese}/1 <cl>/3"), "they", "they")
        if adjective is None:
            english, vietnamese = self.sampler.pick((*ONES, ANOTHER))
            return NounPhrase(lexical(english, vietnamese, head=len(english.split()) - 1), "he", "it")
        words, marks = adjective.vietnamese.split(), ""
        english, several = adjective.english, False
        if "sup" in adjective.uses:
            english = f"most {english}" if adjective.superlative == "most" else adjective.superlative
            marks = " nhất/2"
        else:
            several = self.sampler.chance(0.3)
        last = len(english.split())
        quality = " ".join(f"{word}/{last + 1}" for word in words) + marks
        source = f"the {english} {'ones' if several else 'one'}"
        target = f"{'~những/3 ' if several else ''}<cl>/{last + 2} {quality}"
        return NounPhrase(lexical(source, target, head=last + 1), "they" if several else "he", "it")

    def of_thing(self, kind: str) -> Line:
        """Return a sentence with `it`, `one` or `of them`; its Vietnamese has the token <cl> for the classifier."""
        combines: list[tuple[str, str]] = []
        attribute = quality = verb = None
        inanimate = [a for a in self.lexicon.adjectives if not a.suits & {"person", "adult", "job"}]
        if kind == "one" and self.sampler.chance(0.6):
            use = self.sampler.pick(("colour", "colour", "sup", "pred"))
            attribute = self.sampler.pick(
                [a for a in inanimate if use in a.uses and (use != "pred" or a.english in ("new", "old"))]
            )
            combines.append(("adjective+noun", attribute.key))
        thing = self.one(kind, attribute)
        end = "."
        if kind == "some" or thing.phrase.source[0] == "another" or self.sampler.chance(0.55):
            phrase, verb, end = self.event(SAID if kind == "some" else SAID + DENIED, thing, self.verbs)
            combines.append(("verb+object", verb.key))
        else:
            use = "comp" if kind == "one" and attribute is None and self.sampler.chance(0.6) else "pred"
            quality = self.sampler.pick([a for a in inanimate if use in a.uses and a is not attribute])
            combines.append(("adjective+noun", quality.key))
            phrase = self.compared(thing, quality) if use == "comp" else self.degree(thing, quality)

        def fits(noun: Noun) -> bool:
            described = all(a is None or a.fits(noun) for a in (attribute, quality))
            return alone(noun) and described and (verb is None or listed(verb, noun))

        return Line(phrase, end, kind, fits, tuple(combines))

    def compared(self, thing: NounPhrase, adjective: Adjective) -> Phrase:
        """Return `this one is bigger than that one`."""
        english, vietnamese = self.sampler.pick([one for one in ONES if one[0].split()[0] != thing.phrase.source[0]])
        more = adjective.comparative == "more"
        words = " ".join(f"{word}/{1 + more}" for word in adjective.vietnamese.split())
        comparative = f"more {adjective.english}" if more else adjective.comparative
        slots = {
            "s": thing.phrase,
            "c": lexical(comparative, f"{words} {'' if more else '~'}hơn/1", f"adjective:{adjective.key}", head=more),
            "y": lexical(english, vietnamese, head=len(english.split()) - 1),
        }
        return compose("{s} BE {c} than {y}", "{s} {c} {y}", "BE~{c} than~{c}", head="c", agreement="he", slots=slots)
