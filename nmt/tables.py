"""Tables as Markdown, CSV and LaTeX."""

import csv
import io
import statistics
from collections.abc import Sequence
from typing import NamedTuple

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def mean_and_deviation(values: Sequence[float], digits: str) -> str:
    """The mean of several values with their standard deviation, one value by itself, '' for none."""
    if not values:
        return ""
    mean = format(statistics.fmean(values), digits)
    return f"{mean} ± {format(statistics.stdev(values), digits)}" if len(values) > 1 else mean


class Table(NamedTuple):
    """Cells as they are printed; every row is as long as the header, or ends early."""

    header: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """With the columns aligned, so that it can be read as it stands."""
        lines = [[cell.replace("|", "\\|") for cell in row] for row in (self.header, *self.rows)]
        full = [line for line in lines if len(line) == len(self.header)]
        widths = [max(len(line[column]) for line in full) for column in range(len(self.header))]
        lines.insert(1, ["-" * width for width in widths])
        return "\n".join(_line(line, widths) for line in lines)

    def csv(self) -> str:
        """With commas, and quotes where a cell needs them."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.header, *self.rows])
        return out.getvalue()

    def latex(self) -> str:
        """A tabular with the rules of booktabs."""
        lines = [" & ".join(_escaped(cell) for cell in row) + r" \\" for row in (self.header, *self.rows)]
        columns = "l" * len(self.header)
        body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
        return "\n".join([*body, r"\bottomrule", r"\end{tabular}"])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=False)]
    return "| " + " | ".join([*padded, *[""] * (len(widths) - len(cells))]) + " |"


def _escaped(cell: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in cell)
