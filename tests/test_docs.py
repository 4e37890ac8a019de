"""What the documents say holds: links lead somewhere, examples run, commands are ones that the program reads."""

import doctest
import json
import pkgutil
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import yaml

import nmt
from nmt.cli.arguments import for_hydra
from nmt.cli.compose import choices_and_values, configuration
from nmt.cli.help import help_text
from nmt.cli.settings_class import settings_class
from nmt.commands.export_attention import export_attention
from nmt.config.direction import Direction
from nmt.config.nodes import CONFIGS
from nmt.config.schema import validated
from nmt.data.inspection import checks, inspect
from nmt.exports.extras import install_command

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
VIETNAMESE = [ROOT / "README.vi.md", *sorted((DOCS / "vi").glob("*.md"))]
# The notebook and the changelog have the commands and names of their time; translations have those of their originals.
MANUAL = [page for page in PAGES if page.name not in ("lab_notebook.md", "CHANGELOG.md") and page not in VIETNAMESE]
KEYS = DOCS / "reference" / "commands.md"

FENCE = re.compile(r"^```([\w{}-]*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
ONE_LINE = re.compile(r"\s*\\?\n\s*")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
NOT_ARGUMENTS = ("-m", "--help", "--cfg", "job", "--resolve")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def without_code(text: str) -> str:
    """A page's text without blocks and spans of code."""
    return CODE.sub("", FENCE.sub("", text))


def links(page: Path) -> list[str]:
    """The targets of a page's links and pictures."""
    text = without_code(page.read_text(encoding="utf-8"))
    inline = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    return inline + re.findall(r"^\[[^]]+\]: (\S+)$", text, re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page: those that GitHub makes of its headings, and its own."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([^"]+)">', text))


def code(page: Path) -> Iterator[str]:
    """What a page shows as code: each command of its blocks, and each span, on one line."""
    text = page.read_text(encoding="utf-8")
    for kind, block in FENCE.findall(text):
        if kind == "":
            yield from re.sub(r"\\\n\s*", "", block).splitlines()
    for span in CODE.findall(FENCE.sub("", text)):
        yield ONE_LINE.sub(" ", span)


def commands(page: Path) -> list[str]:
    """The commands of the application on a page, without pipes, redirections and comments."""
    found = (re.search(r"(?<!=)\b(?:python|torchrun .*) -m nmt\.([a-z_]+.*)", line) for line in code(page))
    return [re.split(r" [<>|] | #", match[1])[0].strip() for match in found if match]


MANUAL_COMMANDS = sorted({(name(page), line) for page in MANUAL for line in commands(page)})


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path):
    for link in links(page):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_citation_is_a_link(page: Path):
    """A label such as [Luong et al. 2015] is shown with its brackets where its address is missing."""
    text = page.read_text(encoding="utf-8")
    labels = set(re.findall(r"\[([A-Z][^\]\n]*\d{4}[ab]?)\](?![(:])", without_code(text)))
    assert labels <= set(re.findall(r"^\[([^]]+)\]: ", text, re.MULTILINE))


@pytest.mark.parametrize("page", MANUAL, ids=name)
def test_every_file_that_is_named_is_there(page: Path):
    for line in code(page):
        for path in re.findall(r"(?<![\w/.])((?:docs|scripts|configs|nmt|tests|data/sample)/[\w/]*[\w/]\.?\w+)", line):
            assert (ROOT / path).exists() or "NAME" in path, path
        for module in re.findall(r"-m (scripts\.[\w.]+)", line):
            assert (ROOT / module.replace(".", "/")).with_suffix(".py").is_file(), module


