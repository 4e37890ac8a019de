import re
import shlex
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.cli.compose import configuration
from nmt.cli.help import help_text
from nmt.commands.prepare import prepare
from nmt.config.job import Job
from nmt.config.nodes import CONFIGS
from nmt.config.schema import TrainSettings, validated
from nmt.errors import Mistake
from nmt.text.lines import read_lines


def cells(output: str, kind: str) -> list[str]:
    [line] = [line for line in output.splitlines() if line.startswith(f"| {kind} ")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_the_report_counts_defects_and_what_is_left(
    corpus: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(corpus)
    valid = [(corpus / f"valid.{language}").read_text(encoding="utf-8") for language in ("en", "vi")]
    for language, lines in zip(("en", "vi"), valid, strict=True):
        with (corpus / f"train.{language}").open("a", encoding="utf-8", newline="") as file:
            file.write("\r\n" + lines)
    prepare(job("prepare", filters__drop_overlap=True, cache_dir="cache"))
    output = capsys.readouterr().out
    assert cells(output, "pairs") == ["219", "7", "1"]
    assert cells(output, "a side is empty") == ["1", "0", "0"]
    assert cells(output, "lines on either side that end in CR LF") == ["2", "0", "0"]
    assert int(cells(output, "a side is in another split")[0]) >= 7
    assert "train, line 213: a side is in another split (valid, line 1)" in output.splitlines()
    assert "train, line 212: a side is empty" in output.splitlines()
    assert re.search(r"^Training data: 219 pairs, \d+ kept .*; dropped: .*1 empty", output, re.MULTILINE)
    assert list((corpus / "cache").iterdir())
    assert not (corpus / "run").exists()


def test_it_says_that_no_side_is_in_another_split(
    corpus: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(corpus)
    for number, split in enumerate(("train", "valid", "test")):
        for language in ("en", "vi"):
            (corpus / f"{split}.{language}").write_text(f"{split} line {number} {language}\n" * 3)
    prepare(job("prepare", cache_dir="cache"))
    assert cells(capsys.readouterr().out, "a side is in another split") == ["0", "0", "0"]


def test_mistakes_are_reported_as_by_training(command: Callable[..., Any], tiny: Callable[..., list[str]]) -> None:
    ended = command("prepare", *tiny(data__train="[trian]"))
    assert (ended.code, ended.output) == (2, "")
    assert ended.errors.startswith("error: There is no file trian.en in ")
    assert ended.errors.endswith("Did you mean train?\n")


@pytest.mark.parametrize("folder", ["plain", "my dir/thư mục 'a' \"b\" $c"])
def test_a_split_prints_the_command_that_trains_on_it(
    corpus: Path,
    job: Callable[..., Job],
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(corpus)
    (corpus / folder).mkdir(parents=True)
    for language in ("en", "vi"):
        (corpus / f"train.{language}").rename(corpus / folder / f"all.{language}")
    quoted = "'" + f"{folder}/all".replace("'", "\\'") + "'"
    prepare(job("prepare", split__corpus=quoted, split__valid=13, split__test=0.05))
    output = capsys.readouterr().out
    train, valid, test = (int(cells(output, part)[0]) for part in ("train", "valid", "test"))
    assert (valid, test) == (13, round(0.05 * 211))
    assert train + valid + test + int(cells(output, "left out: also in validation or test")[0]) == 211
    python, *words = shlex.split(output.splitlines()[-1])
    assert [python, *words[:2]] == ["python", "-m", "nmt.train"]
    assert "'data.train=[" in output.splitlines()[-1]
    data = validated(TrainSettings, configuration("train", [*words[2:], "run_dir=none"])).data
    prefixes = {"train": data.train[0], "valid": data.valid, "test": data.test}
    assert prefixes == {part: f"{folder}/all_split/{part}" for part in prefixes}
    assert {part: len(read_lines(Path(f"{prefix}.vi"))) for part, prefix in prefixes.items()} == {
        "train": train,
        "valid": valid,
        "test": test,
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"split__corpus": "train", "split__out": "train.en/a"}, r"split\.out is train\.en/a, "),
        ({"split__corpus": "absent"}, r"There is no file absent\.en in "),
        ({"split__corpus": "train"}, r"split\.valid and split\.test ask for 2,000 pairs, but only \d+ of 211 pairs"),
        ({"split__corpus": "train", "split__valid": -1}, r"split\.valid is -1; it must be a number of pairs, such as"),
        ({"split__corpus": "train", "split__valid": 0}, r"split\.valid is 0, but training needs validation pairs"),
        ({"split__corpus": "train", "split__test": 1.5}, r"split\.test is 1\.5; .* or a share of the corpus, such as"),
        ({"split__out": "parts"}, r"split\.out is given without split\.corpus; name the corpus to split"),
    ],
)
def test_a_split_that_is_not_possible_is_refused(
    corpus: Path, job: Callable[..., Job], given: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    before = sorted(corpus.iterdir())
    with pytest.raises(Mistake, match=message):
        prepare(job("prepare", **given))
    assert sorted(corpus.iterdir()) == before


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_a_split_warns_if_most_pairs_are_held_out(
    corpus: Path,
    job: Callable[..., Job],
    share: float,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(corpus)
    prepare(job("prepare", split__corpus="train", split__valid=share, split__test=share))
    warned = re.search(r"Only \d+ of 211 pairs are left for training: to keep more, delete train_split", caplog.text)
    assert bool(warned) == (share == 0.3)


def test_a_split_refuses_to_overwrite(
    corpus: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(corpus)
    given = {"split__corpus": "train", "split__valid": 5, "split__test": 5}
    prepare(job("prepare", **given))
    with pytest.raises(Mistake, match=r"^train_split exists; choose a new folder with split\.out=, or delete it"):
        prepare(job("prepare", **given))


def test_a_small_corpus_gets_a_vocabulary_that_fits(
    corpus: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(corpus)
    with caplog.at_level("INFO"):
        prepare(job("prepare", tokenizer__size="null", cache_dir="cache"))
    assert re.search(r"this text supports at most (\d+) pieces: the vocabulary has \1 instead of 8,000", caplog.text)


def test_help_lists_the_keys_and_choices_of_training_too() -> None:
    config = configuration("prepare", ["run_dir=none"])
    text = help_text(CONFIGS, "prepare", "", defaultdict(str, data="sample"), config)
    assert re.search(r"^  split:  .*\n(?: +# .*\n)*    corpus: null", text, re.MULTILINE)
    assert re.search(r"^  seed: 1\b", text, re.MULTILINE)
    assert re.search(r"^data=\n(    .*\n)+  \* sample ", text, re.MULTILINE)


def test_a_run_to_start_from_that_does_not_exist_is_refused_before_the_report(
    corpus: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(corpus)
    with pytest.raises(Mistake, match=r"start_from=absent: there is no such folder"):
        prepare(job("prepare", start_from="absent", cache_dir="cache"))
    assert capsys.readouterr().out == ""
