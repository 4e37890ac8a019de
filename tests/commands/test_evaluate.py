"""nmt.evaluate before it translates: its test set, the conditions of its scores, and what it refuses."""

import logging
import math
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from jobs import job_of, run_settings

import nmt.commands.evaluate
from nmt.cli.compose import configuration
from nmt.commands.evaluate import check_band, evaluate
from nmt.config.direction import Direction
from nmt.config.job import Job
from nmt.data.corpus import Pairs, corpus_hashes
from nmt.errors import CheckFailed, Mistake, report
from nmt.evaluation.scores import corpus_scores
from nmt.maps.links import Alignment
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun
from nmt.scoring.alignment_error import Gold, read_valid_gold
from nmt.scoring.forced_scores import Perplexity
from nmt.scoring.run_scores import RunScores, conditions
from nmt.scoring.test_sets import TestSet, split_test_set
from nmt.scoring.training_words import training_counts


class TranslatedError(Exception):
    """The translator was asked for."""


@pytest.fixture
def run(tmp_path: Path) -> LoadedRun:
    """A run without a model."""
    absent: Any = None
    settings = run_settings(train=[str(tmp_path / "train")], valid=str(tmp_path / "v"), test=None)
    return LoadedRun(RunDirectory(tmp_path), settings, absent, absent, torch.device("cpu"))


