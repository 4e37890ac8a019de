"""The sample corpus: the laws of its grammar, and of the files as they are."""

import re
import unicodedata
from collections import Counter, defaultdict
from itertools import groupby
from pathlib import Path

import pytest

from nmt.data.cache import file_digest
from scripts.sample_corpus import make_sample_corpus as script
from scripts.sample_corpus.anaphora import CLASSIFIERS, Mentions
from scripts.sample_corpus.checks import best_single_link_error, check_text
from scripts.sample_corpus.document_checks import PRONOUN_WORDS, check_balance, check_contrast, check_function
from scripts.sample_corpus.document_lines import Line, Lines
from scripts.sample_corpus.documents import TWINS, Author, Document
from scripts.sample_corpus.grammar import Pair, article, asks_about_many
from scripts.sample_corpus.lexicon import Lexicon
from scripts.sample_corpus.phrase import Phrase, compose, fill, inflect, lexical
from scripts.sample_corpus.referents import Referents
from scripts.sample_corpus.sampler import NothingFitsError, Sampler
from scripts.sample_corpus.splits import LEAST_WORD, SIZES, Collector, Corpus, held_out, words

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "data" / "sample"


def lines(name: str) -> list[str]:
    return (SAMPLE / name).read_text(encoding="utf-8").splitlines()


def pair(source: str, target: str, *links: tuple[int, int, bool]) -> Pair:
    return Pair(source, target, frozenset(links), "", (), frozenset())


def test_the_files_are_those_of_the_published_checksums() -> None:
    table = re.findall(r"^\| `(sample/.*)` \| `([0-9a-f]{64})` \|$", (ROOT / "data" / "README.md").read_text(), re.M)
    there = {str(file.relative_to(ROOT / "data")): file_digest(file) for file in SAMPLE.iterdir()}
    assert dict(table) == there


@pytest.fixture(scope="module")
def derived() -> list[Pair]:
    """Pairs of every template; a derivation may find nothing that fits, so each is tried some times."""
    grammar = Collector(7).grammar
    drawn = [grammar.derive(name) for name in grammar.templates for _ in range(12)]
    return [pair for pair in drawn if pair is not None]


def test_every_word_has_a_link_and_every_target_word_at_most_one_sure_link(derived: list[Pair]) -> None:
    for made in derived:
        assert {i for i, _, _ in made.links} == set(range(len(made.source.split()))), made.source
        assert {j for _, j, _ in made.links} == set(range(len(made.target.split()))), made.target
        sure = [j for _, j, kind in made.links if kind]
        assert len(sure) == len(set(sure)), made.pharaoh
    assert best_single_link_error(derived) == pytest.approx(0.0)


def test_the_translation_is_a_function_of_the_source() -> None:
    grammar = Collector(11).grammar
    translations: dict[str, str] = {}
    for _ in range(5):
        for name in grammar.templates:
            made = grammar.derive(name)
            if made is not None:
                assert translations.setdefault(made.source, made.target) == made.target


@pytest.mark.parametrize(
    ("sentence", "clear"),
    [
        ("my grandfather loves his dog", False),
        ("my grandfather loves Lan's dog", True),
        ("his grandfather loves this dog", True),
        ("Duc sells baskets at her market", False),
        ("Duc sells baskets at his market", True),
        ("Duc called her", True),
        ("the teacher sells his car", True),
        ("the soldiers are resting, and he is reading", False),
        ("the soldiers helped their daughter", False),
        ("the soldiers helped their friend", True),
        ("my parents helped their daughter", True),
        ("my wife called her husband", False),
    ],
)
def test_a_pronoun_finds_its_person(sentence: str, clear: bool) -> None:
    words_of = sentence.split()
    phrase = lexical(sentence, " ".join("x" for _ in words_of))
    assert Referents(Lexicon()).clear(phrase) == clear


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("did many girls see you", True),
        ("how long have some girls lived here", True),
        ("how many girls saw you", False),
        ("did you see many girls", False),
    ],
)
def test_a_question_about_many_is_told(question: str, asks: bool) -> None:
    assert asks_about_many(tuple(question.split())) == asks


def test_the_same_seed_derives_the_same_pairs() -> None:
    names = list(Collector(3).grammar.templates)[::29]
    one, two = ([Collector(seed).grammar.derive(name) for name in names] for seed in (3, 3))
    assert one == two


