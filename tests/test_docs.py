"""The examples in docs/ print what they say, and the pages name every choice."""

import doctest
import re
from pathlib import Path

import pytest

from nmt.config.nodes import CONFIGS

DOCS = Path(__file__).resolve().parents[1] / "docs"
ATTENTION = DOCS / "attention.md"


def test_the_examples_of_the_attention_page_hold():
    failures, examples = doctest.testfile(str(ATTENTION), module_relative=False)
    assert failures == 0
    assert examples > 30


@pytest.mark.parametrize("group", ["scorer", "window", "normalizer"])
def test_every_choice_has_its_section(group: str):
    sections = re.findall(r"^### (\w+)$", ATTENTION.read_text(encoding="utf-8"), re.MULTILINE)
    assert {path.stem for path in (CONFIGS / group).glob("*.yaml")} <= set(sections)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_every_picture_is_there(page: Path):
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        assert (DOCS / picture).is_file(), picture


@pytest.mark.parametrize("page", [*sorted(DOCS.glob("*.md")), DOCS.parent / "README.md"], ids=lambda page: page.name)
def test_every_page_that_is_named_is_there(page: Path):
    for named in re.findall(r"`((?:docs|data|scripts|configs)/[\w./]+|[A-Z]+\.md)`", page.read_text(encoding="utf-8")):
        assert (DOCS.parent / named).exists(), named
