"""The settings of nmt.draw_attention."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from pydantic import model_validator as check

from nmt.config.fields import Positive, Text, TextOrTexts, as_list, expects
from nmt.config.shared_settings import DrawingSettings
from nmt.errors import Mistake


class DrawAttentionSettings(DrawingSettings):
    maps: TextOrTexts
    formats: list[Literal["png", "svg", "pdf", "csv", "alignments", "diagnostics", "viewer", "gif", "mp4"]]
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

    @check(mode="after")
    def check_film(self) -> "DrawAttentionSettings":
        films = [kind for kind in self.formats if kind in ("gif", "mp4")]
        if films and self.grid:
            raise Mistake(f"grid=true has no film: leave {films[0]} out of formats, or use layer=all head=all.")
        if films and self.width is not None:
            raise Mistake(f"width is for print; leave it out, or leave {films[0]} out of formats.")
        return self
