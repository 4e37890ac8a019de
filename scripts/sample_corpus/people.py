"""The people of the corpus: pronouns, names, relatives and possessors."""

from collections.abc import Callable, Iterable

from .determiners import NounPhrase
from .lexicon import Entry, Lexicon, Pronoun
from .phrase import Phrase, compose, lexical
from .sampler import Sampler

TOLD = {"I": 6, "you": 1, "he": 4, "she": 4, "we": 3, "they": 3}
ASKED = {"I": 0, "you": 10, "he": 3, "she": 3, "we": 0.5, "they": 3}
OWNERS = ("mother", "father", "older sister", "older brother")


class People:
    """Builds noun phrases for known persons. `asking` says whether the sentence is a question."""

    def __init__(self, lexicon: Lexicon, sampler: Sampler) -> None:
        self.lexicon, self.sampler = lexicon, sampler
        self.names, self.kin = lexicon.entries("names"), lexicon.entries("kin")
        self.asking = False

    def choose(self, banned: Iterable[str] = ()) -> Pronoun:
        """Return a pronoun: mostly I in statements and you in questions, never one of the banned ones."""
        weights = ASKED if self.asking else TOLD
        banned = set(banned)
        return self.sampler.weighted(
            [(p, weights[p.auxiliary]) for p in self.lexicon.pronouns if p.auxiliary not in banned]
        )

    def pronoun(self, role: str, banned: Iterable[str] = ()) -> NounPhrase:
        """Return a personal pronoun as `subject` or `object`."""
        pronoun = self.choose(banned)
        phrase = lexical(getattr(pronoun, role), pronoun.vietnamese, f"pronoun:{pronoun.auxiliary}")
        return NounPhrase(phrase, pronoun.agreement, pronoun.auxiliary)

    def as_subject(self, found: NounPhrase) -> NounPhrase:
        """Return an object pronoun as a subject; anything else unchanged."""
        for pronoun in self.lexicon.pronouns:
            if found.phrase.source == (pronoun.object,):
                return self.echo(found)
        return found

    def echo(self, subject: NounPhrase) -> NounPhrase:
        """Return the pronoun that refers back to the subject."""
        fitting = [p for p in self.lexicon.pronouns if subject.echo and p.auxiliary == subject.auxiliary]
        pronoun = self.sampler.pick(fitting)
        phrase = lexical(pronoun.subject, pronoun.vietnamese, f"pronoun:{pronoun.auxiliary}")
        return NounPhrase(phrase, pronoun.agreement, pronoun.auxiliary)

    def name(self) -> NounPhrase:
        name = self.sampler.rare(self.names, lambda e: e.english)
        return NounPhrase(lexical(name.english, name.vietnamese, f"name:{name.english}"), "he", name.tags[0])

    def named_owner(self) -> Phrase:
        """Return `Lan's`, `của Lan`."""
        name = self.sampler.rare(self.names, lambda e: e.english + "'s")
        return lexical(f"{name.english}'s", f"~của {name.vietnamese}", f"name:{name.english}")

    def relative(self, kin: Entry | None = None) -> NounPhrase:
        """Return a relative: `my mother`, `Lan's older brother`.

        `mẹ tôi` needs no `của`; a name does (`mẹ của Lan`), and grandparents do except one's own (`bà của anh ấy`).
        So does `họ`: `chú họ` is not their uncle but the cousin of one's father.
        """
        named = kin is None and self.sampler.chance(0.25)
        kin = kin or self.sampler.rare(self.kin, lambda e: e.english.split()[-1])
        noun = lexical(kin.english, kin.vietnamese, f"kin:{kin.english}", head=len(kin.english.split()) - 1)
        pronoun, allowed = kin.tags[0], kin.tags[1]
        if named and allowed == "all":
            owner = self.named_owner()
        else:
            owner = self.pronoun_owner(allowed, lambda own: own == "their" or ("of" in kin.tags and own != "my"))
        phrase = compose("{o} {n}", "{n} {o}", head="n", o=owner, n=noun)
        several = pronoun == "they"
        return NounPhrase(
            phrase.tagged("kinship"), "they" if several else "he", pronoun, echo=several or "peer" in kin.tags
        )  # fmt: skip

    def pronoun_owner(self, allowed: str, needs_of: Callable[[str], bool]) -> Phrase:
        """Return `my`, `tôi` or `của tôi`; `allowed` is `all` or the only determiner besides `my`."""
        weights = ASKED if self.asking else TOLD
        owners = [
            (p, weights[p.auxiliary] + 1)
            for p in self.lexicon.pronouns
            if allowed in ("all", p.determiner) or p.determiner == "my"
        ]
        pronoun = self.sampler.weighted(owners)
        of = "~của " if needs_of(pronoun.determiner) else ""
        return lexical(pronoun.determiner, of + pronoun.vietnamese, f"pronoun:{pronoun.auxiliary}")

    def possessor(self) -> Phrase:
        """Return a possessor, before its noun in English, after it with `của` in Vietnamese."""
        if self.sampler.chance(0.6):
            return self.pronoun_owner("all", lambda _: True)
        if self.sampler.chance(0.7):
            return self.named_owner()
        kin = self.sampler.rare([k for k in self.kin if k.english in OWNERS], lambda e: e.english.split()[-1] + "'s")
        phrase = self.relative(kin).phrase
        last = len(phrase.source) - 1
        links = {(i, j + 1, sure) for i, j, sure in phrase.links} | {(last, 0, False)}
        return Phrase(
            (*phrase.source[:-1], phrase.source[-1] + "'s"),
            ("của", *phrase.target),
            frozenset(links),
            (phrase.head[0], phrase.head[1] + 1),
            phrase.lexemes,
            phrase.combinations,
            phrase.constructions,
        )

    def together(self) -> NounPhrase:
        """Return two persons joined by `and`."""
        make = self.sampler.pick((self.name, self.relative, self.name))
        first, second = make(), make()
        phrase = compose("{x} and {y}", "{x} và {y}", "and=và", x=first.phrase, y=second.phrase)
        return NounPhrase(phrase.tagged("coordinated nouns"), "they", "they")
