"""Data: from aligned text files to padded batches. Import from the modules; the package itself loads none of them."""
