"""Reads the JSON files of a run directory, which anyone may have written, and checks the type of each value."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nmt.config.messages import expected
from nmt.errors import Mistake
from nmt.files import check_size, read_json

# Numbers beyond these are damage, and would fail wherever they are printed or compared.
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Number = Annotated[float, Field(ge=-1e15, le=1e15)]


_MOST_BYTES = 2**24
"""No record of a run is larger."""


class Stored(BaseModel):
    """The keys of a JSON file that are read; others may be there too."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, allow_inf_nan=False)


def read_stored(
    file: Path, kind: type[Stored], most_bytes: int = _MOST_BYTES, remedy: str = "Copy the original file back."
) -> dict[str, Any]:
    """The content of a JSON file, unchanged.

    Raises Mistake, with `remedy` as its last sentence, if it is larger than `most_bytes`, damaged, or does not have the
    types of `kind`.
    """
    check_size(file, most_bytes, remedy)
    try:
        content = read_json(file)
    except (ValueError, RecursionError) as error:
        raise Mistake(f"{file} is damaged: it is not JSON. {remedy}") from error
    if not isinstance(content, dict):
        raise Mistake(f"{file} is damaged or no file of nmt: it is not a JSON object. {remedy}")
    try:
        kind.model_validate(content)
    except ValidationError as error:
        raise Mistake(f"{file} is damaged or no file of nmt: {expected(error)}. {remedy}") from error
    return content
