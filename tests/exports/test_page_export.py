"""The page that is one file: it translates and changes attention in a browser, from disk and without a request."""

import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from axe_playwright_python.sync_playwright import Axe
from watched_page import tips, watched_page

import nmt
from nmt.commands.export import export
from nmt.config.direction import Direction
from nmt.config.job import Job
from nmt.config.schema import ContextSettings
from nmt.errors import CheckFailed, Mistake
from nmt.exports import page_export, page_file
from nmt.exports.page_export import page_text
from nmt.exports.page_file import PageRun, page_data
from nmt.runs.load import LoadedRun, load_run
from nmt.text import Tokenizer
from nmt.text.tokenizer import _OPTIONS

TEXT = "one two three."


@contextmanager
def open_page(runs: Sequence[PageRun], browser: Any, folder: Path, anchor: str = "", **settings: Any) -> Iterator[Any]:
    """The page of the runs, opened from disk without network; at the end there was no message and no request."""
    file = folder / "lab.html"
    file.write_text(page_text(page_data(runs, "float32")), encoding="utf-8")
    own = (file.as_uri(), "data:", "blob:")
    with watched_page(browser, *own, timeout=30_000, offline=True, **settings) as page:
        page.goto(file.as_uri() + anchor)
        page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()  # its first translation
        yield page


def translate(page: Any, text: str) -> None:
    page.locator("#text").fill(text)
    page.locator("#ask button[type='submit']").click()
    page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()


def test_it_translates_and_changes_attention_from_disk(run: Path, browser: Any, tmp_path: Path) -> None:
    with open_page([PageRun("numbers", load_run(run, "cpu"))], browser, tmp_path) as page:
        translate(page, TEXT)
        # Only the map has the space beside what is said about the run.
        size = page.locator("#intact .scroll").bounding_box()
        assert page.locator("#intact svg").first.bounding_box()["width"] <= size["width"]
        assert page.locator("#about").bounding_box()["y"] >= size["y"] + size["height"]
        [expected] = nmt.load(run).translate([TEXT])
        assert page.locator("#answer .translation").text_content().strip() == expected
        page.locator("#intact .cell[data-row='0'][data-column='1']").click()
        page.get_by_role("button", name="Block at every step").first.click()
        page.locator("#changed .cell").first.wait_for()
        titles = tips(page.locator("#changed .cell[data-column='1']"))
        assert titles
        assert all(title.endswith(": 0.000") for title in titles)


