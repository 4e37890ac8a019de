"""Fast implementations of plain formulas. Each docstring states the formula, and tests compare the two."""
