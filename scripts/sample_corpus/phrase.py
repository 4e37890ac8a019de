"""Phrases: pairs of token sequences with their word alignment, composed by bilingual patterns."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

AGREEMENT = {
    "BE": {"I": "am", "you": "are", "he": "is", "they": "are"},
    "WAS": {"I": "was", "you": "were", "he": "was", "they": "were"},
    "HAVE": {"he": "has"},
    "DO": {"he": "does"},
    "DON'T": {"he": "doesn't"},
}
PIECE = re.compile(r"\{(\w+)(?::(\w+))?\}(,?)|(\S+)")
LINK = re.compile(r"(\S+?)([=~])(\S+)")


@dataclass(frozen=True)
class Phrase:
    """Aligned token sequences: `links` holds (source, target, sure), positions from 0.

    `head` is the (source, target) position to which words without a counterpart are linked as possible.
    `lexemes` are the lexicon entries used, `combinations` the word and structure pairs that a split may hold out
    as (kind, first, second), `constructions` the names of the productions used.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: frozenset[tuple[int, int, bool]]
    head: tuple[int, int] = (0, 0)
    lexemes: tuple[str, ...] = ()
    combinations: frozenset[tuple[str, str, str]] = frozenset()
    constructions: tuple[str, ...] = ()

    def tagged(
        self,
        *constructions: str,
        lexemes: Iterable[str] = (),
        combinations: Iterable[tuple[str, str, str]] = (),
    ) -> "Phrase":
        """Return the phrase with more constructions, lexemes and combinations recorded."""
        return replace(
            self,
            constructions=self.constructions + constructions,
            lexemes=self.lexemes + tuple(lexemes),
            combinations=self.combinations | frozenset(combinations),
        )


def lexical(source: str, target: str, lexeme: str = "", head: int = 0) -> Phrase:
    """Return a lexicon entry as a phrase.

    A target syllable `x` is linked surely to the first source word, `x/2` to the second, `~x` only possibly. `head` is
    the index of the source head; its first sure syllable is the target head. Source words left over get a
    possible link.
    """
    words, syllables, links = source.split(), [], set()
    for j, mark in enumerate(target.split()):
        text, _, index = mark.removeprefix("~").partition("/")
        syllables.append(text)
        links.add((int(index or 1) - 1, j, not mark.startswith("~")))
    head_target = min((j for i, j, sure in links if sure and i == head), default=0)
    linked = {i for i, _, _ in links}
    links |= {(i, head_target, False) for i in range(len(words)) if i not in linked}
    return Phrase(tuple(words), tuple(syllables), frozenset(links), (head, head_target), (lexeme,) if lexeme else ())


def inflect(word: str, agreement: str) -> str:
    """Return a finite verb written in capitals, such as BE or WANT, in the person of `agreement` (I, you, he, they)."""
    if word in AGREEMENT:
        return AGREEMENT[word].get(agreement, word.lower())
    return word.lower() + ("s" if agreement == "he" else "")


def _lay_out(
    pattern: str, slots: Mapping[str, Phrase | None], side: str, agreement: str
) -> tuple[list[str], dict[str, int]]:
    """Return the tokens of one side of a pattern and the positions of its literals and slots by name."""
    tokens: list[str] = []
    places: dict[str, int] = {}
    for name, _, comma, literal in PIECE.findall(pattern):
        if literal:
            places[literal.rstrip(",")] = len(tokens)
            text, _, rest = literal.partition(".")
            capital = side == "source" and text.isupper() and len(text) > 1
            tokens.append((inflect(text, agreement) if capital else text) + rest.lstrip("0123456789"))
            continue
        if name not in slots:
            raise ValueError(f"pattern {pattern!r} has no value for {{{name}}}: pass it, or None to leave it out")
        phrase = slots[name]
        if phrase is not None and getattr(phrase, side):
            places["{" + name + "}"] = len(tokens)
            tokens.extend(getattr(phrase, side))
        if comma:
            tokens[-1] += comma
    return tokens, places


def _head(
    head: str,
    present: Mapping[str, Phrase],
    source: dict[str, int],
    target: dict[str, int],
    links: set[tuple[int, int, bool]],
) -> tuple[int, int]:
    """Return the head of a composed phrase: that of the slot `head`, the word `head`, or that of the first slot."""
    if head and head not in present and head in source:
        ends = [j for i, j, _ in sorted(links, key=lambda link: (not link[2], link)) if i == source[head]]
        return source[head], ends[0]
    for name in (head, *present):
        if name in present:
            inner = present[name].head
            return source["{" + name + "}"] + inner[0], target["{" + name + "}"] + inner[1]
    return 0, 0


