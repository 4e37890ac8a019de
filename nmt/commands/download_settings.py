"""The settings of nmt.download."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from nmt.config.direction import Direction
from nmt.config.fields import Keys, PositiveNumber, Text, Texts


class DownloadSettings(Keys):
    what: Texts
    out: Text
    copies: Annotated[Text | None, Field(alias="from")]
    languages: Annotated[Direction, BeforeValidator(lambda text: Direction.parse(str(text)))]
    hub_config: Text | None
    max_gib: PositiveNumber
    extract: bool
