"""From a model and source text to translations: the search, and the translator that batches and orders lines."""
