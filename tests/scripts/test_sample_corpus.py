"""The sample corpus: the laws of its grammar, and of the files as they are."""

import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from nmt.data.cache import file_digest
from scripts.sample_corpus import make_sample_corpus as script
from scripts.sample_corpus.checks import best_single_link_error, check_text
from scripts.sample_corpus.grammar import Pair, article, asks_about_many
from scripts.sample_corpus.lexicon import Lexicon
from scripts.sample_corpus.phrase import compose, inflect, lexical
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
