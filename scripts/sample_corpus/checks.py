"""The guarantees of the sample corpus, as checks that print counts and return one sentence per violation."""

import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path

from nmt.text.lines import read_lines

from .grammar import Pair
from .splits import LEAST_CONSTRUCTION, LEAST_WORD, LENGTHS, SIZES, Corpus, held_out, words

MOST_AER = 0.03


def best_single_link_error(pairs: list[Pair]) -> float:
    """Return the alignment error rate of the best alignment with one link per target word (Och and Ney, 2003).

    AER = 1 - (|A n S| + |A n P|) / (|A| + |S|), summed over the pairs; a sure link counts in both terms.
    """
    hits = links = sure_links = 0
    for pair in pairs:
        for j in range(len(pair.target.split())):
            links += 1
            kinds = [sure for _, target, sure in pair.links if target == j]
            hits += 2 if any(kinds) else 1 if kinds else 0
        sure_links += sum(sure for *_, sure in pair.links)
    return 1 - hits / (links + sure_links)


def check_text(corpus: Corpus) -> list[str]:
    """Check sizes, normal form, lengths, and that no sentence occurs twice or has two translations."""
    wrong = []
    owner: dict[str, str] = {}
    for split, pairs in corpus.splits.items():
        if len(pairs) != SIZES[split]:
            wrong.append(f"{split} has {len(pairs)} pairs, expected {SIZES[split]}.")
        for pair in pairs:
            for text in (pair.source, pair.target):
                if text != unicodedata.normalize("NFC", text):
                    wrong.append(f"{split}: not in NFC: {text!r}.")
                if len(text.split()) not in LENGTHS:
                    wrong.append(
                        f"{split}: {len(text.split())} words, expected {LENGTHS[0]} to {LENGTHS[-1]}: {text!r}."
                    )
                if text in owner:
                    wrong.append(f"{split}: already in {owner[text]}: {text!r}.")
                owner[text] = split
    print(f"sentences: {len(owner)} distinct sentences on both sides, in NFC, {LENGTHS[0]} to {LENGTHS[-1]} words")
    return wrong


def check_counts(corpus: Corpus) -> list[str]:
    """Check how often words and constructions occur in training and that the other splits bring no new word."""
    wrong = []
    train = corpus.splits["train"]
    for side in ("source", "target"):
        counts = Counter(word for pair in train for word in words(getattr(pair, side)))
        rarest = min(counts, key=lambda word: (counts[word], word))
        total = f"{sum(counts.values())} in training, {len(counts)} distinct"
        print(f"{side} words: {total}, rarest {rarest!r} {counts[rarest]}")
        wrong += [
            f"The {side} word {word!r} occurs {n} times in training, at least {LEAST_WORD} expected."
            for word, n in sorted(counts.items())
            if n < LEAST_WORD
        ]
        for split in ("valid", "test", "test_new"):
            new = {word for pair in corpus.splits[split] for word in words(getattr(pair, side))} - set(counts)
            wrong += [f"{split}: the {side} word {word!r} is not in training." for word in sorted(new)]
    used = Counter(name for pair in train for name in pair.constructions)
    rarest = min(used, key=lambda name: (used[name], name))
    print(f"constructions: {len(used)}, rarest {rarest!r} {used[rarest]}")
    wrong += [
        f"The construction {name!r} occurs in {n} training pairs, at least {LEAST_CONSTRUCTION} expected."
        for name, n in sorted(used.items())
        if n < LEAST_CONSTRUCTION
    ]
    return wrong


def check_new(corpus: Corpus) -> list[str]:
    """Check that every pair of test_new has a combination absent from training, and that no other split has one."""
    shown = {c for pair in corpus.splits["train"] for c in pair.combinations}
    wrong = []
    kinds: Counter[str] = Counter()
    for pair in corpus.splits["test_new"]:
        unseen = [c for c in pair.combinations if held_out(c) and c not in shown]
        kinds.update({kind for kind, _, _ in unseen})
        if not unseen:
            wrong.append(f"test_new: no combination unseen in training: {pair.source!r}.")
    for split in ("train", "valid", "test"):
        leaks = [c for pair in corpus.splits[split] for c in pair.combinations if held_out(c)]
        wrong += [f"{split}: contains the held-out combination {leak}." for leak in leaks]
    print(
        "test_new pairs with an unseen combination of each kind: "
        + ", ".join(f"{k} {n}" for k, n in sorted(kinds.items()))
    )
    return wrong


