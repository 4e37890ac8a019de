"""Training text with the words of a dictionary, where parallel text has too few of them.

  python -m scripts.studies.dictionary read wiktionary.tsv > words.tsv
  python -m scripts.studies.dictionary pairs words.tsv my/mono.vi --out my/dict
  python -m scripts.studies.dictionary insert words.tsv my/mono.vi --known my/train.en --out my/inserted
  python -m scripts.studies.dictionary exchange words.tsv my/mono.vi --known my/train.en --corpora my/train --out my/new
  python -m scripts.studies.dictionary replace words.tsv --known my/train.en --corpora my/train --out my/new
  python -m scripts.studies.dictionary table words.tsv my/mono.vi --known my/train.en --out runs/en-vi/dictionary.tsv

The examples are for English to Vietnamese. `read` takes a Vietnamese-English dictionary of Wiktionary in the format of
github.com/Vuizur/Wiktionary-Dictionaries: a word, a tab, and its meanings in HTML. It writes tab-separated words,
translations, parts of speech and sense numbers, from 0, without obsolete or regional senses and without explanations
that are not translations. `--english` adds an English-Vietnamese one in the format of
github.com/open-dsl-dict/wiktionary-dict, whose senses have no order: their number is "-".

`pairs` writes the one or two Vietnamese words for an English one that the Vietnamese text uses most, as lines of
`my/dict.en` and `my/dict.vi`.

`insert` replaces up to three words in a line of Vietnamese by their English: words in small letters, of at least two
syllables. Their first sense has a translation of one word, and fewer than 40 lines of the `--known` files have it. A
word is replaced in at most 40 lines. A model of the opposite direction copies the English words, so that its
translation has the right word where it would otherwise guess: "thiếu motivation" becomes "lack of motivation". The
lines to translate are `my/inserted.mixed`, the lines of `my/inserted.vi` are the same without English, and those of
`my/inserted.words` name the words. Lines without such words are left out.

`exchange` changes pairs of sentences, after Fadaee et al. (2017): up to two words of a line, whose translation is in
the other line, become other words of the same part of speech, which fewer than 40 lines of the `--known` files have.
Each of `--variants` rounds chooses at random which words of a line to exchange; the rare words of a part of speech
take turns. English words are inflected as regular ones, except for a few plurals.

With `--frequent`, a list of English words, one at the beginning of each line, `exchange` chooses only rare words that
have a form in the list, with the best translation as in `table`; `pairs` writes only these words, in their forms.

`replace` and `table` are for a run that reads a dictionary (docs/how_to/dictionary.md). `replace` writes pairs in whose
English line rare words, which fewer than 40 lines of the `--known` files have, are replaced by their translation if the
Vietnamese line has it, such as "The súp is hot."; each word with a probability of 0.8. A model learns from them to copy
such words.

`table` writes the dictionary: nouns, verbs and adjectives of one word, in their forms, with a translation that is in
both dictionaries, or else with the one that the Vietnamese text uses most. A word is included if fewer than three lines
of the `--known` files have it; a noun or an adjective with one clearly most frequent translation, if fewer than ten
have it, or twenty if the translation is in the English-Vietnamese dictionary, unless the word is a participle or the
text never uses the translation; a word without a clear translation, only if no line has it.

`--corrections`, for `table` and with `--frequent`, names a file with an English word, a tab and its translation in each
line, which replaces the one chosen; "-" leaves the word out.
"""

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from nmt.config.direction import Direction
from nmt.data.corpus import iter_pairs
from nmt.errors import Mistake
from nmt.text.dictionary import Dictionary, whole_words
from nmt.text.lines import iter_lines
from nmt.text.normalize import normalize
from nmt.text.tone_marks import ToneMarks, with_tone_marks
from scripts.mistakes import report_mistakes
from scripts.studies.wiktionary import Entry, english_entries, print_entries, stored_entries, wiktionary_entries

_KNOWN_LINES, _MOST_INSERTIONS, _MOST_IN_A_LINE = 40, 40, 3
_REPLACED = 0.8
_LINE_WORDS = range(4, 51)
_WORD = re.compile(r"[^\W\d_]+")


