"""The settings of nmt.prepare."""

from typing import Annotated

from pydantic import Field
from pydantic import model_validator as check

from nmt.config.fields import LARGEST, Keys, Text, expects
from nmt.config.schema import TrainSettings
from nmt.errors import Mistake

PairsOrShare = Annotated[
    Annotated[int, Field(ge=0, le=LARGEST)] | Annotated[float, Field(gt=0, lt=1)],
    expects("a number of pairs, such as 1000, or a share of the corpus, such as 0.05"),
]


class SplitSettings(Keys):
    """A corpus to split into training, validation and test pairs."""

    corpus: Text | None
    out: Text | None
    valid: PairsOrShare
    test: PairsOrShare

    @check(mode="after")
    def check_corpus(self) -> "SplitSettings":
        if self.out is not None and self.corpus is None:
            raise Mistake("split.out is given without split.corpus; name the corpus to split.")
        if self.valid == 0:
            raise Mistake("split.valid is 0, but training needs validation pairs; set it to at least 1.")
        return self


class PrepareSettings(TrainSettings):
    """The keys of nmt.prepare: those of nmt.train, and a corpus to split."""

    split: SplitSettings
