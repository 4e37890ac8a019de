"""The settings of nmt.average."""

from typing import Annotated, Literal

from pydantic import Field

from nmt.config.fields import LARGEST, Device, Keys, Text, expects


class AverageSettings(Keys):
    run_dir: Text
    checkpoints: Literal["best", "recent"]
    number: Annotated[
        Annotated[int, Field(ge=2, le=LARGEST)] | None, expects("a whole number of at least 2, or null for all")
    ]
    out: Text | None
    overwrite: bool
    device: Device
