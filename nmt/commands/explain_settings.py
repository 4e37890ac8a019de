"""The settings of nmt.explain."""

from typing import Annotated

from pydantic import Field

from nmt.config.fields import LARGEST, Keys, Text, expects
from nmt.config.nodes import Node
from nmt.config.schema import ContextSettings

ExampleLength = Annotated[int, Field(ge=1, le=100_000), expects("a whole number from 1 to 100,000")]


class ExplainSettings(Keys):
    model: Node
    scorer: Node
    window: Node
    normalizer: Node
    encoder_self: Node | None = None
    decoder_self: Node | None = None
    cross: Node | None = None
    context: ContextSettings
    encoder_words: Node | None = None
    encoder_sentences: Node | None = None
    decoder_words: Node | None = None
    decoder_sentences: Node | None = None
    run_dir: Text | None
    source_length: ExampleLength
    target_length: ExampleLength
    vocabulary: Annotated[int, Field(ge=5, le=LARGEST), expects("a whole number of at least 5; 4 pieces are special")]
