"""The command line: compose with Hydra, help, error sentences, exit codes, sweeps."""
