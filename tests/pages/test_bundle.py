"""Modules that become one: they run as before, and what the bundler does not understand is refused."""

import re
from pathlib import Path
from typing import Any

import pytest

from nmt.pages.bundle import WEB, bundle


def written(folder: Path, **modules: str) -> Path:
    """The path of the first module."""
    paths = [folder / f"{name.replace('__', '/')}.js" for name in modules]
    for path, text in zip(paths, modules.values(), strict=True):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return paths[0]


def test_modules_run_once_in_the_order_of_their_imports_and_may_use_the_same_names(
    browser: Any, tmp_path: Path
) -> None:
    entry = written(
        tmp_path,
        entry='import { log, name } from "./part/log.js";\nimport { twice } from "./twice.js";\n'
        'const own = "entry";\nlog(`${own} ${name} ${twice(21)}`);\n',
        twice='import {\n  log,\n} from "./part/log.js";\nconst own = "twice";\nlog(own);\n'
        "export const twice = (number) => 2 * number;\n",
        part__log="const own = window.said = [];\nexport function log(text) { own.push(text); }\n"
        'export const name = "log";\n',
    )
    page = browser.new_page()
    page.set_content(f'<script type="module">{bundle(entry)}</script>')
    page.wait_for_function("window.said?.length === 2")
    assert page.evaluate("said") == ["twice", "entry log 42"]
    page.close()


def test_modules_whose_paths_differ_only_in_punctuation_have_variables_of_their_own(tmp_path: Path) -> None:
    entry = written(
        tmp_path,
        entry='import { one } from "./a/b.js";\nimport { two } from "./a_b.js";\nimport { three } from "./a-b.js";\n',
        a__b="export const one = 1;\n",
        a_b="export const two = 2;\n",
        **{"a-b": "export const three = 3;\n"},
    )
    variables = re.findall(r"^const (\$\w+) = ", bundle(entry), re.MULTILINE)
    assert len(variables) == len(set(variables)) == 4


@pytest.mark.parametrize("entry", ["viewer.js", "lab.js"])
def test_every_module_that_an_entry_needs_is_in_its_bundle(entry: str) -> None:
    text = bundle(WEB / entry)
    names = re.findall(r"^const \$\d+_(\w+) = \(\(\) =>", text, re.MULTILINE)
    shared = {"colors", "dom", "draw", "heat_map", "map", "words", "address", "glossary"}
    needed = {path.stem for path in WEB.glob("*.js")} & shared
    assert all(names.count(name) == 1 for name in needed)


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ({"a": 'import { b } from "./b.js";\n', "b": "export const c = 1;\n"}, "a.js imports b, which b.js does not"),
        (
            {"a": 'import { b } from "./b.js";\n', "b": 'import { a } from "./a.js";\nexport const b = 1;\n'},
            "a.js imports itself through b.js",
        ),
        ({"a": "export default 1;\n"}, "cannot be bundled: export default 1;"),
        ({"a": 'import * as b from "./b.js";\n'}, "cannot be bundled: import"),
        ({"a": "export let count = 0;\n"}, "cannot be bundled: export let count"),
        ({"a": 'const text = "</SCRIPT>";\n'}, "a.js has a text that ends a script"),
        ({"a": "// <!-- a comment\n"}, "a.js has a text that ends a script"),
    ],
)
def test_what_cannot_be_bundled_is_refused(tmp_path: Path, modules: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bundle(written(tmp_path, **modules))
