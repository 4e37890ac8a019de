"""Runs that read documents: trained, resumed, translated, scored and mapped with what comes before each line."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jobs import HIERARCHICAL
from safetensors.torch import load_file

import nmt
from nmt.commands.ablate_attention import ablate_attention
from nmt.commands.attribute import attribute
from nmt.commands.evaluate import evaluate
from nmt.commands.export_attention import export_attention
from nmt.commands.prepare import prepare
from nmt.commands.score import score
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.data.documents import earlier_pairs, read_documents
from nmt.errors import Mistake
from nmt.insight.forced_maps import first_ranked, forced_maps
from nmt.maps.map_files import MapFolder
from nmt.models import Transformer
from nmt.models.document_model import DocumentModel
from nmt.runs.load import load_run
from nmt.scoring.forced_scores import log_probs
from nmt.training.translation import parallel_corpora


@pytest.fixture
def inside(document_runs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(document_runs)
    return document_runs


def test_it_continues_from_a_sentence_model(job: Callable[..., Job], inside: Path, tmp_path: Path) -> None:
    still = {"run_dir": tmp_path / "still", "start_from": "sentences", "optimizer__lr": 1e-20, "data__test": "null"}
    train(job("train", **HIERARCHICAL | still))
    before, after = load_file("sentences/model.safetensors"), load_file(tmp_path / "still" / "model.safetensors")
    own = {name.removeprefix("sentence."): value for name, value in after.items() if name.startswith("sentence.")}
    # At most four steps of Adam, each of at most 4 lr (Kingma & Ba 2015, section 2.1).
    torch.testing.assert_close(own, before, rtol=0, atol=4 * 4 * 1e-20)
    assert {name.split(".")[0] for name in after} == {"sentence", "encoder_context", "decoder_context"}


def test_it_resumes_exactly(job: Callable[..., Job], inside: Path, tmp_path: Path) -> None:
    shorter = HIERARCHICAL | {
        "trainer__max_steps": 2,
        "validation__probes": 0,
        "model__dropout": 0.2,
        "data__test": "null",
    }
    longer = {"trainer__max_steps": 4}
    train(job("train", run_dir=tmp_path / "whole", **shorter | longer))
    train(job("train", run_dir=tmp_path / "parts", **shorter))
    train(job("train", run_dir=tmp_path / "parts", resume="true", **longer))
    whole, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_preparation_and_training_read_the_same_documents(
    job: Callable[..., Job], inside: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report of nmt.prepare fills the cache of nmt.train, and a run knows its boundaries when it is resumed."""
    given = HIERARCHICAL | {"cache_dir": tmp_path / "cache"}
    prepare(job("prepare", run_dir=tmp_path / "new", **given))
    assert "Training data: " in capsys.readouterr().out
    made = [*(tmp_path / "cache" / "datasets").iterdir()]
    corpora = parallel_corpora(job("train", run_dir=tmp_path / "new", **given).settings)
    tokenizers = corpora.learn_tokenizers(job("train", **given).settings, tmp_path / "cache", smaller=True)
    corpora.training_rows(job("train", **given).settings, tokenizers, tmp_path / "cache")
    assert [*(tmp_path / "cache" / "datasets").iterdir()] == made
    assert {Path(name).suffix for name in corpora.hashes(tmp_path / "cache")} == {".en", ".vi", ".doc"}
    data = {key: value for key, value in given.items() if not key.startswith("context")}
    prepare(job("prepare", run_dir=tmp_path / "new", start_from="hierarchical", **data))
    assert len([*(tmp_path / "cache" / "datasets").iterdir()]) == len(made)  # the context is that of the other run


def test_a_document_run_hands_its_context_on(job: Callable[..., Job], inside: Path, tmp_path: Path) -> None:
    train(
        job(
            "train",
            run_dir=tmp_path / "next",
            start_from="hierarchical",
            batching__batch_tokens=211,
            optimizer__lr=1e-20,
            trainer__max_steps=2,
            validation__every=2,
            data__test="null",
        )
    )
    before, after = load_file("hierarchical/model.safetensors"), load_file(tmp_path / "next" / "model.safetensors")
    torch.testing.assert_close(after, before, rtol=0, atol=2 * 4 * 1e-20)
    assert load_run(tmp_path / "next", "cpu").settings.context.sentences == 2


@pytest.mark.parametrize("run", ["hierarchical", "joined"])
def test_scores_depend_on_the_lines_before(job: Callable[..., Job], inside: Path, run: str, capsys: Any) -> None:
    given = {"run_dir": run, "source": "test.en", "target": "test.vi", "device": "cpu"}
    score(job("score", **given))
    alone = capsys.readouterr().out.split()
    score(job("score", **given, documents="test.doc"))
    together = capsys.readouterr().out.split()
    assert [one == other for one, other in zip(alone, together, strict=True)] == [True, False, True]