class Segmenter:
    """Divides lines into the longest words of a dictionary, from left to right, and single syllables."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = {word.lower() for word in words}
        self.longest = max(len(word.split()) for word in words)

    def spans(self, line: str) -> Iterator[tuple[int, int]]:
        syllables = [match.span() for match in _WORD.finditer(line)]
        first = 0
        while first < len(syllables):
            start = syllables[first][0]
            for length in range(min(self.longest, len(syllables) - first), 0, -1):
                end = syllables[first + length - 1][1]
                if length == 1 or line[start:end].lower() in self.words:
                    break
            yield start, end
            first += length


def word_uses(entries: Sequence[Entry], text: Sequence[str]) -> Counter[str]:
    """How often the text has each word of the dictionary, in small letters."""
    segmenter = Segmenter([entry.word for entry in entries])
    return Counter(line[start:end].lower() for line in text for start, end in segmenter.spans(line))


def most_used(entries: Sequence[Entry], text: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs (translation, word): for each translation, the word that the text uses most, and the next if it is used
    at least 0.3 times as often. A single syllable counts a third, because most are parts of words that are not in the
    dictionary."""
    uses = word_uses(entries, text)
    candidates: dict[str, dict[str, float]] = defaultdict(dict)
    for word, translation, part, sense in entries:
        is_name = part == "name"
        if sense or (word == word.lower()) == is_name or len(translation.split()) > (3 if is_name else 2):
            continue
        is_syllable, count = " " not in word, uses[word.lower()]
        if count >= (20 if is_syllable else 2):
            candidates[translation][word] = count / 3 if is_syllable else count
    pairs = []
    for translation, scores in candidates.items():
        best = sorted(scores, key=lambda word: -scores[word])[:2]
        pairs += [(translation, word) for word in best if scores[word] >= 0.3 * scores[best[0]]]
    return pairs


class BestTranslation(NamedTuple):
    """The Vietnamese word that was chosen for an English one.

    `uses` says how often the text uses it, and `share` is its part of the uses of all translations among which it was
    chosen; `is_in_english_vietnamese` tells whether the English-Vietnamese dictionary has the pair. `word` is empty if
    the English word must stay as it is.
    """

    word: str
    part: str
    share: float
    uses: int
    is_in_english_vietnamese: bool


def best_translations(entries: Sequence[Entry], text: Sequence[str]) -> dict[str, BestTranslation]:
    """The best translation of each English word: of those in both dictionaries, the one that the text uses most.

    Where they agree on a rare word, a reference has the translation twice as often. If they do not, or the text never
    uses that word, the choice is among the first senses of the Vietnamese words ("mã" is a code, and only then a lemon)
    and the English-Vietnamese dictionary, of which a word must be used, or consist of common syllables, because some
    are misspelled. A single syllable counts a third, as in `most_used`.

    A plural is a word of its own if the English-Vietnamese dictionary has it ("customs") or no dictionary has a noun
    that is its singular ("scissors").
    """
    uses = word_uses(entries, text)
    syllables = Counter[str]()
    for word, count in uses.items():
        for syllable in word.split():
            syllables[syllable] += count
    rows_of: dict[str, dict[str, list[Entry]]] = defaultdict(lambda: defaultdict(list))
    for entry in entries:
        english, word = _bare(entry.translation), entry.word
        is_name_or_phrase = word != word.lower() or not (english.isalpha() and english.islower())
        if entry.part not in _INFLECTIONS or is_name_or_phrase or word == english:
            continue
        # Of "to start growing hair, nails", the second half is no verb.
        if entry.part == "verb" and _is_plural(english):
            continue
        if entry.sense is not None or uses[word] or all(syllables[syllable] >= 50 for syllable in word.split()):
            rows_of[english][word].append(entry)
    nouns = {
        english
        for english, rows_of_word in rows_of.items()
        if any(row.part == "noun" for rows in rows_of_word.values() for row in rows)
    }
    best = {}
    for english, rows_of_word in rows_of.items():
        senses = {word: {row.sense for row in rows} for word, rows in rows_of_word.items()}
        is_in_english_vietnamese = any(None in senses_of_word for senses_of_word in senses.values())
        if _is_plural(english) and not is_in_english_vietnamese and nouns & _singulars(english):
            continue
        in_both = [word for word in senses if uses[word] and None in senses[word] and len(senses[word]) > 1]
        candidates = in_both or [word for word in senses if senses[word] & {0, None}]
        if not candidates:
            continue
        # A tenth of a use, so that words which the text never uses have a share.
        scores = {word: (uses[word] + 0.1) / (1 if " " in word else 3) for word in candidates}
        chosen = max(candidates, key=lambda word: scores[word])
        part = next((row.part for row in rows_of_word[chosen] if not row.sense), rows_of_word[chosen][0].part)
        share = scores[chosen] / sum(scores.values())
        best[english] = BestTranslation(chosen, part, share, uses[chosen], None in senses[chosen])
    return best


