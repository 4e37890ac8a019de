import logging

import pytest

from nmt.config.direction import Direction
from nmt.config.schema import TokenizerSettings
from nmt.data import vocabulary as module
from nmt.data.vocabulary import learned_tokenizers
from nmt.errors import Mistake


@pytest.fixture
def learn(corpus, tmp_path):
    def learn(text="en-vi", prefixes=(corpus,), at_most=False, **changes):
        settings = TokenizerSettings(
            **{"kind": "bpe", "size": 317, "joint": True, "character_coverage": 1.0, "tone_marks": None} | changes
        )
        return learned_tokenizers(prefixes, Direction.parse(text), settings, tmp_path / "cache", at_most)

    return learn


def test_joint_is_one_model_for_both_sides(learn):
    pair = learn()
    assert pair.joint
    assert pair.source.size == 317


def test_separate_models_belong_to_their_language(learn):
    there, back = learn(joint=False), learn("vi-en", joint=False)
    assert not there.joint
    assert there.source.model != there.target.model
    assert (there.source.model, there.target.model) == (back.target.model, back.source.model)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("direction", ["en-vi", "vi-en"])
def test_tone_marks_of_the_vietnamese_side_alone_get_one_style(learn, write, joint, direction):
    write("train", ["Noé Noé Noé"] * 20, ["khoẻ khoẻ khoẻ"] * 20)
    pair = learn(direction, joint=joint, size=300, tone_marks="old", at_most=True)
    english, vietnamese = reversed(pair) if direction == "vi-en" else pair
    assert pair.joint == joint
    assert english.pieces(english.encode("Noé")) == ["▁Noé"]
    assert vietnamese.pieces(vietnamese.encode("khoẻ")) == ["▁khỏe"]


def test_joint_is_the_same_for_both_directions(learn):
    assert learn().source.model == learn("vi-en").source.model


def test_the_second_call_reads_the_cache(learn, monkeypatch):
    first = learn()
    monkeypatch.setattr(module, "train_tokenizer", None)
    assert learn().source.model == first.source.model


@pytest.mark.parametrize("change", [{"kind": "unigram"}, {"size": 313}, {"character_coverage": 0.9}])
def test_different_settings_are_trained_anew(learn, tmp_path, change):
    learn()
    learn(**change)
    assert len(list((tmp_path / "cache" / "tokenizers").iterdir())) == 2


def test_different_content_is_trained_anew(learn, write):
    before = learn().source.model
    write("train", ["new words stand here"] * 3, ["những chữ mới"] * 3)
    assert learn(size=281).source.model != before


def test_training_is_silent(learn, capfd):
    learn(kind="unigram")
    assert capfd.readouterr() == ("", "")


def test_an_impossible_size_is_refused_and_not_cached(learn, tmp_path):
    with pytest.raises(
        Mistake,
        match=r"99991 is too large for this text; set tokenizer\.size to at most \d+, or to null for a size that fits",
    ):
        learn(size=99_991)
    assert list((tmp_path / "cache" / "tokenizers").iterdir()) == []


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_without_a_size_the_vocabulary_is_the_largest_that_fits(learn, caplog, kind):
    with caplog.at_level(logging.INFO):
        size = learn(kind=kind, size=None).source.size
    assert 260 < size < 8000
    message = f"this text supports at most {size:,} pieces: the vocabulary has {size:,} instead of 8,000"
    assert caplog.text.count(message) == 1
    assert learn(kind=kind, size=size).source.model == learn(kind=kind, size=None).source.model
    with pytest.raises(Mistake, match=f"set tokenizer.size to at most {size}, or to null"):
        learn(kind=kind, size=size + 1)


def test_without_a_size_each_side_has_a_vocabulary_of_its_own_size(learn):
    there = learn(joint=False, size=None)
    assert there.source.size != there.target.size


@pytest.mark.parametrize("joint", [True, False])
def test_at_most_a_size_is_the_largest_that_all_texts_support(learn, caplog, joint):
    pair = learn(size=2500, joint=joint, at_most=True)
    [warning] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    size = pair.source.size
    assert f"supports at most {size} pieces, so the vocabulary has {size} instead of 2,500" in warning
    assert pair.target.size == size
    again = learn(size=size, joint=joint)
    assert (again.source.model, again.target.model) == (pair.source.model, pair.target.model)
    with pytest.raises(Mistake, match=f"to at most {size}, or to null"):
        learn(size=size + 1, joint=joint)


def test_a_size_that_the_text_supports_stays(learn, caplog):
    assert learn(at_most=True).source.model == learn().source.model
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
