"""precision=auto: what is measured, what is kept, and what is chosen."""

import logging
from pathlib import Path
from typing import Any

import pytest
from jobs import job_of

from nmt.cli.compose import configuration
from nmt.commands.translate import translate
from nmt.errors import Mistake
from nmt.exports import fastest as module
from nmt.exports.fastest import Fastest, Measured, choose, fastest
from nmt.files import read_json

pytest.importorskip("ctranslate2")


def row(engine: str, precision: str, speed: float, bleu: float) -> Measured:
    return Measured(engine=engine, precision=precision, sentences_per_second=speed, bleu=bleu)


def chosen(**changes: Any) -> Fastest:
    options = {"engine": "auto", "search": {}, "batch_tokens": 400, "cache_dir": "cache"} | changes
    return fastest(["run"], "cpu", options.pop("engine"), **options)


def test_the_fastest_that_keeps_bleu_is_chosen() -> None:
    reference = row("torch", "float32", 30, 26.8)
    assert choose([reference]) == ("torch", "float32")
    assert choose([reference, row("torch", "int8", 50, 26.6)]) == ("torch", "int8")
    assert choose([reference, row("torch", "int8", 50, 26.59)]) == ("torch", "float32")
    assert choose([reference, row("torch", "int8", 20, 30.0)]) == ("torch", "float32")
    slower = row("torch", "bfloat16", 40, 26.9)
    assert choose([reference, slower, row("ctranslate2", "int8", 60, 27.0)]) == ("ctranslate2", "int8")


def test_every_candidate_is_measured_once_for_a_machine_and_a_search(
    run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        first = chosen()
    [file] = Path("cache/engines").glob("precisions-*.json")
    measured = read_json(file)["measured"]
    pairs = [(entry["engine"], entry["precision"]) for entry in measured]
    torch, exported = ("float32", "bfloat16", "int8"), ("float32", "int8")
    assert pairs == [*(("torch", name) for name in torch), *(("ctranslate2", name) for name in exported)]
    assert all(entry["sentences_per_second"] > 0 and entry["bleu"] > 0 for entry in measured)
    assert f"using engine={first.engine} precision={first.precision} (torch float32 " in caplog.text

    again = list[tuple[Any, ...]]()
    monkeypatch.setattr(module, "_measure", lambda *given: again.append(given) or measured_rows)
    measured_rows = [row("torch", "float32", 1, 1)]
    assert chosen() == first
    assert not again
    for change in ({"search": {"beam_size": 1}}, {"batch_tokens": 100}, {"engine": "torch"}):
        assert chosen(**change) == ("torch", "float32")
    monkeypatch.setattr(module, "processor", lambda: "another one")
    chosen()
    assert len(again) == 4
    for damaged in file.parent.glob("precisions-*.json"):
        damaged.write_text("{")
    chosen()
    assert len(again) == 5


def test_what_the_machine_does_not_support_is_left_out(
    run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(paths: object, device: str, precision: str, engine: str, **_: object) -> object:
        if precision != "float32":
            raise Mistake("there is none here.")
        return open_engine(paths, device, precision, engine, **_)

    open_engine = module.chosen_engine
    monkeypatch.setattr(module, "chosen_engine", refuse)
    with caplog.at_level(logging.INFO):
        assert chosen(engine="torch") == ("torch", "float32")
    assert "not with engine=torch precision=int8: there is none here." in caplog.text


def test_only_torch_is_measured_if_only_torch_can_do_what_is_asked(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_measure", lambda *given: candidates.append(given[2]) or [row("torch", "int8", 1, 1)])
    candidates: list[list[Fastest]] = []
    chosen(needs_torch="prefixes")
    chosen(search={"n_best": 2})
    assert {candidate.engine for candidate in candidates[0] + candidates[1]} == {"torch"}
    with pytest.raises(Mistake, match="chooses for engine=auto, torch or ctranslate2, not for onnx: name the prec"):
        chosen(engine="onnx")


def test_a_job_goes_on_with_the_precision_that_began_it(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"run_dir": "run", "input": "test.en", "output": "out", "device": "cpu", "cache_dir": "cache"}

    def translated(**changes: Any) -> None:
        translate(job_of("translate", {**configuration("translate", ["run_dir=run"]), **settings, **changes}))

    monkeypatch.setattr("nmt.commands.translate.fastest", lambda *_, **__: Fastest("torch", "bfloat16"))
    translated(precision="auto")
    made_with = read_json(Path("out/job.json"))["made_with"]
    assert (made_with["engine"], made_with["precision"]) == ("torch", "bfloat16")
    monkeypatch.setattr("nmt.commands.translate.fastest", None)
    translated(precision="auto")
    with pytest.raises(Mistake, match="precision=bfloat16, not float32"):
        translated()
    for sharing in ({"shard": "1/2"}, {"cluster": "ray"}):
        with pytest.raises(Mistake, match="precision=auto measures one machine, but the processes that share"):
            translated(precision="auto", **sharing)
