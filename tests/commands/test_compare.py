"""The comparison of runs and of files: its rows, its pooled means, what it says and what it refuses."""

import csv
import json
import logging
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from jobs import job_of

from nmt.cli.compose import configuration
from nmt.commands.compare import compare
from nmt.config.job import Job
from nmt.runs.comparison import System, comparison_table, pooled_table, report

REFERENCES = [f"Câu số {n} rất hay và rất dài." for n in range(30)]


def system(settings: dict[str, str], drop: int = 0, **metrics: Any) -> System:
    """A system that is wrong in `drop` of its lines."""
    hypotheses = ["không phải vậy đâu"] * drop + REFERENCES[drop:]
    bleu = {"name": "BLEU", "value": 100.0 - drop, "interval": [90.0, 100.0], "signature": "sig"}
    chrf = {"name": "chrF2", "value": 99.0 - drop, "interval": [90.0, 100.0], "signature": "sig"}
    return System(
        settings, hypotheses, {"scores": [bleu, chrf], "perplexity": {"word": 3.0 + drop, "lines": 30}}, metrics
    )


def test_a_row_has_what_differs_and_its_figures_and_no_column_is_empty() -> None:
    rows = [system({"scorer": "dot"}, parameters=12345), system({"scorer": "none"}, 2)]
    table = comparison_table(rows, [1.0, 0.25])
    assert table.header == ["scorer", "BLEU", "95 % interval", "p", "chrF2", "perplexity", "parameters"]
    assert table.rows[0] == ["dot", "100.00", "90.00 to 100.00", "", "99.00", "3.00", "12,345"]
    assert table.rows[1] == ["none", "98.00", "90.00 to 100.00", "0.250", "97.00", "5.00", ""]


def test_seeds_of_equal_settings_are_pooled() -> None:
    rows = [
        system({"job": str(n), "scorer": scorer, "seed": seed}, drop)
        for n, (scorer, seed, drop) in enumerate([("dot", "1", 1), ("dot", "2", 3), ("none", "1", 4)])
    ]
    pooled = pooled_table(rows)
    assert pooled is not None
    assert pooled.header == ["scorer", "seeds", "BLEU", "chrF2", "AER", "perplexity"]
    assert pooled.rows == [
        ["dot", "2", "98.00 ± 1.41", "97.00 ± 1.41", "", "5.00 ± 1.41"],
        ["none", "1", "96.00", "95.00", "", "7.00"],
    ]
    assert pooled_table(rows[1:]) is None
    assert pooled_table([system({"scorer": "dot"}), system({"scorer": "none"})]) is None


def test_the_report_says_what_chance_explains_and_is_written_in_every_form(tmp_path: Path) -> None:
    rows = [system({"scorer": "dot"}), system({"scorer": "none"}, 9), system({"scorer": "general"})]
    text = report(rows, [REFERENCES], tmp_path, {1: ["bad", "refused: it cannot be"]})
    assert "No difference from row 1 can be told at p < 0.05 in row 4." in text
    assert "p: paired bootstrap against row 1, 1,000 resamples" in text
    assert "| bad     | refused: it cannot be" in text
    assert text + "\n" == (tmp_path / "comparison.md").read_text(encoding="utf-8")
    with (tmp_path / "comparison.csv").open(encoding="utf-8") as file:
        assert [row[0] for row in csv.reader(file)] == ["scorer", "dot", "bad", "none", "general"]
    assert (tmp_path / "comparison.tex").read_text(encoding="utf-8").startswith(r"\begin{tabular}")
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    assert [each["p"] for each in found][::2] == [1.0, 1.0]
    assert found[1]["p"] < 0.05


def test_rows_are_counted_as_they_are_printed(tmp_path: Path) -> None:
    text = report([system({"scorer": "dot"}), system({"scorer": "none"})], [REFERENCES], tmp_path, {0: ["bad", "no"]})
    assert "p: paired bootstrap against row 2" in text
    assert "No difference from row 2 can be told at p < 0.05 in row 3." in text


def test_a_perplexity_of_fewer_lines_is_not_compared() -> None:
    short = system({"scorer": "location"})
    short.scores["perplexity"]["lines"] = 29
    assert "perplexity" not in comparison_table([short], [1.0]).header


def job(tmp_path: Path, **changes: Any) -> Job:
    return job_of("compare", {**configuration("compare", []), "out": str(tmp_path / "out"), **changes})


def test_other_people_s_outputs_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, lines in {"ref": REFERENCES, "a": REFERENCES, "b": ["sai"] * 9 + REFERENCES[9:]}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = [str(tmp_path / "a"), str(tmp_path / "b")]
    compare(job(tmp_path, outputs=files, reference=str(tmp_path / "ref")))
    rows = [line.split("|")[1:3] for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert [row[0].strip() for row in rows[2:]] == files
    assert float(rows[2][1]) == 100
    sentences = (tmp_path / "out" / "sentences.csv").read_text(encoding="utf-8").splitlines()
    assert len(sentences) == 31
    assert sentences[1].startswith("1,100.00,")
    (tmp_path / "c").write_text("one\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"c has 1 lines but .*ref has 30; they must be the same lines"):
        compare(job(tmp_path, outputs=[str(tmp_path / "c")], reference=str(tmp_path / "ref")))


def test_outputs_that_are_not_what_they_should_be_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outputs = {"nfd": [unicodedata.normalize("NFD", line) for line in REFERENCES], "empty": ["<unk>", *[""] * 29]}
    for name, lines in {"ref": REFERENCES, **outputs}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        compare(job(tmp_path, outputs=[str(tmp_path / name) for name in outputs], reference=str(tmp_path / "ref")))
    assert "nfd: Normalisation would change 30 of 30 lines (nfc 30)" in caplog.text
    assert "empty: 1 of 30 lines of the translations hold an unknown piece" in caplog.text
    assert "empty: 29 of 30 lines of the translations are empty" in caplog.text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, r"Give either run_dirs=\[A,B\], finished trainings, or outputs="),
        ({"run_dirs": ["a"], "outputs": ["b"]}, r"Give either run_dirs=\[A,B\]"),
        ({"outputs": ["b"]}, "outputs need reference=FILE"),
        ({"outputs": ["b"], "reference": []}, "outputs need reference=FILE"),
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(job(tmp_path, **changes))
