"""Standard input of nmt.translate: its lines, and the one that is not UTF-8."""

import gzip
import io
import json
import os
import pickle
import select
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from jobs import job_of

import nmt.commands.translate
from nmt.commands.translate import target_name, translate
from nmt.config.direction import Direction
from nmt.config.job import Job
from nmt.decoding.translator import TranslatedLine, Translation, Translator
from nmt.errors import Mistake, report
from nmt.exports.engine_choice import Chosen
from nmt.pace import Pace
from nmt.text.dictionary import NO_DICTIONARY, Dictionary
from nmt.text.lines import text_lines

RUN = SimpleNamespace(direction=Direction("en", "vi"))
CHOSEN: Any = Chosen([RUN], SimpleNamespace(name="torch"))  # type: ignore[list-item, arg-type]


class Upper(Translator):
    """Streams as a translator does, but translates into capitals."""

    def __init__(self) -> None:
        self.dictionary = NO_DICTIONARY

    def _translate(self, lines: Any, **_: Any) -> tuple[list[TranslatedLine], None]:
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
    monkeypatch.setattr(nmt.commands.translate, "chosen_engine", lambda *_, **__: CHOSEN)
    monkeypatch.setattr(nmt.commands.translate, "read_run", lambda _: RUN)
    monkeypatch.setattr(nmt.commands.translate, "engine_translator", lambda *_, **__: Upper())
    config = {"run_dir": str(tmp_path), "device": "cpu", "search": {}, "batch_tokens": 101, "max_source_tokens": 13}
    config |= {
        "format": "text",
        "prefixes": None,
        "dictionary": None,
        "document": False,
        "minimum_bayes_risk": False,
        "verbatim": False,
        "precision": "float32",
        "workers": 1,
        "engine": "torch",
        "cache_dir": "cache",
        "input": None,
        "output": None,
        "shard_lines": 10,
        "shard": None,
        "cluster": None,
        "cluster_processes": None,
        "cluster_address": None,
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


def test_a_program_may_wait_for_each_translation_before_it_writes_the_next_line(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"line {number}" for number in range(6)]
    (stdin, to_command), (from_command, stdout) = os.pipe(), os.pipe()
    answers: list[str] = []

    with (
        open(stdin) as reads,
        open(stdout, "w") as writes,
        open(from_command, "rb", buffering=0) as reader,
        monkeypatch.context() as patch,
    ):

        def write_and_wait() -> None:
            with open(to_command, "wb", buffering=0) as writer:
                for line in lines:
                    writer.write(f"{line}\n".encode())
                    if not select.select([reader], [], [], 10)[0]:
                        return  # the command waits for more lines
                    answers.append(reader.readline().decode())

        patch.setattr(sys, "stdin", reads)
        patch.setattr(sys, "stdout", writes)
        program = Thread(target=write_and_wait)
        program.start()
        try:
            translate(changed(job, read_ahead=1024))
        finally:
            program.join()
    assert answers == [f"{line.upper()}\n" for line in lines]


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
        "Line 2 does not look like en, but this run translates from en into vi: check the input, or use run_dir=vi-en."
    ]


