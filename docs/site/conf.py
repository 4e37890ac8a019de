"""The site of the documents: `make docs` builds it from the Markdown files, the papers and the docstrings."""

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
# The pages on the papers run in processes of their own, which must import the same code.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))

# They have no configuration of the user's, and do not warn that they talk to Sphinx over the loopback interface.
IPYTHON = tempfile.TemporaryDirectory()
(Path(IPYTHON.name) / "profile_default").mkdir()
(Path(IPYTHON.name) / "profile_default" / "ipython_kernel_config.json").write_text(
    '{"IPKernelApp": {"log_level": 40}}', encoding="utf-8"
)
os.environ["IPYTHONDIR"] = IPYTHON.name

import nmt  # noqa: E402

project = "nmt-attention"
release = nmt.__version__
html_title = project
language = "en"
extensions = ["myst_nb", "sphinx.ext.autodoc"]
# The source folder is the root of the repository, so that the links of README.md and CONTRIBUTING.md work as they are.
include_patterns = ["*.md", "*/README.md", "scripts/bench/peers/README.md", "docs/**.md", "docs/papers/*20*.py"]
READ = ("data", "docs", "models", "scripts")
exclude_patterns = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in READ]
root_doc = "README"

html_theme = "furo"
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["search.js"]
html_search_scorer = str(Path(__file__).with_name("search_scorer.js"))
html_copy_source = False
html_show_copyright = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/language.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_math_renderer = "mathml"
pygments_dark_style = "github-dark"

myst_enable_extensions = ["attrs_inline", "dollarmath", "html_image"]
myst_heading_anchors = 4
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "force"  # a cache would not notice that the code of nmt has changed
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
highlight_language = "text"  # blocks without a language are commands and what they print

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_inherit_docstrings = False  # torch's, for every forward
autodoc_default_options = {"members": True, "show-inheritance": False}

CONTENTS = [ROOT / "docs" / "README.md", ROOT / "docs" / "vi" / "README.md"]
SECTION = re.compile(r"^(?=\*\*)", re.MULTILINE)
PAGE_LINK = re.compile(r"\]\(([\w/.]+\.(?:md|py))\)")
LOCAL_LINK = re.compile(r"\[([^]\n]+)\]\(((?!https?:)[^)\s#]+)\)")
ACCENT_WITH_INDEX = re.compile(r"(\\(?:bar|tilde|overleftarrow|overrightarrow) ?(?:\{[^{}]*\}|\w))(?= ?_)")
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')

# What people search for that is not in the title of the page that they need.
SEARCHED = {
    "README": "git, install",
    "README.vi": "cai dat",
    "docs/explanation/attention": "local attention, predictive alignment, sparse attention, monotonic attention",
    "docs/explanation/search": "p-value, significance test, bootstrap, paired test, temperature, top-k, mbr",
    "docs/how_to/compare_runs": "hyperparameter search, grid search, slurm, joblib",
    "docs/how_to/export": "app, mobile app, quantization, android, ios, offline, browser",
    "docs/how_to/faq": "cpu only, download size, slow, error, windows, macos, wsl",
    "docs/how_to/gpu_and_precision": "cuda, bf16, mixed precision, out of memory",
    "docs/how_to/onnx": "c++, c#, java, javascript",
    "docs/how_to/production": "deploy, docker, http service, web service, rest api, nginx, kubernetes",
    "docs/how_to/research": "latex, three seeds, mean and standard deviation, table for a paper",
    "docs/how_to/resume_and_scale": "checkpoint, continue training, multi-gpu, ddp",
    "docs/explanation/little_data": "fine-tune, finetune, fine-tuning, low-resource, regularization",
    "docs/reference/server_api": "http api, endpoints, json, openapi",
    "docs/tutorials/first_steps": "quick start, quickstart, tutorial, beginner",
    "docs/tutorials/lab_in_ten_minutes": "teaching, classroom, projector, slides, lecturer, live demo, presentation",
    "docs/tutorials/read_a_map": "heatmap, heat map, visualization, plot attention",
    "docs/tutorials/your_corpus": "own data, own corpus, own dataset, my data, custom data, custom dataset",
    "docs/vi/attention": "co che chu y, chú ý cục bộ, chu y cuc bo, cua so, ham tinh diem",
    "docs/vi/faq": "hỏi đáp, hoi dap, cau hoi thuong gap, loi",
    "docs/vi/first_steps": "bat dau, chay thu, bắt đầu, chạy thử",
    "docs/vi/lab_in_ten_minutes": "bai giang, giảng dạy, giang day, trình chiếu, trinh chieu",
    "docs/vi/glossary": "thuat ngu, tu dien, từ điển",
    "docs/vi/read_a_map": "ban do chu y, giong hang tu",
    "docs/vi/serve": "may chu, phong thuc hanh, api, libretranslate, deepl",
    "docs/vi/your_corpus": "huan luyen, ngu lieu, dữ liệu riêng, du lieu rieng, tập dữ liệu, tách từ, tach tu",
}

# What the theme itself shows, for Vietnamese pages.
VIETNAMESE = {
    "Back to top": "Về đầu trang",
    "Home": "Trang chủ",
    "Made with ": "Tạo bằng ",
    "Next": "Trang sau",
    "On this page": "Trong trang này",
    "Previous": "Trang trước",
    "Search": "Tìm kiếm",
    "Skip to content": "Đến nội dung chính",
}


