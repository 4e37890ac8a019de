"""scripts/studies/noun_phrases.py: the language that the pages on the papers train on."""

from functools import partial

import torch

from nmt.attention import Attention
from nmt.attention.normalizers import Softmax
from nmt.attention.scorers import Additive
from nmt.attention.windows import Global
from nmt.models import Bahdanau
from nmt.models.encoders import Bidirectional
from scripts.studies import noun_phrases as script


def test_the_language_has_one_translation_for_each_sentence():
    assert len({" ".join(english) for english, _ in script.PAIRS}) == len(script.PAIRS) == 3600
    assert script.HELD_OUT[1] == ["một", "con", "mèo", "đen", "thấy", "một", "con", "chó", "nhỏ"]


def test_attention_is_learned_in_seconds():
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
        vocabulary=script.VOCABULARY,
    )
    assert script.train(model) < 0.05
    english, vietnamese = script.HELD_OUT
    assert script.translate(model, english) == vietnamese
    found = script.attend(model)
    weights = dict(zip(found.outputs, found.weights[0, 0], strict=True))
    # The adjective follows the noun. "con" and "một" occur twice, "mèo" and "đen" once.
    assert found.columns[weights["▁mèo"].argmax()] == "▁cat"
    assert found.columns[weights["▁đen"].argmax()] == "▁black"
