"""Measures and pictures of what a model did: scores, alignment error, attention maps."""
