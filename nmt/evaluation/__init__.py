"""Scores of translations, their significance, and signs of misleading scores."""
