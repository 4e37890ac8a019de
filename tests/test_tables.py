"""A table in its forms."""

import csv
import io

from nmt.tables import Estimate, Number, PValue, Spread, Table, mean_and_deviation

TEXTS = Table(["scorer", "mean"], [["a_b", "9.50 ± 0.10"], ["x|y, z", '5 % "of" $3'], ["short"]])
NUMBERS = Table(
    ["scorer", "seed", "BLEU", "mean", "parameters"],
    [
        ["dot", "1", Estimate(98.5, 90.25, 100.0, ".2f"), Spread(97.125, 1.5, ".2f"), Number(12345, ",d")],
        ["none", "", "", Spread(96.0, None, ".2f"), ""],
    ],
)


def test_markdown_is_padded_and_a_short_row_leaves_cells_empty() -> None:
    assert TEXTS.markdown().splitlines() == [
        "| scorer   | mean        |",
        "|:---------|:------------|",
        "| a_b      | 9.50 ± 0.10 |",
        '| x\\|y, z  | 5 % "of" $3 |',
        "| short    |             |",
    ]


def test_a_name_cannot_command_a_terminal() -> None:
    table = Table(["run"], [["a\x1b[2J\r\u202e\nb"]])
    for text in (table.markdown(), table.screen(80), table.latex()):
        assert not set("\x1b\r\u202e") & set(text)
    assert "a\\x1b[2J\\r\\u202e\\nb" in table.markdown()


def test_numbers_are_aligned_right_and_printed_in_their_format() -> None:
    assert NUMBERS.markdown().splitlines() == [
        "| scorer   |   seed |                  BLEU |         mean |   parameters |",
        "|:---------|-------:|----------------------:|-------------:|-------------:|",
        "| dot      |      1 | 98.50 [90.25, 100.00] | 97.12 ± 1.50 |       12,345 |",
        "| none     |        |                       |        96.00 |              |",
    ]
    assert NUMBERS.latex().splitlines()[0] == r"\begin{tabular}{@{}lrrrr@{}}"


def test_a_table_without_rows_has_its_header() -> None:
    empty = Table(["a", "b"], [])
    assert empty.markdown().splitlines()[0].split() == ["|", "a", "|", "b", "|"]
    assert empty.csv() == "a,b\n"


def test_csv_is_read_back_as_it_was() -> None:
    assert list(csv.reader(io.StringIO(TEXTS.csv()))) == [TEXTS.header, *TEXTS.rows[:2], ["short", ""]]


def test_csv_has_plain_numbers_each_in_its_own_column() -> None:
    assert list(csv.reader(io.StringIO(NUMBERS.csv()))) == [
        ["scorer", "seed", "BLEU", "BLEU low", "BLEU high", "mean mean", "mean deviation", "parameters"],
        ["dot", "1", "98.5", "90.25", "100.0", "97.125", "1.5", "12345"],
        ["none", "", "", "", "", "96.0", "", ""],
    ]


def test_latex_escapes_what_has_a_meaning() -> None:
    lines = [line.split() for line in TEXTS.latex().splitlines()]
    assert lines[0] == [r"\begin{tabular}{@{}ll@{}}"]
    assert lines[4] == [r"a\_b", "&", "9.50", "±", "0.10", r"\\"]
    assert lines[5] == [r"x\textbar{}y,", "z", "&", "5", r"\%", '"of"', r"\$3", r"\\"]
    assert lines[-1] == [r"\end{tabular}"]
    assert r"\textasciitilde{}/a\^{}2" in Table(["run"], [["~/a^2"]]).latex()
    assert "$<$0.001" in Table(["p"], [[PValue(0.0001)]]).latex()
    assert r"97.12 {\scriptsize $\pm$ 1.50} & 12,345 \\" in NUMBERS.latex()


def test_the_deviation_is_that_of_a_sample_and_one_value_has_none() -> None:
    assert mean_and_deviation([1.0, 3.0], ".2f") == Spread(2.0, 2**0.5, ".2f")
    assert str(mean_and_deviation([3.0], ".1f")) == "3.0"
    assert mean_and_deviation([], ".2f") == ""


def test_a_p_value_is_never_printed_as_zero() -> None:
    assert [str(PValue(p)) for p in (0.25, 0.001, 0.0009, 0.0)] == ["0.250", "0.001", "<0.001", "<0.001"]
    assert Table(["p"], [[""], [PValue(0.0001)]]).csv() == 'p\n""\n0.0001\n'


def test_on_a_terminal_columns_that_do_not_fit_follow_below() -> None:
    table = Table(["row", "BLEU", "name"], [["1", Number(98.5, ".2f"), "câu [b]"], ["2", "", "x"]])
    assert table.screen(80).splitlines() == [
        "  row   BLEU  name",
        " ────────────────────",
        "    1  98.50  câu [b]",
        "    2         x",
    ]
    first, second = table.screen(20).split("\n\n")
    assert [line.split() for line in first.splitlines()[::3]] == [["row", "BLEU"], ["2"]]
    assert [line.split() for line in second.splitlines()[::3]] == [["row", "name"], ["2", "x"]]
