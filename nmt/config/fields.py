"""The types of single configuration keys, and the class of a group of keys."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WrapValidator
from pydantic_core import PydanticCustomError

from nmt.config.direction import Direction
from nmt.errors import Mistake


def expects(expectation: str) -> WrapValidator:
    """A validator for an annotated type; its error says what was expected."""

    def expect(value: Any, handler: Any) -> Any:
        try:
            return handler(value)
        except ValidationError as error:
            raise PydanticCustomError(
                "expectation", "it must be {expectation}", {"expectation": expectation}
            ) from error

    return WrapValidator(expect)


def as_text(value: Any) -> Any:
    """A number as text, so that run_dir=7 names the folder 7; anything else is returned unchanged."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def as_list(value: Any) -> Any:
    """A single value as a list of one; anything else is returned unchanged."""
    return [value] if isinstance(value, (str, int, float)) and not isinstance(value, bool) else value


def seconds_of(duration: str) -> float:
    """The number of seconds in '90s', '30m', '4h', '1h30m', '2d' or days:hours:minutes:seconds.

    Raises Mistake for any other form, and for no time at all.
    """
    fields = re.fullmatch(r"(\d{1,8}):(\d\d):(\d\d):(\d\d)", duration)
    units = re.fullmatch(r"(?:(\d{1,8})d)?(?:(\d{1,8})h)?(?:(\d{1,8})m)?(?:(\d{1,8})s)?", duration)
    match = fields or units
    if not match or not duration:
        raise Mistake(f"'{duration}' is not a duration such as 90s, 30m, 4h or 00:04:00:00.")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    total = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()
    if not total:
        raise Mistake(f"'{duration}' must be longer than 0 seconds, such as 90s, 30m, 4h or 00:04:00:00.")
    return total


def _as_duration(value: Any) -> Any:
    text = as_text(value)
    if isinstance(text, str):
        seconds_of(text)  # raises for anything that is no duration
    return text


class TextKey:
    """Marks a key whose value is a path or free text: the command line takes it as typed."""


LARGEST = 2**31 - 1

Text = Annotated[str, BeforeValidator(as_text), TextKey()]
Texts = Annotated[list[Text], BeforeValidator(as_list)]
Languages = Annotated[Direction, BeforeValidator(lambda text: Direction.parse(str(text))), TextKey()]
TextOrTexts = Annotated[list[Text], BeforeValidator(as_list), expects("text, or a list such as [A,B]")]
NonNegative = Annotated[int, Field(ge=0, le=LARGEST), expects("a whole number of at least 0")]
Positive = Annotated[int, Field(ge=1, le=LARGEST), expects("a whole number of at least 1")]
Workers = Annotated[int, Field(ge=0, le=1024), expects("a number of processes from 0 to 1024")]
PositiveOrAll = Annotated[Positive | None, expects("a whole number of at least 1, or null for all")]
Limit = Annotated[Positive | None, expects("a whole number of at least 1, or null for no limit")]
PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False), expects("a number above 0, such as 5")]
Probability = Annotated[float, Field(ge=0, lt=1), expects("at least 0 and below 1")]
Fraction = Annotated[float, Field(gt=0, le=1), expects("above 0 and at most 1, such as 0.2")]
Duration = Annotated[
    Text | None,
    BeforeValidator(_as_duration),
    expects("a duration such as 90s, 30m, 4h or days:hours:minutes:seconds, as in 00:01:30:00; or null for no limit"),
]
Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["float32", "bfloat16", "int8"]
EngineName = Literal["torch", "ctranslate2", "onnx"]
"""The library that computes translations; see nmt.exports."""
EngineChoice = Literal["auto", EngineName]
SourceTokens = Annotated[
    Annotated[int, Field(ge=2, le=LARGEST)] | None, expects("a whole number of at least 2, or null")
]


class Keys(BaseModel):
    """A group of configuration keys; unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)

    NOT_KEYS: ClassVar[Mapping[str, str]] = {}
    """Keys that users expect and that do not exist, with what to write instead."""

    @classmethod
    def not_a_setting(cls, argument: str) -> str:
        """The error for an argument of a command that is not key=value."""
        return f"Cannot read '{argument}'. Write key=value."
