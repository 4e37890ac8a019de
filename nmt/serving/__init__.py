"""The HTTP server: a gallery of runs, one thread that computes for all requests, and the interfaces on top."""