def rare_words(best: dict[str, BestTranslation], known: Counter[str], frequent: set[str]) -> dict[str, BestTranslation]:
    """The words that few lines have, but of which a form is in `frequent`."""
    return {
        english: translation
        for english, translation in best.items()
        if translation.word and known[english] < _KNOWN_LINES and frequent.intersection(own_forms(english, best))
    }


def own_forms(english: str, best: dict[str, BestTranslation]) -> list[str]:
    """The word and its forms, except those with another translation: "seed" is not the past of "see"."""
    word, part, *_ = best[english]
    inflections = (str,) if part == "noun" and _is_plural(english) else _INFLECTIONS[part]
    forms = [inflection(english) for inflection in inflections]
    return [form for form in forms if form not in best or best[form].word == word]


class Inserted(NamedTuple):
    """A line with English words, the line as it was, and these words."""

    mixed: str
    line: str
    words: list[str]


def insert_words(entries: Sequence[Entry], text: Sequence[str], known: Counter[str], random: Random) -> list[Inserted]:
    """The lines in which words could be replaced. `known` counts the lines that have an English word."""
    translations: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for word, translation, part, sense in entries:
        plain = _bare(translation)
        is_usable = plain.isalpha() and not _is_plural(plain)
        if sense == 0 and part in ("noun", "verb", "adj") and " " in word and word == word.lower() and is_usable:
            translations[word][plain.lower()].add(part)
    rare = {
        word: list(choices.items())[:2]
        for word, choices in translations.items()
        if all(known[choice] < _KNOWN_LINES for choice in list(choices)[:2])
    }
    segmenter = Segmenter([entry.word for entry in entries])
    insertions: Counter[str] = Counter()
    result = []
    for line in text:
        if len(line.split()) not in _LINE_WORDS:
            continue
        spans = [
            (a, b) for a, b in segmenter.spans(line) if line[a:b] in rare and insertions[line[a:b]] < _MOST_INSERTIONS
        ]
        chosen = sorted(random.sample(spans, min(_MOST_IN_A_LINE, len(spans))))
        mixed, words, end = "", [], 0
        for start, stop in chosen:
            insertions[line[start:stop]] += 1
            before = line[:start].rstrip().rpartition(" ")[2].lower()
            words.append(inflected(*random.choice(rare[line[start:stop]]), before, random))
            mixed += line[end:start] + words[-1]
            end = stop
        if words:
            result.append(Inserted(mixed + line[end:], line, words))
    return result


def inflected(word: str, parts: set[str], before: str, random: Random) -> str:
    """The word as a verb or noun, after the Vietnamese word `before`, which may name a tense or a plural."""
    if "verb" in parts and "noun" not in parts:
        tense = {"đã": _past, "bị": _past, "được": _past, "đang": _participle}.get(before)
        forms = (_past, _past, _past, _participle, str, _with_s)
        return (tense or random.choice(forms))(word)
    if "noun" in parts and (before in ("những", "các", "nhiều") or random.random() < 0.2):
        return _plural(word)
    return word


