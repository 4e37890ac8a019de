"""Settings that several commands share: where sentences come from, how to search, which maps to make and draw."""

import os
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic import model_validator as check

from nmt.config.fields import (
    LARGEST,
    Device,
    EngineChoice,
    Fraction,
    Keys,
    NonNegative,
    Positive,
    Text,
    TextOrTexts,
    expects,
)
from nmt.config.nodes import Node
from nmt.errors import Mistake


class OwnFiles(Keys):
    """The user's own files, which take the place of a split."""

    source: Text | None
    reference: Annotated[TextOrTexts | None, expects("a file, a list of files such as [A,B], or null")]

    @check(mode="after")
    def check_files(self) -> "OwnFiles":
        if (self.source is None) != (self.reference is None):
            present, missing = ("source", "reference") if self.source else ("reference", "source")
            raise Mistake(f"{present} is given without {missing}; set both to use your own files.")
        if self.reference == []:
            raise Mistake("reference is an empty list; name at least one file.")
        for key in ("alignment", "documents"):
            if getattr(self, key, None) is not None and self.source is None:
                raise Mistake(f"{key} is only for your own files; set source and reference too.")
        return self


def check_named_once(run_dirs: Sequence[str]) -> None:
    """Raises Mistake for a run directory that is named twice."""
    resolved = [os.path.realpath(path) for path in run_dirs]
    if twice := [path for path, target in zip(run_dirs, resolved, strict=True) if resolved.count(target) > 1]:
        raise Mistake(f"run_dirs names {twice[0]} twice; name each run once.")


def check_workers(workers: int, engine: str) -> None:
    """Raises Mistake for several workers with an engine other than torch, which engine=auto then chooses."""
    if workers > 1 and engine not in ("torch", "auto"):
        raise Mistake(
            f"workers={workers} needs engine=torch, because engine={engine} already uses all threads: leave out one of "
            "them."
        )


class SearchingSettings(Keys):
    """How a command searches for translations."""

    verbatim: bool
    workers: Annotated[int, Field(ge=1, le=1024), expects("a number of processes from 1 to 1024")]
    engine: EngineChoice
    device: Device

    @check(mode="after")
    def check_engine(self) -> "SearchingSettings":
        check_workers(self.workers, self.engine)
        return self


AttributionMethod = Literal["gradient_x_input", "integrated_gradients", "occlusion", "value_zeroing"]
"""How nmt.attribute measures what a source piece contributes."""

LayerOrHead = Annotated[
    NonNegative | Literal["all"] | None, expects("a whole number of at least 0, all, or null for the mean")
]


class LookSettings(Keys):
    """How the files that are made from maps look."""

    words: bool
    width: Annotated[
        Annotated[float, Field(ge=1, le=100)] | None, expects("from 1 to 100 inches, such as 3.3, or null")
    ]
    max_weight: Annotated[Fraction | None, expects("above 0 and at most 1, such as 0.2, or null")]
    dpi: Annotated[int, Field(ge=10, le=1200), expects("from 10 to 1200 pixels per inch, such as 300")]
    font: Text
    palette: Text | None
    special: bool
    threshold: Fraction
    sort_by: Literal[
        "entropy", "uniformity", "distance", "monotonicity", "coverage", "special", "punctuation", "variation"
    ]


class DrawingSettings(LookSettings):
    """How attention maps are drawn."""

    site: Text
    layer: LayerOrHead
    head: LayerOrHead
    grid: bool
    row: Literal["predicts", "reads"]

    @check(mode="after")
    def check_grid(self) -> "DrawingSettings":
        if self.grid and (self.layer, self.head) != (None, None):
            raise Mistake("grid=true draws every layer and head; leave out layer and head.")
        return self

    @property
    def drawing(self) -> dict[str, Any]:
        """The arguments of nmt.maps.drawing.Drawing, except for the sites and formats."""
        return {key: getattr(self, key) for key in DrawingSettings.model_fields}

    def drawing_of(self, sites: Collection[str], given: Collection[str]) -> dict[str, Any]:
        """`drawing` for maps of these sites: all of them, if cross attention is not among them and no site is given."""
        return self.drawing if "site" in given or "cross" in sites else {**self.drawing, "site": "all"}


class MapFileSettings(Keys):
    """The lines whose maps are made, the folder for the maps, and which files are made from them."""

    formats: list[Literal["png", "svg", "pdf", "csv", "alignments", "diagnostics", "viewer"]]
    search: Node
    run_dir: Text
    input: Text
    target: Text | None
    documents: Text | None
    out: Text
    overwrite: bool
    max_tokens: Annotated[int, Field(ge=2, le=LARGEST), expects("a whole number of at least 2")]
    batch_tokens: Positive
    device: Device
