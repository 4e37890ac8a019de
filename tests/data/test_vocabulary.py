import pytest

from nmt.config.direction import Direction
from nmt.data import vocabulary as module
from nmt.data.vocabulary import tokenizers


@pytest.fixture
def learn(corpus, tmp_path):
    def learn(text="en-vi", prefixes=(corpus,), **settings):
        settings = {"kind": "bpe", "size": 317, "joint": True} | settings
        return tokenizers(prefixes, Direction.parse(text), cache_dir=tmp_path / "cache", **settings)

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


def test_joint_is_the_same_for_both_directions(learn):
    assert learn().source.model == learn("vi-en").source.model


def test_the_second_time_nothing_is_trained(learn, monkeypatch):
    first = learn()
    monkeypatch.setattr(module, "train_tokenizer", None)
    assert learn().source.model == first.source.model


@pytest.mark.parametrize("change", [{"kind": "unigram"}, {"size": 313}, {"seed": 1}])
def test_other_settings_are_trained_anew(learn, tmp_path, change):
    learn()
    learn(**change)
    assert len(list((tmp_path / "cache" / "tokenizers").iterdir())) == 2


def test_other_content_is_trained_anew(learn, write):
    before = learn().source.model
    write("train", ["new words stand here"] * 3, ["những chữ mới"] * 3)
    assert learn(size=281).source.model != before


def test_training_is_silent(learn, capfd):
    learn(kind="unigram")
    assert capfd.readouterr() == ("", "")


def test_an_impossible_size_is_refused_and_leaves_no_cache(learn, tmp_path):
    with pytest.raises(ValueError, match="99991 is too large"):
        learn(size=99_991)
    assert list((tmp_path / "cache" / "tokenizers").iterdir()) == []
