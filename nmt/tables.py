"""Tables as Markdown, CSV and LaTeX."""

import csv
import io
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text
from tabulate import tabulate

from nmt.errors import printable


@dataclass(frozen=True)
class Number:
    """A number, and the format specification with which it is printed."""

    value: int | float
    spec: str

    def __str__(self) -> str:
        return format(self.value, self.spec)

    def parts(self) -> dict[str, int | float | None]:
        return {"": self.value}


@dataclass(frozen=True)
class PValue(Number):
    """A p-value with three decimals; one that they would show as 0 is printed as an upper limit."""

    spec: str = ".3f"

    def __str__(self) -> str:
        return "<0.001" if self.value < 0.001 else super().__str__()


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval."""

    value: float
    low: float
    high: float
    spec: str

    def __str__(self) -> str:
        return "{} [{}, {}]".format(*(format(number, self.spec) for number in (self.value, self.low, self.high)))

    def parts(self) -> dict[str, int | float | None]:
        return {"": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Spread:
    """The mean and the standard deviation of several values; the deviation of a single value is None."""

    mean: float
    deviation: float | None
    spec: str

    def __str__(self) -> str:
        spread = "" if self.deviation is None else f" ± {format(self.deviation, self.spec)}"
        return format(self.mean, self.spec) + spread

    def parts(self) -> dict[str, int | float | None]:
        return {"mean": self.mean, "deviation": self.deviation}


Cell = str | Number | Estimate | Spread
LATEX_ESCAPES = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\^{}",
    "|": r"\textbar{}",
    "<": "$<$",
    ">": "$>$",
}


def mean_and_deviation(values: Sequence[float], spec: str) -> Spread | str:
    """The mean and the sample standard deviation of the values; '' if there are no values."""
    if not values:
        return ""
    return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, spec)


class Table(NamedTuple):
    """A header and rows; a row may be shorter than the header. Columns of numbers are right-aligned."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def markdown(self) -> str:
        """The table in Markdown, with padded columns that are also readable as plain text."""
        # A bar would end the cell.
        header, rows = (
            [[_text(cell).replace("|", "\\|") for cell in row] for row in part] for part in ([self.header], self.rows)
        )
        align = ["right" if _is_numeric(column) else "left" for column in self._columns()]
        padded = [[*row, *[""] * (len(header[0]) - len(row))] for row in rows]
        return tabulate(padded, header[0], "pipe", disable_numparse=True, colalign=align if rows else None)

    def screen(self, width: int) -> str:
        """The table for a terminal. Columns that do not fit go into further tables, which repeat the first column."""
        columns = [[_text(cell) for cell in column] for column in self._columns()]
        # Two more columns of the terminal: a blank of rich's padding and one of its box.
        widths = [
            2 + max(cell_len(text) for text in (name, *cells)) for name, cells in zip(self.header, columns, strict=True)
        ]
        parts: list[list[int]] = [[0]]
        for number in range(1, len(columns)):
            if len(parts[-1]) > 1 and 1 + sum(widths[other] for other in (*parts[-1], number)) > width:
                parts.append([0])
            parts[-1].append(number)
        texts = []
        for part in parts:
            table = RichTable(box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
            for number in part:
                numeric = _is_numeric(self._columns()[number])
                table.add_column(Text(self.header[number]), justify="right" if numeric else "left", no_wrap=True)
            for row in zip(*(columns[number] for number in part), strict=True):
                table.add_row(*map(Text, row))
            written = io.StringIO()
            Console(file=written, width=1 + sum(widths), color_system=None).print(table)
            texts.append("\n".join(line.rstrip() for line in written.getvalue().split("\n") if line.strip()))
        return "\n\n".join(texts)

    def latex(self) -> str:
        """A LaTeX tabular environment with the rules of the booktabs package; intervals and deviations are small."""
        columns = self._columns()
        align = "".join("r" if _is_numeric(column) else "l" for column in columns)
        header, *rows = (
            " & ".join(cells) + r" \\"
            for cells in [
                [_latex(name) for name in self.header],
                *([_latex(cell) for cell in row] for row in zip(*columns, strict=True)),
            ]
        )
        return "\n".join(
            [
                f"\\begin{{tabular}}{{@{{}}{align}@{{}}}}",
                r"\toprule",
                header,
                r"\midrule",
                *rows,
                r"\bottomrule",
                r"\end{tabular}",
            ]
        )

    def csv(self) -> str:
        """The table in CSV. Numbers have no thousands separators, and each part of a cell has its own column."""
        columns: list[list[object]] = []
        for name, cells in zip(self.header, self._columns(), strict=True):
            parts = next((list(cell.parts()) for cell in cells if not isinstance(cell, str)), [""])
            # Text goes into the first of the columns, and leaves the others empty.
            values = [
                [cell, *[""] * (len(parts) - 1)] if isinstance(cell, str) else list(cell.parts().values())
                for cell in cells
            ]
            for part, column in zip(parts, zip(*values, strict=True) if values else [()] * len(parts), strict=True):
                columns.append([f"{name} {part}".strip(), *column])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(zip(*columns, strict=True))
        return text.getvalue()

    def _columns(self) -> list[list[Cell]]:
        full: list[list[Cell]] = [list(column) for column in zip_longest(self.header, *self.rows, fillvalue="")]
        return [column[1:] for column in full]


def _text(cell: Cell) -> str:
    """A cell on one line; a name in it may come from a stranger."""
    return printable(str(cell))


def _latex(cell: Cell) -> str:
    if isinstance(cell, Estimate | Spread):
        number, _, rest = str(cell).replace("±", r"$\pm$").partition(" ")
        return rf"{number} {{\scriptsize {rest}}}" if rest else number
    return "".join(LATEX_ESCAPES.get(letter, letter) for letter in _text(cell))


def _is_numeric(column: Sequence[Cell]) -> bool:
    """Whether a column contains at least one number and, apart from empty cells, nothing but numbers."""
    cells = [cell for cell in column if cell != ""]
    return bool(cells) and all(not isinstance(cell, str) or _is_number(cell) for cell in cells)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True
