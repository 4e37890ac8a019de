"""What is made of attention maps, as a command line says it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nmt.config.messages import check_share, unknown
from nmt.maps.diagnostics import Measures
from nmt.maps.links import Choice
from nmt.maps.plots import Look
from nmt.maps.words import PIECE_ROWS

PICTURES = ("png", "svg", "pdf")
FORMATS = (*PICTURES, "csv", "alignments", "diagnostics", "viewer")
ALL = "all"


@dataclass(frozen=True)
class Drawing:
    """What is made of maps; the keys of configs/draw_attention.yaml, as they come from a command line.

    Raises ValueError for what cannot be made.
    """

    formats: list[str]
    site: str
    layer: Any
    """A number from 0, 'all', or None for the mean; and the head."""
    head: Any
    grid: bool
    words: bool
    row: Any
    width: Any
    """In inches, None for as large as the map needs."""
    max_weight: Any
    """Of the darkest colour, None for the largest weight of each picture."""
    threshold: Any
    sort_by: str

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Drawing":
        """Of a configuration's keys."""
        return cls(**{name: config[name] for name in cls.__dataclass_fields__})

    def __post_init__(self) -> None:
        for name in self.formats:
            if name not in FORMATS:
                raise ValueError(unknown("format", str(name), FORMATS))
        for key, value in (("layer", self.layer), ("head", self.head)):
            if value not in (None, ALL) and (not isinstance(value, int) or isinstance(value, bool)):
                raise ValueError(f"{key} is '{value}'; it must be a whole number from 0, all, or null for the mean.")
        if self.grid and (self.layer, self.head) != (None, None):
            raise ValueError("grid=true draws every layer and head; leave out layer and head.")
        if self.row not in PIECE_ROWS:
            raise ValueError(unknown("row", str(self.row), PIECE_ROWS))
        if self.width is not None and not 1 <= _number(self.width) <= 100:
            raise ValueError(f"width is {self.width}; it must be from 1 to 100 inches, such as 3.3, or null.")
        check_share("threshold", self.threshold)
        if self.max_weight is not None:
            check_share("max_weight", self.max_weight)
        if self.sort_by not in Measures._fields:
            raise ValueError(unknown("measure", self.sort_by, Measures._fields))

    def check_range(self, sites: Mapping[str, Mapping[str, Any]]) -> None:
        """Raises ValueError for a site, a layer or a head that the maps do not have; `sites` is the manifest's."""
        if self.site not in (*sites, ALL):
            raise ValueError(unknown_site(self.site, sites))
        for site in self.sites(sites):
            for key, value in (("layer", self.layer), ("head", self.head)):
                number = sites[site][f"{key}s"]
                if isinstance(value, int) and not 0 <= value < number:
                    there = f"{key}s 0 to {number - 1}" if number > 1 else f"one {key}, 0"
                    raise ValueError(f"{key} is {value}; {site} has {there}: give one, or leave it out for the mean.")

    def sites(self, known: Iterable[str]) -> list[str]:
        """The chosen ones of those that there are."""
        return list(known) if self.site == ALL else [self.site]

    def choice(self) -> Choice:
        """The map that alignments are read from: means where no single layer or head is chosen."""
        layer, head = (value if isinstance(value, int) else None for value in (self.layer, self.head))
        return Choice(self.row, layer, head)

    def look(self, sites: Mapping[str, Mapping[str, Any]], site: str, line: int, rank: int, detail: str) -> Look:
        """Of a picture of a site, of the manifest's `sites`; what it shows stands in the caption of one for print."""
        width, most = (None if value is None else float(value) for value in (self.width, self.max_weight))
        which = f"line {line}" if rank == 1 else f"line {line}, translation {rank}"
        title = "" if width else f"{site} attention, {which}{detail}"
        return Look(title, sites[site]["rows"], sites[site]["columns"], width, most)


def unknown_site(site: str, known: Iterable[str]) -> str:
    """The sentence for a site that a model does not have."""
    return f"There is no attention at site '{site}' in this model, only at {', '.join(known)}; 'all' is each of them."


def _number(value: Any) -> float:
    """NaN, which is in no range, for what is no number."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else float("nan")
