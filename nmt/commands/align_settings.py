"""The settings of nmt.align."""

from typing import Literal

from nmt.config.fields import Device, Fraction, Positive, Text
from nmt.config.shared_settings import AttributionMethod, OwnFiles


class AlignSettings(OwnFiles):
    run_dir: Text
    split: Text
    alignment: Text | None
    method: Literal["attention", AttributionMethod]
    out: Text | None
    threshold: Fraction
    batch_tokens: Positive
    device: Device
