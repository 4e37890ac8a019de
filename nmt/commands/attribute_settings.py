"""The settings of nmt.attribute."""

from typing import Annotated, Literal

from pydantic import model_validator as check

from nmt.config.fields import Positive, Text, expects
from nmt.config.shared_settings import AttributionMethod, LookSettings, MapFileSettings
from nmt.errors import Mistake


class AttributeSettings(LookSettings, MapFileSettings):
    method: Literal[AttributionMethod, "p_cxmi"]
    contrast: Text | None
    steps: Annotated[Positive | None, expects("a whole number of at least 1, or null for 8")]

    @check(mode="after")
    def check_method(self) -> "AttributeSettings":
        if self.method != "p_cxmi" and self.documents is not None:
            raise Mistake(
                f"documents has no effect with method={self.method}, which explains each sentence without the earlier "
                "ones; leave it out, or use method=p_cxmi."
            )
        if self.method == "p_cxmi":
            if self.documents is None:
                raise Mistake(
                    "method=p_cxmi measures what earlier sentences contribute: add documents=FILE, a file that names "
                    "the document of each line."
                )
            for key in ("contrast", "steps"):
                if getattr(self, key) is not None:
                    raise Mistake(f"{key} has no effect with method=p_cxmi; leave it out.")
        return self
