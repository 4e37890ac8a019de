"""Data: from aligned text files to padded batches. Import from the modules; this package loads none of them."""
