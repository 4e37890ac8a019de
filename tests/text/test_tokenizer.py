import copy
import io
import logging
import math
import pickle
import random
import struct

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import Mistake
from nmt.text import BOS, EOS, PAD, UNK, Tokenizer, TokenizerPair, normalize, train_tokenizer
from nmt.text.tokenizer import cut_long_lines, draw_lines, rare_characters

WORDS = ["tôi", "không", "biết", "nói", "gì", "hôm", "nay", "là", "ngày", "sinh", "nhật", "bạn", "cat", "mat", "on"]


def lines(number: int = 211) -> list[str]:
    draw = random.Random(5)
    made_up = ["".join(draw.choices(WORDS, k=2)) for _ in range(47)]
    return [" ".join(draw.choices(WORDS + made_up, k=draw.randrange(1, 11))) for _ in range(number)]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def tokenizer(request) -> Tokenizer:
    return Tokenizer(train_tokenizer(lines(), kind=request.param, size=331, character_coverage=1.0))


@pytest.mark.parametrize(
    "text", ["", "a", "Hôm nay", "không thấy 猫 🙂", "<s> </s> <pad> <unk>", "a_b ½ … ﬁ", "ế" * 29]
)
def test_decoding_restores_the_text(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_decoding_restores_unusual_texts(tokenizer):
    draw = random.Random(7)
    texts = [normalize("".join(map(chr, draw.choices(range(1, 0xD800), k=13)))) for _ in range(211)]
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_all(texts)] == texts


def test_lines_are_encoded_independently(tokenizer):
    assert tokenizer.encode_all(lines(23)) == [tokenizer.encode(line) for line in lines(23)]


def test_text_never_becomes_a_special_id(tokenizer):
    ids = tokenizer.encode("<pad> <unk> <s> </s> 猫")
    assert not {PAD, UNK, BOS, EOS} & set(ids)


def test_special_ids_are_not_part_of_the_text(tokenizer):
    ids = tokenizer.encode("hôm nay")
    assert tokenizer.decode([BOS, *ids, EOS, PAD, PAD]) == "hôm nay"


def test_pieces_mark_the_starts_of_words(tokenizer):
    text = "tôi không biết"
    pieces = tokenizer.pieces(tokenizer.encode(text))
    assert "".join(pieces).replace("\u2581", " ").strip() == text
    assert sum(piece.startswith("\u2581") for piece in pieces) == 3


def test_the_model_has_the_requested_size(tokenizer):
    assert tokenizer.size == 331


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_training_is_reproducible(kind):
    assert train_tokenizer(lines(), kind=kind, size=317, character_coverage=1.0) == train_tokenizer(
        iter(lines()), kind=kind, size=317, character_coverage=1.0
    )


def test_training_is_silent(capfd):
    train_tokenizer(lines(), kind="unigram", size=317, character_coverage=1.0)
    assert capfd.readouterr() == ("", "")