def test_every_cited_paper_is_in_the_bibliography():
    """In code, comments and configurations: 'Luong et al. 2015', 'Nguyen & Salazar (2019', 'Och & Ney 2003'."""
    entries = (DOCS / "reference" / "bibliography.md").read_text(encoding="utf-8")
    cited = re.compile(r"(?<!, )([A-Z][\w-]+(?: et al\.| & [A-Z][\w-]+)) \(?((?:19|20)\d\d)")
    files = [*(ROOT / "nmt").rglob("*.py"), *CONFIGS.rglob("*.yaml"), *(ROOT / "scripts").rglob("*.py")]
    for file in files:
        for names, year in cited.findall(file.read_text(encoding="utf-8")):
            assert f"**{names} {year}" in entries, f"{names} {year} in {file.relative_to(ROOT)}"


def test_pages_name_each_other_by_links():
    for page in MANUAL:
        named = [span for span in code(page) if re.fullmatch(r"[\w/]+\.md", span)]
        assert not named, f"{name(page)} names {named} without a link"


@pytest.mark.parametrize("contents", [DOCS / "README.md", DOCS / "vi" / "README.md"], ids=name)
def test_every_page_is_in_the_contents(contents: Path):
    linked = {(contents.parent / link.partition("#")[0]).resolve() for link in links(contents)}
    ours = [page for page in DOCS.rglob("*.md") if (page in VIETNAMESE) == (contents in VIETNAMESE)]
    assert {page for page in ours if page.name != "README.md"} <= linked


def original(translation: Path) -> Path:
    """The English page that a Vietnamese page translates; it has the same file name."""
    if translation.name == "README.vi.md":
        return ROOT / "README.md"
    (page,) = [page for page in DOCS.rglob(translation.name) if page not in VIETNAMESE]
    return page


VERSION = re.compile(
    r"(?:Python |torch |section |mục |License |CC0 |CC BY-SA |A\.)(\d+(?:\.\d+)*(?:(?:, | or | hoặc )\d+(?:\.\d+)+)*)"
)
NUMBER = re.compile(r"\d[\d.,]+\d")


def numbers(text: str, other: str, vietnamese: bool) -> set[str]:
    """The numbers of a page in the English notation. 1,503 and 22.3 are 1.503 and 22,3 in Vietnamese; versions and
    formulas are written alike, and so are lines that are the same in both languages, which a program prints.
    """
    alike = set(other.splitlines())
    prose = "\n".join(line for line in text.splitlines() if line not in alike)
    prose = re.sub(r"\$[^$]+\$", "", CODE.sub("", prose))
    versions = {version for several in VERSION.findall(prose) for version in re.findall(r"\d[\d.]*", several)}
    found = set(NUMBER.findall(VERSION.sub("", prose)))
    return versions | {number.translate(str.maketrans(".,", ",.")) if vietnamese else number for number in found}


def test_numbers_in_vietnamese_have_the_separators_of_vietnamese():
    assert numbers("1.503 cụm, 22,3 BLEU, Python 3.11", "", vietnamese=True) == {"1,503", "22.3", "3.11"}
    assert numbers("1,503 phrases, 22.3 BLEU, Python 3.11", "", vietnamese=False) == {"1,503", "22.3", "3.11"}
    assert numbers("1,503 cụm, 22.3 BLEU", "", vietnamese=True) == {"1.503", "22,3"}, "the English notation differs"
    assert numbers("| a | 0.5 |", "| a | 0.5 |", vietnamese=True) == set()


@pytest.mark.parametrize("page", [page for page in VIETNAMESE if page != DOCS / "vi" / "README.md"], ids=name)
def test_a_translation_says_what_its_original_says(page: Path):
    """As far as a test can tell: the same blocks, sections, rows of tables, code and numbers, and a link both ways."""
    ours, theirs = page.read_text(encoding="utf-8"), original(page).read_text(encoding="utf-8")
    assert original(page).resolve() in {(page.parent / link).resolve() for link in links(page)}
    assert page in {(original(page).parent / link).resolve() for link in links(original(page))}
    assert FENCE.findall(ours) == FENCE.findall(theirs)
    ours, theirs = FENCE.sub("", ours), FENCE.sub("", theirs)
    for pattern in (r"^#+ ", r"^\|", r"^- ", r"!\[|<img", r"^\[.*\]: .*"):
        assert len(re.findall(pattern, ours, re.MULTILINE)) == len(re.findall(pattern, theirs, re.MULTILINE)), pattern
    # In Vietnamese, the lab opens with a model that translates from it, unless the address names another.
    in_english = {re.sub(r"&lang=vi(#run=en-vi)?$", "", span) for span in CODE.findall(ours)}
    assert in_english == {re.sub(r"&lang=en(#run=en-vi)?$", "", span) for span in CODE.findall(theirs)}
    assert numbers(ours, theirs, vietnamese=True) == numbers(theirs, ours, vietnamese=False)


