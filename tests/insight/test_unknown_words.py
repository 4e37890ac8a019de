"""The words that a run never saw in training."""

from pathlib import Path

from nmt.insight.unknown_words import unknown_words
from nmt.runs.load import load_run


def test_words_that_the_embedded_corpus_lacks_are_named(folder: Path) -> None:
    run = load_run(folder / "maps_luong", "cpu")
    text = "How old is the parliament, Mai? The Parliament budgeted 12 theatres."
    assert unknown_words(run, text) == [], "the words of other training texts are not known"
    settings = run.settings.model_copy(
        update={"data": run.settings.data.model_copy(update={"train": ["sample:train"]})}
    )
    assert unknown_words(run._replace(settings=settings), text) == ["parliament", "Parliament", "budgeted", "theatres"]
