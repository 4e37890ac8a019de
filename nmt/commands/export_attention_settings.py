"""The settings of nmt.export_attention."""

from pydantic import model_validator as check

from nmt.config.fields import NonNegative, Texts
from nmt.config.shared_settings import DrawingSettings, MapFileSettings
from nmt.errors import Mistake


class ExportAttentionSettings(DrawingSettings, MapFileSettings):
    sites: Texts | None
    layers: list[NonNegative] | None

    @check(mode="after")
    def check_choices(self) -> "ExportAttentionSettings":
        for key in ("sites", "layers"):
            if getattr(self, key) == []:
                raise Mistake(f"{key} is an empty list; name at least one, or leave it out for all.")
        return self