def prepare_source(app: Sphinx, name: str, source: list[str]) -> None:
    """Anchors in HTML become ones that Sphinx knows, links to folders plain text, and links to scripts downloads; the
    front page gets the navigation of the pages of contents, and pages the words that people search for.
    """
    folder = (ROOT / name).parent

    def local(link: re.Match[str]) -> str:
        text, target = link.groups()
        if (folder / target).is_dir():
            return text
        if target.endswith(".py") and (folder / target).parent.name != "papers":
            return f"{{download}}`{text.strip('`')} <{target}>`"
        return link[0]

    source[0] = LOCAL_LINK.sub(local, ANCHOR.sub(r"[]{#\1}", source[0]))
    if name in SEARCHED:
        title, text = source[0].split("\n", 1)
        words = ", ".join(f"! {word}" for word in SEARCHED[name].split(", "))  # ! ranks the page first
        source[0] = f"{title}\n\n```{{index}} {words}\n```\n{text}"
    if name == root_doc:
        source[0] += navigation()


def navigation() -> str:
    """A hidden toctree for each list of the two pages of contents; each page is listed once, where it comes first."""
    listed: set[str] = set()
    trees = []
    for contents in CONTENTS:
        home = page_name(contents)
        sections = {"": [home]} if of_language(home) == "en" else {"Tiếng Việt": ["README.vi", home]}
        for caption, text in captioned(contents):
            linked = [page_name((contents.parent / link).resolve()) for link in PAGE_LINK.findall(text)]
            sections[caption] = [page for page in linked if of_language(page) == of_language(home)]
        for caption, pages in sections.items():
            unlisted = [page for page in dict.fromkeys(pages) if page not in listed]
            listed.update(unlisted)
            if not unlisted:
                continue
            head = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else [])]
            trees.append("\n".join([*head, *(f"/{page}" for page in unlisted), "```"]))
    return "\n\n" + "\n\n".join(trees) + "\n"


def captioned(contents: Path) -> list[tuple[str, str]]:
    """The captions of a page of contents, in bold type, each with the text below it."""
    sections = SECTION.split(contents.read_text(encoding="utf-8"))[1:]
    return [(text.split("**")[1], text) for text in sections]


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").as_posix()


def of_language(page: str) -> str:
    return "vi" if page == "README.vi" or page.startswith("docs/vi/") else "en"


def counterpart(app: Sphinx, page: str) -> str | None:
    """The same page in the other language: docs/vi has the file names of the English pages, without their folders."""
    pages = app.env.found_docs
    if page in ("README", "README.vi"):
        return "README.vi" if page == "README" else "README"
    if page in ("docs/README", "docs/vi/README"):
        return "docs/vi/README" if page == "docs/README" else "docs/README"
    name, language = page.rsplit("/", 1)[-1], of_language(page)
    same = [other for other in pages if other.rsplit("/", 1)[-1] == name and of_language(other) != language]
    return same[0] if name != "README" and same else None


def set_language(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """The switch of languages, the theme's own words, and the part of the navigation in the page's language."""
    context["language"] = language = of_language(page)
    context["counterpart"] = counterpart(app, page)
    if language == "vi":
        context["gettext"] = lambda message, **_: VIETNAMESE.get(message, message)
        context["show_sphinx"] = False  # the footer's English "and" and "'s" are not translatable
    tree = context.get("furo_navigation_tree", "")
    captions = ["Tiếng Việt", *(caption for caption, _ in captioned(CONTENTS[1]))]
    parts = re.split(r'(?=<p class="caption")', tree)
    kept = [part for part in parts if any(f">{caption}<" in part for caption in captions) == (language == "vi")]
    context["furo_navigation_tree"] = "".join(kept)


def plain_docstring(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text with code in single backticks; nothing else of them is reStructuredText."""
    shown, in_block = [], False
    for line in lines:
        indented = line.startswith("    ")
        if indented and not in_block:
            shown += ["", "::", ""]
        in_block = indented or (in_block and not line)
        if indented:
            shown.append(line)
            continue
        spans = re.split(r"(`[^`]+`)", line)
        shown.append(
            "".join(f"`{span}`" if span.startswith("`") else re.sub(r"([\\*_|`])", r"\\\1", span) for span in spans)
        )
    lines[:] = shown


def mathml(tex: str, displayed: bool = False) -> str:
    # docutils sets the index of a letter with an accent below the letter, unless there is an empty group after it.
    return tex2mathml(ACCENT_WITH_INDEX.sub(r"{{\1}{}}", tex), as_block=displayed)


def inline_math(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def displayed_math(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{mathml(node.astext(), displayed=True)}</div>')
    raise nodes.SkipNode


def front_page(app: Sphinx, failure: Exception | None) -> None:
    if failure is None and app.builder.name == "html":
        shutil.copy(app.outdir / "README.html", app.outdir / "index.html")


def setup(app: Sphinx) -> None:
    # A browser draws MathML by itself: no script, font or network.
    app.add_html_math_renderer("mathml", (inline_math, None), (displayed_math, None))
    app.connect("source-read", prepare_source)
    app.connect("autodoc-process-docstring", plain_docstring)
    app.connect("html-page-context", set_language, priority=900)  # after the theme's own
    app.connect("build-finished", front_page)
