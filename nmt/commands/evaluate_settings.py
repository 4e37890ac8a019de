"""The settings of nmt.evaluate."""

from typing import Annotated

from pydantic import Field

from nmt.config.fields import EngineName, Positive, Precision, SourceTokens, Text, TextOrTexts, expects
from nmt.config.nodes import Node
from nmt.config.shared_settings import OwnFiles, SearchingSettings


class EvaluateSettings(OwnFiles, SearchingSettings):
    search: Node
    engine: EngineName  # scores must not depend on what is installed
    precision: Precision
    run_dir: TextOrTexts
    split: Text
    documents: Text | None
    alignment: Text | None
    out: Text | None
    minimum_bayes_risk: bool
    comet: Text | None
    expect: Annotated[Annotated[float, Field(allow_inf_nan=False)] | None, expects("a score such as 26.1, or null")]
    band: Annotated[float, Field(ge=0, allow_inf_nan=False), expects("a finite number of at least 0")]
    batch_tokens: Positive
    max_source_tokens: SourceTokens
