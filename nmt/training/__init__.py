"""Training with Lightning: begin and resume prepare a run, and loop trains it and saves the best weights."""
