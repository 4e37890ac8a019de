"""The settings of nmt.serve."""

import re
from typing import Annotated

from pydantic import Field
from pydantic import model_validator as check

from nmt.config.fields import (
    Device,
    EngineChoice,
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

_ORIGIN = re.compile(
    r"(?!http://.*:80$|https://.*:443$)[a-z][a-z\d+.-]*://([a-z\d._-]+|\[[a-f\d:.]+\])(:\d+)?", re.ASCII
)
_HOST = re.compile(r"\*|[\w.-]+", re.ASCII)


class ServeSettings(Keys):
    run_dirs: Texts
    host: Text
    port: Annotated[int, Field(ge=0, le=65535), expects("a port from 1 to 65535, or 0 for a free one")]
    workers: Annotated[int, Field(ge=1, le=1024), expects("a number of processes from 1 to 1024")]
    engine: EngineChoice
    cache_dir: Text
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
        # They are compared with what browsers send, so another spelling would never match.
        for origin in self.allow_origins:
            if not _ORIGIN.fullmatch(origin):
                raise Mistake(
                    f"allow_origins contains '{origin}', which no browser sends as an origin; write scheme and host in "
                    "lower case, and the port if it is not the usual one, as in https://my.org."
                )
        for host in self.allowed_hosts:
            if not _HOST.fullmatch(host):
                raise Mistake(f"allowed_hosts contains '{host}'; write a name without scheme and port, as in my.org.")
        return self