def test_every_template_is_derived(derived: list[Pair]) -> None:
    assert {made.template for made in derived} == set(Collector(7).grammar.templates)


@pytest.mark.parametrize("split", ["valid", "test", "test_new"])
def test_alignment_files_fit_the_sentences(split: str) -> None:
    sides = [lines(f"{split}.{end}") for end in ("en", "vi", "en-vi.align")]
    assert [len(side) for side in sides] == [SIZES[split]] * 3
    for source, target, links in zip(*sides, strict=True):
        ends = [link.replace("?", "-").split("-") for link in links.split()]
        assert {int(i) for i, _ in ends} == set(range(len(source.split())))
        assert {int(j) for _, j in ends} == set(range(len(target.split())))


def test_no_sentence_occurs_twice_and_all_are_in_normal_form() -> None:
    for language in ("en", "vi"):
        everything = [line for split in SIZES for line in lines(f"{split}.{language}")]
        assert len(everything) == len(set(everything)) == sum(SIZES.values())
        assert all(unicodedata.is_normalized("NFC", line) for line in everything)


@pytest.mark.parametrize("language", ["en", "vi"])
def test_every_word_occurs_often_enough_in_training(language: str) -> None:
    counts = Counter(word for line in lines(f"train.{language}") for word in words(line))
    assert min(counts.values()) >= LEAST_WORD
    for split in ("valid", "test", "test_new"):
        assert {word for line in lines(f"{split}.{language}") for word in words(line)} <= set(counts)


def test_the_derived_splits_do_not_repeat_the_hand_written_phrases() -> None:
    phrases = set(script.hand_written(SAMPLE))
    for split in SIZES:
        assert phrases.isdisjoint(lines(f"{split}.en"))
        assert phrases.isdisjoint(lines(f"{split}.vi"))


def documents(split: str) -> list[tuple[str, list[str], list[str]]]:
    """Name, English and Vietnamese sentences of each document of the files."""
    rows = zip(lines(f"{split}.doc"), lines(f"{split}.en"), lines(f"{split}.vi"), strict=True)
    grouped = [(name, list(rows)) for name, rows in groupby(rows, key=lambda row: row[0])]
    return [(name, [row[1] for row in rows], [row[2] for row in rows]) for name, rows in grouped]


@pytest.mark.parametrize("split", TWINS)
def test_a_document_is_two_to_six_consecutive_lines(split: str) -> None:
    made = documents(split)
    assert len({name for name, _, _ in made}) == len(made) == 2 * TWINS[split]
    assert {len(source) for _, source, _ in made} <= set(range(2, 7))


def test_the_text_so_far_determines_the_translation_of_a_document() -> None:
    translations: dict[tuple[str, ...], str] = {}
    for split in TWINS:
        for _, source, target in documents(split):
            for place, line in enumerate(target):
                assert translations.setdefault(tuple(source[: place + 1]), line) == line


def test_no_text_of_documents_is_in_their_training_part() -> None:
    trained = {tuple(source) for _, source, _ in documents("documents_train")}
    for split in set(TWINS) - {"documents_train"}:
        assert trained.isdisjoint(tuple(source) for _, source, _ in documents(split))


def test_the_sentence_alone_does_not_tell_its_pronoun() -> None:
    """An English sentence with several translations has them equally often; each document has one."""
    translations: dict[str, Counter[str]] = defaultdict(Counter)
    for _, source, target in documents("documents_train"):
        for one, two in zip(source, target, strict=True):
            translations[one][two] += 1
    open_sentences = {source: counts for source, counts in translations.items() if len(counts) > 1}
    assert all(len(set(counts.values())) == 1 for counts in open_sentences.values())
    assert all(open_sentences.keys() & set(source) for _, source, _ in documents("documents_train"))


def test_contrasting_documents_differ_in_one_sentence_and_in_the_pronouns_of_the_last() -> None:
    made, distances = documents("documents_contrast"), [int(line) for line in lines("documents_contrast.antecedent")]
    assert len(distances) == len(made)
    for place in range(0, len(made), 2):
        (one, *first), (two, *second) = made[place : place + 2]
        distance = distances[place]
        assert (one[:-1], one[-1], two[-1], distances[place + 1]) == (two[:-1], "a", "b", distance)
        changed = [i for i, pair in enumerate(zip(first[0], second[0], strict=True)) if pair[0] != pair[1]]
        assert changed == [len(first[0]) - 1 - distance]
        last = [Counter(words(side[1][-1].replace(",", ""))) for side in (first, second)]
        assert last[0] != last[1]
        assert {*(last[0] - last[1]), *(last[1] - last[0])} <= PRONOUN_WORDS | CLASSIFIERS
    assert max(Counter(distances).values()) - min(Counter(distances).values()) <= 2
    assert set(distances) == {1, 2, 3}