def _past(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    return re.sub(r"([^aeiou])y$", r"\1i", _doubled(verb)) + "ed"


def _participle(verb: str) -> str:
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    return (re.sub(r"([^eoy])e$", r"\1", verb) if verb.endswith("e") else _doubled(verb)) + "ing"


def _doubled(verb: str) -> str:
    return verb + (verb[-1] if re.fullmatch(r"[^aeiou]*[aeiou][bdgmnprt]", verb) else "")


_IRREGULAR_PLURALS = {
    **{"tooth": "teeth", "foot": "feet", "goose": "geese", "mouse": "mice", "louse": "lice", "ox": "oxen"},
    **{f"{stem}f": f"{stem}ves" for stem in ("wol", "lea", "thie", "hal", "shel", "cal", "loa", "scar", "el")},
    **{f"{stem}fe": f"{stem}ves" for stem in ("kni", "wi", "li")},
    **{f"{stem}o": f"{stem}oes" for stem in ("her", "potat", "tomat", "mosquit", "ech", "volcan", "mang", "buffal")},
}


def _plural(noun: str) -> str:
    if noun in _IRREGULAR_PLURALS:
        return _IRREGULAR_PLURALS[noun]
    if re.search(r"(?<!hu)(?<!ger)(?<!sha)(?<!tto)(?<!lis)(?<!cai)(?<!ro)man$", noun):
        return noun.removesuffix("man") + "men"
    return _with_s(noun)


def _with_s(word: str) -> str:
    return re.sub(r"([^aeiou])y$", r"\1ie", word) + ("es" if re.search(r"(s|x|z|ch|sh)$", word) else "s")


class Exchanger:
    """Exchanges words of a pair of lines for rare words of the dictionary, in turn."""

    def __init__(
        self, entries: Sequence[Entry], pairs: Sequence[tuple[str, str]], known: Counter[str], random: Random
    ) -> None:
        self._random = random
        self._segmenter = Segmenter([entry.word for entry in entries])
        parts = _parts_of_speech(entries)
        # Words that may be replaced: (form, word) -> part of speech and inflection.
        self._replaceable: dict[tuple[str, str], tuple[str, Callable[[str], str]]] = {}
        for word, translation, part, _ in entries:
            for inflection in _INFLECTIONS.get(part, ()):
                self._replaceable.setdefault((inflection(_bare(translation)), word.lower()), (part, inflection))
        rare: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for translation, word in pairs:
            bare = _bare(translation)
            if _is_plain(bare) and known[bare] < _KNOWN_LINES:
                rare[parts[translation, word]].append((bare, word))
        self._next = {part: self._in_turn(choices) for part, choices in rare.items()}

    def _in_turn(self, choices: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        while True:
            self._random.shuffle(choices)
            yield from choices

    def exchanged(self, source: str, target: str) -> tuple[str, str] | None:
        """The pair with other words, or None if no word of it can be exchanged."""
        source_spans = whole_words(source)  # "don't" is one word, which must not become "walk't"
        forms = Counter(source[start:end].lower() for start, end in source_spans)
        spans = list(self._segmenter.spans(target))
        words = Counter(target[start:end].lower() for start, end in spans)
        candidates = []
        for source_span in source_spans:
            form = source[slice(*source_span)].lower()
            for start, end in spans:
                word = target[start:end].lower()
                part, inflection = self._replaceable.get((form, word), ("", str))
                if part in self._next and forms[form] == words[word] == 1:
                    candidates.append((source_span, (start, end), part, inflection))
                    break
        if not candidates:
            return None
        chosen = self._random.sample(candidates, min(self._random.choice((1, 2)), len(candidates)))
        if len({target_span for _, target_span, _, _ in chosen}) < len(chosen):
            chosen = chosen[:1]
        source_changes, target_changes = [], []
        for source_span, target_span, part, inflection in chosen:
            english, vietnamese = next(self._next[part])
            source_changes.append(_after_article(source, source_span, inflection(english)))
            target_changes.append((target_span, vietnamese))
        return _replaced(source, source_changes), _replaced(target, target_changes)


class Replacer:
    """Replaces rare words of a line of English by the translation that the other line has."""

    def __init__(self, entries: Sequence[Entry], known: Counter[str], random: Random) -> None:
        self._random = random
        self._segmenter = Segmenter([entry.word for entry in entries])
        self._words: dict[str, set[str]] = defaultdict(set)
        for word, translation, part, _ in entries:
            bare = _bare(translation)
            if _is_plain(bare) and known[bare] < _KNOWN_LINES:
                for inflection in _INFLECTIONS.get(part, ()):
                    self._words[inflection(bare)].add(word.lower())

    def replaced(self, source: str, target: str) -> str | None:
        """The source with other words, or None if no word of it is replaced."""
        spans = {target[start:end].lower(): (start, end) for start, end in self._segmenter.spans(target)}
        changes = []
        for start, end in whole_words(source):
            translations = self._words.get(source[start:end].lower(), set()) & spans.keys()
            if translations and self._random.random() < _REPLACED:
                changes.append(((start, end), max(sorted(translations), key=len)))
        return _replaced(source, changes) if changes else None


def dictionary_table(best: dict[str, BestTranslation], known: Counter[str]) -> dict[str, str]:
    """The translation of each form of the English words that few lines have.

    The limits were chosen on development sets among five tables (docs/lab_notebook.md, everyday words). A participle
    has the limit of verbs: in "the meeting was interrupted", the dictionary's adjective would be wrong.
    """
    table: dict[str, str] = {}
    for english, (word, part, share, uses, is_in_english_vietnamese) in best.items():
        is_participle = part == "adj" and english.endswith(("ed", "ing"))
        if share < 0.4:
            fewer_than = 1
        elif share < 0.6 or not uses or part == "verb" or is_participle:
            fewer_than = 3
        else:
            fewer_than = 20 if is_in_english_vietnamese else 10
        if word and known[english] < fewer_than:
            for form in own_forms(english, best):
                if known[form] < fewer_than:
                    table.setdefault(form, word)
    return dict(sorted(table.items()))


def corrected(
    best: dict[str, BestTranslation], corrections: Path | None, tone_marks: ToneMarks | None
) -> dict[str, BestTranslation]:
    """The best translations, corrected by a file of English words, tabs and their translations, or "-" for none.

    A correction counts as a clear translation; the part of speech stays the same. Raises Mistake, with the number of
    the line, for a line of another form, a word without a translation in `best` and a repeated word.
    """
    if corrections is None:
        return best
    result, lines = dict(best), dict[str, int]()
    for number, line in enumerate(iter_lines(corrections), start=1):
        english, *words = map(normalize, line.split("\t"))
        if len(words) != 1 or not words[0]:
            raise Mistake(f"{corrections}, line {number}: expected an English word, a tab, and a translation or -.")
        if english not in best:
            raise Mistake(
                f"{corrections}, line {number}: '{english}' has no translation to be corrected; remove the line."
            )
        if english in lines:
            raise Mistake(
                f"{corrections}, line {number}: '{english}' is already in line {lines[english]}; keep one of them."
            )
        lines[english] = number
        word = "" if words[0] == "-" else with_tone_marks(words[0], tone_marks)
        result[english] = best[english]._replace(word=word, share=1.0)
    return result


def _parts_of_speech(entries: Sequence[Entry]) -> dict[tuple[str, str], str]:
    """The part of speech of each pair (translation, word) of a first sense, or of the English-Vietnamese dictionary."""
    parts: dict[tuple[str, str], str] = {}
    for word, translation, part, sense in entries:
        if not sense:
            parts.setdefault((translation, word), part)
    return parts


def _is_plain(word: str) -> bool:
    """Whether it is one lowercase word in the singular."""
    return word.isalpha() and word.islower() and not _is_plural(word)


def _after_article(line: str, span: tuple[int, int], word: str) -> tuple[tuple[int, int], str]:
    """The change from the words in a span to `word`, which includes an article before them."""
    article = re.search(r"\b([Aa])n? $", line[: span[0]])
    if not article:
        return span, word
    return (article.start(), span[1]), f"{article[1]}{'n' if word[0] in 'aeiou' else ''} {word}"


def _replaced(line: str, changes: Sequence[tuple[tuple[int, int], str]]) -> str:
    for (start, end), text in sorted(changes, reverse=True):
        is_capital = line[start].isupper()
        line = line[:start] + (text[0].upper() + text[1:] if is_capital else text) + line[end:]
    return line


def _is_plural(word: str) -> bool:
    """Whether it looks like one: clothes and scissors do, but neither lens nor virus."""
    return re.search(r"[^ainsu]s$", word) is not None


def _singulars(plural: str) -> set[str]:
    """What it may be the plural of."""
    return {plural[:-1], re.sub("es$", "", plural), re.sub("ies$", "y", plural)} - {plural}


def _bare(translation: str) -> str:
    return re.sub(r"^(to|an?|the) ", "", translation)


_INFLECTIONS: dict[str, tuple[Callable[[str], str], ...]] = {
    "noun": (str, _plural),
    "verb": (str, _past, _participle, _with_s),
    "adj": (str,),
}


def _file(prefix: Path, ending: str) -> Path:
    return prefix.with_name(prefix.name + ending)


def write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_pairs(out: Path, pairs: Sequence[tuple[str, str]]) -> None:
    write_lines(_file(out, ".en"), [source for source, _ in pairs])
    write_lines(_file(out, ".vi"), [target for _, target in pairs])


def read(options: argparse.Namespace) -> None:
    """Write the words of a dictionary of Wiktionary."""
    sys.stdout.reconfigure(encoding="utf-8")
    print_entries(wiktionary_entries(options.wiktionary), sys.stdout)
    if options.english:
        print_entries(english_entries(options.english), sys.stdout)


def pairs(options: argparse.Namespace) -> None:
    """Write the words as pairs of lines."""
    entries, random = stored_entries(options.words, options.tone_marks), Random(options.seed)
    text = _shuffled_text(options, random)
    if options.frequent:
        best = corrected(best_translations(entries, text), options.corrections, options.tone_marks)
        rare = _frequent_rare_words(options, best)
        written = [(form, rare[english].word) for english in rare for form in own_forms(english, best)]
    else:
        written = most_used(entries, text)
    random.shuffle(written)
    write_pairs(options.out, written)


def insert(options: argparse.Namespace) -> None:
    """Replace words of Vietnamese lines by their English."""
    entries, random = stored_entries(options.words, options.tone_marks), Random(options.seed)
    text = _shuffled_text(options, random)
    inserted = insert_words(entries, text, _known_words(options), random)
    write_lines(_file(options.out, ".mixed"), [row.mixed for row in inserted])
    write_lines(_file(options.out, ".vi"), [row.line for row in inserted])
    write_lines(_file(options.out, ".words"), [" ".join(row.words) for row in inserted])


def exchange(options: argparse.Namespace) -> None:
    """Exchange words of pairs of lines for rare ones."""
    entries, random = stored_entries(options.words, options.tone_marks), Random(options.seed)
    text = _shuffled_text(options, random)
    if options.frequent:
        best = corrected(best_translations(entries, text), options.corrections, options.tone_marks)
        words = _frequent_rare_words(options, best)
        rare = [(english, translation.word) for english, translation in words.items()]
        # The best translation becomes the first sense of its word.
        first_senses = [Entry(translation.word, english, translation.part, 0) for english, translation in words.items()]
        entries = first_senses + entries
    else:
        rare = most_used(entries, text)
    lines = _lines(options)
    exchanger = Exchanger(entries, rare, _known_words(options), random)
    exchanged = [exchanger.exchanged(*pair) for _ in range(options.variants) for pair in lines]
    write_pairs(options.out, [pair for pair in exchanged if pair])


def replace(options: argparse.Namespace) -> None:
    """Replace rare English words by the translation in the other line."""
    entries = stored_entries(options.words, options.tone_marks)
    replacer = Replacer(entries, _known_words(options), Random(options.seed))
    replaced = [(replacer.replaced(*pair), pair[1]) for pair in _lines(options)]
    write_pairs(options.out, [(source, target) for source, target in replaced if source])


def table(options: argparse.Namespace) -> None:
    """Write a dictionary for a run."""
    entries = stored_entries(options.words, options.tone_marks)
    text = [with_tone_marks(line, options.tone_marks) for line in iter_lines(options.text)]
    best = corrected(best_translations(entries, text), options.corrections, options.tone_marks)
    words = Dictionary(dictionary_table(best, _known_words(options)))
    if not words:
        raise Mistake(
            f"All words of {options.words} are in too many lines of {_names(options.known)} for the dictionary; "
            "give a larger dictionary, or training text without these words."
        )
    options.out.write_text(words.table(), encoding="utf-8")


def _shuffled_text(options: argparse.Namespace, random: Random) -> list[str]:
    text = [with_tone_marks(line, options.tone_marks) for line in iter_lines(options.text)]
    random.shuffle(text)
    return text


def _known_words(options: argparse.Namespace) -> Counter[str]:
    """How many lines of the training text have each English word, in small letters."""
    lines = (line for path in options.known for line in iter_lines(path))
    return Counter(word for line in lines for word in set(re.findall(r"[a-z]+", line.lower())))


def _frequent_rare_words(options: argparse.Namespace, best: dict[str, BestTranslation]) -> dict[str, BestTranslation]:
    frequent = {line.split()[0].lower() for line in iter_lines(options.frequent) if line.strip()}
    words = rare_words(best, _known_words(options), frequent)
    if not words:
        raise Mistake(
            f"{options.words} has no word of {options.frequent} that is rare in {_names(options.known)}; "
            "give a longer list, or a larger dictionary."
        )
    return words


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))


