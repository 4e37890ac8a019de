"""What trainings, translations and their parts cost on this machine."""
