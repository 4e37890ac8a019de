"""Detokenizing restores the text of the tokens."""

import pytest

from nmt.text import detokenizer, normalize


@pytest.mark.parametrize(
    ("language", "tokens", "text"),
    [
        ("en", "It &apos;s a &quot; cat &quot; , is n't it ?", "It's a \"cat\", isn't it?"),
        ("en", "`` Do N'T , '' he said ( twice ) .", '"DoN\'T," he said (twice).'),
        ("en", "A &amp; B cost $ 5 , or 10 % &#91; of it &#93; .", "A & B cost $5, or 10% [of it]."),
        ("vi", "Tôi nói : &quot; Vâng &quot; , rồi đi .", 'Tôi nói: "Vâng", rồi đi.'),
        ("en", "The &apos; domestic &apos; market &apos;s 'end .", "The 'domestic' market's 'end."),
        ("vi", "Thật đấy .", "Thật đấy."),
    ],
)
def test_tokens_become_plain_text(language: str, tokens: str, text: str) -> None:
    assert detokenizer(language)(tokens) == text


@pytest.mark.parametrize("line", ["", "   ", "Plain text, as it is (here).", "The 'domestic' market's end.", "một hai"])
def test_plain_text_is_kept(line: str) -> None:
    assert detokenizer("en")(line) == normalize(line)