def _lines(options: argparse.Namespace) -> list[tuple[str, str]]:
    return [
        (source, with_tone_marks(target, options.tone_marks))
        for corpus in options.corpora
        for source, target in iter_pairs(corpus, Direction("en", "vi"))
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("read", help=read.__doc__)
    command.set_defaults(run=read)
    command.add_argument("wiktionary", type=Path, help="the dictionary, see above")
    command.add_argument("--english", type=Path, help="an English-Vietnamese one, see above")
    for run in (pairs, insert, exchange, replace, table):
        command = commands.add_parser(run.__name__, help=run.__doc__)
        command.set_defaults(run=run)
        command.add_argument("words", type=Path, help="what the command read has written")
        if run is not replace:
            command.add_argument("text", type=Path, help="Vietnamese text")
        what = "the file" if run is table else "the beginning of the files' names"
        command.add_argument("--out", type=Path, required=True, help=what)
        command.add_argument(
            "--tone-marks", choices=["old", "new"], help="as tokenizer.tone_marks; unchanged if not given"
        )
        command.add_argument(
            "--known", type=Path, nargs="+", required=run is not pairs, help="English text for training"
        )
        if run in (pairs, exchange, table):
            command.add_argument(
                "--corrections", type=Path, help="file of translations that replace those chosen, see above"
            )
        if run is not table:
            command.add_argument("--seed", type=int, default=1)
        if run in (exchange, replace):
            command.add_argument("--corpora", nargs="+", required=True, help="corpora, without .en and .vi")
        if run in (pairs, exchange):
            command.add_argument("--frequent", type=Path, help="frequent English words, see above; needs --known")
        if run is exchange:
            command.add_argument("--variants", type=int, default=2, help="rounds through the corpora")
    options = parser.parse_args(arguments)
    if options.run is pairs and options.frequent and not options.known:
        parser.error("--frequent chooses words that are rare in the training text: name it with --known")
    if options.run in (pairs, exchange) and options.corrections and not options.frequent:
        parser.error("--corrections changes the words that --frequent chooses: add --frequent, or leave it out")
    options.run(options)


if __name__ == "__main__":
    report_mistakes(main)
