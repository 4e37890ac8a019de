"""The HTTP server: a gallery of runs, one thread that runs the models for all requests, and the HTTP interfaces."""
