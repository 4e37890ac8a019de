"""Plain text again from text that was tokenised before it was published."""

import re
from collections.abc import Callable

# What the Penn Treebank's tokeniser splits and the Moses one does not.
_NEGATION = re.compile(r"(?<=\w) (n['’]t)\b", re.IGNORECASE)
_CONTRACTION = re.compile(r"^'(?:s|m|d|t|re|ve|ll)$", re.IGNORECASE)
_QUOTES = re.compile(r"(?<!\S)(?:``|'')(?!\S)")


def detokenizer(language: str) -> Callable[[str], str]:
    """Turns a line of tokens between spaces into plain text: `It 's a &quot; cat &quot; .` becomes `It's a "cat".`

    By the Moses rules (Koehn et al. 2007) of the language, or those that all share, with the entities that Moses
    writes; English negations and quotes of the Penn Treebank too. What is plain text already changes little.
    """
    from sacremoses import MosesDetokenizer  # here, because few commands need it and it takes a while

    moses = MosesDetokenizer(lang=language)
    # Its own pattern takes every word after an opening quote for a contraction.
    moses.IS_ENGLISH_CONTRACTION = _CONTRACTION

    def plain(line: str) -> str:
        text: str = moses.detokenize(_QUOTES.sub('"', line).split())
        return _NEGATION.sub(r"\1", text) if language == "en" else text

    return plain
