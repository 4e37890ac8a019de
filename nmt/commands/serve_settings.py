"""The settings of nmt.serve."""

from typing import Annotated

from pydantic import Field
from pydantic import model_validator as check

from nmt.config.fields import (
    Device,
    EngineName,
    Keys,
    NonNegative,
    Positive,
    PositiveNumber,
    Precision,
    Text,
    Texts,
    expects,
)
from nmt.errors import Mistake


class ServeSettings(Keys):
    run_dirs: Texts
    host: Text
    port: Annotated[int, Field(ge=0, le=65535), expects("a port from 1 to 65535, or 0 for a free one")]
    engine: EngineName
    device: Device
    precision: Precision
    max_models: Positive
    batch_tokens: Positive
    batch_window: Annotated[float, Field(ge=0, le=10), expects("seconds from 0 to 10, such as 0.005")]
    max_waiting: Positive
    max_connections: Positive
    time_limit: PositiveNumber
    max_characters: Positive
    max_sentences: Positive
    max_alternatives: NonNegative
    max_body_bytes: Positive
    api_keys: Text | None
    metrics_token: Text | None
    allow_origins: Texts
    allowed_hosts: Texts

    @check(mode="after")
    def check_lists(self) -> "ServeSettings":
        if not self.run_dirs:
            raise Mistake("run_dirs is an empty list; name at least one run directory, or a folder that contains runs.")
        if "*" in self.allow_origins:
            raise Mistake("allow_origins is '*', which lets every web page use the server; name the allowed origins.")
        return self
