"""The comparison of systems: rows, means over seeds, significance, and the files it writes."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import Mistake
from nmt.evaluation.scores import headline_metrics
from nmt.evaluation.significance import approximate_randomization, holm, multi_bootstrap
from nmt.scoring.score_table import (
    SeedGroup,
    System,
    file_systems,
    means_section,
    paper_table,
    reference_files,
    seed_groups,
    system_section,
    write_comparison,
)
from nmt.tables import Table

REFERENCES = [f"Câu số {n} rất hay và rất dài." for n in range(30)]


def system(settings: dict[str, str], drop: int = 0, **metrics: Any) -> System:
    """A system that is wrong in `drop` of its lines."""
    hypotheses = ["không phải vậy đâu"] * drop + REFERENCES[drop:]
    values = {"BLEU": 100.0 - drop, "chrF2": 99.0 - drop, "TER": 1.0 * drop}
    scores = [
        {"name": name, "value": value, "interval": [value - 0.5, value + 0.5], "signature": f"sig:{name}"}
        for name, value in values.items()
    ]
    return System(settings, hypotheses, {"scores": scores, "perplexity": {"word": 3.0 + drop, "lines": 30}}, metrics)


def three() -> list[System]:
    """Two seeds of one setting and one of another."""
    return [
        system({"job": str(n), "scorer": scorer, "seed": seed}, drop)
        for n, (scorer, seed, drop) in enumerate([("dot", "1", 1), ("dot", "2", 3), ("none", "1", 14)])
    ]


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def printed(rows: Any) -> list[list[str]]:
    return [[str(cell) for cell in row] for row in rows]


def test_a_row_has_what_differs_and_its_figures_and_no_column_is_empty() -> None:
    rows = [system({"scorer": "dot"}, parameters=12345), system({"scorer": "none"}, 2)]
    table = system_section(rows, [1.0, 0.25]).table
    assert table.header == ["scorer", "BLEU", "p", "chrF2", "TER", "perplexity", "parameters"]
    assert printed(table.rows) == [
        ["dot", "100.00 [99.50, 100.50]", "", "99.00 [98.50, 99.50]", "0.00 [-0.50, 0.50]", "3.00", "12,345"],
        ["none", "98.00 [97.50, 98.50]", "0.250", "97.00 [96.50, 97.50]", "2.00 [1.50, 2.50]", "5.00", ""],
    ]


def test_a_file_beside_runs_has_no_settings_and_a_run_no_figures_of_a_file() -> None:
    run, file = system({"system": "runs/a", "scorer": "dot"}), system({"system": "b.vi"})
    for rows in ([run, file], [file, run]):
        table = system_section(rows).table
        assert list(table.header[:2]) == ["system", "scorer"]
        assert [row[:2] for row in table.rows] == [[r.settings["system"], r.settings.get("scorer", "")] for r in rows]


def test_seeds_of_equal_settings_are_grouped() -> None:
    rows = three()
    assert seed_groups(rows) == [SeedGroup({"scorer": "dot"}, rows[:2]), SeedGroup({"scorer": "none"}, rows[2:])]
    assert seed_groups(rows[1:]) == []
    assert seed_groups([system({"scorer": "dot"}), system({"scorer": "none"})]) == []


def test_seeds_are_grouped_beside_a_file_of_translations(tmp_path: Path) -> None:
    runs = [system({"system": f"runs/{seed}", "seed": seed}, drop) for seed, drop in (("1", 1), ("2", 3))]
    file = system({"system": "other.vi"}, 14)
    assert seed_groups([*runs, file]) == [SeedGroup({}, runs), SeedGroup({"system": "other.vi"}, [file])]
    comparison = write_comparison([*runs, file], [REFERENCES], tmp_path)
    assert list(comparison.sections["comparison_means"].rows) == ["all settings are equal", "other.vi"]
    assert list(comparison.sections["comparison"].rows) == ["runs/1, seed 1", "runs/2, seed 2", "other.vi"]


def test_a_setting_has_the_mean_and_deviation_of_its_seeds_and_one_p() -> None:
    table = means_section(seed_groups(three()), [1.0, 0.25]).table
    assert table.header == ["scorer", "seeds", "BLEU", "p", "chrF2", "TER", "perplexity"]
    assert printed(table.rows) == [
        ["dot", "2", "98.00 ± 1.41", "", "97.00 ± 1.41", "2.00 ± 1.41", "5.00 ± 1.41"],
        ["none", "1", "86.00", "0.250", "85.00", "14.00", "17.00"],
    ]


def test_every_form_of_the_report_has_the_means_over_seeds(tmp_path: Path) -> None:
    rows = three()
    text = write_comparison(rows, [REFERENCES], tmp_path).markdown()
    assert "Mean ± standard deviation over seeds:" in text
    assert "98.00 ± 1.41" in text
    assert text + "\n" == (tmp_path / "comparison.md").read_text(encoding="utf-8")
    tex = (tmp_path / "comparison.tex").read_text(encoding="utf-8")
    assert r"98.00 {\scriptsize $\pm$ 1.41}" in tex
    assert tex.count(r"\begin{tabular}") == 2
    metric = headline_metrics(tokenized=False)["BLEU"]
    p = multi_bootstrap([[each.hypotheses for each in rows[:2]], [rows[2].hypotheses]], [REFERENCES], metric)[1]
    dot, none = read_csv(tmp_path / "comparison_means.csv")
    assert (dot["BLEU mean"], dot["seeds"], dot["p"]) == ("98.0", "2", "")
    assert float(dot["BLEU deviation"]) == pytest.approx(2**0.5, rel=4 * sys.float_info.epsilon)
    assert (none["BLEU deviation"], float(none["p"])) == ("", p)
    found = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))["means"]
    assert found[0]["BLEU"] == {"mean": 98.0, "deviation": pytest.approx(2**0.5, rel=4 * sys.float_info.epsilon)}
    assert [each["settings"] for each in found] == [{"scorer": "dot"}, {"scorer": "none"}]
    assert found[1]["p"] == p
    write_comparison(rows[1:], [REFERENCES], tmp_path)  # without seeds, there are no means
    assert not (tmp_path / "comparison_means.csv").exists()


def test_with_several_seeds_no_run_is_tested_against_a_single_run(tmp_path: Path) -> None:
    text = write_comparison(three(), [REFERENCES], tmp_path).markdown()
    assert "row 1; by the multi-bootstrap over sentences and seeds, 1,000 resamples (Sellam et al. 2022)." in text
    assert "A mean of one seed cannot show how much seeds differ" in text
    four = [*three(), system({"job": "3", "scorer": "none", "seed": "2"}, 12)]
    assert "A mean of one seed" not in write_comparison(four, [REFERENCES], tmp_path / "four").markdown()
    assert "p" not in read_csv(tmp_path / "comparison.csv")[0]
    found = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    assert [each["p"] for each in found["systems"]] == [None] * 3


def test_without_seeds_p_compares_runs(tmp_path: Path) -> None:
    rows = [system({"scorer": "dot"}), system({"scorer": "none"}, 9), system({"scorer": "general"})]
    text = write_comparison(rows, [REFERENCES], tmp_path).markdown()
    assert (
        "p: how often two equally good systems differ in BLEU by at least as much as this row and row 1; by "
        "approximate randomization over sentences, 10,000 trials (Riezler & Maxwell 2005), corrected for 2 comparisons "
        "(Holm 1979)."
    ) in text
    assert "Row 3 (counted without the header) does not differ significantly from row 1 (p >= 0.05)." in text
    metric = headline_metrics(tokenized=False)["BLEU"]
    p_values = approximate_randomization([each.hypotheses for each in rows], [REFERENCES], metric)
    corrected = [1.0, *holm(p_values[1:])]
    assert corrected[1] == 2 * p_values[1] < 0.05
    assert [each["p"] for each in read_csv(tmp_path / "comparison.csv")] == ["", str(corrected[1]), "1.0"]
    found = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    assert [(each["p"], each["p_uncorrected"]) for each in found["systems"]] == list(
        zip(corrected, p_values, strict=True)
    )
    assert found["means"] == []
    assert not (tmp_path / "comparison_means.csv").exists()
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_csv_has_plain_numbers_and_two_columns_for_an_interval(tmp_path: Path) -> None:
    write_comparison(
        [system({"scorer": "dot"}, parameters=12345, target_tokens_per_second=6789)], [REFERENCES], tmp_path
    )
    [row] = read_csv(tmp_path / "comparison.csv")
    assert (row["BLEU"], row["BLEU low"], row["BLEU high"]) == ("100.0", "99.5", "100.5")
    assert (row["parameters"], row["tokens/s"]) == ("12345", "6789")
    assert "12,345" in (tmp_path / "comparison.md").read_text(encoding="utf-8")
    tex = (tmp_path / "comparison.tex").read_text(encoding="utf-8").splitlines()
    assert tex[0] == r"\begin{tabular}{@{}lrrr@{}}"
    assert tex[2] == r"scorer & BLEU & chrF2 & PPL \\"
    assert tex[4] == r"dot & 100.00 {\scriptsize [99.50, 100.50]} & 99.00 & 3.00 \\"


def test_a_table_for_a_paper_has_short_names_that_differ() -> None:
    table = Table(["a.dim", "b.dim", "trainer.max_steps", "MiB"], [["1", "2", "3", "4"]])
    assert paper_table(table) == Table(["a.dim", "b.dim", "max_steps"], [["1", "2", "3"]])


def test_jobs_without_a_result_are_listed_with_the_reason(tmp_path: Path) -> None:
    text = write_comparison(
        [system({"scorer": "dot"})], [REFERENCES], tmp_path, {"job 1": "num_heads=5 is too many"}
    ).markdown()
    assert text.endswith("Without a result:\n\n- job 1: num_heads=5 is too many")
    found = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    assert found["without_result"] == {"job 1": "num_heads=5 is too many"}


def test_a_perplexity_that_leaves_out_lines_is_not_compared() -> None:
    short = system({"scorer": "location"})
    short.scores["perplexity"]["lines"] = 29
    assert "perplexity" not in system_section([short]).table.header


def test_scores_of_tokens_and_of_plain_text_are_not_compared(tmp_path: Path) -> None:
    tokens, plain = system({"output": "a"}), system({"output": "b"})
    tokens.scores["scores"][0]["signature"] = "nrefs:1|tok:none|v"
    with pytest.raises(Mistake, match="BLEU on tokens and others BLEU on plain text, which are not comparable"):
        write_comparison([tokens, plain], [REFERENCES], tmp_path)


def test_files_of_translations_get_every_score_with_interval_and_signature(tmp_path: Path) -> None:
    for name, lines in {"ref": REFERENCES, "a": ["sai"] * 9 + REFERENCES[9:]}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    references = reference_files([str(tmp_path / "ref")])
    assert [*references.values()] == [REFERENCES]
    [found] = file_systems([str(tmp_path / "a")], references, column="output", tokenized=False)
    scores = {score["name"]: score for score in found.scores["scores"]}
    assert {"BLEU", "chrF2", "TER"} <= set(scores)
    for score in scores.values():
        assert score["interval"][0] < score["value"] < score["interval"][1]
        assert "version:" in score["signature"]
    text = write_comparison([found], [*references.values()], tmp_path / "out").markdown()
    assert "- TER nrefs:1" in text
    assert {"BLEU low", "chrF2 low", "TER low"} <= set(read_csv(tmp_path / "out" / "comparison.csv")[0])


@pytest.mark.parametrize("width", [80, 200])
def test_on_a_terminal_every_line_fits_and_no_label_is_cut(tmp_path: Path, width: int) -> None:
    name = "runs/sample_en-vi/transformer_gaussian_learned_global_softmax/seed"
    figures = {"parameters": 1234567, "target_tokens_per_second": 12345, "peak_memory_mib": 1234}
    rows = [
        system({"run": f"{name}{seed}", "scorer": scorer, "seed": seed}, drop, **figures)
        for seed, scorer, drop in [("1", "gaussian_learned", 1), ("2", "gaussian_learned", 3), ("1", "none", 14)]
    ]
    comparison = write_comparison(
        rows, [REFERENCES], tmp_path, {"job 7": "num_heads=5 does not divide model.dim=64 " * 3}
    )
    screen = comparison.screen(width)
    assert max(map(len, screen.splitlines())) <= width
    words = {word.rstrip(",") for word in screen.split()}
    for section in comparison.sections.values():
        for row in section.table.rows:
            for cell in row:
                assert {word.rstrip(",") for word in str(cell).split()} <= words
    assert "…" not in screen
    assert screen.count("perplexity") == 2  # each column once, however many tables there are
    assert set(comparison.notes) <= {" ".join(block.split()) for block in screen.split("\n\n")}


def test_a_table_for_a_paper_names_runs_by_what_differs() -> None:
    paths = [f"runs/sample_en-vi/{name}/seed1" for name in ("luong_dot", "luong_general")]
    table = Table(["run", "BLEU"], [[path, "1"] for path in paths])
    assert paper_table(table).rows == [["luong_dot/seed1", "1"], ["luong_general/seed1", "1"]]
