"""Which language a text is in, among those of a server."""

from pathlib import Path

import pytest

from nmt.config.direction import Direction
from nmt.serving.gallery import Gallery, OfferedRun
from nmt.serving.languages import Languages


def languages(*directions: str) -> Languages:
    gallery = object.__new__(Gallery)  # nothing is loaded
    gallery.offered = {each: OfferedRun(each, Path(each), Direction.parse(each)) for each in directions}
    return Languages(gallery)


def test_two_servers_in_a_process_have_languages_of_their_own() -> None:
    first, second = languages("en-vi"), languages("en-de", "de-fr")
    for _ in range(2):
        assert {each.language for each in first.detect("Wie alt ist sie denn?")} == {"en", "vi"}
        assert second.detect("Wie alt ist sie denn?")[0].language == "de"


@pytest.mark.parametrize("text", ["Bonjour, comment allez-vous aujourd'hui ?", "Как дела?", "123", "", "😀"])
def test_met_detection_of_a_text_in_no_installed_language(text: str) -> None:
    assert [language.confidence for language in languages("en-vi").detect(text)] == [0.0, 0.0]


def test_installed_languages_are_detected_with_confidence() -> None:
    found = {text: languages("en-vi").detect(text)[0] for text in ("How old is Mai?", "Xin chào", "HOW OLD IS MAI?")}
    assert [language.language for language in found.values()] == ["en", "vi", "en"]
    assert all(language.confidence > 99 for language in found.values())


@pytest.mark.parametrize("directions", [("en-xx",), ("xx-yy",)])
def test_a_language_that_cannot_be_detected_has_no_confidence(directions: tuple[str, ...]) -> None:
    found = languages(*directions).detect("How old are they now?")
    assert found[-1].confidence == 0.0
    assert {each.language for each in found} == {*directions[0].split("-")}
