"""A finished run as its files describe it, without its model: enough for an engine, and read without torch."""

from pathlib import Path
from typing import NamedTuple

from nmt.config.direction import Direction
from nmt.config.messages import stored_invalid
from nmt.config.schema import RunSettings, validated
from nmt.config.trusted import FOR_LOADING, check_nodes
from nmt.data.documents import ContextWindow
from nmt.errors import Mistake
from nmt.runs.directory import RunDirectory
from nmt.runs.included import named_run
from nmt.text import TokenizerPair, normalize
from nmt.text.dictionary import NO_DICTIONARY, Dictionary


class StoredRun(NamedTuple):
    """A run's directory, settings, tokenizers and dictionary."""

    directory: RunDirectory
    settings: RunSettings
    tokenizers: TokenizerPair
    dictionary: Dictionary = NO_DICTIONARY

    @property
    def direction(self) -> Direction:
        return self.settings.direction

    @property
    def context_window(self) -> ContextWindow:
        """The earlier sentences that the model reads."""
        return context_window(self.settings)

    def source_text(self, line: str) -> str:
        """What the model reads of a source line: the normalized line, with the words of the dictionary replaced."""
        return self.dictionary.replaced(self.tokenizers.source.respelled(normalize(line)))

    def dictionary_with(self, own: Dictionary) -> Dictionary:
        """The words of the run's dictionary and of `own`, in the run's spelling; those of `own` take precedence."""
        return self.dictionary | own.respelled(*(tokenizer.respelled for tokenizer in self.tokenizers))

    def require_context(self, key: str) -> None:
        """Raises Mistake if the run reads no earlier sentences; `key` is the setting that would have no effect."""
        if not self.context_window.sentences:
            raise Mistake(
                f"{key} has no effect on {self.directory.path}, which reads each sentence by itself; leave it out, "
                "or use a run trained with context=hierarchical or context=concatenate."
            )


def context_window(settings: RunSettings) -> ContextWindow:
    """The earlier sentences that a model with these settings reads."""
    context = settings.context
    return ContextWindow(
        context.sentences,
        joined=context.model is None and context.sentences > 0,
        translations=context.model is not None and context.model.get("decoder") is not None,
    )


def read_run(path: str | Path) -> StoredRun:
    """The finished run in a folder, or the included model with that name (see nmt.runs.included).

    Raises Mistake if the folder holds no finished run, or if its files do not belong together.
    """
    directory = RunDirectory(named_run(path))
    directory.require_finished()
    directory.check_links()
    config = directory.config()
    check_nodes(config, directory.path / "config.yaml", FOR_LOADING)
    try:
        settings = validated(RunSettings, config)
    except Mistake as error:
        raise Mistake(f"{directory.path / 'config.yaml'} cannot be used: {stored_invalid(error)}") from error
    tokenizers = directory.tokenizers(settings.direction, directory.metrics(), settings.tokenizer.tone_marks)
    dictionary = directory.read_dictionary().respelled(tokenizers.source.respelled, tokenizers.target.respelled)
    return StoredRun(directory, settings, tokenizers, dictionary)
