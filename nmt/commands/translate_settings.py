"""The settings of nmt.translate."""

from typing import Literal

from nmt.config.fields import Positive, SourceTokens, Text, TextOrTexts
from nmt.config.nodes import Node
from nmt.config.shared_settings import SearchingSettings


class TranslateSettings(SearchingSettings):
    search: Node
    run_dir: TextOrTexts
    format: Literal["text", "tsv", "jsonl"]
    prefixes: Text | None
    document: bool
    minimum_bayes_risk: bool
    batch_tokens: Positive
    max_source_tokens: SourceTokens
    read_ahead: Positive