def test_pickling_and_storing_keep_the_model(tokenizer, tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(tokenizer.model)
    for restored in (pickle.loads(pickle.dumps(tokenizer)), Tokenizer.load(tmp_path / "tokenizer.model")):
        assert restored.model == tokenizer.model
        assert restored.encode("hôm nay") == tokenizer.encode("hôm nay")


def test_a_pair_stays_joint_when_pickled(tokenizer):
    for source, target in (("en", "vi"), ("vi", "en")):
        pair = TokenizerPair(tokenizer, tokenizer).in_style("old", source=source, target=target)
        for restored in (pair, pickle.loads(pickle.dumps(pair)), copy.deepcopy(pair)):
            assert restored.joint
            assert (restored.source.tone_marks, restored.target.tone_marks) == (
                pair.source.tone_marks,
                pair.target.tone_marks,
            )


def test_a_tokenizer_in_another_style_has_everything_else_in_common(tokenizer):
    assert "a" in tokenizer.alphabet  # which is kept
    styled = tokenizer.in_style("new" if tokenizer.tone_marks == "old" else "old")
    assert vars(styled).keys() == vars(tokenizer).keys()
    assert [name for name, value in vars(styled).items() if value is not vars(tokenizer)[name]] == ["tone_marks"]


def test_separate_models_that_happen_to_be_equal_are_not_joint(tokenizer):
    """Each side has its own embeddings, as when a model learns to copy its source."""
    pair = TokenizerPair(tokenizer, Tokenizer(bytes(bytearray(tokenizer.model))))
    assert pair.source.model == pair.target.model
    assert not pair.joint
    assert not pickle.loads(pickle.dumps(pair)).joint


def test_an_unknown_kind_is_refused():
    with pytest.raises(Mistake, match="Unknown kind of tokenizer 'word'; choose one of unigram, bpe"):
        train_tokenizer(lines(), kind="word", size=317, character_coverage=1.0)


@pytest.mark.parametrize(
    ("size", "message"), [(90_001, r"90001 is too large .* to at most \d+"), (7, r"7 is too small .* to at least \d+")]
)
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_an_impossible_size_is_refused_with_the_limit(kind, size, message):
    with pytest.raises(Mistake, match=message):
        train_tokenizer(lines(), kind=kind, size=size, character_coverage=1.0)


@pytest.mark.parametrize(
    ("highest", "advice"),
    [
        (500, r"or to null for a size that fits\.$"),
        (501, r"or to null for a size that fits\. For a few hundred lines, about 500 is a good size\.$"),
    ],
)
def test_a_small_size_is_advised_if_it_is_possible(monkeypatch, highest, advice):
    def refuse(**_):
        raise RuntimeError(f"Vocabulary size too high (9000). Please set it to a value <= {highest}.")

    monkeypatch.setattr("sentencepiece.SentencePieceTrainer.train", refuse)
    with pytest.raises(Mistake, match=rf"9000 is too large .* at most {highest}, {advice}"):
        train_tokenizer(["a"], kind="bpe", size=9000, character_coverage=1.0)


def test_the_named_maximum_is_possible():
    with pytest.raises(Mistake, match="at most") as error:
        train_tokenizer(lines(), kind="bpe", size=90_001, character_coverage=1.0)
    largest = int(str(error.value).split("at most ")[1].split(",")[0])
    model = train_tokenizer(lines(), kind="bpe", size=largest, character_coverage=1.0)
    assert Tokenizer(model).size == largest
    assert train_tokenizer(lines(), kind="bpe", size=None, character_coverage=1.0) == model


def test_without_a_size_a_large_text_gets_the_usual_one(monkeypatch):
    monkeypatch.setattr("nmt.text.tokenizer.USUAL_SIZE", 317)
    assert train_tokenizer(lines(), kind="bpe", size=None, character_coverage=1.0) == train_tokenizer(
        lines(), kind="bpe", size=317, character_coverage=1.0
    )


@pytest.mark.parametrize(
    ("coverage", "rare"), [(1.0, ""), (0.91, ""), (0.9, "d"), (0.71, "d"), (0.7, "cd"), (0.3, "bcd"), (1e-9, "bcd")]
)
def test_the_most_frequent_characters_cover_the_text(coverage, rare):
    assert "".join(rare_characters(["aaa a", "bbb", "cc", "d"], coverage)) == rare


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_rare_characters_become_bytes_below_full_coverage(kind):
    rare = [chr(0x4E00 + number) for number in range(300)]
    text = [f"{line} {character}" for line, character in zip(lines() * 10, rare, strict=False)]
    with pytest.raises(Mistake, match=r"or lower tokenizer.character_coverage \(now 1\), so that rare characters are"):
        train_tokenizer(text, kind=kind, size=400, character_coverage=1.0)
    tokenizer = Tokenizer(train_tokenizer(text, kind=kind, size=300, character_coverage=0.9))
    for character in rare:
        assert tokenizer.id_of(character) is None
        assert tokenizer.pieces(tokenizer.encode(character))[-3:] == [f"<0x{byte:02X}>" for byte in character.encode()]
        assert tokenizer.decode(tokenizer.encode(character)) == character


def test_a_size_without_room_for_the_special_ids_is_refused():
    with pytest.raises(Mistake, match=r"size 2 (is too small|leaves no room) .* set tokenizer.size"):
        train_tokenizer(lines(), kind="bpe", size=2, character_coverage=1.0)


@pytest.mark.parametrize("nothing", [[], ["", ""]])
def test_a_corpus_without_text_is_refused(nothing):
    with pytest.raises(Mistake, match="no text to train a tokenizer on"):
        train_tokenizer(nothing, kind="bpe", size=317, character_coverage=1.0)


LETTERS = "aàệ字\U0001f600"


@given(st.lists(st.text(f"{LETTERS} ", max_size=12), max_size=4), st.sampled_from([1, 200, 700, 2000]))
@settings(deadline=None)
def test_long_lines_are_cut_without_losing_a_word(given, times):
    lines = [normalize(line * times) for line in given]
    parts = cut_long_lines(lines)
    assert all(len(part.encode()) <= 4192 for part in parts)
    assert "".join(parts).replace(" ", "") == "".join(lines).replace(" ", "")
    assert [line for line in lines if len(line.encode()) <= 4192] == [part for part in parts if part in lines]
    words = {word for line in lines for word in line.split()}
    if all(len(word.encode()) <= 4192 for word in words):  # a longer word has no space to be cut at
        assert {word for part in parts for word in part.split()} == words


@pytest.mark.parametrize(("length", "expected"), [(4192, 1), (4193, 2)])
def test_the_limit_is_sentencepieces_own(length, expected):
    """SentencePiece skips what is longer, so that no text would be left."""
    line = "abc " * (length // 4) + "d" * (length % 4)
    assert len(cut_long_lines([line])) == expected
    model = io.BytesIO()
    sizes = {"vocab_size": 10, "model_type": "bpe", "hard_vocab_limit": False}
    options = {"sentence_iterator": iter([line]), "model_writer": model, "minloglevel": 3, **sizes}
    if expected == 1:
        sentencepiece.SentencePieceTrainer.train(**options)
    else:
        with pytest.raises(RuntimeError, match=r"sentences_\.empty"):
            sentencepiece.SentencePieceTrainer.train(**options)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_corpus_of_paragraphs_trains_a_tokenizer_and_counts_them(caplog, kind):
    paragraphs = [" ".join(lines())] * 2
    with caplog.at_level(logging.INFO):
        long = train_tokenizer([*paragraphs, "a"], kind=kind, size=300, character_coverage=1.0)
    parts = sum(len(cut_long_lines([text])) for text in paragraphs)
    expected = (
        f"Lines longer than SentencePiece's limit of 4,192 bytes were cut to train the tokenizer (2 into {parts} parts)"
    )
    assert expected in caplog.text
    assert Tokenizer(long).size == 300


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(Mistake, match=r"There is no tokenizer model at .*absent\.model"):
        Tokenizer.load(tmp_path / "absent.model")


@pytest.mark.parametrize("content", [b"", b"hello there"])
def test_a_file_that_is_not_a_model_is_named(tmp_path, content):
    (tmp_path / "bad.model").write_bytes(content)
    with pytest.raises(Mistake, match=r"bad\.model: This is not a SentencePiece model \(\d+ bytes\)"):
        Tokenizer.load(tmp_path / "bad.model")


def test_a_model_with_a_changed_byte_is_named(tmp_path, tokenizer):
    """SentencePiece reads a model whose pieces are not UTF-8."""
    (tmp_path / "bad.model").write_bytes(tokenizer.model.replace("ế".encode(), b"\xff\xba\xbf"))
    with pytest.raises(Mistake, match=r"bad\.model: This is not a SentencePiece model \(\d+ bytes\)"):
        Tokenizer.load(tmp_path / "bad.model")


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_model_with_a_score_that_is_no_number_is_refused(tokenizer, score):
    """SentencePiece reads it, but no segmentation is the best one, and JSON has no such number."""
    known = b"\x15" + struct.pack("<f", tokenizer.score(tokenizer.size - 1))
    assert known in tokenizer.model
    with pytest.raises(Mistake, match=r"This is not a SentencePiece model \(\d+ bytes\); copy"):
        Tokenizer(tokenizer.model.replace(known, b"\x15" + struct.pack("<f", score)))


def test_a_model_with_other_special_ids_is_refused(tmp_path):
    (tmp_path / "lines.txt").write_text("\n".join(lines()), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "lines.txt"),
        model_prefix=str(tmp_path / "other"),
        vocab_size=61,
        model_type="bpe",
        minloglevel=2,
    )
    with pytest.raises(Mistake, match=r"PAD UNK BOS EOS = \(-1, 0, 1, 2\)"):
        Tokenizer.load(tmp_path / "other.model")


@pytest.mark.parametrize("number", [0, 1, 50])
def test_an_error_of_the_lines_is_raised_unchanged(number):
    def lines():
        yield from (f"line {index} of many words" for index in range(number))
        raise Mistake("train.en, line 51 is not UTF-8")

    with pytest.raises(Mistake, match=r"^train\.en, line 51 is not UTF-8$"):
        train_tokenizer(lines(), kind="bpe", size=300, character_coverage=1.0)


def test_each_of_too_many_lines_is_drawn_with_the_same_probability():
    texts = [f"line {number}" for number in range(31)]
    assert draw_lines(texts, 31, 3) == texts
    draws = [draw_lines(iter(texts), 7, seed) for seed in range(2_003)]
    assert draws[5] == draw_lines(texts, 7, 5) != draws[6]
    assert all(len(set(drawn)) == 7 for drawn in draws)
    shares = [sum(text in drawn for drawn in draws) / len(draws) for text in texts]
    assert all(abs(share - 7 / 31) < 4 * 0.42 / len(draws) ** 0.5 for share in shares)


def test_a_tokenizer_of_too_many_lines_depends_only_on_the_seed(monkeypatch):
    monkeypatch.setattr("nmt.text.tokenizer._MOST_LINES", 101)
    first, again, other = (
        train_tokenizer(lines(), kind="bpe", size=311, character_coverage=1.0, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again != other