def compose(
    source: str,
    target: str,
    links: str = "",
    *,
    head: str = "",
    agreement: str = "they",
    slots: Mapping[str, Phrase | None] | None = None,
    **parts: Phrase | None,
) -> Phrase:
    """Return the phrase of a bilingual pattern, in which `{x}` stands for the phrase given as `x` or in `slots`.

    `links` are items `a=b` (sure) or `a~b` (possible) between a source word and a target word of the pattern; `{x}`
    stands for the head of that phrase. Repeated words are distinguished by a suffix: `as.1 {a} as.2`. Links of absent
    slots are left out. Raises ValueError for a name that the pattern does not have.
    """
    slots = {**(slots or {}), **parts}
    source_tokens, source_places = _lay_out(source, slots, "source", agreement)
    target_tokens, target_places = _lay_out(target, slots, "target", agreement)
    all_links: set[tuple[int, int, bool]] = set()
    present = {name: p for name, p in slots.items() if p is not None and p.target}
    for name, phrase in present.items():
        row, column = source_places["{" + name + "}"], target_places["{" + name + "}"]
        all_links |= {(i + row, j + column, sure) for i, j, sure in phrase.links}
    for left, kind, right in LINK.findall(links):
        ends = []
        for end, places, axis in ((left, source_places, 0), (right, target_places, 1)):
            slot = end.strip("{}") if end.startswith("{") else ""
            if slot and slot not in present and slot in slots:
                break
            if end not in places:
                raise ValueError(f"link {left}{kind}{right}: {end!r} is not in {source!r} / {target!r}; use its words")
            ends.append(places[end] + (present[slot].head[axis] if slot else 0))
        if len(ends) == 2:
            all_links.add((ends[0], ends[1], kind == "="))
    sure_pairs = {(i, j) for i, j, sure in all_links if sure}
    top = _head(head, present, source_places, target_places, all_links)
    ordered = [present[n] for n in sorted(present, key=lambda n: source_places["{" + n + "}"])]
    return Phrase(
        tuple(source_tokens),
        tuple(target_tokens),
        frozenset((i, j, sure) for i, j, sure in all_links if sure or (i, j) not in sure_pairs),
        top,
        tuple(chain.from_iterable(p.lexemes for p in ordered)),
        frozenset(chain.from_iterable(p.combinations for p in ordered)),
        tuple(chain.from_iterable(p.constructions for p in ordered)),
    )


def fill(phrase: Phrase, values: Mapping[str, Phrase]) -> Phrase:
    """Return the phrase with the tokens named in `values` replaced by phrases; a comma after a token stays.

    A phrase in place of a token of both sides brings its own links. A phrase without source words takes the place of a
    target token and gets its links.
    """
    sides: list[list[str]] = [[], []]
    spans: list[list[range]] = [[], []]
    for axis, tokens in enumerate((phrase.source, phrase.target)):
        for token in tokens:
            name = token.rstrip(",")
            words = list((values[name].source, values[name].target)[axis] if name in values else ()) or [name]
            words[-1] += token[len(name) :]
            spans[axis].append(range(len(sides[axis]), len(sides[axis]) + len(words)))
            sides[axis].extend(words)
    links: set[tuple[int, int, bool]] = set()
    for i, j, sure in phrase.links:
        names = (phrase.source[i].rstrip(","), phrase.target[j].rstrip(","))
        rows, columns = spans[0][i], spans[1][j]
        if names[0] == names[1] in values:
            links |= {(rows[0] + a, columns[0] + b, kind) for a, b, kind in values[names[0]].links}
            continue
        if names[0] in values:
            rows = rows[values[names[0]].head[0] :][:1]
        if names[1] in values and values[names[1]].source:
            columns = columns[values[names[1]].head[1] :][:1]
        links |= {(a, b, sure) for a in rows for b in columns}
    sure_pairs = {(i, j) for i, j, sure in links if sure}
    filled = {token.rstrip(",") for token in phrase.source}
    used = [value for name, value in values.items() if value.source and name in filled]
    return replace(
        phrase,
        source=tuple(sides[0]),
        target=tuple(sides[1]),
        links=frozenset(link for link in links if link[2] or link[:2] not in sure_pairs),
        lexemes=phrase.lexemes + tuple(chain.from_iterable(value.lexemes for value in used)),
        combinations=phrase.combinations.union(*(value.combinations for value in used)),
    )