def test_evaluation_reads_the_boundaries_of_a_split(job: Callable[..., Job], inside: Path, caplog: Any) -> None:
    evaluate(job("evaluate", run_dir="hierarchical", device="cpu"))
    record = json.loads((inside / "hierarchical/evaluation/test/scores.json").read_text())
    trained = load_run(Path("hierarchical"), "cpu")
    sources, targets = ((inside / f"test.{side}").read_text().splitlines() for side in ("en", "vi"))
    expected = sum(log_probs([trained], sources, targets, 4096, ["a", "a", "b"]))
    pieces = sum(len(trained.tokenizers.target.encode(line)) + 1 for line in targets)
    assert record["perplexity"]["piece"] == pytest.approx(np.exp(-expected / pieces), rel=1e-3)
    evaluate(
        job(
            "evaluate",
            run_dir="hierarchical",
            device="cpu",
            source="test.en",
            reference="test.vi",
            documents="test.doc",
        )
    )
    own = json.loads((inside / "hierarchical/evaluation/files/test/scores.json").read_text())
    assert own["perplexity"] == record["perplexity"]


@pytest.mark.parametrize("given", [True, False])
def test_maps_of_both_levels(job: Callable[..., Job], inside: Path, tmp_path: Path, given: bool) -> None:
    changes = {"target": "test.vi"} if given else {}
    export_attention(
        job(
            "export_attention",
            run_dir="hierarchical",
            input="test.en",
            documents="test.doc",
            out=tmp_path / "maps",
            site="all",
            formats="[csv,png,viewer,diagnostics]" if given else "[csv,viewer,diagnostics]",
            dpi=60,
            device="cpu",
            **changes,
        )
    )
    folder = MapFolder(tmp_path / "maps")
    first, second, third = folder.sentences()
    levels = {"encoder_words", "encoder_sentences", "decoder_words", "decoder_sentences"}
    for alone in (first, third):
        assert not alone.earlier
        assert not levels & {item.site for item in alone.maps}
    assert [each.source_pieces for each in second.earlier] == [first.source_pieces]
    assert [each.target_pieces for each in second.earlier] == [first.target_pieces]
    for site in levels:
        item = second.site(site)
        assert item.weights.shape[2:] == (len(item.inputs), len(item.columns))
        np.testing.assert_allclose(item.weights.sum(-1), 1, rtol=1e-5)
    assert second.site("encoder_words").columns == [*first.source_pieces, "</s>"]
    assert second.site("decoder_words").columns == ["<s>", *first.target_pieces]
    assert second.site("decoder_sentences").columns == ["\u2581-1"]
    assert folder.manifest["sites"]["decoder_sentences"]["columns"] == "earlier sentences"


def test_maps_of_several_earlier_sentences_have_their_own_columns(inside: Path) -> None:
    """The weights of words are those within their sentence times the weight of the sentence."""
    trained = load_run(Path("hierarchical"), "cpu")
    sides = [(inside / f"valid.{side}").read_text().splitlines() for side in ("en", "vi")]
    ids = [each.encode_all(lines) for each, lines in zip(trained.tokenizers, sides, strict=True)]
    numbers = read_documents(str(inside / "valid"), trained.direction)
    earlier = earlier_pairs(numbers, list(zip(*ids, strict=True)), trained.context_window)
    found = {each.line: each for each in forced_maps(trained, first_ranked(*ids, earlier), 4096)}
    for line, each in found.items():
        assert len(each.earlier) == min(2, (line - 1) % 5)
        if not each.earlier:
            continue
        for place, side in (("encoder", "source_pieces"), ("decoder", "target_pieces")):
            words, sentences = each.site(f"{place}_words"), each.site(f"{place}_sentences")
            lengths = [len(getattr(pair, side)) + 1 for pair in each.earlier]
            parts = np.split(words.weights, np.cumsum(lengths)[:-1], axis=-1)
            sums = np.stack([part.sum(-1) for part in parts], axis=-1)
            expected = np.broadcast_to(sentences.weights.mean(axis=1, keepdims=True), sums.shape)
            np.testing.assert_allclose(sums, expected, rtol=1e-5)


