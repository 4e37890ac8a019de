"""The guarantees of the documents, as checks that print counts and return one sentence per violation."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from difflib import SequenceMatcher

from .anaphora import CLASSIFIERS
from .checks import MOST_AER, best_single_link_error
from .documents import SENTENCES, TWINS, Document, word_counts
from .splits import LEAST_WORD, LENGTHS, held_out

Splits = dict[str, list[Document]]
TRAIN, CONTRAST = "documents_train", "documents_contrast"
# The words of all Vietnamese pronoun forms. The last sentences of two contrasting documents differ only in these words
# and in classifiers.
PRONOUN_WORDS = frozenset(["anh", "chị", "em", "cô", "dì", "bà", "ông", "chú", "cậu", "ấy", "họ", "chúng", "bạn"])


def references(documents: Iterable[Document]) -> list[tuple[str, str, str, str]]:
    """Return the sentences with a pronoun: source, target, kind and form of the pronoun."""
    return [
        (pair.source, pair.target, kind, form)
        for document in documents
        for pair, kind, form in zip(document.pairs, document.kinds, document.forms, strict=True)
        if kind
    ]


def check_texts(splits: Splits) -> list[str]:
    """Check sizes and normal form, and that no text of another split and no sentence with a pronoun is in training."""
    wrong = []
    trained = {document.source for document in splits[TRAIN]}
    asked = {source for source, *_ in references(splits[TRAIN])}
    for split, documents in splits.items():
        if len(documents) != 2 * TWINS[split]:
            wrong.append(f"{split} has {len(documents)} documents, expected {2 * TWINS[split]}.")
        if len({document.source for document in documents}) < len(documents):
            wrong.append(f"{split}: a document occurs twice.")
        for document in documents:
            text = " ".join(document.source)
            if split != TRAIN and document.source in trained:
                wrong.append(f"{split}: a document is also in training: {text!r}.")
            if len(document.pairs) not in SENTENCES:
                wrong.append(f"{split}: {len(document.pairs)} sentences, expected 2 to 6: {text!r}.")
            if not any(document.kinds) or any(n not in (1, 2, 3) for n in document.distances if n):
                wrong.append(f"{split}: no pronoun, or its antecedent is too far: {text!r}.")
            wrong += [
                f"{split}: not in NFC, or a wrong length: {side!r}."
                for pair in document.pairs
                for side in (pair.source, pair.target)
                if not unicodedata.is_normalized("NFC", side) or not 1 < len(side.split()) <= LENGTHS[-1]
            ]
        if split != TRAIN:
            wrong += [
                f"{split}: a sentence with a pronoun is also in training: {source!r}."
                for source, *_ in references(documents)
                if source in asked
            ]
        print(f"{split}: {len(documents)} documents, {sum(len(d.pairs) for d in documents)} sentences")
    return wrong


def check_function(splits: Splits) -> list[str]:
    """Check that the text up to a sentence determines its translation."""
    translations: dict[tuple[str, ...], str] = {}
    wrong = []
    for documents in splits.values():
        for document in documents:
            for place, pair in enumerate(document.pairs):
                known = translations.setdefault(document.source[: place + 1], pair.target)
                if known != pair.target:
                    wrong.append(f"Two translations after the same text: {known!r} and {pair.target!r}.")
    print(f"texts: each of {len(translations)} beginnings has one translation")
    return wrong


def check_words(splits: Splits) -> list[str]:
    """Check the word counts in training, and that no split has a new word or a held-out combination."""
    counts = word_counts(splits[TRAIN])
    rarest = min(counts, key=lambda word: (counts[word], word))
    vietnamese = sum(word.startswith("vi:") for word in counts)
    sizes = f"{len(counts) - vietnamese} English and {vietnamese} Vietnamese"
    print(f"documents: {sizes} words, rarest {rarest!r} {counts[rarest]}")
    wrong = [
        f"{word!r} occurs {count} times in {TRAIN}, at least {LEAST_WORD} expected."
        for word, count in sorted(counts.items())
        if count < LEAST_WORD
    ]
    for split, documents in splits.items():
        wrong += [f"{split}: {word!r} is not in {TRAIN}." for word in sorted(set(word_counts(documents)) - set(counts))]
        wrong += [
            f"{split}: contains the held-out combination {combination}."
            for document in documents
            for pair in document.pairs
            for combination in pair.combinations
            if held_out(combination)
        ]
    return wrong


def check_balance(splits: Splits) -> list[str]:
    """Check that each English sentence with a pronoun has all its translations equally often."""
    wrong = []
    for split, documents in splits.items():
        translations: dict[str, Counter[str]] = defaultdict(Counter)
        for source, target, _, _ in references(documents):
            translations[source][target] += 1
        wrong += [
            f"{split}: {source!r} has the translations {dict(counts)}, equally many of at least two expected."
            for source, counts in translations.items()
            if len(counts) < 2 or len(set(counts.values())) > 1
        ]
        forms: dict[str, Counter[str]] = defaultdict(Counter)
        for _, _, kind, form in references(documents):
            forms[kind][form] += 1
        for kind, found in sorted(forms.items()):
            shares = ", ".join(f"{form} {count}" for form, count in found.most_common())
            print(f"{split}, {kind}: {sum(found.values())} sentences; {shares}")
    return wrong


def check_contrast(splits: Splits) -> list[str]:
    """Check the pairs of documents_contrast, and print how often a guess without the earlier sentences is right."""
    wrong = []
    documents = splits[CONTRAST]
    for one, two in zip(documents[::2], documents[1::2], strict=True):
        last = (one.pairs[-1], two.pairs[-1])
        text = " ".join(one.source)
        if last[0].source != last[1].source or one.distances[-1] != two.distances[-1] or not one.distances[-1]:
            wrong.append(f"{CONTRAST}: the last sentences or the distances differ: {text!r}.")
        sides = [pair.target.lower().rstrip(".?").replace(",", "").split() for pair in last]
        changes = SequenceMatcher(None, sides[0], sides[1], autojunk=False).get_opcodes()
        changed = {w for tag, a, b, c, d in changes if tag != "equal" for w in (*sides[0][a:b], *sides[1][c:d])}
        if not changed or not changed <= PRONOUN_WORDS | CLASSIFIERS:
            wrong.append(f"{CONTRAST}: the translations differ in {sorted(changed)}, expected pronouns: {text!r}.")
    best: dict[str, Counter[str]] = defaultdict(Counter)
    for _, _, kind, form in references(splits[TRAIN]):
        best[kind][form] += 1
    guessed = [[form for form, _ in best[d.kinds[-1]].most_common(1)] == [d.forms[-1]] for d in documents]
    print(
        f"{CONTRAST}: the most frequent form of the pronoun in training is right in {sum(guessed) / len(guessed):.1%}"
    )
    distances = Counter(document.distances[-1] for document in documents)
    print(f"{CONTRAST}: number of antecedents by distance in sentences: {dict(sorted(distances.items()))}")
    return wrong


def check_links(splits: Splits) -> list[str]:
    """Check that every word has a link, and the error rate of the best alignment with one link per target word."""
    wrong = []
    for split, documents in splits.items():
        pairs = [pair for document in documents for pair in document.pairs]
        for pair in pairs:
            rows, columns = ({link[axis] for link in pair.links} for axis in (0, 1))
            if rows != set(range(len(pair.source.split()))) or columns != set(range(len(pair.target.split()))):
                wrong.append(f"{split}: a word has no link, or a link is out of range: {pair.source!r}.")
        error = best_single_link_error(pairs)
        print(f"{split}: best single-link AER {error:.4f}")
        if error > MOST_AER:
            wrong.append(f"{split}: the best single-link alignment has AER {error:.4f}, at most {MOST_AER} expected.")
    return wrong


def check_apart(splits: Splits, taken: Iterable[str]) -> list[str]:
    """Check that the documents share no sentence with the other parts of the corpus."""
    others = set(taken)
    return [
        f"{split}: {side!r} is in another part of the corpus."
        for split, documents in splits.items()
        for document in documents
        for pair in document.pairs
        for side in (pair.source, pair.target)
        if side in others
    ]


def check_documents(splits: Splits, taken: Iterable[str]) -> list[str]:
    """Run all checks; return one sentence per violation."""
    return [
        *check_texts(splits),
        *check_function(splits),
        *check_words(splits),
        *check_balance(splits),
        *check_contrast(splits),
        *check_links(splits),
        *check_apart(splits, taken),
    ]
