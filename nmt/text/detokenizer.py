"""Restores plain text from tokenized text."""

import re
from collections.abc import Callable

# The Penn Treebank tokenizer splits off these negations; the Moses tokenizer does not.
_NEGATION = re.compile(r"(?<=\w) (n['’]t)\b", re.IGNORECASE)
_CONTRACTION = re.compile(r"^'(?:s|m|d|t|re|ve|ll)$", re.IGNORECASE)
_QUOTES = re.compile(r"(?<!\S)(?:``|'')(?!\S)")


def detokenizer(language: str) -> Callable[[str], str]:
    """A function that turns tokens into plain text: `It 's a &quot; cat &quot; .` becomes `It's a "cat".`

    Uses the Moses rules (Koehn et al. 2007) for the language, or the general rules if Moses has none for it, and
    decodes the entities that Moses writes. Also handles English negations and quotes in the style of the Penn Treebank.
    Text that is already plain hardly changes.
    """
    from sacremoses import MosesDetokenizer  # imported here because the import is slow and few commands need it

    moses = MosesDetokenizer(lang=language)
    # Moses's own pattern treats every word after an opening quote as a contraction.
    moses.IS_ENGLISH_CONTRACTION = _CONTRACTION

    def plain(line: str) -> str:
        text: str = moses.detokenize(_QUOTES.sub('"', line).split())
        return _NEGATION.sub(r"\1", text) if language == "en" else text

    return plain