def test_p_cxmi_is_the_difference_of_log_probabilities(job: Callable[..., Job], inside: Path, tmp_path: Path) -> None:
    attribute(
        job(
            "attribute",
            run_dir="hierarchical",
            method="p_cxmi",
            input="test.en",
            target="test.vi",
            documents="test.doc",
            out=tmp_path / "maps",
            device="cpu",
        )
    )
    [only] = MapFolder(tmp_path / "maps").sentences()
    item = only.site("context")
    assert (only.line, item.columns) == (2, ["\u2581-1", "\u2581all"])
    assert item.attribution is not None
    trained = load_run(Path("hierarchical"), "cpu")
    sources, targets = ((inside / f"test.{side}").read_text().splitlines() for side in ("en", "vi"))
    with_context, without = (
        log_probs([trained], sources, targets, 4096, names)[1] for names in (["a", "a", "b"], None)
    )
    for column in (0, 1):
        # Float32 log-probabilities of a few pieces.
        assert item.attribution[0, 0, :, column].sum() == pytest.approx(with_context - without, abs=1e-5)
    assert item.weights.max() == pytest.approx(1)


def test_a_loaded_run_translates_documents(inside: Path) -> None:
    run = nmt.load("hierarchical", device="cpu")
    lines = ["one two.", "three.", "four five."]
    assert run.translate(lines, documents=["a", "a", "b"])[0] == run.translate(lines)[0]
    alone = run.score(lines, ["một.", "ba.", "năm."])
    together = run.score(lines, ["một.", "ba.", "năm."], documents=["a", "a", "b"])
    assert [one == other for one, other in zip(alone, together, strict=True)] == [True, False, True]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"data__train": "[plain]", **HIERARCHICAL},
            "context.sentences is 2, but no training corpus has document boundaries: add plain.doc, which names the "
            "document that each line belongs to, or set context=none.",
        ),
        (
            {"data__train": "[damaged]", **HIERARCHICAL},
            "damaged.doc has 1 lines but the text has 2; line n must name the document that line n of the text belongs "
            "to.",
        ),
        (
            {**HIERARCHICAL, "context__sentences": 0},
            "context.sentences is 0, but context.model reads earlier sentences; set it to at least 1, or use "
            "context=none.",
        ),
        (
            {**HIERARCHICAL, "context__sentences": 5000},
            "context.sentences is 5000; it must be a whole number from 0 to",
        ),
        ({**HIERARCHICAL, "data__concat_prob": 0.1}, "data.concat_prob joins unrelated pairs, which share no document"),
        (
            {**HIERARCHICAL, "context__sentences": 9, "batching__batch_tokens": 101},
            "tokens, more than batching.batch_tokens=101: raise batching.batch_tokens to ",
        ),
        (
            {**HIERARCHICAL, "context": "hierarchical_encoder", "scorer@decoder_words": "dot"},
            "scorer@decoder_words has no effect, because this model has no attention at decoder_words; leave it out, "
            "or add context=hierarchical.",
        ),
        (
            {**HIERARCHICAL, "context": "hierarchical_encoder", "start_from": "hierarchical"},
            "start_from=hierarchical was trained with different context settings: leave out context= and its settings",
        ),
        (
            {"context": "none", "start_from": "hierarchical", "trainer__max_steps": 2},
            "start_from=hierarchical was trained with different context settings: leave out context= and its settings",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    job: Callable[..., Job], inside: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    for name in ("plain", "damaged"):
        for side in ("en", "vi"):
            (inside / f"{name}.{side}").write_text("one two.\nthree four.\n")
    (inside / "damaged.doc").write_text("a\n")
    with pytest.raises(Mistake, match=re.escape(message)):
        train(job("train", run_dir=tmp_path / "refused", **changes))
    assert not (tmp_path / "refused").exists()


def test_lines_without_documents_are_ablated(job: Callable[..., Job], inside: Path, tmp_path: Path) -> None:
    files = {"source": "test.en", "reference": "[test.vi]", "ways": "[frozen,off]", "bleu": "false"}
    ablate_attention(job("ablate_attention", run_dir="hierarchical", device="cpu", out=str(tmp_path), **files))
    assert "decoder_sentences" in (tmp_path / "ablation.csv").read_text(encoding="utf-8")


def exported_maps(job: Callable[..., Job], out: Path, **changes: Any) -> MapFolder:
    """The maps that nmt.export_attention makes of test.en in its documents."""
    settings = {"input": "test.en", "documents": "test.doc", "out": out, "formats": "[]", "device": "cpu", **changes}
    export_attention(job("export_attention", **settings))
    return MapFolder(out)


def reasons_of(folder: MapFolder) -> dict[int, str]:
    with (folder.path / "left_out.csv").open(newline="") as file:
        return {int(row["line"]): row["reason"] for row in csv.DictReader(file)}


def test_maps_show_the_earlier_sentences_that_the_search_read(
    job: Callable[..., Job], inside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A joined source has only the earlier sentences that fit into one search."""
    whole = exported_maps(job, tmp_path / "whole", run_dir="joined")
    first, second, _ = whole.sentences()
    assert second.source_pieces[: len(first.source_pieces)] == first.source_pieces
    monkeypatch.setattr(Transformer, "max_source", property(lambda _: len(second.source_pieces)))
    first_again, alone, _ = exported_maps(job, tmp_path / "limited", run_dir="joined").sentences()
    assert first_again.source_pieces == first.source_pieces
    assert alone.source_pieces == second.source_pieces[len(first.source_pieces) + 1 :]


@pytest.mark.parametrize("limit", ["model", "max_tokens"])
def test_a_source_that_is_too_long_with_its_context_is_listed(
    job: Callable[..., Job], inside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    whole = exported_maps(job, tmp_path / "whole", run_dir="joined", target="test.vi")
    [second] = whole.sentences([2])
    pieces = len(second.source_pieces) + 1
    changes = {}
    if limit == "model":
        monkeypatch.setattr(Transformer, "max_source", property(lambda _: pieces - 1))
    else:
        changes = {"max_tokens": pieces - 1}
    limited = exported_maps(job, tmp_path / "limited", run_dir="joined", target="test.vi", **changes)
    assert limited.lines == [1, 3]
    about = f"the {pieces - 1} that the model reads" if limit == "model" else f"max_tokens={pieces - 1}"
    assert reasons_of(limited) == {
        2: f"the source has {pieces} pieces with EOS and the earlier sentences, more than {about}"
    }


def test_a_pair_whose_earlier_sentence_is_too_long_for_the_model_is_left_out(
    job: Callable[..., Job], inside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = exported_maps(job, tmp_path / "whole", run_dir="hierarchical", target="test.vi")
    _, second, third = whole.sentences()
    pieces = max(len(second.source_pieces), len(third.source_pieces)) + 1
    (inside / "long.en").write_text("one two one two one two.\nthree.\nfour five.\n")
    monkeypatch.setattr(DocumentModel, "max_source", property(lambda _: pieces))
    given = exported_maps(job, tmp_path / "given", run_dir="hierarchical", input="long.en", target="test.vi")
    assert given.lines == [3]
    reasons = reasons_of(given)
    assert re.fullmatch(r"the source has \d+ pieces with EOS, more than the \d+ that the model reads", reasons[1])
    assert re.fullmatch(
        r"the source of an earlier sentence has \d+ pieces with EOS, more than the \d+ that the model reads", reasons[2]
    )
    # The search translates the second line without the first one, which has no translation.
    found = exported_maps(job, tmp_path / "found", run_dir="hierarchical", input="long.en")
    assert [(each.line, len(each.earlier)) for each in found.sentences()] == [(2, 0), (3, 0)]


def test_a_line_that_is_too_long_for_a_map_is_still_read_by_the_lines_after_it(
    job: Callable[..., Job], inside: Path, tmp_path: Path
) -> None:
    (inside / "long.en").write_text("one two one two one two.\nthree.\nfour five.\n")
    settings = {"run_dir": "hierarchical", "input": "long.en", "search__n_best": 2}
    whole = exported_maps(job, tmp_path / "whole", **settings)
    first = next(whole.sentences([1]))
    limited = exported_maps(job, tmp_path / "limited", **settings, max_tokens=len(first.source_pieces))
    assert list(reasons_of(limited)) == [1]
    assert (limited.path / "left_out.csv").read_text().count("max_tokens") == 1, "it has one row, not one for each rank"
    for expected, sentence in zip(whole.sentences([2]), limited.sentences([2]), strict=True):
        assert sentence.earlier == expected.earlier != []
        assert sentence.score == expected.score


def test_documents_of_single_lines_leave_nothing_to_measure(
    job: Callable[..., Job], inside: Path, tmp_path: Path
) -> None:
    (inside / "single.doc").write_text("a\nb\nc\n")
    settings = {"run_dir": "hierarchical", "method": "p_cxmi", "input": "test.en", "target": "test.vi", "device": "cpu"}
    attribute(job("attribute", documents="test.doc", out=tmp_path / "maps", formats="[]", **settings))
    before = MapFolder(tmp_path / "maps").manifest
    with pytest.raises(
        Mistake,
        match=r"No line has an earlier sentence in its document that the model can read with it, so p_cxmi has nothing "
        r"to measure: in documents, give several lines the same name\.",
    ):
        attribute(job("attribute", documents="single.doc", out=tmp_path / "maps", overwrite="true", **settings))
    assert MapFolder(tmp_path / "maps").manifest == before
