"""Where sentences end."""

SENTENCE_END = r"[.!?…][\"')\]”’»]*"
"""A regular expression for the punctuation at the end of a sentence, with the quotes and brackets that it closes."""