def test_a_line_in_another_language_names_the_direction_if_no_included_model_has_it(
    job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("nmt.commands.translate.included_models", dict)
    translated(job, "chúng tôi đã uống trà ở đây\n".encode(), monkeypatch)
    assert caplog.messages[0].endswith("check the input, or use a run with direction=vi-en.")


def test_who_types_at_a_terminal_is_told_what_to_type(
    job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(io, "BytesIO", Terminal)
    assert translated(job, b"a\n", monkeypatch) == "A\n"
    assert caplog.messages[0] == "Type a line of en and press Enter to translate it; Ctrl-D ends."


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
    monkeypatch.setattr(nmt.commands.translate, "chosen_engine", lambda *given, **_: asked.append(given) or CHOSEN)
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


def test_a_dictionary_comes_from_a_file(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[Dictionary] = []

    def build(*_: object, dictionary: Dictionary, **__: object) -> Upper:
        received.append(dictionary)
        return Upper()

    monkeypatch.setattr(nmt.commands.translate, "engine_translator", build)
    (tmp_path / "words.tsv").write_text("soup\tsúp\n", encoding="utf-8")
    translated(changed(job, dictionary=str(tmp_path / "words.tsv")), b"soup\n", monkeypatch)
    assert [dictionary.translations for dictionary in received] == [{"soup": "súp"}]
    with pytest.raises(Mistake, match=r"dictionary is .*missing\.tsv, which does not exist; check the path"):
        translated(changed(job, dictionary=str(tmp_path / "missing.tsv")), b"soup\n", monkeypatch)
    with pytest.raises(Mistake, match=r"verbatim=true reads every line as it is, without a dictionary: leave out one"):
        changed(job, dictionary="words.tsv", verbatim=True)


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


@pytest.mark.parametrize(
    ("source", "form", "target"),
    [
        ("mono.en", "text", "mono.vi"),
        ("mono.en.gz", "text", "mono.vi.gz"),
        ("mono.en.xz", "text", "mono.vi.gz"),
        ("news.txt", "text", "news.txt.vi"),
        ("mono.en.gz", "jsonl", "mono.vi.jsonl.gz"),
    ],
)
def test_a_translation_is_named_like_a_corpus(source: str, form: str, target: str) -> None:
    assert target_name(Path("folder") / source, Direction("en", "vi"), form) == target


@pytest.fixture
def files(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job that translates a.en and b.en.gz, of 5 and 3 lines, in parts of 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nmt.commands.translate, "_made_with", lambda *_: {})
    Path("a.en").write_text("one\n\ntwo\nthree\nfour\n")
    Path("b.en.gz").write_bytes(gzip.compress(b"five\nsix\nseven"))
    return changed(job, input=["*.en", "b.en.gz"], output="out", shard_lines=2)


def test_files_are_translated_in_parts(files: Job, capsys: pytest.CaptureFixture[str]) -> None:
    translate(files)
    assert capsys.readouterr().out == "out/a.vi\nout/b.vi.gz\n"
    assert Path("out/a.vi").read_text() == "ONE\n\nTWO\nTHREE\nFOUR\n"
    assert gzip.decompress(Path("out/b.vi.gz").read_bytes()) == b"FIVE\nSIX\nSEVEN\n"


@pytest.mark.parametrize("name", ["x.vi", "x.txt", "x.jsonl", "x.gz"])
def test_a_folder_with_the_name_of_a_file_is_refused(files: Job, name: str) -> None:
    with pytest.raises(
        Mistake, match=rf"^output is {name}, which looks like a file, .* translations: name a folder\.$"
    ):
        translate(changed(files, output=name))
    assert not Path(name).exists()
    Path(name).mkdir()
    translate(changed(files, output=name))
    assert (Path(name) / "a.vi").is_file()


@pytest.mark.parametrize(
    ("input", "output", "filter"),
    [
        ("a.en", "x.vi", "< a.en > x.vi"),
        ("it's.en", "my x.txt", """< 'it'"'"'s.en' > 'my x.txt'"""),
        ("a.en", "x.gz", None),
        ("b.en.gz", "x.vi", None),
        (["a.en", "it's.en"], "x.vi", None),
    ],
)
def test_one_plain_file_may_be_translated_without_a_folder(
    files: Job, input: str | list[str], output: str, filter: str | None
) -> None:
    Path("it's.en").write_text("one\n")
    with pytest.raises(Mistake) as caught:
        translate(changed(files, input=input, output=output))
    remedy = "" if filter is None else f", or write instead of input and output: {filter}"
    assert str(caught.value).removesuffix(".").endswith(f"translations: name a folder{remedy}")


def test_the_process_that_starts_a_cluster_keeps_no_model(files: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """It loads it on the CPU, because the GPU is for the other processes, or only they have one."""
    devices, models = list[str](), list[weakref.ref]()

    class Model(Upper):
        pass

    def load(names: list[str], device: str, *_: object, **__: object) -> Any:
        devices.append(device)
        return CHOSEN

    def build(*_: object, **__: object) -> Model:
        model = Model()
        models.append(weakref.ref(model))
        return model

    def run(share: Callable[[int, int], None], *_: object, gpu: bool) -> None:
        assert gpu
        assert [model() for model in models] == [None]
        share(1, 1)

    monkeypatch.setattr(nmt.commands.translate, "chosen_engine", load)
    monkeypatch.setattr(nmt.commands.translate, "engine_translator", build)
    monkeypatch.setattr(nmt.commands.translate, "run_on_ray", run)
    translate(changed(files, cluster="ray", device="cuda"))
    assert devices == ["cpu", "cuda"]
    with pytest.raises(Mistake, match=r"^precision=int8 runs only on the CPU"):
        translate(changed(files, cluster="ray", device="cuda", precision="int8", output="other"))
    assert not Path("other").exists()


def test_a_cluster_translates_the_shares_of_all_its_processes(
    files: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it runs is pickled, and has no relative paths, because its processes may be in other folders."""
    shares = list[int]()

    def run(share: Callable[[int, int], None], processes: int | None, address: str | None, *, gpu: bool) -> None:
        assert (processes, address, gpu) == (3, None, False)
        share = pickle.loads(pickle.dumps(share))
        with monkeypatch.context() as elsewhere:
            elsewhere.chdir("/")
            for number in (3, 1, 2):
                share(number, 3)
                shares.append(number)

    monkeypatch.setattr(nmt.commands.translate, "run_on_ray", run)
    for _ in range(2):  # a finished job needs no cluster
        translate(changed(files, cluster="ray", cluster_processes=3))
        assert capsys.readouterr().out == "out/a.vi\nout/b.vi.gz\n"
    assert shares == [3, 1, 2]
    assert Path("out/a.vi").read_text() == "ONE\n\nTWO\nTHREE\nFOUR\n"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"cluster_processes": 2}, "cluster_processes=2 is only for a cluster: add cluster=ray, or leave it out."),
        ({"cluster_address": "a:1"}, "cluster_address=a:1 is only for a cluster: add cluster=ray, or leave it out."),
        ({"cluster": "ray"}, "cluster=ray is only for files: add input=FILE output=FOLDER, or leave it out."),
        (
            {"cluster": "ray", "input": "a", "output": "b", "shard": "1/2"},
            "cluster=ray divides the work itself: leave out shard=1/2.",
        ),
        (
            {"cluster": "ray", "input": "a", "output": "b", "workers": 2},
            "cluster=ray starts the processes itself: write cluster_processes=2 instead of workers=2.",
        ),
    ],
)
def test_settings_of_a_cluster_that_contradict_others_are_mistakes(
    job: Job, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Mistake) as caught:
        changed(job, **changes)
    assert str(caught.value) == sentence


def test_numbers_of_lines_are_those_of_the_file(files: Job, caplog: pytest.LogCaptureFixture) -> None:
    Path("a.en").write_text("one\n\ntwo\nba 北\nchúng tôi đã uống trà ở đây\n")
    translate(changed(files, format="jsonl"))
    rows = [json.loads(line) for line in Path("out/a.vi.jsonl").read_text().splitlines()]
    assert [row["line"] for row in rows] == [1, 2, 3, 4, 5]
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings[0].startswith("a.en, line 5 does not look like en, but this run translates from en into vi")
    assert warnings[1].endswith("first in line 4: '北'")
    assert warnings[1].startswith("a.en, in the parts that this process translated: 1 line contains characters")


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_shards_share_the_parts_of_all_files(
    files: Job, order: tuple[int, int], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    first, second = order
    translate(changed(files, shard=f"{first}/2"))
    assert capsys.readouterr().out == ""
    assert "out/a.vi: " in caplog.text
    assert "They belong to other shards; the last process to finish joins the parts." in caplog.text
    translate(changed(files, shard=f"{second}/2"))
    assert capsys.readouterr().out == "out/a.vi\nout/b.vi.gz\n"
    assert Path("out/a.vi").read_text() == "ONE\n\nTWO\nTHREE\nFOUR\n"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"output": None}, "input is given without output: name a folder"),
        ({"input": None}, "output=out is only for files: add input=FILE"),
        ({"input": []}, "input is an empty list; name at least one file"),
        ({"prefixes": "p"}, "prefixes is only for standard input: leave out input and output"),
        ({"input": None, "output": None, "shard": "1/2"}, "shard=1/2 is only for files: add input=FILE"),
        ({"shard": "0/8"}, "shard is 0/8; it must be I/N, the I-th of N processes, counted from 1, such as 3/8"),
        ({"shard": "9/8"}, "shard is 9/8; it must be I/N"),
        ({"shard": "8"}, "shard is 8; it must be I/N"),
        ({"input": ["x/*.en"]}, r"input is x/\*\.en, which matches no file; check the pattern"),
        ({"input": ["x.en"]}, r"input is x\.en, which does not exist; check the path"),
        ({"input": ["packed.en"]}, r"input is packed\.en, which does not exist: name packed\.en\.gz instead, which"),
        ({"input": ["a.en", "other/a.en"]}, r"a\.en and other/a\.en would both become a\.vi: rename one"),
        ({"output": "a.en"}, r"output is a\.en, but a\.en is a file; choose another folder"),
    ],
)
def test_files_that_cannot_be_translated_are_a_mistake(files: Job, changes: dict[str, Any], sentence: str) -> None:
    Path("other").mkdir()
    Path("other/a.en").write_text("one\n")
    Path("packed.en.gz").touch()

    def run() -> None:
        translate(changed(files, **changes))

    with pytest.raises(Mistake, match=sentence):
        run()
    assert not Path("out").exists()


def test_progress_counts_only_what_is_left(files: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[int, int]] = []
    monkeypatch.setattr(Pace, "__call__", lambda self, *given: counted.append(given))
    translate(changed(files, shard="2/2"))
    translate(files)
    assert counted == [(1, 4)] * 4 + [(1, 4)] * 4
