"""nmt.export_attention, draw_attention, align and ablate_attention, and the probes of a training, on tiny runs."""

import contextlib
import csv
import io
import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

import nmt
from nmt.evaluation.alignment import read_alignments
from nmt.evaluation.map_files import MapFolder
from nmt.evaluation.words import merge_pieces
from nmt.run.ablate_attention import ABLATIONS, ablate_attention, mean_queries, measurable, quality
from nmt.run.align import align
from nmt.run.build import load_run
from nmt.run.compose import Job, configuration
from nmt.run.draw_attention import draw_attention
from nmt.run.evaluate import split_task
from nmt.run.evaluation import Task
from nmt.run.export_attention import export_attention
from nmt.run.probes import write_film
from nmt.run.rundir import RunDirectory
from nmt.run.train import train
from nmt.text import EOS, normalize

RUNS: dict[str, list[str]] = {
    "bahdanau": ["model=bahdanau", "window=local_m", "window.half_width=1"],
    "luong": ["model=luong", "model.num_heads=2", "window=local_p", "window.half_width=2"],
    "transformer": ["model=transformer", "model.num_layers=2"],
}
SMALL = ["model.embedding_dim=6", "model.encoder_dim=8", "model.decoder_dim=8", "trainer.max_steps=4"]
FORMATS = ["png", "svg", "pdf", "csv", "alignments", "diagnostics", "viewer"]


@pytest.fixture(scope="module")
def folder(session_corpus: Path, tiny: Callable[..., list[str]]) -> Path:
    """The corpus with a run of each model, a file to translate and alignments of two splits."""
    torch.set_num_threads(1)
    for split in ("valid", "test"):
        lines = (session_corpus / f"{split}.en").read_text().splitlines()
        diagonals = [" ".join(f"{i}-{i}" for i in range(len(line.split()))) for line in lines]
        (session_corpus / f"{split}.en-vi.align").write_text("".join(f"{line}\n" for line in diagonals))
    (session_corpus / "in.en").write_text("one two three.\n\nthree\n")
    (session_corpus / "in.vi").write_text("một hai ba.\nba\nba\n", encoding="utf-8")
    common = [o for o in tiny(validation__every=2) if not o.startswith(("model", "run_dir"))]
    with contextlib.chdir(session_corpus), contextlib.redirect_stdout(io.StringIO()):
        averaged = [*RUNS["luong"], "ema_decay=0.5"]
        for name, own in {**RUNS, "averaged": averaged}.items():
            sizes = ["model.dim=12", "model.ffn_dim=19", "model.num_heads=2"] if name == "transformer" else SMALL[:3]
            extra = ["model.maxout_dim=6"] if name == "bahdanau" else []
            overrides = [*common, *own, *sizes, *extra, SMALL[3], f"run_dir=maps_{name}"]
            train(Job(configuration("train", overrides), (), "python -m nmt.train THE COMMAND", None))
    return session_corpus


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(folder)
    return f"maps_{request.param}"


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def job(name: str, **changes: Any) -> Job:
    return Job({**configuration(name, []), **changes}, (), "", None)


def export(run: str, out: Path, **changes: Any) -> MapFolder:
    given = {"run_dir": run, "device": "cpu", "input": "in.en", "out": str(out), **changes}
    export_attention(job("export_attention", **given))
    return MapFolder(out)


def first_weights(folder: MapFolder) -> np.ndarray:
    return next(folder.sentences()).site("cross").weights


