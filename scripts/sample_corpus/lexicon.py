"""The bilingual lexicon: the TSV files of this folder as typed entries."""

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).parent


def _rows(name: str) -> list[dict[str, str]]:
    with (HERE / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
        return [
            {key: "" if value == "-" else value for key, value in row.items()}
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def load_groups() -> dict[str, str]:
    """Return the construction that each template belongs to; empty for clauses used only inside others."""
    return {row["template"]: row["construction"] for row in _rows("constructions")}


@dataclass(frozen=True)
class Noun:
    """A common noun. `classes` restrict its uses; `place` is its English and Vietnamese preposition."""

    singular: str
    plural: str
    classifier: str
    vietnamese: str
    classes: frozenset[str]
    place: tuple[str, ...]

    @property
    def mass(self) -> bool:
        return not self.plural

    @property
    def person(self) -> bool:
        return "person" in self.classes


@dataclass(frozen=True)
class Verb:
    """A verb with its bilingual frame, in which V is the English form and {o} {r} {d} {c} {q} are its complements."""

    base: str
    third: str
    past: str
    participle: str
    ing: str
    source: str
    target: str
    links: str
    aspect: tuple[str, ...]
    habit: bool
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    nps: str
    passive: str
    where: tuple[str, ...]
    manner: tuple[str, ...]

    @property
    def key(self) -> str:
        return self.source.replace("V", self.base, 1)

    @property
    def plain(self) -> bool:
        """Whether the object is last on both sides, so that it can be asked for, relativized or made a subject."""
        return (
            self.source.startswith("V")
            and self.source.endswith("{o}")
            and self.target.endswith("{o}")
            and (self.source.count("{") == 1)
        )


@dataclass(frozen=True)
class Adjective:
    """An adjective; `suits` are noun classes or nouns, `uses` the positions where it can stand."""

    english: str
    comparative: str
    superlative: str
    vietnamese: str
    suits: frozenset[str]
    uses: frozenset[str]

    @property
    def key(self) -> str:
        return f"{self.english}:{self.vietnamese}"

    def fits(self, noun: Noun | None) -> bool:
        """Whether the adjective may describe the noun, or a person when there is no noun."""
        if noun is None:
            return "person" in self.suits
        return bool(self.suits & (noun.classes | {noun.singular}))


@dataclass(frozen=True)
class Entry:
    """Any other word: its translation and its remaining columns."""

    english: str
    vietnamese: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pronoun:
    """A personal pronoun with its four English forms and its only Vietnamese form."""

    subject: str
    object: str
    determiner: str
    independent: str
    vietnamese: str
    agreement: str
    auxiliary: str


class Lexicon:
    """All entries, in the order of the files."""

    @cached_property
    def nouns(self) -> list[Noun]:
        return [
            Noun(
                row["singular"],
                row["plural"],
                row["classifier"],
                row["vietnamese"],
                frozenset(_split(row["classes"])),
                tuple(row["place"].split()),
            )
            for row in _rows("nouns")
        ]

    @cached_property
    def verbs(self) -> list[Verb]:
        return [
            Verb(
                row["base"],
                row["third"],
                row["past"],
                row["participle"],
                row["ing"],
                row["source"],
                row["target"],
                row["links"],
                _split(row["aspect"]),
                row["habit"] == "y",
                _split(row["subjects"]),
                _split(row["objects"]),
                row["nps"],
                row["passive"],
                _split(row["where"]),
                _split(row["manner"]),
            )
            for row in _rows("verbs")
        ]

    @cached_property
    def adjectives(self) -> list[Adjective]:
        return [
            Adjective(
                row["english"],
                row["comparative"],
                row["superlative"],
                row["vietnamese"],
                frozenset(_split(row["suits"])),
                frozenset(_split(row["uses"])),
            )
            for row in _rows("adjectives")
        ]

    @cached_property
    def pronouns(self) -> list[Pronoun]:
        return [Pronoun(**row) for row in _rows("pronouns")]

    def entries(self, name: str) -> list[Entry]:
        """Return the entries of one of the small files: names, kin, cities, numbers, adverbs, times."""
        return [
            Entry(english, vietnamese, tuple(tag for cell in rest for tag in _split(cell)))
            for english, vietnamese, *rest in (row.values() for row in _rows(name))
        ]

    @property
    def content_words(self) -> int:
        """The number of distinct nouns, verbs, adjectives and adverbs."""
        adverbs = {entry.english for entry in self.entries("adverbs")}
        kin = {entry.english for entry in self.entries("kin")}
        return len(
            {noun.singular for noun in self.nouns}
            | kin
            | {f"to {verb.base}" for verb in self.verbs}
            | {adjective.english for adjective in self.adjectives}
            | adverbs
        )
