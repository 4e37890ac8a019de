"""The settings of nmt.ablate_attention."""

from typing import Literal

from pydantic import model_validator as check

from nmt.config.fields import Device, Positive, PositiveOrAll, Text
from nmt.config.shared_settings import OwnFiles
from nmt.errors import Mistake


class AblateAttentionSettings(OwnFiles):
    run_dir: Text
    site: Text
    ways: list[Literal["off", "uniform", "shuffled", "frozen"]]
    split: Text
    sentences: PositiveOrAll
    bleu: bool
    out: Text | None
    batch_tokens: Positive
    device: Device

    @check(mode="after")
    def check_ways(self) -> "AblateAttentionSettings":
        if not self.ways:
            raise Mistake("ways is an empty list; name at least one of off, uniform, shuffled, frozen.")
        return self
