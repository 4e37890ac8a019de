"""Two finished runs in Python and in the commands that compare and combine them."""

import contextlib
import io
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from jobs import job_of

import nmt
from nmt.cli.compose import configuration
from nmt.commands.compare import compare
from nmt.commands.evaluate import evaluate
from nmt.commands.export_attention import export_attention
from nmt.commands.score import score
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.evaluation.scores import sentence_chrf
from nmt.insight.interventions import Intervention
from nmt.maps.map_files import MapFolder
from nmt.run import Run
from nmt.runs.load import load_run, load_runs
from nmt.runs.memory import OutOfMemory
from nmt.runs.precision import with_precision
from nmt.runs.search import build_translator
from nmt.scoring.forced_scores import log_probs
from nmt.text.dictionary import Dictionary

LINES = ["one two.", "", "three four five."]


@pytest.fixture(scope="module")
def folder(session_corpus: Path, tiny: Callable[..., list[str]]) -> Path:
    """The corpus with the runs a and b of two seeds, and c of another tokenizer."""
    torch.set_num_threads(1)
    changes: dict[str, dict[str, object]] = {"a": {}, "b": {"seed": 2}, "c": {"tokenizer__size": 291}}
    with contextlib.chdir(session_corpus), contextlib.redirect_stdout(io.StringIO()):
        for name, own in changes.items():
            overrides = tiny(trainer__max_steps=7, run_dir=name, **own)
            train(job_of("train", configuration("train", overrides), command="python -m nmt.train THE COMMAND"))
    return session_corpus


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(here: Path) -> Run:
    return nmt.load("a", device="cpu")


def job(name: str, **changes: Any) -> Job:
    return job_of(name, {**configuration(name, []), "device": "cpu", **changes})


def test_translations_come_with_log_probs_that_scoring_gives_again(run: Run) -> None:
    found = run.n_best(LINES, n_best=2)
    assert run.translate(LINES) == [each[0].text if each else "" for each in found]
    assert [len(each) for each in found] == [2, 0, 2]
    assert all(math.isfinite(value) and value < 0 for value in run.score(LINES, ["một hai.", "", "ba."]))


def test_unknown_characters_are_those_of_what_the_model_reads(run: Run) -> None:
    lines = ["one 😀", "😀"]
    assert run.unknown_characters(lines) == ["", ""]
    assert run.unknown_characters(lines, verbatim=True) == ["😀", "😀"]
    assert run.unknown_characters(lines, prefixes=["", "ba"]) == ["", "😀"]
    with pytest.raises(Mistake, match="There are 2 lines but 1 prefixes: pass one for each line"):
        run.unknown_characters(lines, prefixes=[""])


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_scores_of_another_precision_are_those_of_the_converted_model(here: Path, run: Run, precision: str) -> None:
    """How far they are from float32 is in test_precision.py."""
    other = nmt.load("a", device="cpu", precision=precision)
    lines = ["một hai.", "", "ba bốn năm."]
    exact, found = run.score(LINES, lines), other.score(LINES, lines)
    assert exact != found
    [trained] = nmt.load("a", device="cpu").runs
    converted = trained._replace(model=with_precision(trained.model, precision, trained.device))
    assert found == log_probs([converted], LINES, lines)
    assert [bool(line) for line in other.translate(LINES)] == [True, False, True]


def test_an_evaluation_records_its_precision(here: Path, tmp_path: Path) -> None:
    evaluate(job("evaluate", run_dir="a", precision="int8", out=str(tmp_path)))
    assert json.loads((tmp_path / "scores.json").read_text())["precision"] == "int8"


def test_a_translation_begins_with_its_prefix_and_settings_change_the_search(run: Run) -> None:
    assert run.translate(LINES, prefixes=["hai ba", "", ""], beam_size=1)[0].startswith("hai ba")
    with pytest.raises(Mistake, match=r"Unknown setting of this search 'search.beam'. Did you mean 'search.beam_size'"):
        run.translate(LINES, beam=3)


