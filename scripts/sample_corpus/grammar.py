"""The grammar: every template by name with the function that derives it, and the finished sentences."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from .complexes import ASKS, COORDINATED, JOINED, REPORTS, Complexes
from .descriptions import COMPARED, DEGREES, FEELINGS, Descriptions
from .events import Events
from .lexicon import Lexicon, load_groups
from .nominals import HAVING, IDENTITIES, PROFESSIONS, WEATHER, Nominals
from .phrase import Phrase
from .places import THERE, Places
from .referents import Referents
from .relatives import RELATIVES, Relatives
from .sampler import NothingFitsError, Sampler

GROUPS = load_groups()
VOWEL_SOUND, CONSONANT_SOUND = ("hour", "honest"), ("university", "useful")
NEGATIONS = {"not", "cannot", "never", "no"}
CONTENT = ("noun:", "name:", "kin:", "adjective:", "verb:", "city:")
# Templates drawn more often, mostly for word forms that no other template has.
WEIGHTS = {
    "simple past": 4.0,
    "future": 3.0,
    "habitual present": 16.0,
    "frequency adverb": 14.0,
    "state": 3.0,
    "progressive": 9.0,
    "still": 3.0,
    "no longer": 4.0,
    "tag question": 8.0,
    "passive past": 3.0,
    "comparative": 12.0,
    "much comparative": 4.0,
    "comparative question": 4.0,
    "superlative": 11.0,
    "mine and yours": 3.0,
    "age": 3.0,
    "not only but also": 4.0,
    "two predicates": 3.0,
}
COMPLEX_WEIGHT = 4.5


@dataclass(frozen=True)
class Pair:
    """A finished sentence pair with its alignment, its template, its constructions and what it combines."""

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


def finish(phrase: Phrase, end: str, template: str) -> Pair:
    """Return the phrase as a sentence: articles, capital, final mark. Raises ValueError if a word has no link."""
    words = list(phrase.source)
    words = [article(words[i + 1]) if word == "a" else word for i, word in enumerate(words[:-1])] + words[-1:]
    rows = [words[i] for i in sorted(set(range(len(words))) - {i for i, _, _ in phrase.links})]
    columns = [phrase.target[j] for j in sorted(set(range(len(phrase.target))) - {j for _, j, _ in phrase.links})]
    if rows or columns:
        raise ValueError(
            f"{template}: no link for {rows} and {columns} in {' '.join(words)!r}; add links to its pattern"
        )
    sides = [" ".join(tokens) + end for tokens in (words, phrase.target)]
    sides = [text[0].upper() + text[1:] for text in sides]
    names = dict.fromkeys(GROUPS.get(name, name) for name in (template, *phrase.constructions))
    combinations = frozenset(
        (kind, GROUPS.get(first, first) if kind == "construction+verb" else first, second)
        for kind, first, second in phrase.combinations
    )
    return Pair(sides[0], sides[1], phrase.links, template, tuple(name for name in names if name), combinations)


def asks_about_many(source: tuple[str, ...]) -> bool:
    """Whether a yes-no question or `how long` asks about `many`: Vietnamese does this with `có nhiều ... không`."""
    subject = source[3] if source[:2] == ("how", "long") else source[1]
    return subject in ("many", "some") and source[:2] != ("how", "many")


class Grammar:
    """Derives sentence pairs. `templates` maps the name of a template to (final mark, function, weight)."""

    def __init__(self, lexicon: Lexicon, sampler: Sampler) -> None:
        self.events, self.referents = Events(lexicon, sampler), Referents(lexicon)
        self.descriptions = Descriptions(self.events)
        self.places = Places(self.events)
        self.nominals = Nominals(self.descriptions)
        self.relatives = Relatives(self.descriptions, self.places)
        self.complexes = Complexes(self.descriptions, self.relatives)
        self.templates: dict[str, tuple[str, Callable[[], Phrase], float]] = {}
        self._add_events()
        self._add_descriptions()
        self._add_nominals()
        self._add_complexes()

    def _add(self, name: str, make: Callable[[], Phrase], end: str = ".", weight: float = 0.8) -> None:
        self.templates[name] = (end, make, WEIGHTS.get(name, weight))

    def _add_all(self, names: Iterable[str], make: Callable[[str], Phrase], asked: tuple[str, ...] = ()) -> None:
        for name in names:
            self._add(name, partial(make, name), "?" if name in asked else ".")

    def _add_events(self) -> None:
        for name, template in self.events.templates.items():
            if template.end != "-":
                self._add(name, partial(self.events.build, name), template.end)

    def _add_descriptions(self) -> None:
        made = self.descriptions
        self._add_all(DEGREES, made.degree, ("quality question", "quality why"))
        self._add_all(COMPARED, made.comparison, ("comparative question",))
        self._add_all(FEELINGS, made.feeling)
        self._add("colour", made.colour)
        self._add("superlative", made.superlative)

    def _add_nominals(self) -> None:
        made, places = self.nominals, self.places
        self._add_all(PROFESSIONS, made.profession, ("profession question",))
        self._add_all(IDENTITIES, made.identity, ("is this",))
        self._add_all(HAVING, made.having, ("have question", "how many have"))
        self._add_all(("age", "how old"), made.age, ("how old",))
        self._add_all(WEATHER, made.weather)
        self._add_all(THERE, places.there, ("is there",))
        self._add("these are", made.things)
        self._add("mine and yours", made.mine)
        self._add("preference", made.preference)
        self._add("position", places.position)
        self._add("whose", made.whose, "?")
        self._add("where is", places.where, "?")
        self._add("price", made.price, "?")
        self._add("who is", made.who_is, "?")
        self._add("exclamation", made.exclamation, "!")

    def _add_complexes(self) -> None:
        made = self.complexes
        for name in (*RELATIVES, "place relative", "noun with place", "noun with look", "attribute of"):
            self._add(name, partial(self.relatives.sentence, name), weight=COMPLEX_WEIGHT)
        for name in JOINED:
            self._add(f"conjunction {name}", partial(made.joined, name), weight=COMPLEX_WEIGHT)
        for name in REPORTS:
            self._add(name, partial(made.report, name), weight=COMPLEX_WEIGHT)
        for name in ASKS:
            self._add(name, partial(made.asked, name), "?" if name == "do you know" else ".", COMPLEX_WEIGHT)
        self._add_all(COORDINATED, made.predicates)
        self._add("both and", made.both)
        self._add("made someone feel", made.made)

    def derive(self, name: str) -> Pair | None:
        """Return a sentence pair of the template, or None if the draw could not be completed."""
        phrase = self.draw(name)
        return None if phrase is None else finish(phrase, self.end(name, phrase), name)

    def end(self, name: str, phrase: Phrase) -> str:
        """Return the final mark of a phrase of the template."""
        return "?" if "question" in phrase.constructions else self.templates[name][0]

    def draw(self, name: str) -> Phrase | None:
        """Return a phrase of the template, or None if the draw could not be completed.

        A draw also fails if it repeats a word, has `all` or `some` under a negation, asks about `many`, or leaves open
        who `his` is.
        """
        end, make, _ = self.templates[name]
        self.events.people.asking = end == "?"
        try:
            phrase = make()
        except NothingFitsError:
            return None
        negated = NEGATIONS & set(phrase.source)
        if negated and (phrase.source[0] == "all" or "some" in phrase.source):
            return None
        if end == "?" and asks_about_many(phrase.source):
            return None
        if not self.referents.clear(phrase) or not self.sensible(phrase, bool(negated)) or self.repeats(phrase):
            return None
        return phrase

    def sensible(self, phrase: Phrase, negated: bool) -> bool:
        """Whether the words make sense together.

        They do not if an adverb with `very` is negated, an adverb of manner occurs with `every month`, the poor are
        rich, `that` occurs twice in a row, or the speaker also belongs to the group that acts, as in `let us tell me a
        story`.
        """
        very = any(one == "very" and two in self.events.predicates.adverbs for one, two in pairwise(phrase.source))
        monthly = "month" in phrase.source and "every" in phrase.source and "manner adverb" in phrase.constructions
        words = set(phrase.source)
        opposites = {"rich", "poor"} <= words or {"young", "years"} <= words
        twice = ("that", "that") in pairwise(phrase.source)
        inside = ("me" in words and words & {"we", "us"}) or {"I", "us"} <= words
        return not ((negated and very) or monthly or opposites or twice or inside)

    def repeats(self, phrase: Phrase) -> bool:
        """Whether a content word occurs twice; one noun may in a comparison, no adjective ever."""
        content = [lexeme for lexeme in phrase.lexemes if lexeme.startswith(CONTENT)]
        adjectives = [lexeme for lexeme in content if lexeme.startswith("adjective:")]
        compared = any("omparative" in used or "equality" in used for used in phrase.constructions)
        return len(content) - len(set(content)) > compared or len(adjectives) > len(set(adjectives))