@pytest.mark.parametrize("language", ["en", "vi"])
def test_every_word_of_the_documents_occurs_often_enough_in_their_training_part(language: str) -> None:
    counts = Counter(word for line in lines(f"documents_train.{language}") for word in words(line))
    assert min(counts.values()) >= LEAST_WORD
    for split in TWINS:
        assert {word for line in lines(f"{split}.{language}") for word in words(line)} <= set(counts)


def test_no_sentence_of_the_documents_is_in_another_part() -> None:
    for language in ("en", "vi"):
        others = {line for split in (*SIZES, "phrases", "phrases_test") for line in lines(f"{split}.{language}")}
        for split in TWINS:
            assert others.isdisjoint(lines(f"{split}.{language}"))


@pytest.fixture(scope="module")
def twins() -> list[tuple[Document, Document]]:
    author = Author(5)
    return author.write(8) + author.write(6, contrast=True)


def test_documents_keep_the_laws_of_their_grammar(twins: list[tuple[Document, Document]]) -> None:
    written = [document for pair in twins for document in pair]
    assert check_function({"documents_train": written}) == []
    assert check_balance({"documents_train": written}) == []
    assert check_contrast({"documents_train": written[:16], "documents_contrast": written[16:]}) == []
    for made in (pair for document in written for pair in document.pairs):
        assert {i for i, _, _ in made.links} == set(range(len(made.source.split()))), made.source
        assert {j for _, j, _ in made.links} == set(range(len(made.target.split()))), made.target


def test_the_same_seed_writes_the_same_documents(twins: list[tuple[Document, Document]]) -> None:
    again = Author(5).write(8)
    assert len(again) == 8
    assert again == twins[:8]


@pytest.mark.parametrize(
    ("kind", "sentence", "pending", "clear"),
    [
        ("he", "he called my uncle", [], True),
        ("he", "my uncle called him", [], False),
        ("he", "the doctor called him", [], False),
        ("he", "Lan called him", [], True),
        ("he", "he called my uncle", ["he"], False),
        ("", "Lan and Nam sold two cars", ["it"], True),
        ("", "Lan sold her car", ["it"], False),
        ("they", "Lan and Nam saw them", [], False),
        ("one", "this one is big", ["one"], True),
    ],
)
def test_a_sentence_keeps_the_antecedents_of_a_document_clear(
    kind: str, sentence: str, pending: list[str], clear: bool
) -> None:
    line = Line(lexical(sentence, " ".join("x" for _ in sentence.split())), kind=kind)
    assert Lines(Sampler(1)).clear(line, pending) == clear


def test_mentions_know_number_gender_and_animacy() -> None:
    mentions = Mentions(Lexicon())
    assert mentions.of(["Lan's", "older", "brother"]) == {"he", "she"}
    assert mentions.of(["doctors", "cars,"]) == {"people", "things"}
    assert mentions.of(["a", "doctor", "and", "his", "cat"]) == {"he", "she", "people", "it"}


def test_fill_replaces_a_token_of_both_sides_and_keeps_its_links() -> None:
    phrase = compose("@he, BE tired", "@he, mệt", "@he=@he BE~mệt tired=mệt", agreement="he")
    made = fill(phrase, {"@he": lexical("my uncle", "chú/2 tôi/1", head=1)})
    assert (made.source, made.target) == (("my", "uncle,", "is", "tired"), ("chú", "tôi,", "mệt"))
    assert made.links == {(0, 1, True), (1, 0, True), (2, 2, False), (3, 2, True)}


def test_fill_gives_each_word_of_a_pronoun_the_links_of_its_token() -> None:
    made = fill(lexical("he slept", "<he>/1 ngủ/2"), {"<he>": Phrase((), ("ông", "ấy"), frozenset())})
    assert made.target == ("ông", "ấy", "ngủ")
    assert made.links == {(0, 0, True), (0, 1, True), (1, 2, True)}


