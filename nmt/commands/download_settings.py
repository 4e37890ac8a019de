"""The settings of nmt.download."""

from typing import Annotated

from pydantic import Field

from nmt.config.fields import Keys, Languages, PositiveNumber, Text, Texts


class DownloadSettings(Keys):
    what: Texts
    out: Text
    copies: Annotated[Text | None, Field(alias="from")]
    languages: Languages
    hub_config: Text | None
    max_gib: PositiveNumber
    extract: bool
