"""How much an exported model reads and writes."""

POSITIONS = 1024
"""Number of positions in an exported model, which reads and writes at most this many pieces, including EOS."""