@pytest.fixture
def files(tmp_path: Path, run: LoadedRun, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of two lines, that run, and a translator that raises TranslatedError."""
    (tmp_path / "t.en").write_text("one two\nthree\n", encoding="utf-8")
    (tmp_path / "t.vi").write_text(unicodedata.normalize("NFD", "một hai\nba bốn\n"), encoding="utf-8")

    def refuse(*_: Any, **__: Any) -> None:
        raise TranslatedError

    monkeypatch.setattr(nmt.commands.evaluate, "load_with_engine", lambda *_: ([run], None))
    monkeypatch.setattr(nmt.commands.evaluate, "score_runs", refuse)
    return tmp_path


def job(files: Path, **changes: Any) -> Job:
    own = {"run_dir": files, "source": files / "t.en", "reference": files / "t.vi", **changes}
    texts = {key: str(value) if isinstance(value, Path) else value for key, value in own.items()}
    return job_of("evaluate", {**configuration("evaluate", []), "device": "cpu", **texts})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-0\n", r"own\.align has 1 lines, but there are 2 source and 2 target sentences"),
        ("0-0\n1-0\n", r"own\.align, line 2: link 1-0 does not fit 1 source and 2 target words"),
        ("0-0\n0_0\n", r"own\.align, line 2"),
    ],
)
def test_a_gold_alignment_that_does_not_fit_is_refused_before_translating(files: Path, text: str, message: str) -> None:
    (files / "own.align").write_text(text, encoding="utf-8")
    with pytest.raises(Mistake, match=message):
        evaluate(job(files, alignment=files / "own.align"))


def test_a_gold_alignment_that_fits_is_accepted(files: Path) -> None:
    (files / "own.align").write_text("0-0 1-1\n0-1\n", encoding="utf-8")
    for language in ("en", "vi"):
        (files / f"v.{language}").write_text("one\n", encoding="utf-8")
    with pytest.raises(TranslatedError):
        evaluate(job(files, alignment=files / "own.align"))


def test_own_references_cause_warnings(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(TranslatedError):
        evaluate(job(files))
    assert [record.getMessage().split(", which")[0] for record in caplog.records] == [
        f"{files / 't.vi'}: references are scored unchanged, but normalization would change 2 of 2 lines (nfc 2)"
    ]


def test_without_the_validation_files_no_map_is_chosen(
    files: Path, run: LoadedRun, caplog: pytest.LogCaptureFixture
) -> None:
    """The included models come without them, and are measured on the user's own alignments all the same."""
    (files / "own.align").write_text("0-0\n0-0\n", encoding="utf-8")
    (files / "v.en").write_text("one\n", encoding="utf-8")
    with pytest.raises(TranslatedError):
        evaluate(job(files, alignment=files / "own.align"))
    message = "v.vi does not exist. It belongs to the run's data.valid, on which the map for the alignment error rate "
    assert message + "is chosen; without it, the rate is that of the last layer's mean." in caplog.text
    assert read_valid_gold(run) is None


def test_alignments_of_the_validation_split_are_optional_and_checked(run: LoadedRun) -> None:
    folder = run.directory.path
    for language in ("en", "vi"):
        (folder / f"v.{language}").write_text("one two\n", encoding="utf-8")
    assert read_valid_gold(run) is None
    (folder / "v.vi-en.align").write_text("1-0\n", encoding="utf-8")
    gold = read_valid_gold(run)
    assert gold is not None
    assert gold.alignments[0].sure == {(0, 1)}
    (folder / "v.vi-en.align").write_text("2-0\n", encoding="utf-8")
    with pytest.raises(Mistake, match=r"v\.vi-en\.align, line 1: link 0-2 does not fit"):
        read_valid_gold(run)


def test_alignments_of_a_detokenized_corpus_are_ignored(run: LoadedRun) -> None:
    for language in ("en", "vi"):
        (run.directory.path / f"v.{language}").write_text("one two\n", encoding="utf-8")
    (run.directory.path / "v.en-vi.align").write_text("0-0\n", encoding="utf-8")
    valid = run.settings.data.valid
    assert read_valid_gold(run) is not None
    assert read_valid_gold(run._replace(settings=run_settings(valid=valid, detokenize=[valid]))) is None


def test_words_are_counted_in_the_detokenized_text(run: LoadedRun) -> None:
    tokens, plain = (str(run.directory.path / name) for name in ("tokens", "plain"))
    for prefix, line in ((tokens, "It &apos;s here .\n"), (plain, "It is here.\n")):
        Path(f"{prefix}.en").write_text(line, encoding="utf-8")
    settings = run_settings(train=[tokens, plain], detokenize=[tokens])
    assert training_counts(run._replace(settings=settings)) == {"it's": 1, "here": 2, "it": 1, "is": 1}


def test_a_stored_name_is_not_a_pattern(run: LoadedRun) -> None:
    """The corpora a1 and a[1] both match a*, but a[1] as a pattern matches a1 alone."""
    one, other = (str(run.directory.path / name) for name in ("a1", "a[1]"))
    stored = run._replace(settings=run_settings(train=[one, other]))
    assert training_counts(stored) == {}  # the corpora are gone
    for prefix, line in ((one, "it\n"), (other, "is\n")):
        Path(f"{prefix}.en").write_text(line, encoding="utf-8")
    assert training_counts(stored) == {"it": 1, "is": 1}


def test_a_split_that_has_changed_since_training_causes_a_warning(
    files: Path, run: LoadedRun, caplog: pytest.LogCaptureFixture
) -> None:
    trained = run._replace(settings=run_settings(valid=str(files / "t")))
    trained.directory.write_metrics(
        {"finished": True, "corpora": corpus_hashes([str(files / "t")], Direction("en", "vi"))}
    )
    split_test_set(trained, "valid")
    assert "has changed" not in caplog.text
    (files / "t.vi").write_text("một hai\nba năm\n", encoding="utf-8")
    split_test_set(trained, "valid")
    assert f"{files}/t.vi has changed since {files} was trained" in caplog.text
    assert "t.en has changed" not in caplog.text


def test_gold_alignments_and_the_seed_are_among_the_conditions(
    files: Path, run: LoadedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.directory.weights.write_bytes(b"weights")
    plain = TestSet(["a b"], [["c d"]], None, None, files, tokenized=False)
    gold = Gold(Pairs(["a b"], ["c d"]), [Alignment(frozenset({(0, 0)}), frozenset({(0, 0)}))])
    other = Gold(gold.pairs, [Alignment(frozenset(), frozenset({(1, 0)}))])
    test_sets = [
        plain,
        replace(plain, gold=gold),
        replace(plain, gold=other),
        replace(plain, gold=gold, valid_gold=other),
    ]
    keys = [conditions([run], test_set)["made_with"] for test_set in test_sets]
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    keys.append(conditions([run], plain)["made_with"])
    assert len(set(keys)) == len(keys)
    monkeypatch.setenv("SACREBLEU_SEED", "abc")
    with pytest.raises(Mistake, match=r"SACREBLEU_SEED is 'abc'; it must be a whole number of at least 0, or none\."):
        conditions([run], plain)


def test_an_ensemble_takes_no_alignment(files: Path) -> None:
    with pytest.raises(
        Mistake, match=r"each of the 2 runs aligns in its own way: use one run_dir, or leave out alignment\."
    ):
        evaluate(job(files, run_dir=["a", "b"], alignment=files / "own.align", out=files / "out"))


def test_an_unusable_folder_is_refused_before_translating(files: Path) -> None:
    with pytest.raises(Mistake, match=r"out is .*t\.en, but .*t\.en is a file; choose another folder"):
        evaluate(job(files, out=files / "t.en"))
    with pytest.raises(Mistake, match=r"out is /proc/y, but /proc cannot be written to"):
        evaluate(job(files, out="/proc/y"))


def test_the_scores_fit_a_terminal_and_each_signature_is_printed_once(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = corpus_scores(["một hai", "ba"], [["một hai", "ba bốn"]])
    renamed = scores[0]._replace(name="BLEU of the same kind")
    found = RunScores(["một hai", "ba"], [*scores, renamed], [], [], None, Perplexity(2, 3.0, 4.0, 5.0), 1.0)
    monkeypatch.setattr(nmt.commands.evaluate, "score_runs", lambda *_, **__: found)
    evaluate(job(files))
    printed = capsys.readouterr().out
    measured, signatures = printed.split("\nSignatures:\n")
    assert max(map(len, measured.split("\n"))) <= 80
    assert [line.split("[")[0].split()[-1] for line in measured.split("\n")[:3]] == [
        f"{score.value:.2f}" for score in (*scores, renamed)
    ]
    assert signatures == (f"BLEU, BLEU of the same kind\n  {scores[0].signature}\nchrF2\n  {scores[1].signature}\n")


def test_a_score_is_inside_or_outside_its_band(capsys: pytest.CaptureFixture[str]) -> None:
    check_band(26.4, 26.1, 0.5)
    assert capsys.readouterr().out == "inside: 26.40 is 0.30 from the expected 26.10, at most 0.50\n"
    with pytest.raises(
        CheckFailed, match=r"outside: 25\.50 is 0\.60 from the expected 26\.10, more than 0\.50"
    ) as caught:
        check_band(25.5, 26.1, 0.5)
    assert report(caught.value) == 1
    assert capsys.readouterr().err.startswith("error: outside: ")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reference": None}, "source is given without reference"),
        ({"source": None}, "reference is given without source"),
        ({"reference": []}, "reference is an empty list"),
        *(
            ({"max_source_tokens": each}, "max_source_tokens is .*; it must be a whole")
            for each in ("abc", 1, 2.5, True)
        ),
        ({"band": -1}, "band is -1; it must be a finite number of at least 0"),
        ({"band": math.nan}, "band is nan; it must be a finite number"),
        ({"expect": math.nan}, "expect is nan; it must be a score"),
        ({"expect": "abc"}, "expect is abc; it must be a score such as 26.1, or null"),
    ],
)
def test_invalid_settings_are_refused(files: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        evaluate(job(files, **changes))
