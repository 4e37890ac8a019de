"""Decoding: search algorithms, and the translator that applies them to lines of text."""
