"""Attention maps as data, and what people look at."""
