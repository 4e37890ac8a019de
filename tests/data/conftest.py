import random
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config.direction import Direction
from nmt.text import Tokenizer, TokenizerPair, train_tokenizer

ENGLISH = ["i", "you", "we", "cat", "dog", "house", "see", "eat", "walk", "today", "never", "red", "small"]
VIETNAMESE = ["tôi", "bạn", "chúng", "ta", "mèo", "chó", "nhà", "thấy", "ăn", "đi", "không", "đỏ", "nhỏ"]


def sentences(words: list[str], number: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(words, k=draw.randrange(3, 13))) + f" {line}" for line in range(number)]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Writes PREFIX.en and PREFIX.vi and returns PREFIX."""

    def write(name: str, english: list[str], vietnamese: list[str], end: str = "\n") -> str:
        for language, lines in (("en", english), ("vi", vietnamese)):
            (tmp_path / f"{name}.{language}").write_bytes("".join(line + end for line in lines).encode())
        return str(tmp_path / name)

    return write


@pytest.fixture
def corpus(write) -> str:
    """The prefix of 211 different pairs."""
    return write("train", sentences(ENGLISH, 211, 3), sentences(VIETNAMESE, 211, 5))


@pytest.fixture(scope="session")
def pair() -> TokenizerPair:
    lines = sentences(ENGLISH, 211, 3) + sentences(VIETNAMESE, 211, 5)
    tokenizer = Tokenizer(train_tokenizer(lines, kind="bpe", size=353, character_coverage=1.0))
    return TokenizerPair(tokenizer, tokenizer)


@pytest.fixture
def direction() -> Direction:
    return Direction("en", "vi")
