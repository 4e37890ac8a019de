"""The grammar: every construction by name with the function that derives it, and the finished sentences."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .complexes import JOINED, REPORTS, Complexes
from .descriptions import COMPARED, DEGREES, Descriptions
from .events import Events
from .lexicon import Lexicon, load_groups
from .nominals import IDENTITIES, PROFESSIONS, Nominals
from .phrase import Phrase
from .relatives import RELATIVES, Relatives
from .sampler import NothingFits, Sampler

GROUPS = load_groups()
VOWEL_SOUND, CONSONANT_SOUND = ("hour", "honest"), ("university", "useful")
CONTENT = ("noun:", "name:", "kin:", "adjective:", "verb:", "city:")


WEIGHTS = {
    "simple past": 4.0,
    "future": 3.0,
    "habitual present": 16.0,
    "frequency adverb": 14.0,
    "no longer": 4.0,
    "tag question": 5.0,
    "progressive": 9.0,
    "still": 3.0,
    "passive past": 3.0,
    "which object past": 0.8,
    "state": 3.0,
}


@dataclass(frozen=True)
class Pair:
    """A finished sentence pair with its alignment and what it was derived from."""

    source: str
    target: str
    links: frozenset[tuple[int, int, bool]]
    template: str
    constructions: tuple[str, ...]
    combinations: frozenset[tuple[str, str, str]]

    @property
    def pharaoh(self) -> str:
        """The alignment, `i-j` sure and `i?j` possible, in order."""
        return " ".join(f"{i}{'-' if sure else '?'}{j}" for i, j, sure in sorted(self.links))


def article(following: str) -> str:
    """Return `a` or `an` before the word."""
    word = following.lower()
    vowel = word.startswith(VOWEL_SOUND) or (word[0] in "aeiou" and not word.startswith(CONSONANT_SOUND))
    return "an" if vowel else "a"


def finish(phrase: Phrase, end: str, construction: str) -> Pair:
    """Return the phrase as a sentence: articles, capital, final mark. Raises ValueError if a word has no link."""
    words = list(phrase.source)
    words = [article(words[i + 1]) if word == "a" else word for i, word in enumerate(words[:-1])] + words[-1:]
    missing = set(range(len(words))) - {i for i, _, _ in phrase.links}
    missing_target = set(range(len(phrase.target))) - {j for _, j, _ in phrase.links}
    if missing or missing_target:
        raise ValueError(
            f"{construction}: no link for {[words[i] for i in sorted(missing)]} and "
            f"{[phrase.target[j] for j in sorted(missing_target)]} in {' '.join(words)!r}; add links to its pattern"
        )
    sides = []
    for tokens in (words, list(phrase.target)):
        text = " ".join(tokens) + end
        sides.append(text[0].upper() + text[1:])
    names = dict.fromkeys(GROUPS.get(name, name) for name in (construction, *phrase.constructions))
    combinations = frozenset((k, GROUPS.get(x, x) if k.startswith("construction") else x, y) for k, x, y in phrase.combinations)
    return Pair(sides[0], sides[1], phrase.links, construction, tuple(name for name in names if name), combinations)


class Grammar:
    """Derives sentence pairs. `constructions` maps the name of a production to (final mark, function, weight)."""

    def __init__(self, lexicon: Lexicon, sampler: Sampler) -> None:
        self.events = Events(lexicon, sampler)
        self.descriptions = Descriptions(self.events)
        self.nominals = Nominals(self.descriptions)
        self.relatives = Relatives(self.descriptions, self.nominals)
        self.complexes = Complexes(self.descriptions, self.relatives)
        self.constructions: dict[str, tuple[str, Callable[[], Phrase | None], float]] = {}
        self._events()
        self._descriptions()
        self._nominals()
        self._complexes()

    def _add(self, name: str, make: Callable[[], Phrase | None], end: str = ".", weight: float = 1.0) -> None:
        self.constructions[name] = (end, make, weight)

    def _events(self) -> None:
        for template in self.events.templates:
            if template.end != "-":
                weight = WEIGHTS.get(template.name, 0.8)
                self._add(template.name, partial(self.events.build, template), template.end, weight)

    def _descriptions(self) -> None:
        for name, source, *_ in DEGREES:
            end = "?" if "question" in name or "why" in name else "."
            self._add(name, partial(self.descriptions.degree, name), end)
        for name, source, *_ in COMPARED:
            weight = 15.0 if name == "comparative" else 5.0 if "comparative" in name else 1.5
            self._add(name, partial(self.descriptions.comparison, name), "?" if "question" in name else ".", weight)
        for name in ("appearance", "past quality", "feeling", "no longer quality", "still quality"):
            self._add(name, partial(self.descriptions.feeling, name))
        self._add("colour", self.descriptions.colour)
        self._add("superlative", self.descriptions.superlative, weight=18.0)

    def _nominals(self) -> None:
        made = self.nominals
        for name in PROFESSIONS:
            self._add(name, partial(made.profession, name), "?" if "question" in name else ".")
        for name in IDENTITIES:
            self._add(name, partial(made.identity, name), "?" if name == "is this" else ".")
        self._add("these are", made.things)
        self._add("whose", made.whose, "?")
        self._add("mine and yours", made.mine, weight=4.0)
        for name in ("have", "not have", "have question", "how many have"):
            self._add(name, partial(made.having, name), "." if name in ("have", "not have") else "?")
        self._add("age", partial(made.age, "age"), weight=3.5)
        self._add("how old", partial(made.age, "how old"), "?")
        for name in ("there is", "there are", "is there"):
            self._add(name, partial(made.there, name), "?" if name == "is there" else ".")
        self._add("position", made.lies, weight=1.5)
        self._add("where is", made.where, "?")
        self._add("price", made.price, "?")
        self._add("who is", made.who_is, "?")
        self._add("exclamation", made.exclamation, "!")
        self._add("preference", made.preference)
        for name in ("weather now", "weather past", "weather future"):
            self._add(name, partial(made.weather, name), weight=1.3)

    def _complexes(self) -> None:
        made = self.complexes
        for name in (*RELATIVES, "noun with place", "noun with look", "attribute of"):
            self._add(name, partial(self.relatives.sentence, name), weight=3.5)
        for name in JOINED:
            self._add(f"conjunction {name}", partial(made.joined, name), weight=3.0)
        for name in REPORTS:
            self._add(name, partial(made.report, name), weight=3.0)
        for name in ("not know", "do you know", "ask", "want to know"):
            self._add(name, partial(made.asked, name), "?" if name == "do you know" else ".", 2.0)
        for name in ("two predicates", "not only but also"):
            self._add(name, partial(made.predicates, name), weight=3.0)
        self._add("both and", made.both)
        self._add("made someone feel", made.made)

    def derive(self, name: str) -> Pair | None:
        """Return a sentence pair of the construction, or None if the draw did not fit together."""
        end, make, _ = self.constructions[name]
        self.events.nps.asking = end == "?"
        try:
            phrase = make()
        except NothingFits:
            return None
        if phrase is None:
            return None
        content = [lexeme for lexeme in phrase.lexemes if lexeme.startswith(CONTENT)]
        repeats = len(content) - len(set(content))
        if repeats > (1 if "omparative" in name or "equality" in name else 0):
            return None
        end = "?" if "question" in phrase.constructions else end
        return finish(phrase, end, name)
