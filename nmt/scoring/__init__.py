"""Scores of a finished run: test sets, translations and their scores, comparisons, forced scores, alignment error."""
