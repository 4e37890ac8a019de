"""Fast implementations of plain formulas. Each docstring states the formula, and tests check the code against it."""
