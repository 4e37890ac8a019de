"""A finished run as an object: its folder, its model, its translations and scores."""
