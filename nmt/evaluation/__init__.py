"""Scores of translations, their significance, and signs that scores are misleading."""