def test_searches_have_names_and_the_best_may_be_the_one_that_the_others_are_like(run: Run) -> None:
    drawn = run.n_best(LINES, search="sampling", samples=7, temperature=1.5)
    assert [len(each) for each in drawn] == [7, 0, 7]
    settings: dict[str, Any] = {"search": "sampling", "samples": 7, "temperature": 1.5}
    best = run.translate(LINES, minimum_bayes_risk=True, **settings)
    for text, each in zip(best, drawn, strict=True):
        texts = [translation.text for translation in each]
        risk = {one: sum(sentence_chrf(one, other) for other in texts) - 100 for one in texts}
        assert not texts or risk[text] == pytest.approx(max(risk.values()))
    with pytest.raises(Mistake, match=r"Unknown search 'sample'. Did you mean 'sampling'\?"):
        run.translate(LINES, search="sample")
    with pytest.raises(Mistake, match="the search finds only 1"):
        run.translate(LINES, minimum_bayes_risk=True)


def test_a_search_that_fills_the_memory_says_what_to_lower(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        torch.empty(1 << 62, dtype=torch.uint8)  # more than any machine has

    monkeypatch.setattr("nmt.decoding.binding.pad_source", full)
    for search in ("beam", "sampling"):
        with pytest.raises(
            OutOfMemory, match=r"translating 2 sentences of up to \d+ pieces: lower batch_tokens, or the search's beam"
        ):
            run.translate(LINES, search=search)


def test_perplexity_is_that_of_the_scores(run: Run) -> None:
    found = run.perplexity(["one two.", "three"], ["một hai.", "ba"])
    nats = -sum(run.score(["one two.", "three"], ["một hai.", "ba"]))
    assert found.word == round(math.exp(nats / (3 + 2)), 4)
    assert found.lines == 2


def test_maps_are_arrays_of_the_translation_or_of_a_given_target(run: Run) -> None:
    maps = run.attend(LINES, ["một hai.", "", "ba."])
    assert maps[1] == []
    assert [item.site for item in maps[0]] == ["encoder_self", "decoder_self", "cross"]
    assert all(item.weights.shape[2:] == (len(item.inputs), len(item.columns)) for item in maps[0])
    own = run.attend(LINES[:1])[0]["cross"]
    assert own.outputs[:-1] == run.runs[0].tokenizers.target.pieces(build_ids(run, LINES[0]))


def test_lines_may_come_from_an_iterator(run: Run) -> None:
    targets = ["một hai.", "", "ba."]
    assert run.perplexity(iter(LINES), iter(targets)) == run.perplexity(LINES, targets)
    assert list(map(len, run.attend(iter(LINES)))) == [3, 0, 3]
    assert list(map(len, run.attribute(iter(LINES), method="gradient_x_input"))) == [1, 0, 1]


def build_ids(run: Run, line: str) -> list[int]:
    """The ids of the best hypothesis."""
    sources = run.runs[0].tokenizers.source.encode_all([line])
    return run._translator(None, {}).search_ids(sources)[0][0].ids


@pytest.mark.parametrize("call", ["score", "attend"])
def test_strings_and_unequal_numbers_of_lines_are_refused(run: Run, call: str) -> None:
    with pytest.raises(Mistake, match="sources must be a list of strings, not 'abc'"):
        getattr(run, call)("abc", "xyz")
    with pytest.raises(Mistake, match="2 sources but 1 targets: each source needs one target"):
        getattr(run, call)(["a", "b"], ["x"])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (None, r"^lines must be a list of strings, not None\.$"),
        ("abc", r"^lines must be a list of strings, not 'abc'\.$"),
        (["a", 1], r"^lines must be a list of strings, but lines\[1\] is 1\.$"),
        (["a", "b\udce9"], r"^lines\[1\] contains an unpaired surrogate; pass valid Unicode\.$"),
    ],
)
@pytest.mark.parametrize("call", ["translate", "n_best"])
def test_lines_that_are_no_strings_are_refused(run: Run, call: str, lines: Any, message: str) -> None:
    # Without the type checks of the tests, as a user calls it.
    with pytest.raises(Mistake, match=message):
        getattr(Run, call).__wrapped__(run, lines)


