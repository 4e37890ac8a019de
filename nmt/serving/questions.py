"""The questions that the lab's interface accepts, and how their attention changes become interventions."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from nmt.attention.edits import Change, Given, Off, OfHead, Scaled, Shuffled, Uniform
from nmt.attention.normalizers import Normalizer, Softmax, Sparsemax
from nmt.config.nodes import Node
from nmt.errors import Mistake, TemplatedMessage
from nmt.insight.interventions import Intervention

_LONGEST = 10_000

Text = Annotated[str, Field(max_length=_LONGEST)]
Index = Annotated[int, Field(ge=0, lt=_LONGEST)]
Ids = Annotated[list[int], Field(max_length=_LONGEST, description="piece ids without BOS and EOS")]
BeamSize = Annotated[int | None, Field(ge=1, le=100, description="null for the run's own beam size")]
LengthPenalty = Annotated[float | None, Field(ge=0, le=10, description="null for the run's own penalty")]
Site = Literal["encoder_self", "decoder_self", "cross"]


class Fields(BaseModel):
    """The fields of a question; unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")


class Question(Fields):
    """A question about one sentence and one run."""

    run: str | None = Field(None, description="name of a run in /v1/runs; the first one by default")
    text: Text = Field(description="a sentence in the source language", examples=["How old is Mai?"])


class TranslateQuestion(Question):
    """A request for translations."""

    prefix: str = Field("", max_length=1000, description="the text that all translations begin with")
    n_best: int = Field(1, ge=1)
    beam_size: BeamSize = None
    length_penalty: LengthPenalty = None

    @field_validator("beam_size")
    @classmethod
    def _is_at_least_n_best(cls, beam_size: int | None, fields: ValidationInfo) -> int | None:
        n_best = fields.data.get("n_best", 1)
        if beam_size is not None and beam_size < n_best:
            text = "Input should be greater than or equal to n_best, which is {n_best}"
            raise PydanticCustomError("less_than_n_best", text, {"n_best": n_best})
        return beam_size


class PairQuestion(Question):
    """A question about a sentence and the run's own translation of it, or a given one."""

    target: Text | None = Field(None, description="a translation; by default the run's own")
    target_ids: Ids | None = None
    prefix_ids: Annotated[
        list[int] | None,
        Field(
            max_length=_LONGEST,
            description="the piece ids that the translation begins with; 0 leaves a position to the search",
        ),
    ] = None
    beam_size: BeamSize = None
    length_penalty: LengthPenalty = None

    @property
    def search(self) -> dict[str, Any]:
        """The search settings of the question; None keeps the run's own setting."""
        # A run's own n_best may be larger than this beam.
        n_best = None if self.beam_size is None else 1
        return {"beam_size": self.beam_size, "length_penalty": self.length_penalty, "n_best": n_best}


class StreamQuestion(PairQuestion):
    """A request for each step of a search; if a site is given, each step includes the map of its best hypothesis."""

    site: Site | None = None
    layer: Index | None = Field(None, description="from 0; null for the mean of all layers")
    head: Index | None = Field(None, description="from 0; null for the mean of all heads")


class AlternativesQuestion(PairQuestion):
    """A request for the most likely pieces at each position."""

    number: int = Field(5, ge=1, le=100, description="pieces to return for each position")


class AttributeQuestion(PairQuestion):
    """A question about how much each source piece matters for each target piece."""

    method: Literal["gradient_x_input", "integrated_gradients", "occlusion", "value_zeroing"] = "occlusion"
    contrast: str | None = Field(
        None, max_length=1000, description="explain why each piece is preferred to this piece of the target vocabulary"
    )


class CellsQuestion(PairQuestion):
    """A question about one row of a map."""

    site: Site = "cross"
    layer: Index = 0
    head: Index = 0
    row: Index = Field(description="position of the query, from 0")


class AlignQuestion(Question):
    """A question about the word alignment of one of the examples."""

    layer: Index | None = Field(None, description="from 0; null for the mean of all layers")
    head: Index | None = Field(None, description="from 0; null for the mean of all heads")
    guess: list[tuple[Index, Index]] = Field(
        [], max_length=1000, description="links [source word, target word]; words are counted from 0"
    )


class ChangeOfAttention(Fields):
    """New weights (`way`) for some heads and steps, or a new temperature, normalizer or window for a whole layer."""

    site: Site = "cross"
    layer: Index | None = Field(None, description="from 0; null for every layer")
    head: Index | None = Field(None, description="from 0; null for every head")
    steps: list[Index] | None = Field(None, description="positions of the queries, from 0; null for all")
    way: Literal["off", "uniform", "shuffled", "scale", "weights", "head"] | None = None
    columns: list[Index] = Field([], description="for scale: positions of the keys, from 0")
    factor: float = Field(0.0, ge=0, le=1e6, description="for scale; 0 blocks the keys")
    weights: list[float] = Field([], description="for weights: one for each key; at least 0, with a sum of at most 1")
    other_head: Index = Field(0, description="for head: the head whose weights are used")
    temperature: float | None = Field(None, ge=1e-3, le=1e3)
    normalizer: Literal["softmax", "sparsemax"] | None = None
    half_width: Index | None = None

    def intervention(self) -> Intervention:
        """This change as an Intervention. Raises Mistake if a weight is negative or they sum to more than 1."""
        # The page sends rounded weights, so their sum may be slightly above 1.
        if self.way == "weights" and (min(self.weights, default=-1) < 0 or not sum(self.weights) <= 1 + 1e-3):
            raise Mistake(
                TemplatedMessage("weights must be one number for each key, each at least 0, with a sum of at most 1.")
            )
        ways: dict[str, Change] = {
            "off": Off(),
            "uniform": Uniform(),
            "shuffled": Shuffled(),
            "scale": Scaled(self.columns, self.factor),
            "weights": Given(self.weights),
            "head": OfHead(self.other_head),
        }
        normalizers: dict[str, Normalizer] = {"softmax": Softmax(), "sparsemax": Sparsemax()}
        return Intervention(
            change=None if self.way is None else ways[self.way],
            site=self.site,
            layer=self.layer,
            head=self.head,
            steps=self.steps,
            temperature=self.temperature,
            normalizer=None if self.normalizer is None else normalizers[self.normalizer],
            half_width=self.half_width,
        )


class InterveneQuestion(PairQuestion):
    """A request to translate a sentence with and without changes to the attention."""

    changes: list[ChangeOfAttention] = Field(
        min_length=1, max_length=1000, examples=[[{"site": "cross", "way": "scale", "columns": [3], "factor": 0}]]
    )


def check_search(stored: Node, settings: Mapping[str, Any]) -> None:
    """Raises Mistake if a question sets a beam search, but its run's search, as stored, samples."""
    for name in ("beam_size", "length_penalty"):
        if settings[name] is not None and name not in stored:
            raise Mistake(
                TemplatedMessage("{name} sets a beam search, but this run samples; leave out {name}.", name=name)
            )
