"""The commands: what reads a configuration or a run directory and puts the other packages together."""