def test_its_repr_says_what_is_loaded(run: Run) -> None:
    one = "direction=en-vi, model=Transformer, scorer=ScaledDot, device=cpu, precision=float32)"
    assert repr(run) == f"Run(run_dir='a', {one}"
    assert repr(nmt.load(["a", "b"], device="cpu")) == f"Ensemble({run!r}, Run(run_dir='b', {one})"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam_size": 100000}, r"search\.beam_size is 100000; it must be between 1 \(greedy search\) and 1000"),
        (
            {"constraints": {"min_length": 100000}},
            r"min_length is 100000, but max_length_ratio x 256 source pieces \+ max_length_offset is only 259: use at "
            "most 259, or raise max_length_ratio",
        ),
    ],
)
def test_searches_that_would_not_end_or_fit_are_refused(run: Run, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        run.translate(LINES, **settings)


def test_an_ensemble_translates_and_scores_and_has_no_maps(here: Path) -> None:
    both = nmt.load(["a", "b"], device="cpu")
    assert len(both.translate(LINES)) == 3
    assert len(both.score(LINES, LINES)) == 3
    with pytest.raises(Mistake, match="Each of the 2 runs has its own attention; load only one"):
        both.attend(LINES)
    with pytest.raises(Mistake, match="c and a cannot translate together: their tokenizers differ"):
        nmt.load(["a", "c"], device="cpu")
    with pytest.raises(Mistake, match="run_dir is an empty list"):
        nmt.load([], device="cpu")


def test_files_of_another_run_are_refused(here: Path, tmp_path: Path) -> None:
    copy = shutil.copytree("a", tmp_path / "copy")
    shutil.copy("c/tokenizer.model", copy)
    with pytest.raises(Mistake, match=r"tokenizer\.model is not the tokenizer of this run \(its SHA-256 is not"):
        nmt.load(copy)
    shutil.copy("a/tokenizer.model", copy)
    shutil.copy("c/model.safetensors", copy)
    with pytest.raises(Mistake, match=r"safetensors does not hold the weights of .* with vocabularies of 293 and 293"):
        nmt.load(copy)
    (copy / "tokenizer.model").unlink()
    with pytest.raises(Mistake, match=r"copy has no tokenizer\.model: copy it back"):
        nmt.load(copy)


def test_a_stored_direction_that_is_none_is_named_with_its_file(here: Path, tmp_path: Path) -> None:
    copy = shutil.copytree("a", tmp_path / "copy")
    config = (copy / "config.yaml").read_text(encoding="utf-8")
    (copy / "config.yaml").write_text(config.replace("direction: en-vi", "direction: 12"), encoding="utf-8")
    with pytest.raises(Mistake, match=r"config\.yaml cannot be used: .*12"):
        nmt.load(copy)


def test_the_stored_style_of_tone_marks_is_applied_to_what_is_translated(here: Path, tmp_path: Path) -> None:
    copy = shutil.copytree("a", tmp_path / "copy")
    config = (copy / "config.yaml").read_text(encoding="utf-8")
    (copy / "config.yaml").write_text(config.replace("tone_marks: null", "tone_marks: old"), encoding="utf-8")
    pair = load_run(copy, "cpu").tokenizers  # of a joint vocabulary
    assert pair.joint
    assert pair.target.encode("khoẻ") == pair.target.encode("khỏe")
    assert pair.source.encode("khoẻ") != pair.source.encode("khỏe")
    for tokenizer in load_run(Path("a"), "cpu").tokenizers:
        assert tokenizer.encode("khoẻ") != tokenizer.encode("khỏe")
    with pytest.raises(Mistake, match="cannot translate together: their tokenizers differ"):
        load_runs(["a", str(copy)], "cpu")


def test_an_ensemble_is_evaluated_into_a_folder_of_its_own(here: Path, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="An ensemble has no folder of its own; set out=FOLDER"):
        evaluate(job("evaluate", run_dir=["a", "b"]))
    evaluate(job("evaluate", run_dir=["a", "b"], out=str(tmp_path / "both")))
    assert (tmp_path / "both" / "scores.json").is_file()


def test_the_score_command_prints_a_number_for_each_line(
    here: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        score(job("score", run_dir="a", source="valid.en", target="valid.vi"))
    printed = [float(line) for line in capsys.readouterr().out.splitlines()]
    sources, targets = ((here / f"valid.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "vi"))
    # The same computation, printed with four decimals.
    assert printed == [float(f"{value:.4f}") for value in nmt.load("a", device="cpu").score(sources, targets)]
    assert "Perplexity per piece" in caplog.text
    assert "(7 lines)" in caplog.text


def rows(output: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines() if line.startswith("|")]


def test_runs_are_compared_by_their_own_search_whatever_was_evaluated_before(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = {"run_dirs": ["a", "b"], "out": str(tmp_path / "out"), "split": "valid"}
    compare(job("compare", **arguments))
    first = rows(capsys.readouterr().out)
    assert first[0][:3] == ["run", "seed", "BLEU"]
    assert [row[:2] for row in first[2:4]] == [["a", "1"], ["b", "2"]]
    made = [json.loads((here / "a/evaluation/valid/scores.json").read_text(encoding="utf-8"))["made_with"]]
    asked = configuration("evaluate", [])["search"]
    settings, most = asked | {"beam_size": 1, "constraints": {"max_length": 2}}, asked | {"n_best": 2}
    for changes in ({"search": settings}, {"minimum_bayes_risk": True, "search": most}, {"batch_tokens": 37}):
        evaluate(job("evaluate", run_dir="a", split="valid", **changes))
        record = json.loads((here / "a/evaluation/valid/scores.json").read_text(encoding="utf-8"))
        assert record["made_with"] not in made
        made.append(record["made_with"])
    capsys.readouterr()
    speed = first[0].index("sentences/s")
    compare(job("compare", **arguments))
    again = rows(capsys.readouterr().out)
    assert [row[:speed] for row in again] == [row[:speed] for row in first]


def test_a_run_is_compared_with_translations_of_the_same_split(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate(job("evaluate", run_dir="a", split="valid"))
    same, perfect, short = "a/evaluation/valid/hypotheses.txt", "valid.vi", str(tmp_path / "short.vi")
    Path(short).write_text("một\n")
    arguments = {"run_dirs": ["a"], "out": str(tmp_path / "out"), "split": "valid"}
    capsys.readouterr()
    compare(job("compare", **arguments, outputs=[same, perfect]))
    table = rows(capsys.readouterr().out)
    assert table[0][:2] == ["system", "BLEU"]
    assert [row[0] for row in table[2:]] == ["a", same, perfect]
    assert table[2][1] == table[3][1] != table[4][1] == "100.00 [100.00, 100.00]"
    assert table[3][table[0].index("p")] == "1.000"
    with pytest.raises(Mistake, match=r"short\.vi has 1 lines but the split valid has 7; line n of both must belong"):
        compare(job("compare", **arguments, outputs=[short]))


def test_equal_runs_do_not_differ(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = shutil.copytree("a", tmp_path / "copy")
    compare(job("compare", run_dirs=["a", str(copy)], out=str(tmp_path / "out")))
    text = capsys.readouterr().out
    table = rows(text)
    assert table[3][table[0].index("p")] == "1.000"
    assert "Row 2 (counted without the header) does not differ significantly from row 1 (p >= 0.05)." in text
    assert json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))["systems"][1]["p"] == 1


def test_runs_of_other_references_are_refused(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = (here / "b" / "config.yaml").read_text(encoding="utf-8")
    try:
        (here / "b" / "config.yaml").write_text(config.replace("test: test", "test: valid"), encoding="utf-8")
        with pytest.raises(
            Mistake,
            match=r"The references of .*b for test differ from those of the first run\. Translate the same file",
        ):
            compare(job("compare", run_dirs=["a", "b"], out=str(tmp_path)))
    finally:
        (here / "b" / "config.yaml").write_text(config, encoding="utf-8")


def test_an_evaluation_deletes_earlier_scores_and_what_a_killed_one_left_behind(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    evaluate(job("evaluate", run_dir="a", split="valid", out=str(tmp_path)))
    assert (tmp_path / "scores.json").is_file()
    killed, foreign = tmp_path / ".hypotheses.txt.0123456789abcdef.part", tmp_path / ".film.mp4.part"
    for part in (killed, foreign):
        part.write_text("half")
    monkeypatch.setattr("nmt.scoring.run_scores.write_json", stop)
    with pytest.raises(KeyboardInterrupt):
        evaluate(job("evaluate", run_dir="a", split="valid", out=str(tmp_path)))
    assert (tmp_path / "hypotheses.txt").is_file()
    assert not (tmp_path / "scores.json").exists()
    assert not killed.exists()
    assert foreign.exists()


@pytest.fixture
def with_dictionary(here: Path, tmp_path: Path) -> Path:
    """A copy of run a that reads "six" as "one two"."""
    copy = Path(shutil.copytree(here / "a", tmp_path / "with"))
    (copy / "dictionary.tsv").write_text("six\tone two\n", encoding="utf-8")
    return copy


def test_a_dictionary_replaces_words_in_what_the_model_reads(run: Run, with_dictionary: Path) -> None:
    ours = nmt.load(with_dictionary, device="cpu")
    typed, read = ["Six three.", "five six"], ["One two three.", "five one two"]
    assert run.score(typed, ["một", "hai"]) != run.score(read, ["một", "hai"])
    assert ours.translate(typed) == run.translate(read)
    assert ours.n_best(typed, n_best=2) == run.n_best(read, n_best=2)
    assert ours.translate(typed, prefixes=["một", ""]) == run.translate(read, prefixes=["một", ""])
    assert ours.score(typed, ["một", "hai"]) == run.score(read, ["một", "hai"])
    for map_of in (lambda of, lines: of.attend(lines), lambda of, lines: of.attribute(lines)):
        mine, other = map_of(ours, typed), map_of(run, read)
        columns = [[item.columns for item in of_line] for of_line in mine]
        assert any(columns)
        assert columns == [[item.columns for item in of_line] for of_line in other]
    changes = [Intervention(temperature=3.0)]
    assert ours.intervene(typed[0], changes).changed.text == run.intervene(read[0], changes).changed.text
    assert ours.translate(typed, verbatim=True) == run.translate(typed, verbatim=True)


def test_scores_know_whether_a_dictionary_was_used(with_dictionary: Path, here: Path, tmp_path: Path) -> None:
    (tmp_path / "in.en").write_text("six three.\nfive six\n", encoding="utf-8")
    (tmp_path / "in.vi").write_text("một hai\nba\n", encoding="utf-8")
    files = {"source": str(tmp_path / "in.en"), "reference": str(tmp_path / "in.vi")}
    records = {}
    for folder in (Path("a"), with_dictionary):
        for verbatim in (False, True):
            evaluate(job("evaluate", run_dir=str(folder), verbatim=verbatim, **files))
            [file] = (folder / "evaluation" / "files").rglob("scores.json")
            records[folder.name, verbatim] = json.loads(file.read_text(encoding="utf-8"))
            shutil.rmtree(folder / "evaluation" / "files")
    dictionary = load_run(with_dictionary, "cpu").dictionary
    assert records["with", False]["dictionary_sha256"] == dictionary.digest
    assert [name for name, record in records.items() if "dictionary_sha256" in record] == [("with", False)]
    assert records["with", False]["perplexity"] != records["a", False]["perplexity"]
    assert records["with", True]["perplexity"] == records["a", True]["perplexity"]
    assert records["with", False]["made_with"] != records["a", False]["made_with"]


def test_maps_and_ablations_read_the_dictionary(with_dictionary: Path, run: Run, tmp_path: Path) -> None:
    ours = nmt.load(with_dictionary, device="cpu")
    mine, other = (
        of.ablate([line], ["một hai"], ways=["off"]).intact.log_prob for of, line in ((ours, "six"), (run, "one two"))
    )
    assert mine == other
    (tmp_path / "in.en").write_text("six three.\n", encoding="utf-8")
    export_attention(
        job("export_attention", run_dir=str(with_dictionary), input=str(tmp_path / "in.en"), out=str(tmp_path / "maps"))
    )
    [sentence] = MapFolder(tmp_path / "maps").sentences()
    assert "".join(sentence.source_pieces).replace("\u2581", " ").strip() == "one two three."


def test_your_own_words_take_precedence(run: Run, with_dictionary: Path) -> None:
    stored = nmt.load(with_dictionary, device="cpu").runs[0]
    own = Dictionary({"six": "three", "nine": "four"})
    translator = build_translator([stored], dictionary=own)
    assert translator.translate(["six nine"]) == run.translate(["three four"])
    assert build_translator([stored], dictionary=own, verbatim=True).translate(["six"]) == run.translate(["six"])
    styled = stored._replace(tokenizers=stored.tokenizers.in_style("old", source="vi", target="vi"))
    respelled = build_translator([styled], dictionary=Dictionary({"hoà": "thuỷ"})).dictionary
    assert respelled.translations == {"six": "one two", "hòa": "thủy"}


def test_words_given_to_load_are_added_to_the_dictionary(run: Run, with_dictionary: Path, tmp_path: Path) -> None:
    (tmp_path / "own.tsv").write_text("nine\tfour\n", encoding="utf-8")
    for own in ({"nine": "four"}, tmp_path / "own.tsv", str(tmp_path / "own.tsv")):
        ours = nmt.load(with_dictionary, device="cpu", dictionary=own)
        assert ours.translate(["six nine"]) == run.translate(["one two four"])
        assert ours.score(["six nine"], ["một"]) == run.score(["one two four"], ["một"])
    both = nmt.load([with_dictionary, with_dictionary], device="cpu", dictionary={"nine": "four"})
    assert both.score(["nine"], ["một"]) == nmt.load(["a", "a"], device="cpu").score(["four"], ["một"])
    with pytest.raises(Mistake, match=r"^dictionary is .*none\.tsv, which does not exist"):
        nmt.load(with_dictionary, dictionary=tmp_path / "none.tsv")
    assert nmt.load(with_dictionary, device="cpu", dictionary={"six": "four"}).translate(["six"]) == run.translate(
        ["four"]
    )
    with pytest.raises(Mistake, match=r"^dictionary is of type int; pass the name of a file"):
        nmt.load(with_dictionary, dictionary=3)  # type: ignore[arg-type]


def test_runs_with_different_dictionaries_do_not_translate_together(with_dictionary: Path, here: Path) -> None:
    message = r"with and a cannot translate together: their dictionaries differ; use the same dictionary\.tsv in both"
    with pytest.raises(Mistake, match=message):
        load_runs(["a", with_dictionary], "cpu")


def test_a_damaged_dictionary_is_refused_when_a_run_is_loaded(with_dictionary: Path) -> None:
    file = with_dictionary / "dictionary.tsv"
    file.write_text("six\n", encoding="utf-8")
    with pytest.raises(Mistake, match=r"with/dictionary\.tsv, line 1: expected a word or phrase, a tab"):
        nmt.load(with_dictionary, device="cpu")
    os.truncate(file, 2**23 + 1)
    with pytest.raises(Mistake, match=r"dictionary\.tsv has 8,388,609 bytes, but such a file never has more than"):
        nmt.load(with_dictionary, device="cpu")
