"""Fast ways to compute what a plain formula says; each docstring has the formula, and a test the comparison."""
