"""Translation scores, tests of their significance, and signs that a score is misleading."""