def test_all_maps_in_all_formats(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    every = {"formats": FORMATS, "site": "all", "layer": "all", "head": "all"}
    folder = export(run, tmp_path, target="in.vi", **every)
    assert folder.lines == [1, 3]
    output = capsys.readouterr().out.splitlines()
    printed = [Path(line) for line in output if not line.startswith("|")]
    assert sum(line.startswith("| cross") for line in output) == len(list(np.ndindex(first_weights(folder).shape[:2])))
    assert all(path.is_file() and path.stat().st_size for path in printed)
    sites = folder.manifest["sites"]
    pictures = sum(site["layers"] * site["heads"] for site in sites.values())
    for kind in ("png", "svg", "pdf"):
        assert len(list((tmp_path / "pictures").glob(f"*.{kind}"))) == 2 * pictures
    with (tmp_path / "csv" / "00001.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    [first, _] = folder.sentences()
    assert len(rows) == sum(item.weights.size for item in first.maps)
    for row in rows[::7]:
        place = tuple(int(row[key]) for key in ("layer", "head", "row", "column"))
        item = first.site(row["site"])
        assert float(row["weight"]) == pytest.approx(float(item.weights[place]), abs=1e-6)
        assert (row["row_label"], row["column_label"]) == (item.outputs[place[2]], item.columns[place[3]])
    assert {path.stem for path in (tmp_path / "alignments").iterdir()} == {
        *("argmax", "argmax-of-source", "threshold", "intersection", "union", "grow-diag-final-and"),
    }
    assert (tmp_path / "viewer.html").is_file()


def test_weights_are_distributions_over_what_is_allowed(run: str, tmp_path: Path) -> None:
    for sentence in export(run, tmp_path, target="in.vi", formats=[]).sentences():
        for item in sentence.maps:
            weights, sums = item.weights, item.weights.sum(-1)
            assert (weights >= 0).all()
            assert weights.max() > 0
            if item.site == "decoder_self":
                assert (weights * ~np.tril(np.ones(weights.shape[2:], dtype=bool)) == 0).all()
            if item.local:
                assert (weights[~item.local.allowed] == 0).all()
                columns = weights.shape[3]
                assert item.local.center.shape == weights.shape[:3]
                half_width = {"maps_bahdanau": 1, "maps_luong": 2}[run]
                near = np.abs(np.arange(columns) - item.local.center[..., None]) <= half_width
                np.testing.assert_array_equal(item.local.allowed, near)
            if item.local and item.local.prior is not None:
                sums = (weights / item.local.prior).sum(-1)
                deviation = 2 / 2
                gaussian = np.exp(-((np.arange(columns) - item.local.center[..., None]) ** 2) / (2 * deviation**2))
                np.testing.assert_allclose(item.local.prior, gaussian, atol=1e-6)
            np.testing.assert_allclose(sums, 1, atol=1e-5)
    assert {"maps_bahdanau": False, "maps_luong": True}.get(run, False) == any(
        item.local is not None and item.local.prior is not None for item in sentence.maps
    )


def test_the_hypotheses_of_the_search_have_maps_by_rank(run: str, tmp_path: Path) -> None:
    folder = export(run, tmp_path, formats=["alignments"], search={"n_best": 2})
    assert [(item.line, item.rank) for item in folder.sentences()] == [(1, 1), (1, 2), (3, 1), (3, 2)]
    found = nmt.load(run, device="cpu").n_best(["one two three.", "", "three"], n_best=2)
    decode = sentencepiece.SentencePieceProcessor(model_file=f"{run}/tokenizer.model").decode_pieces
    texts = [normalize(decode(item.target_pieces)) for item in folder.sentences()]
    assert texts == [each.text for line in found for each in line]
    assert folder.manifest["made_from"]["lines"] == 3
    assert len((tmp_path / "alignments" / "argmax.align").read_text().splitlines()) == 3


def test_the_pharaoh_files_are_the_links_of_the_word_maps(here: Path, tmp_path: Path) -> None:
    folder = export("maps_transformer", tmp_path, target="in.vi", formats=["alignments"], layer=1, head=0, shift=1)
    links = {
        path.stem: [alignment.sure for alignment in read_alignments(path)]
        for path in (tmp_path / "alignments").iterdir()
    }
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


def test_the_manifest_says_what_was_exported(here: Path, tmp_path: Path) -> None:
    manifest = export("maps_luong", tmp_path, formats=[]).manifest
    assert manifest["made_from"]["run_dir"] == "maps_luong"
    assert manifest["made_from"]["command"] == "python -m nmt.train THE COMMAND"
    assert manifest["made_from"]["target"] == "hypotheses of the search"
    assert manifest["sites"]["cross"]["window"] == {"class": "LocalP", "half_width": 2, "renormalise": False}
    assert manifest["sites"]["cross"]["scorer"] == "General"
    assert (manifest["sites"]["cross"]["layers"], manifest["sites"]["cross"]["heads"]) == (1, 2)


def test_long_lines_have_no_maps_and_are_told(here: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = export("maps_luong", tmp_path, target="in.vi", formats=[], max_tokens=9)
    assert folder.lines == [3]
    assert "No maps of 2 sentence pairs with an empty side" in caplog.text
    assert "the first is that of line 1" in caplog.text


def test_maps_are_drawn_again_without_the_run(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export("maps_transformer", tmp_path / "maps", target="in.vi", formats=[])
    capsys.readouterr()
    common = {"maps": str(tmp_path / "maps"), "out": str(tmp_path / "out"), "lines": [3]}
    draw_attention(job("draw_attention", **common, formats=["png"], grid=True, site="encoder_self"))
    draw_attention(job("draw_attention", **common, formats=["pdf"], words=True, width=3.3, layer=0, head=1))
    printed = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    assert printed == ["00003.encoder_self.grid.png", "00003.cross.layer0.head1.pdf"]
    assert all((tmp_path / "out" / "pictures" / name).is_file() for name in printed)


def test_an_export_takes_the_place_of_an_earlier_one(here: Path, tmp_path: Path) -> None:
    export("maps_luong", tmp_path, target="in.vi", formats=["png", "viewer"])
    (here / "one.en").write_text("one\n")
    with pytest.raises(FileExistsError, match="which holds maps; choose another folder, or overwrite=true"):
        export("maps_luong", tmp_path, input="one.en", formats=["csv"])
    assert (tmp_path / "viewer.html").is_file()
    export("maps_luong", tmp_path, input="one.en", formats=["csv"], overwrite=True)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"manifest.json", "maps/00001.npz", "csv/00001.csv"}


def test_what_is_too_wide_for_the_page_is_left_out_and_told(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (here / "long.en").write_text("one two three " * 9 + "\nthree\n")
    (here / "short.vi").write_text("ba\nba\n")
    export("maps_luong", tmp_path, input="long.en", target="short.vi", formats=["pdf"], width=2)
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / "pictures" / "00002.cross.pdf")]
    assert "00001.cross.pdf is not drawn: A picture of" in caplog.text


@pytest.mark.parametrize(
    ("lines", "changes", "sentence"),
    [
        ("\n\n", {}, r"No line of bad\.en has maps; give lines that have text"),
        ("", {}, r"bad\.en is empty; give a file with at least one line"),
        ("one\n", {"out": "in.en"}, "out is in.en, which cannot be made a folder"),
        ("one\n", {"out": "."}, "is damaged or not a manifest of attention maps"),
    ],
)
def test_what_cannot_be_exported_is_told(
    here: Path, tmp_path: Path, lines: str, changes: dict[str, Any], sentence: str
) -> None:
    (here / "bad.en").write_text(lines)
    (here / "manifest.json").write_text("{}")
    config = {"run_dir": "maps_luong", "device": "cpu", "input": "bad.en", "out": str(tmp_path), **changes}
    with pytest.raises((ValueError, FileNotFoundError), match=sentence):
        export_attention(job("export_attention", **config))


def test_a_search_has_no_part_in_given_targets(here: Path, tmp_path: Path) -> None:
    config = {"run_dir": "maps_luong", "input": "in.en", "target": "in.vi", "out": str(tmp_path)}
    asked = Job({**configuration("export_attention", []), **config}, ("target", "search.n_best"), "", None)
    with pytest.raises(ValueError, match=r"search\.n_best has no part in maps of a given target"):
        export_attention(asked)


def test_several_folders_make_one_page(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(export(f"maps_{name}", tmp_path / name, formats=[]).path) for name in ("luong", "transformer")]
    capsys.readouterr()
    draw_attention(job("draw_attention", maps=folders, formats=["viewer"], out=str(tmp_path / "both")))
    assert capsys.readouterr().out.split() == [str(tmp_path / "both" / "viewer.html")]
    page = (tmp_path / "both" / "viewer.html").read_text(encoding="utf-8")
    assert "maps_luong" in page
    assert "maps_transformer" in page


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"maps": "nowhere"}, "nowhere is no folder of attention maps"),
        ({"maps": []}, "maps is an empty list"),
        ({"maps": ["MAPS", "MAPS"]}, r"2 folders of maps go into one page only: add formats=\[viewer\]"),
        ({"maps": ["MAPS", "MAPS"], "formats": ["viewer"]}, "out is not given"),
        ({"maps": "MAPS", "formats": []}, "formats is an empty list; give at least one of png"),
        ({"maps": "MAPS", "site": "encoder_self"}, "no attention at site 'encoder_self' in this model, only at cross"),
        ({"maps": "MAPS", "lines": [0]}, "lines holds '0'"),
        ({"maps": "MAPS", "lines": [2]}, "has no maps of line 2"),
        ({"maps": "MAPS", "layer": 7}, "layer is 7; cross has one layer, 0: give one, or leave it out"),
    ],
)
def test_what_cannot_be_drawn_is_told(here: Path, tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    path = str(export("maps_luong", tmp_path, formats=[]).path)
    given = changes["maps"]
    changes = changes | {"maps": [path] * len(given) if isinstance(given, list) else given.replace("MAPS", path)}
    with pytest.raises((ValueError, FileNotFoundError), match=sentence):
        draw_attention(job("draw_attention", **changes))


def test_alignment_rates_of_every_map(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    align(job("align", run_dir=run, device="cpu"))
    output = capsys.readouterr().out
    with (Path(run) / "evaluation" / "test" / "alignment.csv").open(newline="") as file:
        *rows, diagonal = csv.DictReader(file)
    layers, heads = {"maps_bahdanau": (1, 1), "maps_luong": (1, 2), "maps_transformer": (2, 2)}[run]
    assert len(rows) == 2 * (1 + layers * (1 + heads))
    valid = [float(row["AER valid"]) for row in rows]
    assert valid == sorted(valid)
    assert (diagonal["layer"], diagonal["AER"]) == ("diagonal", "0.000")
    assert f"AER {rows[0]['AER']} (shift {rows[0]['shift']}" in output
    assert "the diagonal 0.000)" in output


def test_alignment_rates_need_gold_ones(here: Path) -> None:
    with pytest.raises(ValueError, match=r"no gold alignment of these sentences; it lies beside a split as PREFIX"):
        align(job("align", run_dir="maps_luong", device="cpu", source="in.en", reference="in.vi"))


def test_ablations_of_every_head(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ablate_attention(job("ablate_attention", run_dir=run, device="cpu", sentences=3, out=str(tmp_path)))
    output = capsys.readouterr().out
    with (tmp_path / "ablation.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    heads = {"maps_bahdanau": 1, "maps_luong": 2, "maps_transformer": 3 * 2 * 2}[run]
    places = {(row["site"], row["layer"], row["head"], row["way"]) for row in rows}
    assert len(places) == len(rows) == 4 * heads
    losses = [float(row["change of log-probability per piece"]) for row in rows]
    assert losses == sorted(losses)
    assert any(losses), "no ablation changed anything"
    assert output.startswith("Intact: -")
    assert all(np.isfinite(float(row["change of BLEU"])) for row in rows)


def test_bleu_can_be_left_out(here: Path, tmp_path: Path) -> None:
    config = {"run_dir": "maps_luong", "device": "cpu", "out": str(tmp_path), "bleu": False, "ways": ["off"]}
    ablate_attention(job("ablate_attention", **config, source="in.en", reference="in.vi"))
    with (tmp_path / "ablation.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["change of BLEU"] for row in rows] == ["", ""]
    record = json.loads((tmp_path / "ablation.json").read_text())
    assert (record["sentences"], record["intact"]["bleu"]) == (2, None)


@pytest.mark.parametrize("way", ABLATIONS)
def test_an_ablation_changes_the_model_inside_and_leaves_it_as_it_was(run: str, way: str) -> None:
    trained = load_run(Path(run), "cpu")
    task = measurable(trained, split_task(trained, "valid"), 3, 1000)
    intact = quality(trained, task, bleu=False, batch_tokens=1000)
    attention = trained.model.sites["cross"][0]
    with ABLATIONS[way](attention, 0, mean_queries(trained, task)[attention][0]):
        assert quality(trained, task, bleu=False, batch_tokens=1000) != intact
    assert quality(trained, task, bleu=False, batch_tokens=1000) == intact


def test_mean_queries_are_those_of_the_sentences_without_padding(here: Path) -> None:
    trained = load_run(Path("maps_transformer"), "cpu")
    task = measurable(trained, split_task(trained, "valid"), 2, 1000)
    attention = trained.model.sites["encoder_self"][0]
    asked: list[torch.Tensor] = []
    hook = attention.register_forward_pre_hook(lambda _, arguments: asked.append(arguments[0][0]))
    for source in task.sources:
        ids = torch.tensor([[*trained.tokenizers.source.encode(source), EOS]])
        trained.model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
    hook.remove()
    torch.testing.assert_close(mean_queries(trained, task)[attention], torch.cat(asked, dim=1).mean(dim=1))


def test_pairs_that_cannot_be_measured_are_left_out(here: Path) -> None:
    trained = load_run(Path("maps_luong"), "cpu")
    task = split_task(trained, "valid")
    mixed = Task(["", *task.sources], [["x", *task.references[0]]], None, None, task.out)
    assert measurable(trained, mixed, 2, 1000).sources == task.sources[:2]
    empty = Task([""], [["x"]], None, None, task.out)
    with pytest.raises(ValueError, match="No sentence pair has text on both sides that the model can read"):
        measurable(trained, empty, None, 1000)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ways": ["of"]}, "Unknown way 'of'. Did you mean 'off'?"),
        ({"site": "self"}, "no attention at site 'self' in this model, only at cross; 'all' is each of them"),
        ({"sentences": 0}, "sentences is 0; it must be a whole number of at least 1"),
        ({"ways": []}, "ways is an empty list; give at least one of off, uniform, shuffled, frozen"),
        ({"source": "in.en"}, "source is given without reference"),
    ],
)
def test_what_cannot_be_ablated_is_told(here: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence.replace("?", r"\?")):
        ablate_attention(job("ablate_attention", run_dir="maps_luong", device="cpu", **changes))


def test_a_training_leaves_the_same_sentences_at_each_validation_and_a_film(run: str) -> None:
    steps = sorted((Path(run) / "probes").glob("step_*"))
    assert [step.name for step in steps] == ["step_0000002", "step_0000004"]
    first, last = (list(MapFolder(step).sentences()) for step in steps)
    assert [(item.line, item.target_pieces) for item in first] == [(item.line, item.target_pieces) for item in last]
    assert len(first) == 3
    changes = [
        np.abs(one.weights - other.weights).max()
        for before, after in zip(first, last, strict=True)
        for one, other in zip(before.maps, after.maps, strict=True)
    ]
    assert max(changes) > 0, "nothing was learned between the validations"
    assert [MapFolder(step).manifest["made_from"]["step"] for step in steps] == [2, 4]
    page = (Path(run) / "probes" / "viewer.html").read_text(encoding="utf-8")
    assert "step 2" in page
    assert "step 4" in page


def test_the_probes_of_a_run_are_drawn_together(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probes = ["maps_luong/probes", "maps_bahdanau/probes/step_0000004"]
    draw_attention(job("draw_attention", maps=probes, formats=["viewer"], out=str(tmp_path)))
    page = (tmp_path / "viewer.html").read_text(encoding="utf-8")
    assert "step 4 (maps_luong/probes/step_0000004)" in page
    assert "step 4 (maps_bahdanau/probes/step_0000004)" in page
    assert '"step 2"' in page


def test_a_probe_that_was_not_finished_is_no_part_of_the_film(here: Path) -> None:
    run = RunDirectory(here / "maps_luong")
    (run.path / "probes" / "step_0000003" / "maps").mkdir(parents=True)
    write_film(run)
    page = (run.path / "probes" / "viewer.html").read_text(encoding="utf-8")
    shutil.rmtree(run.path / "probes" / "step_0000003")
    assert '"step 2"' in page
    assert '"step 3"' not in page


@pytest.mark.parametrize("name", ["maps_luong", "maps_averaged"])
def test_the_probe_of_the_best_step_is_what_the_finished_run_attends_to(here: Path, tmp_path: Path, name: str) -> None:
    """Also where the weights that are validated and kept are a moving average of those that train."""
    best = json.loads(Path(f"{name}/metrics.json").read_text())["best"]["step"]
    probe = list(MapFolder(Path(f"{name}/probes/step_{best:07}")).sentences())
    folder = export(name, tmp_path, input="valid.en", target="valid.vi", formats=[])
    again = list(folder.sentences([item.line for item in probe]))
    for one, other in itertools.zip_longest(probe, again):
        np.testing.assert_allclose(one.site("cross").weights, other.site("cross").weights, atol=1e-5)
