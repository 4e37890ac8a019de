"""Fast ways to compute the same as a formula."""
