"""A table in its forms."""

import csv
import io

from nmt.tables import Table

TABLE = Table(["scorer", "BLEU"], [["a_b", "9.50 ± 0.10"], ["x|y, z", '5 % "of" $3'], ["refused"]])


def test_markdown_lines_up_and_a_short_row_leaves_cells_empty() -> None:
    assert TABLE.markdown() == (
        "| scorer  | BLEU        |\n"
        "| ------- | ----------- |\n"
        "| a_b     | 9.50 ± 0.10 |\n"
        '| x\\|y, z | 5 % "of" $3 |\n'
        "| refused |  |"
    )


def test_csv_is_read_back_as_it_was() -> None:
    assert list(csv.reader(io.StringIO(TABLE.csv()))) == [TABLE.header, *TABLE.rows]


def test_latex_means_what_the_cells_say() -> None:
    lines = TABLE.latex().splitlines()
    assert lines[0] == r"\begin{tabular}{ll}"
    assert lines[4] == r"a\_b & 9.50 $\pm$ 0.10 \\"
    assert lines[5] == r'x|y, z & 5 \% "of" \$3 \\'
    assert lines[-1] == r"\end{tabular}"
    assert r"\textasciitilde{}/a\textasciicircum{}2 \\" in Table(["run"], [["~/a^2"]]).latex()
