"""precision=auto: what is measured, what is kept, and what is chosen."""

import errno
import io
import logging
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from jobs import job_of

from nmt.cli.compose import configuration
from nmt.commands.translate import translate
from nmt.errors import Mistake
from nmt.exports import precision_choice
from nmt.exports.parity import Differs
from nmt.exports.precision_choice import EngineAndPrecision, Measured, choose, fastest_precision
from nmt.files import read_json

pytest.importorskip("ctranslate2")


def row(engine: str, precision: str, speed: float, bleu: float) -> Measured:
    return Measured(engine=engine, precision=precision, sentences_per_second=speed, bleu=bleu)


def fastest(device: str = "cpu", engine: str = "auto", **changes: Any) -> EngineAndPrecision:
    options = {"search": {}, "batch_tokens": 400, "cache_dir": "cache"} | changes
    return fastest_precision(["run"], device, engine, **options)


def kept() -> list[Path]:
    return list(Path("cache/engines").glob("precisions-*.json"))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[EngineAndPrecision]:
    """What is measured, in place of measuring it; in fewer bits, everything is twice as fast."""
    candidates: list[EngineAndPrecision] = []

    def measure(candidate: EngineAndPrecision, *_: object) -> Measured:
        candidates.append(candidate)
        return row(*candidate, 1 if candidate.precision == "float32" else 2, 30)

    monkeypatch.setattr(precision_choice, "_measure_one", measure)
    return candidates


def translated(**changes: Any) -> None:
    settings = {"run_dir": "run", "device": "cpu", "cache_dir": "cache", "precision": "auto", **changes}
    translate(job_of("translate", {**configuration("translate", ["run_dir=run"]), **settings}))


def test_the_fastest_that_keeps_bleu_is_chosen() -> None:
    full, half, small = ("torch", "float32"), ("torch", "bfloat16"), ("ctranslate2", "int8")
    reference = row(*full, 30, 0.55)
    assert choose([reference]) == full
    assert choose([reference, row(*small, 50, 0.35)]) == small  # in floating point, the difference is above 0.2
    assert choose([reference, row(*small, 50, 0.34)]) == full
    assert choose([reference, row(*small, 20, 9.0)]) == full
    assert choose([reference, row(*half, 40, 0.6), row(*small, 60, 0.6)]) == small


def test_fewer_bits_have_to_be_clearly_faster() -> None:
    reference, engine = row("torch", "float32", 30, 20), row("ctranslate2", "float32", 40, 20)
    assert choose([reference, row("torch", "int8", 31.4, 20)]) == ("torch", "float32")
    assert choose([reference, row("torch", "int8", 31.5, 20)]) == ("torch", "int8")
    assert choose([reference, row("torch", "int8", 41, 20), engine]) == ("ctranslate2", "float32")