@pytest.mark.parametrize(("page", "line"), MANUAL_COMMANDS)
def test_every_command_is_one_that_the_program_reads(page: str, line: str):
    command, *arguments = shlex.split(line)
    several = "-m" in arguments
    arguments = [each for each in arguments if each not in NOT_ARGUMENTS and not each.startswith("$")]
    arguments = [re.sub(r"\{\}|\$\w+", "1", each) for each in arguments]  # what another program or the shell fills in
    if several:
        arguments = [re.sub(r"=interval\((.*)\)", r"=\1", each) for each in arguments]
        arguments = [each.split(",")[0] for each in arguments if not each.startswith("hydra")]
    arguments = for_hydra(arguments, settings_class(command), "what" if command == "download" else None)
    validated(settings_class(command), configuration(command, arguments))


@pytest.mark.parametrize(("page", "line"), MANUAL_COMMANDS)
def test_every_command_can_be_pasted_into_a_shell(page: str, line: str):
    """bash and zsh take brackets, braces, stars and question marks for patterns unless they are quoted."""
    assert not re.search(r"[][{}*?()~!;&]", QUOTED.sub("", line)), line


@pytest.mark.parametrize("page", MANUAL, ids=name)
def test_every_block_of_commands_is_one_that_bash_reads(page: Path):
    for kind, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "" and re.search(r"^(python|make|pip|source|echo|#!/bin/bash)", block, re.MULTILINE):
            if "==" in block:
                continue  # what a command prints
            read = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
            assert read.returncode == 0, read.stderr


@pytest.mark.parametrize(
    "line", sorted({line for _, line in MANUAL_COMMANDS if line.startswith("explain ") and "--" not in line})
)
def test_what_takes_seconds_runs(line: str, command: Callable):
    ended = command(*shlex.split(line))
    assert ended.code == 0, ended.errors
    assert "score" in ended.output


def test_a_thing_has_one_vietnamese_name():
    texts = [
        *VIETNAMESE,
        DOCS / "reference" / "glossary.md",
        *(ROOT / "nmt").rglob("*.py"),
        *(ROOT / "nmt").rglob("*.js"),
    ]
    for other in ("phòng thí nghiệm", "hàm điểm"):
        assert not [file for file in texts if other in file.read_text(encoding="utf-8").lower()], other


