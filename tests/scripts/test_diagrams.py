"""The drawings of the documents are those that the code makes, and the gallery has every picture."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.studies.diagrams import DRAWINGS, IMAGES, indexed

GALLERY = IMAGES.parent / "reference" / "gallery.md"


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_drawing_in_the_documents_is_the_one_that_the_code_makes(name: str) -> None:
    drawn = DRAWINGS[name]()
    assert (IMAGES / f"{name}.svg").read_text(encoding="utf-8") == drawn.svg(), "run python -m scripts.studies.diagrams"
    # Nothing is drawn outside, and each drawing says in words what it shows.
    for part in ElementTree.fromstring(drawn.svg()).iter():
        if part.tag.endswith("rect"):
            x, y = float(part.get("x", 0)), float(part.get("y", 0))
            assert 0 <= x <= x + float(part.attrib["width"]) <= drawn.width
            assert 0 <= y <= y + float(part.attrib["height"]) <= drawn.height
    assert drawn.title


def test_an_index_returns_to_the_line() -> None:
    assert indexed("h_{t} < 1") == 'h<tspan dy="4" style="font-size: 70%">t</tspan><tspan dy="-4"> </tspan>&lt; 1'


def test_the_gallery_has_every_picture() -> None:
    text = GALLERY.read_text(encoding="utf-8")
    pictures = {file.name for file in Path(IMAGES).iterdir()}
    assert len(pictures) > 10
    assert {name for name in pictures if f"images/{name}" not in text} == set()