def test_every_candidate_translates_the_validation_corpus(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        first = fastest()
    [file] = kept()
    measured = read_json(file)["measured"]
    assert [(entry["engine"], entry["precision"]) for entry in measured] == [
        *(("torch", name) for name in ("float32", "bfloat16", "int8")),
        *(("ctranslate2", name) for name in ("float32", "int8")),
    ]
    assert measured[0]["bleu"] == measured[3]["bleu"] > 5
    assert all(entry["sentences_per_second"] > 0 for entry in measured)
    assert f"using engine={first.engine} precision={first.precision} (torch float32 " in caplog.text
    assert list(file.parent.glob(".*.lock")) == []


def test_what_was_measured_is_kept_for_the_same_conditions(
    run: Path, measured: list[EngineAndPrecision], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fastest() == fastest()
    assert len(measured) == 5
    for change in ({"search": {"beam_size": 1}}, {"batch_tokens": 100}, {"verbatim": True}, {"workers": 2}):
        fastest(engine="torch", **change)
    assert len(kept()) == 5
    for name in ("processor", "version"):
        with monkeypatch.context() as patch:
            patch.setattr(precision_choice, name, lambda *_: "another one")
            fastest(engine="torch")
    assert len(kept()) == 7
    measured.clear()
    for damaged in kept():
        damaged.write_text("{")
    fastest()
    assert len(measured) == 5


@pytest.mark.parametrize(
    ("error", "is_lasting"),
    [(Differs("not the same."), True), (Mistake("no memory."), False), (OSError(errno.ENOSPC, "full"), False)],
)
def test_what_fails_is_left_out_and_tried_again_unless_it_will_always_fail(
    run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception, is_lasting: bool
) -> None:
    def measure(candidate: EngineAndPrecision, *_: object) -> Measured:
        if candidate.precision == "float32":
            return row(*candidate, 1, 30)
        raise error

    monkeypatch.setattr(precision_choice, "_measure_one", measure)
    with caplog.at_level(logging.INFO):
        assert fastest(engine="torch") == ("torch", "float32")
    assert f"precision=auto: without engine=torch precision=int8: {error}" in caplog.text
    assert bool(kept()) == is_lasting


@pytest.mark.parametrize(("fails", "error"), [("float32", Mistake("no memory.")), ("int8", OSError(errno.EIO, ""))])
def test_a_failure_of_float32_or_a_bug_is_raised(
    run: Path, monkeypatch: pytest.MonkeyPatch, fails: str, error: Exception
) -> None:
    def measure(candidate: EngineAndPrecision, *_: object) -> Measured:
        if candidate.precision == fails:
            raise error
        return row(*candidate, 1, 30)

    monkeypatch.setattr(precision_choice, "_measure_one", measure)
    with pytest.raises(type(error)):
        fastest(engine="torch")
    assert kept() == []


def test_only_torch_is_measured_if_only_torch_can_do_what_is_asked(
    run: Path, measured: list[EngineAndPrecision], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        fastest(needs_torch="prefixes")
        fastest(search={"n_best": 2})
    assert {candidate.engine for candidate in measured} == {"torch"}
    assert "only torch is measured: prefixes" in caplog.text
    assert "only torch is measured: search.n_best=2" in caplog.text


def test_a_torch_without_int8_leaves_that_of_ctranslate2(
    run: Path, measured: list[EngineAndPrecision], monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_int8(precision: str, _: object) -> None:
        if precision == "int8":
            raise Mistake("precision=int8 is not supported by this build of torch on this CPU; leave precision out.")

    monkeypatch.setattr("nmt.runs.precision.check_precision", without_int8)
    assert fastest() == ("torch", "bfloat16")
    assert [pair for pair in measured if pair.precision == "int8"] == [("ctranslate2", "int8")]


def test_what_cannot_be_measured_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Mistake, match="chooses for engine=auto, torch or ctranslate2, not for onnx: name the prec"):
        fastest(engine="onnx")
    with pytest.raises(Mistake, match=r"measures the CPU, but device is cuda: use precision=float32 or bfloat16, or"):
        fastest(device="cuda")
    monkeypatch.setattr(precision_choice, "has_gpu_file", lambda: True)
    with pytest.raises(Mistake, match="measures the CPU, but there is a GPU: use"):
        fastest(device="auto")
    with pytest.raises(Mistake, match="compares translations of beam search: add search=beam, or name the precision"):
        fastest(search={"_target_": "nmt.decoding.sampling.Sampling"})
    Path("valid.en").unlink()
    for folder in ("probes", "evaluation"):
        shutil.rmtree(run / folder)
    with pytest.raises(Mistake, match=r"measures with the validation corpus, which is missing .*: name the precision"):
        fastest(engine="torch", cache_dir="another")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shard": "1/2"}, "precision=auto measures one machine, but the processes that share"),
        ({"cluster": "ray"}, "precision=auto measures one machine, but the processes that share"),
        ({"document": True}, "precision=auto does not measure translation with document=true"),
        ({"minimum_bayes_risk": True}, "precision=auto does not measure translation with minimum_bayes_risk=true"),
        ({"input": "typo.en"}, "typo.en"),
        ({"output": "out.vi"}, "output is out.vi, which looks like a file"),
        ({"input": None, "output": None, "prefixes": "typo.vi"}, "typo.vi"),
        ({"run_dir": []}, "run_dir is an empty list; name at least one folder"),
    ],
)
def test_other_mistakes_are_reported_before_anything_is_measured(
    run: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr("nmt.commands.translate.fastest_precision", None)
    with pytest.raises(Mistake, match=message):
        translated(**{"input": "test.en", "output": "out", **changes})


@pytest.mark.parametrize("began", [("torch", "bfloat16"), ("ctranslate2", "int8")])
def test_a_job_goes_on_with_the_precision_that_began_it(
    run: Path, monkeypatch: pytest.MonkeyPatch, began: tuple[str, str]
) -> None:
    monkeypatch.setattr("nmt.commands.translate.fastest_precision", lambda *_, **__: EngineAndPrecision(*began))
    translated(input="test.en", output="out")
    made_with = read_json(Path("out/job.json"))["made_with"]
    assert (made_with["engine"], made_with["precision"]) == began
    [file] = Path("out").glob("*.vi")
    text = file.read_text(encoding="utf-8")
    file.unlink()
    monkeypatch.setattr("nmt.commands.translate.fastest_precision", None)
    translated(input="test.en", output="out")
    assert file.read_text(encoding="utf-8") == text
    with pytest.raises(Mistake, match=f"precision={began[1]}, not float32"):
        translated(input="test.en", output="out", precision="float32", engine=began[0])


@pytest.mark.parametrize("typed", [False, True])
def test_standard_input_is_measured_unless_it_is_typed(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: bool
) -> None:
    asked = []
    monkeypatch.setattr(
        "nmt.commands.translate.fastest_precision",
        lambda *_, **__: asked.append(1) or EngineAndPrecision("torch", "float32"),
    )
    text = io.TextIOWrapper(io.BytesIO(b"one two three.\n"))
    monkeypatch.setattr(text, "isatty", lambda: typed, raising=False)
    monkeypatch.setattr(sys, "stdin", text)
    translated()
    assert bool(asked) != typed
    assert capsys.readouterr().out.count("\n") == 1
