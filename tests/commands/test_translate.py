"""Standard input of nmt.translate: its lines, and the one that is not UTF-8."""

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jobs import job_of

import nmt.commands.translate
from nmt.commands.translate import translate
from nmt.config.direction import Direction
from nmt.config.job import Job
from nmt.decoding.translator import TranslatedLine, Translation, Translator
from nmt.errors import Mistake, report
from nmt.text.lines import text_lines

RUN = SimpleNamespace(direction=Direction("en", "vi"))


class Upper(Translator):
    """Streams as a translator does, but translates into capitals."""

    def __init__(self) -> None:
        pass

    def _translate(self, lines: Any, first_line: int, *_: Any) -> tuple[list[TranslatedLine], None]:
        ranked = [
            [Translation(prefix + line.upper(), -1.5, -1.25), Translation(prefix + line.title(), -2.0, -1.75)]
            if line
            else []
            for line, prefix in lines
        ]
        unknown = ["".join(letter for letter in line if letter > "\u2fff") for line, _ in lines]
        return [*map(TranslatedLine, ranked, unknown)], None


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setattr(nmt.commands.translate, "load_with_engine", lambda *_: ([RUN], None))
    monkeypatch.setattr(nmt.commands.translate, "build_translator", lambda *_, **__: Upper())
    config = {"run_dir": str(tmp_path), "device": "cpu", "search": {}, "batch_tokens": 101, "max_source_tokens": 13}
    config |= {
        "format": "text",
        "prefixes": None,
        "document": False,
        "minimum_bayes_risk": False,
        "verbatim": False,
        "precision": "float32",
        "workers": 1,
        "engine": "torch",
    }
    return job_of("translate", {**config, "read_ahead": 4})


def changed(job: Job[Any], **changes: Any) -> Job[Any]:
    return job_of("translate", {**job.config, **changes})


def translated(job: Job, data: bytes, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the job writes when it is given the data."""
    output = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    monkeypatch.setattr(sys, "stdout", output)
    translate(job)
    return output.buffer.getvalue().decode()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("text", "ÔNG\n\nB\n"),
        (
            "tsv",
            "1\t1\t-1.2500\t-1.5000\tÔNG\n1\t2\t-1.7500\t-2.0000\tÔng\n"
            "3\t1\t-1.2500\t-1.5000\tB\n3\t2\t-1.7500\t-2.0000\tB\n",
        ),
    ],
)
def test_what_is_printed_of_a_line(job: Job, form: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = changed(job, format=form)
    assert translated(job, "ông\n\nb\n".encode(), monkeypatch) == expected


def test_json_holds_all_translations_of_a_line(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job = changed(job, format="jsonl")
    first, second = map(json.loads, translated(job, "ông\n\n".encode(), monkeypatch).splitlines())
    assert first["translations"][0] == {"text": "ÔNG", "log_prob": -1.5, "score": -1.25}
    assert len(first["translations"]) == 2
    assert second == {"line": 2, "translations": []}


def test_only_the_first_line_in_another_language_is_reported(
    job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lines = "we drink tea\nchúng tôi đã uống trà ở đây\ntrời hôm nay đẹp\n"
    assert translated(job, lines.encode(), monkeypatch) == lines.upper()
    assert [record.getMessage() for record in caplog.records] == [
        "Line 2 does not look like en, but this run translates from en into vi: check the input, or use a run with "
        "direction=vi-en."
    ]


def test_lines_with_unknown_characters_are_counted_at_the_end(
    job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert translated(job, "a\nb 北京\nc\n京\n".encode(), monkeypatch) == "A\nB 北京\nC\n京\n"
    assert [record.getMessage() for record in caplog.records] == [
        "2 lines contain characters that the model never or hardly ever saw in training, first in line 2: '北京'"
    ]


def test_precision_and_engine_are_those_of_the_configuration(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(nmt.commands.translate, "load_with_engine", lambda *given: asked.append(given) or ([RUN], None))
    job = changed(job, precision="int8", engine="ctranslate2")
    translated(job, b"a\n", monkeypatch)
    assert asked == [([str(tmp_path)], "cpu", "int8", "ctranslate2")]


def test_prefixes_come_from_a_file_line_by_line(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "prefixes"
    file.write_text("x\n\ny\n", encoding="utf-8-sig")
    job = changed(job, prefixes=str(file))
    assert translated(job, b"a\nb\nc\n", monkeypatch) == "xA\nB\nyC\n"
    with pytest.raises(Mistake, match="prefixes has fewer lines than standard input"):
        translated(job, b"a\nb\nc\nd\n", monkeypatch)
    with pytest.raises(Mistake, match="prefixes has more lines than standard input"):
        translated(job, b"a\nb\n", monkeypatch)


@pytest.mark.parametrize("bad", [1, 2, 3, 6, 11])
def test_the_lines_before_an_invalid_byte_are_translated(
    job: Job, bad: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    data = b"a\n" * (bad - 1) + b"\xff\n" + b"b\n" * 7
    output = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    monkeypatch.setattr(sys, "stdout", output)
    with pytest.raises(Mistake, match="not UTF-8") as caught:
        translate(job)
    assert report(caught.value) == 2
    assert output.buffer.getvalue() == b"A\n" * (bad - 1)  # type: ignore[attr-defined]
    what = "is not UTF-8 (invalid start byte); convert the file with iconv, or fix the line."
    assert capfd.readouterr().err == f"error: Standard input, line {bad} {what}\n"


def test_only_line_feeds_end_a_line() -> None:
    data = "\ufeffone\r\n\ntwo\u2028three\x85\rfour\nfive".encode()
    assert list(text_lines(io.BytesIO(data), "F")) == ["one", "", "two\u2028three\x85\rfour", "five"]