def test_the_checks_name_an_unbalanced_sentence_and_a_contrast_beyond_the_pronoun() -> None:
    def document(target: str, form: str) -> Document:
        return Document(
            (pair("My aunt left.", "Dì tôi đi."), pair("She left.", target)), ("", "she"), ("", form), (0, 1)
        )

    same = [document("Dì ấy đã đi.", "dì ấy"), document("Dì ấy đã đi.", "dì ấy")]
    assert "equally many of at least two expected" in check_balance({"documents_train": same})[0]
    other = [document("Dì ấy đã đi.", "dì ấy"), document("Bà ấy đã về.", "bà ấy")]
    [message] = check_contrast({"documents_train": other, "documents_contrast": other})
    assert "differ in ['bà', 'dì', 'về', 'đi']" in message


def test_compose_orders_each_side_and_keeps_the_links() -> None:
    noun = lexical("book", "~quyển sách", "noun:book")
    made = compose("this {a} {n}", "{n} {a} này", "this=này", head="n", a=lexical("red", "~màu đỏ"), n=noun)
    assert made.source == ("this", "red", "book")
    assert made.target == ("quyển", "sách", "màu", "đỏ", "này")
    assert made.links == {(0, 4, True), (1, 2, False), (1, 3, True), (2, 0, False), (2, 1, True)}
    assert made.head == (2, 1)


def test_compose_leaves_out_links_of_an_absent_slot() -> None:
    made = compose("the {a} {n}", "{n} {a}", "the~{n}", a=None, n=lexical("cat", "~con mèo"))
    assert made.target == ("con", "mèo")
    assert made.links == {(0, 1, False), (1, 0, False), (1, 1, True)}


def test_compose_refuses_a_link_to_a_word_that_the_pattern_does_not_have() -> None:
    with pytest.raises(ValueError, match="link the=đó: 'đó' is not in"):
        compose("the {n}", "{n}", "the=đó", n=lexical("cat", "mèo"))


def test_compose_refuses_a_slot_without_a_value() -> None:
    with pytest.raises(ValueError, match=r"has no value for \{n\}"):
        compose("the {n}", "{n}")


@pytest.mark.parametrize(
    ("word", "agreement", "form"),
    [("BE", "I", "am"), ("BE", "he", "is"), ("DO", "they", "do"), ("HAVE", "he", "has"), ("WANT", "he", "wants")],
)
def test_inflect(word: str, agreement: str, form: str) -> None:
    assert inflect(word, agreement) == form


@pytest.mark.parametrize(
    ("following", "form"), [("apple", "an"), ("book", "a"), ("honest", "an"), ("university", "a"), ("Orange", "an")]
)
def test_article(following: str, form: str) -> None:
    assert article(following) == form


def test_the_error_counts_a_sure_link_that_one_link_per_target_word_cannot_reach() -> None:
    made = pair("is reading", "đang đọc", (0, 0, True), (1, 1, True))
    assert best_single_link_error([made]) == pytest.approx(0.0)
    crowded = pair("of course", "dĩ nhiên", (0, 0, True), (1, 0, True), (1, 1, True))
    assert best_single_link_error([crowded]) == pytest.approx(1 - (2 + 2) / (2 + 3))


def test_the_checks_name_a_sentence_that_occurs_in_two_splits() -> None:
    corpus = Corpus()
    for split in ("train", "valid"):
        corpus.splits[split].append(pair("I am here.", f"Tôi ở đây {split}.", (0, 0, True)))
    assert "valid: already in train: 'I am here.'." in check_text(corpus)


def test_the_comparison_names_files_that_are_missing_or_differ(tmp_path: Path) -> None:
    (tmp_path / "train.en").write_bytes(b"one\n")
    wrong = script.compare({"train.en": b"two\n", "train.vi": b"hai\n"}, tmp_path)
    assert "train.en differs from what the grammar generates" in wrong[0]
    assert "train.vi is missing" in wrong[1]


def test_held_out_combinations_are_a_small_fixed_share() -> None:
    combinations = [("verb+object", f"verb {i}", f"noun {j}") for i in range(23) for j in range(29)]
    share = sum(map(held_out, combinations)) / len(combinations)
    assert 0.05 < share < 0.25


def test_sampler_refuses_an_empty_list() -> None:
    with pytest.raises(NothingFitsError, match="no entry that fits"):
        Sampler(1).pick([])
