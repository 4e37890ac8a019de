"""nmt.export_attention on tiny runs, and the files made from the maps."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from attention_runs import export, first_weights, job
from grids import SOAK
from jobs import job_of

import nmt
import nmt.insight.forced_maps
import nmt.insight.map_export
from nmt.cli.compose import configuration
from nmt.commands.export_attention import export_attention
from nmt.decoding.translator import Translator
from nmt.errors import Mistake
from nmt.insight.chosen_maps import chosen_maps
from nmt.maps.links import read_alignments
from nmt.maps.words import merge_pieces
from nmt.models import Luong
from nmt.text import normalize

FORMATS = ["png", "svg", "pdf", "csv", "alignments", "diagnostics", "viewer"]
EPS = float(np.finfo(np.float32).eps)


def test_all_maps_in_all_formats(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # One of them shows that a picture has every format.
    kinds = ("png", "svg", "pdf") if run == "maps_luong" or (SOAK and run != "maps_transformer") else ("png",)
    formats = [name for name in FORMATS if name in kinds or name not in ("png", "svg", "pdf")]
    every = {"formats": formats, "site": "all", "layer": "all", "head": "all"}
    folder = export(run, tmp_path, target="in.vi", **every)
    assert folder.lines == [1, 3]
    output = capsys.readouterr().out.splitlines()
    printed = [Path(line) for line in output if not line.startswith(("|", "Heads sorted by"))]
    assert "Heads sorted by coverage, worst first:" in output
    assert sum(line.startswith("| cross") for line in output) == len(list(np.ndindex(first_weights(folder).shape[:2])))
    assert all(path.is_file() and path.stat().st_size for path in printed)
    sites = folder.manifest["sites"]
    pictures = sum(site["layers"] * site["heads"] for site in sites.values())
    for kind in kinds:
        assert len(list((tmp_path / "pictures").glob(f"*.{kind}"))) == 2 * pictures
    with (tmp_path / "csv" / "00001.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    [first, _] = folder.sentences()
    assert len(rows) == sum(item.weights.size for item in first.maps)
    for row in rows[::7]:
        place = tuple(int(row[key]) for key in ("layer", "head", "row", "column"))
        item = first.site(row["site"])
        assert float(row["weight"]) == round(float(item.weights[place]), 6)
        assert (row["row_label"], row["column_label"]) == (item.outputs[place[2]], item.columns[place[3]])
    links = ("argmax", "argmax-of-source", "threshold", "intersection", "union", "grow-diag-final-and")
    named = {"source.txt", "target.txt", *(f"{name}.align" for name in links)}
    assert {path.name for path in (tmp_path / "alignments").iterdir()} == named
    assert (tmp_path / "viewer.html").is_file()


def test_weights_are_distributions_over_the_allowed_columns(run: str, tmp_path: Path) -> None:
    for sentence in export(run, tmp_path, target="in.vi", formats=[]).sentences():
        for item in sentence.maps:
            weights, sums = item.weights, item.weights.sum(-1)
            assert (weights >= 0).all()
            assert weights.max() > 0
            if item.site == "decoder_self":
                assert (weights * ~np.tril(np.ones(weights.shape[2:], dtype=bool)) == 0).all()
            columns = weights.shape[3]
            if item.local:
                assert (weights[~item.local.allowed] == 0).all()
                assert item.local.center.shape == weights.shape[:3]
                half_width = {"maps_bahdanau": 1, "maps_luong": 2}[run]
                near = np.abs(np.arange(columns) - item.local.center[..., None]) <= half_width
                np.testing.assert_array_equal(item.local.allowed, near)
            if item.local and item.local.prior is not None:
                sums = (weights / item.local.prior).sum(-1)
                deviation = 2 / 2
                gaussian = np.exp(-((np.arange(columns) - item.local.center[..., None]) ** 2) / (2 * deviation**2))
                # float32 rounds distance, square and quotient: four half units of the exponent. exp adds two units.
                exponent = -np.log(gaussian)
                bound = gaussian * EPS * (2 * exponent + 2) + np.finfo(np.float32).tiny
                assert (np.abs(item.local.prior - gaussian) <= bound).all()
            # A weight is an exponential over a sum of all: float32 rounds each, and a prior and its product.
            np.testing.assert_allclose(sums, 1, rtol=(columns + 4) * EPS, atol=0)
    assert {"maps_bahdanau": False, "maps_luong": True}.get(run, False) == any(
        item.local is not None and item.local.prior is not None for item in sentence.maps
    )


def test_chosen_sites_and_layers_are_those_of_the_whole_maps(here: Path, tmp_path: Path) -> None:
    whole = export("maps_transformer", tmp_path / "whole", target="in.vi", formats=[])
    some = export("maps_transformer", tmp_path / "some", target="in.vi", sites=["cross"], layers=[1], layer=0)
    assert {site: (about["layers"], about["layers_of_model"]) for site, about in some.manifest["sites"].items()} == {
        "cross": (1, [1])
    }
    for sentence, full in zip(some.sentences(), whole.sentences(), strict=True):
        [item] = sentence.maps
        np.testing.assert_array_equal(item.weights, full.site("cross").weights[1:])
        assert (item.columns, item.outputs) == (full.site("cross").columns, full.site("cross").outputs)
    assert (tmp_path / "some" / "alignments" / "argmax.align").is_file()
    of_source = export("maps_transformer", tmp_path / "self", target="in.vi", sites=["encoder_self"])
    assert [*of_source.manifest["sites"]] == ["encoder_self"]
    assert not (tmp_path / "self" / "alignments").exists()
    with pytest.raises(Mistake, match=r"No sentence has maps at cross; choose other sites, or add documents=FILE\."):
        list(chosen_maps(whole.manifest["sites"], ["cross"], None).of([]))


def test_local_windows_of_chosen_layers(here: Path, tmp_path: Path) -> None:
    whole = export("maps_luong", tmp_path, target="in.vi", formats=[])
    [sentence, _] = whole.sentences()
    item = sentence.site("cross")
    [chosen] = chosen_maps(whole.manifest["sites"], ["cross"], [0]).of([sentence])
    assert item.local is not None
    assert chosen.maps[0].local is not None
    np.testing.assert_array_equal(chosen.maps[0].local.center, item.local.center)
    np.testing.assert_array_equal(chosen.maps[0].local.prior, item.local.prior)


def test_without_a_target_every_hypothesis_of_the_search_has_maps(run: str, tmp_path: Path) -> None:
    folder = export(run, tmp_path, formats=["alignments"], search={"n_best": 2})
    assert [(item.line, item.rank) for item in folder.sentences()] == [(1, 1), (1, 2), (3, 1), (3, 2)]
    found = nmt.load(run, device="cpu").n_best(["one two three.", "", "three"], n_best=2)
    decode = sentencepiece.SentencePieceProcessor(model_file=f"{run}/tokenizer.model").decode_pieces
    texts = [normalize(decode(item.target_pieces)) for item in folder.sentences()]
    assert texts == [each.text for line in found for each in line]
    scores = [item.score for item in folder.sentences()]
    assert scores == [each.score for line in found for each in line]
    assert folder.manifest["made_from"]["lines"] == 3
    assert len((tmp_path / "alignments" / "argmax.align").read_text().splitlines()) == 3


def test_the_pharaoh_files_are_the_links_of_the_word_maps(here: Path, tmp_path: Path) -> None:
    folder = export("maps_transformer", tmp_path, target="in.vi", formats=["alignments"], layer=1, head=0, row="reads")
    links = {
        path.stem: [alignment.sure for alignment in read_alignments(path)]
        for path in (tmp_path / "alignments").glob("*.align")
    }
    texts = [(tmp_path / "alignments" / f"{name}.txt").read_text(encoding="utf-8") for name in ("source", "target")]
    assert texts == ["one two three.\n\nthree\n", "một hai ba.\n\nba\n"]
    assert all(len(lines) == 3 and lines[1] == frozenset() for lines in links.values())
    for sentence, line in zip(folder.sentences(), (0, 2), strict=True):
        weights = sentence.site("cross").weights[1, 0]
        spans = [merge_pieces(pieces) for pieces in (sentence.source_pieces, sentence.target_pieces)]
        by_hand = set()
        for j, (start, end) in enumerate(spans[1]):
            row = weights[start + 1 : end + 1].mean(0)
            by_hand.add((int(np.argmax([row[a:b].sum() for a, b in spans[0]])), j))
        assert links["argmax"][line] == by_hand
        assert links["intersection"][line] == links["argmax"][line] & links["argmax-of-source"][line]
        assert links["union"][line] == links["argmax"][line] | links["argmax-of-source"][line]


def test_the_manifest_describes_run_and_sites(here: Path, tmp_path: Path) -> None:
    manifest = export("maps_luong", tmp_path, formats=[]).manifest
    assert manifest["made_from"]["run_dir"] == "maps_luong"
    assert manifest["made_from"]["command"] == "python -m nmt.train THE COMMAND"
    assert manifest["made_from"]["target"] == "hypotheses of the search"
    assert manifest["sites"]["cross"]["window"] == {"class": "LocalP", "half_width": 2, "renormalize": False}
    assert manifest["sites"]["cross"]["scorer"] == "General"
    assert (manifest["sites"]["cross"]["layers"], manifest["sites"]["cross"]["heads"]) == (1, 2)


def test_long_lines_are_left_out_with_a_warning(here: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = export("maps_luong", tmp_path, target="in.vi", formats=[], max_tokens=9)
    assert folder.lines == [3]
    assert re.search(
        r"2 of 3 sentence pairs have no maps; .*left_out\.csv lists them\. Line 1: the source has \d+ pieces",
        caplog.text,
    )
    with (tmp_path / "left_out.csv").open(newline="") as file:
        reasons = {row["line"]: row["reason"] for row in csv.DictReader(file)}
    assert reasons["2"] == "the source is empty"
    assert re.fullmatch(r"the source has \d+ pieces with EOS, more than max_tokens=9", reasons["1"])
    (here / "three.en").write_text("three\n")
    export("maps_luong", tmp_path, input="three.en", formats=[], overwrite=True)
    assert not (tmp_path / "left_out.csv").exists()


def test_a_model_that_translates_nothing_is_not_blamed_on_the_file(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object, **__: object) -> tuple[list[Any], list[Any]]:
        return [[([], 0.0, None)]], [()]

    monkeypatch.setattr(Translator, "search_documents", nothing)
    (here / "one_line.en").write_text("one\n")
    message = (
        r"^maps_luong translates every line of one_line\.en to nothing: train it longer, or give translations with "
        r"target=FILE\.$"
    )
    with pytest.raises(Mistake, match=message):
        export("maps_luong", tmp_path, input="one_line.en", formats=[])


def test_an_export_replaces_an_earlier_one_only_with_overwrite(here: Path, tmp_path: Path) -> None:
    export("maps_luong", tmp_path, target="in.vi", formats=["png", "viewer"])
    (here / "one.en").write_text("one\n")
    with pytest.raises(
        Mistake, match="which already contains maps; choose another folder, or replace them with overwrite=true"
    ):
        export("maps_luong", tmp_path, input="one.en", formats=["csv"])
    assert (tmp_path / "viewer.html").is_file()
    export("maps_luong", tmp_path, input="one.en", formats=["csv"], overwrite=True)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"manifest.json", "maps/00001.npz", "csv/00001.csv"}


@pytest.mark.parametrize(
    ("lines", "changes", "sentence"),
    [
        ("\n\n", {}, r"No line of bad\.en has maps\. Line 1: the source is empty\."),
        ("", {}, r"bad\.en is empty; use a file with at least one line"),
        ("one\n", {"out": "in.en"}, "out is in.en, but in.en is a file; choose another folder"),
        (
            "one\n",
            {"out": "."},
            r"out is \., whose manifest\.json is damaged or belongs to another program; choose another folder",
        ),
    ],
)
def test_files_that_cannot_be_exported_are_refused(
    here: Path, tmp_path: Path, lines: str, changes: dict[str, Any], sentence: str
) -> None:
    (here / "bad.en").write_text(lines)
    (here / "manifest.json").write_text("{}")
    config = {"run_dir": "maps_luong", "device": "cpu", "input": "bad.en", "out": str(tmp_path), **changes}
    with pytest.raises(Mistake, match=sentence):
        export_attention(job("export_attention", **config))


def test_search_settings_with_a_given_target_are_refused(here: Path, tmp_path: Path) -> None:
    config = {"run_dir": "maps_luong", "input": "in.en", "target": "in.vi", "out": str(tmp_path)}
    asked = job_of("export_attention", {**configuration("export_attention", []), **config}, ("target", "search.n_best"))
    with pytest.raises(Mistake, match=r"search\.n_best has no effect on maps of a given target"):
        export_attention(asked)


def test_a_failed_export_changes_nothing(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export("maps_luong", tmp_path, target="in.vi", formats=["png", "alignments"])
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "mine.csv").write_text("x")
    (tmp_path / "pictures" / "mine.png").write_text("x")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    (here / "blank.en").write_text("\n\n")
    for changes in ({"input": "blank.en"}, {"target": "blank.en"}, {"search": {"n_best": 9}}):
        with pytest.raises(Mistake):
            export("maps_luong", tmp_path, overwrite=True, **changes)
    with monkeypatch.context() as patch:
        patch.setattr(nmt.insight.forced_maps.Recorder, "sentence", out_of_memory)
        with pytest.raises(MemoryError):
            export("maps_luong", tmp_path, target="in.vi", overwrite=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    export("maps_luong", tmp_path, target="in.vi", formats=[], overwrite=True)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    kept = {"csv/mine.csv", "pictures/mine.png"}
    assert left == kept | {"manifest.json", "left_out.csv", "maps/00001.npz"}


def out_of_memory(*_: object) -> None:
    raise MemoryError


def test_pairs_too_long_for_the_model_are_left_out_with_that_reason(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Luong, "max_source", property(lambda _: 7))
    export("maps_luong", tmp_path, formats=[])
    with (tmp_path / "left_out.csv").open(newline="") as file:
        reasons = {row["line"]: row["reason"] for row in csv.DictReader(file)}
    assert re.fullmatch(r"the source has \d+ pieces with EOS, more than the 7 that the model reads", reasons["1"])
    assert reasons["2"] == "the source is empty"


def test_drawing_many_sentences_is_warned_of(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(nmt.insight.map_export, "_MANY", 2)
    export("maps_luong", tmp_path, target="in.vi", formats=["svg"])
    assert "Drawing 3 sentence pairs takes a long time" in caplog.text


def test_sentence_diagnostics_measure_the_drawn_map(here: Path, tmp_path: Path) -> None:
    folder = export("maps_transformer", tmp_path, target="in.vi", formats=["diagnostics"])
    with (tmp_path / "sentence_diagnostics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["site"], row["layer"], row["head"]) for row in rows] == [("cross", "mean", "mean")] * 2
    for sentence in folder.sentences():
        mean = sentence.site("cross").weights.astype(float).mean((0, 1))
        [row] = [row for row in rows if row["line"] == str(sentence.line)]
        # The table has four decimals, and the measures divide each row by its sum, which float32 makes only nearly 1.
        shares = mean / mean.sum(-1, keepdims=True)
        printed = 0.5e-4 + len(mean) * mean.shape[1] * np.finfo(float).eps
        assert float(row["coverage"]) == pytest.approx(np.minimum(shares.sum(0), 1)[:-1].mean(), rel=0, abs=printed)
        assert float(row["special"]) == pytest.approx(shares[:, -1].mean(), rel=0, abs=printed)
    for name in ("diagnostics", "heads"):
        with (tmp_path / f"{name}.csv").open(newline="") as file:
            assert {row["site"] for row in csv.DictReader(file)} == {"cross"}, name
    coverages = [float(row["coverage"]) for row in rows]
    assert coverages == sorted(coverages)