def test_every_target_of_make_is_there():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in MANUAL:
        named = {match[1] for line in code(page) if (match := re.match(r"make ([a-z]+)", line))}
        assert named <= targets, name(page)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_demo_continues_a_stopped_training_and_reuses_a_finished_one(tmp_path: Path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("requirements/base.txt", ".venv/bin/pip", ".venv/installed"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def training() -> list[str]:
        shown = subprocess.run(["make", "-n", "demo"], cwd=tmp_path, capture_output=True, text=True, check=True)
        return [line.split()[-1] for line in shown.stdout.splitlines() if "nmt.train" in line]

    assert training() == ["overwrite=true"]
    run = tmp_path / "runs" / "demo"
    (run / "checkpoints").mkdir(parents=True)
    assert training() == ["overwrite=true"]
    (run / "checkpoints" / "last.ckpt").touch()
    assert training() == ["resume=true"]
    (run / "model.safetensors").touch()
    assert training() == []


@pytest.mark.parametrize("page", [page for page in PAGES if "```pycon" in page.read_text(encoding="utf-8")], ids=name)
def test_examples_print_what_they_say(page: Path):
    failures, examples = doctest.testfile(str(page), module_relative=False)
    assert failures == 0
    assert examples > 30


@pytest.mark.parametrize("page", [page for page in MANUAL if "```python" in page.read_text(encoding="utf-8")], ids=name)
def test_examples_in_python_run(page: Path, here: Path, tmp_path: Path, job: Callable, request: pytest.FixtureRequest):
    source, maps = tmp_path / "in.en", tmp_path / "maps"
    source.write_text("one two.\n", encoding="utf-8")
    export_attention(job("export_attention", run_dir="maps_luong", input=str(source), out=maps, formats=[]))
    for kind, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if "runs/documents" in block:
            block = block.replace("runs/documents", str(request.getfixturevalue("document_runs") / "hierarchical"))
        if kind == "python":
            exec(block.replace("runs/demo", "maps_luong").replace('"maps"', repr(str(maps))), {})


def test_the_example_of_pretraining_runs(command: Callable, corpus: Path):
    """On a tiny corpus and for one step; the rest is as it is written."""
    (corpus / "in.en").write_text("one two.\n", encoding="utf-8")
    short = ["trainer.accelerator=cpu", "trainer.max_steps=1", "validation.every=1"]
    sizes = ["model.dim=8", "model.ffn_dim=8", "model.num_heads=2", "model.num_layers=1", "batching.batch_tokens=101"]
    ours = {
        "pretrain": ["data.train=[train.en,train.vi]", "data.valid_lines=9", "tokenizer.size=293", *sizes, *short],
        "train": ["data=files", "data.train=[train]", "data.valid=valid", "validation.sentences=2", *short],
        "export_attention": [],
    }
    page = DOCS / "how_to" / "pretrain.md"
    shown = [line for line in commands(page) if re.search(r"=runs/(encoder|from_encoder)\b", line)]
    assert [line.split()[0] for line in shown] == ["pretrain", "train", "export_attention"]
    for line in shown:
        name, *arguments = shlex.split(line)
        ended = command(name, *arguments, *ours[name])
        assert ended.code == 0, ended.errors
    assert (corpus / "maps" / "viewer.html").is_file()


@pytest.mark.parametrize("group", ["scorer", "window", "normalizer"])
def test_every_choice_has_its_section(group: str):
    text = (DOCS / "explanation" / "attention.md").read_text(encoding="utf-8")
    sections = re.findall(r"^### (\w+)$", text, re.MULTILINE)
    assert {path.stem for path in (CONFIGS / group).glob("*.yaml")} <= set(sections)


def without_comment(keys: str) -> list[str]:
    """The keys of a command's --help that have neither a comment beside them nor one above them.

    A group of keys needs none, nor does what makes an object or is the value of another key.
    """
    lines = keys.splitlines()
    return [
        line.strip()
        for above, line in zip(["", *lines], lines, strict=False)
        if re.match(r" *[a-z]\w*: *[^\s#]", line)
        and not re.search(r": (\$\{|\{_target_)", line)
        and " # " not in line
        and not above.lstrip().startswith("# ")
    ]


@pytest.mark.parametrize("command_name", sorted(path.stem for path in CONFIGS.glob("*.yaml")))
def test_help_explains_every_key(command_name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "1000")  # a comment stays on the line of its key
    choices, config = choices_and_values(command_name, [])
    shown = help_text(CONFIGS, command_name, "", choices=choices, config=config)
    keys = re.split(r"\n\n(?=Keys of the choices|Set )", shown.partition("marks a required key):\n\n")[2])[0]
    assert re.search(r"^  [a-z_]+: \S+ +# ", keys, re.MULTILINE)
    assert without_comment(keys) == []


def test_a_key_without_a_comment_is_found():
    keys = "  a: 1  # one\n  # two\n  b: 2\n  c: {d: 3}\n  e:\n    f: 4\n    _target_: g\n    h: ${a}\n"
    assert without_comment(keys) == ["c: {d: 3}", "f: 4"]


CHOSEN = sorted({path.parent.name for path in CONFIGS.glob("*/*.yaml")})


def test_every_key_in_the_tables_of_keys_exists():
    """`nmt COMMAND --help` lists all keys; the page explains some of them."""
    defined = {
        path
        for file in CONFIGS.rglob("*.yaml")
        for path in key_paths(
            yaml.safe_load(file.read_text("utf-8")), f"{file.parent.name}." * (file.parent != CONFIGS)
        )
    }
    rows = re.findall(r"^\| (`[^|]+`) \| [^|]* \| [^|]* \|$", KEYS.read_text(encoding="utf-8"), re.MULTILINE)
    keys = {key for row in rows for key in CODE.findall(row) if re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", key)}
    assert len(keys) > 30
    assert keys - set(CHOSEN) <= defined


def key_paths(node: object, above: str = "") -> Iterator[str]:
    """'a', 'a.b' of {a: {b: 1}}."""
    for key, value in (node or {}).items() if isinstance(node, dict) else ():
        yield f"{above}{key}"
        yield from key_paths(value, f"{above}{key}.")


def listed_choices(page: Path) -> dict[str, set[str]]:
    """The choices in a page's table of groups, by the group's name without '@' or '='."""
    table = re.split(r"^\| \w+ \| choices \|.*\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    rows = re.findall(r"^\| `(\w+)[@=\w]*` \| ([^|]+) \|", table.split("\n\n")[0], re.MULTILINE)
    return {group: set(CODE.findall(choices)) for group, choices in rows}


def test_the_tables_of_choices_have_those_that_exist():
    chosen = {path.parent.name: set[str]() for path in CONFIGS.glob("*/*.yaml")}
    for path in CONFIGS.glob("*/*.yaml"):
        chosen[path.parent.name].add(path.stem)
    del chosen["corpus"]  # not a group: nmt.download takes the names themselves
    reference = listed_choices(KEYS)
    # There are too many experiments for a table; each has its own comment in --help.
    assert reference.pop("experiment") == {"sample", "configs/experiment/"}
    del chosen["experiment"]
    assert reference == chosen
    readme = listed_choices(ROOT / "README.md")
    assert readme == {group: chosen[group] for group in readme}
    assert {"model", "scorer", "window", "normalizer"} <= set(readme)


def test_the_page_on_corpora_explains_what_the_report_counts():
    repeats = inspect([("a", "b"), ("a", "b"), ("a", "c")], {}, held_out={"a": "test, line 1"}).counts
    assert len(repeats) == 3, repeats
    page = (DOCS / "tutorials" / "your_corpus.md").read_text(encoding="utf-8")
    assert {*repeats, *checks(Direction("en", "vi"))} <= set(CODE.findall(page))


def test_the_readme_has_the_scores_of_the_card():
    card = (ROOT / "models" / "README.md").read_text(encoding="utf-8")
    ours, opus, nllb = (
        f"{float(score):.1f}"
        for score in re.findall(r"^\| FLORES-200 devtest[^|]*\| (\d+\.\d+) \[", card, re.MULTILINE)
    )
    scores = rf"`en-vi` scores {ours} BLEU, OPUS-MT {opus}, and NLLB-200 with 600 million parameters {nllb}\."
    assert re.search(scores, (ROOT / "README.md").read_text(encoding="utf-8"))


def test_the_example_for_ctranslate2_ranks_as_the_included_model_does():
    stored = yaml.safe_load((ROOT / "models" / "en-vi" / "config.yaml").read_text(encoding="utf-8"))
    program = (DOCS / "how_to" / "export.md").read_text(encoding="utf-8")
    assert f"alpha = {stored['search']['length_penalty']}  # search.length_penalty" in program


def test_the_citation_names_the_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # The citation names the license of the code; the package also contains models and a corpus with their own.
    code, *others = project["license"].split(" AND ")
    assert (cited["version"], cited["license"]) == (project["version"], code)
    assert nmt.__version__ == project["version"]
    assert callable(pkgutil.resolve_name(project["scripts"]["nmt"]))
    assert others == ["CC-BY-SA-4.0", "CC0-1.0"]


def test_every_extra_that_is_named_exists_and_is_spelled_so_that_every_pip_finds_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", extra) for extra in extras), "pip 23 ignores an underscore"
    named = [*PAGES, *(ROOT / "nmt").rglob("*.py"), ROOT / "Makefile", ROOT / "pyproject.toml"]
    texts = "\n".join(file.read_text(encoding="utf-8") for file in named)
    written = {
        extra for names in re.findall(r"(?:'\.|nmt-attention)\[([\w,-]+)\]", texts) for extra in names.split(",")
    }
    written |= {
        install_command(extra).split("[")[1].split("]")[0] for extra in ("ctranslate2", "hugging_face", "onnx", "argos")
    }
    assert written <= extras
    assert "hugging-face" in written


@pytest.mark.parametrize("page", sorted((DOCS / "papers").glob("*20*.py")), ids=name)
def test_the_equations_on_the_pages_on_papers_are_what_the_code_computes(page: Path, monkeypatch: pytest.MonkeyPatch):
    """The pages check them. Their models are trained for two steps here."""
    monkeypatch.syspath_prepend(page.parent)  # as when a script is run
    monkeypatch.setattr("tiny_language.STEPS", 2)
    runpy.run_path(str(page))
    plt.close("all")


@pytest.mark.soak
def test_the_site_is_built_without_a_warning(tmp_path: Path):
    """All pages and docstrings; the pages on the papers are not run. Vietnamese pages are marked as such."""
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    options = [
        "-q",
        "-W",
        "--keep-going",
        "-c",
        "docs/site",
        "-d",
        str(tmp_path / "doctrees"),
        "-D",
        "nb_execution_mode=off",
    ]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, ".", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    front = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert 'lang="en"' in front
    assert 'href="README.vi.html" lang="vi"' in front
    attention = (tmp_path / "site" / "docs" / "vi" / "attention.html").read_text(encoding="utf-8")
    assert "Tạo bằng" in attention
    assert "Made with" not in attention
    assert '<html class="no-js" lang="vi"' in attention
    assert "<math" in attention
    assert 'href="../explanation/attention.html" lang="en"' in attention
    # Nothing is loaded from elsewhere.
    assert not re.findall(r'(?:src|<link[^>]* href)="https?:', front + attention)
    # A search for words that the page does not have finds it first.
    index = (tmp_path / "site" / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    for searched, page in {"custom dataset": "tutorials/your_corpus", "huan luyen": "vi/your_corpus"}.items():
        ((document, _, is_main),) = index["indexentries"][searched]
        assert (index["docnames"][document], is_main) == (f"docs/{page}", True)


def test_sphinx_still_has_the_messages_that_we_translate():
    sphinx = pytest.importorskip("sphinx", reason="the extra docs is not installed")
    static = Path(sphinx.__file__).parent / "themes" / "basic" / "static"
    has = "".join((static / name).read_text(encoding="utf-8") for name in ("searchtools.js", "sphinx_highlight.js"))
    messages = (DOCS / "site" / "static" / "search.js").read_text(encoding="utf-8").partition("messages: {")[2]
    translated = re.findall(r'^ {6}"(.+?)":', messages, re.M)
    assert len(translated) == 7
    scorer = (DOCS / "site" / "search_scorer.js").read_text(encoding="utf-8")
    weights = r"^ +(obj(?:Name|Partial)Match|objPrioDefault|title|partialTitle|term|partialTerm): (-?\d+),"
    repeated = re.findall(weights, scorer, re.M)
    assert len(repeated) == 7
    assert repeated == re.findall(weights, has, re.M)
    [priorities] = re.findall(r"objPrio: \{ (.*) \}", scorer)
    assert dict(re.findall(r"(\d): (-?\d+)", priorities)) == dict(re.findall(r"^      (\d): (-?\d+), //", has, re.M))
    assert [message for message in translated if f'"{message}"' not in has] == []


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
