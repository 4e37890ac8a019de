"""docs/papers/tiny_language.py: the language that the pages on the papers train on."""

from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch

from nmt.attention import Attention
from nmt.attention.normalizers import Softmax
from nmt.attention.scorers import Additive
from nmt.attention.windows import Global
from nmt.models import Bahdanau
from nmt.models.encoders import Bidirectional


@pytest.fixture
def language(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[1] / "docs" / "papers")
    return import_module("tiny_language")


def test_the_language_has_one_translation_for_each_sentence(language: ModuleType):
    assert len({" ".join(english) for english, _ in language.PAIRS}) == len(language.PAIRS) == 3600
    assert language.HELD_OUT[1] == ["một", "con", "mèo", "đen", "thấy", "một", "con", "chó", "nhỏ"]


def test_attention_is_learned_in_seconds(language: ModuleType):
    torch.manual_seed(1)
    model = Bahdanau(
        partial(Attention, Additive, Global, Softmax),
        Bidirectional(),
        embedding_dim=24,
        encoder_dim=48,
        decoder_dim=48,
        maxout_dim=24,
        num_heads=1,
        dropout=0.0,
        vocabulary=language.VOCABULARY,
    )
    assert language.train(model) < 0.05
    english, vietnamese = language.HELD_OUT
    assert language.translate(model, english) == vietnamese
    cross = language.attend(model)
    weights = dict(zip(cross.outputs, cross.weights[0, 0], strict=True))
    # The adjective follows the noun. "con" and "một" occur twice, "mèo" and "đen" once.
    assert cross.columns[weights["▁mèo"].argmax()] == "▁cat"
    assert cross.columns[weights["▁đen"].argmax()] == "▁black"
