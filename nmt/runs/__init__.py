"""A finished run as an object: its directory, its model, its search."""