def test_the_command_writes_a_page_and_compares_it(
    run: Path, job: Callable[..., Job], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed to compare a page in.")
    export(job("export", run_dir=str(run), format="page", out="lab.html", quantization="int8"))
    printed = capsys.readouterr().out
    assert re.match(r"Compared on 7 sentences \(\d+ pieces\): .* The page is 0\.\d MB\.\nlab\.html\n$", printed)
    with pytest.raises(Mistake, match=r"^out is lab.html, which exists: choose another file, or overwrite=true"):
        export(job("export", run_dir=str(run), format="page", out="lab.html"))


def test_pairs_of_one_direction_are_not_for_runs_of_two(
    run: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(folder: Path, device: str) -> LoadedRun:
        loaded = load_run(run, device)
        if folder.name == "run":
            return loaded
        opposite = loaded.settings.model_copy(update={"direction": Direction("vi", "en")})
        return loaded._replace(settings=opposite)

    monkeypatch.setattr("nmt.commands.export.load_run", opened)
    files = {"source": "valid.en", "reference": "[valid.vi]"}
    with pytest.raises(Mistake, match="but the runs translate in several directions: leave both out, and each run is"):
        export(job("export", run_dirs="[run,other]", format="page", out="lab.html", **files))


def test_without_node_the_pairs_are_not_used(
    run: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    files = {"source": "valid.en", "reference": "[valid.vi]"}
    export(job("export", run_dir=str(run), format="page", out="lab.html", **files))
    assert "valid.en and valid.vi are not used without Node.js." in caplog.text


def test_a_page_that_computes_nan_is_refused(
    run: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed to compare a page in.")

    def answers(node: str, data: bytes, questions: list[tuple[str, dict[str, Any]]]) -> list[Any]:
        return [
            [None] * (len(question["target_ids"]) + 1) if method == "score" else [{"text": ""}]
            for method, question in questions
        ]

    monkeypatch.setattr("nmt.exports.page_export.answers_in_node", answers)
    with pytest.raises(CheckFailed, match=r"computes NaN or infinity\. Nothing was written\."):
        export(job("export", run_dir=str(run), format="page", out="lab.html"))
    assert not Path("lab.html").exists()


def test_a_run_whose_tokenizer_has_other_settings_is_refused(
    run: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no Node.js would notice that the page cuts words differently."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    shutil.copytree(run, "other/run")
    (file,) = Path("other/run").glob("tokenizer*.model")
    other = io.BytesIO()
    options = {**_OPTIONS, "model_type": "word", "vocab_size": 300, "hard_vocab_limit": False}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter([TEXT] * 9), model_writer=other, **options)
    file.write_bytes(other.getvalue())
    metrics = json.loads(Path("other/run/metrics.json").read_text(encoding="utf-8"))
    metrics["tokenizers"] = {file.name: hashlib.sha256(other.getvalue()).hexdigest()}
    Path("other/run/metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    with pytest.raises(Mistake, match=rf"^other/run/{file.name}: This SentencePiece model is word, but a run needs"):
        export(job("export", run_dir="other/run", format="page", out="other.html"))
    assert not Path("other.html").exists()


def test_one_page_holds_several_runs(
    run: Path, job: Callable[..., Job], capsys: pytest.CaptureFixture[str], browser: Any
) -> None:
    shutil.copytree(run, "other/run")
    export(job("export", run_dirs="[run,other/run]", format="page", out="lab.html", quantization="int8"))
    printed = capsys.readouterr().out.splitlines()
    if shutil.which("node") is not None:
        names = [line.partition(": Compared on 7 sentences")[0] for line in printed[:2]]
        assert names == [f"{run.resolve().parent.name}/run", "other/run"], "as short as they can be"
    assert printed[-1] == "lab.html"


def test_runs_are_switched_and_compared(run: Path, browser: Any, tmp_path: Path) -> None:
    one, two = load_run(run, "cpu"), load_run(run, "cpu")
    with torch.no_grad():
        for name, parameter in two.model.named_parameters():
            if ".cross.query." in name:
                parameter.zero_()  # such a query sees all keys alike
    with open_page([PageRun("learned", one), PageRun("uniform", two)], browser, tmp_path) as page:
        assert page.locator("#run option").all_text_contents() == [
            "learned (English → Vietnamese)",
            "uniform (English → Vietnamese)",
        ]
        translate(page, TEXT)
        page.locator("#unit").select_option("pieces")
        page.locator("#second").select_option("uniform")
        page.locator("#other .cell").first.wait_for()
        width = page.locator("#other text[data-column]").count()
        weights = [tip[-5:] for tip in tips(page.locator("#other .cell"))]
        assert set(weights) == {f"{1 / width:.3f}"}
        page.locator("#difference").check()
        page.locator("#minus .cell").first.wait_for()
        assert page.locator("#minus-name").text_content() == "learned minus uniform"
        page.locator("#run").select_option("uniform")
        page.wait_for_function("() => document.querySelector('#intact-name').textContent.includes('uniform')")
        page.locator("#results[aria-busy='false']").wait_for()
        assert page.locator("#second").input_value() == "", "a run is not compared with itself"


def test_an_empty_translation_is_said_in_words_that_nobody_copies(run: Path, browser: Any, tmp_path: Path) -> None:
    silent = load_run(run, "cpu")
    with torch.no_grad():
        silent.model.output.weight.zero_()  # all pieces are equally likely, so the shortest translation is the best
    says = 'words => getComputedStyle(words.querySelector(".nothing"), "::before").content'
    for anchor, name, words in (
        ("", "translation", "(the model wrote nothing)"),
        ("?lang=vi", "bản dịch", "(mô hình không viết gì)"),
    ):
        with open_page([PageRun("silent", silent)], browser, tmp_path, anchor, permissions=["clipboard-write"]) as page:
            page.locator("#try-block").click()
            page.locator("#outcome:not([hidden])").wait_for()
            for place in ("#answer", "#outcome"):
                shown = page.locator(f"{place} .translation")
                assert (shown.text_content(), shown.evaluate(says)) == ("", f'"{words}"')
            assert words in page.get_by_role("region", name=name).first.aria_snapshot()
            assert page.locator("#answer .translation button").count() == 0
            assert Axe().run(page).response["violations"] == []
            page.locator("#save-menu").evaluate("menu => { menu.open = true; }")
            with page.expect_download() as download:
                page.locator("#save-svg").click()
            assert words not in download.value.path().read_text(encoding="utf-8")


HOSTILE = "<img src=x onerror='executed=1'></script><script>executed=1</script>&lt;\u202e\u2067👩‍👩‍👧‍👦\0"


def test_hostile_text_in_a_run_or_typed_is_shown_as_text(
    run: Path, browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = page_file._vocabulary

    def hostile_vocabulary(tokenizer: Tokenizer) -> dict[str, Any]:
        vocabulary = read(tokenizer)
        pieces = [f"▁{HOSTILE}{piece}" if piece.startswith("▁") else piece for piece in vocabulary["pieces"]]
        return {**vocabulary, "pieces": pieces}

    loaded = load_run(run, "cpu")
    monkeypatch.setattr(page_file, "_vocabulary", hostile_vocabulary)
    monkeypatch.setattr(page_file, "example_pairs", lambda run: [(f"{HOSTILE} {TEXT}", HOSTILE)])
    with open_page([PageRun(HOSTILE, loaded), PageRun("other", loaded)], browser, tmp_path) as page:
        page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
        assert page.locator("#run option").first.text_content() == f"{HOSTILE} (English → Vietnamese)"
        assert page.locator("#examples button").first.text_content() == f"{HOSTILE} {TEXT}"
        assert HOSTILE in page.locator("#about").text_content()
        translate(page, f"{HOSTILE} one.")
        page.reload()  # the address has the sentence
        page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
        assert page.locator("#text").input_value() == f"{HOSTILE} one."
        # Invisible characters are removed from translations.
        visible = HOSTILE.partition("\u202e")[0]
        assert visible in page.locator("#answer .translation").text_content(), "a piece of the translation"
        page.locator("#head").select_option("0")  # the mean of several heads has no equation
        page.locator("#intact .cell").first.click()
        page.get_by_role("button", name="Block at every step").first.click()
        page.locator("#changed .cell").first.wait_for()
        page.locator("details").evaluate_all("boxes => boxes.forEach(box => { box.open = true; })")
        page.locator("#numbers tr").first.wait_for()
        assert page.evaluate("typeof executed") == "undefined"
        assert page.locator("main img, main script").count() == 0


def test_long_text_is_refused_by_a_sentence_and_a_translation_can_be_stopped(
    run: Path, browser: Any, tmp_path: Path
) -> None:
    with open_page([PageRun("numbers", load_run(run, "cpu"))], browser, tmp_path) as page:
        for unit in ("a", "one two. ", "👩‍👧", "é\u0301"):
            page.locator("#text").fill(f"{unit}{unit * (10_000 // len(unit))}")
            page.locator("#ask button[type='submit']").click()
            page.get_by_text("pieces; shorten it to at most").wait_for(timeout=10_000)
            assert page.locator("#intact").is_hidden()
            translate(page, TEXT)
        page.reload()
        page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
        page.locator("#text").fill("one two three. " * 10)
        page.evaluate(
            """() => {
                document.querySelector("#ask").requestSubmit();
                document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
            }"""
        )
        page.get_by_text("Stopped.").wait_for()
        assert page.locator("#results").get_attribute("aria-busy") == "false"
        assert page.locator("#intact").is_hidden(), "it belongs to another sentence"
        translate(page, TEXT)


def test_it_is_used_by_keyboard_alone(run: Path, browser: Any, tmp_path: Path) -> None:
    with open_page([PageRun("numbers", load_run(run, "cpu"))], browser, tmp_path) as page:
        page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()

        def tab_to(selector: str) -> None:
            for _ in range(40):
                if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                    return
                page.keyboard.press("Tab")
            raise AssertionError(f"Tab does not reach {selector}")

        tab_to("#text")
        page.keyboard.press("Control+A")
        page.keyboard.type(TEXT)
        page.keyboard.press("Enter")
        page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for()
        tab_to("#intact svg")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("-")
        page.locator("#changed .cell").first.wait_for()


@pytest.mark.parametrize(("language", "translated_by"), [("en", "Translation by one"), ("vi", "Bản dịch của one")])
def test_a_phone_shows_everything_and_axe_finds_nothing(
    run: Path, browser: Any, tmp_path: Path, language: str, translated_by: str
) -> None:
    runs = [PageRun(name, load_run(run, "cpu")) for name in ("one", "two")]
    address = (
        f"?lang={language}#run=one&second=two&text={TEXT}&unit=words&layer=0&head=1&row=1&column=2&difference=true"
    )
    scheme = "light" if language == "en" else "dark"
    with open_page(
        runs, browser, tmp_path, address, viewport={"width": 390, "height": 844}, is_mobile=True, color_scheme=scheme
    ) as page:
        page.locator("#minus .cell").first.wait_for()
        assert page.locator("#intact-name").text_content() == translated_by
        assert page.locator("html").get_attribute("lang") == language
        page.locator("details").evaluate_all(
            "boxes => boxes.forEach(box => { box.open = box.id !== 'attribution-box'; })"
        )
        page.locator("#numbers tr").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        found = Axe().run(page).response["violations"]
        assert [(each["id"], each["impact"], [node["html"][:80] for node in each["nodes"]]) for each in found] == []


def test_several_runs_that_a_page_cannot_hold_are_refused(
    run: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(message: str, **settings: Any) -> None:
        with pytest.raises(Mistake, match=message):
            export(job("export", **{"format": "page", "out": "a.html", **settings}))

    refused(r"^run_dir is missing. Add run_dir=PATH to the command, or 'run_dirs=\[A,B\]' with format=page.$")
    refused("^run_dir and run_dirs are both set: write all runs into run_dirs", run_dir="run", run_dirs="[run]")
    refused(
        "^run_dirs is only for format=page; with format=onnx, export each run", run_dirs="[run]", format="onnx", out="a"
    )
    refused("^run_dirs names ./run twice; name each run once.$", run_dirs="[./run,run]")
    refused(
        r"^run_dirs names 5 runs, but a page holds at most 4, because .*: name fewer, or use python -m nmt.serve "
        r"'run_dirs=\[a,b,c,d,e\]' instead.$",
        run_dirs="[a,b,c,d,e]",
    )
    monkeypatch.setattr(page_export, "MOST_BYTES", 100_000)
    shutil.copytree(run, "other")
    refused(
        r"^The page would be 1 MB, but it may be at most 0 MB, because .* memory to open it: leave out a run, or add "
        r"quantization=int8, or use python -m nmt.serve 'run_dirs=\[run,other\]' instead.$",
        run_dirs="[run,other]",
    )
    assert not Path("a.html").exists()


def test_without_node_the_page_is_written_with_a_warning(
    run: Path,
    job: Callable[..., Job],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    shutil.copytree(run, "alone/run")
    for folder in ("evaluation", "probes"):
        shutil.rmtree(Path("alone/run", folder), ignore_errors=True)
    monkeypatch.chdir("alone")  # where the corpora are not
    export(job("export", run_dir="run", format="page", out="new/lab.html"))
    assert "it was not compared with the run.\nnew/lab.html\n" in capsys.readouterr().out
    assert "Node.js 18 or newer is not installed, so the page was not compared with the run" in caplog.text


def test_a_node_that_is_too_old_is_not_asked(
    run: Path,
    job: Callable[..., Job],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    old = tmp_path / "old" / "node"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho v12.22.9\n", encoding="utf-8")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent), prepend=os.pathsep)
    export(job("export", run_dir=str(run), format="page", out="lab.html"))
    assert "it was not compared with the run.\nlab.html\n" in capsys.readouterr().out


def test_what_a_page_cannot_hold_is_refused(
    run: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(message: str, **settings: Any) -> None:
        with pytest.raises(Mistake, match=message):
            export(job("export", run_dir=str(run), format="page", **settings))

    refused(r"^out is lab, but format=page writes one file: name it, such as lab.html.$", out="lab")
    refused(
        r"^quantization is int16, but with format=page it must be float32 or int8.$", out="a.html", quantization="int16"
    )
    Path("folder.html").mkdir()
    Path("link.html").symlink_to("lab.html")
    refused(r"^out is link.html, which is a symbolic link to .*lab\.html: name the file itself\.$", out="link.html")
    for folder in ("folder.html", "."):
        refused(rf"^out is {re.escape(folder)}, which is a folder, but format=page writes one file", out=folder)
    os.mkfifo("pipe.html")
    refused(r"^out is pipe.html, which is a device or a pipe, but format=page writes one file", out="pipe.html")
    long = "x" * 300
    refused(rf"^out is {long}.html, which cannot be created \(File name too long\)", out=f"{long}.html")
    Path("own.html").write_text("<!doctype html>", encoding="utf-8")
    refused("^out is own.html, which exists and is not an exported page", out="own.html", overwrite=True)
    assert Path("own.html").read_text(encoding="utf-8") == "<!doctype html>"
    loaded = load_run(run, "cpu")
    joined = loaded.settings.model_copy(update={"context": ContextSettings(sentences=2)})
    with pytest.raises(
        Mistake,
        match=r"^A page does not support models that read documents .* use python -m nmt\.serve 'run_dirs=\[run\]'",
    ):
        page_data([PageRun("documents", loaded._replace(settings=joined))], "int8")
    monkeypatch.setattr(page_file, "MOST_PARAMETERS", 1000)
    refused(
        r"^run has [\d,]+ parameters, but a page holds at most 1,000, because .*; use python -m nmt.serve", out="a.html"
    )
