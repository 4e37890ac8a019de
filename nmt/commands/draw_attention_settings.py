"""The settings of nmt.draw_attention."""

from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic import model_validator as check

from nmt.config.fields import Positive, Text, TextOrTexts, as_list, expects
from nmt.config.shared_settings import DrawingSettings
from nmt.errors import Mistake


class DrawAttentionSettings(DrawingSettings):
    maps: TextOrTexts
    lines: Annotated[
        Annotated[list[Positive], Field(min_length=1)] | None,
        BeforeValidator(as_list),
        expects("a list of line numbers, counted from 1, as in lines=[1,5], or null for all"),
    ]
    out: Text | None

    @check(mode="after")
    def check_lists(self) -> "DrawAttentionSettings":
        if not self.formats:
            raise Mistake("formats is an empty list; name at least one format, as in formats=[png].")
        if self.maps == []:
            raise Mistake("maps is an empty list; name at least one folder that nmt.export_attention wrote.")
        return self