def check_alignment(corpus: Corpus) -> list[str]:
    """Check that all words have valid links, and the error rate of the best single-link alignment."""
    wrong = []
    for split in ("valid", "test", "test_new"):
        pairs = corpus.splits[split]
        for pair in pairs:
            rows, columns = len(pair.source.split()), len(pair.target.split())
            if {j for _, j, _ in pair.links} != set(range(columns)):
                wrong.append(f"{split}: a target word has no link, or a link is out of range: {pair.target!r}.")
            if {i for i, _, _ in pair.links} != set(range(rows)):
                wrong.append(f"{split}: a source word has no link, or a link is out of range: {pair.source!r}.")
        error = best_single_link_error(pairs)
        sure = sum(s for pair in pairs for *_, s in pair.links)
        possible = sum(len(pair.links) for pair in pairs) - sure
        print(f"{split}: {sure} sure and {possible} possible links, best single-link AER {error:.4f}")
        if error > MOST_AER:
            wrong.append(f"{split}: the best single-link alignment has AER {error:.4f}, at most {MOST_AER} expected.")
    return wrong


def check_articles(corpus: Corpus) -> list[str]:
    """Check `a` and `an` before vowels; exceptions are listed by hand."""
    wrong = []
    for split, pairs in corpus.splits.items():
        for pair in pairs:
            tokens = words(pair.source)
            for word, following in pairwise(tokens):
                vowel = following[0] in "aeiou" or following == "honest"
                if word in ("a", "an") and (vowel and following not in ("useful", "university")) != (word == "an"):
                    wrong.append(f"{split}: wrong article in {pair.source!r}.")
    return wrong


def check_phrases(folder: Path, corpus: Corpus) -> list[str]:
    """Check the hand-written phrase lists, if present, against each other and the splits."""
    files = {path.name: read_lines(path) for path in sorted(folder.glob("phrases*.??"))}
    wrong = [
        f"{name}: a line is not in NFC."
        for name, lines in files.items()
        if any(not unicodedata.is_normalized("NFC", x) for x in lines)
    ]
    for stem in ("phrases", "phrases_test"):
        sides = [files.get(f"{stem}.{language}") for language in ("en", "vi")]
        if sides[0] is None or sides[1] is None:
            print(f"{stem}: missing, not checked")
            continue
        print(f"{stem}: {len(sides[0])} and {len(sides[1])} lines")
        if len(sides[0]) != len(sides[1]):
            wrong.append(f"{stem}: {len(sides[0])} lines in .en but {len(sides[1])} in .vi.")
    if "phrases.en" in files and len(files["phrases.en"]) < 800:
        wrong.append(f"phrases: {len(files['phrases.en'])} pairs, at least 800 expected.")
    trained = {pair.source for pair in corpus.splits["train"]} | set(files.get("phrases.en", []))
    wrong += [
        f"phrases_test: {line!r} is a training sentence."
        for line in files.get("phrases_test.en", [])
        if line in trained
    ]
    tested = {
        text for split in ("valid", "test", "test_new") for p in corpus.splits[split] for text in (p.source, p.target)
    }
    for name in ("phrases.en", "phrases.vi"):
        wrong += [f"{name}: {line!r} is in valid, test or test_new." for line in files.get(name, []) if line in tested]
    return wrong


def check_corpus(corpus: Corpus, folder: Path) -> list[str]:
    """Run all checks; return one sentence per violation."""
    return [
        *check_text(corpus),
        *check_counts(corpus),
        *check_new(corpus),
        *check_alignment(corpus),
        *check_articles(corpus),
        *check_phrases(folder, corpus),
    ]
