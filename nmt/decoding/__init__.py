"""Decoding: searches for translations, and the translator that runs them on lines of text."""
