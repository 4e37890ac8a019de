"""Fast implementations of plain formulas; each docstring states the formula, and a test compares the two."""
